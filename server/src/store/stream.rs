//! Reads and subscriptions that are pulled as their clients take them.
//!
//! ```text
//!          pull            the portion is done: more
//!   Ready ───────▶ Running ────────────────────▶ Ready      (until the outbox has room)
//!                     │ the portion is done: end
//!                     ├──────────▶ ended                     (a read)
//!                     └──────────▶ Live                      (a subscription at the live edge)
//!                                   │ a batch it can't take, or a gap before it
//!                                   └──────────▶ Ready
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pumice_conn_pool::{Key, Reuse};
use tephra::{Position, ReadHandle};

use super::cursor::{Cursor, Flow, Portion};
use super::format::{Encoder, Format};

/// Where a stream's bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Frames with this request id.
    Wire { request_id: u64 },
    /// The body of the answer at hand.
    Http,
}

/// A cursor and the shape of what it gives.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) cursor: Cursor,
    pub(crate) format: Format,
}

#[derive(Debug, Default)]
pub(crate) enum State {
    #[default]
    Ended,
    /// Waits for room in the outbox.
    Ready(Box<Reading>),
    /// On a read thread.
    Running,
    /// Takes what the tail brings.
    Live(Box<Reading>),
}

/// One read or subscription.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) conn: Key,
    pub(crate) output: Output,
    pub(crate) is_subscription: bool,
    pub(crate) state: State,
    /// All that matches up to here has been queued. Only kept for subscriptions.
    pub(crate) place: Position,
    /// Whether the client knows that it is at the live edge.
    pub(crate) is_announced: bool,
    /// Whether the head of an HTTP answer has been queued.
    pub(crate) has_head: bool,
    /// Nobody waits any more for what is being read.
    pub(crate) is_over: Arc<AtomicBool>,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            conn: Key::from_bits(0),
            output: Output::Http,
            is_subscription: false,
            state: State::Ended,
            place: Position::ZERO,
            is_announced: false,
            has_head: false,
            is_over: Arc::default(),
        }
    }
}

impl Reuse for Stream {
    fn reset(&mut self) {
        *self = Self::default();
    }
}

/// A portion to be read, on a read thread.
#[derive(Debug)]
pub(crate) struct ReadJob {
    pub(crate) stream: Key,
    pub(crate) reading: Box<Reading>,
    /// Bytes after which the portion is large enough; one event more may come.
    pub(crate) budget: usize,
    /// Set when the stream has ended: the portion need not be read.
    pub(crate) is_over: Arc<AtomicBool>,
}

/// A portion that has been read.
#[derive(Debug)]
pub(crate) struct ReadDone {
    pub(crate) stream: Key,
    pub(crate) bytes: Vec<u8>,
    pub(crate) outcome: Result<(Box<Reading>, Portion), ReadFault>,
}

/// Why a read can't go on. The text is for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadFault {
    /// The log can't be read.
    #[error("{0}")]
    Failed(String),
    /// An event was stored under a greater frame limit than today's: a client would refuse its frame, and end the
    /// connection with all that is on it.
    #[error("the event at position {position} doesn't fit a frame of {max} bytes")]
    TooLong { position: u64, max: usize },
}

impl ReadJob {
    /// Reads and encodes. Blocks on the disk and while the engine scans.
    pub(crate) fn run(self, reader: &ReadHandle) -> ReadDone {
        let Self {
            stream,
            mut reading,
            budget,
            is_over,
        } = self;
        let mut bytes = Vec::new();
        // Whoever asked has cancelled or gone while this waited: the threads are for those who are still there.
        if is_over.load(Ordering::Relaxed) {
            let outcome = Err(ReadFault::Failed("the read was cancelled".into()));
            return ReadDone {
                stream,
                bytes,
                outcome,
            };
        }
        let Reading { cursor, format } = &mut *reading;
        let mut encoder = Encoder::new(format, &mut bytes, budget);
        let portion = cursor.portion(reader, |position, event| {
            match encoder.put(position, event) {
                Flow::More if is_over.load(Ordering::Relaxed) => Flow::Pause,
                flow => flow,
            }
        });
        let portion = match (encoder.take_fault(), portion) {
            (Some(fault), _) => Err(fault),
            (None, Err(error)) => Err(ReadFault::Failed(error.to_string())),
            (None, Ok(portion)) => Ok(portion),
        };
        match portion {
            Ok(Portion::End { watermark }) => encoder.end(watermark),
            Ok(Portion::More) | Err(_) => encoder.pause(),
        }
        let outcome = portion.map(|portion| (reading, portion));
        ReadDone {
            stream,
            bytes,
            outcome,
        }
    }
}

impl Reading {
    pub(crate) fn new(cursor: Cursor, format: Format) -> Self {
        Self { cursor, format }
    }
}
