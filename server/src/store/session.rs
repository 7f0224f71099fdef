//! What one connection of the wire protocol has in flight.

use pumice_conn_pool::Key;

/// The budgets of a connection, and its streams by request.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// Whether Hello was answered.
    pub(crate) is_established: bool,
    /// Appends submitted and not yet answered.
    pub(crate) appends: usize,
    /// Reads running or waiting.
    pub(crate) reads: usize,
    pub(crate) subscriptions: usize,
    /// Other requests that are answered from another thread.
    pub(crate) others: usize,
    /// Reads and subscriptions by request id, the newest last.
    pub(crate) streams: Vec<(u64, Key)>,
    /// Where the next round of portions begins, so that each stream has its turn.
    pub(crate) next_pull: usize,
}

impl Session {
    /// Whether any answer but those of subscriptions is still to come.
    pub(crate) fn owes_answers(&self) -> bool {
        self.appends + self.reads + self.others > 0
    }

    /// Whether the idle timer rests: requests in flight and subscriptions count as activity.
    pub(crate) fn is_active(&self) -> bool {
        self.owes_answers() || self.subscriptions > 0
    }

    /// The stream that a cancel of `request_id` means: the newest one where a client used an id twice.
    pub(crate) fn find(&self, request_id: u64) -> Option<Key> {
        self.streams
            .iter()
            .rev()
            .find(|(id, _)| *id == request_id)
            .map(|&(_, key)| key)
    }

    /// A stream has ended.
    pub(crate) fn forget(&mut self, stream: Key, is_subscription: bool) {
        self.streams.retain(|&(_, key)| key != stream);
        if is_subscription {
            self.subscriptions -= 1;
        } else {
            self.reads -= 1;
        }
    }
}
