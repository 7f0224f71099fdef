//! Laws that any event and any text keep.
