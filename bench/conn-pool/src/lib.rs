//! What `pumice-conn-pool` is measured beside: the same jobs done with other means.
//!
//! Two jobs, each behind a trait: [`Order`] keeps numbered nodes in an order and makes any of them the
//! last; [`Conns`] keeps connections on two lists by deadline, takes them out and puts them back.

pub mod boxes;
pub mod checked;
pub mod intrusive;
pub mod ours;
pub mod slab_deque;

use std::time::{Duration, Instant};

/// Numbers of nodes that everything is measured with.
pub const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];

/// Nodes in an order, of which any can be made the last.
pub trait Order {
    /// `len` nodes in the order of their numbers.
    fn new(len: usize) -> Self;
    /// Makes a node the last one.
    fn move_to_back(&mut self, node: usize);
    /// The first node: makes sure that all do the same.
    fn first(&mut self) -> usize;
}

/// Connections on two lists by deadline, each known by the place in which it was put first.
pub trait Conns {
    /// `len` connections on list 0.
    fn new(len: usize, start: Instant) -> Self;
    /// A connection gets another deadline, the latest yet.
    fn touch(&mut self, conn: usize, list: usize, deadline: Instant);
    /// A connection goes and another one comes in its place, on list 0.
    fn replace(&mut self, conn: usize, deadline: Instant);
    /// The earliest deadline: makes sure that all do the same.
    fn next_deadline(&mut self) -> Option<Instant>;
}

/// What a connection is apart from its lists: 96 bytes, one of which each use changes.
#[derive(Debug, Default)]
pub struct Conn {
    pub state: [u64; 12],
}

impl Conn {
    /// As good as new.
    pub fn reset(&mut self) {
        self.state[0] = 0;
    }
}

/// Numbers at random, at 1 ns each.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    #[must_use]
    pub const fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// A number below `len`.
    pub fn below(&mut self, len: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * len as u64) >> 32) as usize
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}

/// Deadlines that are each a little later than the one before.
#[derive(Debug)]
pub struct Clock(pub Instant);

impl Clock {
    pub fn tick(&mut self) -> Instant {
        self.0 += Duration::from_nanos(100);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order<T: Order>() -> Vec<usize> {
        let mut order = T::new(50);
        let mut random = Random::new();
        let step = |_| {
            order.move_to_back(random.below(50));
            order.first()
        };
        (0..1000).map(step).collect()
    }

    #[test]
    fn all_orders_are_the_same_order() {
        let expected = order::<ours::Order>();
        assert_eq!(order::<ours::OrderApart>(), expected);
        assert_eq!(order::<slab_deque::Order>(), expected);
        assert_eq!(order::<intrusive::Order>(), expected);
        assert_eq!(order::<boxes::Order>(), expected);
    }

    fn deadlines<T: Conns>(start: Instant) -> Vec<Option<Instant>> {
        let mut conns = T::new(50, start);
        let mut random = Random::new();
        let mut clock = Clock(start);
        let step = |n| {
            let (conn, list) = (random.below(50), random.below(2));
            match n % 3 {
                0 => conns.replace(conn, clock.tick()),
                _ => conns.touch(conn, list, clock.tick()),
            }
            conns.next_deadline()
        };
        (0..1000).map(step).collect()
    }

    #[test]
    fn all_tables_have_the_same_deadlines() {
        let start = Instant::now();
        let expected = deadlines::<ours::Conns>(start);
        assert_eq!(deadlines::<slab_deque::Conns>(start), expected);
        assert_eq!(deadlines::<intrusive::Conns>(start), expected);
        assert_eq!(deadlines::<boxes::Conns>(start), expected);
        assert_eq!(deadlines::<checked::Conns>(start), expected);
    }
}
