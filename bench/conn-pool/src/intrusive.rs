//! `intrusive-collections`: its linked list of boxed nodes, a second one of free nodes.

use std::cell::Cell;
use std::time::Instant;

use intrusive_collections::{LinkedList, LinkedListLink, UnsafeRef, intrusive_adapter};

use crate::Conn;

struct Node {
    link: LinkedListLink,
    number: usize,
    value: Cell<u64>,
}

intrusive_adapter!(NodeAdapter = UnsafeRef<Node>: Node { link => LinkedListLink });

pub struct Order {
    nodes: Vec<UnsafeRef<Node>>,
    list: LinkedList<NodeAdapter>,
}

impl crate::Order for Order {
    fn new(len: usize) -> Self {
        let node = |number| {
            UnsafeRef::from_box(Box::new(Node {
                link: LinkedListLink::new(),
                number,
                value: Cell::new(0),
            }))
        };
        let nodes: Vec<_> = (0..len).map(node).collect();
        let mut list = LinkedList::new(NodeAdapter::new());
        for node in &nodes {
            list.push_back(node.clone());
        }
        Self { nodes, list }
    }

    fn move_to_back(&mut self, node: usize) {
        let node = &self.nodes[node];
        node.value.set(node.value.get() + 1);
        // SAFETY: all nodes are on this list.
        let taken = unsafe { self.list.cursor_mut_from_ptr(&raw const **node) }.remove();
        self.list.push_back(taken.unwrap());
    }

    fn first(&mut self) -> usize {
        self.list.front().get().unwrap().number
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        self.list.fast_clear();
        for node in self.nodes.drain(..) {
            // SAFETY: made of a box, and on no list any more.
            drop(unsafe { UnsafeRef::into_box(node) });
        }
    }
}

struct Slot {
    link: LinkedListLink,
    list: Cell<usize>,
    deadline: Cell<Instant>,
    conn: Cell<Conn>,
}

intrusive_adapter!(SlotAdapter = UnsafeRef<Slot>: Slot { link => LinkedListLink });

pub struct Conns {
    lists: [LinkedList<SlotAdapter>; 2],
    free: LinkedList<SlotAdapter>,
    keys: Vec<UnsafeRef<Slot>>,
}

impl Conns {
    fn take(&mut self, conn: usize) -> UnsafeRef<Slot> {
        let slot = &self.keys[conn];
        let list = &mut self.lists[slot.list.get()];
        // SAFETY: the slot is on the list that it says.
        unsafe { list.cursor_mut_from_ptr(&raw const **slot) }
            .remove()
            .unwrap()
    }

    fn put(&mut self, slot: UnsafeRef<Slot>, list: usize, deadline: Instant) {
        slot.list.set(list);
        slot.deadline.set(deadline);
        self.lists[list].push_back(slot);
    }
}

impl crate::Conns for Conns {
    fn new(len: usize, start: Instant) -> Self {
        let list = || LinkedList::new(SlotAdapter::new());
        let mut conns = Self {
            lists: [list(), list()],
            free: list(),
            keys: Vec::with_capacity(len),
        };
        for _ in 0..len {
            let slot = UnsafeRef::from_box(Box::new(Slot {
                link: LinkedListLink::new(),
                list: Cell::new(0),
                deadline: Cell::new(start),
                conn: Cell::default(),
            }));
            conns.keys.push(slot.clone());
            conns.put(slot, 0, start);
        }
        conns
    }

    fn touch(&mut self, conn: usize, list: usize, deadline: Instant) {
        let slot = self.take(conn);
        // SAFETY: nobody else has a reference to the connection.
        unsafe { (*slot.conn.as_ptr()).state[0] += 1 };
        self.put(slot, list, deadline);
    }

    fn replace(&mut self, conn: usize, deadline: Instant) {
        let slot = self.take(conn);
        // SAFETY: nobody else has a reference to the connection.
        unsafe { (*slot.conn.as_ptr()).reset() };
        self.free.push_front(slot);
        let slot = self.free.pop_front().unwrap();
        self.keys[conn] = slot.clone();
        self.put(slot, 0, deadline);
    }

    fn next_deadline(&mut self) -> Option<Instant> {
        let heads = self.lists.iter().filter_map(|list| list.front().get());
        heads.map(|slot| slot.deadline.get()).min()
    }
}

impl Drop for Conns {
    fn drop(&mut self) {
        self.lists.iter_mut().for_each(LinkedList::fast_clear);
        for slot in self.keys.drain(..) {
            // SAFETY: made of a box, and on no list any more.
            drop(unsafe { UnsafeRef::into_box(slot) });
        }
    }
}
