//! What others do for the same requests.

use std::{
    convert::Infallible,
    future::Future,
    io,
    mem::MaybeUninit,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use http_body_util::Empty;
use hyper::{
    Response,
    body::Bytes,
    rt::{Read, ReadBufCursor, Write},
    server::conn::http1,
    service::service_fn,
};

/// What httparse alone does: no framing, no Host, no limits, nothing kept.
pub fn bare_httparse(buf: &[u8]) -> usize {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(buf) {
        Ok(httparse::Status::Complete(len)) => len,
        other => panic!("{other:?}"),
    }
}

/// The same without clearing its array of headers first.
pub fn bare_httparse_uninit(buf: &[u8]) -> usize {
    let mut headers = [const { MaybeUninit::uninit() }; 32];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(buf, &mut headers) {
        Ok(httparse::Status::Complete(len)) => len,
        other => panic!("{other:?}"),
    }
}

/// What http.zig does with a head: the target up to a space, a hash to tell known methods, each
/// name folded to lower case in place and the value trimmed, both put into an array.
pub fn like_http_zig(buf: &mut [u8]) -> usize {
    let line_end = buf.iter().position(|&byte| byte == b'\n').expect("a line");
    let target_end = buf[4..]
        .iter()
        .position(|&byte| byte == b' ')
        .expect("a target")
        + 4;
    assert!(buf.starts_with(b"GET ") && &buf[target_end + 1..line_end] == b"HTTP/1.1\r");
    let mut fields = [(0, 0, 0, 0); 32];
    let mut count = 0;
    let mut at = line_end + 1;
    loop {
        if buf[at] == b'\r' {
            std::hint::black_box(&fields[..count]);
            return at + 2;
        }
        let name = at;
        while buf[at] != b':' {
            buf[at] = buf[at].to_ascii_lowercase();
            at += 1;
        }
        let colon = at;
        let end = at
            + buf[at..]
                .iter()
                .position(|&byte| byte == b'\n')
                .expect("a line");
        let mut value = colon + 1;
        while buf[value] == b' ' {
            value += 1;
        }
        fields[count] = (name, colon, value, end - 1);
        count += 1;
        at = end + 1;
    }
}

/// A connection that has `rounds` requests to read and swallows what is written.
struct Pipe<'a> {
    request: &'a [u8],
    rounds: usize,
}

impl Read for Pipe<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rounds > 0 {
            self.rounds -= 1;
            buf.put_slice(self.request);
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for Pipe<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A whole connection of hyper's, which answers every request with an empty 200: its parser can't
/// be reached alone, so this is more work than parsing.
pub fn hyper_connection(request: &[u8], rounds: usize) {
    let service =
        service_fn(|_| async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) });
    let mut connection =
        pin!(http1::Builder::new().serve_connection(Pipe { request, rounds }, service));
    let mut context = Context::from_waker(Waker::noop());
    while connection.as_mut().poll(&mut context).is_pending() {}
}
