//! The embedded engine as a [`Store`].
//!
//! An append costs the worker one send on the writer's queue. Its reply comes on a channel of the worker's own, which
//! the worker polls with a waker that posts to its mailbox: no thread stands between the writer and the worker.
//!
//! Invariant: a port has at most its share of the writer's queue in flight, so that submitting never blocks.

use std::future::Future;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Instant;

use flume::r#async::RecvFut;
use flume::{Receiver, Sender};
use parking_lot::Mutex;
use tephra::log::set::LogError;
use tephra::{
    AppendError, PositionRange, ReadConfig, ReadHandle, SegmentConfig, SegmentSet,
    WriteCoordinator, WriteHandle, WriterConfig,
};

use super::{
    Append, Done, Full, Port, ReadAt, Status, Store, StoreConfig, StoreConfigError, Token,
};

/// Why a store couldn't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting can't be used.
    #[error(transparent)]
    Config(#[from] StoreConfigError),
    /// Another process has the directory, or its files can't be read or written.
    #[error("cannot open the store in {dir}: {reason}")]
    Open {
        /// The data directory.
        dir: String,
        /// What the engine says, and what to do about it where that is known.
        reason: String,
    },
}

/// The writer's state, as its replies are judged by.
const RUNNING: u8 = 0;
/// It stopped in order: what it didn't answer, it didn't take.
const STOPPED: u8 = 1;
/// It panicked: what it didn't answer may be on disk.
const FAILED: u8 = 2;

/// A store on one machine's disk, in this process.
pub struct Local {
    coordinator: Mutex<Option<WriteCoordinator>>,
    handle: WriteHandle,
    state: Arc<AtomicU8>,
    /// Appends that one port may have in flight.
    share: usize,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local")
            .field("tip", &self.handle.head())
            .field("share", &self.share)
            .finish_non_exhaustive()
    }
}

impl Local {
    /// Opens (or makes) the store for `workers` workers, and starts its writer thread. Blocks while the index is built
    /// where it is missing.
    ///
    /// # Errors
    /// A setting can't be used, another process has the directory, or the disk says no.
    pub fn open(config: &StoreConfig, workers: usize) -> Result<Self, OpenError> {
        config.validate()?;
        let fail = |reason: String| OpenError::Open {
            dir: config.data_dir.display().to_string(),
            reason,
        };
        let set = SegmentSet::open(&config.data_dir, SegmentConfig::new(config.segment_bytes))
            .map_err(|error| {
                fail(match error {
                    LogError::Locked { .. } => format!(
                        "{error}; stop the other server, or give this one another --data-dir"
                    ),
                    error => error.to_string(),
                })
            })?;
        let writer = WriterConfig {
            // One place more than all shares together, for the engine's own shutdown message.
            queue_capacity: config.queue_capacity.max(workers) + 1,
            max_batch_records: config.batch_appends_max,
            max_batch_bytes: config.batch_bytes_max.min(set.segment_capacity()),
            tips_window: config.tips_window,
            read: ReadConfig {
                scan_bias: config.scan_bias,
            },
            ..WriterConfig::default()
        };
        let (coordinator, handle) =
            WriteCoordinator::start(set, writer).map_err(|error| fail(error.to_string()))?;
        Ok(Self {
            coordinator: Mutex::new(Some(coordinator)),
            handle,
            state: Arc::new(AtomicU8::new(RUNNING)),
            share: (config.queue_capacity / workers.max(1)).max(1),
        })
    }
}

impl Store for Local {
    fn port(&self, wake: Arc<dyn Fn() + Send + Sync>) -> Box<dyn Port> {
        let (reply, replies) = flume::unbounded();
        Box::new(LocalPort {
            handle: self.handle.clone(),
            state: Arc::clone(&self.state),
            share: self.share,
            reply,
            replies,
            waker: Waker::from(Arc::new(PortWake(wake))),
            waiting: None,
            in_flight: InFlight::default(),
            at_once: Vec::new(),
        })
    }

    fn reader(&self) -> ReadHandle {
        self.handle.reader()
    }

    fn status(&self) -> Status {
        Status {
            tip: self.handle.head(),
            is_writable: self.state.load(Ordering::Acquire) == RUNNING,
        }
    }

    fn shutdown(&self, deadline: Instant) {
        let Some(coordinator) = self.coordinator.lock().take() else {
            return;
        };
        let (done, is_done) = flume::bounded(1);
        let state = Arc::clone(&self.state);
        // A thread of its own, since the engine joins its writer without a deadline, and a disk may never answer.
        let stop = move || {
            let ended = panic::catch_unwind(AssertUnwindSafe(|| drop(coordinator.shutdown())));
            state.store(
                if ended.is_ok() { STOPPED } else { FAILED },
                Ordering::Release,
            );
            // Nobody waits any more when the deadline has passed.
            let _ = done.send(());
        };
        match thread::Builder::new().name("store-stop".into()).spawn(stop) {
            Ok(_) => {
                if is_done.recv_deadline(deadline).is_err() {
                    tracing::error!(
                        "the store did not stop in time; what was not acknowledged may or may not be in it"
                    );
                }
            }
            Err(error) => tracing::error!(%error, "cannot start the thread that stops the store"),
        }
    }
}

/// The waker handed to the reply channel.
struct PortWake(Arc<dyn Fn() + Send + Sync>);

impl Wake for PortWake {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        (self.0)();
    }
}

type Reply = (u64, Result<PositionRange, AppendError>);

/// One worker's way to the embedded writer.
struct LocalPort {
    handle: WriteHandle,
    state: Arc<AtomicU8>,
    share: usize,
    reply: Sender<Reply>,
    replies: Receiver<Reply>,
    waker: Waker,
    /// The receive that will call the waker.
    waiting: Option<Pin<Box<RecvFut<'static, Reply>>>>,
    in_flight: InFlight,
    /// What was known without asking the writer.
    at_once: Vec<(Token, Done)>,
}

impl std::fmt::Debug for LocalPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalPort")
            .field("share", &self.share)
            .field("in_flight", &self.in_flight.len)
            .finish_non_exhaustive()
    }
}

impl LocalPort {
    /// The writer is gone: unless the store was stopped in order, that is a failure, and health checks say so.
    fn note_failure(&self) {
        let _ = self
            .state
            .compare_exchange(RUNNING, FAILED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The outcome of what the writer went away without answering.
    fn lost(&self) -> Done {
        self.note_failure();
        if self.state.load(Ordering::Acquire) == STOPPED {
            Done::NotAppended
        } else {
            Done::Unknown("the store's writer ended without an answer".into())
        }
    }

    /// The next reply, or `None` with the waker armed.
    fn next_reply(&mut self) -> Option<Reply> {
        loop {
            if let Some(waiting) = self.waiting.as_mut() {
                let reply = match waiting.as_mut().poll(&mut Context::from_waker(&self.waker)) {
                    Poll::Pending => return None,
                    Poll::Ready(reply) => reply,
                };
                self.waiting = None;
                // The channel has a sender as long as this port holds one.
                return reply.ok();
            }
            if let Ok(reply) = self.replies.try_recv() {
                return Some(reply);
            }
            if self.in_flight.len == 0 {
                return None;
            }
            self.waiting = Some(Box::pin(self.replies.clone().into_recv_async()));
        }
    }
}

impl Port for LocalPort {
    fn append(&mut self, append: Append, token: Token) -> Result<(), Full> {
        if self.in_flight.len >= self.share {
            return Err(Full(append));
        }
        let ticket = self.in_flight.insert(token);
        let submitted =
            self.handle
                .append_submit(append.events, append.condition, ticket, self.reply.clone());
        if let Err(error) = submitted {
            if matches!(error, AppendError::Shutdown) {
                self.note_failure();
            }
            self.in_flight.remove(ticket);
            self.at_once.push((token, outcome(Err(error))));
        }
        Ok(())
    }

    fn reach(&mut self, _: ReadAt, _: Instant, token: Token) {
        // One node holds all that any node acknowledged.
        self.at_once.push((token, Done::Reached));
    }

    fn poll_done(&mut self, out: &mut Vec<(Token, Done)>) {
        out.append(&mut self.at_once);
        // Each append in flight holds a sender. Asked before the channel is emptied: if only this port's is left, then
        // nothing can come after what is taken here.
        let writer_is_gone = self.replies.sender_count() == 1;
        while let Some((ticket, result)) = self.next_reply() {
            if let Some(token) = self.in_flight.remove(ticket) {
                out.push((token, outcome(result)));
            }
        }
        if writer_is_gone && self.in_flight.len > 0 {
            let lost = self.lost();
            self.in_flight
                .drain(|token| out.push((token, lost.clone())));
        }
    }
}

/// What the engine's answer means for the one who appended.
fn outcome(result: Result<PositionRange, AppendError>) -> Done {
    match result {
        Ok(range) => Done::Appended {
            first: range.first,
            last: range.last,
        },
        // The queue was closed before it took the append.
        Err(AppendError::Shutdown) => Done::NotAppended,
        // A failed write or fsync: the bytes may have reached the disk.
        Err(error @ AppendError::Log(_)) => Done::Unknown(error.to_string()),
        Err(error) => Done::Refused(error),
    }
}

/// The tokens of the appends in flight, by the ticket that the engine echoes.
#[derive(Debug, Default)]
struct InFlight {
    tokens: Vec<Option<Token>>,
    free: Vec<usize>,
    len: usize,
}

impl InFlight {
    fn insert(&mut self, token: Token) -> u64 {
        self.len += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.tokens.push(None);
            self.tokens.len() - 1
        });
        self.tokens[index] = Some(token);
        index as u64
    }

    fn remove(&mut self, ticket: u64) -> Option<Token> {
        let index = usize::try_from(ticket).ok()?;
        let token = self.tokens.get_mut(index)?.take()?;
        self.free.push(index);
        self.len -= 1;
        Some(token)
    }

    fn drain(&mut self, mut each: impl FnMut(Token)) {
        for token in self.tokens.drain(..).flatten() {
            each(token);
        }
        self.free.clear();
        self.len = 0;
    }
}
