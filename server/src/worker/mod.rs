//! A worker: one thread, one event loop, and the connections that it owns.
//!
//! One turn of the loop is: wait; accept and serve what is ready; take what other threads posted; close what is overdue;
//! settle every connection that got output from elsewhere (one send each, however many answers that is).
//!
//! Invariants:
//! - A connection is touched by its worker only. Other threads name it by a [`Key`], which finds nothing once the
//!   connection is gone.
//! - After each turn every connection has either been asked to wait for its socket, or stands in `again`.
//! - Nothing here blocks but the poll.

use std::mem;
use std::sync::Arc;
#[cfg(feature = "store")]
use std::time::Duration;
use std::time::{Instant, SystemTime};

use pumice_conn_pool::{BufferPool, BufferPoolConfig, Key, Pool, PoolConfig};
use pumice_event_loop::{Event, EventLoop, ListenerId, Mailbox, Platform, Ready, Sender};
use pumice_http_parse::Head;

use crate::clock::Clock;
use crate::close::CloseReason;
use crate::conn::{Conn, Life, Protocol, timer};
use crate::executor::JobDone;
use crate::metrics::Counters;
use crate::response::Response;
use crate::shared::Shared;

mod accept;
mod frames;
mod http;
#[cfg(feature = "store")]
mod routes;
#[cfg(test)]
mod simulated;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
mod streams;
mod timers;
mod turn;
#[cfg(feature = "store")]
mod wire;

pub(crate) use accept::Newcomer;
#[cfg(feature = "store")]
pub(crate) use store::{StatsFor, StoreShared, StoreSide, StoreWorker};
use turn::Verdict;

/// Bytes that a worker reads at once. Chosen: a page of pipelined requests, or a good part of an upload.
const READ_BYTES: usize = 64 * 1024;
/// Output vectors kept for connections that have something to send.
const SPARE_OUTPUTS_MAX: usize = 64;
/// A vector that grew beyond this is given back to the system.
const SPARE_OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// A fresh one's size.
const OUTPUT_BYTES: usize = 4 * 1024;
/// How often a store's port is asked while something is in flight, though it didn't wake the worker.
#[cfg(feature = "store")]
const STORE_POLL_EVERY: Duration = Duration::from_secs(1);

/// What other threads post to a worker.
#[derive(Debug)]
pub(crate) enum Message {
    /// A handler or read thread is done.
    JobDone(JobDone),
    /// The store has answers.
    #[cfg(feature = "store")]
    PollStore,
    /// Events were committed.
    #[cfg(feature = "store")]
    Tail(Arc<crate::store::tail::Batch>),
    /// A connection was closed somewhere, while this worker had stopped accepting for want of room.
    Room,
    /// Finish what runs and return.
    Stop,
}

/// Everything of a worker that serving a connection needs, besides the connection.
#[derive(Debug)]
pub(crate) struct Kit {
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
    /// Scratch for the head being parsed.
    pub(crate) head: Head,
    /// Scratch for the answer of an inline handler.
    pub(crate) response: Response,
    pub(crate) read_buf: Vec<u8>,
    pub(crate) buffers: BufferPool,
    spare_outputs: Vec<Vec<u8>>,
    /// Connections that got output from elsewhere than their socket in this turn.
    queued: Vec<Key>,
    pub(crate) clock: Clock,
    pub(crate) is_stopping: bool,
    #[cfg(feature = "store")]
    pub(crate) store: Option<StoreWorker>,
}

impl Kit {
    pub(crate) fn new(
        index: usize,
        shared: Arc<Shared>,
        now: Instant,
        #[cfg(feature = "store")] store: Option<StoreWorker>,
    ) -> Self {
        Self {
            index,
            shared,
            head: Head::default(),
            response: Response::default(),
            read_buf: vec![0; READ_BYTES],
            buffers: BufferPool::new(BufferPoolConfig::default()),
            spare_outputs: Vec::new(),
            queued: Vec::new(),
            clock: Clock::new(now, SystemTime::now()),
            is_stopping: false,
            #[cfg(feature = "store")]
            store,
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters[self.index]
    }

    /// Gives a connection a vector to write into.
    pub(crate) fn lend_output<S>(&mut self, conn: &mut Conn<S>) {
        let buf = self
            .spare_outputs
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(OUTPUT_BYTES));
        if let Some(buf) = conn.out.lend(buf) {
            self.keep_output(buf);
        }
    }

    fn keep_output(&mut self, mut buf: Vec<u8>) {
        if buf.capacity() <= SPARE_OUTPUT_BYTES_MAX && self.spare_outputs.len() < SPARE_OUTPUTS_MAX
        {
            buf.clear();
            self.spare_outputs.push(buf);
        }
    }

    /// Takes the buffers back that a connection doesn't need now.
    pub(crate) fn take_back<S>(&mut self, conn: &mut Conn<S>) {
        if conn.out.is_empty() {
            let mut out = mem::take(&mut conn.out);
            out.take_back(|buf| self.keep_output(buf));
        }
        if conn.input.is_empty() && conn.input.capacity() > 0 {
            self.buffers.give_back(mem::take(&mut conn.input));
        }
    }

    /// Queues a connection to be settled at the end of the turn.
    pub(crate) fn queue<S>(&mut self, key: Key, conn: &mut Conn<S>) {
        if !conn.is_queued {
            conn.is_queued = true;
            self.queued.push(key);
        }
    }
}

/// How to reach another worker: for newcomers, and for all else.
pub(crate) type Colleague<P> = (Sender<Newcomer<<P as Platform>::Stream>>, Sender<Message>);

/// One worker.
#[derive(Debug)]
pub(crate) struct Worker<P: Platform> {
    events: EventLoop<P>,
    pool: Pool<Conn<P::Stream>, { timer::LISTS }>,
    mailbox: Mailbox<Message>,
    /// Connections that a full worker accepted.
    newcomers: Mailbox<Newcomer<P::Stream>>,
    /// The other workers, to hand newcomers to and to tell of room.
    others: Vec<Colleague<P>>,
    listeners: Vec<(ListenerId, usize)>,
    is_paused: bool,
    /// When the log last said that there are no descriptors.
    warned_at: Option<Instant>,
    /// Connections whose turn was cut short.
    again: Vec<Key>,
    /// When connections that are still busy are closed anyway.
    stop_at: Option<Instant>,
    kit: Kit,
}

/// A worker's loop and its mailboxes, made before the worker so that others can be told of them.
#[derive(Debug)]
pub(crate) struct Seat<P: Platform> {
    pub(crate) events: EventLoop<P>,
    pub(crate) mailbox: Mailbox<Message>,
    pub(crate) newcomers: Mailbox<Newcomer<P::Stream>>,
}

impl<P: Platform> Seat<P> {
    /// # Errors
    /// What the platform says.
    pub(crate) fn new(mut events: EventLoop<P>) -> std::io::Result<Self> {
        let mailbox = events.mailbox()?;
        let newcomers = events.mailbox()?;
        Ok(Self {
            events,
            mailbox,
            newcomers,
        })
    }
}

impl<P: Platform> Worker<P> {
    /// A worker that accepts from `listeners`, each with the index of its site.
    ///
    /// # Errors
    /// What the platform says to a listener.
    pub(crate) fn new(
        seat: Seat<P>,
        listeners: Vec<(P::Listener, usize)>,
        others: Vec<Colleague<P>>,
        kit: Kit,
    ) -> std::io::Result<Self> {
        let Seat {
            mut events,
            mailbox,
            newcomers,
        } = seat;
        let max = kit.shared.config.connections_max;
        let pool = Pool::new(PoolConfig {
            min: 0,
            max,
            ..PoolConfig::default()
        })
        .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidInput, error))?;
        let listeners = listeners
            .into_iter()
            .map(|(listener, site)| Ok((events.listen(listener)?, site)))
            .collect::<std::io::Result<_>>()?;
        Ok(Self {
            events,
            pool,
            mailbox,
            newcomers,
            others,
            listeners,
            is_paused: false,
            warned_at: None,
            again: Vec::new(),
            stop_at: None,
            kit,
        })
    }

    /// Serves until a [`Message::Stop`] has come and all connections are gone, or the stop's deadline.
    ///
    /// # Errors
    /// The poll itself failed: there is nothing to go on with.
    pub(crate) fn run(mut self) -> std::io::Result<()> {
        let mut scratch = Scratch::default();
        loop {
            let until = self.next_wake();
            self.events.poll(until)?;
            self.turn(&mut scratch);
            if self.is_done() {
                self.close_all();
                return Ok(());
            }
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let now = self.events.now();
        if !self.again.is_empty() {
            return Some(now);
        }
        let store_poll = {
            #[cfg(feature = "store")]
            {
                let store = self.kit.store.as_ref();
                // An append that was submitted after the port was last asked: only asking arms the port's waker.
                if store.is_some_and(|store| store.is_woken) {
                    return Some(now);
                }
                let in_flight = store.is_some_and(StoreWorker::has_pending);
                in_flight.then(|| now + STORE_POLL_EVERY)
            }
            #[cfg(not(feature = "store"))]
            None
        };
        [self.pool.next_deadline(), self.stop_at, store_poll]
            .into_iter()
            .flatten()
            .min()
    }

    /// Handles everything that the last poll brought.
    pub(crate) fn turn(&mut self, scratch: &mut Scratch<P::Stream>) {
        self.kit.clock.update(self.events.now(), SystemTime::now());
        for key in mem::take(&mut self.again) {
            self.serve(key);
        }
        self.events.take_events(&mut scratch.events);
        for event in scratch.events.drain(..) {
            match event {
                Event::Stream { token, ready } => self.on_ready(Key::from_bits(token), ready),
                Event::Listener { id } => self.accept(id),
                _ => {}
            }
        }
        self.newcomers.drain(&mut scratch.newcomers);
        for newcomer in scratch.newcomers.drain(..) {
            self.welcome(newcomer);
        }
        self.mailbox.drain(&mut scratch.messages);
        for message in scratch.messages.drain(..) {
            self.on_message(message);
        }
        #[cfg(feature = "store")]
        self.poll_store();
        self.close_overdue();
        self.settle_queued();
    }

    fn on_ready(&mut self, key: Key, ready: Ready) {
        // A stale token names a connection that is gone: the slot's next owner has another generation.
        if let Some(conn) = self.pool.get_mut(key) {
            conn.ready.insert(ready);
            self.serve(key);
        }
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::JobDone(JobDone::Handled { conn, response }) => {
                self.on_handled(conn, response)
            }
            #[cfg(feature = "store")]
            Message::JobDone(JobDone::Read(done)) => self.on_read_done(*done),
            #[cfg(feature = "store")]
            Message::JobDone(JobDone::DiskMeasured(stats_for, disk)) => {
                self.on_disk_measured(stats_for, disk)
            }
            #[cfg(feature = "store")]
            Message::Tail(batch) => self.on_tail(&batch),
            // The poll at the end of the turn takes them.
            #[cfg(feature = "store")]
            Message::PollStore => {
                if let Some(store) = &mut self.kit.store {
                    store.is_woken = true;
                }
            }
            Message::Room => self.resume(),
            Message::Stop => self.begin_stop(),
        }
    }

    /// Lets a connection do what it can.
    fn serve(&mut self, key: Key) {
        let Some(conn) = self.pool.get_mut(key) else {
            return;
        };
        let verdict = turn::turn(conn, key, &mut self.kit);
        self.carry_out(key, verdict);
    }

    fn carry_out(&mut self, key: Key, verdict: Verdict) {
        let Some(conn) = self.pool.get_mut(key) else {
            return;
        };
        match verdict {
            Verdict::Close(reason) => self.close(key, reason),
            Verdict::Again | Verdict::Keep => {
                self.kit.take_back(conn);
                if !conn.is_registered
                    && let Some(stream) = &mut conn.stream
                {
                    // Only now: a connection that is over after its first read never costs the call.
                    if let Err(error) = self.events.register(stream, key.to_bits()) {
                        tracing::error!(%error, "a connection can't be watched");
                        return self.close(key, CloseReason::Io);
                    }
                    conn.is_registered = true;
                }
                match timers::next(conn, &self.kit) {
                    Some((list, deadline)) => self.pool.move_to(key, list, deadline),
                    None => self.pool.park(key),
                };
                if verdict == Verdict::Again {
                    self.again.push(key);
                }
            }
        }
    }

    /// Serves the connections that got output in this turn. Serving one may queue others only by way of messages, so
    /// that this ends.
    fn settle_queued(&mut self) {
        let mut queued = mem::take(&mut self.kit.queued);
        for key in queued.drain(..) {
            if let Some(conn) = self.pool.get_mut(key) {
                conn.is_queued = false;
                self.serve(key);
            }
        }
        // What was queued meanwhile has its turn at once.
        self.again.append(&mut self.kit.queued);
        self.kit.queued = queued;
        for &key in &self.again {
            if let Some(conn) = self.pool.get_mut(key) {
                conn.is_queued = false;
            }
        }
    }

    /// Closes a connection and forgets all that it has in flight.
    pub(crate) fn close(&mut self, key: Key, reason: CloseReason) {
        let Some(conn) = self.pool.get_mut(key) else {
            return;
        };
        #[cfg(feature = "store")]
        store::abandon(conn, &mut self.kit);
        tracing::debug!(?reason, peer = %PeerOf(conn.stream.as_ref()), "closed");
        // What wasn't sent is lost with the connection; the vectors are not.
        let mut out = mem::take(&mut conn.out);
        if out.is_empty() {
            out.take_back(|buf| self.kit.keep_output(buf));
        }
        self.kit.buffers.give_back(mem::take(&mut conn.input));
        reason.counter(self.kit.counters()).increment();
        self.kit.counters().connections_open.decrement();
        self.pool.release(key);
        self.give_back_place(self.kit.index);
    }

    fn begin_stop(&mut self) {
        if self.stop_at.is_some() {
            return;
        }
        self.kit.is_stopping = true;
        self.stop_at = Some(self.events.now() + self.kit.shared.config.stop_timeout);
        for (id, _) in self.listeners.drain(..) {
            self.events.close_listener(id);
        }
        let keys: Vec<Key> = self.pool.keys().collect();
        for key in keys {
            #[cfg(feature = "store")]
            self.end_subscriptions(key);
            self.serve(key);
        }
    }

    fn is_done(&self) -> bool {
        self.stop_at
            .is_some_and(|at| self.pool.is_empty() || at <= self.events.now())
    }

    fn close_all(&mut self) {
        let keys: Vec<Key> = self.pool.keys().collect();
        if !keys.is_empty() {
            tracing::warn!(
                connections = keys.len(),
                "stopped before these connections had their answers"
            );
        }
        for key in keys {
            self.close(key, CloseReason::Stopped);
        }
    }
}

/// Vectors that keep their capacity from turn to turn.
#[derive(Debug)]
pub(crate) struct Scratch<S> {
    events: Vec<Event>,
    messages: Vec<Message>,
    newcomers: Vec<Newcomer<S>>,
}

impl<S> Default for Scratch<S> {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            messages: Vec::new(),
            newcomers: Vec::new(),
        }
    }
}

/// Shows a peer only when the log line is really written, since asking the socket is a system call.
struct PeerOf<'a, S>(Option<&'a S>);

impl<S: pumice_event_loop::Stream> std::fmt::Display for PeerOf<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(stream) => stream.peer().fmt(f),
            None => f.write_str("-"),
        }
    }
}

/// Whether an answer that isn't a subscription's is still to come for `conn`.
pub(crate) fn owes_answers<S>(conn: &Conn<S>) -> bool {
    match &conn.protocol {
        Protocol::Unknown => false,
        Protocol::Http(http) => http.is_busy(),
        #[cfg(feature = "store")]
        Protocol::Frames(frames) => frames.session.owes_answers() || conn.store.has_stalled(),
        #[cfg(not(feature = "store"))]
        Protocol::Frames(_) => false,
    }
}

/// Ends what a connection may still say; it closes when its answers are out.
pub(crate) fn close_after_output<S>(conn: &mut Conn<S>, reason: CloseReason) {
    if conn.life == Life::Open {
        conn.life = Life::Closing(reason);
    }
}
