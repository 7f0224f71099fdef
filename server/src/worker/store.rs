//! The store's side of a worker: appends in flight, and who gets their answers.
//!
//! An append is handed to the worker's [`Port`] and answered when the port says so, over whichever protocol it came. A
//! connection past its budget, or one whose append the port can't take, is not read until an answer makes room.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use pumice_conn_pool::{Key, Pool, PoolConfig};
use pumice_event_loop::Platform;
use pumice_frame_proto::tephra as wire;
use tephra::ReadHandle;

use super::{Kit, Worker};
use crate::api::error::ApiError;
use crate::conn::{Conn, Protocol};
use crate::executor::{Job, Lane};
use crate::store::stats::{DiskGauge, DiskUse};
use crate::store::stream::Stream;
use crate::store::tail::{Feed, Interest};
use crate::store::{Append, Done, Full, Port, Store, StoreConfig, Token};

/// Streams of one worker. Chosen: more than connections and their budgets can sensibly have.
const STREAMS_MAX: usize = 1 << 20;

/// What all workers see of the store.
#[derive(Debug)]
pub(crate) struct StoreShared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: StoreConfig,
    pub(crate) interest: Arc<Interest>,
    pub(crate) disk: Arc<DiskGauge>,
}

/// Who is to get an append's answer, and in which shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyAs {
    Wire {
        request_id: u64,
    },
    /// `POST /v1/append`.
    Http,
    /// `POST /append` of the DCB test contract.
    Dcb {
        started: Instant,
    },
}

/// An append in flight.
#[derive(Debug)]
struct Pending {
    conn: Key,
    reply: ReplyAs,
}

/// An append that waits for room.
#[derive(Debug)]
pub(crate) struct Stalled {
    append: Append,
    reply: ReplyAs,
    room: Room,
}

/// Where an append waits for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// In its connection's budget: each of its own answers makes some.
    Budget,
    /// In the port: its connection stands in `waiting`.
    Port,
}

/// Whether others wait for the port that an append must not overtake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    BehindOthers,
    Now,
}

/// What the store has for one connection.
#[derive(Debug, Default)]
pub(crate) struct StoreSide {
    stalled: Option<Box<Stalled>>,
    /// The stream that is the answer to an HTTP request.
    pub(super) stream: Option<Key>,
    /// When a silent event stream gets its next comment.
    pub(super) heartbeat_at: Option<Instant>,
    /// Bytes that read threads may bring for this connection's outbox.
    pub(super) reserved: usize,
}

impl StoreSide {
    /// Whether the connection waits for room for an append, and isn't read.
    pub(crate) fn has_stalled(&self) -> bool {
        self.stalled.is_some()
    }

    pub(crate) fn heartbeat_at(&self) -> Option<Instant> {
        self.heartbeat_at
    }
}

/// Who asked for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatsFor {
    Wire { conn: Key, request_id: u64 },
    Http { conn: Key },
}

/// A worker's port, and everything that is in flight between it and the store.
#[derive(Debug)]
pub(crate) struct StoreWorker {
    port: Box<dyn Port>,
    pub(super) reader: ReaderOf,
    pending: Vec<Option<Pending>>,
    pending_free: Vec<usize>,
    pending_len: usize,
    /// Connections whose append the port had no room for, in the order in which they came. While there are any, no other
    /// append goes to the port: a busy connection's own answers would let it overtake them for ever.
    ///
    /// Invariant: somebody waits only while the port is full, so that an answer is sure to come.
    waiting: VecDeque<Key>,
    done: Vec<(Token, Done)>,
    /// The port was used or has woken the worker since it was last asked.
    pub(super) is_woken: bool,
    asked_at: Instant,
    pub(super) streams: Pool<Stream, 1>,
    /// Subscriptions at the live edge.
    pub(super) live: Vec<Key>,
    /// The last position that the tail has brought.
    pub(super) tail: Option<tephra::Position>,
    pub(super) feed: Arc<Feed>,
}

/// The engine's handle, which has no `Debug` of its own.
pub(super) struct ReaderOf(pub(super) ReadHandle);

impl std::fmt::Debug for ReaderOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ReaderOf").field(&self.0.head()).finish()
    }
}

impl StoreWorker {
    pub(crate) fn new(
        port: Box<dyn Port>,
        reader: ReadHandle,
        feed: Arc<Feed>,
        now: Instant,
    ) -> Self {
        let config = PoolConfig {
            min: 0,
            max: STREAMS_MAX,
            ..PoolConfig::default()
        };
        Self {
            port,
            reader: ReaderOf(reader),
            pending: Vec::new(),
            pending_free: Vec::new(),
            pending_len: 0,
            waiting: VecDeque::new(),
            done: Vec::new(),
            is_woken: false,
            asked_at: now,
            streams: Pool::new(config)
                .expect("the bounds of streams are constants that fit each other"),
            live: Vec::new(),
            tail: None,
            feed,
        }
    }

    /// Whether the port owes an answer.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending_len > 0
    }

    fn remember(&mut self, pending: Pending) -> Token {
        self.pending_len += 1;
        let index = self.pending_free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        self.pending[index] = Some(pending);
        index as Token
    }

    fn forget(&mut self, token: Token) -> Option<Pending> {
        let index = usize::try_from(token).ok()?;
        let pending = self.pending.get_mut(index)?.take()?;
        self.pending_free.push(index);
        self.pending_len -= 1;
        Some(pending)
    }

    /// Hands an append to the port.
    fn submit(&mut self, conn: Key, append: Append, reply: ReplyAs) -> Result<(), Full> {
        let token = self.remember(Pending { conn, reply });
        self.is_woken = true;
        self.port.append(append, token).inspect_err(|_| {
            self.forget(token);
        })
    }
}

/// Appends for `conn`, or makes the connection wait for room.
pub(super) fn append<S>(
    conn: &mut Conn<S>,
    key: Key,
    kit: &mut Kit,
    append: Append,
    reply: ReplyAs,
) {
    submit(conn, key, kit, append, reply, Turn::BehindOthers);
}

fn submit<S>(
    conn: &mut Conn<S>,
    key: Key,
    kit: &mut Kit,
    append: Append,
    reply: ReplyAs,
    turn: Turn,
) {
    let counters = &kit.shared.counters[kit.index];
    let Some(store) = &mut kit.store else {
        return;
    };
    let budget = kit
        .shared
        .store
        .as_ref()
        .map_or(usize::MAX, |store| store.config.inflight_per_connection_max);
    let in_flight = match &conn.protocol {
        Protocol::Frames(frames) => frames.session.appends,
        Protocol::Unknown | Protocol::Http(_) => 0,
    };
    let (refused, room) = if in_flight >= budget {
        (append, Room::Budget)
    } else {
        let submitted = if turn == Turn::Now || store.waiting.is_empty() {
            store.submit(key, append, reply)
        } else {
            Err(Full(append))
        };
        match submitted {
            Ok(()) => {
                counters.appends.increment();
                if let Protocol::Frames(frames) = &mut conn.protocol {
                    frames.session.appends += 1;
                }
                return;
            }
            Err(Full(append)) => {
                if turn == Turn::BehindOthers {
                    counters.appends_stalled.increment();
                    store.waiting.push_back(key);
                } else {
                    store.waiting.push_front(key);
                }
                (append, Room::Port)
            }
        }
    };
    conn.store.stalled = Some(Box::new(Stalled {
        append: refused,
        reply,
        room,
    }));
}

/// Tries again with an append that waited for room.
fn retry<S>(conn: &mut Conn<S>, key: Key, kit: &mut Kit, made: Room) {
    if let Some(stalled) = conn.store.stalled.take_if(|stalled| stalled.room == made) {
        let turn = match made {
            Room::Budget => Turn::BehindOthers,
            Room::Port => Turn::Now,
        };
        submit(conn, key, kit, stalled.append, stalled.reply, turn);
    }
}

/// Forgets what a closing connection has in flight. Its appends go on; their answers find nobody.
pub(super) fn abandon<S>(conn: &mut Conn<S>, kit: &mut Kit) {
    conn.store.stalled = None;
    let streams = match &mut conn.protocol {
        Protocol::Frames(frames) => mem::take(&mut frames.session.streams),
        Protocol::Unknown | Protocol::Http(_) => Vec::new(),
    };
    let of_wire = streams.into_iter().map(|(_, stream)| stream);
    for stream in of_wire.chain(conn.store.stream.take()) {
        super::streams::release(stream, kit);
    }
}

impl<P: Platform> Worker<P> {
    /// Takes the port's answers and hands them to their connections.
    pub(super) fn poll_store(&mut self) {
        let now = self.kit.clock.now;
        let Some(store) = &mut self.kit.store else {
            return;
        };
        let is_due = store.has_pending()
            && now.saturating_duration_since(store.asked_at) >= super::STORE_POLL_EVERY;
        if !store.is_woken && !is_due {
            return;
        }
        store.is_woken = false;
        store.asked_at = now;
        let mut done = mem::take(&mut store.done);
        store.port.poll_done(&mut done);
        let has_room = !done.is_empty();
        for (token, outcome) in done.drain(..) {
            self.on_done(token, outcome);
        }
        if let Some(store) = &mut self.kit.store {
            store.done = done;
        }
        if has_room {
            self.retry_waiting();
        }
    }

    fn on_done(&mut self, token: Token, done: Done) {
        let Some(pending) = self
            .kit
            .store
            .as_mut()
            .and_then(|store| store.forget(token))
        else {
            debug_assert!(false, "the port answers each token once");
            return;
        };
        let key = pending.conn;
        let Some(conn) = self.pool.get_mut(key) else {
            return;
        };
        self.kit.lend_output(conn);
        match pending.reply {
            ReplyAs::Wire { request_id } => {
                if let Protocol::Frames(frames) = &mut conn.protocol {
                    frames.session.appends -= 1;
                }
                conn.out.control(|out| put_outcome(out, request_id, &done));
            }
            ReplyAs::Http => super::routes::answer_append(conn, &mut self.kit, &done),
            ReplyAs::Dcb { started } => {
                super::routes::answer_dcb_append(conn, &mut self.kit, &done, started)
            }
        }
        retry(conn, key, &mut self.kit, Room::Budget);
        self.kit.queue(key, conn);
    }

    /// Serves the connections that waited for room in the port, the longest waiting first, until it is full again.
    fn retry_waiting(&mut self) {
        while let Some(key) = self
            .kit
            .store
            .as_mut()
            .and_then(|store| store.waiting.pop_front())
        {
            let Some(conn) = self.pool.get_mut(key) else {
                continue;
            };
            retry(conn, key, &mut self.kit, Room::Port);
            self.kit.queue(key, conn);
            if self
                .kit
                .store
                .as_ref()
                .is_some_and(|store| store.waiting.front() == Some(&key))
            {
                return;
            }
        }
    }

    /// The store's size is known: answers the statistics that asked for it.
    pub(super) fn on_disk_measured(&mut self, stats_for: StatsFor, disk: DiskUse) {
        let (StatsFor::Wire { conn: key, .. } | StatsFor::Http { conn: key }) = stats_for;
        let Some(conn) = self.pool.get_mut(key) else {
            return;
        };
        self.kit.lend_output(conn);
        if let (StatsFor::Wire { .. }, Protocol::Frames(frames)) = (stats_for, &mut conn.protocol) {
            frames.session.others -= 1;
        }
        answer_stats(conn, &mut self.kit, stats_for, disk);
        self.kit.queue(key, conn);
    }
}

/// Writes an append's outcome as a frame.
fn put_outcome(out: &mut Vec<u8>, request_id: u64, done: &Done) {
    use wire::proto::ErrorCode;
    match done {
        Done::Appended { first, last } => wire::append_ok(out, request_id, first.get(), last.get()),
        Done::Refused(error) => wire::append_error(out, request_id, error),
        Done::NotAppended | Done::Reached => {
            let error = ApiError::not_appended();
            wire::error(
                out,
                request_id,
                ErrorCode::Shutdown,
                &error.message,
                None,
                true,
            );
        }
        Done::Unknown(reason) => {
            let message = format!("the append may or may not be in the store: {reason}");
            wire::error(out, request_id, ErrorCode::Internal, &message, None, false);
        }
    }
}

/// Answers statistics at once if the store's size was measured of late, else when a read thread has done so.
pub(super) fn stats<S>(conn: &mut Conn<S>, kit: &mut Kit, stats_for: StatsFor) {
    let Some(store) = &kit.shared.store else {
        return;
    };
    let asked = match &conn.protocol {
        Protocol::Frames(frames) => frames.session.others,
        Protocol::Unknown | Protocol::Http(_) => 0,
    };
    // A connection that asks faster than the disk answers gets what is known.
    let known = (asked >= store.config.inflight_per_connection_max).then(|| store.disk.last());
    match known.or_else(|| store.disk.fresh(kit.clock.now)) {
        Some(disk) => answer_stats(conn, kit, stats_for, disk),
        None => {
            if let Protocol::Frames(frames) = &mut conn.protocol {
                frames.session.others += 1;
            }
            let submitted =
                kit.shared
                    .executor
                    .submit(kit.index, Lane::Reads, Job::MeasureDisk(stats_for));
            if submitted.is_err() {
                if let Protocol::Frames(frames) = &mut conn.protocol {
                    frames.session.others -= 1;
                }
                answer_stats(conn, kit, stats_for, DiskUse::default());
            }
        }
    }
}

fn answer_stats<S>(conn: &mut Conn<S>, kit: &mut Kit, stats_for: StatsFor, disk: DiskUse) {
    match stats_for {
        StatsFor::Wire { request_id, .. } => {
            let stats = super::routes::stats_of(kit, disk);
            let message = wire::proto::StatsResponse {
                event_count: stats.event_count,
                segment_count: stats.segment_count,
                disk_bytes: stats.disk_bytes,
                uptime_seconds: stats.uptime_seconds,
                active_connections: stats.active_connections,
                active_subscriptions: stats.active_subscriptions,
                version: stats.version.to_owned(),
                connections_refused: stats.connections_refused,
                max_connections: stats.max_connections,
                connections_reaped: stats.connections_reaped,
            };
            conn.out
                .control(|out| wire::stats(out, request_id, &message));
        }
        StatsFor::Http { .. } => super::routes::answer_stats(conn, kit, disk),
    }
}
