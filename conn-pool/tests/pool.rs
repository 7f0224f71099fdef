//! What a pool promises, one promise at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use pumice_conn_pool::{Error, Expired, Key, Pool, PoolConfig, Reuse};

const SECOND: Duration = Duration::from_secs(1);

/// Keeps its capacity over uses.
#[derive(Debug, Default)]
struct Conn {
    input: Vec<u8>,
    panics_at_reset: bool,
}

impl Reuse for Conn {
    fn reset(&mut self) {
        assert!(!self.panics_at_reset, "asked for");
        self.input.clear();
    }

    fn heap_bytes(&self) -> usize {
        self.input.capacity()
    }
}

fn config(min: usize, max: usize, retained: usize) -> PoolConfig {
    PoolConfig { min, max, retained }
}

fn pool(max: usize) -> Pool<Conn, 2> {
    Pool::new(config(0, max, max)).unwrap()
}

/// All that are due, in order.
fn expire(pool: &mut Pool<Conn, 2>, now: Instant) -> Vec<Expired> {
    std::iter::from_fn(|| pool.expired(now)).collect()
}

#[test]
fn a_stale_key_finds_nothing_while_its_slot_is_free_or_used_again() {
    let mut pool = pool(1);
    let old = pool.acquire().unwrap();
    pool.release(old);
    for _ in 0..2 {
        assert!(pool.get(old).is_none());
        assert!(pool.get_mut(old).is_none());
        assert!(!pool.contains(old));
        assert!(!pool.move_to(old, 0, Instant::now()));
        assert!(!pool.park(old));
        assert!(!pool.release(old));
        assert_eq!(pool.deadline(old), None);
        if let Ok(new) = pool.acquire() {
            assert_eq!(new.index(), old.index());
        }
    }
    assert_eq!(pool.len(), 1);
}

#[test]
fn a_key_that_was_never_handed_out_finds_nothing() {
    let mut pool = pool(2);
    let key = pool.acquire().unwrap();
    pool.release(key);
    // The next generation of a free slot, a slot that isn't there yet, and the numbers around.
    for bits in [2 << 32, (1 << 32) | 1, 0, u64::MAX] {
        assert!(!pool.contains(Key::from_bits(bits)), "{bits:#x}");
        assert!(!pool.release(Key::from_bits(bits)), "{bits:#x}");
    }
    pool.check();
}

#[test]
fn a_full_pool_refuses_until_one_is_released() {
    let mut pool = pool(2);
    let first = pool.acquire().unwrap();
    pool.acquire().unwrap();
    assert!(pool.is_full());
    assert_eq!(pool.acquire(), Err(Error::Full { max: 2 }));
    pool.release(first);
    assert!(!pool.is_full());
    assert!(pool.acquire().is_ok());
    assert_eq!(pool.stats().refused, 1);
}

#[test]
fn a_config_that_contradicts_itself_is_refused() {
    let new = |config| Pool::<Conn, 1>::new(config).map(|_| ());
    let limit = PoolConfig::MAX_LIMIT;
    let max = limit + 1;
    assert_eq!(new(config(0, 0, 0)), Err(Error::MaxIsZero));
    assert_eq!(
        new(config(0, max, 0)),
        Err(Error::MaxTooLarge { max, limit })
    );
    assert_eq!(
        new(config(3, 2, 0)),
        Err(Error::MinAboveMax { min: 3, max: 2 })
    );
    assert_eq!(new(config(2, 2, 0)), Ok(()));
    assert_eq!(new(PoolConfig::default()), Ok(()));
}

#[test]
fn min_values_are_made_in_advance_and_kept() {
    let mut pool: Pool<Conn, 1> = Pool::new(config(2, 4, 0)).unwrap();
    assert_eq!(pool.stats().retained, 2);
    let keys = [(); 3].map(|()| pool.acquire().unwrap());
    let stats = pool.stats();
    assert_eq!((stats.hits, stats.misses, stats.lent), (2, 1, 3));
    for key in keys {
        pool.release(key);
    }
    assert_eq!(pool.stats().retained, 2);
    pool.check();
}

#[test]
fn a_value_comes_back_reset_and_warm() {
    let mut pool = pool(1);
    let key = pool.acquire().unwrap();
    pool.get_mut(key)
        .unwrap()
        .input
        .extend_from_slice(&[1; 1000]);
    pool.release(key);
    assert!(pool.stats().retained_bytes >= 1000);

    let key = pool.acquire().unwrap();
    let conn = pool.get(key).unwrap();
    assert!(conn.input.is_empty());
    assert!(conn.input.capacity() >= 1000);
}

#[test]
fn a_value_is_where_it_was_when_the_pool_has_grown() {
    let mut pool = pool(1000);
    let key = pool.acquire().unwrap();
    let before = std::ptr::from_ref(pool.get(key).unwrap());
    while pool.acquire().is_ok() {}
    assert_eq!(std::ptr::from_ref(pool.get(key).unwrap()), before);
}

#[test]
fn after_a_peak_the_memory_of_what_is_not_retained_is_given_back() {
    let mut pool: Pool<Conn, 1> = Pool::new(config(0, 1000, 70)).unwrap();
    let mut keys: Vec<Key> = (0..1000).map(|_| pool.acquire().unwrap()).collect();
    for &key in &keys {
        pool.get_mut(key).unwrap().input.reserve_exact(100);
    }
    let peak = 1000 * size_of::<Conn>();
    // In an order that has nothing to do with their places.
    keys.sort_by_key(|key| key.index() * 7919 % 1000);
    for key in keys {
        pool.release(key);
    }
    pool.check();
    let stats = pool.stats();
    assert_eq!(stats.retained, 70);
    // Two chunks hold the values that are kept, one is kept aside.
    let places = 3 * 64 * size_of::<Option<Conn>>();
    assert_eq!(stats.retained_bytes, places + 70 * 100);
    assert!(stats.retained_bytes < peak);
}

#[test]
fn all_that_are_due_expire_in_one_pass_the_earliest_first() {
    let mut pool = pool(9);
    let now = Instant::now();
    let keys = [(); 5].map(|()| pool.acquire().unwrap());
    pool.move_to(keys[0], 0, now + SECOND);
    pool.move_to(keys[1], 1, now + SECOND / 2);
    pool.move_to(keys[2], 0, now + 2 * SECOND);
    pool.move_to(keys[3], 1, now + 3 * SECOND);
    assert_eq!(pool.next_deadline(), Some(now + SECOND / 2));

    let due: Vec<_> = expire(&mut pool, now + 2 * SECOND);
    let expected = [(1, 1), (0, 0), (2, 0)].map(|(at, list)| Expired {
        key: keys[at],
        list,
    });
    assert_eq!(due, expected);
    assert_eq!(pool.next_deadline(), Some(now + 3 * SECOND));
    assert_eq!(pool.len(), 5);
    assert_eq!(pool.parked_len(), 4);
    assert_eq!(expire(&mut pool, now + 2 * SECOND), []);
}

#[test]
fn a_deadline_is_due_at_its_time_and_not_before() {
    let mut pool = pool(1);
    let deadline = Instant::now() + SECOND;
    let key = pool.acquire().unwrap();
    pool.move_to(key, 1, deadline);
    assert_eq!(pool.expired(deadline - Duration::from_nanos(1)), None);
    assert_eq!(pool.expired(deadline), Some(Expired { key, list: 1 }));
}

#[test]
fn what_is_released_parked_or_moved_inside_the_loop_does_not_expire() {
    let mut pool = pool(5);
    let now = Instant::now();
    let keys = [(); 5].map(|()| pool.acquire().unwrap());
    for key in keys {
        pool.move_to(key, 0, now);
    }
    let mut due = Vec::new();
    while let Some(Expired { key, .. }) = pool.expired(now) {
        if due.is_empty() {
            pool.release(keys[1]);
            pool.park(keys[2]);
            pool.move_to(keys[3], 1, now + SECOND);
            // Takes the slot that was due, which is not its concern.
            let new = pool.acquire().unwrap();
            assert_eq!(new.index(), keys[1].index());
        }
        due.push(key);
        pool.release(key);
        pool.check();
    }
    assert_eq!(due, [keys[0], keys[4]]);
    assert_eq!(
        expire(&mut pool, now + SECOND),
        [Expired {
            key: keys[3],
            list: 1
        }]
    );
}

#[test]
fn a_parked_value_never_expires() {
    let mut pool = pool(2);
    let now = Instant::now();
    let (handled, waiting) = (pool.acquire().unwrap(), pool.acquire().unwrap());
    for key in [handled, waiting] {
        pool.move_to(key, 0, now + SECOND);
    }
    // A handler has it: however long that takes, no timeout touches it.
    pool.park(handled);
    assert_eq!(pool.deadline(handled), None);
    let due = expire(&mut pool, now + 1000 * SECOND);
    assert_eq!(
        due,
        [Expired {
            key: waiting,
            list: 0
        }]
    );
}

#[test]
fn a_timeout_that_is_shortened_lets_new_waits_expire_before_old_ones() {
    let mut pool = pool(4);
    let now = Instant::now();
    let [a, b, c, d] = [(); 4].map(|()| pool.acquire().unwrap());
    pool.move_to(a, 0, now + 60 * SECOND);
    pool.move_to(b, 0, now + 61 * SECOND);
    // From here on 5 s instead of 60 s.
    pool.move_to(c, 0, now + 7 * SECOND);
    pool.move_to(d, 0, now + 8 * SECOND);
    assert_eq!(pool.next_deadline(), Some(now + 7 * SECOND));
    assert_eq!(
        pool.deadline(a),
        Some((0, now + 60 * SECOND)),
        "as it was set"
    );
    let due = expire(&mut pool, now + 60 * SECOND);
    assert_eq!(due.iter().map(|due| due.key).collect::<Vec<_>>(), [c, d, a]);
    pool.check();
}

#[test]
fn a_timeout_that_is_lengthened_lets_old_waits_expire_when_they_would_have() {
    let mut pool = pool(2);
    let now = Instant::now();
    let [a, b] = [(); 2].map(|()| pool.acquire().unwrap());
    pool.move_to(a, 0, now + 5 * SECOND);
    pool.move_to(b, 0, now + 61 * SECOND);
    assert_eq!(
        expire(&mut pool, now + 60 * SECOND),
        [Expired { key: a, list: 0 }]
    );
    assert_eq!(
        expire(&mut pool, now + 61 * SECOND),
        [Expired { key: b, list: 0 }]
    );
}

#[test]
fn the_first_of_a_list_is_the_next_to_expire() {
    let mut pool = pool(2);
    let now = Instant::now();
    assert_eq!(pool.first(0), None);
    let [a, b] = [(); 2].map(|()| pool.acquire().unwrap());
    pool.move_to(a, 0, now + 2 * SECOND);
    pool.move_to(b, 0, now + SECOND);
    assert_eq!(pool.first(0), Some(b));
    assert_eq!((pool.list_len(0), pool.list_len(1)), (2, 0));
}

#[test]
fn the_keys_are_those_in_use() {
    let mut pool = pool(3);
    let [a, b, c] = [(); 3].map(|()| pool.acquire().unwrap());
    pool.move_to(c, 1, Instant::now());
    pool.release(b);
    assert_eq!(pool.keys().collect::<Vec<_>>(), [a, c]);
}

#[test]
fn a_value_whose_reset_panics_stays_in_use() {
    let mut pool = pool(2);
    let key = pool.acquire().unwrap();
    let deadline = Instant::now();
    pool.move_to(key, 1, deadline);
    pool.get_mut(key).unwrap().panics_at_reset = true;
    assert!(catch_unwind(AssertUnwindSafe(|| pool.release(key))).is_err());
    pool.check();
    assert_eq!(pool.deadline(key), Some((1, deadline)));

    pool.get_mut(key).unwrap().panics_at_reset = false;
    assert!(pool.release(key));
    pool.check();
}

#[test]
fn a_value_that_cannot_be_made_takes_no_slot() {
    let make = || -> Conn { panic!("asked for") };
    let mut pool: Pool<Conn, 1> = Pool::new_with(config(0, 1, 1), make).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| pool.acquire())).is_err());
    assert_eq!(pool.len(), 0);
    pool.check();
}

#[test]
fn a_pool_without_lists_parks_all() {
    let mut pool: Pool<Conn, 0> = Pool::new(config(0, 1, 1)).unwrap();
    let key = pool.acquire().unwrap();
    assert_eq!(pool.next_deadline(), None);
    assert_eq!(pool.expired(Instant::now()), None);
    assert!(pool.release(key));
    pool.check();
}

#[test]
#[should_panic = "there is no list 2"]
fn a_list_that_is_not_there_is_refused() {
    let mut pool = pool(1);
    let key = pool.acquire().unwrap();
    pool.move_to(key, 2, Instant::now());
}

#[test]
fn a_pool_goes_to_the_thread_that_uses_it() {
    let mut pool = pool(1);
    let in_use = std::thread::spawn(move || pool.acquire().map(|_| pool.len()));
    assert_eq!(in_use.join().unwrap(), Ok(1));
}
