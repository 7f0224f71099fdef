//! What a list does at its edges, and what it refuses.

use pumice_conn_pool::{Links, List};

fn nodes(len: usize) -> Vec<Links> {
    let mut nodes = Vec::new();
    nodes.resize_with(len, Links::default);
    nodes
}

fn list(nodes: &mut Vec<Links>, members: &[u32]) -> List {
    let mut list = List::new();
    for &node in members {
        list.push_back(nodes, node);
    }
    list
}

#[test]
fn a_new_list_is_empty_from_both_ends() {
    let mut nodes = nodes(1);
    let mut list = List::default();
    assert!(list.is_empty());
    assert_eq!((list.front(), list.back()), (None, None));
    assert_eq!(
        (list.pop_front(&mut nodes), list.pop_back(&mut nodes)),
        (None, None)
    );
    assert_eq!(list.iter(&nodes).next(), None);
    list.check(&nodes);
}

#[test]
fn the_links_tell_the_neighbours() {
    let mut nodes = nodes(4);
    let list = list(&mut nodes, &[2, 0, 1]);
    assert_eq!((nodes[2].prev(), nodes[2].next()), (None, Some(0)));
    assert_eq!((nodes[0].prev(), nodes[0].next()), (Some(2), Some(1)));
    assert_eq!((nodes[1].prev(), nodes[1].next()), (Some(0), None));
    assert_eq!((nodes[3].prev(), nodes[3].next()), (None, None));
    assert!(!nodes[3].is_linked());
    assert_eq!(list.iter(&nodes).rev().collect::<Vec<_>>(), [1, 0, 2]);
}

#[test]
fn the_only_node_of_a_list_is_linked() {
    let mut nodes = nodes(1);
    let mut list = list(&mut nodes, &[0]);
    assert!(nodes[0].is_linked());
    list.remove(&mut nodes, 0);
    assert!(!nodes[0].is_linked());
}

#[test]
fn a_slice_of_links_holds_a_list_too() {
    let mut nodes = nodes(2);
    let slice = &mut nodes[..];
    let mut list = List::new();
    list.push_back(slice, 1);
    list.push_front(slice, 0);
    assert_eq!(list.iter(slice).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_drain_that_is_dropped_has_unlinked_all() {
    let mut nodes = nodes(4);
    let mut list = list(&mut nodes, &[0, 1, 2, 3]);
    let mut drain = list.drain(&mut nodes);
    assert_eq!((drain.next(), drain.next_back()), (Some(0), Some(3)));
    drop(drain);
    assert!(list.is_empty());
    assert!(nodes.iter().all(|links| !links.is_linked()));
}

#[test]
#[should_panic = "node 1 is on a list already"]
fn a_node_on_a_list_cannot_be_put_on_another() {
    let mut nodes = nodes(2);
    let _first = list(&mut nodes, &[0, 1]);
    List::new().push_front(&mut nodes, 1);
}

#[test]
#[should_panic = "node 1 is on no list"]
fn a_node_on_no_list_cannot_be_removed() {
    let mut nodes = nodes(2);
    list(&mut nodes, &[0]).remove(&mut nodes, 1);
}

#[test]
#[should_panic = "node 1 is on no list"]
fn nothing_is_put_before_a_node_on_no_list() {
    let mut nodes = nodes(3);
    list(&mut nodes, &[0]).insert_before(&mut nodes, 1, 2);
}

#[test]
#[should_panic = "node 2 is on another list"]
fn the_last_node_of_another_list_is_not_removed() {
    let mut nodes = nodes(3);
    let mut first = list(&mut nodes, &[0]);
    let _second = list(&mut nodes, &[1, 2]);
    first.remove(&mut nodes, 2);
}

#[test]
#[should_panic = "node 4294967295 is no number of a node"]
fn the_number_that_means_no_node_is_refused() {
    List::new().push_back(&mut nodes(1), u32::MAX);
}
