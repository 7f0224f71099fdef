//! A rig makes loops, listeners and clients of one platform.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pumice_event_loop::sim::{self, Faults, Flow, World};
use pumice_event_loop::{
    EventLoop, ListenConfig, LoopConfig, Mio, MioListener, Platform, bind, bind_unix,
};

/// Makes the parts of a test on one platform.
pub(crate) trait Rig {
    type Platform: Platform;
    type Client: Client;

    fn platform(&self) -> Self::Platform;

    /// A listener at an address of its own: clients go to the last one made.
    fn listener(&mut self) -> <Self::Platform as Platform>::Listener;

    fn connect(&self) -> Self::Client;

    /// A time within which everything that is on its way has been told, when nothing else happens.
    fn quiet(&self, now: Instant) -> Instant;

    /// Makes a simulated world stop to invent things.
    fn calm(&self) {}

    fn event_loop(&self) -> EventLoop<Self::Platform> {
        EventLoop::with_platform(self.platform()).expect("descriptors are left")
    }

    fn event_loop_with(&self, config: LoopConfig) -> EventLoop<Self::Platform> {
        EventLoop::with_config(self.platform(), config).expect("the configuration is valid")
    }
}

/// How far a client's connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    Ended,
    Reset,
}

/// A client that never blocks.
pub(crate) trait Client {
    /// Sends all of `bytes`, now or with a later `receive`.
    fn send(&mut self, bytes: &[u8]);
    /// Moves what has arrived to `out`.
    fn receive(&mut self, out: &mut Vec<u8>) -> State;
    /// Ends the client's direction, behind all that was sent.
    fn finish(&mut self);
    fn reset(self);
}

/// TCP on the loopback device.
#[derive(Debug)]
pub(crate) struct MioRig {
    addr: Option<SocketAddr>,
}

impl MioRig {
    pub(crate) fn new() -> Self {
        Self { addr: None }
    }
}

impl Rig for MioRig {
    type Platform = Mio;
    type Client = Peer<TcpStream>;

    fn platform(&self) -> Mio {
        Mio::new().expect("descriptors are left")
    }

    fn listener(&mut self) -> MioListener {
        let addr = "127.0.0.1:0".parse().unwrap();
        let listener = bind(addr, &ListenConfig::default()).unwrap();
        self.addr = Some(listener.local_addr().unwrap());
        Mio::listener(listener).unwrap()
    }

    fn connect(&self) -> Peer<TcpStream> {
        let stream = TcpStream::connect(self.addr.expect("there is a listener")).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        Peer::new(stream)
    }

    fn quiet(&self, now: Instant) -> Instant {
        now + Duration::from_millis(20)
    }
}

/// Unix sockets.
#[derive(Debug)]
pub(crate) struct UnixRig {
    paths: Vec<PathBuf>,
}

impl UnixRig {
    pub(crate) fn new() -> Self {
        Self { paths: Vec::new() }
    }

    fn next_path(&mut self) -> &PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "pumice-{}-{}.sock",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        self.paths.push(std::env::temp_dir().join(name));
        self.paths.last().expect("it has just been pushed")
    }
}

impl Drop for UnixRig {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = fs::remove_file(path);
        }
    }
}

impl Rig for UnixRig {
    type Platform = Mio;
    type Client = Peer<UnixStream>;

    fn platform(&self) -> Mio {
        Mio::new().expect("descriptors are left")
    }

    fn listener(&mut self) -> MioListener {
        Mio::unix_listener(bind_unix(self.next_path(), 0o600).unwrap()).unwrap()
    }

    fn connect(&self) -> Peer<UnixStream> {
        let stream = UnixStream::connect(self.paths.last().expect("there is a listener")).unwrap();
        stream.set_nonblocking(true).unwrap();
        Peer::new(stream)
    }

    fn quiet(&self, now: Instant) -> Instant {
        now + Duration::from_millis(20)
    }
}

/// A std stream that is either kind of socket.
pub(crate) trait Socket: Read + Write {
    fn end(&self);
    fn set_reset_on_close(&self);
}

impl Socket for TcpStream {
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }

    fn set_reset_on_close(&self) {
        let socket = socket2::SockRef::from(self);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
}

impl Socket for UnixStream {
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }

    // Closing one with something unread is as near as it gets, and a plain close is near enough.
    fn set_reset_on_close(&self) {}
}

/// A non-blocking client of a real socket.
#[derive(Debug)]
pub(crate) struct Peer<S> {
    stream: S,
    unsent: Vec<u8>,
    is_finishing: bool,
}

impl<S: Socket> Peer<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            unsent: Vec::new(),
            is_finishing: false,
        }
    }

    fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(len) => drop(self.unsent.drain(..len)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The next receive tells.
                Err(_) => self.unsent.clear(),
            }
        }
        if std::mem::take(&mut self.is_finishing) {
            self.stream.end();
        }
    }
}

impl<S: Socket> Client for Peer<S> {
    fn send(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
        self.flush();
    }

    fn receive(&mut self, out: &mut Vec<u8>) -> State {
        self.flush();
        let mut buf = [0; 16_384];
        loop {
            match self.stream.read(&mut buf) {
                Ok(0) => return State::Ended,
                Ok(len) => out.extend_from_slice(&buf[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return State::Open,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return State::Reset,
            }
        }
    }

    fn finish(&mut self) {
        self.is_finishing = true;
        self.flush();
    }

    fn reset(self) {
        self.stream.set_reset_on_close();
    }
}

/// A simulated world.
#[derive(Debug)]
pub(crate) struct SimRig {
    pub(crate) world: World,
    addr: SocketAddr,
}

impl SimRig {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            world: World::new(seed),
            addr: "10.0.0.1:80".parse().unwrap(),
        }
    }
}

impl Rig for SimRig {
    type Platform = sim::Sim;
    type Client = sim::Client;

    fn platform(&self) -> sim::Sim {
        self.world.platform()
    }

    fn listener(&mut self) -> sim::SimListener {
        self.addr.set_port(self.addr.port() + 1);
        self.world.listener(self.addr)
    }

    fn connect(&self) -> sim::Client {
        self.world.connect(self.addr).unwrap()
    }

    fn quiet(&self, now: Instant) -> Instant {
        self.world.settle();
        now + Duration::from_millis(20)
    }

    fn calm(&self) {
        self.world.set_faults(Faults::calm());
    }
}

impl Client for sim::Client {
    fn send(&mut self, bytes: &[u8]) {
        // What a reset has made of it, the next receive tells.
        let _: io::Result<()> = Self::send(self, bytes);
    }

    fn receive(&mut self, out: &mut Vec<u8>) -> State {
        match Self::receive(self, out) {
            Ok(Flow::Open) => State::Open,
            Ok(Flow::Ended) => State::Ended,
            Err(_) => State::Reset,
        }
    }

    fn finish(&mut self) {
        Self::finish(self);
    }

    fn reset(self) {
        Self::reset(self);
    }
}
