//! What the simulated system does when a socket is read, written, shut down or polled.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use crate::Ready;

use super::link::SocketId;
use super::network::{Source, State};
use super::pipe::Fin;

/// Tokens remembered for stale events.
const RETIRED_MAX: usize = 16;

impl State {
    /// Reads as a non-blocking socket does.
    pub(super) fn read(&mut self, id: SocketId, buf: &mut [u8]) -> io::Result<usize> {
        self.meanwhile(id);
        let is_denied = self.rng.chance(self.faults.deny);
        let is_cut = self.rng.chance(self.faults.cut);
        let link = self.link(id.link);
        if link.socket(id.side).is_deaf || buf.is_empty() {
            return Ok(0);
        }
        let waiting = link.incoming(id.side).waiting();
        if waiting == 0 {
            let socket = link.socket(id.side);
            if std::mem::take(&mut socket.has_error) {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            if socket.is_reset || link.incoming(id.side).fin == Fin::Arrived {
                return Ok(0);
            }
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut len = waiting.min(buf.len());
        if is_denied {
            len = 0;
        } else if is_cut {
            len = self.rng.up_to(len);
        }
        let incoming = self.link(id.link).incoming(id.side);
        incoming.pop(&mut buf[..len]);
        if len < buf.len() && len < waiting {
            // Whoever stops at a short read counts on an edge for the rest.
            incoming.is_hungry = true;
        }
        self.set_moving(SocketId {
            link: id.link,
            side: id.side.other(),
        });
        self.note("read", u64::from(id.link), len as u64);
        if len == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(len)
    }

    /// Writes as a non-blocking socket does.
    pub(super) fn write(&mut self, id: SocketId, buf: &[u8]) -> io::Result<usize> {
        self.meanwhile(id);
        let is_denied = self.rng.chance(self.faults.deny);
        let is_cut = self.rng.chance(self.faults.cut);
        let link = self.link(id.link);
        if link.socket(id.side).is_reset {
            let socket = link.socket(id.side);
            let is_first = std::mem::take(&mut socket.has_error);
            return Err(if is_first {
                io::ErrorKind::ConnectionReset.into()
            } else {
                io::ErrorKind::BrokenPipe.into()
            });
        }
        let outgoing = link.outgoing(id.side);
        if outgoing.fin != Fin::Open {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if buf.is_empty() {
            return Ok(0);
        }
        let mut len = buf.len().min(outgoing.room());
        if is_denied {
            len = 0;
        } else if is_cut && len > 0 {
            len = self.rng.up_to(len);
        }
        let outgoing = self.link(id.link).outgoing(id.side);
        outgoing.push(&buf[..len]);
        if len < buf.len() {
            outgoing.is_starved = true;
        }
        self.set_moving(id);
        self.note("write", u64::from(id.link), len as u64);
        if len == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(len)
    }

    /// The network doesn't stand still while a turn runs.
    fn meanwhile(&mut self, id: SocketId) {
        for id in [
            id,
            SocketId {
                link: id.link,
                side: id.side.other(),
            },
        ] {
            if self.rng.chance(self.faults.meanwhile) {
                self.carry(id, false);
            }
        }
    }

    /// Ends one direction or both.
    pub(super) fn shutdown(&mut self, id: SocketId, how: Shutdown) -> io::Result<()> {
        let link = self.link(id.link);
        if link.socket(id.side).is_reset {
            return Err(io::ErrorKind::NotConnected.into());
        }
        if how != Shutdown::Read && link.outgoing(id.side).fin == Fin::Open {
            link.outgoing(id.side).fin = Fin::Sent;
            self.set_moving(id);
        }
        if how != Shutdown::Write {
            self.link(id.link).socket(id.side).is_deaf = true;
            self.edge(id, Ready::READABLE | Ready::READ_CLOSED);
        }
        self.note("shutdown", u64::from(id.link), id.side as u64);
        Ok(())
    }

    /// Remembers a token that is no longer watched.
    pub(super) fn retire(&mut self, poller: u32, token: u64) {
        let retired = &mut self.pollers[poller as usize].retired;
        if retired.len() == RETIRED_MAX {
            retired.remove(0);
        }
        retired.push(token);
    }

    /// Lets some time pass: at least a little, so that a loop which never waits still comes to its deadline.
    pub(super) fn drift(&mut self) {
        if !self.is_clock_manual {
            let most = self.faults.latency_max.max(Duration::from_micros(1));
            let most = usize::try_from(most.as_nanos()).unwrap_or(usize::MAX);
            self.elapsed += Duration::from_nanos(self.rng.up_to(most) as u64);
        }
    }

    /// What `poller` is told in this round.
    pub(super) fn collect(&mut self, poller: u32, is_forced: bool, out: &mut Vec<(u64, Ready)>) {
        let mut queue = std::mem::take(&mut self.pollers[poller as usize].queue);
        if self.faults.hold > 0 {
            self.rng.shuffle(&mut queue);
        }
        for source in queue {
            if !is_forced && self.rng.chance(self.faults.hold) {
                self.pollers[poller as usize].queue.push(source);
                continue;
            }
            match source {
                Source::Socket(id) => self.tell_socket(id, out),
                Source::Listener(at) => self.tell_listener(at, out),
            }
        }
        self.invent(poller, out);
        for (token, ready) in out.iter() {
            let bits = ready.is_readable() as u64 | (ready.is_writable() as u64) << 1;
            self.note("event", *token, bits);
        }
    }

    fn tell_socket(&mut self, id: SocketId, out: &mut Vec<(u64, Ready)>) {
        let is_obsolete_told = self.rng.chance(self.faults.spurious);
        // epoll tells all that holds, kqueue only what has changed.
        let is_like_epoll = self.faults.split == 0 || !self.rng.chance(500);
        let is_split = self.rng.chance(self.faults.split);
        let link = self.link(id.link);
        let level = link.level(id.side);
        let socket = link.socket(id.side);
        socket.is_queued = false;
        let mut ready = std::mem::take(&mut socket.edges);
        let Some(watch) = socket.watch else {
            return;
        };
        if !is_obsolete_told {
            // What was true when the edge arose may be over: then there is nothing to tell.
            for bit in [Ready::READABLE, Ready::WRITABLE, Ready::ERROR] {
                if !level.contains(bit) {
                    ready.remove(bit);
                }
            }
        }
        if ready.is_empty() {
            return;
        }
        if is_like_epoll {
            ready.insert(level);
        }
        let ready = ready.normalised();
        let is_gone = ready.is_write_closed() || ready.is_error();
        if is_split && !is_gone && ready.is_readable() && ready.is_writable() {
            let mut reading = ready;
            reading.remove(Ready::WRITABLE);
            out.push((watch.token, reading));
            out.push((watch.token, Ready::WRITABLE));
        } else {
            out.push((watch.token, ready));
        }
    }

    fn tell_listener(&mut self, at: u32, out: &mut Vec<(u64, Ready)>) {
        if let Some(listener) = &mut self.listeners[at as usize] {
            listener.is_queued = false;
            if let Some(watch) = listener.watch
                && !listener.queue.is_empty()
            {
                out.push((watch.token, Ready::READABLE));
            }
        }
    }

    /// Adds events that nothing has caused.
    fn invent(&mut self, poller: u32, out: &mut Vec<(u64, Ready)>) {
        if !self.links.is_empty() && self.rng.chance(self.faults.spurious) {
            let at = self.rng.below(self.links.len());
            let watches = self.links[at].iter().flat_map(|link| &link.sockets);
            let mut mine = watches
                .filter_map(|socket| socket.watch)
                .filter(|watch| watch.poller == poller);
            if let Some(watch) = mine.next() {
                out.push((watch.token, Ready::READABLE | Ready::WRITABLE));
            }
        }
        let retired = &self.pollers[poller as usize].retired;
        if !retired.is_empty() && self.rng.chance(self.faults.stale) {
            let token = retired[self.rng.below(retired.len())];
            out.push((token, Ready::READABLE | Ready::WRITABLE));
        }
    }
}
