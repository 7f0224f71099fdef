//! Boxed nodes with pointers to their neighbours, written for the benchmark: what C would do.

use std::ptr;
use std::time::Instant;

use crate::Conn;

/// The neighbours of a node, which is at the same address.
#[repr(C)]
pub(crate) struct Link {
    prev: *mut Self,
    pub(crate) next: *mut Self,
}

impl Link {
    pub(crate) const fn new() -> Self {
        Self {
            prev: ptr::null_mut(),
            next: ptr::null_mut(),
        }
    }
}

/// A circle through a node that is none, so that there are no ends to ask for.
pub(crate) struct Circle(Box<Link>);

impl Circle {
    pub(crate) fn new() -> Self {
        let mut circle = Box::new(Link::new());
        circle.prev = &raw mut *circle;
        circle.next = &raw mut *circle;
        Self(circle)
    }

    /// # Safety
    /// `link` is in memory that outlives the circle, and on no circle.
    pub(crate) unsafe fn push_back(&mut self, link: *mut Link) {
        let end = &raw mut *self.0;
        // SAFETY: all links on a circle are valid.
        unsafe {
            let last = (*end).prev;
            (*link).prev = last;
            (*link).next = end;
            (*last).next = link;
            (*end).prev = link;
        }
    }

    pub(crate) fn first(&self) -> Option<*mut Link> {
        let end = &raw const *self.0;
        (!ptr::eq(self.0.next, end)).then_some(self.0.next)
    }
}

/// # Safety
/// `link` is on a circle.
pub(crate) unsafe fn unlink(link: *mut Link) {
    // SAFETY: all links on a circle are valid.
    unsafe {
        let Link { prev, next } = *link;
        (*prev).next = next;
        (*next).prev = prev;
    }
}

#[repr(C)]
struct Node {
    link: Link,
    number: usize,
    value: u64,
}

pub struct Order {
    nodes: Vec<*mut Node>,
    list: Circle,
}

impl crate::Order for Order {
    fn new(len: usize) -> Self {
        let node = |number| {
            Box::into_raw(Box::new(Node {
                link: Link::new(),
                number,
                value: 0,
            }))
        };
        let nodes: Vec<_> = (0..len).map(node).collect();
        let mut list = Circle::new();
        for &node in &nodes {
            // SAFETY: the node is new.
            unsafe { list.push_back(node.cast()) };
        }
        Self { nodes, list }
    }

    fn move_to_back(&mut self, node: usize) {
        let node = self.nodes[node];
        // SAFETY: all nodes are on this list.
        unsafe {
            (*node).value += 1;
            unlink(node.cast());
            self.list.push_back(node.cast());
        }
    }

    fn first(&mut self) -> usize {
        // SAFETY: what is on the list are nodes.
        unsafe { (*self.list.first().unwrap().cast::<Node>()).number }
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        for node in self.nodes.drain(..) {
            // SAFETY: made of a box, and nobody looks at the list again.
            drop(unsafe { Box::from_raw(node) });
        }
    }
}

#[repr(C)]
struct Slot {
    link: Link,
    deadline: Instant,
    conn: Conn,
}

pub struct Conns {
    lists: [Circle; 2],
    /// The first free one; each points to the next.
    free: *mut Slot,
    keys: Vec<*mut Slot>,
}

impl Conns {
    /// # Safety
    /// `slot` is on no list.
    unsafe fn release(&mut self, slot: *mut Slot) {
        // SAFETY: slots are valid until the table is dropped.
        unsafe { (*slot).link.next = self.free.cast() };
        self.free = slot;
    }

    fn acquire(&mut self) -> *mut Slot {
        let slot = self.free;
        // SAFETY: a slot was released just before.
        self.free = unsafe { (*slot).link.next.cast() };
        slot
    }
}

impl crate::Conns for Conns {
    fn new(len: usize, start: Instant) -> Self {
        let mut conns = Self {
            lists: [Circle::new(), Circle::new()],
            free: ptr::null_mut(),
            keys: Vec::with_capacity(len),
        };
        for _ in 0..len {
            let slot = Box::into_raw(Box::new(Slot {
                link: Link::new(),
                deadline: start,
                conn: Conn::default(),
            }));
            conns.keys.push(slot);
            // SAFETY: the slot is new.
            unsafe { conns.lists[0].push_back(slot.cast()) };
        }
        conns
    }

    fn touch(&mut self, conn: usize, list: usize, deadline: Instant) {
        let slot = self.keys[conn];
        // SAFETY: slots in `keys` are on a list.
        unsafe {
            (*slot).conn.state[0] += 1;
            (*slot).deadline = deadline;
            unlink(slot.cast());
            self.lists[list].push_back(slot.cast());
        }
    }

    fn replace(&mut self, conn: usize, deadline: Instant) {
        let slot = self.keys[conn];
        // SAFETY: slots in `keys` are on a list, free ones are not.
        unsafe {
            unlink(slot.cast());
            (*slot).conn.reset();
            self.release(slot);
            let slot = self.acquire();
            (*slot).deadline = deadline;
            self.lists[0].push_back(slot.cast());
            self.keys[conn] = slot;
        }
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
        for slot in self.keys.drain(..) {
            // SAFETY: made of a box, and nobody looks at the lists again.
            drop(unsafe { Box::from_raw(slot) });
        }
    }
}
