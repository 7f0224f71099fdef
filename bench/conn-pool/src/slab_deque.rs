//! `slab` and `VecDeque`: nothing is taken out of the middle of a queue.
//!
//! A move puts another entry at the end; the one that it makes invalid stays until it comes to the
//! front, or until half of the queue is such entries and it is swept.

use std::collections::VecDeque;
use std::time::Instant;

use slab::Slab;

use crate::Conn;

/// An entry of a queue: valid while the node has this stamp.
#[derive(Debug)]
struct Entry {
    node: u32,
    stamp: u32,
}

#[derive(Debug, Default)]
struct Node {
    stamp: u32,
    value: u64,
}

#[derive(Debug)]
pub struct Order {
    nodes: Slab<Node>,
    queue: VecDeque<Entry>,
}

impl crate::Order for Order {
    fn new(len: usize) -> Self {
        let mut nodes = Slab::with_capacity(len);
        let mut queue = VecDeque::with_capacity(2 * len + 1);
        for _ in 0..len {
            let node = nodes.insert(Node::default()) as u32;
            queue.push_back(Entry { node, stamp: 0 });
        }
        Self { nodes, queue }
    }

    fn move_to_back(&mut self, node: usize) {
        let entry = &mut self.nodes[node];
        entry.value += 1;
        entry.stamp = entry.stamp.wrapping_add(1);
        let stamp = entry.stamp;
        let node = node as u32;
        self.queue.push_back(Entry { node, stamp });
        if self.queue.len() > 2 * self.nodes.len() {
            let nodes = &self.nodes;
            self.queue
                .retain(|entry| nodes[entry.node as usize].stamp == entry.stamp);
        }
    }

    fn first(&mut self) -> usize {
        loop {
            let entry = self.queue.front().unwrap();
            let node = entry.node as usize;
            if self.nodes[node].stamp == entry.stamp {
                return node;
            }
            self.queue.pop_front();
        }
    }
}

#[derive(Debug)]
struct Slot {
    stamp: u32,
    deadline: Instant,
    conn: Conn,
}

#[derive(Debug)]
pub struct Conns {
    slots: Slab<Slot>,
    queues: [VecDeque<Entry>; 2],
    keys: Vec<usize>,
    /// Never used twice, so that an entry of a connection that is gone is known.
    next_stamp: u32,
}

impl Conns {
    fn push(&mut self, key: usize, list: usize) {
        let stamp = self.slots[key].stamp;
        let queue = &mut self.queues[list];
        queue.push_back(Entry {
            node: key as u32,
            stamp,
        });
        if queue.len() > 2 * self.keys.len() {
            let slots = &self.slots;
            queue.retain(|entry| is_valid(slots, entry));
        }
    }

    fn stamp(&mut self) -> u32 {
        self.next_stamp = self.next_stamp.wrapping_add(1);
        self.next_stamp
    }
}

fn is_valid(slots: &Slab<Slot>, entry: &Entry) -> bool {
    slots
        .get(entry.node as usize)
        .is_some_and(|slot| slot.stamp == entry.stamp)
}

impl crate::Conns for Conns {
    fn new(len: usize, start: Instant) -> Self {
        let queue = || VecDeque::with_capacity(2 * len + 1);
        let mut conns = Self {
            slots: Slab::with_capacity(len),
            queues: [queue(), queue()],
            keys: Vec::with_capacity(len),
            next_stamp: 0,
        };
        for _ in 0..len {
            let key = conns.slots.insert(Slot {
                stamp: 0,
                deadline: start,
                conn: Conn::default(),
            });
            conns.keys.push(key);
            conns.push(key, 0);
        }
        conns
    }

    fn touch(&mut self, conn: usize, list: usize, deadline: Instant) {
        let key = self.keys[conn];
        let stamp = self.stamp();
        let slot = &mut self.slots[key];
        slot.conn.state[0] += 1;
        slot.stamp = stamp;
        slot.deadline = deadline;
        self.push(key, list);
    }

    fn replace(&mut self, conn: usize, deadline: Instant) {
        let mut slot = self.slots.remove(self.keys[conn]);
        slot.conn.reset();
        let stamp = self.stamp();
        let key = self.slots.insert(Slot {
            stamp,
            deadline,
            conn: slot.conn,
        });
        self.keys[conn] = key;
        self.push(key, 0);
    }

    fn next_deadline(&mut self) -> Option<Instant> {
        let Self { slots, queues, .. } = self;
        for queue in queues.iter_mut() {
            while queue.front().is_some_and(|entry| !is_valid(slots, entry)) {
                queue.pop_front();
            }
        }
        let heads = queues.iter().filter_map(VecDeque::front);
        heads.map(|entry| slots[entry.node as usize].deadline).min()
    }
}
