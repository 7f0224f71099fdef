//! Two lists over the same nodes, beside two deques.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use pumice_conn_pool::{Links, List};

const NODES: u32 = 8;

#[derive(Clone, Debug)]
enum ListOp {
    PushBack(usize, u32),
    PushFront(usize, u32),
    InsertBefore(u32, u32),
    PopFront(usize),
    PopBack(usize),
    Remove(u32),
    MoveToBack(u32),
    Drain {
        list: usize,
        from_front: usize,
        from_back: usize,
    },
}

fn list_op() -> impl Strategy<Value = ListOp> {
    let list = 0..2_usize;
    let node = 0..NODES;
    prop_oneof![
        4 => (list.clone(), node.clone()).prop_map(|(l, n)| ListOp::PushBack(l, n)),
        4 => (list.clone(), node.clone()).prop_map(|(l, n)| ListOp::PushFront(l, n)),
        4 => (node.clone(), node.clone()).prop_map(|(next, n)| ListOp::InsertBefore(next, n)),
        2 => list.clone().prop_map(ListOp::PopFront),
        2 => list.clone().prop_map(ListOp::PopBack),
        3 => node.clone().prop_map(ListOp::Remove),
        3 => node.prop_map(ListOp::MoveToBack),
        1 => (list, 0..3_usize, 0..3_usize)
            .prop_map(|(list, from_front, from_back)| ListOp::Drain { list, from_front, from_back }),
    ]
}

#[derive(Default)]
struct Lists {
    nodes: Vec<Links>,
    lists: [List; 2],
    models: [VecDeque<u32>; 2],
}

impl Lists {
    fn find(&self, node: u32) -> Option<(usize, usize)> {
        let at = |model: &VecDeque<u32>| model.iter().position(|&n| n == node);
        (0..2).find_map(|list| Some((list, at(&self.models[list])?)))
    }

    /// Applies `op` where it is allowed.
    fn apply(&mut self, op: ListOp) {
        let (nodes, lists) = (&mut self.nodes, &mut self.lists);
        match op {
            ListOp::PushBack(list, node) if !nodes[node as usize].is_linked() => {
                lists[list].push_back(nodes, node);
                self.models[list].push_back(node);
            }
            ListOp::PushFront(list, node) if !nodes[node as usize].is_linked() => {
                lists[list].push_front(nodes, node);
                self.models[list].push_front(node);
            }
            ListOp::InsertBefore(next, node) if !nodes[node as usize].is_linked() => {
                if let Some((list, at)) = self.find(next) {
                    self.lists[list].insert_before(&mut self.nodes, next, node);
                    self.models[list].insert(at, node);
                }
            }
            ListOp::PopFront(list) => {
                assert_eq!(lists[list].pop_front(nodes), self.models[list].pop_front());
            }
            ListOp::PopBack(list) => {
                assert_eq!(lists[list].pop_back(nodes), self.models[list].pop_back());
            }
            ListOp::Remove(node) => {
                if let Some((list, at)) = self.find(node) {
                    self.lists[list].remove(&mut self.nodes, node);
                    self.models[list].remove(at);
                }
            }
            ListOp::MoveToBack(node) => {
                if let Some((list, at)) = self.find(node) {
                    self.lists[list].move_to_back(&mut self.nodes, node);
                    self.models[list].remove(at);
                    self.models[list].push_back(node);
                }
            }
            ListOp::Drain {
                list,
                from_front,
                from_back,
            } => {
                let model = &mut self.models[list];
                let mut drain = lists[list].drain(nodes);
                assert_eq!(drain.len(), model.len());
                for _ in 0..from_front {
                    assert_eq!(drain.next(), model.pop_front());
                }
                for _ in 0..from_back {
                    assert_eq!(drain.next_back(), model.pop_back());
                }
                drop(drain);
                model.clear();
            }
            _ => {}
        }
    }

    fn check(&self) {
        for (list, model) in self.lists.iter().zip(&self.models) {
            list.check(&self.nodes);
            assert_eq!(list.len(), model.len());
            assert_eq!(list.is_empty(), model.is_empty());
            assert_eq!(list.front(), model.front().copied());
            assert_eq!(list.back(), model.back().copied());
            assert!(list.iter(&self.nodes).eq(model.iter().copied()));
            assert!(list.iter(&self.nodes).rev().eq(model.iter().rev().copied()));
            let mut ends = list.iter(&self.nodes);
            let (first, last) = (ends.next(), ends.next_back());
            assert_eq!(ends.len(), model.len().saturating_sub(2));
            assert_eq!(first, model.front().copied());
            assert_eq!(last.or(first), model.back().copied());
        }
        for node in 0..NODES {
            let is_linked = self.nodes[node as usize].is_linked();
            assert_eq!(is_linked, self.find(node).is_some(), "node {node}");
        }
    }
}

proptest! {
    #[test]
    fn a_list_is_a_deque_and_nodes_are_on_one_list(ops in vec(list_op(), 0..100)) {
        let mut lists = Lists::default();
        lists.nodes.resize_with(NODES as usize, Links::default);
        for op in ops {
            lists.apply(op);
            lists.check();
        }
    }
}
