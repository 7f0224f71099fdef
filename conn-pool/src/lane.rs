//! One list of slots in the order of their deadlines, and the slots.
//!
//! Invariant: on a lane, no deadline is later than the one behind it; of equal ones, the first to come
//! stands first. The finger is a slot on the lane, or none.
//!
//! With one constant timeout a lane, each deadline is the latest yet and goes to the end. A deadline
//! that is earlier than the last one (the timeout was shortened while the program runs) has to be put
//! between others. It is looked for from two sides at once: from the end, for deadlines that are just
//! a little early, and from the finger, the place behind which the last such deadline was put. After a
//! timeout has become shorter, the next deadline in order belongs right there or a little behind it, so
//! that the whole change costs one way along the lane instead of one for each slot.

use std::time::Instant;

use crate::key::Key;
use crate::list::{Links, List, NIL, Nodes};

/// Where a slot is. A number of a lane, or one of the constants: so that one comparison with the number
/// of lanes tells both whether it is on a lane and whether that lane is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    /// Lanes are numbered below this.
    pub(crate) const LANES_MAX: usize = 1 << 16;
    /// In use, without a deadline: the last place that is in use.
    pub(crate) const PARKED: Self = Self(1 << 16);
    /// Free, with a value that waits for its next use.
    pub(crate) const WARM: Self = Self(1 << 17);
    /// Free, and its value was given back.
    pub(crate) const COLD: Self = Self(2 << 17);
    /// Never used again: its generations are used up.
    pub(crate) const RETIRED: Self = Self(3 << 17);

    /// On the lane of this number.
    pub(crate) fn lane(number: usize) -> Self {
        debug_assert!(number < Self::LANES_MAX);
        #[expect(clippy::cast_possible_truncation, reason = "asserted")]
        Self(number as u32)
    }

    /// The number of the lane; no lane's if it is on none.
    pub(crate) fn number(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn is_in_use(self) -> bool {
        self.0 <= Self::PARKED.0
    }
}

/// What a pool knows of a value. The value itself is elsewhere, so that moving a slot along the lists
/// touches half a cache line for each of three slots, however large the values are. Aligned, so that it
/// is never two halves.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct Slot {
    pub(crate) links: Links,
    pub(crate) generation: u32,
    pub(crate) place: Place,
    /// `Some` once the slot has been on a lane; means something as long as it is.
    pub(crate) deadline: Option<Instant>,
}

const _: () = assert!(size_of::<Slot>() == 32);

impl Slot {
    /// A slot that is on no list yet.
    pub(crate) fn new(place: Place) -> Self {
        Self {
            links: Links::default(),
            generation: Key::GENERATION_FIRST,
            place,
            deadline: None,
        }
    }

    /// Whether `key` is the key of this slot's present use.
    #[inline]
    pub(crate) fn is_live(&self, key: Key) -> bool {
        // A free slot's generation was not handed out yet, but `Key::from_bits` can make any key.
        self.generation == key.generation() && self.place.is_in_use()
    }

    fn is_after(&self, deadline: Instant) -> bool {
        self.deadline.is_some_and(|mine| mine > deadline)
    }
}

impl Nodes for [Slot] {
    fn links(&self, node: u32) -> &Links {
        &self[node as usize].links
    }

    fn links_mut(&mut self, node: u32) -> &mut Links {
        &mut self[node as usize].links
    }

    fn neighbour_mut(&mut self, node: u32) -> Option<&mut Links> {
        self.get_mut(node as usize).map(|slot| &mut slot.links)
    }
}

/// The slots with one kind of deadline.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) list: List,
    /// The slot that was last put before another one, or one that stood before it; `NIL` is the front.
    finger: u32,
}

impl Lane {
    pub(crate) const fn new() -> Self {
        Self {
            list: List::new(),
            finger: NIL,
        }
    }

    /// The first slot's deadline, which is the earliest.
    pub(crate) fn first_deadline(&self, slots: &[Slot]) -> Option<Instant> {
        slots[self.list.front()? as usize].deadline
    }

    /// Puts `index`, which is on no list, where its `deadline` belongs.
    #[inline]
    pub(crate) fn attach(&mut self, slots: &mut [Slot], index: u32, deadline: Instant) {
        slots[index as usize].deadline = Some(deadline);
        let last = self.list.tail();
        // None for `NIL`, as there are fewer slots.
        let latest = slots.get(last as usize);
        if latest.is_some_and(|latest| latest.is_after(deadline)) {
            self.attach_early(slots, last, index, deadline);
        } else {
            self.list.attach_back(slots, index);
        }
    }

    /// Takes `index` off this lane, which it is on, for who attaches it elsewhere at once.
    #[inline]
    pub(crate) fn detach(&mut self, slots: &mut [Slot], index: u32) {
        if self.finger == index {
            self.finger = slots.links(index).prev().unwrap_or(NIL);
        }
        self.list.detach(slots, index);
    }

    #[cold]
    #[inline(never)]
    fn attach_early(&mut self, slots: &mut [Slot], last: u32, index: u32, deadline: Instant) {
        let is_after = |index: u32| slots[index as usize].is_after(deadline);
        let next = self.first_after(slots, last, is_after);
        self.list.attach_before(slots, next, index);
        self.finger = index;
    }

    /// Asserts the invariant; for tests.
    pub(crate) fn check(&self, slots: &[Slot]) {
        self.list.check(slots);
        let deadlines = self
            .list
            .iter(slots)
            .map(|index| slots[index as usize].deadline);
        assert!(deadlines.is_sorted(), "a deadline is behind a later one");
        let is_here = self.list.iter(slots).any(|index| index == self.finger);
        assert!(is_here || self.finger == NIL, "the finger is elsewhere");
    }

    /// The first slot that `is_after` is true of, as it is of `last`, the last one, and of all between.
    ///
    /// Takes twice as many steps as the slot is away from the end or from the finger, whichever is
    /// nearer.
    fn first_after(&self, slots: &[Slot], last: u32, is_after: impl Fn(u32) -> bool) -> u32 {
        let mut later = last;
        let mut finger = self.finger;
        loop {
            // From the end: `later` is the first one that is later, unless the one before it is too.
            match slots.links(later).prev() {
                Some(prev) if is_after(prev) => later = prev,
                _ => return later,
            }
            // From the finger: towards the front while it is later, else towards the end.
            finger = if finger != NIL && is_after(finger) {
                slots.links(finger).prev().unwrap_or(NIL)
            } else {
                let next = match finger {
                    NIL => self.list.front(),
                    finger => slots.links(finger).next(),
                };
                match next {
                    Some(next) if !is_after(next) => next,
                    Some(next) => return next,
                    // Not reached: `last` is later, so the way ends before it.
                    None => return later,
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A lane of `len` slots, a millisecond apart, and as many that are on none.
    fn lane(len: u32, start: Instant) -> (Lane, Vec<Slot>) {
        let mut lane = Lane::new();
        let mut slots = Vec::new();
        slots.resize_with(2 * len as usize, || Slot::new(Place::PARKED));
        for index in 0..len {
            lane.attach(
                &mut slots,
                index,
                start + Duration::from_millis(index.into()),
            );
        }
        (lane, slots)
    }

    /// Puts a slot on the lane; how many slots were looked at for its place.
    fn attach(lane: &mut Lane, slots: &mut [Slot], index: u32, deadline: Instant) -> usize {
        let looks = Cell::new(0);
        let is_after = |index: u32| {
            looks.set(looks.get() + 1);
            slots[index as usize].is_after(deadline)
        };
        let last = lane.list.tail();
        if is_after(last) {
            lane.first_after(slots, last, is_after);
        }
        lane.attach(slots, index, deadline);
        looks.get()
    }

    #[test]
    fn a_deadline_before_the_finger_is_put_in_order_too() {
        let now = Instant::now();
        let (mut lane, mut slots) = lane(100, now);
        for (index, micros) in [(100, 50_500), (101, 10_500), (102, 70_500), (103, 0)] {
            lane.attach(&mut slots, index, now + Duration::from_micros(micros));
            lane.check(&slots);
        }
        let first: Vec<u32> = lane.list.iter(slots.as_slice()).take(3).collect();
        assert_eq!(first, [0, 103, 1], "behind the one of the same time");
    }

    #[test]
    fn a_timeout_that_becomes_shorter_costs_one_way_along_the_lane() {
        let now = Instant::now();
        let len = 1000;
        // From now on 200 ms, where it was 1 s: all that wait expire within a second.
        let (mut lane, mut slots) = lane(len, now);
        let mut looks = 0;
        for step in 0..len {
            let deadline = now + SECOND / 5 + Duration::from_micros(500) * step;
            looks += attach(&mut lane, &mut slots, len + step, deadline);
        }
        lane.check(&slots);
        assert!(looks < 10 * len as usize, "{looks} slots were looked at");
    }

    #[test]
    fn a_shorter_timeout_of_one_busy_slot_costs_one_way_along_the_lane() {
        let now = Instant::now();
        let len = 1000;
        let (mut lane, mut slots) = lane(len, now + SECOND);
        let mut looks = 0;
        for step in 0..len {
            let deadline = now + SECOND + SECOND / 2 + Duration::from_micros(10) * step;
            looks += attach(&mut lane, &mut slots, len, deadline);
            lane.detach(&mut slots, len);
        }
        lane.check(&slots);
        assert!(looks < 10 * len as usize, "{looks} slots were looked at");
    }

    #[test]
    fn a_deadline_that_is_a_little_early_costs_a_few_looks() {
        let now = Instant::now();
        let len = 1000;
        let (mut lane, mut slots) = lane(len, now);
        for step in 0..len {
            let deadline = now + SECOND - Duration::from_micros(2500);
            assert!(
                attach(&mut lane, &mut slots, len, deadline) < 12,
                "step {step}"
            );
            lane.detach(&mut slots, len);
        }
        lane.check(&slots);
    }
}
