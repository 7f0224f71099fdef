//! The platform for real: epoll or kqueue and sockets, by way of mio.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net as unix;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Token};
use socket2::{SockRef, TcpKeepalive};

use crate::doze::Doze;
use crate::listen::ListenConfig;
use crate::names::Names;
use crate::{Peer, Platform, Ready, Stream, Wake};

/// Events taken from the system at once; what is left over comes with the next poll. 1 024 are 12 KiB.
const EVENTS_MAX: usize = 1_024;

/// mio's token of the wake-up. No descriptor has this number, and no token of a stream or listener is so high.
const WAKE: Token = Token(usize::MAX);

/// The operating system's sockets, watched by epoll or kqueue.
#[derive(Debug)]
pub struct Mio {
    poll: mio::Poll,
    events: mio::Events,
    waker: MioWaker,
    names: Names,
    /// A descriptor kept for the moment when there is no other: closing it makes room for one newcomer.
    reserve: Option<File>,
}

impl Mio {
    /// A poll of its own, a wake-up and the reserved descriptor: three or four descriptors in all.
    ///
    /// # Errors
    /// When the system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let poll = mio::Poll::new()?;
        let waker = MioWaker(Arc::new(Call {
            doze: Doze::new(),
            waker: mio::Waker::new(poll.registry(), WAKE)?,
        }));
        Ok(Self {
            poll,
            events: mio::Events::with_capacity(EVENTS_MAX),
            waker,
            names: Names::for_target(),
            reserve: Some(open_reserve()?),
        })
    }

    /// Takes over a listening TCP socket as it is, for instance one that was inherited: makes it non-blocking and
    /// close-on-exec, and what it accepts sends small writes at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// As the system says.
    pub fn listener(listener: std::net::TcpListener) -> io::Result<MioListener> {
        take_over(&SockRef::from(&listener))?;
        SockRef::from(&listener).set_tcp_nodelay(true)?;
        Ok(MioListener(Listening::Tcp(TcpListener::from_std(listener))))
    }

    /// As [`listener`](Self::listener), with the options of `config` that can still be changed on a listening
    /// socket: `nodelay`, `keepalive` and `defer_accept`.
    ///
    /// # Errors
    /// As the system says.
    pub fn listener_with(
        listener: std::net::TcpListener,
        config: &ListenConfig,
    ) -> io::Result<MioListener> {
        take_over(&SockRef::from(&listener))?;
        config.apply(&listener)?;
        Ok(MioListener(Listening::Tcp(TcpListener::from_std(listener))))
    }

    /// Takes over a listening Unix socket: makes it non-blocking and close-on-exec.
    ///
    /// # Errors
    /// As the system says.
    pub fn unix_listener(listener: unix::UnixListener) -> io::Result<MioListener> {
        take_over(&SockRef::from(&listener))?;
        Ok(MioListener(Listening::Unix(UnixListener::from_std(
            listener,
        ))))
    }

    /// Takes over a connected TCP stream: makes it non-blocking and close-on-exec.
    ///
    /// # Errors
    /// As the system says; `NotConnected` when the peer is gone already.
    pub fn stream(stream: std::net::TcpStream) -> io::Result<MioStream> {
        take_over(&SockRef::from(&stream))?;
        let peer = stream.peer_addr()?;
        Ok(MioStream::tcp(TcpStream::from_std(stream), peer))
    }

    /// Takes over a connected Unix stream: makes it non-blocking and close-on-exec.
    ///
    /// # Errors
    /// As the system says.
    pub fn unix_stream(stream: unix::UnixStream) -> io::Result<MioStream> {
        take_over(&SockRef::from(&stream))?;
        Ok(MioStream(Connected::Unix(UnixStream::from_std(stream))))
    }

    /// Starts to connect and doesn't wait: once registered, the stream becomes writable when it is connected, or
    /// has an error to give.
    ///
    /// # Errors
    /// What is clear at once, such as no route.
    pub fn connect(addr: SocketAddr) -> io::Result<MioStream> {
        Ok(MioStream::tcp(TcpStream::connect(addr)?, addr))
    }
}

impl Mio {
    pub(crate) fn register_source(
        &mut self,
        source: &mut (impl Source + AsFd),
        token: u64,
    ) -> io::Result<()> {
        let token = self.names.enter(source.as_fd().as_raw_fd(), token);
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(source, token, both)
    }

    pub(crate) fn deregister_source(
        &mut self,
        source: &mut (impl Source + AsFd),
    ) -> io::Result<()> {
        self.names.remove(source.as_fd().as_raw_fd());
        self.poll.registry().deregister(source)
    }
}

fn take_over(socket: &SockRef<'_>) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_cloexec(true)
}

fn open_reserve() -> io::Result<File> {
    File::open("/dev/null")
}

impl Platform for Mio {
    type Listener = MioListener;
    type Stream = MioStream;
    type Waker = MioWaker;

    fn register(&mut self, stream: &mut MioStream, token: u64) -> io::Result<()> {
        let token = self.names.enter(stream.as_fd().as_raw_fd(), token);
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(stream.source(), token, both)
    }

    fn deregister(&mut self, stream: &mut MioStream) -> io::Result<()> {
        self.names.remove(stream.as_fd().as_raw_fd());
        self.poll.registry().deregister(stream.source())
    }

    fn register_listener(&mut self, listener: &mut MioListener, token: u64) -> io::Result<()> {
        let token = self.names.enter(listener.as_fd().as_raw_fd(), token);
        self.poll
            .registry()
            .register(listener.source(), token, Interest::READABLE)
    }

    fn deregister_listener(&mut self, listener: &mut MioListener) -> io::Result<()> {
        self.names.remove(listener.as_fd().as_raw_fd());
        self.poll.registry().deregister(listener.source())
    }

    fn accept(&mut self, listener: &mut MioListener) -> io::Result<MioStream> {
        match &listener.0 {
            Listening::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                // Linux hands the listener's options on to what it accepts; elsewhere that isn't promised.
                #[cfg(not(target_os = "linux"))]
                stream.set_nodelay(SockRef::from(listener).tcp_nodelay()?)?;
                Ok(MioStream::tcp(stream, peer))
            }
            Listening::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                Ok(MioStream(Connected::Unix(stream)))
            }
        }
    }

    fn accept_on_reserve(&mut self, listener: &mut MioListener) -> io::Result<MioStream> {
        self.reserve = None;
        self.accept(listener)
    }

    fn restock(&mut self) {
        if self.reserve.is_none() {
            // Without one the newcomers wait in the queue until a descriptor is free: nothing worse.
            self.reserve = open_reserve().ok();
        }
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        mut on_ready: impl FnMut(u64, Ready),
    ) -> io::Result<()> {
        let mut timeout = timeout;
        if timeout != Some(Duration::ZERO) && !self.waker.0.doze.doze() {
            timeout = Some(Duration::ZERO);
        }
        let waited = self.poll.poll(&mut self.events, timeout);
        self.waker.0.doze.rouse();
        waited?;
        for event in &self.events {
            if event.token() == WAKE {
                continue;
            }
            if let Some(token) = self.names.resolve(event.token()) {
                on_ready(token, ready_of(event));
            }
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn waker(&self) -> MioWaker {
        self.waker.clone()
    }
}

fn ready_of(event: &mio::event::Event) -> Ready {
    let mut ready = Ready::EMPTY;
    for (is_set, bit) in [
        (event.is_readable(), Ready::READABLE),
        (event.is_writable(), Ready::WRITABLE),
        (event.is_read_closed(), Ready::READ_CLOSED),
        (event.is_write_closed(), Ready::WRITE_CLOSED),
        (event.is_error(), Ready::ERROR),
    ] {
        if is_set {
            ready.insert(bit);
        }
    }
    ready.normalised()
}

#[derive(Debug)]
struct Call {
    doze: Doze,
    waker: mio::Waker,
}

/// Wakes a loop on [`Mio`] from any thread: a system call if the loop sleeps, else one atomic.
#[derive(Clone, Debug)]
pub struct MioWaker(Arc<Call>);

impl Wake for MioWaker {
    fn wake(&self) {
        if self.0.doze.call() {
            // It fails only when the loop is gone, and then nobody has to be woken.
            let _ = self.0.waker.wake();
        }
    }
}

/// A listening TCP or Unix socket.
#[derive(Debug)]
pub struct MioListener(Listening);

#[derive(Debug)]
enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl MioListener {
    fn source(&mut self) -> &mut dyn Source {
        match &mut self.0 {
            Listening::Tcp(listener) => listener,
            Listening::Unix(listener) => listener,
        }
    }

    /// The TCP address it listens on; `None` for a Unix socket.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match &self.0 {
            Listening::Tcp(listener) => listener.local_addr().ok(),
            Listening::Unix(_) => None,
        }
    }
}

impl AsFd for MioListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Listening::Tcp(listener) => listener.as_fd(),
            Listening::Unix(listener) => listener.as_fd(),
        }
    }
}

/// A TCP or Unix connection.
#[derive(Debug)]
pub struct MioStream(Connected);

#[derive(Debug)]
enum Connected {
    Tcp { stream: TcpStream, peer: SocketAddr },
    Unix(UnixStream),
}

impl MioStream {
    fn tcp(stream: TcpStream, peer: SocketAddr) -> Self {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        Self(Connected::Tcp { stream, peer })
    }

    fn source(&mut self) -> &mut dyn Source {
        match &mut self.0 {
            Connected::Tcp { stream, .. } => stream,
            Connected::Unix(stream) => stream,
        }
    }

    /// The TCP stream's own address; `None` for a Unix socket.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match &self.0 {
            Connected::Tcp { stream, .. } => stream.local_addr().ok(),
            Connected::Unix(_) => None,
        }
    }
}

impl AsFd for MioStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Connected::Tcp { stream, .. } => stream.as_fd(),
            Connected::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for MioStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Connected::Tcp { stream, .. } => stream.read(buf),
            Connected::Unix(stream) => stream.read(buf),
        }
    }

    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match &mut self.0 {
            Connected::Tcp { stream, .. } => stream.read_vectored(bufs),
            Connected::Unix(stream) => stream.read_vectored(bufs),
        }
    }
}

impl Write for MioStream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Connected::Tcp { stream, .. } => stream.write(buf),
            Connected::Unix(stream) => stream.write(buf),
        }
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.0 {
            Connected::Tcp { stream, .. } => stream.write_vectored(bufs),
            Connected::Unix(stream) => stream.write_vectored(bufs),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for MioStream {
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match &self.0 {
            Connected::Tcp { stream, .. } => stream.shutdown(how),
            Connected::Unix(stream) => stream.shutdown(how),
        }
    }

    fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        match &self.0 {
            Connected::Tcp { stream, .. } => stream.set_nodelay(nodelay),
            Connected::Unix(_) => Ok(()),
        }
    }

    fn set_keepalive(&self, idle: Duration, interval: Duration) -> io::Result<()> {
        match &self.0 {
            Connected::Tcp { stream, .. } => SockRef::from(stream)
                .set_tcp_keepalive(&TcpKeepalive::new().with_time(idle).with_interval(interval)),
            Connected::Unix(_) => Ok(()),
        }
    }

    fn set_reset_on_drop(&self) -> io::Result<()> {
        match &self.0 {
            Connected::Tcp { stream, .. } => SockRef::from(stream).set_linger(Some(Duration::ZERO)),
            Connected::Unix(_) => Ok(()),
        }
    }

    fn peer(&self) -> Peer {
        match &self.0 {
            Connected::Tcp { peer, .. } => Peer::Tcp(*peer),
            Connected::Unix(_) => Peer::Unix,
        }
    }
}

#[cfg(test)]
mod tests;
