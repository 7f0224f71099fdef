//! What answers HTTP requests and frames: the user's code.

use crate::{Request, Response};

/// Where a handler runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Execution {
    /// On the worker, between two reads: for code that never waits. Everything else of that worker waits for it.
    Inline,
    /// On a handler thread: may block.
    #[default]
    Offloaded,
}

/// Answers HTTP requests.
///
/// Every `Fn(&Request, &mut Response)` is one, and is offloaded; [`Inline`] makes it run on the worker.
/// A panic is caught, counted and answered with 500.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request.
    fn handle(&self, request: &Request<'_>, response: &mut Response);

    /// Where [`Handler::handle`] is to run for this request.
    fn execution(&self, request: &Request<'_>) -> Execution {
        let _ = request;
        Execution::Offloaded
    }
}

impl<F> Handler for F
where
    F: Fn(&Request<'_>, &mut Response) + Send + Sync + 'static,
{
    fn handle(&self, request: &Request<'_>, response: &mut Response) {
        self(request, response);
    }
}

/// A handler that runs on the worker, so that it costs no hand-over; it must not block.
#[derive(Clone, Copy, Debug)]
pub struct Inline<H>(pub H);

impl<H: Handler> Handler for Inline<H> {
    fn handle(&self, request: &Request<'_>, response: &mut Response) {
        self.0.handle(request, response);
    }

    fn execution(&self, _: &Request<'_>) -> Execution {
        Execution::Inline
    }
}

/// The answers of a frame service to one frame.
#[derive(Debug)]
pub struct Reply<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) close: bool,
}

impl Reply<'_> {
    /// Sends a frame with this payload: its length as four big-endian bytes, then the payload.
    ///
    /// # Panics
    /// When the payload has 4 GiB or more.
    pub fn send(&mut self, payload: &[u8]) {
        let len = u32::try_from(payload.len()).expect("a payload is below 4 GiB");
        self.out.extend_from_slice(&len.to_be_bytes());
        self.out.extend_from_slice(payload);
    }

    /// Closes the connection after what was sent.
    pub fn close(&mut self) {
        self.close = true;
    }
}

/// Answers length-prefixed frames; runs on the worker and must not block.
///
/// Every `Fn(&[u8], &mut Reply)` is one.
pub trait FrameService: Send + Sync + 'static {
    /// Handles one frame's payload.
    fn handle(&self, payload: &[u8], reply: &mut Reply<'_>);
}

impl<F> FrameService for F
where
    F: Fn(&[u8], &mut Reply<'_>) + Send + Sync + 'static,
{
    fn handle(&self, payload: &[u8], reply: &mut Reply<'_>) {
        self(payload, reply);
    }
}
