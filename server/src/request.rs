//! A request as a handler sees it.

use std::ops::Range;

use pumice_event_loop::Peer;
use pumice_http_parse::{Head, Method, RequestHead, Version};

/// A whole request: its head, and its body within the limit of the configuration.
///
/// It borrows from the connection's buffer (or, for an offloaded handler, from a buffer of its own); nothing is
/// copied to make one.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    head: RequestHead<'a>,
    body: &'a [u8],
    peer: &'a Peer,
}

impl<'a> Request<'a> {
    pub(crate) fn new(head: RequestHead<'a>, body: &'a [u8], peer: &'a Peer) -> Self {
        Self { head, body, peer }
    }

    /// The method; [`Method::Other`] for one that this library has no name for, see [`Request::method_str`].
    pub fn method(&self) -> Method {
        self.head.method()
    }

    /// The method as sent.
    pub fn method_str(&self) -> &'a str {
        self.head.method_str()
    }

    /// The target as sent: path and query, not decoded.
    pub fn target(&self) -> &'a str {
        self.head.target()
    }

    /// The target's path, not decoded.
    pub fn path(&self) -> &'a str {
        self.head.path()
    }

    /// The target's query without its question mark, not decoded.
    pub fn query(&self) -> Option<&'a str> {
        self.head.query()
    }

    /// The protocol version of the request.
    pub fn version(&self) -> Version {
        self.head.version()
    }

    /// The value of the first field with this name, whatever the case of its letters.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.head.get(name)
    }

    /// All fields in the order in which they came.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.head.fields()
    }

    /// The host (and port) that the request is for: the target's authority, else the `Host` field.
    pub fn host(&self) -> Option<&'a str> {
        self.head.authority()
    }

    /// The body, whole and decoded.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Who sent it, as far as the socket knows.
    pub fn peer(&self) -> &'a Peer {
        self.peer
    }
}

/// A request that owns its bytes: one that came in pieces, or one that goes to another thread.
#[derive(Debug, Default)]
pub(crate) struct OwnedRequest {
    /// The head's bytes, the decoded body's behind them.
    pub(crate) bytes: Vec<u8>,
    pub(crate) head: Head,
    pub(crate) body: Range<usize>,
}

impl OwnedRequest {
    /// Copies a request out of a connection's buffer.
    pub(crate) fn copy(&mut self, head_bytes: &[u8], head: &mut Head, body: &[u8]) {
        self.bytes.clear();
        self.bytes.reserve(head_bytes.len() + body.len());
        self.bytes.extend_from_slice(head_bytes);
        self.bytes.extend_from_slice(body);
        std::mem::swap(&mut self.head, head);
        self.body = head_bytes.len()..self.bytes.len();
    }

    pub(crate) fn view<'a>(&'a self, peer: &'a Peer) -> Request<'a> {
        Request::new(
            self.head.view(&self.bytes),
            &self.bytes[self.body.clone()],
            peer,
        )
    }
}
