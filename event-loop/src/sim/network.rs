//! The simulated network: links and listeners, and what one round of it moves.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use crate::Ready;
use crate::fault::EMFILE;

use super::faults::Faults;
use super::link::{Link, Side, Socket, SocketId, Watch};
use super::pipe::{Fin, Pipe};
use super::rng::Rng;

/// What a poller may have to tell of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Socket(SocketId),
    Listener(u32),
}

/// What moves when the network has a round.
#[derive(Clone, Copy, Debug)]
enum Mover {
    /// The pipe that this socket writes into.
    Pipe(SocketId),
    /// A newcomer on its way to a listener.
    Newcomer { link: u32, listener: u32 },
}

/// A listening socket.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) addr: SocketAddr,
    pub(super) queue: Vec<u32>,
    pub(super) watch: Option<Watch>,
    pub(super) is_queued: bool,
}

/// One event loop's share of the world.
#[derive(Debug, Default)]
pub(super) struct Poller {
    /// What may have to be told.
    pub(super) queue: Vec<Source>,
    pub(super) is_woken: bool,
    pub(super) has_reserve: bool,
    /// Tokens deregistered lately, for stale events.
    pub(super) retired: Vec<u64>,
}

/// The whole world, behind one lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) seed: u64,
    pub(super) rng: Rng,
    pub(super) faults: Faults,
    pub(super) is_clock_manual: bool,
    pub(super) base: Instant,
    pub(super) elapsed: Duration,
    pub(super) trace: u64,
    pub(super) links: Vec<Option<Link>>,
    vacant: Vec<u32>,
    pub(super) listeners: Vec<Option<Listening>>,
    pub(super) pollers: Vec<Poller>,
    movers: Vec<Mover>,
    pub(super) descriptors: usize,
    pub(super) descriptors_max: usize,
    pub(super) accepts_to_fail: (u32, i32),
    pub(super) registrations_to_fail: u32,
    clients: u32,
}

impl State {
    pub(super) fn new(seed: u64, faults: Faults) -> Self {
        Self {
            seed,
            rng: Rng::new(seed),
            faults,
            is_clock_manual: false,
            base: Instant::now(),
            elapsed: Duration::ZERO,
            // FNV-1a's offset basis.
            trace: 0xcbf2_9ce4_8422_2325,
            links: Vec::new(),
            vacant: Vec::new(),
            listeners: Vec::new(),
            pollers: Vec::new(),
            movers: Vec::new(),
            descriptors: 0,
            descriptors_max: usize::MAX,
            accepts_to_fail: (0, 0),
            registrations_to_fail: 0,
            clients: 0,
        }
    }

    /// Folds something that happened into the trace.
    pub(super) fn note(&mut self, what: &str, first: u64, second: u64) {
        let numbers = first.to_le_bytes().into_iter().chain(second.to_le_bytes());
        for byte in what.bytes().chain(numbers) {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Whether a fault happens this time.
    pub(super) fn draw(&mut self, share: impl Fn(&Faults) -> u32) -> bool {
        self.rng.chance(share(&self.faults))
    }

    pub(super) fn now(&self) -> Instant {
        self.base + self.elapsed
    }

    /// The link of an open socket.
    pub(super) fn link(&mut self, link: u32) -> &mut Link {
        self.links[link as usize]
            .as_mut()
            .expect("whoever names a socket holds it open")
    }

    /// An open listener.
    pub(super) fn listening(&mut self, at: u32) -> &mut Listening {
        self.listeners[at as usize]
            .as_mut()
            .expect("its owner holds it open")
    }

    pub(super) fn has_room_for_descriptor(&self) -> bool {
        self.descriptors < self.descriptors_max
    }

    /// A client of `addr`: the first part of a connection, on its way to a listener there.
    pub(super) fn connect(&mut self, addr: SocketAddr) -> io::Result<SocketId> {
        let there: Vec<u32> = (0..self.listeners.len() as u32)
            .filter(|at| {
                let listener = self.listeners[*at as usize].as_ref();
                listener.is_some_and(|listener| listener.addr == addr)
            })
            .collect();
        if there.is_empty() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let listener = there[self.rng.below(there.len())];
        self.clients += 1;
        let [_, b, c, d] = self.clients.to_be_bytes();
        let client = SocketAddr::new(
            IpAddr::V4(Ipv4Addr::new(10, b, c, d)),
            1_024 + (self.clients % 60_000) as u16,
        );
        let most = self.faults.buffer_bytes_max.max(1);
        let mut buffer = || {
            if self.faults.cut > 0 {
                self.rng.up_to(most)
            } else {
                most
            }
        };
        // A client of a test sends without bound: what it isn't rid of waits in its own buffer.
        let pipes = [
            Pipe::new(usize::MAX, buffer()),
            Pipe::new(buffer(), buffer()),
        ];
        let link = Link {
            sockets: [Socket::new(), Socket::new()],
            pipes,
            client,
            server: addr,
        };
        let at = if let Some(at) = self.vacant.pop() {
            self.links[at as usize] = Some(link);
            at
        } else {
            self.links.push(Some(link));
            (self.links.len() - 1) as u32
        };
        self.movers.push(Mover::Newcomer { link: at, listener });
        self.note("connect", u64::from(at), u64::from(listener));
        Ok(SocketId {
            link: at,
            side: Side::Client,
        })
    }

    /// Takes a newcomer from the queue of `listener`; its server socket then belongs to the caller.
    pub(super) fn accept(&mut self, listener: u32) -> io::Result<SocketId> {
        if self.accepts_to_fail.0 > 0 {
            self.accepts_to_fail.0 -= 1;
            return Err(io::Error::from_raw_os_error(self.accepts_to_fail.1));
        }
        if self.rng.chance(self.faults.interrupt) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if !self.has_room_for_descriptor() {
            // As Linux has it: no descriptor comes before nobody waiting.
            return Err(io::Error::from_raw_os_error(EMFILE));
        }
        let queue = &mut self.listening(listener).queue;
        if queue.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let link = queue.remove(0);
        let id = SocketId {
            link,
            side: Side::Server,
        };
        if self.rng.chance(self.faults.abort) {
            self.note("abort", u64::from(link), 0);
            self.link(link).socket(Side::Server).resets_on_drop = true;
            self.close(id);
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.note("accept", u64::from(link), u64::from(listener));
        self.link(link).socket(Side::Server).is_counted = true;
        self.descriptors += 1;
        Ok(id)
    }

    /// Closes a listener: who still waits at it is reset.
    pub(super) fn close_listener(&mut self, at: u32) {
        self.unwatch_listener(at);
        if let Some(listener) = self.listeners[at as usize].take() {
            for link in listener.queue {
                self.refuse(link);
            }
        }
    }

    /// Ends the watch of a listener; whether there was one.
    pub(super) fn unwatch_listener(&mut self, at: u32) -> bool {
        let listening = self.listening(at);
        listening.is_queued = false;
        let Some(watch) = listening.watch.take() else {
            return false;
        };
        let poller = &mut self.pollers[watch.poller as usize];
        poller
            .queue
            .retain(|source| *source != Source::Listener(at));
        true
    }

    /// Resets a newcomer that nobody has accepted.
    fn refuse(&mut self, link: u32) {
        self.link(link).socket(Side::Server).resets_on_drop = true;
        self.close(SocketId {
            link,
            side: Side::Server,
        });
    }

    /// Closes a socket as the system does when its last descriptor goes: in order, or with a reset if something
    /// hasn't been read.
    pub(super) fn close(&mut self, id: SocketId) {
        self.unwatch(id);
        let keep = {
            let in_flight = self.link(id.link).outgoing(id.side).in_flight();
            self.rng.below(in_flight + 1)
        };
        let link = self.link(id.link);
        let is_rude = link.socket(id.side).resets_on_drop || link.incoming(id.side).waiting() > 0;
        let socket = link.socket(id.side);
        socket.is_open = false;
        let is_counted = socket.is_counted;
        link.incoming(id.side).forget_arrived();
        let outgoing = link.outgoing(id.side);
        if is_rude {
            outgoing.lose_sent(keep);
            outgoing.has_reset = true;
        } else if outgoing.fin == Fin::Open {
            outgoing.fin = Fin::Sent;
        }
        let is_over = link.sockets.iter().all(|socket| !socket.is_open);
        if is_counted {
            self.descriptors -= 1;
        }
        self.note("close", u64::from(id.link), id.side as u64);
        if is_over {
            self.links[id.link as usize] = None;
            self.movers.retain(|mover| match mover {
                Mover::Pipe(pipe) => pipe.link != id.link,
                Mover::Newcomer { link, .. } => *link != id.link,
            });
            self.vacant.push(id.link);
        } else {
            self.set_moving(id);
            self.set_moving(SocketId {
                link: id.link,
                side: id.side.other(),
            });
        }
    }

    /// Ends the watch of a socket, with what was to be told of it.
    pub(super) fn unwatch(&mut self, id: SocketId) -> Option<Watch> {
        let socket = self.link(id.link).socket(id.side);
        let watch = socket.watch.take()?;
        socket.edges = Ready::EMPTY;
        socket.is_queued = false;
        let poller = &mut self.pollers[watch.poller as usize];
        poller.queue.retain(|source| *source != Source::Socket(id));
        Some(watch)
    }

    /// Notes a change that the socket's watcher is to be told.
    pub(super) fn edge(&mut self, id: SocketId, ready: Ready) {
        let socket = self.link(id.link).socket(id.side);
        if !socket.is_open {
            return;
        }
        if let Some(watch) = socket.watch {
            socket.edges.insert(ready);
            if !socket.is_queued {
                socket.is_queued = true;
                let poller = &mut self.pollers[watch.poller as usize];
                poller.queue.push(Source::Socket(id));
            }
        }
    }

    /// Notes that somebody waits at the listener.
    pub(super) fn listener_edge(&mut self, at: u32) {
        let Some(listener) = &mut self.listeners[at as usize] else {
            return;
        };
        if let Some(watch) = listener.watch
            && !listener.is_queued
        {
            listener.is_queued = true;
            let poller = &mut self.pollers[watch.poller as usize];
            poller.queue.push(Source::Listener(at));
        }
    }

    /// Puts the pipe that `id` writes into on the list of those that may have something to do.
    pub(super) fn set_moving(&mut self, id: SocketId) {
        let pipe = self.link(id.link).outgoing(id.side);
        if !pipe.is_moving {
            pipe.is_moving = true;
            self.movers.push(Mover::Pipe(id));
        }
    }

    /// Whether a round of the network could change anything.
    pub(super) fn can_move(&self) -> bool {
        !self.movers.is_empty()
    }

    /// One round: each thing on its way may move, in any order. If `is_forced`, each moves as far as it can.
    pub(super) fn step(&mut self, is_forced: bool) {
        let mut movers = std::mem::take(&mut self.movers);
        self.rng.shuffle(&mut movers);
        for mover in movers {
            if !is_forced && self.rng.chance(self.faults.delay) {
                self.movers.push(mover);
                continue;
            }
            match mover {
                Mover::Newcomer { link, listener } => self.arrive(link, listener),
                // A refused newcomer's link is gone, and what it has sent with it.
                Mover::Pipe(id) => {
                    if let Some(link) = &mut self.links[id.link as usize] {
                        link.outgoing(id.side).is_moving = false;
                        self.carry(id, is_forced);
                    }
                }
            }
        }
    }

    fn arrive(&mut self, link: u32, at: u32) {
        match &mut self.listeners[at as usize] {
            Some(listener) => {
                listener.queue.push(link);
                self.listener_edge(at);
            }
            // Closed in the meantime, and its number isn't given to another.
            None => self.refuse(link),
        }
    }

    /// Moves what the socket `id` has sent, and tells both sides.
    pub(super) fn carry(&mut self, id: SocketId, is_forced: bool) {
        let there = SocketId {
            link: id.link,
            side: id.side.other(),
        };
        let link = self.links[id.link as usize]
            .as_mut()
            .expect("movers of a closed link are gone");
        let has_reader = link.socket(there.side).is_open;
        let pipe = &mut link.pipes[id.side as usize];
        let carried = pipe.carry(&mut self.rng, &self.faults, has_reader, is_forced);
        let has_reset = std::mem::take(&mut pipe.has_reset);
        let has_end = pipe.fin == Fin::Arrived;
        self.note("carry", u64::from(id.link), carried.bytes as u64);
        if carried.has_room {
            self.edge(id, Ready::WRITABLE);
        }
        if carried.bytes > 0 && !has_reader {
            // Nobody is there to take it: the system answers with a reset.
            self.link(id.link).outgoing(there.side).has_reset = true;
            self.set_moving(there);
        }
        if carried.bytes > 0 || carried.has_rest || carried.has_fin_arrived {
            let mut ready = Ready::READABLE;
            if has_end {
                ready.insert(Ready::READ_CLOSED);
            }
            self.edge(there, ready);
        }
        if has_reset {
            self.reset(there);
        }
        let link = self.link(id.link);
        if link.outgoing(id.side).can_move(has_reader) {
            self.set_moving(id);
        }
    }

    /// A reset has arrived at the socket `id`.
    fn reset(&mut self, id: SocketId) {
        let loses_arrived = self.rng.chance(self.faults.cut);
        let link = self.link(id.link);
        if !link.socket(id.side).is_open || link.socket(id.side).is_reset {
            return;
        }
        link.socket(id.side).is_reset = true;
        link.socket(id.side).has_error = true;
        link.outgoing(id.side).lose_sent(0);
        link.incoming(id.side).lose_sent(0);
        if loses_arrived {
            link.incoming(id.side).forget_arrived();
        }
        self.note("reset", u64::from(id.link), id.side as u64);
        self.edge(id, Ready::ALL);
    }
}
