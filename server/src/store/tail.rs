//! The live edge: each commit is read and encoded once, however many subscriptions there are.
//!
//! The tail runs while anybody subscribes. What it posts to a worker is a [`Batch`]: all events of a range of positions,
//! already encoded. A worker whose queue of batches is full is skipped and told so; its subscriptions then read from the
//! store what they missed. A subscription that finds a gap between its own place and a batch does the same, so that a
//! batch may be lost or come late without an event being missed or repeated.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};
use pumice_frame_proto::tephra::put_sequenced;
use tephra::{Event, Position, Query, ReadHandle, Subscription};

use super::format::put_sse_event;

/// Batches that may wait for one worker; at 1 MiB each that bounds what a stuck worker costs.
const BATCHES_WAITING_MAX: usize = 8;
/// A batch ends at this many bytes of encoded events, or at [`BATCH_EVENTS_MAX`].
const BATCH_BYTES_MAX: usize = 1024 * 1024;
const BATCH_EVENTS_MAX: usize = 1_024;

/// All events of the positions `first..=last`, encoded.
#[derive(Debug)]
pub(crate) struct Batch {
    /// One more than the position before this batch; above `last` in the empty batch that tells where the tail starts.
    pub(crate) first: Position,
    pub(crate) last: Position,
    pub(crate) events: Vec<TailEvent>,
    /// `SequencedEvent`s as fields of a `ReadEvents`.
    wire: Vec<u8>,
    /// Server-sent events, made when the first subscriber over HTTP asks.
    sse: OnceLock<(Vec<u8>, Vec<usize>)>,
}

/// One event of a batch.
#[derive(Debug)]
pub(crate) struct TailEvent {
    pub(crate) position: Position,
    pub(crate) event: Event,
    /// Where its encoding ends; it starts where the one before ends.
    wire_end: usize,
}

impl Batch {
    fn new(first: Position, last: Position, events: Vec<(Position, Event)>) -> Self {
        let mut wire = Vec::new();
        let events = events
            .into_iter()
            .map(|(position, event)| {
                put_sequenced(&mut wire, position.get(), event.as_ref());
                TailEvent {
                    position,
                    event,
                    wire_end: wire.len(),
                }
            })
            .collect();
        Self {
            first,
            last,
            events,
            wire,
            sse: OnceLock::new(),
        }
    }

    /// The encoding of event `index` as a field of a `ReadEvents`.
    pub(crate) fn wire(&self, index: usize) -> &[u8] {
        let start = index
            .checked_sub(1)
            .map_or(0, |before| self.events[before].wire_end);
        &self.wire[start..self.events[index].wire_end]
    }

    /// Event `index` as a server-sent event.
    pub(crate) fn sse(&self, index: usize) -> &[u8] {
        let (bytes, ends) = self.sse.get_or_init(|| {
            let mut bytes = Vec::new();
            let ends = self.events.iter().map(|event| {
                put_sse_event(&mut bytes, event.position.get(), event.event.as_ref());
                bytes.len()
            });
            let ends = ends.collect();
            (bytes, ends)
        });
        let start = index.checked_sub(1).map_or(0, |before| ends[before]);
        &bytes[start..ends[index]]
    }
}

/// Where a worker takes its batches.
pub(crate) trait Deliver: Send {
    /// Hands a batch over. Never blocks.
    fn deliver(&self, batch: Arc<Batch>);
}

/// What a worker and the tail both see of the batches between them.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    waiting: AtomicUsize,
    lost: AtomicBool,
}

impl Feed {
    /// Whether one more batch may be delivered. If not, the worker has others to take, and will learn from
    /// [`Feed::taken`] that one was left out.
    fn admits(&self) -> bool {
        if self.waiting.fetch_add(1, Ordering::SeqCst) < BATCHES_WAITING_MAX {
            return true;
        }
        self.lost.store(true, Ordering::SeqCst);
        // The worker counts down before it looks at the flag. If it has counted all others down by now, it may have
        // looked too early, and this batch has to go after all.
        if self.waiting.load(Ordering::SeqCst) == 1 {
            return true;
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        false
    }

    /// The worker has taken a batch. `true`: others were left out before or after it, so that live subscriptions must
    /// read from the store.
    pub(crate) fn taken(&self) -> bool {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.lost.swap(false, Ordering::SeqCst)
    }
}

/// How many subscribe, which starts and rests the tail.
#[derive(Debug, Default)]
pub(crate) struct Interest {
    subscribers: Mutex<Count>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Count {
    live: usize,
    stopped: bool,
}

impl Interest {
    /// One more subscribes. Must come before the read that is to meet the tail.
    pub(crate) fn add(&self) {
        let mut count = self.subscribers.lock();
        count.live += 1;
        if count.live == 1 {
            self.changed.notify_all();
        }
    }

    pub(crate) fn remove(&self) {
        self.subscribers.lock().live -= 1;
    }

    /// The tail is to end.
    pub(crate) fn stop(&self) {
        self.subscribers.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Blocks until somebody subscribes; `false` when the tail is to end.
    fn wait(&self) -> bool {
        let mut count = self.subscribers.lock();
        while count.live == 0 && !count.stopped {
            self.changed.wait(&mut count);
        }
        !count.stopped
    }

    fn is_wanted(&self) -> bool {
        let count = self.subscribers.lock();
        count.live > 0 && !count.stopped
    }
}

/// What a step of the tail came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TailStep {
    /// A batch went out.
    Posted,
    /// There is nothing new.
    Idle,
    /// Nobody subscribes; the tail is at rest.
    Resting,
    /// The log can't be read.
    Failed,
}

/// Reads and encodes each commit once.
pub(crate) struct Tail {
    reader: ReadHandle,
    interest: Arc<Interest>,
    workers: Vec<(Box<dyn Deliver>, Arc<Feed>)>,
    edge: Option<Subscription>,
}

impl std::fmt::Debug for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tail")
            .field("workers", &self.workers.len())
            .finish_non_exhaustive()
    }
}

impl Tail {
    pub(crate) fn new(
        reader: ReadHandle,
        interest: Arc<Interest>,
        workers: Vec<(Box<dyn Deliver>, Arc<Feed>)>,
    ) -> Self {
        Self {
            reader,
            interest,
            workers,
            edge: None,
        }
    }

    /// Posts what was committed since the last step, one batch at most. Never waits.
    pub(crate) fn step(&mut self) -> TailStep {
        if !self.interest.is_wanted() {
            self.edge = None;
            return TailStep::Resting;
        }
        let Some(edge) = &mut self.edge else {
            let head = self.reader.head();
            let edge = self
                .reader
                .subscribe(Query::All, head)
                .with_max_batch_events(BATCH_EVENTS_MAX);
            self.edge = Some(edge);
            // Whoever is behind this place reads from the store.
            self.post(Batch::new(head.next(), head, Vec::new()));
            return TailStep::Posted;
        };
        let before = edge.position();
        match edge.poll_batch() {
            Ok(events) if events.is_empty() => TailStep::Idle,
            Ok(events) => {
                let mut first = before.next();
                let mut part = Vec::new();
                let mut bytes = 0;
                for (position, event) in events {
                    bytes += event.as_bytes().len();
                    part.push((position, event));
                    if bytes >= BATCH_BYTES_MAX {
                        self.post(Batch::new(first, position, std::mem::take(&mut part)));
                        first = position.next();
                        bytes = 0;
                    }
                }
                if let Some(&(last, _)) = part.last() {
                    self.post(Batch::new(first, last, part));
                }
                TailStep::Posted
            }
            Err(error) => {
                // Each subscription will read the store itself and meet the error there, with its own answer to it.
                tracing::error!(%error, "the live edge can't be read");
                self.edge = None;
                TailStep::Failed
            }
        }
    }

    fn post(&self, batch: Batch) {
        let batch = Arc::new(batch);
        for (worker, feed) in &self.workers {
            if feed.admits() {
                worker.deliver(Arc::clone(&batch));
            }
        }
    }

    /// Steps until the store or the server stops: blocks while nobody subscribes or nothing is committed.
    pub(crate) fn run(mut self) {
        loop {
            if !self.interest.is_wanted() {
                // What is committed until somebody subscribes again concerns nobody: the next subscriber must not wait
                // until the tail has gone through it.
                self.edge = None;
            }
            if !self.interest.wait() {
                return;
            }
            match self.step() {
                TailStep::Posted | TailStep::Resting => {}
                // Not again at once, and not never: disks come back.
                TailStep::Failed => std::thread::sleep(std::time::Duration::from_secs(1)),
                TailStep::Idle => {
                    // Wakes at each commit, and when the store closes.
                    if self.edge.as_ref().is_some_and(|edge| !edge.wait()) {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
