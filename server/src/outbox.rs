//! What a connection still has to send: two lanes of bytes, and how far the socket has taken them.
//!
//! Small answers (acknowledgements, errors, heads) go to the *control* lane, the chunks of streams to the *bulk* lane.
//! Whenever the piece being written is used up, everything in the control lane goes next, then one chunk of the bulk
//! lane: a small answer waits for one chunk at most, and a flood of small answers can't hold up a stream for ever.
//! A piece is written to its end before the next is chosen, so frames never tear.
//!
//! HTTP/1.1 answers in order, so its connections append to whatever is last ([`Outbox::tail`]) and never overtake.
//!
//! Invariant: `pending` is the number of bytes not yet taken by the socket, over all three places. [`Outbox::check`]
//! holds it.

use std::collections::VecDeque;
use std::io::{self, Write};

use bytes::Bytes;

/// A piece of the bulk lane.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// Bytes of this connection alone; further answers may be appended.
    Owned(Vec<u8>),
    /// Bytes that other connections or the program share.
    Shared(Bytes),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Default for Chunk {
    fn default() -> Self {
        Self::Owned(Vec::new())
    }
}

/// What a flush came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Nothing is left.
    Empty,
    /// The socket takes no more now; it will say when it does.
    Blocked,
}

/// The bytes a connection still has to send.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// The piece being written, of which `written` bytes are gone.
    writing: Chunk,
    written: usize,
    /// Whether that piece was the control lane; the bulk lane has the next turn then.
    was_control: bool,
    /// Whether the lanes have turns. If not, what is in the control lane was put before what is in the bulk lane.
    overtakes: bool,
    control: Vec<u8>,
    /// Boxed although it is on the heap already, since most connections never have one: an idle connection pays 8 bytes for it.
    #[expect(clippy::box_collection, reason = "32 bytes of each idle connection")]
    bulk: Option<Box<VecDeque<Chunk>>>,
    pending: usize,
}

impl Outbox {
    /// Bytes not yet taken by the socket.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Appends to the control lane through `put`: what is queued in the bulk lane may be overtaken.
    pub(crate) fn control<R>(&mut self, put: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        self.overtakes = true;
        self.put_control(put)
    }

    fn put_control<R>(&mut self, put: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let before = self.control.len();
        let result = put(&mut self.control);
        self.pending += self.control.len() - before;
        result
    }

    /// Appends behind everything that is queued, through `put`.
    pub(crate) fn tail<R>(&mut self, put: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let Some(bulk) = self.bulk.as_mut().filter(|bulk| !bulk.is_empty()) else {
            return self.put_control(put);
        };
        if !matches!(bulk.back(), Some(Chunk::Owned(_))) {
            bulk.push_back(Chunk::default());
        }
        let Some(Chunk::Owned(last)) = bulk.back_mut() else {
            unreachable!("an owned chunk was pushed above")
        };
        let before = last.len();
        let result = put(last);
        self.pending += last.len() - before;
        result
    }

    /// Queues a chunk in the bulk lane, without copying it.
    pub(crate) fn bulk(&mut self, chunk: Chunk) {
        let len = chunk.bytes().len();
        if len > 0 {
            self.pending += len;
            self.bulk.get_or_insert_default().push_back(chunk);
        }
    }

    /// Lends the control lane a vector with capacity, so that putting into it allocates nothing.
    ///
    /// Gives the vector back where the lane has one already.
    pub(crate) fn lend(&mut self, buf: Vec<u8>) -> Option<Vec<u8>> {
        debug_assert!(buf.is_empty(), "a lent vector holds no bytes");
        if self.control.capacity() == 0 {
            self.control = buf;
            None
        } else {
            Some(buf)
        }
    }

    /// Takes the vectors back when nothing is pending; an idle connection then holds none.
    pub(crate) fn take_back(&mut self, mut keep: impl FnMut(Vec<u8>)) {
        debug_assert!(self.is_empty(), "a vector with bytes in it stays");
        for buf in [
            std::mem::take(&mut self.control),
            match std::mem::take(&mut self.writing) {
                Chunk::Owned(buf) => buf,
                Chunk::Shared(_) => Vec::new(),
            },
        ] {
            if buf.capacity() > 0 {
                keep(buf);
            }
        }
        self.written = 0;
        self.bulk = None;
    }

    /// Writes to `socket` until it takes no more or nothing is left. Returns that and the bytes taken.
    ///
    /// # Errors
    /// What the socket says, `WouldBlock` and `Interrupted` excepted; the connection is lost then.
    pub(crate) fn flush(&mut self, socket: &mut impl Write) -> io::Result<(Flushed, usize)> {
        let mut sent = 0;
        loop {
            let piece = &self.writing.bytes()[self.written..];
            if piece.is_empty() {
                if !self.next_piece() {
                    debug_assert_eq!(self.pending, 0);
                    return Ok((Flushed::Empty, sent));
                }
                continue;
            }
            match socket.write(piece) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    let short = n < piece.len();
                    self.written += n;
                    self.pending -= n;
                    sent += n;
                    // A short write means a full send buffer: asking again would only cost the call that says so,
                    // and the socket's next writable edge is certain to come.
                    if short {
                        return Ok((Flushed::Blocked, sent));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok((Flushed::Blocked, sent));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Chooses the next piece: the whole control lane, or a chunk of the bulk lane when it is the bulk lane's turn.
    fn next_piece(&mut self) -> bool {
        self.written = 0;
        let spent = std::mem::take(&mut self.writing);
        let bulk = self.bulk.as_mut().filter(|bulk| !bulk.is_empty());
        let from_control = match bulk {
            Some(_) if self.control.is_empty() || (self.was_control && self.overtakes) => false,
            _ if !self.control.is_empty() => true,
            _ => {
                self.keep_spent(spent);
                self.was_control = false;
                return false;
            }
        };
        if from_control {
            self.writing = Chunk::Owned(std::mem::take(&mut self.control));
        } else if let Some(chunk) = bulk.and_then(|bulk| bulk.pop_front()) {
            self.writing = chunk;
        }
        self.keep_spent(spent);
        self.was_control = from_control;
        true
    }

    /// Makes the vector that was written the control lane again, if it was that before: two vectors serve a
    /// connection for its life. A stream's chunk may be large and is dropped.
    fn keep_spent(&mut self, spent: Chunk) {
        if let (Chunk::Owned(mut buf), true, 0) = (spent, self.was_control, self.control.capacity())
        {
            buf.clear();
            self.control = buf;
        }
    }

    /// Asserts the invariant.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let bulk: usize = self
            .bulk
            .iter()
            .flat_map(|bulk| bulk.iter())
            .map(|chunk| chunk.bytes().len())
            .sum();
        let writing = self.writing.bytes().len() - self.written;
        assert_eq!(self.pending, writing + self.control.len() + bulk);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A socket that takes `room` bytes and then blocks.
    struct Socket {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Socket {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room);
            if n == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room -= n;
            self.taken.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn drain(outbox: &mut Outbox) -> Vec<u8> {
        let mut socket = Socket {
            taken: Vec::new(),
            room: usize::MAX,
        };
        assert_eq!(
            outbox.flush(&mut socket).expect("it takes all").0,
            Flushed::Empty
        );
        socket.taken
    }

    #[test]
    fn a_small_answer_overtakes_the_bulk_lane_and_tears_no_chunk() {
        let mut outbox = Outbox::default();
        outbox.bulk(Chunk::Owned(b"aaaa".to_vec()));
        outbox.bulk(Chunk::Shared(Bytes::from_static(b"bbbb")));
        let mut socket = Socket {
            taken: Vec::new(),
            room: 2,
        };
        assert_eq!(
            outbox.flush(&mut socket).expect("it blocks"),
            (Flushed::Blocked, 2)
        );
        outbox.control(|out| out.extend_from_slice(b"ack"));
        socket.room = usize::MAX;
        outbox.flush(&mut socket).expect("it takes all");
        assert_eq!(socket.taken, b"aaaaackbbbb");
    }

    #[test]
    fn a_flood_of_small_answers_lets_a_chunk_through_after_each_piece() {
        let mut outbox = Outbox::default();
        outbox.bulk(Chunk::Owned(b"B".to_vec()));
        let mut socket = Socket {
            taken: Vec::new(),
            room: 1,
        };
        for _ in 0..4 {
            outbox.control(|out| out.push(b'c'));
            socket.room = 1;
            outbox.flush(&mut socket).expect("it blocks");
        }
        assert!(socket.taken.contains(&b'B'), "{:?}", socket.taken);
    }

    #[test]
    fn the_tail_never_overtakes() {
        let mut outbox = Outbox::default();
        outbox.tail(|out| out.extend_from_slice(b"1"));
        outbox.bulk(Chunk::Shared(Bytes::from_static(b"2")));
        outbox.tail(|out| out.extend_from_slice(b"3"));
        outbox.tail(|out| out.extend_from_slice(b"4"));
        assert_eq!(drain(&mut outbox), b"1234");
    }

    proptest! {
        /// Answers put at the tail leave in order, whatever the socket takes at a time, and the count returns to zero.
        #[test]
        fn bytes_leave_in_order_whatever_the_socket_takes(
            steps in prop::collection::vec((0..3_u8, 0..20_usize, 0..30_usize), 0..60)
        ) {
            let mut outbox = Outbox::default();
            let mut expected = Vec::new();
            let mut socket = Socket { taken: Vec::new(), room: 0 };
            for (step, (kind, len, room)) in steps.into_iter().enumerate() {
                let bytes = vec![step as u8; len];
                expected.extend_from_slice(&bytes);
                match kind {
                    0 => outbox.tail(|out| out.extend_from_slice(&bytes)),
                    1 => outbox.bulk(Chunk::Owned(bytes)),
                    _ => outbox.bulk(Chunk::Shared(bytes.into())),
                }
                outbox.check();
                socket.room = room;
                outbox.flush(&mut socket).expect("the socket never fails");
                outbox.check();
            }
            socket.room = usize::MAX;
            outbox.flush(&mut socket).expect("the socket never fails");
            prop_assert_eq!(&socket.taken, &expected);
            prop_assert_eq!(outbox.pending(), 0);
            outbox.take_back(drop);
            outbox.check();
        }
    }
}
