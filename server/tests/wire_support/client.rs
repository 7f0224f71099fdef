//! A client that sends and receives raw frames, and waits for each with a bound.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use pumice_frame_proto::tephra::proto::{
    ErrorCode, ErrorResponse, Event, Request, Response, StatsResponse, response,
};

use super::{Answer, PATIENCE, answer, append, hello, stats};

/// The id that the helpers of [`Client`] use for requests of their own.
const OWN_ID: u64 = u64::MAX;

/// A request as it goes over the wire.
pub(crate) fn frame(request: &Request) -> Vec<u8> {
    let mut out = Vec::new();
    pumice_frame_proto::encode(request, u32::MAX, &mut out).expect("a frame has room");
    out
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    used: usize,
    /// Bytes of all frames that were taken, prefixes included.
    pub(crate) bytes_taken: usize,
}

impl Client {
    /// A connection on which nothing was said.
    pub(crate) fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).expect("the server listens");
        Self::over(stream)
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("an option");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        stream.set_write_timeout(Some(PATIENCE)).expect("an option");
        Self {
            stream,
            input: Vec::new(),
            used: 0,
            bytes_taken: 0,
        }
    }

    /// A connection whose receive buffer is small, so that a server soon finds it full.
    pub(crate) fn with_small_window(addr: SocketAddr) -> Self {
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(addr),
            socket2::Type::STREAM,
            None,
        )
        .expect("a socket");
        socket.set_recv_buffer_size(16 * 1024).expect("an option");
        socket.connect(&addr.into()).expect("the server listens");
        let mut client = Self::over(socket.into());
        client.say_hello();
        client
    }

    /// A connection that has said Hello and was acknowledged.
    #[track_caller]
    pub(crate) fn hello(addr: SocketAddr) -> Self {
        let mut client = Self::connect(addr);
        client.say_hello();
        client
    }

    /// As [`Client::hello`], at a server that may be gone at any moment; `None` when it is.
    pub(crate) fn try_hello(addr: SocketAddr) -> Option<Self> {
        let mut client = Self::over(TcpStream::connect(addr).ok()?);
        client.try_send(&hello(OWN_ID)).ok()?;
        client.try_next()?;
        Some(client)
    }

    #[track_caller]
    fn say_hello(&mut self) {
        self.send(&hello(OWN_ID));
        let response = self.next().expect("a hello is answered");
        assert!(
            matches!(response.kind, Some(response::Kind::HelloAck(_))),
            "{response:?}"
        );
    }

    pub(crate) fn send(&mut self, request: &Request) {
        self.send_bytes(&frame(request));
    }

    /// Sends all requests in one write.
    pub(crate) fn send_all(&mut self, requests: impl IntoIterator<Item = Request>) {
        let mut out = Vec::new();
        for request in requests {
            out.extend_from_slice(&frame(&request));
        }
        self.send_bytes(&out);
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server takes it");
    }

    /// Sends to a server that may be gone.
    pub(crate) fn try_send(&mut self, request: &Request) -> std::io::Result<()> {
        self.stream.write_all(&frame(request))
    }

    /// Says that nothing more will come.
    pub(crate) fn finish(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("still open");
    }

    /// The next frame's bytes, without the prefix; `None` when the server has closed, between two frames.
    ///
    /// # Panics
    /// When nothing comes, the connection is reset, or it ends within a frame.
    #[track_caller]
    pub(crate) fn next_payload(&mut self) -> Option<&[u8]> {
        loop {
            let rest = &self.input[self.used..];
            if let Some(prefix) = rest.first_chunk() {
                let len = u32::from_be_bytes(*prefix) as usize;
                if rest.len() >= 4 + len {
                    let start = self.used + 4;
                    self.used = start + len;
                    self.bytes_taken += 4 + len;
                    return Some(&self.input[start..start + len]);
                }
            }
            self.input.drain(..self.used);
            self.used = 0;
            if !self.fill() {
                assert!(self.input.is_empty(), "the server closed within a frame");
                return None;
            }
        }
    }

    /// Reads once; `false` at the end.
    fn fill(&mut self) -> bool {
        let mut buf = [0; 64 * 1024];
        loop {
            match self.stream.read(&mut buf) {
                Ok(0) => return false,
                Ok(n) => {
                    self.input.extend_from_slice(&buf[..n]);
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<Response> {
        let payload = self.next_payload()?;
        Some(pumice_frame_proto::decode(payload).expect("a response"))
    }

    /// The next response of a server that may be gone; `None` as soon as the connection is, in whatever way.
    pub(crate) fn try_next(&mut self) -> Option<Response> {
        loop {
            if self.has_whole_frame() {
                return self.next();
            }
            let mut buf = [0; 64 * 1024];
            let n = self.stream.read(&mut buf).ok().filter(|&n| n > 0)?;
            self.input.extend_from_slice(&buf[..n]);
        }
    }

    fn has_whole_frame(&self) -> bool {
        let rest = &self.input[self.used..];
        rest.first_chunk()
            .is_some_and(|prefix| rest.len() - 4 >= u32::from_be_bytes(*prefix) as usize)
    }

    /// The next response, which must come.
    #[track_caller]
    pub(crate) fn expect(&mut self) -> (u64, Answer) {
        answer(self.next().expect("the server closed instead of answering"))
    }

    /// The next response, which must be an error.
    #[track_caller]
    pub(crate) fn expect_error(&mut self) -> (u64, ErrorCode, ErrorResponse) {
        match self.expect() {
            (id, Answer::Error(error)) => (id, error.code(), error),
            other => panic!("not an error: {other:?}"),
        }
    }

    /// The server must close now.
    #[track_caller]
    pub(crate) fn expect_end(&mut self) {
        if let Some(response) = self.next() {
            panic!("instead of the end: {response:?}");
        }
    }

    /// Appends and waits; returns the first and last position.
    #[track_caller]
    pub(crate) fn append(&mut self, events: Vec<Event>) -> (u64, u64) {
        self.send(&append(OWN_ID, events));
        match self.expect() {
            (OWN_ID, Answer::Appended { first, last }) => (first, last),
            other => panic!("not appended: {other:?}"),
        }
    }

    /// Takes a read's frames up to its end; returns its events and watermark. No other response may come between.
    #[track_caller]
    pub(crate) fn take_read(&mut self, request_id: u64) -> (Vec<(u64, Event)>, u64) {
        let mut taken = Vec::new();
        loop {
            match self.expect() {
                (id, Answer::Events(events)) if id == request_id => taken.extend(events),
                (id, Answer::ReadEnd { watermark }) if id == request_id => {
                    return (taken, watermark);
                }
                other => panic!("not of read {request_id}: {other:?}"),
            }
        }
    }

    /// Takes a subscription's frames up to the first CaughtUp; returns its events and the watermark.
    #[track_caller]
    pub(crate) fn take_to_edge(&mut self, request_id: u64) -> (Vec<(u64, Event)>, u64) {
        let mut taken = Vec::new();
        loop {
            match self.expect() {
                (id, Answer::Events(events)) if id == request_id => taken.extend(events),
                (id, Answer::CaughtUp { watermark }) if id == request_id => {
                    return (taken, watermark);
                }
                other => panic!("not of subscription {request_id}: {other:?}"),
            }
        }
    }

    /// Asks for the server's state. No other response may be on its way.
    #[track_caller]
    pub(crate) fn stats(&mut self) -> StatsResponse {
        self.send(&stats(OWN_ID));
        match self.expect() {
            (OWN_ID, Answer::Stats(stats)) => stats,
            other => panic!("not stats: {other:?}"),
        }
    }

    /// Asks until the server's state is as wanted; the server is asked again at once, so that nothing sleeps.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, wanted: impl Fn(&StatsResponse) -> bool) {
        let started = std::time::Instant::now();
        loop {
            let stats = self.stats();
            if wanted(&stats) {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "it stays at {stats:?}");
        }
    }
}
