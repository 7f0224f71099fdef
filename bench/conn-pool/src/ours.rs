//! `pumice-conn-pool`'s `List` and `Pool`.

use std::time::Instant;

use pumice_conn_pool::{Key, Links, List, Nodes, Pool, PoolConfig, Reuse};

use crate::Conn;

/// A node as a user has it: its links beside its value.
#[derive(Debug, Default)]
struct Node {
    links: Links,
    value: u64,
}

#[derive(Debug)]
struct Table(Vec<Node>);

impl Nodes for Table {
    fn links(&self, node: u32) -> &Links {
        &self.0[node as usize].links
    }

    fn links_mut(&mut self, node: u32) -> &mut Links {
        &mut self.0[node as usize].links
    }
}

#[derive(Debug)]
pub struct Order {
    nodes: Table,
    list: List,
}

impl crate::Order for Order {
    fn new(len: usize) -> Self {
        let mut nodes = Table(Vec::new());
        nodes.0.resize_with(len, Node::default);
        let mut list = List::new();
        for node in 0..len {
            list.push_back(&mut nodes, node as u32);
        }
        Self { nodes, list }
    }

    fn move_to_back(&mut self, node: usize) {
        self.nodes.0[node].value += 1;
        self.list.move_to_back(&mut self.nodes, node as u32);
    }

    fn first(&mut self) -> usize {
        self.list.front().unwrap() as usize
    }
}

/// The links in an array of their own.
#[derive(Debug)]
pub struct OrderApart {
    values: Vec<u64>,
    links: Vec<Links>,
    list: List,
}

impl crate::Order for OrderApart {
    fn new(len: usize) -> Self {
        let mut links = Vec::new();
        links.resize_with(len, Links::default);
        let mut list = List::new();
        for node in 0..len {
            list.push_back(&mut links, node as u32);
        }
        Self {
            values: vec![0; len],
            links,
            list,
        }
    }

    fn move_to_back(&mut self, node: usize) {
        self.values[node] += 1;
        self.list.move_to_back(&mut self.links, node as u32);
    }

    fn first(&mut self) -> usize {
        self.list.front().unwrap() as usize
    }
}

impl Reuse for Conn {
    fn reset(&mut self) {
        self.reset();
    }
}

#[derive(Debug)]
pub struct Conns {
    pool: Pool<Conn, 2>,
    keys: Vec<Key>,
}

impl crate::Conns for Conns {
    fn new(len: usize, start: Instant) -> Self {
        let config = PoolConfig {
            min: len,
            max: len,
            ..PoolConfig::default()
        };
        let mut pool: Pool<Conn, 2> = Pool::new(config).unwrap();
        let keys: Vec<Key> = (0..len).map(|_| pool.acquire().unwrap()).collect();
        for &key in &keys {
            pool.move_to(key, 0, start);
        }
        Self { pool, keys }
    }

    fn touch(&mut self, conn: usize, list: usize, deadline: Instant) {
        let key = self.keys[conn];
        if let Some(conn) = self.pool.get_mut(key) {
            conn.state[0] += 1;
        }
        self.pool.move_to(key, list, deadline);
    }

    fn replace(&mut self, conn: usize, deadline: Instant) {
        self.pool.release(self.keys[conn]);
        let key = self.pool.acquire().unwrap();
        self.pool.move_to(key, 0, deadline);
        self.keys[conn] = key;
    }

    fn next_deadline(&mut self) -> Option<Instant> {
        self.pool.next_deadline()
    }
}
