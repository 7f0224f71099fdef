//! A connection that speaks HTTP/1.1: requests in, answers out, one at a time and in order.
//!
//! ```text
//!              poll: the head is whole, its body isn't
//!       ┌────────┐ ─────────────────────────────▶ ┌────────┐
//!  ────▶│  Head  │                                │  Body  │
//!       └────────┘ ◀─────┐                        └────────┘
//!        │      │        │ respond, end_stream        │ poll: the body is whole
//!        │      │ poll: the request is whole          ▼
//!        │      └───────────────────────────────▶ ┌────────┐ begin_stream ┌───────────┐
//!        │ poll: an error                         │  Busy  │─────────────▶│ Streaming │
//!        ▼                                        └────────┘              └───────────┘
//!   ┌─────────┐    respond, end_stream: not to be kept │                        │
//!   │ Closing │ ◀──────────────────────────────────────┴────────────────────────┘
//!   └─────────┘
//! ```

use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pumice_http_parse::{
    BodyDecoder, Decoded, Error, Framing, Head, HeadParser, Limits, Method, Version,
};

use crate::clock::DATE_LEN;
use crate::outbox::{Chunk, Outbox};
use crate::request::OwnedRequest;
use crate::response::{Body, Response};
use crate::status;

/// A body of this size or more goes out from where it lies; below it, copying is cheaper than a second write.
const COPY_BYTES_MAX: usize = 4 * 1024;

/// `tchar` of RFC 9110 §5.6.2.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

pub(crate) fn is_field_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| is_token_byte(byte))
}

/// What came of some input.
#[derive(Debug)]
pub(crate) enum Step {
    /// `consumed` bytes are used up and more are needed.
    More { consumed: usize },
    /// The client waits for `100 Continue` before it sends the body: send it, and ask again.
    Continue { consumed: usize },
    /// A whole request lies in the input: its head in `..head_len`, its body in `body`.
    Request { head_len: usize, body: Range<usize> },
    /// A request that came in pieces is whole: [`Http::take_gathered`] has it.
    Gathered { consumed: usize },
    /// The input is no request that can be served: answer with the error's status, and close.
    Reject { error: Error },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Body,
    Busy,
    Streaming { chunked: bool },
    Closing,
}

/// A request whose body isn't there yet.
#[derive(Debug)]
struct Gather {
    request: Box<OwnedRequest>,
    decoder: BodyDecoder,
}

/// Which timer runs, see [`Http::timer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpTimer {
    Head,
    Body,
    Idle,
}

/// The HTTP state of a connection.
#[derive(Debug)]
pub(crate) struct Http {
    state: State,
    /// Whether bytes of the next head have come.
    started: bool,
    /// Whether the connection may serve another request after this one.
    keep_alive: bool,
    /// Whether the client has said itself that it sends no further request.
    is_last_request: bool,
    is_head_request: bool,
    version: Version,
    parser: HeadParser,
    /// What was parsed of a head that isn't whole yet. Elsewhere the worker's own is used.
    partial: Option<Box<Head>>,
    gather: Option<Box<Gather>>,
    requests: u32,
    /// When the running timer started: the last answer, the first byte of the head, or the last bytes of the body.
    since: Instant,
}

impl Http {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            state: State::Head,
            started: false,
            keep_alive: true,
            is_last_request: false,
            is_head_request: false,
            version: Version::Http11,
            parser: HeadParser::default(),
            partial: None,
            gather: None,
            requests: 0,
            since: now,
        }
    }

    /// Whether input can be used now; else it waits until the request at hand is answered.
    pub(crate) fn wants_input(&self) -> bool {
        matches!(self.state, State::Head | State::Body)
    }

    /// Whether a request is being answered.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.state, State::Busy | State::Streaming { .. })
    }

    /// Whether nothing of a request has come since the last answer.
    pub(crate) fn is_idle(&self) -> bool {
        self.state == State::Head && !self.started
    }

    /// Whether the last answer was the last one.
    pub(crate) fn is_closing(&self) -> bool {
        self.state == State::Closing
    }

    /// Whether the client has said itself that it sends no further request.
    pub(crate) fn is_last_request(&self) -> bool {
        self.is_last_request
    }

    /// Requests read to their end.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// The timer that runs now and since when; none while a request is being answered.
    pub(crate) fn timer(&self) -> Option<(HttpTimer, Instant)> {
        match self.state {
            State::Head if self.started => Some((HttpTimer::Head, self.since)),
            State::Head => Some((HttpTimer::Idle, self.since)),
            State::Body => Some((HttpTimer::Body, self.since)),
            State::Busy | State::Streaming { .. } | State::Closing => None,
        }
    }

    /// The running timer starts anew: it rested, since the peer was still taking an answer.
    pub(crate) fn restart_timer(&mut self, now: Instant) {
        self.since = now;
    }

    /// Takes `input`, the bytes not yet consumed, and says what came of it. `head` is scratch space of the worker; on
    /// [`Step::Request`] it holds the head.
    pub(crate) fn poll(
        &mut self,
        input: &[u8],
        head: &mut Head,
        limits: &Limits,
        now: Instant,
    ) -> Step {
        match self.state {
            State::Head => self.poll_head(input, head, limits, now),
            State::Body => self.poll_body(input, 0, limits, now),
            State::Busy | State::Streaming { .. } | State::Closing => Step::More { consumed: 0 },
        }
    }

    fn poll_head(&mut self, input: &[u8], head: &mut Head, limits: &Limits, now: Instant) -> Step {
        if input.is_empty() {
            return Step::More { consumed: 0 };
        }
        if let Some(partial) = self.partial.as_deref_mut() {
            std::mem::swap(head, partial);
        }
        if !self.started {
            self.started = true;
            self.since = now;
        }
        let head_len = match self.parser.parse(input, limits, head) {
            Err(error) => return self.reject(error),
            Ok(None) => {
                std::mem::swap(head, self.partial.get_or_insert_default());
                return Step::More { consumed: 0 };
            }
            Ok(Some(len)) => len,
        };
        self.partial = None;
        self.version = head.version();
        self.keep_alive = head.keep_alive();
        self.is_last_request = !self.keep_alive;
        self.is_head_request = head.method() == Method::Head;
        let have = input.len() - head_len;
        let needed = match head.body() {
            Framing::None => Some(0),
            Framing::Length(len) => usize::try_from(len).ok(),
            Framing::Chunked => None,
        };
        if let Some(needed) = needed.filter(|&needed| needed <= have) {
            self.begin_answer();
            return Step::Request {
                head_len,
                body: head_len..head_len + needed,
            };
        }
        let decoder = BodyDecoder::new(head.body());
        let waits_for_continue =
            head.expects_continue() && have == 0 && self.version == Version::Http11;
        let mut request = Box::<OwnedRequest>::default();
        request.copy(&input[..head_len], head, &[]);
        self.gather = Some(Box::new(Gather { request, decoder }));
        self.state = State::Body;
        self.since = now;
        if waits_for_continue {
            return Step::Continue { consumed: head_len };
        }
        self.poll_body(input, head_len, limits, now)
    }

    /// Decodes body bytes from `input[from..]` into the gathered request.
    fn poll_body(&mut self, input: &[u8], from: usize, limits: &Limits, now: Instant) -> Step {
        let Some(gather) = self.gather.as_deref_mut() else {
            unreachable!("a request is gathered in state Body")
        };
        let mut consumed = from;
        loop {
            match gather.decoder.decode(&input[consumed..], limits) {
                Err(error) => return self.reject(error),
                Ok(Decoded::Data {
                    data,
                    consumed: used,
                }) => {
                    let data = consumed + data.start..consumed + data.end;
                    gather.request.bytes.extend_from_slice(&input[data]);
                    consumed += used;
                    self.since = now;
                }
                Ok(Decoded::More { consumed: used }) => {
                    return Step::More {
                        consumed: consumed + used,
                    };
                }
                Ok(Decoded::End { consumed: used }) => {
                    gather.request.body.end = gather.request.bytes.len();
                    self.begin_answer();
                    return Step::Gathered {
                        consumed: consumed + used,
                    };
                }
            }
        }
    }

    /// The request of [`Step::Gathered`].
    pub(crate) fn take_gathered(&mut self) -> Option<Box<OwnedRequest>> {
        self.gather.take().map(|gather| gather.request)
    }

    fn begin_answer(&mut self) {
        self.state = State::Busy;
        self.requests = self.requests.saturating_add(1);
    }

    fn reject(&mut self, error: Error) -> Step {
        self.refuse();
        Step::Reject { error }
    }

    /// Prepares for an answer after which the connection closes, whatever has come of a request.
    pub(crate) fn refuse(&mut self) {
        self.state = State::Busy;
        self.keep_alive = false;
        self.gather = None;
        self.partial = None;
    }

    /// The connection is to close after the answer at hand.
    pub(crate) fn close_after_answer(&mut self) {
        self.keep_alive = false;
    }

    /// Writes the answer to the request at hand and turns to the next one.
    pub(crate) fn respond(
        &mut self,
        response: &mut Response,
        date: &[u8; DATE_LEN],
        out: &mut Outbox,
        now: Instant,
    ) {
        debug_assert_eq!(self.state, State::Busy);
        self.keep_alive &= !response.close;
        let body_len = response.body.bytes().len();
        let sends_body =
            body_len > 0 && !self.is_head_request && !status::is_bodiless(response.status);
        let copies = sends_body && body_len < COPY_BYTES_MAX;
        out.tail(|out| {
            self.put_head(response, Some(body_len), date, out);
            if copies {
                out.extend_from_slice(response.body.bytes());
            }
        });
        if sends_body && !copies {
            out.bulk(match std::mem::take(&mut response.body) {
                Body::Empty => Chunk::default(),
                Body::Static(bytes) => Chunk::Shared(Bytes::from_static(bytes)),
                Body::Owned(bytes) => Chunk::Owned(bytes),
                Body::Shared(bytes) => Chunk::Shared(bytes),
            });
        }
        self.end_answer(now);
    }

    fn end_answer(&mut self, now: Instant) {
        self.since = now;
        self.started = false;
        self.state = if self.keep_alive {
            State::Head
        } else {
            State::Closing
        };
    }

    /// Writes a status line and the fields. `length` is the body's; `None` for a body that comes in chunks.
    fn put_head(
        &self,
        response: &Response,
        length: Option<usize>,
        date: &[u8; DATE_LEN],
        out: &mut Vec<u8>,
    ) {
        put_status_line(out, response.status);
        out.extend_from_slice(b"Date: ");
        out.extend_from_slice(date);
        if let Some(content_type) = response.content_type {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(content_type.as_bytes());
        }
        match length {
            // RFC 9110 §8.6: no length with 204; with 304 it would describe another answer.
            _ if status::is_bodiless(response.status) => {}
            Some(length) => {
                out.extend_from_slice(b"\r\nContent-Length: ");
                out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            }
            None if self.version == Version::Http11 => {
                out.extend_from_slice(b"\r\nTransfer-Encoding: chunked");
            }
            None => {}
        }
        match (self.keep_alive, self.version) {
            (false, _) => out.extend_from_slice(b"\r\nConnection: close"),
            (true, Version::Http10) => out.extend_from_slice(b"\r\nConnection: keep-alive"),
            (true, Version::Http11) => {}
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&response.fields);
        out.extend_from_slice(b"\r\n");
    }
}

/// Answers whose body comes in pieces.
#[cfg_attr(
    not(feature = "store"),
    expect(dead_code, reason = "only the store streams answers")
)]
impl Http {
    pub(crate) fn is_streaming(&self) -> bool {
        matches!(self.state, State::Streaming { .. })
    }

    /// Writes the head of an answer whose body comes in chunks. `false`: it was a HEAD request and all is said.
    pub(crate) fn begin_stream(
        &mut self,
        response: &Response,
        date: &[u8; DATE_LEN],
        out: &mut Outbox,
        now: Instant,
    ) -> bool {
        debug_assert_eq!(self.state, State::Busy);
        let chunked = self.version == Version::Http11;
        // An HTTP/1.0 client knows the end of such a body by the end of the connection only (RFC 9112 §6.3).
        self.keep_alive &= chunked && !response.close;
        out.tail(|out| self.put_head(response, None, date, out));
        if self.is_head_request {
            self.end_answer(now);
            return false;
        }
        self.state = State::Streaming { chunked };
        true
    }

    /// Queues a piece of the streamed body.
    pub(crate) fn put_chunk(&mut self, mut bytes: Vec<u8>, out: &mut Outbox) {
        let State::Streaming { chunked } = self.state else {
            debug_assert!(false, "a chunk without a stream");
            return;
        };
        // An empty chunk would end the body (RFC 9112 §7.1).
        if bytes.is_empty() {
            return;
        }
        if chunked {
            out.tail(|out| {
                put_hex(out, bytes.len());
                out.extend_from_slice(b"\r\n");
            });
            bytes.extend_from_slice(b"\r\n");
        }
        out.bulk(Chunk::Owned(bytes));
    }

    /// Ends the streamed body in order.
    pub(crate) fn end_stream(&mut self, out: &mut Outbox, now: Instant) {
        if let State::Streaming { chunked } = self.state {
            if chunked {
                out.tail(|out| out.extend_from_slice(b"0\r\n\r\n"));
            }
            self.end_answer(now);
        }
    }

    /// Ends the streamed body without its last chunk, so that the client can't take it for whole.
    pub(crate) fn abort_stream(&mut self) {
        self.state = State::Closing;
    }
}

fn put_status_line(out: &mut Vec<u8>, code: u16) {
    if code == 200 {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(code).as_bytes());
    out.push(b' ');
    out.extend_from_slice(status::reason(code).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn put_hex(out: &mut Vec<u8>, value: usize) {
    let digits = (usize::BITS - value.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(value >> (digit * 4)) & 15]);
    }
}

/// The interim answer that a client waits for before it sends a body (RFC 9110 §15.2.1).
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// How long a timer may run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpTimeouts {
    pub(crate) head: Duration,
    pub(crate) body: Duration,
    pub(crate) idle: Duration,
}

impl HttpTimeouts {
    pub(crate) fn of(&self, timer: HttpTimer) -> Duration {
        match timer {
            HttpTimer::Head => self.head,
            HttpTimer::Body => self.body,
            HttpTimer::Idle => self.idle,
        }
    }
}
