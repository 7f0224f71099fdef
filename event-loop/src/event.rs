//! What one turn of the loop tells: events of streams and listeners, and the outcome of an accept.

use crate::Ready;

/// Something that happened since the last poll.
///
/// Wake-ups are not shown: drain every [`Mailbox`](crate::Mailbox) once per turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The stream that was registered with `token` can do what `ready` says.
    ///
    /// An event that was collected before its stream was deregistered still comes: a token that carries a
    /// generation then finds nobody.
    Stream {
        /// As given to [`EventLoop::register`](crate::EventLoop::register).
        token: u64,
        /// Told once. Never empty.
        ready: Ready,
    },
    /// Somebody may be waiting at the listener: call [`EventLoop::accept`](crate::EventLoop::accept).
    ///
    /// Unlike a stream's, this event comes again with every poll until `accept` has said
    /// [`Accept::Empty`] once.
    Listener {
        /// As returned by [`EventLoop::listen`](crate::EventLoop::listen).
        id: ListenerId,
    },
}

/// Names a listener of one loop. The id of a closed listener is never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// The outcome of one [`EventLoop::accept`](crate::EventLoop::accept).
#[derive(Debug)]
#[must_use]
pub enum Accept<S> {
    /// A new connection. It is non-blocking and not registered yet: it can be read and written first, and only
    /// what lives on needs to be registered.
    Stream(S),
    /// Nobody is waiting; the next newcomer makes an event.
    Empty,
    /// This turn's budget is used up and others may be waiting: the next poll doesn't block and shows the
    /// listener again.
    Busy,
    /// The process or the system has no descriptor (or memory) left, and the listener rests until a deadline. The
    /// poll wakes for it and shows the listener again. Until then this costs nothing.
    BackedOff,
}

/// What a listener has done so far, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerStats {
    /// Connections handed out.
    pub accepted: u64,
    /// Newcomers that were closed at once, by way of the reserved descriptor, because none was left for them.
    pub shed: u64,
    /// Newcomers that were gone before they were accepted.
    pub aborted: u64,
    /// How often the listener backed off.
    pub back_offs: u64,
}
