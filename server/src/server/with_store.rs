//! The store's part of a server: its endpoints, its ports, its tail.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use pumice_event_loop::Sender;

use super::Server;
use crate::address::{Endpoint, ListenProtocol};
use crate::executor::JobContext;
use crate::shared::{Service, Shared, Speaks};
use crate::store::stats::DiskGauge;
use crate::store::tail::{Batch, Deliver, Feed, Interest, Tail};
use crate::store::{Store, StoreConfig, StoreConfigError};
use crate::worker::{Message, StoreShared, StoreWorker};

/// A store that a server is to serve.
#[derive(Debug)]
pub(super) struct StoreSetup {
    store: Arc<dyn Store>,
    config: StoreConfig,
    disk: Arc<DiskGauge>,
}

impl StoreSetup {
    pub(super) fn into_shared(self) -> StoreShared {
        StoreShared {
            store: self.store,
            config: self.config,
            interest: Arc::new(Interest::default()),
            disk: self.disk,
        }
    }
}

/// Why a store can't be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreServeError {
    /// A setting can't be used.
    #[error(transparent)]
    Config(#[from] StoreConfigError),
    /// An address can't be bound.
    #[error(transparent)]
    Bind(#[from] io::Error),
}

impl Server {
    /// Serves an event store, over the wire protocol and over HTTP, at these endpoints. The server shuts the store down
    /// when it stops.
    ///
    /// # Errors
    /// A setting can't be used, or an address can't be bound.
    ///
    /// # Panics
    /// When the server has a store already.
    pub fn store(
        mut self,
        endpoints: &[Endpoint],
        store: Arc<dyn Store>,
        config: StoreConfig,
    ) -> Result<Self, StoreServeError> {
        assert!(self.store.is_none(), "a server has one store");
        config.validate()?;
        for endpoint in endpoints {
            let speaks = match endpoint.protocol {
                ListenProtocol::Auto => Speaks::Auto,
                ListenProtocol::Http => Speaks::Http,
                ListenProtocol::Frames => Speaks::Frames,
            };
            self.listen(&endpoint.address, speaks, Service::Store)?;
        }
        let disk = Arc::new(DiskGauge::new(config.data_dir.clone()));
        self.store = Some(StoreSetup {
            store,
            config,
            disk,
        });
        Ok(self)
    }

    pub(super) fn readers(&self) -> usize {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        self.store
            .as_ref()
            .map_or(0, |setup| match setup.config.read_threads {
                0 => cores,
                threads => threads,
            })
    }

    pub(super) fn job_context(&self) -> JobContext {
        JobContext {
            store: self
                .store
                .as_ref()
                .map(|setup| (setup.store.reader(), Arc::clone(&setup.disk))),
        }
    }
}

/// Where the tail leaves a worker's batches.
struct Outlet(Sender<Message>);

impl Deliver for Outlet {
    fn deliver(&self, batch: Arc<Batch>) {
        // A worker that has returned has no subscription left.
        let _ = self.0.send(Message::Tail(batch));
    }
}

/// Gives each worker its port, and starts the tail.
pub(super) fn seat(
    shared: &Shared,
    mailboxes: &[Sender<Message>],
) -> io::Result<Vec<Option<StoreWorker>>> {
    let Some(store) = &shared.store else {
        return Ok(mailboxes.iter().map(|_| None).collect());
    };
    let mut outlets: Vec<(Box<dyn Deliver>, Arc<Feed>)> = Vec::new();
    let mut workers = Vec::new();
    for mailbox in mailboxes {
        let wake = mailbox.clone();
        // A worker that has returned waits for nothing.
        let port = store
            .store
            .port(Arc::new(move || drop(wake.send(Message::PollStore))));
        let feed = Arc::<Feed>::default();
        workers.push(Some(StoreWorker::new(
            port,
            store.store.reader(),
            Arc::clone(&feed),
            Instant::now(),
        )));
        outlets.push((Box::new(Outlet(mailbox.clone())), feed));
    }
    let tail = Tail::new(store.store.reader(), Arc::clone(&store.interest), outlets);
    // Not joined: it ends when the store does, and a disk that hangs must not hold up the exit.
    thread::Builder::new()
        .name("tail".into())
        .spawn(move || tail.run())?;
    Ok(workers)
}

/// Everything that was asked for is done: stops the tail and the store.
pub(super) fn shut_down(shared: &Shared, deadline: Instant) {
    if let Some(store) = &shared.store {
        store.interest.stop();
        store.store.shutdown(deadline);
    }
}
