//! What can go wrong in a pool: its configuration, and having no slot left.

/// Why a pool can't be built, or has nothing to hand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Every slot is in use: the caller stops accepting until one is released.
    #[error("all {max} slots are in use")]
    Full {
        /// The pool's `PoolConfig::max`.
        max: usize,
    },
    /// `PoolConfig::max` is 0: such a pool could never hand out anything.
    #[error("`max` is 0")]
    MaxIsZero,
    /// `PoolConfig::max` is above [`PoolConfig::MAX_LIMIT`](crate::PoolConfig::MAX_LIMIT).
    #[error("`max` is {max}, more than the {limit} slots a pool can hold")]
    MaxTooLarge {
        /// The pool's `PoolConfig::max`.
        max: usize,
        /// The largest `max` there is.
        limit: usize,
    },
    /// `PoolConfig::min` is above `PoolConfig::max`.
    #[error("`min` is {min}, more than `max`, which is {max}")]
    MinAboveMax {
        /// The pool's `PoolConfig::min`.
        min: usize,
        /// The pool's `PoolConfig::max`.
        max: usize,
    },
    /// The allocator refused the bookkeeping of `max` slots.
    #[error("no memory for the bookkeeping of {max} slots")]
    OutOfMemory {
        /// The pool's `PoolConfig::max`.
        max: usize,
    },
}
