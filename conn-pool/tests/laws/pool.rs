//! A pool, beside a map from each key in use to what its value ought to be.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;

use pumice_conn_pool::{Error, Expired, Key, Pool, PoolConfig, Reuse};

const LISTS: usize = 3;

#[derive(Clone, Debug)]
enum PoolOp {
    Acquire,
    Write(usize, u8),
    /// The list's own timeout, from now.
    Touch(usize, usize),
    /// Any deadline, in milliseconds from now, also past ones.
    MoveTo(usize, usize, i64),
    Park(usize),
    Release(usize),
    /// Everything that takes a key, with one that was released.
    Stale(usize),
    /// Everything that takes a key, with any number.
    Forged(u64),
    /// A timeout that changes while the program runs, in milliseconds.
    SetTimeout(usize, u64),
    /// Time passes, and what is due is handled; what is done on each of them.
    Expire(u64, Vec<Vec<Reaction>>),
}

#[derive(Clone, Debug)]
enum Reaction {
    Release,
    /// Milliseconds from now, in the future.
    Move(usize, u64),
    ReleaseOther(usize),
    MoveOther(usize, usize, i64),
    ParkOther(usize),
    Acquire,
}

fn reaction() -> impl Strategy<Value = Reaction> {
    let other = any::<usize>();
    prop_oneof![
        4 => Just(Reaction::Release),
        2 => (0..LISTS, 1..50_u64).prop_map(|(list, ms)| Reaction::Move(list, ms)),
        2 => other.prop_map(Reaction::ReleaseOther),
        2 => (other, 0..LISTS, -5..50_i64).prop_map(|(o, list, ms)| Reaction::MoveOther(o, list, ms)),
        1 => other.prop_map(Reaction::ParkOther),
        1 => Just(Reaction::Acquire),
    ]
}

fn pool_op() -> impl Strategy<Value = PoolOp> {
    let nth = any::<usize>();
    prop_oneof![
        6 => Just(PoolOp::Acquire),
        2 => (nth, any::<u8>()).prop_map(|(n, byte)| PoolOp::Write(n, byte)),
        8 => (nth, 0..LISTS).prop_map(|(n, list)| PoolOp::Touch(n, list)),
        4 => (nth, 0..LISTS, -20..80_i64).prop_map(|(n, list, ms)| PoolOp::MoveTo(n, list, ms)),
        1 => nth.prop_map(PoolOp::Park),
        3 => nth.prop_map(PoolOp::Release),
        1 => nth.prop_map(PoolOp::Stale),
        1 => (0..16_u64, 0..8_u64).prop_map(|(index, generation)| PoolOp::Forged(generation << 32 | index)),
        1 => any::<u64>().prop_map(PoolOp::Forged),
        2 => (0..LISTS, 1..100_u64).prop_map(|(list, ms)| PoolOp::SetTimeout(list, ms)),
        3 => (0..60_u64, vec(vec(reaction(), 0..3), 0..6)).prop_map(|(ms, r)| PoolOp::Expire(ms, r)),
    ]
}

/// A value that says how many there are.
#[derive(Debug)]
struct Conn {
    input: Vec<u8>,
    alive: Arc<AtomicUsize>,
}

impl Reuse for Conn {
    fn reset(&mut self) {
        self.input.clear();
    }

    fn heap_bytes(&self) -> usize {
        7
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What ought to be true of a value in use.
#[derive(Default)]
struct Entry {
    input: Vec<u8>,
    /// Deadline, list, and how many moves there were before: the order in which values expire.
    due: Option<(Instant, usize, u64)>,
}

struct Pools {
    pool: Pool<Conn, LISTS>,
    alive: Arc<AtomicUsize>,
    config: PoolConfig,
    now: Instant,
    timeouts: [u64; LISTS],
    entries: HashMap<Key, Entry>,
    /// The keys of `entries`, so that a number picks one.
    keys: Vec<Key>,
    released: Vec<Key>,
    seen: HashSet<u64>,
    moves: u64,
    warm: usize,
    hits: u64,
    misses: u64,
    refused: u64,
}

impl Pools {
    fn new(config: PoolConfig) -> Self {
        let alive = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&alive);
        let make = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Conn {
                input: Vec::new(),
                alive: Arc::clone(&counter),
            }
        };
        let pool = Pool::new_with(config.clone(), make).expect("the strategy makes valid ones");
        Self {
            pool,
            alive,
            now: Instant::now() + Duration::from_secs(1),
            timeouts: [50; LISTS],
            entries: HashMap::new(),
            keys: Vec::new(),
            released: Vec::new(),
            seen: HashSet::new(),
            moves: 0,
            warm: config.min,
            hits: 0,
            misses: 0,
            refused: 0,
            config,
        }
    }

    fn pick(&self, nth: usize) -> Option<Key> {
        self.keys.get(nth.checked_rem(self.keys.len())?).copied()
    }

    fn at(&self, ms: i64) -> Instant {
        let span = Duration::from_millis(ms.unsigned_abs());
        if ms < 0 {
            self.now - span
        } else {
            self.now + span
        }
    }

    fn apply(&mut self, op: PoolOp) {
        match op {
            PoolOp::Acquire => self.acquire(),
            PoolOp::Write(nth, byte) => {
                if let Some(key) = self.pick(nth) {
                    self.pool.get_mut(key).expect("in use").input.push(byte);
                    self.entries.entry(key).or_default().input.push(byte);
                }
            }
            PoolOp::Touch(nth, list) => {
                let deadline = self.now + Duration::from_millis(self.timeouts[list]);
                self.move_to(self.pick(nth), list, deadline);
            }
            PoolOp::MoveTo(nth, list, ms) => self.move_to(self.pick(nth), list, self.at(ms)),
            PoolOp::Park(nth) => self.park(self.pick(nth)),
            PoolOp::Release(nth) => self.release(self.pick(nth)),
            PoolOp::Stale(nth) => {
                if let Some(nth) = nth.checked_rem(self.released.len()) {
                    self.finds_nothing(self.released[nth]);
                }
            }
            PoolOp::Forged(bits) => {
                let key = Key::from_bits(bits);
                if !self.entries.contains_key(&key) {
                    self.finds_nothing(key);
                }
            }
            PoolOp::SetTimeout(list, ms) => self.timeouts[list] = ms,
            PoolOp::Expire(ms, reactions) => self.expire(ms, reactions),
        }
    }

    fn acquire(&mut self) {
        let acquired = self.pool.acquire();
        if self.keys.len() == self.config.max {
            assert_eq!(
                acquired,
                Err(Error::Full {
                    max: self.config.max
                })
            );
            self.refused += 1;
            return;
        }
        let key = acquired.expect("there is room");
        assert!(
            self.seen.insert(key.to_bits()),
            "{key:?} was handed out twice"
        );
        if self.warm > 0 {
            self.warm -= 1;
            self.hits += 1;
        } else {
            self.misses += 1;
        }
        self.entries.insert(key, Entry::default());
        self.keys.push(key);
    }

    fn move_to(&mut self, key: Option<Key>, list: usize, deadline: Instant) {
        let Some(key) = key else { return };
        assert!(self.pool.move_to(key, list, deadline));
        self.moves += 1;
        self.entries.entry(key).or_default().due = Some((deadline, list, self.moves));
    }

    fn park(&mut self, key: Option<Key>) {
        let Some(key) = key else { return };
        assert!(self.pool.park(key));
        self.entries.entry(key).or_default().due = None;
    }

    fn release(&mut self, key: Option<Key>) {
        let Some(key) = key else { return };
        assert!(self.pool.release(key));
        self.entries.remove(&key);
        self.keys.retain(|&other| other != key);
        self.released.push(key);
        self.warm = (self.warm + 1).min(self.config.retained.max(self.config.min));
    }

    fn finds_nothing(&mut self, key: Key) {
        assert!(self.pool.get(key).is_none());
        assert!(self.pool.get_mut(key).is_none());
        assert!(!self.pool.contains(key));
        assert_eq!(self.pool.deadline(key), None);
        assert!(!self.pool.move_to(key, 0, self.now));
        assert!(!self.pool.park(key));
        assert!(!self.pool.release(key));
    }

    /// Lets time pass, takes out all that is due, and does things in between.
    fn expire(&mut self, ms: u64, reactions: Vec<Vec<Reaction>>) {
        self.now += Duration::from_millis(ms);
        let mut reactions = reactions.into_iter();
        loop {
            let entries = self.entries.iter();
            let due = entries
                .filter_map(|(&key, entry)| Some((entry.due?, key)))
                .min();
            let due = due.filter(|&((deadline, ..), _)| deadline <= self.now);
            let expected = due.map(|((_, list, _), key)| Expired { key, list });
            assert_eq!(self.pool.expired(self.now), expected);
            let Some(Expired { key, .. }) = expected else {
                break;
            };
            self.entries.entry(key).or_default().due = None;
            assert!(self.pool.contains(key), "an expired value is parked");
            for reaction in reactions.next().unwrap_or_default() {
                self.react(key, reaction);
            }
        }
    }

    fn react(&mut self, key: Key, reaction: Reaction) {
        let due = self.entries.contains_key(&key).then_some(key);
        match reaction {
            Reaction::Release => self.release(due),
            Reaction::Move(list, ms) => {
                self.move_to(due, list, self.now + Duration::from_millis(ms));
            }
            Reaction::ReleaseOther(nth) => self.release(self.pick(nth)),
            Reaction::MoveOther(nth, list, ms) => {
                self.move_to(self.pick(nth), list, self.at(ms));
            }
            Reaction::ParkOther(nth) => self.park(self.pick(nth)),
            Reaction::Acquire => self.acquire(),
        }
    }

    fn check(&self) {
        let pool = &self.pool;
        pool.check();
        assert_eq!(pool.len(), self.keys.len());
        assert_eq!(pool.is_empty(), self.keys.is_empty());
        assert_eq!(pool.is_full(), self.keys.len() == self.config.max);
        assert_eq!(
            pool.keys().collect::<HashSet<_>>(),
            self.entries.keys().copied().collect()
        );
        let dues = || {
            self.entries
                .iter()
                .filter_map(|(key, entry)| Some((entry.due?, key)))
        };
        assert_eq!(
            pool.next_deadline(),
            dues().min().map(|((deadline, ..), _)| deadline)
        );
        for list in 0..LISTS {
            let on_list = || dues().filter(|((_, l, _), _)| *l == list);
            assert_eq!(pool.list_len(list), on_list().count());
            assert_eq!(pool.first(list), on_list().min().map(|(_, &key)| key));
        }
        assert_eq!(pool.parked_len(), self.keys.len() - dues().count());
        for (&key, entry) in &self.entries {
            assert_eq!(pool.get(key).map(|conn| &conn.input), Some(&entry.input));
            let due = entry.due.map(|(deadline, list, _)| (list, deadline));
            assert_eq!(pool.deadline(key), due);
        }
        assert_eq!(
            self.alive.load(Ordering::Relaxed),
            self.keys.len() + self.warm
        );
        let stats = pool.stats();
        assert_eq!((stats.hits, stats.misses), (self.hits, self.misses));
        assert_eq!((stats.lent, stats.refused), (self.keys.len(), self.refused));
        assert_eq!(stats.retained, self.warm);
        // The places of a chunk come at once, and one chunk is kept.
        let places = if self.misses > 0 || self.config.min > 0 {
            64
        } else {
            0
        };
        let free = (places - self.keys.len()) * size_of::<Option<Conn>>();
        assert_eq!(stats.retained_bytes, free + self.warm * 7);
    }
}

fn pool_config() -> impl Strategy<Value = PoolConfig> {
    (1..10_usize, 0..10_usize, 0..12_usize).prop_map(|(max, min, retained)| PoolConfig {
        min: min.min(max),
        max,
        retained,
    })
}

proptest! {
    #[test]
    fn a_pool_is_a_map_with_deadlines(config in pool_config(), ops in vec(pool_op(), 0..100)) {
        let mut pools = Pools::new(config);
        for op in ops {
            pools.apply(op);
            pools.check();
        }
    }
}
