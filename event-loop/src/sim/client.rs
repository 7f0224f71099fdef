//! A client of the simulated network, as tests use it: it never has to wait for room, and is told no lies.

use std::io;
use std::net::{Shutdown, SocketAddr};

use crate::Stream;

use super::platform::SimStream;

/// Whether more may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The server may send more.
    Open,
    /// The server has ended its direction, and all of it has been received.
    Ended,
}

/// A client's end of a connection. Dropping it closes it in order, or resets it if something that has arrived
/// wasn't received.
#[derive(Debug)]
pub struct Client {
    stream: SimStream,
}

impl Client {
    pub(super) const fn new(stream: SimStream) -> Self {
        Self { stream }
    }

    /// Sends all of `bytes`: they wait here until the network has taken them.
    ///
    /// # Errors
    /// `BrokenPipe` after [`finish`](Self::finish), and `ConnectionReset` once the server has reset the connection.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.send_all(bytes)
    }

    /// Moves all that has arrived to the end of `out`, and tells whether more may come.
    ///
    /// # Errors
    /// `ConnectionReset` when the server has reset the connection; what arrived before is in `out`.
    pub fn receive(&mut self, out: &mut Vec<u8>) -> io::Result<Flow> {
        self.stream.receive_all(out)
    }

    /// Bytes sent that the network hasn't taken yet.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.stream.unsent()
    }

    /// Sends no more; the server can still answer.
    pub fn finish(&mut self) {
        // It fails only if the connection is reset, and then it is finished as well.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Closes both directions.
    pub fn close(self) {
        drop(self);
    }

    /// Resets the connection.
    pub fn reset(self) {
        // It can't fail here: the option is only noted.
        let _ = self.stream.set_reset_on_drop();
    }

    /// The client's own address, which the server sees as its peer.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.stream.local_addr()
    }

    /// The same end as a stream that a loop can watch, with a send buffer of the common size.
    #[must_use]
    pub fn into_stream(self) -> SimStream {
        self.stream.into_counted()
    }
}
