//! What only the inside can show: generations and indices that run out.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

impl Reuse for u32 {
    fn reset(&mut self) {
        *self = 0;
    }
}

/// A pool whose slots are used up after `generation_max` uses.
fn pool(max: usize, retained: usize, generation_max: u32) -> Pool<u32, 1> {
    let min = 0;
    let mut pool = Pool::new(PoolConfig { min, max, retained }).unwrap();
    pool.generation_max = generation_max;
    pool
}

#[test]
fn a_slot_is_replaced_after_its_last_generation() {
    let mut pool = pool(1, 1, 3);
    let mut keys = Vec::new();
    for _ in 0..8 {
        let key = pool.acquire().unwrap();
        keys.push((key.index(), key.generation()));
        assert!(pool.release(key));
        assert!(!pool.release(key));
        pool.check();
    }
    let (first, second) = ([(0, 1), (0, 2), (0, 3)], [(1, 1), (1, 2), (1, 3)]);
    assert_eq!(keys, [&first[..], &second, &[(2, 1), (2, 2)]].concat());
    assert_eq!(pool.stats().retired, 2);
    assert_eq!(pool.max(), 1);
}

#[test]
fn a_pool_without_unused_indices_is_full_and_nothing_else() {
    let mut pool = pool(2, 0, 1);
    pool.slots_max = 3;
    for _ in 0..3 {
        let key = pool.acquire().unwrap();
        pool.release(key);
    }
    assert!(pool.is_full());
    assert_eq!(pool.acquire(), Err(Error::Full { max: 2 }));
    assert_eq!(pool.len(), 0);
    pool.check();
}

proptest! {
    #[test]
    fn no_key_is_handed_out_twice(
        retained in 0..4_usize,
        generation_max in 1..4_u32,
        releases in vec(any::<usize>(), 0..200),
    ) {
        let mut pool = pool(3, retained, generation_max);
        let mut seen = HashSet::new();
        let mut keys = Vec::new();
        for nth in releases {
            match pool.acquire() {
                Ok(key) => {
                    assert!(seen.insert(key), "{key:?}");
                    keys.push(key);
                }
                Err(_) => assert_eq!(keys.len(), 3),
            }
            if nth % 3 > 0 && !keys.is_empty() {
                assert!(pool.release(keys.swap_remove(nth % keys.len())));
            }
            assert!(seen.iter().filter(|&&key| pool.contains(key)).count() == keys.len());
            pool.check();
        }
    }
}
