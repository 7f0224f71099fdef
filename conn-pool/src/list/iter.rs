//! A list's nodes, one by one: looked at, or taken off.

use std::iter::FusedIterator;

use super::{List, Nodes};

/// The nodes of a list in order, from [`List::iter`].
#[derive(Debug)]
pub struct Iter<'a, N: ?Sized> {
    nodes: &'a N,
    front: u32,
    back: u32,
    left: u32,
}

impl<'a, N: Nodes + ?Sized> Iter<'a, N> {
    pub(super) fn new(nodes: &'a N, front: u32, back: u32, left: u32) -> Self {
        Self {
            nodes,
            front,
            back,
            left,
        }
    }
}

impl<N: Nodes + ?Sized> Iterator for Iter<'_, N> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let node = self.front;
        self.front = self.nodes.links(node).next;
        Some(node)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl<N: Nodes + ?Sized> DoubleEndedIterator for Iter<'_, N> {
    fn next_back(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let node = self.back;
        self.back = self.nodes.links(node).prev;
        Some(node)
    }
}

impl<N: Nodes + ?Sized> ExactSizeIterator for Iter<'_, N> {}
impl<N: Nodes + ?Sized> FusedIterator for Iter<'_, N> {}

/// Takes the nodes off a list, from [`List::drain`].
#[derive(Debug)]
pub struct Drain<'a, N: Nodes + ?Sized> {
    list: &'a mut List,
    nodes: &'a mut N,
}

impl<'a, N: Nodes + ?Sized> Drain<'a, N> {
    pub(super) fn new(list: &'a mut List, nodes: &'a mut N) -> Self {
        Self { list, nodes }
    }
}

impl<N: Nodes + ?Sized> Iterator for Drain<'_, N> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.list.pop_front(self.nodes)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.list.len(), Some(self.list.len()))
    }
}

impl<N: Nodes + ?Sized> DoubleEndedIterator for Drain<'_, N> {
    fn next_back(&mut self) -> Option<u32> {
        self.list.pop_back(self.nodes)
    }
}

impl<N: Nodes + ?Sized> ExactSizeIterator for Drain<'_, N> {}
impl<N: Nodes + ?Sized> FusedIterator for Drain<'_, N> {}

impl<N: Nodes + ?Sized> Drop for Drain<'_, N> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}
