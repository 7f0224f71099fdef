//! A stack through the links of its nodes.

use super::{Iter, NIL, Nodes};

/// Nodes of which only the last one is taken: through their `next` alone, so that no other node is
/// touched.
#[derive(Debug)]
pub(crate) struct Stack {
    top: u32,
    len: u32,
}

impl Stack {
    pub(crate) const fn new() -> Self {
        Self { top: NIL, len: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    /// Puts `node`, which is on no list, on top.
    pub(crate) fn push<N: Nodes + ?Sized>(&mut self, nodes: &mut N, node: u32) {
        nodes.links_mut(node).next = self.top;
        self.top = node;
        self.len += 1;
    }

    /// Takes the top one. Its links are left for who attaches it elsewhere.
    pub(crate) fn pop<N: Nodes + ?Sized>(&mut self, nodes: &N) -> Option<u32> {
        if self.top == NIL {
            return None;
        }
        let node = self.top;
        self.top = nodes.links(node).next;
        self.len -= 1;
        Some(node)
    }

    /// The nodes from the top.
    pub(crate) fn iter<'a, N: Nodes + ?Sized>(
        &self,
        nodes: &'a N,
    ) -> impl Iterator<Item = u32> + use<'a, N> {
        // Not asked from the back: nothing knows what is below a node but the one above.
        Iter::new(nodes, self.top, NIL, self.len)
    }
}
