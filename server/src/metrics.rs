//! Counters of what a server did, one set a worker, added up when somebody asks.
//!
//! Each worker writes its own set only, so that counting is never contended.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that one worker writes and anyone reads.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }

    pub(crate) fn decrement(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One worker's counters. Aligned to a pair of cache lines, so that no two workers write to the same.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Counters {
            $($(#[$doc])* pub(crate) $name: Counter,)*
        }

        /// What all workers of a server counted, added up.
        ///
        /// Gauges (`…_open`, `…_live`) rise and fall, all others only rise.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Totals {
            pub(crate) fn of<'a>(workers: impl IntoIterator<Item = &'a Counters>) -> Self {
                let mut totals = Self::default();
                for worker in workers {
                    $(totals.$name = totals.$name.wrapping_add(worker.$name.value());)*
                }
                totals
            }
        }
    };
}

counters! {
    /// Connections accepted.
    connections_accepted,
    /// Connections open now.
    connections_open,
    /// Connections closed at once because the limit was reached.
    connections_refused,
    /// Connections closed because the peer closed, orderly.
    closed_by_peer,
    /// Connections closed after an answer that said so.
    closed_after_answer,
    /// Connections closed because of what the peer sent.
    closed_bad_input,
    /// Connections closed because reading or writing failed.
    closed_io_error,
    /// Connections closed by the timer of a request's head, or of the first frame.
    closed_head_timeout,
    /// Connections closed by the timer of a request's body.
    closed_body_timeout,
    /// Connections closed by the timer between requests.
    closed_idle_timeout,
    /// Connections closed because the peer took nothing for too long.
    closed_write_timeout,
    /// Connections closed because a frame stayed incomplete for too long.
    closed_frame_timeout,
    /// Connections closed because the server stopped.
    closed_stopped,
    /// HTTP requests read to their end.
    http_requests,
    /// Frames read to their end.
    frames_read,
    /// HTTP requests refused by the parser.
    parse_errors,
    /// Answers with a status below 400.
    answers_ok,
    /// Answers with a status from 400 to 499.
    answers_client_error,
    /// Answers with a status of 500 and above.
    answers_server_error,
    /// Handlers that panicked.
    handler_panics,
    /// Requests answered 503 because the handler queue was full.
    handler_queue_full,
    /// Bytes read from sockets.
    bytes_read,
    /// Bytes written to sockets.
    bytes_written,
    /// Appends handed to the store.
    appends,
    /// Appends that waited because the worker's share of the store's queue was in use.
    appends_stalled,
    /// Subscriptions live now, over both protocols.
    subscriptions_live,
}
