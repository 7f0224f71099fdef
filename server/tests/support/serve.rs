//! A server of this process, in a thread, on a free port.

use std::io;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pumice::{Config, Handle, Handler, Server, Totals};
#[cfg(feature = "store")]
use pumice::{Local, StoreConfig};
#[cfg(feature = "store")]
use tempfile::TempDir;

use super::{Client, PATIENCE, wait_until};

/// Settings of a small server that stops soon: one worker, two handler threads.
pub(crate) fn config() -> Config {
    Config {
        workers: 1,
        handler_threads: 2,
        stop_timeout: Duration::from_secs(2),
        ..Config::default()
    }
}

/// A running server. Dropped, it is stopped, and its threads are waited for.
#[derive(Debug)]
pub(crate) struct TestServer {
    addrs: Vec<SocketAddr>,
    handle: Handle,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Outlives the server's threads.
    #[cfg(feature = "store")]
    dir: Option<TempDir>,
}

impl TestServer {
    /// Runs `server`, which listens already.
    pub(crate) fn start(server: Server) -> Self {
        let addrs = server.local_addrs();
        let handle = server.handle();
        let thread = thread::Builder::new()
            .name("server".into())
            .spawn(move || server.run())
            .expect("a thread");
        Self {
            addrs,
            handle,
            thread: Some(thread),
            #[cfg(feature = "store")]
            dir: None,
        }
    }

    /// Serves HTTP by `handler`.
    pub(crate) fn http(config: Config, handler: impl Handler) -> Self {
        let server = Server::new(config).expect("the settings can be used");
        Self::start(server.http(any_port(), handler).expect("a free port"))
    }

    /// Serves a store over both protocols. An unchanged `data_dir` means a temporary one.
    #[cfg(feature = "store")]
    pub(crate) fn store(config: Config, mut store_config: StoreConfig) -> Self {
        let mut dir = None;
        if store_config.data_dir == StoreConfig::default().data_dir {
            let temporary = TempDir::new().expect("a temporary directory");
            store_config.data_dir = temporary.path().to_owned();
            dir = Some(temporary);
        }
        // Each segment's file is as long from the start, and many tests run at once.
        store_config.segment_bytes = store_config.segment_bytes.min(32 * 1024 * 1024);
        let server = Server::new(config).expect("the settings can be used");
        let store = Local::open(&store_config, server.workers()).expect("the store opens");
        let endpoints = ["127.0.0.1:0".parse().expect("an endpoint")];
        let server = server
            .store(&endpoints, std::sync::Arc::new(store), store_config)
            .expect("a free port");
        let mut server = Self::start(server);
        server.dir = dir;
        server
    }

    /// The first address it listens on.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addrs[0]
    }

    /// All addresses it listens on.
    pub(crate) fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.addr())
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn totals(&self) -> Totals {
        self.handle.totals()
    }

    /// Waits until the counters say so.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, mut holds: impl FnMut(&Totals) -> bool) {
        wait_until(what, || holds(&self.totals()));
    }

    /// Stops it and waits for its threads.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        self.handle.stop();
        self.join();
    }

    /// Waits for the end of a server that was told to stop.
    #[track_caller]
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let ended = thread.join().expect("the server does not panic");
            ended.expect("the server ends in order");
        }
    }

    /// Whether its `run` has returned.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            // A test that fails already says more than what follows from it.
            if !thread::panicking() {
                ended
                    .expect("the server does not panic")
                    .expect("the server ends in order");
            }
        }
    }
}

/// `127.0.0.1:0`.
pub(crate) fn any_port<A: From<SocketAddr>>() -> A {
    SocketAddr::from(([127, 0, 0, 1], 0)).into()
}
