//! A simulated connection: two sockets and the pipes between them.

use std::net::SocketAddr;

use crate::Ready;

use super::pipe::{Fin, Pipe};

/// One of a connection's two sockets. Whoever connected is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Names a socket. A link's number is given to another only after both its sockets are closed, and whoever holds
/// such a name holds the socket open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketId {
    pub(super) link: u32,
    pub(super) side: Side,
}

/// Who watches a socket or listener.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub(super) poller: u32,
    pub(super) token: u64,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) is_open: bool,
    pub(super) watch: Option<Watch>,
    /// Changes not told yet.
    pub(super) edges: Ready,
    /// Whether the watching poller has this socket on its list.
    pub(super) is_queued: bool,
    /// Whether the peer has reset the connection.
    pub(super) is_reset: bool,
    /// Whether that has yet to be told by a read or write.
    pub(super) has_error: bool,
    pub(super) resets_on_drop: bool,
    /// Whether this side reads no more.
    pub(super) is_deaf: bool,
    /// Whether it counts as one of the process's descriptors.
    pub(super) is_counted: bool,
}

impl Socket {
    pub(super) fn new() -> Self {
        Self {
            is_open: true,
            watch: None,
            edges: Ready::EMPTY,
            is_queued: false,
            is_reset: false,
            has_error: false,
            resets_on_drop: false,
            is_deaf: false,
            is_counted: false,
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) sockets: [Socket; 2],
    /// By the side that sends.
    pub(super) pipes: [Pipe; 2],
    /// The client's address.
    pub(super) client: SocketAddr,
    /// The address it has connected to.
    pub(super) server: SocketAddr,
}

impl Link {
    pub(super) fn socket(&mut self, side: Side) -> &mut Socket {
        &mut self.sockets[side as usize]
    }

    /// What `side` writes into.
    pub(super) fn outgoing(&mut self, side: Side) -> &mut Pipe {
        &mut self.pipes[side as usize]
    }

    /// What `side` reads from.
    pub(super) fn incoming(&mut self, side: Side) -> &mut Pipe {
        &mut self.pipes[side.other() as usize]
    }

    /// What holds for `side` right now, told or not.
    pub(super) fn level(&self, side: Side) -> Ready {
        let socket = &self.sockets[side as usize];
        let incoming = &self.pipes[side.other() as usize];
        let outgoing = &self.pipes[side as usize];
        if socket.is_reset {
            let mut gone =
                Ready::READABLE | Ready::WRITABLE | Ready::READ_CLOSED | Ready::WRITE_CLOSED;
            if socket.has_error {
                gone.insert(Ready::ERROR);
            }
            return gone;
        }
        let mut level = Ready::EMPTY;
        let has_end = incoming.fin == Fin::Arrived || socket.is_deaf;
        if has_end {
            level.insert(Ready::READ_CLOSED);
        }
        if has_end || incoming.waiting() > 0 {
            level.insert(Ready::READABLE);
        }
        if outgoing.room() > 0 || outgoing.fin != Fin::Open {
            level.insert(Ready::WRITABLE);
        }
        if has_end && outgoing.fin != Fin::Open {
            level.insert(Ready::WRITE_CLOSED);
        }
        level
    }
}
