//! A slab of connections on deadline-ordered intrusive lists, and a buffer pool.
