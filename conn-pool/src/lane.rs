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

/// Which list a slot is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Free, with a value that waits for its next use.
    Warm,
    /// Free, and its value was given back.
    Cold,
    /// Never used again: its generations are used up.
    Retired,
    /// In use, without a deadline.
    Parked,
    /// In use, with a deadline, on the lane of this number.
    Timed(u16),
}

impl Place {
    pub(crate) fn is_in_use(self) -> bool {
        matches!(self, Self::Parked | Self::Timed(_))
    }
}

/// What the pool knows of a slot, apart from its value: so that moving it along the lists reads half a
/// cache line for each of three slots and nothing of the values.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) links: Links,
    pub(crate) generation: u32,
    pub(crate) place: Place,
    /// `Some` on a lane only.
    pub(crate) deadline: Option<Instant>,
}

const _: () = assert!(size_of::<Slot>() <= 32);

impl Slot {
    /// A slot that is on no list yet.
    pub(crate) fn new() -> Self {
        Self {
            links: Links::default(),
            generation: Key::GENERATION_FIRST,
            place: Place::Cold,
            deadline: None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Slots(pub(crate) Vec<Slot>);

impl Slots {
    /// Numbers of slots end below those that stand for no node.
    pub(crate) const LEN_MAX: usize = u32::MAX as usize - 1;

    pub(crate) fn slot(&self, index: u32) -> &Slot {
        &self.0[index as usize]
    }

    pub(crate) fn slot_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.0[index as usize]
    }

    fn is_after(&self, index: u32, deadline: Instant) -> bool {
        self.slot(index).deadline > Some(deadline)
    }
}

impl Nodes for Slots {
    fn links(&self, node: u32) -> &Links {
        &self.slot(node).links
    }

    fn links_mut(&mut self, node: u32) -> &mut Links {
        &mut self.slot_mut(node).links
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
    pub(crate) fn first_deadline(&self, slots: &Slots) -> Option<Instant> {
        slots.slot(self.list.front()?).deadline
    }

    /// Puts `index`, which is on no list, where its `deadline` belongs.
    pub(crate) fn insert(&mut self, slots: &mut Slots, index: u32, deadline: Instant) {
        slots.slot_mut(index).deadline = Some(deadline);
        match self.list.back() {
            Some(last) if slots.is_after(last, deadline) => {
                let next = self.first_after(slots, last, deadline);
                self.list.insert_before(slots, next, index);
                self.finger = index;
            }
            _ => self.list.push_back(slots, index),
        }
    }

    /// Takes `index` off this lane, which it is on.
    pub(crate) fn remove(&mut self, slots: &mut Slots, index: u32) {
        if self.finger == index {
            self.finger = slots.slot(index).links.prev().unwrap_or(NIL);
        }
        self.list.remove(slots, index);
        slots.slot_mut(index).deadline = None;
    }

    /// Asserts the invariant; for tests.
    pub(crate) fn check(&self, slots: &Slots) {
        self.list.check(slots);
        let deadlines = self
            .list
            .iter(slots)
            .map(|index| slots.slot(index).deadline);
        assert!(
            deadlines.is_sorted(),
            "a deadline stands behind a later one"
        );
        let is_here = self.list.iter(slots).any(|index| index == self.finger);
        assert!(
            is_here || self.finger == NIL,
            "the finger is not on its lane"
        );
    }

    /// The first slot whose deadline is later than `deadline`, as that of `last`, the last one, is.
    ///
    /// Takes twice as many steps as the slot is away from the end or from the finger, whichever is
    /// nearer.
    fn first_after(&self, slots: &Slots, last: u32, deadline: Instant) -> u32 {
        let mut later = last;
        let mut finger = self.finger;
        loop {
            // From the end: `later` is later, so it is the first that is unless the one before it is too.
            match slots.slot(later).links.prev() {
                Some(prev) if slots.is_after(prev, deadline) => later = prev,
                _ => return later,
            }
            // From the finger: towards the front while it is later, else towards the end.
            finger = if finger != NIL && slots.is_after(finger, deadline) {
                slots.slot(finger).links.prev().unwrap_or(NIL)
            } else {
                let next = match finger {
                    NIL => self.list.front(),
                    finger => slots.slot(finger).links.next(),
                };
                match next {
                    Some(next) if !slots.is_after(next, deadline) => next,
                    Some(next) => return next,
                    // Not reached: `last` is later, so the way ends before it.
                    None => return later,
                }
            };
        }
    }
}
