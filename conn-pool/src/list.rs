//! A doubly linked list through the values themselves, by index.
//!
//! Invariant: from `head` over `next` one meets `len` nodes and ends at `tail`; from `tail` over
//! `prev` the same nodes the other way round. A node that is on no list has unlinked links.

mod iter;
mod stack;

pub use iter::{Drain, Iter};
pub(crate) use stack::Stack;

/// Stands for "no node" at both ends of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// Stands in both fields of a node that is on no list: what tells it from the only node of one.
const UNLINKED: u32 = u32::MAX - 1;

/// Where a node stands on its list: the field a value has for each list it can be on.
///
/// Starts on no list. It can't be cloned, since a copy would claim a place that it hasn't got.
#[derive(Debug, PartialEq, Eq)]
pub struct Links {
    prev: u32,
    next: u32,
}

const _: () = assert!(size_of::<Links>() == 8);

impl Links {
    /// Whether the node is on a list.
    #[must_use]
    pub const fn is_linked(&self) -> bool {
        self.prev != UNLINKED
    }

    /// The node before this one; `None` for the first of a list, and for one that is on no list.
    #[must_use]
    pub fn prev(&self) -> Option<u32> {
        some(self.prev)
    }

    /// The node behind this one; `None` for the last of a list, and for one that is on no list.
    #[must_use]
    pub fn next(&self) -> Option<u32> {
        some(self.next)
    }
}

impl Default for Links {
    fn default() -> Self {
        Self {
            prev: UNLINKED,
            next: UNLINKED,
        }
    }
}

fn some(node: u32) -> Option<u32> {
    (node < UNLINKED).then_some(node)
}

/// Finds the links of a node: what a [`List`] needs to know of the storage that its nodes are in.
///
/// Nodes are numbered below `u32::MAX - 1`; the number must find the same node for as long as that is
/// on a list. A value sits on several lists at once through several link fields, each with a `Nodes`
/// of its own:
///
/// ```
/// use pumice_conn_pool::{Links, List, Nodes};
///
/// #[derive(Default)]
/// struct Conn {
///     name: &'static str,
///     by_age: Links,
///     by_room: Links,
/// }
///
/// struct ByAge<'a>(&'a mut [Conn]);
/// impl Nodes for ByAge<'_> {
///     fn links(&self, node: u32) -> &Links {
///         &self.0[node as usize].by_age
///     }
///     fn links_mut(&mut self, node: u32) -> &mut Links {
///         &mut self.0[node as usize].by_age
///     }
/// }
///
/// struct ByRoom<'a>(&'a mut [Conn]);
/// impl Nodes for ByRoom<'_> {
///     fn links(&self, node: u32) -> &Links {
///         &self.0[node as usize].by_room
///     }
///     fn links_mut(&mut self, node: u32) -> &mut Links {
///         &mut self.0[node as usize].by_room
///     }
/// }
///
/// let mut conns: Vec<Conn> = ["ada", "bob", "cyd"]
///     .map(|name| Conn { name, ..Conn::default() })
///     .into();
/// let (mut age, mut kitchen) = (List::new(), List::new());
/// for node in 0..3 {
///     age.push_back(&mut ByAge(&mut conns), node);
/// }
/// kitchen.push_back(&mut ByRoom(&mut conns), 2);
/// kitchen.push_back(&mut ByRoom(&mut conns), 1);
///
/// // Bob leaves the kitchen and keeps his place in the other list.
/// kitchen.remove(&mut ByRoom(&mut conns), 1);
/// let newest_first: Vec<u32> = age.iter(&ByAge(&mut conns)).rev().collect();
/// assert_eq!(newest_first, [2, 1, 0]);
///
/// let left = kitchen.pop_front(&mut ByRoom(&mut conns)).unwrap();
/// assert_eq!(conns[left as usize].name, "cyd");
/// assert!(kitchen.is_empty());
/// ```
pub trait Nodes {
    /// The links of `node`.
    ///
    /// # Panics
    /// When there is no such node.
    fn links(&self, node: u32) -> &Links;

    /// The links of `node`, for the list to write.
    ///
    /// # Panics
    /// When there is no such node.
    fn links_mut(&mut self, node: u32) -> &mut Links;

    /// The links of the node next to another one, for the list to write; `None` for `u32::MAX`, which
    /// stands for no node, where the list ends.
    ///
    /// Slices answer with one check for both the end and the bounds. What is provided is as right.
    ///
    /// # Panics
    /// May panic when there is no such node.
    fn neighbour_mut(&mut self, node: u32) -> Option<&mut Links> {
        (node != NIL).then(|| self.links_mut(node))
    }
}

impl Nodes for [Links] {
    fn links(&self, node: u32) -> &Links {
        &self[node as usize]
    }

    fn links_mut(&mut self, node: u32) -> &mut Links {
        &mut self[node as usize]
    }

    fn neighbour_mut(&mut self, node: u32) -> Option<&mut Links> {
        self.get_mut(node as usize)
    }
}

impl Nodes for Vec<Links> {
    fn links(&self, node: u32) -> &Links {
        &self[node as usize]
    }

    fn links_mut(&mut self, node: u32) -> &mut Links {
        &mut self[node as usize]
    }

    fn neighbour_mut(&mut self, node: u32) -> Option<&mut Links> {
        self.get_mut(node as usize)
    }
}

/// The ends of a list whose links are in the nodes: 12 bytes, no allocation, each change O(1).
///
/// The list doesn't own the nodes: each method is handed the storage they are in, and always the same
/// one. Dropping a list that isn't empty leaves its nodes linked to nothing; [`List::drain`] it first
/// where they are to be used again. It can't be cloned: a copy of the ends is wrong after the next
/// change.
///
/// # Panics
/// A node is on one list (per link field) at a time. Putting it on a second one panics, and so does
/// taking off one that is on none. Taking a node off a list that it isn't on is noticed only where it
/// stands at an end of its own; who has several lists remembers for each node which one it is on, as
/// [`Pool`](crate::Pool) does.
#[derive(Debug)]
pub struct List {
    head: u32,
    tail: u32,
    len: u32,
}

const _: () = assert!(size_of::<List>() == 12);

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl List {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            head: NIL,
            tail: NIL,
            len: 0,
        }
    }

    /// How many nodes are on the list.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether no node is on the list.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first node.
    #[must_use]
    pub fn front(&self) -> Option<u32> {
        some(self.head)
    }

    /// The last node.
    #[must_use]
    pub fn back(&self) -> Option<u32> {
        some(self.tail)
    }

    /// Puts `node` behind the last one.
    ///
    /// # Panics
    /// When the node is on a list already.
    pub fn push_back<N: Nodes + ?Sized>(&mut self, nodes: &mut N, node: u32) {
        expect_unlinked(nodes, node);
        self.attach_back(nodes, node);
    }

    /// Puts `node` before the first one.
    ///
    /// # Panics
    /// When the node is on a list already.
    pub fn push_front<N: Nodes + ?Sized>(&mut self, nodes: &mut N, node: u32) {
        expect_unlinked(nodes, node);
        self.attach_front(nodes, node);
    }

    /// Puts `node` right before `next`, which is on this list.
    ///
    /// # Panics
    /// When `node` is on a list already, or `next` on none.
    pub fn insert_before<N: Nodes + ?Sized>(&mut self, nodes: &mut N, next: u32, node: u32) {
        expect_unlinked(nodes, node);
        expect_linked(nodes, next);
        self.attach_before(nodes, next, node);
    }

    /// Takes the first node off.
    pub fn pop_front<N: Nodes + ?Sized>(&mut self, nodes: &mut N) -> Option<u32> {
        let node = self.front()?;
        self.remove(nodes, node);
        Some(node)
    }

    /// Takes the last node off.
    pub fn pop_back<N: Nodes + ?Sized>(&mut self, nodes: &mut N) -> Option<u32> {
        let node = self.back()?;
        self.remove(nodes, node);
        Some(node)
    }

    /// Takes `node` off this list, which it is on.
    ///
    /// # Panics
    /// When it is on no list.
    pub fn remove<N: Nodes + ?Sized>(&mut self, nodes: &mut N, node: u32) {
        self.expect_here(nodes, node);
        self.detach(nodes, node);
        *nodes.links_mut(node) = Links::default();
    }

    /// Makes `node`, which is on this list, its last one.
    ///
    /// # Panics
    /// When it is on no list.
    pub fn move_to_back<N: Nodes + ?Sized>(&mut self, nodes: &mut N, node: u32) {
        if self.tail != node {
            self.expect_here(nodes, node);
            self.detach(nodes, node);
            self.attach_back(nodes, node);
        }
    }

    /// The nodes from the first to the last; `.rev()` goes the other way.
    pub fn iter<'a, N: Nodes + ?Sized>(&self, nodes: &'a N) -> Iter<'a, N> {
        Iter::new(nodes, self.head, self.tail, self.len)
    }

    /// Takes all nodes off, one by one; those that aren't asked for go when the iterator is dropped.
    pub fn drain<'a, N: Nodes + ?Sized>(&'a mut self, nodes: &'a mut N) -> Drain<'a, N> {
        Drain::new(self, nodes)
    }

    /// Asserts the invariant, walking the list both ways; for tests.
    ///
    /// # Panics
    /// When links, ends and length don't agree.
    pub fn check<N: Nodes + ?Sized>(&self, nodes: &N) {
        let mut prev = NIL;
        let mut node = self.head;
        for _ in 0..self.len {
            assert_ne!(node, NIL, "the list ends early, at node {prev}");
            let links = nodes.links(node);
            assert!(links.is_linked(), "node {node} is on the list and unlinked");
            assert_eq!(links.prev, prev, "node {node} is behind another one");
            prev = node;
            node = links.next;
        }
        assert_eq!(node, NIL, "the list goes on behind its length");
        assert_eq!(self.tail, prev, "the list ends at another node");
    }

    /// The last node, or `NIL`.
    pub(crate) const fn tail(&self) -> u32 {
        self.tail
    }

    /// As far as `node` itself shows it.
    fn expect_here<N: Nodes + ?Sized>(&self, nodes: &N, node: u32) {
        let Links { prev, next } = *nodes.links(node);
        if prev == UNLINKED {
            misused(node, "is on no list");
        }
        if self.len == 0 || (prev == NIL && self.head != node) || (next == NIL && self.tail != node)
        {
            misused(node, "is on another list");
        }
    }

    /// Puts `node`, whose links may say anything, between two neighbours, or an end and a neighbour.
    pub(crate) fn attach<N: Nodes + ?Sized>(
        &mut self,
        nodes: &mut N,
        prev: u32,
        node: u32,
        next: u32,
    ) {
        *nodes.links_mut(node) = Links { prev, next };
        match nodes.neighbour_mut(prev) {
            Some(links) => links.next = node,
            None => self.head = node,
        }
        match nodes.neighbour_mut(next) {
            Some(links) => links.prev = node,
            None => self.tail = node,
        }
        self.len += 1;
    }

    pub(crate) fn attach_front<N: Nodes + ?Sized>(&mut self, nodes: &mut N, node: u32) {
        self.attach(nodes, NIL, node, self.head);
    }

    pub(crate) fn attach_back<N: Nodes + ?Sized>(&mut self, nodes: &mut N, node: u32) {
        self.attach(nodes, self.tail, node, NIL);
    }

    pub(crate) fn attach_before<N: Nodes + ?Sized>(&mut self, nodes: &mut N, next: u32, node: u32) {
        let Links { prev, .. } = *nodes.links(next);
        self.attach(nodes, prev, node, next);
    }

    /// Takes `node` off this list, which it is on, for sure. Leaves its links as they are, for who
    /// attaches it again at once.
    pub(crate) fn detach<N: Nodes + ?Sized>(&mut self, nodes: &mut N, node: u32) {
        let Links { prev, next } = *nodes.links(node);
        match nodes.neighbour_mut(prev) {
            Some(links) => links.next = next,
            None => self.head = next,
        }
        match nodes.neighbour_mut(next) {
            Some(links) => links.prev = prev,
            None => self.tail = prev,
        }
        self.len -= 1;
    }
}

fn expect_unlinked<N: Nodes + ?Sized>(nodes: &N, node: u32) {
    if node >= UNLINKED {
        misused(node, "is no number of a node");
    }
    if nodes.links(node).is_linked() {
        misused(node, "is on a list already");
    }
}

fn expect_linked<N: Nodes + ?Sized>(nodes: &N, node: u32) {
    if !nodes.links(node).is_linked() {
        misused(node, "is on no list");
    }
}

/// Out of line, since each change of a list checks for it and none comes here.
#[cold]
#[inline(never)]
fn misused(node: u32, what: &str) -> ! {
    panic!("node {node} {what}");
}
