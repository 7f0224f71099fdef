//! A slab of connections on deadline-ordered intrusive lists, and a buffer pool.
#![doc = include_str!("../README.md")]

mod buffer;
mod buffer_pool;
mod error;
mod key;
mod lane;
mod list;
mod pool;
mod values;

pub use buffer::Buffer;
pub use buffer_pool::{BufferPool, BufferPoolConfig, BufferPoolStats, ClassStats};
pub use error::Error;
pub use key::Key;
pub use list::{Drain, Iter, Links, List, Nodes};
pub use pool::{Expired, Pool, PoolConfig, PoolStats, Reuse};
