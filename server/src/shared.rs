//! What all workers of a server see: settings, listeners' services, counters, and where jobs go.
//!
//! All of it is read-only but for the counters. The connection counts are written when a connection comes or goes, never
//! per request.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crate::config::Config;
use crate::executor::Executor;
use crate::handler::{FrameService, Handler};
use crate::metrics::Counters;
use crate::proto::http::HttpTimeouts;

/// Which protocols a listener takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// The first byte tells.
    Auto,
    Http,
    Frames,
}

/// What answers a listener's connections.
#[derive(Clone)]
pub(crate) enum Service {
    Handler(Arc<dyn Handler>),
    Frames(Arc<dyn FrameService>),
    #[cfg(feature = "store")]
    Store,
}

/// A listener's protocol and service.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) speaks: Speaks,
    pub(crate) service: Service,
    /// Whether only this machine can reach it; requests for other hosts' names are refused there then.
    #[cfg_attr(
        not(feature = "store"),
        expect(dead_code, reason = "only the store has browsers to fear")
    )]
    pub(crate) is_loopback: bool,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site")
            .field("speaks", &self.speaks)
            .finish_non_exhaustive()
    }
}

/// What the workers tell one another of their room.
///
/// Who gives a place back looks for paused workers afterwards, and who pauses looks for places afterwards: with
/// sequentially consistent operations at least one of them sees the other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Room {
    /// Connections, and places counted for newcomers on their way.
    open: AtomicUsize,
    /// The worker has stopped accepting, since neither it nor any other had room.
    pub(crate) is_paused: AtomicBool,
}

impl Room {
    /// Connections, those on their way included.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Counts one connection more, unless there are `max`.
    pub(crate) fn take(&self, max: usize) -> bool {
        let more = |open| (open < max).then_some(open + 1);
        let order = Ordering::SeqCst;
        self.open.fetch_update(order, order, more).is_ok()
    }

    /// Counts one connection less.
    pub(crate) fn give_back(&self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What all workers see.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) http_timeouts: HttpTimeouts,
    pub(crate) sites: Vec<Site>,
    pub(crate) counters: Vec<Counters>,
    pub(crate) rooms: Vec<Room>,
    pub(crate) executor: Box<dyn Executor>,
    #[cfg_attr(
        not(feature = "store"),
        expect(dead_code, reason = "only the store's statistics tell it")
    )]
    pub(crate) started: Instant,
    #[cfg(feature = "store")]
    pub(crate) store: Option<crate::worker::StoreShared>,
}

impl Shared {
    /// Connections open over all workers. Not the sum of the rooms, which count places for newcomers that never come.
    pub(crate) fn open_connections(&self) -> u64 {
        self.counters
            .iter()
            .map(|counters| counters.connections_open.value())
            .sum()
    }

    /// The bound on them; `None` where each worker has its own.
    pub(crate) fn connections_max(&self) -> Option<u64> {
        #[cfg(feature = "store")]
        if let Some(store) = &self.store {
            let max = store.config.connections_max;
            return Some(if max == 0 { u64::MAX } else { max as u64 });
        }
        None
    }
}
