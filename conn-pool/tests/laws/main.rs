//! Random operations on lists, pools and buffers, beside simple models of them.

mod buffers;
mod list;
mod pool;
