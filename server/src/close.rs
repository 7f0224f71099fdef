//! Why a connection was closed.

use crate::metrics::{Counter, Counters};

/// Each close has one reason, and each reason its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The peer closed, and got all its answers.
    Peer,
    /// An answer said `Connection: close`, or a handshake was refused.
    AfterAnswer,
    /// What the peer sent can't be understood or isn't allowed.
    BadInput,
    /// Reading or writing failed.
    Io,
    /// The head of a request, or a first frame, took too long.
    HeadTimeout,
    /// The body of a request made no progress.
    BodyTimeout,
    /// Nothing was asked for too long.
    IdleTimeout,
    /// The peer took nothing of its answer for too long.
    WriteTimeout,
    /// A frame stayed incomplete for too long.
    FrameTimeout,
    /// The server stops.
    Stopped,
}

impl CloseReason {
    /// The counter of this reason.
    pub(crate) fn counter(self, counters: &Counters) -> &Counter {
        match self {
            Self::Peer => &counters.closed_by_peer,
            Self::AfterAnswer => &counters.closed_after_answer,
            Self::BadInput => &counters.closed_bad_input,
            Self::Io => &counters.closed_io_error,
            Self::HeadTimeout => &counters.closed_head_timeout,
            Self::BodyTimeout => &counters.closed_body_timeout,
            Self::IdleTimeout => &counters.closed_idle_timeout,
            Self::WriteTimeout => &counters.closed_write_timeout,
            Self::FrameTimeout => &counters.closed_frame_timeout,
            Self::Stopped => &counters.closed_stopped,
        }
    }
}
