//! Boxed nodes as in `boxes`, named by keys that go stale: the service that `Pool` gives.

use std::time::Instant;

use crate::Conn;
use crate::boxes::{Circle, Link, unlink};

#[derive(Clone, Copy)]
struct Key {
    index: u32,
    generation: u32,
}

#[repr(C)]
struct Slot {
    link: Link,
    deadline: Instant,
    index: u32,
    generation: u32,
    is_in_use: bool,
    conn: Conn,
}

pub struct Conns {
    lists: [Circle; 2],
    /// The first free one; each points to the next.
    free: *mut Slot,
    slots: Vec<*mut Slot>,
    keys: Vec<Key>,
}

impl Conns {
    fn live(&self, key: Key) -> Option<*mut Slot> {
        let slot = *self.slots.get(key.index as usize)?;
        // SAFETY: slots are valid until the table is dropped.
        let is_live = unsafe { (*slot).generation == key.generation && (*slot).is_in_use };
        is_live.then_some(slot)
    }

    fn release(&mut self, key: Key) {
        let Some(slot) = self.live(key) else { return };
        // SAFETY: slots in use are on a list.
        unsafe {
            unlink(slot.cast());
            (*slot).conn.reset();
            (*slot).generation += 1;
            (*slot).is_in_use = false;
            (*slot).link.next = self.free.cast();
        }
        self.free = slot;
    }

    fn acquire(&mut self, deadline: Instant) -> Key {
        let slot = self.free;
        // SAFETY: a slot was released just before.
        unsafe {
            self.free = (*slot).link.next.cast();
            (*slot).is_in_use = true;
            (*slot).deadline = deadline;
            self.lists[0].push_back(slot.cast());
            Key {
                index: (*slot).index,
                generation: (*slot).generation,
            }
        }
    }
}

impl crate::Conns for Conns {
    fn new(len: usize, start: Instant) -> Self {
        let mut conns = Self {
            lists: [Circle::new(), Circle::new()],
            free: std::ptr::null_mut(),
            slots: Vec::with_capacity(len),
            keys: Vec::with_capacity(len),
        };
        for index in 0..len as u32 {
            let slot = Box::into_raw(Box::new(Slot {
                link: Link::new(),
                deadline: start,
                index,
                generation: 0,
                is_in_use: true,
                conn: Conn::default(),
            }));
            conns.slots.push(slot);
            conns.keys.push(Key {
                index,
                generation: 0,
            });
            // SAFETY: the slot is new.
            unsafe { conns.lists[0].push_back(slot.cast()) };
        }
        conns
    }

    fn touch(&mut self, conn: usize, list: usize, deadline: Instant) {
        let key = self.keys[conn];
        if let Some(slot) = self.live(key) {
            // SAFETY: it is live.
            unsafe { (*slot).conn.state[0] += 1 };
        }
        // Looked up again, as the calls of a pool do.
        if let Some(slot) = self.live(key) {
            // SAFETY: slots in use are on a list.
            unsafe {
                (*slot).deadline = deadline;
                unlink(slot.cast());
                self.lists[list].push_back(slot.cast());
            }
        }
    }

    fn replace(&mut self, conn: usize, deadline: Instant) {
        self.release(self.keys[conn]);
        self.keys[conn] = self.acquire(deadline);
    }

    fn next_deadline(&mut self) -> Option<Instant> {
        let heads = self.lists.iter().filter_map(Circle::first);
        // SAFETY: what is on the lists are slots.
        heads
            .map(|slot| unsafe { (*slot.cast::<Slot>()).deadline })
            .min()
    }
}

impl Drop for Conns {
    fn drop(&mut self) {
        for slot in self.slots.drain(..) {
            // SAFETY: made of a box, and nobody looks at the lists again.
            drop(unsafe { Box::from_raw(slot) });
        }
    }
}
