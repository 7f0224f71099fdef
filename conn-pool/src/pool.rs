//! Values in numbered slots, each on exactly one list, with keys that go stale.
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
//! Invariant: every slot is on exactly one list at all times: free with a value, free without one,
//! retired, parked, or one of the lanes; and it knows which one. So the lists' lengths add up to the
//! number of slots, and a slot is never taken off a list that it isn't on.
//!
//! Each value is in a box of its own: it never moves while the pool grows, growing by one slot costs
//! one allocation instead of copying all values, and a value that is given back returns its memory to
//! the allocator at once, whichever slots are still in use. The slots' bookkeeping is one array,
//! reserved once for `PoolConfig::max` slots; pages of it that no slot was made in yet cost no memory.

use std::fmt;
use std::time::Instant;

use crate::Error;
use crate::key::Key;
use crate::lane::{Lane, Place, Slot, Slots};
use crate::list::List;

#[cfg(test)]
mod tests;

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

/// How many values a [`Pool`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Values made in advance, by [`Pool::new`]; no more than `max`. Default: 0.
    pub min: usize,
    /// Values in use at the same time, at most: 1 to [`PoolConfig::MAX_LIMIT`]. Default: 1 024.
    ///
    /// Address space for the bookkeeping, 40 bytes each, is reserved at once.
    pub max: usize,
    /// Free values kept, with their warm buffers, for the next acquire. Default: 256.
    ///
    /// What is released beyond them is dropped. At least `min` are kept, whatever stands here.
    pub retained: usize,
}

impl PoolConfig {
    /// The largest `max`: 2³¹. Half of all indices, so that retired slots can be replaced.
    pub const MAX_LIMIT: usize = 1 << 31;
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

/// A slot whose deadline has passed, from [`Pool::expired`]. It is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The slot.
    pub key: Key,
    /// The list that it was on: what the deadline was for.
    pub list: usize,
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
    /// Bytes of the values that wait warm, what [`Reuse::heap_bytes`] says included.
    pub retained_bytes: usize,
    /// Slots that have used up their generations (see [`Key`]).
    pub retired: usize,
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
/// An idle slot takes 40 bytes (links, generation, list, deadline, pointer) and its value's box: the
/// value's size and what the allocator adds, 8 bytes with glibc.
pub struct Pool<T, const LISTS: usize> {
    slots: Slots,
    values: Vec<Option<Box<T>>>,
    warm: List,
    cold: List,
    retired: List,
    parked: List,
    lanes: [Lane; LISTS],
    make: Box<dyn FnMut() -> T + Send>,
    max: usize,
    warm_max: usize,
    generation_max: u32,
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
        const { assert!(LISTS <= u16::MAX as usize) };
        let PoolConfig { min, max, retained } = config;
        check_config(min, max)?;
        let mut slots = Vec::new();
        let mut values = Vec::new();
        let out_of_memory = |_| Error::OutOfMemory { max };
        slots.try_reserve_exact(max).map_err(out_of_memory)?;
        values.try_reserve_exact(max).map_err(out_of_memory)?;
        let mut pool = Self {
            slots: Slots(slots),
            values,
            warm: List::new(),
            cold: List::new(),
            retired: List::new(),
            parked: List::new(),
            lanes: [const { Lane::new() }; LISTS],
            make: Box::new(make),
            max,
            warm_max: retained.max(min),
            generation_max: Key::GENERATION_MAX,
            hits: 0,
            misses: 0,
            refused: 0,
        };
        for _ in 0..min {
            let value = (pool.make)();
            let index = pool.push_slot();
            pool.values[index as usize] = Some(Box::new(value));
            pool.link(index, Place::Warm);
        }
        Ok(pool)
    }

    /// Takes a fresh value into use, parked.
    ///
    /// # Errors
    /// [`Error::Full`] when `PoolConfig::max` values are in use.
    pub fn acquire(&mut self) -> Result<Key, Error> {
        let index = if let Some(index) = self.warm.front() {
            self.hits += 1;
            self.unlink(index);
            index
        } else {
            let cold = self.cold.front();
            if cold.is_none() && self.is_full() {
                self.refused += 1;
                return Err(Error::Full { max: self.max });
            }
            // Made before anything changes, since making may panic.
            let value = Box::new((self.make)());
            self.misses += 1;
            let index = match cold {
                Some(index) => {
                    self.unlink(index);
                    index
                }
                None => self.push_slot(),
            };
            self.values[index as usize] = Some(value);
            index
        };
        self.link(index, Place::Parked);
        Ok(Key::new(index, self.slots.slot(index).generation))
    }

    /// Resets the value and takes it out of use: `key` is stale from now on. `false` if it was before.
    pub fn release(&mut self, key: Key) -> bool {
        let Some(index) = self.live(key) else {
            return false;
        };
        // First, since it may panic: then the slot stays in use.
        if let Some(value) = &mut self.values[index as usize] {
            value.reset();
        }
        self.unlink(index);
        let slot = self.slots.slot_mut(index);
        if slot.generation >= self.generation_max {
            self.link(index, Place::Retired);
            self.values[index as usize] = None;
            return true;
        }
        slot.generation += 1;
        self.link(index, Place::Warm);
        if self.warm.len() > self.warm_max
            && let Some(coldest) = self.warm.back()
        {
            self.unlink(coldest);
            self.link(coldest, Place::Cold);
            self.values[coldest as usize] = None;
        }
        true
    }

    /// Counters and sizes. Walks the free values.
    pub fn stats(&self) -> PoolStats {
        let heap = |index| {
            self.values[index as usize]
                .as_ref()
                .map_or(0, |value| value.heap_bytes())
        };
        let heap_bytes: usize = self.warm.iter(&self.slots).map(heap).sum();
        PoolStats {
            hits: self.hits,
            misses: self.misses,
            refused: self.refused,
            lent: self.len(),
            retained: self.warm.len(),
            retained_bytes: self.warm.len() * size_of::<T>() + heap_bytes,
            retired: self.retired.len(),
        }
    }
}

impl<T, const LISTS: usize> Pool<T, LISTS> {
    /// The value of `key`; `None` if it is stale.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        let index = self.live(key)?;
        self.values[index as usize].as_deref()
    }

    /// The value of `key`, to change; `None` if it is stale.
    #[must_use]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let index = self.live(key)?;
        self.values[index as usize].as_deref_mut()
    }

    /// Whether `key` names a value in use.
    #[must_use]
    pub fn contains(&self, key: Key) -> bool {
        self.live(key).is_some()
    }

    /// How many values are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.0.len() - self.warm.len() - self.cold.len() - self.retired.len()
    }

    /// Whether no value is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether [`Pool::acquire`] would find no slot.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let can_grow = self.slots.0.len() - self.retired.len() < self.max
            && self.slots.0.len() < Slots::LEN_MAX;
        self.warm.is_empty() && self.cold.is_empty() && !can_grow
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
        let Some(index) = self.live(key) else {
            return false;
        };
        self.unlink(index);
        #[expect(clippy::cast_possible_truncation, reason = "`new` checks LISTS")]
        let place = Place::Timed(list as u16);
        self.slots.slot_mut(index).place = place;
        self.lanes[list].insert(&mut self.slots, index, deadline);
        true
    }

    /// Takes a value off its list: it has no deadline until it is moved again. `false` if `key` is
    /// stale.
    pub fn park(&mut self, key: Key) -> bool {
        let Some(index) = self.live(key) else {
            return false;
        };
        self.unlink(index);
        self.link(index, Place::Parked);
        true
    }

    /// The list that a value is on and its deadline; `None` if it is parked, or `key` is stale.
    #[must_use]
    pub fn deadline(&self, key: Key) -> Option<(usize, Instant)> {
        let slot = self.slots.slot(self.live(key)?);
        match slot.place {
            Place::Timed(list) => Some((list.into(), slot.deadline?)),
            _ => None,
        }
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
        let index = self.lanes[list].list.front()?;
        self.unlink(index);
        self.link(index, Place::Parked);
        let key = Key::new(index, self.slots.slot(index).generation);
        Some(Expired { key, list })
    }

    /// When the next value expires: until then the loop may sleep. O(`LISTS`).
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.first_deadline().map(|(deadline, _)| deadline)
    }

    /// The value that is the next to expire on `list`, such as to make room at overload.
    ///
    /// # Panics
    /// When there is no such list.
    #[must_use]
    pub fn first(&self, list: usize) -> Option<Key> {
        let index = self.lanes[list].list.front()?;
        Some(Key::new(index, self.slots.slot(index).generation))
    }

    /// The keys of all values in use, by index.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        (0..).zip(&self.slots.0).filter_map(|(index, slot)| {
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
        self.parked.len()
    }

    /// Asserts the invariants, in O(slots); for tests.
    ///
    /// # Panics
    /// When one doesn't hold.
    pub fn check(&self) {
        self.check_list(&self.warm, Place::Warm);
        self.check_list(&self.cold, Place::Cold);
        self.check_list(&self.retired, Place::Retired);
        self.check_list(&self.parked, Place::Parked);
        for (list, lane) in (0..).zip(&self.lanes) {
            lane.check(&self.slots);
            self.check_list(&lane.list, Place::Timed(list));
        }
        let lanes: usize = self.lanes.iter().map(|lane| lane.list.len()).sum();
        let free = self.warm.len() + self.cold.len();
        let sum = free + self.retired.len() + self.parked.len() + lanes;
        assert_eq!(sum, self.slots.0.len(), "a slot is not on exactly one list");
        assert_eq!(self.values.len(), self.slots.0.len());
        assert!(self.warm.len() <= self.warm_max);
        assert!(self.len() + free <= self.max);
        for (slot, value) in self.slots.0.iter().zip(&self.values) {
            let is_filled = slot.place.is_in_use() || slot.place == Place::Warm;
            assert_eq!(value.is_some(), is_filled, "{:?}", slot.place);
            assert!(slot.generation >= Key::GENERATION_FIRST);
            assert!(slot.generation <= self.generation_max);
        }
    }

    fn check_list(&self, list: &List, place: Place) {
        list.check(&self.slots);
        for index in list.iter(&self.slots) {
            let slot = self.slots.slot(index);
            assert_eq!(slot.place, place, "slot {index} is on another list");
            let is_timed = matches!(place, Place::Timed(_));
            assert_eq!(slot.deadline.is_some(), is_timed, "slot {index}");
        }
    }

    /// The slot of a key that isn't stale.
    fn live(&self, key: Key) -> Option<u32> {
        let slot = self.slots.0.get(key.index() as usize)?;
        // A free slot's generation was not handed out yet, but `Key::from_bits` can make any key.
        let is_live = slot.generation == key.generation() && slot.place.is_in_use();
        is_live.then_some(key.index())
    }

    fn first_deadline(&self) -> Option<(Instant, usize)> {
        let heads = self.lanes.iter().enumerate();
        heads
            .filter_map(|(list, lane)| Some((lane.first_deadline(&self.slots)?, list)))
            .min()
    }

    /// Takes a slot off the list it is on.
    fn unlink(&mut self, index: u32) {
        let slots = &mut self.slots;
        match slots.slot(index).place {
            Place::Warm => self.warm.remove(slots, index),
            Place::Cold => self.cold.remove(slots, index),
            Place::Retired => self.retired.remove(slots, index),
            Place::Parked => self.parked.remove(slots, index),
            Place::Timed(list) => self.lanes[usize::from(list)].remove(slots, index),
        }
    }

    /// Puts a slot that is on no list on one without deadlines, in front: the free slot that is used
    /// next is the one whose value was used last, since it is in the caches.
    fn link(&mut self, index: u32, place: Place) {
        let slots = &mut self.slots;
        slots.slot_mut(index).place = place;
        let list = match place {
            Place::Warm => &mut self.warm,
            Place::Cold => &mut self.cold,
            Place::Retired => &mut self.retired,
            Place::Parked | Place::Timed(_) => &mut self.parked,
        };
        list.push_front(slots, index);
    }

    /// Adds a slot, on no list yet and without a value.
    fn push_slot(&mut self) -> u32 {
        let index = u32::try_from(self.slots.0.len()).expect("`Slots::LEN_MAX` is kept");
        self.slots.0.push(Slot::new());
        self.values.push(None);
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

fn check_config(min: usize, max: usize) -> Result<(), Error> {
    let limit = PoolConfig::MAX_LIMIT;
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
