//! What a pool is told, and what it tells: its sizes and its counters.

use crate::Error;
#[cfg(doc)]
use crate::{Key, Pool, Reuse};

/// How many values a [`Pool`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Values made in advance, by [`Pool::new`]; no more than `max`. Default: 0.
    pub min: usize,
    /// Values in use at the same time, at most: 1 to [`PoolConfig::MAX_LIMIT`]. Default: 1 024.
    ///
    /// Address space for the bookkeeping, 32 bytes each, is reserved at once.
    pub max: usize,
    /// Free values kept, with their warm buffers, for the next acquire. Default: 256.
    ///
    /// What is released beyond them is dropped. At least `min` are kept, whatever stands here.
    pub retained: usize,
}

impl PoolConfig {
    /// The largest `max`: 2³¹. Half of all indices, so that retired slots can be replaced.
    pub const MAX_LIMIT: usize = 1 << 31;

    pub(super) fn check(&self) -> Result<(), Error> {
        let Self { min, max, .. } = *self;
        let limit = Self::MAX_LIMIT;
        if max == 0 {
            Err(Error::MaxIsZero)
        } else if max > limit {
            Err(Error::MaxTooLarge { max, limit })
        } else if min > max {
            Err(Error::MinAboveMax { min, max })
        } else {
            Ok(())
        }
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            min: 0,
            max: 1024,
            retained: 256,
        }
    }
}

/// What a [`Pool`] has done and holds, from [`Pool::stats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Acquires that were served with a warm value.
    pub hits: u64,
    /// Acquires that had to make a value.
    pub misses: u64,
    /// Acquires that were refused because all slots were in use.
    pub refused: u64,
    /// Values in use.
    pub lent: usize,
    /// Free values that wait warm.
    pub retained: usize,
    /// Bytes held for values that aren't in use: their places, and what [`Reuse::heap_bytes`] says of
    /// those that wait warm.
    pub retained_bytes: usize,
    /// Slots that have used up their generations (see [`Key`]).
    pub retired: usize,
}
