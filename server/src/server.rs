//! A server: its listeners, its threads, and how it stops.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use pumice_event_loop::{EventLoop, ListenConfig, Mio, Platform, Sender, bind_unix, bind_workers};

use crate::address::Address;
use crate::config::{Config, ConfigError};
use crate::executor::{ThreadCounts, Threads};
use crate::handler::{FrameService, Handler};
use crate::metrics::{Counters, Totals};
use crate::proto::http::HttpTimeouts;
use crate::shared::{Room, Service, Shared, Site, Speaks};
use crate::worker::{Kit, Message, Seat, Worker};

#[cfg(feature = "store")]
mod with_store;
#[cfg(feature = "store")]
pub use with_store::StoreServeError;

/// Who may open a Unix socket's file: the owner and its group.
const UNIX_SOCKET_MODE: u32 = 0o660;

/// How long threads may take to end that work for connections which are gone. Chosen: a read that scans has this time.
const THREADS_END: Duration = Duration::from_secs(1);

/// A server that listens; [`Server::run`] serves.
///
/// Connections are accepted by the system from the moment their address is bound, and served when the server runs.
#[derive(Debug)]
pub struct Server {
    config: Config,
    listeners: Vec<Listening>,
    sites: Vec<Site>,
    handle: Handle,
    #[cfg(feature = "store")]
    store: Option<with_store::StoreSetup>,
}

/// One address, bound: a socket for each worker where the system can share newcomers out, else one for all.
#[derive(Debug)]
enum Bound {
    Tcp(Vec<TcpListener>),
    Unix(UnixListener),
}

#[derive(Debug)]
struct Listening {
    bound: Bound,
    site: usize,
}

/// Stops a server and tells what it did, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Handle {
    inner: Arc<HandleInner>,
}

#[derive(Debug, Default)]
struct HandleInner {
    is_stopping: AtomicBool,
    running: OnceLock<Running>,
}

#[derive(Debug)]
struct Running {
    workers: Vec<Sender<Message>>,
    shared: Arc<Shared>,
}

impl Handle {
    /// Stops accepting, lets what runs finish, and makes [`Server::run`] return; at the latest after
    /// [`Config::stop_timeout`]. Does nothing the second time. Doesn't block.
    pub fn stop(&self) {
        self.inner.is_stopping.store(true, Ordering::SeqCst);
        if let Some(running) = self.inner.running.get() {
            for worker in &running.workers {
                // A worker that has returned is stopped already.
                let _ = worker.send(Message::Stop);
            }
        }
    }

    /// What the server has counted so far; all zero before it runs.
    pub fn totals(&self) -> Totals {
        let running = self.inner.running.get();
        running.map_or_else(Totals::default, |running| {
            Totals::of(&running.shared.counters)
        })
    }
}

impl Server {
    /// A server with these settings.
    ///
    /// # Errors
    /// Names the first setting that can't be used.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            config: config.resolve(cores)?,
            listeners: Vec::new(),
            sites: Vec::new(),
            handle: Handle::default(),
            #[cfg(feature = "store")]
            store: None,
        })
    }

    /// Listens for HTTP/1.1 on an address, answered by `handler`.
    ///
    /// # Errors
    /// The address can't be bound.
    pub fn http(mut self, address: Address, handler: impl Handler) -> io::Result<Self> {
        self.listen(&address, Speaks::Http, Service::Handler(Arc::new(handler)))?;
        Ok(self)
    }

    /// Listens for length-prefixed frames on an address, answered by `service`.
    ///
    /// # Errors
    /// The address can't be bound.
    pub fn frames(mut self, address: Address, service: impl FrameService) -> io::Result<Self> {
        self.listen(&address, Speaks::Frames, Service::Frames(Arc::new(service)))?;
        Ok(self)
    }

    fn listen(&mut self, address: &Address, speaks: Speaks, service: Service) -> io::Result<()> {
        let (bound, is_loopback) = match address {
            Address::Tcp(addr) => {
                let listeners = bind_workers(*addr, &ListenConfig::default(), self.config.workers)?;
                (
                    Bound::Tcp(listeners),
                    addr.ip().to_canonical().is_loopback(),
                )
            }
            // No page of the web reaches a Unix socket.
            Address::Unix(path) => (Bound::Unix(bind_unix(path, UNIX_SOCKET_MODE)?), false),
        };
        self.sites.push(Site {
            speaks,
            service,
            is_loopback,
        });
        self.listeners.push(Listening {
            bound,
            site: self.sites.len() - 1,
        });
        Ok(())
    }

    /// The addresses that are bound, in the order in which they were asked for; a port that was 0 is the real one.
    pub fn addresses(&self) -> Vec<Address> {
        let of = |listening: &Listening| match &listening.bound {
            Bound::Tcp(listeners) => {
                let addr = listeners.first()?.local_addr().ok()?;
                Some(Address::Tcp(addr))
            }
            Bound::Unix(listener) => {
                let addr = listener.local_addr().ok()?;
                Some(Address::Unix(addr.as_pathname()?.to_owned()))
            }
        };
        self.listeners.iter().filter_map(of).collect()
    }

    /// The TCP addresses among [`Server::addresses`].
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        let tcp = |address| match address {
            Address::Tcp(addr) => Some(addr),
            Address::Unix(_) => None,
        };
        self.addresses().into_iter().filter_map(tcp).collect()
    }

    /// Worker threads that the server will have.
    pub fn workers(&self) -> usize {
        self.config.workers
    }

    /// Stops the server from elsewhere.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves until [`Handle::stop`]. Blocks.
    ///
    /// # Errors
    /// A thread or an event loop can't be started, or a worker's poll failed. Whatever ran is stopped then.
    pub fn run(self) -> io::Result<()> {
        let count = self.config.workers;
        let seats = (0..count)
            .map(|_| Seat::new(EventLoop::<Mio>::new()?))
            .collect::<io::Result<Vec<_>>>()?;
        let mailboxes: Vec<Sender<Message>> =
            seats.iter().map(|seat| seat.mailbox.sender()).collect();
        let others: Vec<_> = seats
            .iter()
            .map(|seat| (seat.newcomers.sender(), seat.mailbox.sender()))
            .collect();
        let counts = ThreadCounts {
            handlers: self.config.handler_threads,
            handler_queue_max: self.config.handler_queue_max,
            readers: self.readers(),
        };
        let executor = Threads::start(counts, &self.job_context(), &mailboxes)?;
        let http_timeouts = HttpTimeouts {
            head: self.config.head_timeout,
            body: self.config.body_timeout,
            idle: self.config.idle_timeout,
        };
        #[cfg(feature = "store")]
        let stop_timeout = self.config.stop_timeout;
        let shared = Arc::new(Shared {
            http_timeouts,
            counters: (0..count).map(|_| Counters::default()).collect(),
            rooms: (0..count).map(|_| Room::default()).collect(),
            executor: Box::new(executor),
            started: Instant::now(),
            #[cfg(feature = "store")]
            store: self.store.map(with_store::StoreSetup::into_shared),
            sites: self.sites,
            config: self.config,
        });
        let mut listeners = distribute(self.listeners, count)?.into_iter();
        #[cfg(feature = "store")]
        let mut ports = with_store::seat(&shared, &mailboxes)?.into_iter();
        let running = Running {
            workers: mailboxes,
            shared: Arc::clone(&shared),
        };
        assert!(
            self.handle.inner.running.set(running).is_ok(),
            "a server is consumed when it runs"
        );
        let mut threads = Vec::new();
        let mut result = Ok(());
        for (index, seat) in seats.into_iter().enumerate() {
            let kit = Kit::new(
                index,
                Arc::clone(&shared),
                Instant::now(),
                #[cfg(feature = "store")]
                ports.next().flatten(),
            );
            let worker = Worker::new(
                seat,
                listeners.next().unwrap_or_default(),
                others.clone(),
                kit,
            );
            let spawned = worker.and_then(|worker| {
                thread::Builder::new()
                    .name(format!("worker-{index}"))
                    .spawn(move || worker.run())
            });
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        // A stop that was asked for before the workers could be told, or a start that failed half-way.
        if result.is_err() || self.handle.inner.is_stopping.load(Ordering::SeqCst) {
            self.handle.stop();
        }
        for thread in threads {
            let ended = thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a worker panicked")));
            if ended.is_err() {
                self.handle.stop();
            }
            result = result.and(ended);
        }
        // The connections are gone: nobody waits for a handler or a read any more.
        shared.executor.stop(Instant::now() + THREADS_END);
        #[cfg(feature = "store")]
        with_store::shut_down(&shared, Instant::now() + stop_timeout);
        result
    }

    #[cfg(not(feature = "store"))]
    fn readers(&self) -> usize {
        0
    }

    #[cfg(not(feature = "store"))]
    fn job_context(&self) -> crate::executor::JobContext {
        crate::executor::JobContext::default()
    }
}

/// The listeners of one worker, each with the index of its site.
type Share = Vec<(<Mio as Platform>::Listener, usize)>;

/// Gives each worker its share of the listening sockets.
fn distribute(listeners: Vec<Listening>, workers: usize) -> io::Result<Vec<Share>> {
    let mut shares: Vec<Share> = (0..workers).map(|_| Vec::new()).collect();
    for Listening { bound, site } in listeners {
        match bound {
            Bound::Tcp(each) => {
                for (share, listener) in shares.iter_mut().zip(each) {
                    share.push((Mio::listener(listener)?, site));
                }
            }
            Bound::Unix(one) => {
                for share in &mut shares {
                    share.push((Mio::unix_listener(one.try_clone()?)?, site));
                }
            }
        }
    }
    Ok(shares)
}
