//! Values in numbered slots, each in exactly one place, with keys that go stale.
//!
//! ```text
//!          acquire                    move_to
//!  free ─────────────▶ parked ───────────────────▶ on lane 0, 1, … by deadline
//!   ▲                    │ ▲     park, expired            │  │ ▲
//!   │      release       │ └──────────────────────────────┘  │ │ move_to
//!   ├────────────────────┘                                   │ └──┐
//!   └──────────────────────────── release ───────────────────┴────┘
//! ```
//!
//! Invariant: every slot is in exactly one place at all times, and knows which one: on the stack of
//! free slots with a warm value, on that of free slots without one, retired, parked, or on one of the
//! lanes. So the places' lengths add up to the number of slots, and a slot is never taken off a list
//! that it isn't on. Only lanes are linked both ways, since only from them a slot leaves in the middle.
//!
//! The slots are one array of 32 bytes each, reserved once for `PoolConfig::max` slots; pages of it that
//! no slot was made in yet cost no memory. The values are in chunks of 64: they never move, and a chunk
//! without values is given back to the allocator. So that chunks do become empty, the values that stay
//! warm are those of the lowest slots, and of all slots with a warm value the low ones are used first.

use std::fmt;
use std::time::Instant;

use crate::Error;
use crate::key::Key;
use crate::lane::{Lane, Place, Slot};
use crate::list::Stack;
use crate::values::Values;

mod config;
#[cfg(test)]
mod tests;

pub use config::{PoolConfig, PoolStats};

/// Slots are numbered below what stands for no node.
const SLOTS_MAX: usize = u32::MAX as usize - 1;

/// Gives a used value back its fresh state, for its next user.
///
/// After [`Reuse::reset`] the value must behave like a new one: nothing of its last user may be seen
/// in it. What it may keep is capacity, such as a cleared vector.
pub trait Reuse {
    /// Makes the value as good as new. Also closes what must not stay open while it waits.
    fn reset(&mut self);

    /// Bytes of heap that a reset value holds on to; counted in [`PoolStats::retained_bytes`].
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// A slot whose deadline has passed, from [`Pool::expired`]. It is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The slot.
    pub key: Key,
    /// The list that it was on: what the deadline was for.
    pub list: usize,
}

/// Values in numbered slots, each either free or in use, and in use either parked or on one of `LISTS`
/// lists with a deadline.
///
/// Made for the connections of one thread of an event loop: a value is acquired at accept, moved along
/// the lists (waiting for a head, for a body, for the next request, …) as its state changes, and
/// released at close. Give each list one constant timeout: then each operation is O(1).
///
/// Acquiring allocates only when no free value waits; moving, parking and expiring never do, and
/// neither does releasing. Nothing blocks and nothing asks for the time.
///
/// An idle slot takes 32 bytes (links, generation, list, deadline) beside its value, an `Option<T>`.
pub struct Pool<T, const LISTS: usize> {
    slots: Vec<Slot>,
    values: Values<T>,
    /// Warm slots with an index below `warm_max`.
    warm_low: Stack,
    /// The other ones.
    warm_high: Stack,
    cold: Stack,
    retired: usize,
    lanes: [Lane; LISTS],
    make: Box<dyn FnMut() -> T + Send>,
    max: usize,
    warm_max: usize,
    generation_max: u32,
    slots_max: usize,
    hits: u64,
    misses: u64,
    refused: u64,
}

impl<T: Reuse, const LISTS: usize> Pool<T, LISTS> {
    /// A pool of default values, `config.min` of which are made now.
    ///
    /// # Errors
    /// When `config` contradicts itself, or there is no memory for the bookkeeping.
    pub fn new(config: PoolConfig) -> Result<Self, Error>
    where
        T: Default + 'static,
    {
        Self::new_with(config, T::default)
    }

    /// A pool of the values that `make` makes, `config.min` of them now.
    ///
    /// # Errors
    /// When `config` contradicts itself, or there is no memory for the bookkeeping.
    pub fn new_with(
        config: PoolConfig,
        make: impl FnMut() -> T + Send + 'static,
    ) -> Result<Self, Error> {
        const { assert!(LISTS <= Place::LANES_MAX) };
        config.check()?;
        let PoolConfig { min, max, retained } = config;
        let mut slots = Vec::new();
        let reserved = slots.try_reserve_exact(max);
        reserved.map_err(|_| Error::OutOfMemory { max })?;
        let mut pool = Self {
            slots,
            values: Values::new(),
            warm_low: Stack::new(),
            warm_high: Stack::new(),
            cold: Stack::new(),
            retired: 0,
            lanes: [const { Lane::new() }; LISTS],
            make: Box::new(make),
            max,
            warm_max: retained.max(min),
            generation_max: Key::GENERATION_MAX,
            slots_max: SLOTS_MAX,
            hits: 0,
            misses: 0,
            refused: 0,
        };
        for _ in 0..min {
            let value = (pool.make)();
            let index = pool.push_slot(value, Place::WARM);
            pool.warm_low.push(&mut *pool.slots, index);
        }
        Ok(pool)
    }

    /// Takes a fresh value into use, parked.
    ///
    /// # Errors
    /// [`Error::Full`] when `PoolConfig::max` values are in use.
    pub fn acquire(&mut self) -> Result<Key, Error> {
        let low = self.warm_low.pop(&*self.slots);
        let Some(index) = low.or_else(|| self.warm_high.pop(&*self.slots)) else {
            return self.acquire_cold();
        };
        self.hits += 1;
        let slot = &mut self.slots[index as usize];
        slot.place = Place::PARKED;
        Ok(Key::new(index, slot.generation))
    }

    /// Makes a value for a slot that has none, or for a new one.
    #[cold]
    #[inline(never)]
    fn acquire_cold(&mut self) -> Result<Key, Error> {
        if self.is_full() {
            self.refused += 1;
            return Err(Error::Full { max: self.max });
        }
        // Made before anything changes, since making may panic.
        let value = (self.make)();
        self.misses += 1;
        let Some(index) = self.cold.pop(&*self.slots) else {
            let index = self.push_slot(value, Place::PARKED);
            return Ok(Key::new(index, Key::GENERATION_FIRST));
        };
        self.values.put(index, value);
        let slot = &mut self.slots[index as usize];
        slot.place = Place::PARKED;
        Ok(Key::new(index, slot.generation))
    }

    /// Resets the value and takes it out of use: `key` is stale from now on. `false` if it was before.
    ///
    /// The value is kept for the next acquire; with `PoolConfig::retained` of them waiting, it is
    /// dropped.
    pub fn release(&mut self, key: Key) -> bool {
        let index = key.index();
        if !self.contains(key) {
            return false;
        }
        // First, since it may panic: then the slot stays in use.
        if let Some(value) = self.values.get_mut(index) {
            value.reset();
        }
        let slot = &mut self.slots[index as usize];
        let is_used_up = slot.generation >= self.generation_max;
        if !is_used_up {
            slot.generation += 1;
        }
        let from = std::mem::replace(&mut slot.place, Place::WARM);
        self.detach(index, from);
        if is_used_up {
            self.slots[index as usize].place = Place::RETIRED;
            self.retired += 1;
            drop(self.values.take(index));
            return true;
        }
        let is_low = (index as usize) < self.warm_max;
        let warm = if is_low {
            &mut self.warm_low
        } else {
            &mut self.warm_high
        };
        warm.push(&mut *self.slots, index);
        if self.warm_len() > self.warm_max {
            self.cool();
        }
        true
    }

    /// Drops the value of a warm slot, not of a low one.
    #[cold]
    #[inline(never)]
    fn cool(&mut self) {
        if let Some(index) = self.warm_high.pop(&*self.slots) {
            self.slots[index as usize].place = Place::COLD;
            self.cold.push(&mut *self.slots, index);
            drop(self.values.take(index));
        }
    }

    /// Counters and sizes. Walks the free values.
    pub fn stats(&self) -> PoolStats {
        let warm = self
            .warm_low
            .iter(&*self.slots)
            .chain(self.warm_high.iter(&*self.slots));
        let heap_bytes: usize = warm
            .filter_map(|index| self.values.get(index))
            .map(T::heap_bytes)
            .sum();
        let free_places = self.values.places() - self.len();
        PoolStats {
            hits: self.hits,
            misses: self.misses,
            refused: self.refused,
            lent: self.len(),
            retained: self.warm_len(),
            retained_bytes: free_places * size_of::<Option<T>>() + heap_bytes,
            retired: self.retired,
        }
    }
}

impl<T, const LISTS: usize> Pool<T, LISTS> {
    /// The value of `key`; `None` if it is stale.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        self.live(key)?;
        self.values.get(key.index())
    }

    /// The value of `key`, to change; `None` if it is stale.
    #[must_use]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.live(key)?;
        self.values.get_mut(key.index())
    }

    /// Whether `key` names a value in use.
    #[must_use]
    pub fn contains(&self, key: Key) -> bool {
        self.live(key).is_some()
    }

    /// How many values are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.warm_len() - self.cold.len() - self.retired
    }

    /// Whether no value is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether [`Pool::acquire`] would find no slot.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let can_grow =
            self.slots.len() - self.retired < self.max && self.slots.len() < self.slots_max;
        self.warm_len() == 0 && self.cold.len() == 0 && !can_grow
    }

    /// How many values can be in use at the same time.
    #[must_use]
    pub fn max(&self) -> usize {
        self.max
    }

    /// Puts a value on `list`, from whichever it is on, to expire at `deadline`. `false` if `key` is
    /// stale.
    ///
    /// O(1) where no deadline on the list is later, which is so with one constant timeout a list. A
    /// `deadline` earlier than others is put between them, behind those that are equal. So when a
    /// timeout is changed while the program runs, nothing is to be done: values that wait keep the
    /// deadline they have, and new ones expire when they ought to, before older ones if need be. The
    /// first deadline after a change to a shorter timeout takes a search along the list, the following
    /// ones go on from where that ended: together O(length of the list) for the change.
    ///
    /// # Panics
    /// When there is no such list: `list` is at least `LISTS`.
    pub fn move_to(&mut self, key: Key, list: usize, deadline: Instant) -> bool {
        assert!(list < LISTS, "there is no list {list}");
        let Some(slot) = self.live_mut(key) else {
            return false;
        };
        let from = std::mem::replace(&mut slot.place, Place::lane(list));
        self.detach(key.index(), from);
        self.lanes[list].attach(&mut self.slots, key.index(), deadline);
        true
    }

    /// Takes a value off its list: it has no deadline until it is moved again. `false` if `key` is
    /// stale.
    pub fn park(&mut self, key: Key) -> bool {
        let Some(slot) = self.live_mut(key) else {
            return false;
        };
        let from = std::mem::replace(&mut slot.place, Place::PARKED);
        self.detach(key.index(), from);
        true
    }

    /// The list that a value is on and its deadline; `None` if it is parked, or `key` is stale.
    #[must_use]
    pub fn deadline(&self, key: Key) -> Option<(usize, Instant)> {
        let slot = self.live(key)?;
        let list = slot.place.number();
        (list < LISTS).then_some((list, slot.deadline?))
    }

    /// Parks a value whose deadline is `now` or earlier, the one with the earliest, and tells which.
    ///
    /// Call it until it answers `None`: then nothing is due. Between two calls the caller may release,
    /// park and move any value, acquire new ones, and keep the keys for later; each value comes out
    /// once for each deadline. Only who moves a value to a deadline that isn't after `now` meets it
    /// again in the same loop.
    pub fn expired(&mut self, now: Instant) -> Option<Expired> {
        let (deadline, list) = self.first_deadline()?;
        if deadline > now {
            return None;
        }
        let key = self.first(list)?;
        self.park(key);
        Some(Expired { key, list })
    }

    /// When the next value expires: until then the loop may sleep. O(`LISTS`).
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let (deadline, _) = self.first_deadline()?;
        Some(deadline)
    }

    /// The value that is the next to expire on `list`, such as to make room at overload.
    ///
    /// # Panics
    /// When there is no such list.
    #[must_use]
    pub fn first(&self, list: usize) -> Option<Key> {
        let index = self.lanes[list].list.front()?;
        Some(Key::new(index, self.slots[index as usize].generation))
    }

    /// The keys of all values in use, by index.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        (0..).zip(&self.slots).filter_map(|(index, slot)| {
            slot.place
                .is_in_use()
                .then_some(Key::new(index, slot.generation))
        })
    }

    /// How many values are on `list`.
    ///
    /// # Panics
    /// When there is no such list.
    #[must_use]
    pub fn list_len(&self, list: usize) -> usize {
        self.lanes[list].list.len()
    }

    /// How many values are in use without a deadline.
    #[must_use]
    pub fn parked_len(&self) -> usize {
        let lanes = self.lanes.iter().map(|lane| lane.list.len());
        self.len() - lanes.sum::<usize>()
    }

    /// Asserts the invariants, in O(slots); for tests.
    ///
    /// # Panics
    /// When one doesn't hold.
    pub fn check(&self) {
        let count = |place| self.slots.iter().filter(|slot| slot.place == place).count();
        assert_eq!(count(Place::WARM), self.warm_len());
        assert_eq!(count(Place::COLD), self.cold.len());
        assert_eq!(count(Place::RETIRED), self.retired);
        assert_eq!(count(Place::PARKED), self.parked_len());
        let is_at = |index: u32, place| self.slots[index as usize].place == place;
        let is_low = |index| (index as usize) < self.warm_max;
        let mut low = self.warm_low.iter(&*self.slots);
        assert!(low.all(|index| is_at(index, Place::WARM) && is_low(index)));
        let mut high = self.warm_high.iter(&*self.slots);
        assert!(high.all(|index| is_at(index, Place::WARM) && !is_low(index)));
        assert!(
            self.cold
                .iter(&*self.slots)
                .all(|index| is_at(index, Place::COLD))
        );
        for (list, lane) in self.lanes.iter().enumerate() {
            lane.check(&self.slots);
            let mut nodes = lane.list.iter(&*self.slots);
            assert!(nodes.all(|index| is_at(index, Place::lane(list))));
        }
        let free = self.warm_len() + self.cold.len();
        assert!(self.warm_len() <= self.warm_max);
        self.values.check();
        assert!(self.len() + free <= self.max);
        for (index, slot) in (0..).zip(&self.slots) {
            let is_filled = slot.place.is_in_use() || slot.place == Place::WARM;
            assert_eq!(
                self.values.get(index).is_some(),
                is_filled,
                "{:?}",
                slot.place
            );
            assert!(slot.generation >= Key::GENERATION_FIRST);
            assert!(slot.generation <= self.generation_max);
        }
    }

    /// The slot of a key that isn't stale.
    fn live(&self, key: Key) -> Option<&Slot> {
        let slot = self.slots.get(key.index() as usize)?;
        slot.is_live(key).then_some(slot)
    }

    fn live_mut(&mut self, key: Key) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(key.index() as usize)?;
        slot.is_live(key).then_some(slot)
    }

    fn warm_len(&self) -> usize {
        self.warm_low.len() + self.warm_high.len()
    }

    fn first_deadline(&self) -> Option<(Instant, usize)> {
        let heads = self.lanes.iter().enumerate();
        heads
            .filter_map(|(list, lane)| Some((lane.first_deadline(&self.slots)?, list)))
            .min()
    }

    /// Takes a slot that is in use away from where it is. It has to go elsewhere at once.
    #[inline]
    fn detach(&mut self, index: u32, from: Place) {
        if let Some(lane) = self.lanes.get_mut(from.number()) {
            lane.detach(&mut self.slots, index);
        }
    }

    /// Adds a slot, on no list yet.
    fn push_slot(&mut self, value: T, place: Place) -> u32 {
        let index = u32::try_from(self.slots.len()).expect("`SLOTS_MAX` is kept");
        self.values.put(index, value);
        self.slots.push(Slot::new(place));
        index
    }
}

impl<T, const LISTS: usize> fmt::Debug for Pool<T, LISTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("len", &self.len())
            .field("max", &self.max)
            .field("next_deadline", &self.next_deadline())
            .finish_non_exhaustive()
    }
}
