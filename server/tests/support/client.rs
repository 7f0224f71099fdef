//! A client that sends exact bytes, and takes answers apart without the code under test.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::PATIENCE;

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    /// Read and not yet taken.
    buf: Vec<u8>,
}

/// One whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Status line and fields as they came.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The value of a field that is there once at most.
    #[track_caller]
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }

    /// Whether it says that the connection closes.
    pub(crate) fn closes(&self) -> bool {
        self.field("connection") == Some("close")
    }

    /// The body as JSON.
    #[cfg(feature = "store")]
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {:?}", String::from_utf8_lossy(&self.body)))
    }
}

impl Client {
    pub(crate) fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE).expect("the server listens");
        stream.set_nodelay(true).expect("a TCP option");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a time above zero");
        stream
            .set_write_timeout(Some(PATIENCE))
            .expect("a time above zero");
        Self {
            stream,
            buf: Vec::new(),
        }
    }

    /// The same with a receive buffer of 64 KiB, which doesn't grow as others do to some 6 MB: what isn't read soon
    /// fills the server's send buffer, and that has 4 MB at most. (A much smaller one would make the sender wait for
    /// timers of TCP.)
    pub(crate) fn connect_with_small_window(addr: SocketAddr) -> Self {
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(addr),
            socket2::Type::STREAM,
            Some(socket2::Protocol::TCP),
        )
        .expect("a socket");
        socket
            .set_recv_buffer_size(64 * 1024)
            .expect("a socket option");
        socket.connect(&addr.into()).expect("the server listens");
        let stream = TcpStream::from(socket);
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a time above zero");
        Self {
            stream,
            buf: Vec::new(),
        }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends these bytes.
    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the server takes it");
    }

    /// Sends these bytes, to a server that may have closed.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Sends `GET path` with a Host, and nothing else.
    #[track_caller]
    pub(crate) fn send_get(&mut self, path: &str) {
        self.send(get(path));
    }

    /// Sends a `POST` with a body of known length.
    #[track_caller]
    pub(crate) fn send_post(&mut self, path: &str, body: impl AsRef<[u8]>) {
        self.send(post(path, body));
    }

    /// `GET path` and its answer.
    #[track_caller]
    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send_get(path);
        self.answer()
    }

    /// `POST path` and its answer.
    #[track_caller]
    pub(crate) fn post(&mut self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.send_post(path, body);
        self.answer()
    }

    /// Shuts the sending side.
    pub(crate) fn shutdown_write(&self) {
        self.stream
            .shutdown(Shutdown::Write)
            .expect("the connection stands");
    }

    /// Closes so that the server gets a reset.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .expect("a socket option");
    }

    /// Reads once; `false` at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut chunk) {
                // A machine that was put to sleep wakes up so.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let n = read?;
                    self.buf.extend_from_slice(&chunk[..n]);
                    return Ok(n > 0);
                }
            }
        }
    }

    #[track_caller]
    fn must_fill(&mut self, wanted: &str) {
        match self.fill() {
            Ok(true) => {}
            Ok(false) => panic!("the stream ended before {wanted}: {:?}", self.shown()),
            Err(error) => panic!("{error} before {wanted}: {:?}", self.shown()),
        }
    }

    fn shown(&self) -> String {
        let end = self.buf.len().min(500);
        String::from_utf8_lossy(&self.buf[..end]).into_owned()
    }

    /// Takes this many bytes.
    #[track_caller]
    pub(crate) fn read_exact(&mut self, len: usize) -> Vec<u8> {
        while self.buf.len() < len {
            self.must_fill("enough bytes");
        }
        let rest = self.buf.split_off(len);
        std::mem::replace(&mut self.buf, rest)
    }

    /// Takes everything up to and with `end`.
    #[track_caller]
    pub(crate) fn read_through(&mut self, end: &[u8]) -> Vec<u8> {
        let mut seen = 0;
        loop {
            let found = self.buf[seen..]
                .windows(end.len())
                .position(|bytes| bytes == end);
            if let Some(at) = found {
                return self.read_exact(seen + at + end.len());
            }
            seen = (self.buf.len() + 1).saturating_sub(end.len());
            self.must_fill("the bytes waited for");
        }
    }

    /// Takes everything up to the orderly end of the stream; a reset fails.
    #[track_caller]
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        loop {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return std::mem::take(&mut self.buf),
                Err(error) => panic!("{error} instead of an end, after {:?}", self.shown()),
            }
        }
    }

    /// Takes the orderly end of the stream; a byte or a reset before it fails.
    #[track_caller]
    pub(crate) fn expect_end(&mut self) {
        let rest = self.read_to_end();
        assert!(
            rest.is_empty(),
            "more bytes came: {:?}",
            String::from_utf8_lossy(&rest)
        );
    }

    /// Waits until the connection is gone, whether by an end or by a reset, and drops what comes before.
    #[track_caller]
    pub(crate) fn expect_gone(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.fill() {
                Ok(true) => self.buf.clear(),
                Ok(false) => return,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    panic!("the server never closed the connection")
                }
                Err(_) => return,
            }
            assert!(Instant::now() < deadline, "the server never closed");
        }
    }

    /// Asserts that nothing comes within `time`.
    #[track_caller]
    pub(crate) fn expect_silence(&mut self, time: Duration) {
        assert!(self.buf.is_empty(), "bytes came: {:?}", self.shown());
        self.stream
            .set_read_timeout(Some(time))
            .expect("a time above zero");
        let filled = self.fill();
        self.stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a time above zero");
        match filled {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => panic!("{other:?} instead of silence: {:?}", self.shown()),
        }
    }

    /// Takes status line and fields, with the empty line.
    #[track_caller]
    pub(crate) fn read_head(&mut self) -> String {
        let head = self.read_through(b"\r\n\r\n");
        String::from_utf8(head).expect("a head of text")
    }

    /// Takes one answer to anything but HEAD, its body by RFC 9112 §6.3; interim answers are not skipped.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> Answer {
        let head = self.read_head();
        let status = status_of(&head);
        let body = if (100..200).contains(&status) || status == 204 || status == 304 {
            Vec::new()
        } else if field(&head, "transfer-encoding") == Some("chunked") {
            self.read_chunked()
        } else if let Some(length) = field(&head, "content-length") {
            let length = length.parse().expect("a number of bytes");
            self.read_exact(length)
        } else {
            self.read_to_end()
        };
        Answer { status, head, body }
    }

    /// Takes one answer with a `Content-Length`, or `None` from a server that closed before its first byte; an answer
    /// that is cut short fails.
    #[track_caller]
    pub(crate) fn try_answer(&mut self) -> Option<Answer> {
        while self.buf.is_empty() {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    panic!("neither an answer nor an end")
                }
                Err(_) => return None,
            }
        }
        Some(self.answer())
    }

    /// Takes one answer to HEAD, which has no body.
    #[track_caller]
    pub(crate) fn head_answer(&mut self) -> Answer {
        let head = self.read_head();
        Answer {
            status: status_of(&head),
            head,
            body: Vec::new(),
        }
    }

    #[track_caller]
    fn read_chunked(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let chunk = self.read_chunk();
            if chunk.is_empty() {
                return body;
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// Takes one chunk of a chunked body; an empty one is the last.
    #[track_caller]
    pub(crate) fn read_chunk(&mut self) -> Vec<u8> {
        let line = self.read_through(b"\r\n");
        let digits = std::str::from_utf8(&line).expect("a size").trim_end();
        let size = usize::from_str_radix(digits, 16).expect("a size in hexadecimal digits");
        let mut chunk = self.read_exact(size + 2);
        assert_eq!(chunk.split_off(size), b"\r\n");
        chunk
    }
}

/// The bytes of a `GET`.
pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

/// The bytes of a `POST` with a body of known length.
pub(crate) fn post(path: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

#[track_caller]
fn status_of(head: &str) -> u16 {
    let code = head
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    code.and_then(|code| code.parse().ok())
        .unwrap_or_else(|| panic!("no status line: {head:?}"))
}

#[track_caller]
fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut values = head.lines().filter_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    });
    let value = values.next();
    assert!(values.next().is_none(), "{name} is there twice: {head:?}");
    value
}
