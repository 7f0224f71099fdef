//! How rough the simulated world is.

use std::time::Duration;

/// How rough the simulated world is. Shares are out of 1 000 and drawn anew for each call or round.
///
/// Whatever is set, the world keeps to what an edge-triggered system promises: each change is told, sooner or later,
/// and bytes arrive complete and in order unless a connection is reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// A read or write moves less than it could.
    pub cut: u32,
    /// A read or write says `WouldBlock` though it could move something; the edge comes later.
    pub deny: u32,
    /// The network moves something between two calls of the same turn.
    pub meanwhile: u32,
    /// What is on its way stays there for another round.
    pub delay: u32,
    /// A socket's readiness is told by a later poll, behind that of others.
    pub hold: u32,
    /// A poll shows a watched stream as ready that isn't, or returns with nothing. Such events also hide it when
    /// code misses a real one, so some worlds should be without.
    pub spurious: u32,
    /// A poll shows a token that was deregistered some time ago.
    pub stale: u32,
    /// One stream's readiness comes as two events of the same poll, as kqueue has it.
    pub split: u32,
    /// A wait or an accept is interrupted by a signal.
    pub interrupt: u32,
    /// A newcomer is gone before it is accepted.
    pub abort: u32,
    /// The most bytes the network moves at once in one direction.
    pub piece_bytes_max: usize,
    /// The largest send and receive buffer of a stream; each gets its own, from 1 byte to this,
    /// or all get this if nothing is [cut](Self::cut).
    pub buffer_bytes_max: usize,
    /// The most by which the clock moves from one round to the next; never less than a microsecond.
    pub latency_max: Duration,
}

impl Faults {
    /// A world without faults: everything arrives at once, in order and whole, and time hardly passes but by
    /// waiting.
    #[must_use]
    pub const fn calm() -> Self {
        Self {
            cut: 0,
            deny: 0,
            meanwhile: 0,
            delay: 0,
            hold: 0,
            spurious: 0,
            stale: 0,
            split: 0,
            interrupt: 0,
            abort: 0,
            piece_bytes_max: usize::MAX,
            buffer_bytes_max: 65_536,
            latency_max: Duration::ZERO,
        }
    }

    /// All that happens to well-behaved peers on a bad day, often. No newcomer is lost, so that each can expect to
    /// be served: set [`abort`](Self::abort) for that.
    #[must_use]
    pub const fn rough() -> Self {
        Self {
            cut: 400,
            deny: 100,
            meanwhile: 300,
            delay: 400,
            hold: 300,
            spurious: 50,
            stale: 100,
            split: 200,
            interrupt: 50,
            abort: 0,
            piece_bytes_max: 4_096,
            buffer_bytes_max: 8_192,
            latency_max: Duration::from_micros(200),
        }
    }
}

impl Default for Faults {
    /// [`rough`](Self::rough).
    fn default() -> Self {
        Self::rough()
    }
}
