//! Chance from a seed: the same seed gives the same numbers on every machine.

/// A small pseudo-random generator (SplitMix64): good enough to choose schedules, not for secrets.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The generator of `seed`. Neighbouring seeds give unrelated numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next_u64(&mut self) -> u64 {
        // Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `bound - 1`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub const fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there is no number below 0");
        // The bias towards small numbers is below 2^-32 for all bounds that fit memory.
        (self.next_u64() % bound as u64) as usize
    }

    /// A number from 1 to `most`.
    ///
    /// # Panics
    /// If `most` is 0.
    pub const fn up_to(&mut self, most: usize) -> usize {
        1 + self.below(most)
    }

    /// `true` in `permille` of 1 000 cases.
    pub const fn chance(&mut self, permille: u32) -> bool {
        self.next_u64() % 1_000 < permille as u64
    }

    /// Puts `items` in any order.
    pub const fn shuffle<T>(&mut self, items: &mut [T]) {
        let mut rest = items.len();
        while rest > 1 {
            let at = self.below(rest);
            rest -= 1;
            items.swap(rest, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_numbers_of_the_published_generator() {
        let mut rng = Rng::new(1_234_567);
        let numbers = [(); 3].map(|()| rng.next_u64());
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(numbers, published);
    }

    #[test]
    fn chance_keeps_to_its_share_and_a_shuffle_loses_nothing() {
        let mut rng = Rng::new(7);
        let hits = (0..10_000).filter(|_| rng.chance(250)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!((0..1_000).all(|_| !rng.chance(0) && rng.chance(1_000)));

        let mut items: Vec<u32> = (0..100).collect();
        rng.shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
