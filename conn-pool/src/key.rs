//! The name of one stay of one value in a pool.

/// Names a value for as long as it is in use; afterwards it names nothing.
///
/// A key is handed out by [`Pool::acquire`](crate::Pool::acquire). It goes wherever something has to
/// find its way back to the connection: as the token in epoll, in a message to another thread, in a
/// list of waiters. Once the value is released, the key is *stale*: every method of the pool answers
/// it with `None` or `false`, also when the slot was handed out again in between.
///
/// A key means something only to the pool that made it.
///
/// # No key is handed out twice
///
/// A slot's generation starts at 1 and is raised by each release. It never wraps: a slot that is
/// released with the generation [`Key::GENERATION_MAX`] is retired, and a new slot with the next
/// unused index takes its place. So the pairs (index, generation) that a pool hands out are all
/// different, for its whole life, and a stale key can't become a live one.
///
/// What this costs: one retired slot's bookkeeping (32 bytes) in 2³² − 2 acquires. How long it lasts:
/// a pool has at most 2³¹ slots at a time ([`PoolConfig::MAX_LIMIT`](crate::PoolConfig::MAX_LIMIT))
/// and 2³² − 2 indices, so at least 2³¹ − 2 slots can be retired before an index is missing, which is
/// more than 2⁶² acquires: at one every nanosecond, 146 years. Even then the pool is not wrong, but
/// full.
///
/// # As 64 bits
///
/// [`Key::to_bits`] is at least 2³² and less than 2⁶⁴ − 2³², since no generation is 0 or `u32::MAX`.
/// The values outside are free for tokens that mean something else, such as a loop's listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

const _: () = assert!(size_of::<Key>() == 8);

impl Key {
    /// The last generation of a slot: one less than `u32::MAX`, so that the highest 2³² values of
    /// [`Key::to_bits`] stay free.
    pub const GENERATION_MAX: u32 = u32::MAX - 1;

    pub(crate) const GENERATION_FIRST: u32 = 1;

    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// The number of the slot, which later keys will share.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// How many times the slot was released before, plus one.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// The key as a number, the generation in the high half.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        ((self.generation as u64) << 32) | self.index as u64
    }

    /// The key that [`Key::to_bits`] made `bits` of.
    ///
    /// Any number is a key; one that no pool handed out is as good as stale.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "takes the number apart")]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            index: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_back_is_the_same_key() {
        for key in [
            Key::new(0, 1),
            Key::new(7, 3),
            Key::new(u32::MAX - 2, Key::GENERATION_MAX),
        ] {
            assert_eq!(Key::from_bits(key.to_bits()), key);
        }
    }

    #[test]
    fn the_lowest_and_the_highest_bits_are_no_key() {
        let first = Key::new(0, Key::GENERATION_FIRST);
        let last = Key::new(u32::MAX, Key::GENERATION_MAX);
        assert_eq!(first.to_bits(), 1 << 32);
        assert_eq!(last.to_bits(), u64::MAX - (1 << 32));
    }
}
