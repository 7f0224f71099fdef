//! The simulated platform: what [`EventLoop`](crate::EventLoop) sees of a [`World`].

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use crate::{Peer, Platform, Ready, Stream, Wake};

use super::client::Flow;
use super::link::{Side, SocketId, Watch};
use super::pipe::Fin;
use super::world::World;

/// Rounds in which a poll without a result lets chance decide; after that everything moves as far as it can.
const ROUNDS_MAX: u32 = 8;

/// How long, on the real clock, a poll without a deadline waits for another thread's wake-up, when nothing in the
/// world can happen any more. Chosen: far above what a thread needs, and a hanging test ends.
const STALL_MAX: Duration = Duration::from_secs(10);

/// The platform of one event loop in a simulated [`World`]: made by [`World::platform`].
///
/// A loop without a deadline in a world where nothing can happen waits for a wake-up from another thread, and gets
/// `TimedOut` after ten real seconds.
pub struct Sim {
    world: World,
    poller: u32,
    told: Vec<(u64, Ready)>,
}

impl Sim {
    pub(super) const fn new(world: World, poller: u32) -> Self {
        Self {
            world,
            poller,
            told: Vec::new(),
        }
    }

    /// The world it is in.
    #[must_use]
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// Rounds of the world until there is something to tell, or `timeout` has passed.
    fn collect(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.told.clear();
        let shared = &self.world.shared;
        let mut state = shared.lock();
        if state.draw(|faults| faults.interrupt) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let deadline = timeout.map(|timeout| state.elapsed.saturating_add(timeout));
        for round in 0.. {
            let is_forced = round >= ROUNDS_MAX;
            state.drift();
            state.step(is_forced);
            state.collect(self.poller, is_forced, &mut self.told);
            let poller = self.poller as usize;
            if state.pollers[poller].is_woken && (self.told.is_empty() || !state.rng.chance(500)) {
                state.pollers[poller].is_woken = false;
                break;
            }
            if !self.told.is_empty() || state.is_clock_manual || timeout == Some(Duration::ZERO) {
                break;
            }
            if deadline.is_some_and(|deadline| state.elapsed >= deadline) {
                break;
            }
            if state.draw(|faults| faults.spurious) {
                break;
            }
            if state.can_move() || !state.pollers[poller].queue.is_empty() {
                continue;
            }
            if let Some(deadline) = deadline {
                state.elapsed = deadline;
                break;
            }
            if shared.bell.wait_for(&mut state, STALL_MAX).timed_out() {
                let text = format!("nothing can happen in the world of seed {}", state.seed);
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
        }
        Ok(())
    }
}

impl Platform for Sim {
    type Listener = SimListener;
    type Stream = SimStream;
    type Waker = SimWaker;

    fn register(&mut self, stream: &mut SimStream, token: u64) -> io::Result<()> {
        let mut state = self.world.shared.lock();
        if state.registrations_to_fail > 0 {
            state.registrations_to_fail -= 1;
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let SocketId { link, side } = stream.id;
        if state.link(link).socket(side).watch.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let poller = self.poller;
        state.link(link).socket(side).watch = Some(Watch { poller, token });
        let level = state.link(link).level(side);
        state.note("register", u64::from(link), token);
        state.edge(stream.id, level);
        Ok(())
    }

    fn deregister(&mut self, stream: &mut SimStream) -> io::Result<()> {
        let mut state = self.world.shared.lock();
        match state.unwatch(stream.id) {
            Some(watch) => {
                state.retire(watch.poller, watch.token);
                Ok(())
            }
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn register_listener(&mut self, listener: &mut SimListener, token: u64) -> io::Result<()> {
        let mut state = self.world.shared.lock();
        if state.registrations_to_fail > 0 {
            state.registrations_to_fail -= 1;
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let poller = self.poller;
        let listening = state.listening(listener.at);
        if listening.watch.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        listening.watch = Some(Watch { poller, token });
        if !listening.queue.is_empty() {
            state.listener_edge(listener.at);
        }
        Ok(())
    }

    fn deregister_listener(&mut self, listener: &mut SimListener) -> io::Result<()> {
        let mut state = self.world.shared.lock();
        if state.unwatch_listener(listener.at) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn accept(&mut self, listener: &mut SimListener) -> io::Result<SimStream> {
        let id = self.world.shared.lock().accept(listener.at)?;
        Ok(SimStream::new(self.world.clone(), id))
    }

    fn accept_on_reserve(&mut self, listener: &mut SimListener) -> io::Result<SimStream> {
        {
            let mut state = self.world.shared.lock();
            let poller = &mut state.pollers[self.poller as usize];
            if std::mem::take(&mut poller.has_reserve) {
                state.descriptors -= 1;
            }
        }
        self.accept(listener)
    }

    fn restock(&mut self) {
        let mut state = self.world.shared.lock();
        if !state.pollers[self.poller as usize].has_reserve && state.has_room_for_descriptor() {
            state.pollers[self.poller as usize].has_reserve = true;
            state.descriptors += 1;
        }
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        mut on_ready: impl FnMut(u64, Ready),
    ) -> io::Result<()> {
        self.collect(timeout)?;
        for (token, ready) in self.told.drain(..) {
            on_ready(token, ready);
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        self.world.now()
    }

    fn waker(&self) -> SimWaker {
        SimWaker {
            world: self.world.clone(),
            poller: self.poller,
        }
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim")
            .field("world", &self.world)
            .field("poller", &self.poller)
            .finish_non_exhaustive()
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        let mut state = self.world.shared.lock();
        if std::mem::take(&mut state.pollers[self.poller as usize].has_reserve) {
            state.descriptors -= 1;
        }
    }
}

/// Wakes a loop on [`Sim`].
#[derive(Clone, Debug)]
pub struct SimWaker {
    world: World,
    poller: u32,
}

impl Wake for SimWaker {
    fn wake(&self) {
        self.world.shared.lock().pollers[self.poller as usize].is_woken = true;
        self.world.shared.bell.notify_all();
    }
}

/// A simulated listening socket. Dropping it resets who still waits at it.
#[derive(Debug)]
pub struct SimListener {
    world: World,
    at: u32,
}

impl SimListener {
    pub(super) const fn new(world: World, at: u32) -> Self {
        Self { world, at }
    }

    /// The address it listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.world.shared.lock().listening(self.at).addr
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        self.world.shared.lock().close_listener(self.at);
    }
}

/// A simulated connection. Dropping it closes it in order, or resets it if something that has arrived wasn't read.
pub struct SimStream {
    world: World,
    id: SocketId,
}

impl SimStream {
    pub(super) const fn new(world: World, id: SocketId) -> Self {
        Self { world, id }
    }

    /// Its own address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        let mut state = self.world.shared.lock();
        let link = state.link(self.id.link);
        match self.id.side {
            Side::Client => link.client,
            Side::Server => link.server,
        }
    }

    pub(super) fn send_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.world.shared.lock();
        let link = state.link(self.id.link);
        if link.socket(self.id.side).is_reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let outgoing = link.outgoing(self.id.side);
        if outgoing.fin != Fin::Open {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        outgoing.push(bytes);
        state.set_moving(self.id);
        Ok(())
    }

    pub(super) fn receive_all(&mut self, out: &mut Vec<u8>) -> io::Result<Flow> {
        let mut state = self.world.shared.lock();
        let link = state.link(self.id.link);
        let incoming = link.incoming(self.id.side);
        let waiting = incoming.waiting();
        let start = out.len();
        out.resize(start + waiting, 0);
        incoming.pop(&mut out[start..]);
        let has_ended = incoming.fin == Fin::Arrived;
        let is_reset = link.socket(self.id.side).is_reset;
        if waiting > 0 {
            let SocketId { link, side } = self.id;
            let side = side.other();
            state.set_moving(SocketId { link, side });
        }
        if is_reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(if has_ended { Flow::Ended } else { Flow::Open })
    }

    pub(super) fn unsent(&self) -> usize {
        let mut state = self.world.shared.lock();
        state.link(self.id.link).outgoing(self.id.side).in_flight()
    }

    /// Makes a client's end one that a loop can have: it counts as a descriptor, and its send buffer is bounded.
    pub(super) fn into_counted(self) -> Self {
        let mut state = self.world.shared.lock();
        let most = state.faults.buffer_bytes_max.max(1);
        state.descriptors += 1;
        let link = state.link(self.id.link);
        link.socket(self.id.side).is_counted = true;
        link.outgoing(self.id.side).set_sent_max(most);
        drop(state);
        self
    }
}

impl Read for SimStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.world.shared.lock().read(self.id, buf)
    }
}

impl Write for SimStream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.world.shared.lock().write(self.id, buf)
    }

    fn write_vectored(&mut self, bufs: &[io::IoSlice<'_>]) -> io::Result<usize> {
        // As one write, so that a cut can fall into any of the slices.
        let bytes: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        self.write(&bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for SimStream {
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.world.shared.lock().shutdown(self.id, how)
    }

    fn set_nodelay(&self, _nodelay: bool) -> io::Result<()> {
        Ok(())
    }

    fn set_keepalive(&self, _idle: Duration, _interval: Duration) -> io::Result<()> {
        Ok(())
    }

    fn set_reset_on_drop(&self) -> io::Result<()> {
        let mut state = self.world.shared.lock();
        let socket = state.link(self.id.link).socket(self.id.side);
        socket.resets_on_drop = true;
        Ok(())
    }

    fn peer(&self) -> Peer {
        let mut state = self.world.shared.lock();
        let link = state.link(self.id.link);
        Peer::Tcp(match self.id.side {
            Side::Client => link.server,
            Side::Server => link.client,
        })
    }
}

impl fmt::Debug for SimStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimStream")
            .field("link", &self.id.link)
            .field("side", &self.id.side)
            .finish_non_exhaustive()
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        let mut state = self.world.shared.lock();
        if let Some(watch) = state.unwatch(self.id) {
            state.retire(watch.poller, watch.token);
        }
        state.close(self.id);
    }
}
