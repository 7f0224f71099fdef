//! An echo server on any platform, written as the crate's docs say one is written.

use std::io::ErrorKind;
use std::time::Instant;

use pumice_event_loop::{Accept, Event, EventLoop, ListenerId, Platform, Ready, Stream};

/// Bytes of a connection that may wait to be sent back before it is read no further.
const PENDING_MAX: usize = 65_536;

/// Sends back what it gets, and ends a connection when its client does.
pub(crate) struct Echo<P: Platform> {
    pub(crate) event_loop: EventLoop<P>,
    conns: Vec<Slot<P::Stream>>,
    events: Vec<Event>,
    buf: Vec<u8>,
    /// Accepts of the turn that had the most.
    pub(crate) accepts_in_turn: usize,
    pub(crate) accepted: usize,
    /// Events whose token found nobody.
    pub(crate) strays: usize,
    /// Connections that were reset.
    pub(crate) broken: usize,
    pub(crate) turns: usize,
}

struct Slot<S> {
    generation: u32,
    conn: Option<Conn<S>>,
}

struct Conn<S> {
    stream: S,
    pending: Vec<u8>,
    ready: Ready,
    has_ended: bool,
}

/// The token of a slot's tenant: of an index and a generation.
pub(crate) fn token_of(index: usize, generation: u32) -> u64 {
    u64::from(generation) << 32 | index as u64
}

impl<P: Platform> Echo<P> {
    /// A server that reads by at most `buf_bytes`.
    pub(crate) fn new(event_loop: EventLoop<P>, buf_bytes: usize) -> Self {
        Self {
            event_loop,
            conns: Vec::new(),
            events: Vec::new(),
            buf: vec![0; buf_bytes],
            accepts_in_turn: 0,
            accepted: 0,
            strays: 0,
            broken: 0,
            turns: 0,
        }
    }

    /// Connections it has.
    pub(crate) fn len(&self) -> usize {
        self.conns.iter().filter(|slot| slot.conn.is_some()).count()
    }

    /// One turn of the loop.
    pub(crate) fn turn(&mut self, until: Option<Instant>) {
        self.turns += 1;
        self.event_loop.poll(until).unwrap();
        let mut events = std::mem::take(&mut self.events);
        self.event_loop.take_events(&mut events);
        for event in &events {
            match *event {
                Event::Listener { id } => self.accept(id),
                Event::Stream { token, ready } => self.on_ready(token, ready),
                _ => {}
            }
        }
        self.events = events;
    }

    fn accept(&mut self, id: ListenerId) {
        let mut count = 0;
        while let Accept::Stream(mut stream) = self.event_loop.accept(id).unwrap() {
            count += 1;
            let vacant = self.conns.iter().position(|slot| slot.conn.is_none());
            let index = vacant.unwrap_or_else(|| {
                self.conns.push(Slot {
                    generation: 0,
                    conn: None,
                });
                self.conns.len() - 1
            });
            let slot = &mut self.conns[index];
            let token = token_of(index, slot.generation);
            self.event_loop.register(&mut stream, token).unwrap();
            slot.conn = Some(Conn {
                stream,
                pending: Vec::new(),
                ready: Ready::EMPTY,
                has_ended: false,
            });
        }
        self.accepted += count;
        self.accepts_in_turn = self.accepts_in_turn.max(count);
    }

    fn on_ready(&mut self, token: u64, ready: Ready) {
        let index = (token & u64::from(u32::MAX)) as usize;
        let slot = self.conns.get_mut(index);
        let Some(slot) = slot.filter(|slot| u64::from(slot.generation) == token >> 32) else {
            self.strays += 1;
            return;
        };
        let Some(conn) = &mut slot.conn else {
            self.strays += 1;
            return;
        };
        conn.ready.insert(ready);
        let is_broken = !conn.go_on(&mut self.buf);
        if is_broken || conn.has_ended && conn.pending.is_empty() {
            self.broken += usize::from(is_broken);
            let mut conn = slot.conn.take().expect("it has just been used");
            slot.generation += 1;
            self.event_loop.deregister(&mut conn.stream).unwrap();
        }
    }
}

impl<S: Stream> Conn<S> {
    /// Reads and writes as far as it goes. `false`: the connection is broken.
    fn go_on(&mut self, buf: &mut [u8]) -> bool {
        loop {
            let can_read = self.ready.is_readable() && !self.has_ended;
            if can_read && self.pending.len() < PENDING_MAX {
                match self.stream.read(buf) {
                    Ok(0) => self.has_ended = true,
                    Ok(len) => {
                        self.pending.extend_from_slice(&buf[..len]);
                        if len < buf.len() && !self.ready.is_read_closed() {
                            self.ready.remove(Ready::READABLE);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        self.ready.remove(Ready::READABLE);
                    }
                    Err(_) => return false,
                }
                continue;
            }
            if self.pending.is_empty() || !self.ready.is_writable() {
                return true;
            }
            match self.stream.write(&self.pending) {
                Ok(len) => {
                    if len < self.pending.len() {
                        self.ready.remove(Ready::WRITABLE);
                    }
                    self.pending.drain(..len);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.ready.remove(Ready::WRITABLE);
                }
                Err(_) => return false,
            }
        }
    }
}
