//! One direction of a simulated connection: a send buffer, a receive buffer, and an end on its way.

use std::collections::VecDeque;

use super::faults::Faults;
use super::rng::Rng;

/// How far the end of the stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fin {
    /// The sender may send more.
    Open,
    /// Behind the bytes on their way.
    Sent,
    /// Behind the bytes that wait to be read.
    Arrived,
}

/// One direction of a connection.
///
/// Invariant: `sent.len() <= sent_max` and `arrived.len() <= arrived_max`.
#[derive(Debug)]
pub(super) struct Pipe {
    /// Taken from the sender and not arrived.
    sent: VecDeque<u8>,
    sent_max: usize,
    /// Arrived and not read.
    arrived: VecDeque<u8>,
    arrived_max: usize,
    pub(super) fin: Fin,
    /// A reset is on its way in this direction.
    pub(super) has_reset: bool,
    /// A write has moved less than asked: the sender is owed an edge when there is room.
    pub(super) is_starved: bool,
    /// A read has moved less than there was and less than asked: the receiver is owed an edge.
    pub(super) is_hungry: bool,
    /// Whether the network has this pipe on its list of those that may have something to do.
    pub(super) is_moving: bool,
}

/// What [`Pipe::carry`] has changed.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pub(super) bytes: usize,
    pub(super) has_fin_arrived: bool,
    pub(super) has_room: bool,
    pub(super) has_rest: bool,
}

impl Pipe {
    pub(super) fn new(sent_max: usize, arrived_max: usize) -> Self {
        Self {
            sent: VecDeque::new(),
            sent_max,
            arrived: VecDeque::new(),
            arrived_max,
            fin: Fin::Open,
            has_reset: false,
            is_starved: false,
            is_hungry: false,
            is_moving: false,
        }
    }

    /// Sets the size of the send buffer, which never drops below what is in it.
    pub(super) fn set_sent_max(&mut self, bytes_max: usize) {
        self.sent_max = bytes_max.max(self.sent.len());
    }

    pub(super) fn room(&self) -> usize {
        self.sent_max - self.sent.len()
    }

    pub(super) fn waiting(&self) -> usize {
        self.arrived.len()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.sent.len()
    }

    /// Takes `bytes`, for which there is room.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.room(), "more than the buffer holds");
        self.sent.extend(bytes);
    }

    /// Fills `buf`, for which enough has arrived.
    pub(super) fn pop(&mut self, buf: &mut [u8]) {
        let len = buf.len();
        for (to, from) in buf.iter_mut().zip(self.arrived.drain(..len)) {
            *to = from;
        }
    }

    /// Drops what has arrived.
    pub(super) fn forget_arrived(&mut self) {
        self.arrived.clear();
    }

    /// Drops all but the first `len` bytes on their way.
    pub(super) fn lose_sent(&mut self, len: usize) {
        self.sent.truncate(len);
    }

    /// Whether a round of the network would change anything here.
    pub(super) fn can_move(&self, has_reader: bool) -> bool {
        let has_window = !has_reader || self.arrived.len() < self.arrived_max;
        self.has_reset
            || !self.sent.is_empty() && has_window
            || self.sent.is_empty() && self.fin == Fin::Sent
            || self.is_starved && self.room() > 0
            || self.is_hungry
    }

    /// One round of the network: moves a piece, or all that fits if `is_forced`. Without a reader the bytes are
    /// gone.
    pub(super) fn carry(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        has_reader: bool,
        is_forced: bool,
    ) -> Carried {
        let mut carried = Carried::default();
        let window = if has_reader {
            self.arrived_max - self.arrived.len()
        } else {
            usize::MAX
        };
        let mut len = self.sent.len().min(window);
        if len > 0 && !is_forced && faults.piece_bytes_max < usize::MAX {
            len = rng.up_to(len.min(faults.piece_bytes_max.max(1)));
        }
        let bytes = self.sent.drain(..len);
        if has_reader {
            self.arrived.extend(bytes);
        } else {
            drop(bytes);
        }
        carried.bytes = len;
        if self.sent.is_empty()
            && self.fin == Fin::Sent
            && (is_forced || len == 0 || !rng.chance(faults.delay))
        {
            self.fin = Fin::Arrived;
            carried.has_fin_arrived = true;
        }
        if self.is_starved && self.room() > 0 {
            self.is_starved = false;
            carried.has_room = true;
        }
        if self.is_hungry {
            self.is_hungry = false;
            carried.has_rest = !self.arrived.is_empty();
        }
        carried
    }
}
