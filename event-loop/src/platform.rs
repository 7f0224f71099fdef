//! What the loop needs from the world: sockets, a clock and a way to be woken.
//!
//! [`EventLoop`](crate::EventLoop) is generic over [`Platform`] and dispatches statically, so the same code runs on
//! the operating system ([`Mio`](crate::Mio)) and, with the feature `sim`, in a deterministic simulation.

use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use crate::Ready;

/// A connection: non-blocking bytes in both directions.
///
/// Reads and writes say [`WouldBlock`](io::ErrorKind::WouldBlock) when they can't go on; nothing here blocks.
pub trait Stream: io::Read + io::Write + fmt::Debug {
    /// Ends one direction or both.
    ///
    /// # Errors
    /// As the system says; `NotConnected` if the peer is gone already.
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;

    /// Whether small writes go out at once (`TCP_NODELAY`); on for accepted streams. Nothing happens on streams
    /// that aren't TCP.
    ///
    /// # Errors
    /// As the system says.
    fn set_nodelay(&self, nodelay: bool) -> io::Result<()>;

    /// Turns TCP keep-alive on: probes start after `idle` without traffic and are repeated every `interval`, both
    /// in whole seconds. Nothing happens on streams that aren't TCP.
    ///
    /// # Errors
    /// As the system says.
    fn set_keepalive(&self, idle: Duration, interval: Duration) -> io::Result<()>;

    /// Makes the coming drop reset the connection instead of finishing it in order: for a peer that isn't to get
    /// anything more. Nothing happens on streams that aren't TCP.
    ///
    /// # Errors
    /// As the system says.
    fn set_reset_on_drop(&self) -> io::Result<()>;

    /// Who is at the other end.
    fn peer(&self) -> Peer;
}

/// Who is at the other end of a [`Stream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Peer {
    /// A TCP address. An IPv4 client of a dual-stack listener is shown as IPv4.
    Tcp(SocketAddr),
    /// A process on this machine.
    Unix,
}

impl Peer {
    /// The TCP address, if there is one.
    #[must_use]
    pub const fn addr(self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(addr) => Some(addr),
            Self::Unix => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => addr.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// Wakes a loop from any thread.
pub trait Wake: fmt::Debug + Send + Sync + Clone + 'static {
    /// Makes the loop's current poll return, or the next one if none is running. Never blocks and never fails;
    /// does nothing once the loop is gone.
    fn wake(&self);
}

/// Sockets, a clock and a wake-up: what [`EventLoop`](crate::EventLoop) runs on.
///
/// An implementation is edge-triggered: it tells each change once, in [`wait`](Self::wait), and what holds at the
/// time of registering counts as a change.
pub trait Platform: fmt::Debug + Sized + 'static {
    /// Where connections come in.
    type Listener: fmt::Debug;
    /// One connection.
    type Stream: Stream + Send;
    /// Wakes this platform from another thread.
    type Waker: Wake;

    /// Watches `stream` for everything, under `token`.
    ///
    /// # Errors
    /// As the system says: no memory, or too many watches. Nothing is watched then.
    fn register(&mut self, stream: &mut Self::Stream, token: u64) -> io::Result<()>;

    /// Stops watching `stream`: no later [`wait`](Self::wait) reports it.
    ///
    /// # Errors
    /// `NotFound` if it isn't watched.
    fn deregister(&mut self, stream: &mut Self::Stream) -> io::Result<()>;

    /// Watches `listener` for newcomers, under `token`.
    ///
    /// # Errors
    /// As for [`register`](Self::register).
    fn register_listener(&mut self, listener: &mut Self::Listener, token: u64) -> io::Result<()>;

    /// Stops watching `listener`.
    ///
    /// # Errors
    /// `NotFound` if it isn't watched.
    fn deregister_listener(&mut self, listener: &mut Self::Listener) -> io::Result<()>;

    /// Takes one newcomer from the queue, non-blocking and close-on-exec.
    ///
    /// # Errors
    /// `WouldBlock` when nobody is waiting; else as the system's `accept` says.
    fn accept(&mut self, listener: &mut Self::Listener) -> io::Result<Self::Stream>;

    /// As [`accept`](Self::accept), on the descriptor held in reserve for the moment when there is no other. The
    /// caller drops the stream soon and then calls [`restock`](Self::restock).
    ///
    /// # Errors
    /// As for `accept`, and `EMFILE` when the reserve isn't there.
    fn accept_on_reserve(&mut self, listener: &mut Self::Listener) -> io::Result<Self::Stream>;

    /// Puts the reserved descriptor back, if it can.
    fn restock(&mut self);

    /// Waits until something is ready, a wake-up came or `timeout` has passed (`None`: for ever), and tells each
    /// ready token to `on_ready`. May return early with nothing.
    ///
    /// # Errors
    /// `Interrupted` by a signal; anything else is final.
    fn wait(
        &mut self,
        timeout: Option<Duration>,
        on_ready: impl FnMut(u64, Ready),
    ) -> io::Result<()>;

    /// The time on a clock that never jumps or goes back.
    fn now(&self) -> Instant;

    /// What wakes [`wait`](Self::wait).
    fn waker(&self) -> Self::Waker;
}
