//! A connection: its socket, what came and wasn't used yet, its protocol, and what is still to be sent.
//!
//! This and `worker/` are the only places that read from sockets and write to them.

use std::io::{self, Read};
use std::net::Shutdown;
use std::time::Instant;

use pumice_conn_pool::{Buffer, BufferPool, Reuse};
use pumice_event_loop::{Ready, Stream};

use crate::close::CloseReason;
use crate::outbox::{Flushed, Outbox};
use crate::proto::frames::Frames;
use crate::proto::http::Http;

/// The deadline lists of the connection pool. A connection is on the list of whichever of its timers is due first.
pub(crate) mod timer {
    pub(crate) const HEAD: usize = 0;
    pub(crate) const BODY: usize = 1;
    pub(crate) const IDLE: usize = 2;
    pub(crate) const WRITE: usize = 3;
    pub(crate) const FRAME: usize = 4;
    pub(crate) const LINGER: usize = 5;
    #[cfg(feature = "store")]
    pub(crate) const HEARTBEAT: usize = 6;
    /// How many there are.
    pub(crate) const LISTS: usize = 7;
}

/// What a connection speaks.
#[derive(Debug, Default)]
pub(crate) enum Protocol {
    /// Not told yet: its first byte will.
    #[default]
    Unknown,
    Http(Http),
    Frames(Box<FrameConn>),
}

impl Protocol {
    /// The peer has taken all that it was sent, and the timers that rested until then start anew.
    fn restart_timers(&mut self, now: Instant) {
        match self {
            Self::Unknown => {}
            Self::Http(http) => http.restart_timer(now),
            Self::Frames(conn) => conn.frames.restart_timers(now),
        }
    }
}

/// A connection of frames, and what the store has in flight for it.
#[derive(Debug)]
pub(crate) struct FrameConn {
    pub(crate) frames: Frames,
    #[cfg(feature = "store")]
    pub(crate) session: crate::store::session::Session,
}

/// How far a connection is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Life {
    #[default]
    Open,
    /// Nothing more is taken from the peer; closes when the outbox is empty.
    Closing(CloseReason),
    /// The writing side is shut; what still comes is thrown away, so that the peer can read its answer.
    Lingering {
        reason: CloseReason,
        bytes_left: usize,
    },
}

/// One connection. `S` is the platform's stream.
#[derive(Debug)]
pub(crate) struct Conn<S> {
    pub(crate) stream: Option<S>,
    /// Which of the server's listeners it came by.
    pub(crate) site: usize,
    /// Readiness that hasn't been used up; nobody reports it again.
    pub(crate) ready: Ready,
    /// The peer has shut its writing side, and everything before that has been read.
    pub(crate) has_ended: bool,
    /// Whether the loop watches the socket yet.
    pub(crate) is_registered: bool,
    /// Bytes behind the last request were thrown away: the peer may be sending more of them.
    pub(crate) has_dropped_input: bool,
    /// Whether the connection is queued to be settled at the end of the turn.
    pub(crate) is_queued: bool,
    pub(crate) life: Life,
    pub(crate) input: Buffer,
    pub(crate) protocol: Protocol,
    pub(crate) out: Outbox,
    /// When it was accepted, or, for one that lingers, when that began.
    pub(crate) since: Instant,
    /// When the peer last took bytes, while some wait for it.
    pub(crate) blocked_since: Option<Instant>,
    /// What the store has in flight for an HTTP connection, and an append that waits for room.
    #[cfg(feature = "store")]
    pub(crate) store: crate::worker::StoreSide,
}

impl<S> Default for Conn<S> {
    fn default() -> Self {
        Self {
            stream: None,
            site: 0,
            ready: Ready::default(),
            has_ended: false,
            is_registered: false,
            has_dropped_input: false,
            is_queued: false,
            life: Life::Open,
            input: Buffer::default(),
            protocol: Protocol::Unknown,
            out: Outbox::default(),
            since: Instant::now(),
            blocked_since: None,
            #[cfg(feature = "store")]
            store: crate::worker::StoreSide::default(),
        }
    }
}

impl<S> Reuse for Conn<S> {
    fn reset(&mut self) {
        // Everything goes, the buffers too: they are the worker's, which takes them back before.
        let since = self.since;
        *self = Self {
            since,
            ..Self::default()
        };
    }
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// This many bytes.
    Bytes(usize),
    /// Nothing now.
    Blocked,
    /// The peer has shut its writing side.
    Ended,
}

impl<S: Stream> Conn<S> {
    /// Reads into `buf` once and keeps the readiness true.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) fn read(&mut self, buf: &mut [u8]) -> io::Result<Filled> {
        let Some(stream) = &mut self.stream else {
            return Ok(Filled::Blocked);
        };
        let filled = read_once(stream, buf, &mut self.ready)?;
        self.has_ended |= filled == Filled::Ended;
        Ok(filled)
    }

    /// Reads into the connection's own input, which grows by `room` bytes at most.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) fn read_more(
        &mut self,
        room: usize,
        buffers: &mut BufferPool,
    ) -> io::Result<Filled> {
        let Some(stream) = &mut self.stream else {
            return Ok(Filled::Blocked);
        };
        buffers.reserve(&mut self.input, room);
        let filled = read_once(stream, self.input.spare(), &mut self.ready)?;
        if let Filled::Bytes(n) = filled {
            self.input.fill(n);
        }
        self.has_ended |= filled == Filled::Ended;
        Ok(filled)
    }

    /// Sends what the socket takes. Returns the bytes it took.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) fn flush(&mut self, now: Instant) -> io::Result<usize> {
        if self.out.is_empty() {
            self.blocked_since = None;
            return Ok(0);
        }
        let Some(stream) = self.stream.as_mut().filter(|_| self.ready.is_writable()) else {
            self.blocked_since.get_or_insert(now);
            return Ok(0);
        };
        let (flushed, sent) = self.out.flush(stream)?;
        match flushed {
            Flushed::Empty => {
                if self.blocked_since.take().is_some() {
                    self.protocol.restart_timers(now);
                }
            }
            Flushed::Blocked => {
                self.ready.remove(Ready::WRITABLE);
                if sent > 0 {
                    self.blocked_since = Some(now);
                } else {
                    self.blocked_since.get_or_insert(now);
                }
            }
        }
        Ok(sent)
    }

    /// Shuts the writing side, so that the peer sees the end of the answers.
    pub(crate) fn shutdown_write(&mut self) {
        if let Some(stream) = &self.stream {
            // A socket that is gone already needs no end.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}

impl<S> Conn<S> {
    pub(crate) fn is_open(&self) -> bool {
        self.life == Life::Open
    }
}

fn read_once(stream: &mut impl Read, buf: &mut [u8], ready: &mut Ready) -> io::Result<Filled> {
    loop {
        match stream.read(buf) {
            Ok(0) => {
                ready.remove(Ready::READABLE);
                return Ok(Filled::Ended);
            }
            Ok(n) => {
                // A short read means an empty receive buffer, and a new edge when more comes; but not when the peer
                // has shut its side: the end must still be read, and no edge announces it again.
                if n < buf.len() && !ready.is_read_closed() {
                    ready.remove(Ready::READABLE);
                }
                return Ok(Filled::Bytes(n));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                ready.remove(Ready::READABLE);
                return Ok(Filled::Blocked);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
