//! Where work runs that may block: handlers, and reads of the store.
//!
//! Workers know it by [`Executor`], so that a simulation can run the same jobs in an order of its own choosing.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use pumice_conn_pool::Key;
use pumice_event_loop::{Peer, Sender};

use crate::handler::Handler;
use crate::request::OwnedRequest;
use crate::response::Response;
use crate::worker::Message;

/// Which threads a job is for. Handlers are the user's code and may block for long; reads must not wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Handlers,
    #[cfg_attr(
        not(feature = "store"),
        expect(dead_code, reason = "only the store reads")
    )]
    Reads,
}

/// Work for another thread.
#[derive(Debug)]
pub(crate) enum Job {
    Handle(HandleJob),
    #[cfg(feature = "store")]
    Read(crate::store::stream::ReadJob),
    /// Measure the store's size, for the statistics that this asks for.
    #[cfg(feature = "store")]
    MeasureDisk(crate::worker::StatsFor),
}

/// A request for a handler.
pub(crate) struct HandleJob {
    pub(crate) conn: Key,
    pub(crate) request: Box<OwnedRequest>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) peer: Peer,
}

impl Debug for HandleJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandleJob")
            .field("conn", &self.conn)
            .finish_non_exhaustive()
    }
}

/// What came of a job.
#[derive(Debug)]
pub(crate) enum JobDone {
    Handled {
        conn: Key,
        /// `None` when the handler panicked.
        response: Option<Box<Response>>,
    },
    #[cfg(feature = "store")]
    Read(Box<crate::store::stream::ReadDone>),
    #[cfg(feature = "store")]
    DiskMeasured(crate::worker::StatsFor, crate::store::stats::DiskUse),
}

/// What jobs of the store need.
#[derive(Clone, Default)]
pub(crate) struct JobContext {
    #[cfg(feature = "store")]
    pub(crate) store: Option<(tephra::ReadHandle, Arc<crate::store::stats::DiskGauge>)>,
}

impl Job {
    /// Does the work; a panic in it is caught.
    pub(crate) fn run(self, context: &JobContext) -> JobDone {
        #[cfg(not(feature = "store"))]
        let JobContext {} = context;
        match self {
            Self::Handle(job) => {
                let mut response = Box::<Response>::default();
                let handled = panic::catch_unwind(AssertUnwindSafe(|| {
                    job.handler
                        .handle(&job.request.view(&job.peer), &mut response);
                }));
                JobDone::Handled {
                    conn: job.conn,
                    response: handled.is_ok().then_some(response),
                }
            }
            #[cfg(feature = "store")]
            Self::Read(job) => {
                let stream = job.stream;
                let done = panic::catch_unwind(AssertUnwindSafe(|| {
                    let (reader, _) = context
                        .store
                        .as_ref()
                        .expect("only a server with a store reads");
                    job.run(reader)
                }));
                JobDone::Read(Box::new(done.unwrap_or_else(|_| {
                    crate::store::stream::ReadDone {
                        stream,
                        bytes: Vec::new(),
                        outcome: Err(crate::store::stream::ReadFault::Failed(
                            "the read failed inside the store".into(),
                        )),
                    }
                })))
            }
            #[cfg(feature = "store")]
            Self::MeasureDisk(stats_for) => {
                let disk = context
                    .store
                    .as_ref()
                    .map(|(_, gauge)| gauge.measure(Instant::now()));
                JobDone::DiskMeasured(stats_for, disk.unwrap_or_default())
            }
        }
    }
}

/// Runs jobs; what comes of them is posted to the worker that submitted them.
pub(crate) trait Executor: Debug + Send + Sync {
    /// Queues a job. Never blocks.
    ///
    /// # Errors
    /// The lane's queue is full: this is the job back.
    fn submit(&self, worker: usize, lane: Lane, job: Job) -> Result<(), Job>;

    /// Ends the threads when they have done what they are at. Blocks until then, or until `deadline`: user code that never
    /// returns keeps its thread.
    fn stop(&self, deadline: Instant);
}

/// A bounded queue and the threads that empty it.
#[derive(Debug)]
struct Queue {
    inner: Mutex<Inner>,
    filled: Condvar,
    jobs_max: usize,
}

#[derive(Debug, Default)]
struct Inner {
    jobs: VecDeque<(usize, Job)>,
    closed: bool,
    /// Threads that still run.
    threads: usize,
}

impl Queue {
    fn new(jobs_max: usize) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::default(),
            filled: Condvar::new(),
            jobs_max,
        })
    }

    fn push(&self, worker: usize, job: Job) -> Result<(), Job> {
        let mut inner = self.inner.lock();
        if inner.closed || inner.jobs.len() >= self.jobs_max {
            return Err(job);
        }
        inner.jobs.push_back((worker, job));
        drop(inner);
        self.filled.notify_one();
        Ok(())
    }

    /// Blocks until there is a job; `None` when the queue is closed and empty.
    fn pop(&self) -> Option<(usize, Job)> {
        let mut inner = self.inner.lock();
        loop {
            if let Some(job) = inner.jobs.pop_front() {
                return Some(job);
            }
            if inner.closed {
                return None;
            }
            self.filled.wait(&mut inner);
        }
    }

    /// Lets the threads end after what they are at. What waits is dropped: it was for connections that are gone.
    fn close(&self) {
        let mut inner = self.inner.lock();
        inner.closed = true;
        let dropped = std::mem::take(&mut inner.jobs);
        drop(inner);
        drop(dropped);
        self.filled.notify_all();
    }

    /// A thread has ended.
    fn leave(&self) {
        self.inner.lock().threads -= 1;
        self.filled.notify_all();
    }

    /// Blocks until all threads have ended or `deadline` has come; returns whether they have.
    fn wait_empty(&self, deadline: Instant) -> bool {
        let mut inner = self.inner.lock();
        while inner.threads > 0 {
            if self.filled.wait_until(&mut inner, deadline).timed_out() {
                return inner.threads == 0;
            }
        }
        true
    }
}

/// How many threads there are, and how much may wait for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadCounts {
    pub(crate) handlers: usize,
    pub(crate) handler_queue_max: usize,
    pub(crate) readers: usize,
}

/// The executor of a real server: a fixed number of threads for each lane.
#[derive(Debug)]
pub(crate) struct Threads {
    handlers: Arc<Queue>,
    reads: Arc<Queue>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    /// Starts the threads. `workers` are the mailboxes that results go to.
    ///
    /// # Errors
    /// A thread can't be started; those that were are ended.
    pub(crate) fn start(
        counts: ThreadCounts,
        context: &JobContext,
        workers: &[Sender<Message>],
    ) -> io::Result<Self> {
        let threads = Self {
            handlers: Queue::new(counts.handler_queue_max),
            // Reads are bounded per connection, by the session's budgets and by the outbox.
            reads: Queue::new(usize::MAX),
            running: Mutex::default(),
        };
        let lanes = [
            ("handler", &threads.handlers, counts.handlers),
            ("reader", &threads.reads, counts.readers),
        ];
        for (name, queue, count) in lanes {
            for index in 0..count {
                let (queue, workers, context) =
                    (Arc::clone(queue), workers.to_vec(), context.clone());
                queue.inner.lock().threads += 1;
                let own_queue = Arc::clone(&queue);
                let body = move || {
                    while let Some((worker, job)) = own_queue.pop() {
                        // A worker that is gone has no connection left to answer.
                        let _ = workers[worker].send(Message::JobDone(job.run(&context)));
                    }
                    own_queue.leave();
                };
                match thread::Builder::new()
                    .name(format!("{name}-{index}"))
                    .spawn(body)
                {
                    Ok(thread) => threads.running.lock().push(thread),
                    Err(error) => {
                        queue.leave();
                        return Err(error);
                    }
                }
            }
        }
        Ok(threads)
    }
}

impl Executor for Threads {
    fn submit(&self, worker: usize, lane: Lane, job: Job) -> Result<(), Job> {
        match lane {
            Lane::Handlers => self.handlers.push(worker, job),
            Lane::Reads => self.reads.push(worker, job),
        }
    }

    fn stop(&self, deadline: Instant) {
        self.handlers.close();
        self.reads.close();
        let have_ended = self.handlers.wait_empty(deadline) && self.reads.wait_empty(deadline);
        let threads = std::mem::take(&mut *self.running.lock());
        if !have_ended {
            tracing::warn!("a handler or a read is still running; its thread is left behind");
            return;
        }
        for thread in threads {
            // Each job catches its panics, so that there is none to hand on.
            let _ = thread.join();
        }
    }
}

impl Drop for Threads {
    /// Lets threads end that nobody has waited for.
    fn drop(&mut self) {
        self.handlers.close();
        self.reads.close();
    }
}
