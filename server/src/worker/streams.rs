//! Streams of a worker: pulled from read threads as their connections have room, or fed by the tail.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use pumice_conn_pool::Key;
use pumice_event_loop::Platform;
use pumice_frame_proto::tephra::{self as wire, EventsFrame, proto::ErrorCode};
use tephra::{Matches, Position, Query};

use super::{Kit, Worker, http, routes};
use crate::close::CloseReason;
use crate::conn::{Conn, Protocol};
use crate::executor::{Job, Lane};
use crate::outbox::Chunk;
use crate::store::cursor::Portion;
use crate::store::format::{Format, put_sse_caught_up};
use crate::store::stream::{Output, ReadDone, ReadFault, ReadJob, Reading, State, Stream};
use crate::store::tail::Batch;

/// Bytes of one portion. Chosen: large enough that a portion's costs (a hand-over, an open file) don't show, small enough
/// that a small answer, which waits for one portion at most, doesn't wait long.
const PORTION_BYTES: usize = 128 * 1024;
/// A comment of the event stream: it keeps proxies from closing a silent connection, and shows that a client is gone.
const HEARTBEAT: &[u8] = b":\n\n";

/// Takes a read or a subscription in. `false`: there are too many.
pub(super) fn begin<S>(
    conn: &mut Conn<S>,
    key: Key,
    kit: &mut Kit,
    output: Output,
    reading: Box<Reading>,
    is_subscription: bool,
) -> bool {
    let (Some(store), Some(shared)) = (&mut kit.store, &kit.shared.store) else {
        return false;
    };
    let Ok(stream_key) = store.streams.acquire() else {
        return false;
    };
    let place = reading.cursor.place();
    if let Some(stream) = store.streams.get_mut(stream_key) {
        *stream = Stream {
            conn: key,
            output,
            is_subscription,
            state: State::Ready(reading),
            place,
            ..Stream::default()
        };
    }
    if is_subscription {
        // Before the first read, so that the tail starts at or before the place where that read ends.
        shared.interest.add();
        kit.shared.counters[kit.index]
            .subscriptions_live
            .increment();
    }
    match (&mut conn.protocol, output) {
        (Protocol::Frames(frames), Output::Wire { request_id }) => {
            let session = &mut frames.session;
            session.streams.push((request_id, stream_key));
            if is_subscription {
                session.subscriptions += 1;
            } else {
                session.reads += 1;
            }
        }
        _ => conn.store.stream = Some(stream_key),
    }
    true
}

/// Gives a stream's slot back. A portion that is being read for it finds nobody.
pub(super) fn release(stream_key: Key, kit: &mut Kit) -> Option<bool> {
    let store = kit.store.as_mut()?;
    let stream = store.streams.get(stream_key)?;
    let is_subscription = stream.is_subscription;
    stream.is_over.store(true, Ordering::Relaxed);
    store.live.retain(|&live| live != stream_key);
    store.streams.release(stream_key);
    if is_subscription {
        if let Some(shared) = &kit.shared.store {
            shared.interest.remove();
        }
        kit.shared.counters[kit.index]
            .subscriptions_live
            .decrement();
    }
    Some(is_subscription)
}

/// Ends a stream: no byte of it is queued after this.
pub(super) fn end<S>(conn: &mut Conn<S>, kit: &mut Kit, stream_key: Key) {
    let was_running = kit
        .store
        .as_ref()
        .and_then(|store| store.streams.get(stream_key))
        .is_some_and(|stream| matches!(stream.state, State::Running));
    if was_running {
        conn.store.reserved = conn.store.reserved.saturating_sub(PORTION_BYTES);
    }
    let Some(is_subscription) = release(stream_key, kit) else {
        return;
    };
    match &mut conn.protocol {
        Protocol::Frames(frames) => frames.session.forget(stream_key, is_subscription),
        Protocol::Unknown | Protocol::Http(_) => {
            conn.store.stream = None;
            conn.store.heartbeat_at = None;
        }
    }
}

/// Has portions read for the streams of `conn`, each in its turn, as many as its outbox has room for.
pub(super) fn pull<S>(conn: &mut Conn<S>, kit: &mut Kit) {
    let (count, first) = match &conn.protocol {
        Protocol::Frames(frames) => (frames.session.streams.len(), frames.session.next_pull),
        Protocol::Unknown | Protocol::Http(_) => (usize::from(conn.store.stream.is_some()), 0),
    };
    let max = kit.shared.config.outbox_bytes_max;
    for step in 0..count {
        // A first portion is always due when nothing is on its way: a small bound must not stop a stream.
        let committed = conn.out.pending() + conn.store.reserved;
        if committed > 0 && committed + PORTION_BYTES > max {
            return;
        }
        let index = (first + step) % count;
        let stream_key = match &conn.protocol {
            Protocol::Frames(frames) => frames.session.streams[index].1,
            Protocol::Unknown | Protocol::Http(_) => match conn.store.stream {
                Some(stream) => stream,
                None => return,
            },
        };
        let Some(stream) = kit
            .store
            .as_mut()
            .and_then(|store| store.streams.get_mut(stream_key))
        else {
            continue;
        };
        match std::mem::replace(&mut stream.state, State::Running) {
            State::Ready(reading) => {
                conn.store.reserved += PORTION_BYTES;
                if let Protocol::Frames(frames) = &mut conn.protocol {
                    frames.session.next_pull = index + 1;
                }
                let job = Job::Read(ReadJob {
                    stream: stream_key,
                    reading,
                    budget: PORTION_BYTES,
                    is_over: Arc::clone(&stream.is_over),
                });
                let submitted = kit.shared.executor.submit(kit.index, Lane::Reads, job);
                debug_assert!(submitted.is_ok(), "the read lane has no bound of its own");
            }
            other => stream.state = other,
        }
    }
}

/// All that matches up to `watermark` has been queued: the stream is at the live edge, unless the tail has been further.
fn go_live(
    stream: &mut Stream,
    mut reading: Box<Reading>,
    watermark: Position,
    tail: Option<Position>,
) -> bool {
    stream.place = stream.place.max(watermark);
    if tail.is_some_and(|tail| tail > stream.place) {
        reading.cursor.continue_after(stream.place);
        stream.state = State::Ready(reading);
        return false;
    }
    stream.state = State::Live(reading);
    true
}

/// Tells the client, once per live edge, that it has everything.
fn announce<S>(conn: &mut Conn<S>, stream: &mut Stream) {
    if stream.is_announced {
        return;
    }
    stream.is_announced = true;
    let watermark = stream.place.get();
    match (stream.output, &mut conn.protocol) {
        // On the bulk lane: it must not overtake the events it speaks of.
        (Output::Wire { request_id }, _) => {
            let mut frame = Vec::new();
            wire::caught_up(&mut frame, request_id, watermark);
            conn.out.bulk(Chunk::Owned(frame));
        }
        (Output::Http, Protocol::Http(http)) => {
            let mut text = Vec::new();
            put_sse_caught_up(&mut text, watermark);
            http.put_chunk(text, &mut conn.out);
        }
        (Output::Http, _) => {}
    }
}

impl<P: Platform> Worker<P> {
    /// A portion has been read.
    pub(super) fn on_read_done(&mut self, done: ReadDone) {
        let stream_key = done.stream;
        let Some(store) = &mut self.kit.store else {
            return;
        };
        // A stream that was cancelled meanwhile is gone, and so are its bytes.
        let Some(stream) = store.streams.get_mut(stream_key) else {
            return;
        };
        let key = stream.conn;
        let Some(conn) = self.pool.get_mut(key) else {
            return;
        };
        conn.store.reserved = conn.store.reserved.saturating_sub(PORTION_BYTES);
        self.kit.lend_output(conn);
        let output = self
            .kit
            .store
            .as_ref()
            .and_then(|store| store.streams.get(stream_key))
            .map(|stream| stream.output);
        match output {
            Some(Output::Wire { request_id }) => self.on_wire_portion(key, request_id, done),
            Some(Output::Http) => self.on_http_portion(key, done),
            None => {}
        }
        if let Some(conn) = self.pool.get_mut(key) {
            self.kit.queue(key, conn);
        }
    }

    fn on_wire_portion(&mut self, key: Key, request_id: u64, done: ReadDone) {
        let Some(conn) = self.pool.get_mut(key) else {
            return;
        };
        let stream_key = done.stream;
        let has_events = !done.bytes.is_empty();
        conn.out.bulk(Chunk::Owned(done.bytes));
        match done.outcome {
            Ok((reading, portion)) => {
                if let Portion::End { watermark } = portion
                    && self.is_read(stream_key)
                {
                    let mut frame = Vec::new();
                    wire::read_end(&mut frame, request_id, watermark.get());
                    let Some(conn) = self.pool.get_mut(key) else {
                        return;
                    };
                    conn.out.bulk(Chunk::Owned(frame));
                    return end(conn, &mut self.kit, stream_key);
                }
                self.go_on(key, stream_key, reading, portion, has_events);
            }
            Err(fault) => {
                let code = match fault {
                    ReadFault::Failed(_) => ErrorCode::Internal,
                    ReadFault::TooLong { .. } => ErrorCode::TooLarge,
                };
                tracing::error!(%fault, "a read failed");
                let mut frame = Vec::new();
                wire::error(
                    &mut frame,
                    request_id,
                    code,
                    &fault.to_string(),
                    None,
                    false,
                );
                conn.out.bulk(Chunk::Owned(frame));
                end(conn, &mut self.kit, stream_key);
            }
        }
    }

    fn is_read(&self, stream_key: Key) -> bool {
        let stream = self
            .kit
            .store
            .as_ref()
            .and_then(|store| store.streams.get(stream_key));
        stream.is_some_and(|stream| !stream.is_subscription)
    }

    /// Puts a stream back into its place after a portion that didn't end it.
    fn go_on(
        &mut self,
        key: Key,
        stream_key: Key,
        mut reading: Box<Reading>,
        portion: Portion,
        has_events: bool,
    ) {
        let (Some(store), Some(conn)) = (&mut self.kit.store, self.pool.get_mut(key)) else {
            return;
        };
        let tail = store.tail;
        let Some(stream) = store.streams.get_mut(stream_key) else {
            return;
        };
        stream.is_announced &= !has_events;
        match portion {
            Portion::More => {
                // A cursor holds an open file only while its client keeps up.
                if conn.out.pending() + PORTION_BYTES > self.kit.shared.config.outbox_bytes_max {
                    reading.cursor.park();
                }
                stream.state = State::Ready(reading);
            }
            Portion::End { watermark } => {
                if go_live(stream, reading, watermark, tail) {
                    announce(conn, stream);
                    store.live.push(stream_key);
                }
            }
        }
    }

    fn on_http_portion(&mut self, key: Key, done: ReadDone) {
        let (Some(store), Some(conn)) = (&mut self.kit.store, self.pool.get_mut(key)) else {
            return;
        };
        let stream_key = done.stream;
        let Some(stream) = store.streams.get_mut(stream_key) else {
            return;
        };
        let (is_subscription, has_head) = (stream.is_subscription, stream.has_head);
        let (reading, portion) = match done.outcome {
            Ok(outcome) => outcome,
            Err(fault) => {
                tracing::error!(%fault, "a read failed");
                end(conn, &mut self.kit, stream_key);
                return routes::fail_stream(conn, &mut self.kit, has_head);
            }
        };
        let is_whole = !is_subscription && matches!(portion, Portion::End { .. });
        if !has_head && is_whole {
            end(conn, &mut self.kit, stream_key);
            return routes::answer_page(conn, &mut self.kit, &reading.format, done.bytes);
        }
        if !has_head {
            stream.has_head = true;
            if !routes::begin_body(conn, &mut self.kit, &reading.format) {
                return end(conn, &mut self.kit, stream_key);
            }
        }
        let now = self.kit.clock.now;
        let has_events = !done.bytes.is_empty();
        if let Protocol::Http(http) = &mut conn.protocol {
            http.put_chunk(done.bytes, &mut conn.out);
            if is_whole {
                http.end_stream(&mut conn.out, now);
                http::finish_if_closing(conn, CloseReason::AfterAnswer);
                return end(conn, &mut self.kit, stream_key);
            }
        }
        if is_subscription {
            conn.store.heartbeat_at = Some(heartbeat(&self.kit, now));
        }
        self.go_on(key, stream_key, reading, portion, has_events);
    }

    /// Events were committed: hands them to every live subscription that they concern.
    pub(super) fn on_tail(&mut self, batch: &Arc<Batch>) {
        let Some(store) = &mut self.kit.store else {
            return;
        };
        let has_gap = store.feed.taken();
        store.tail = Some(store.tail.map_or(batch.last, |tail| tail.max(batch.last)));
        let mut index = 0;
        while let Some(&stream_key) = self
            .kit
            .store
            .as_ref()
            .and_then(|store| store.live.get(index))
        {
            if self.feed_live(stream_key, batch, has_gap) {
                index += 1;
            } else if let Some(store) = &mut self.kit.store {
                store.live.swap_remove(index);
            }
        }
    }

    /// Feeds one subscription. `false`: it is no longer live, and reads from the store.
    fn feed_live(&mut self, stream_key: Key, batch: &Batch, has_gap: bool) -> bool {
        let Some(store) = &mut self.kit.store else {
            return false;
        };
        let Some(stream) = store.streams.get_mut(stream_key) else {
            return false;
        };
        let key = stream.conn;
        let Some(conn) = self.pool.get_mut(key) else {
            return false;
        };
        let State::Live(reading) = &mut stream.state else {
            return false;
        };
        let is_slow = conn.out.pending() >= self.kit.shared.config.outbox_bytes_max;
        let missed_some = batch.first.get() > stream.place.get().saturating_add(1);
        if (is_slow && batch.last > stream.place) || missed_some || has_gap {
            reading.cursor.continue_after(stream.place);
            let State::Live(reading) = std::mem::take(&mut stream.state) else {
                return false;
            };
            stream.state = State::Ready(reading);
            self.kit.queue(key, conn);
            return false;
        }
        let place = stream.place;
        let query = reading.cursor.query();
        let matches = batch
            .events
            .iter()
            .enumerate()
            .filter(|(_, event)| event.position > place && is_match(query, event.event.as_ref()))
            .map(|(index, _)| index);
        let has_matches = match (stream.output, &reading.format, &mut conn.protocol) {
            (Output::Wire { request_id }, Format::Wire(bounds), _) => {
                put_live_frames(conn, request_id, bounds.frame_bytes_max, batch, matches)
            }
            (Output::Http, _, Protocol::Http(http)) => {
                let mut text = Vec::new();
                for index in matches {
                    text.extend_from_slice(batch.sse(index));
                }
                let has_matches = !text.is_empty();
                http.put_chunk(text, &mut conn.out);
                has_matches
            }
            _ => false,
        };
        stream.place = stream.place.max(batch.last);
        if has_matches {
            stream.is_announced = false;
            announce(conn, stream);
            if conn.store.heartbeat_at.is_some() {
                conn.store.heartbeat_at = Some(heartbeat(&self.kit, self.kit.clock.now));
            }
            self.kit.queue(key, conn);
        }
        true
    }

    /// Writes a comment into a silent event stream.
    pub(super) fn beat(&mut self, key: Key) {
        let Some(conn) = self.pool.get_mut(key) else {
            return;
        };
        if let Protocol::Http(http) = &mut conn.protocol
            && http.is_streaming()
        {
            // A peer that takes nothing has the write timer; more comments would only pile up.
            if conn.out.is_empty() {
                http.put_chunk(HEARTBEAT.to_vec(), &mut conn.out);
            }
            conn.store.heartbeat_at = Some(heartbeat(&self.kit, self.kit.clock.now));
        }
    }

    /// The server stops: subscriptions would never end by themselves.
    pub(super) fn end_subscriptions(&mut self, key: Key) {
        let Some(conn) = self.pool.get_mut(key) else {
            return;
        };
        let streams = match &conn.protocol {
            Protocol::Frames(frames) => frames.session.streams.clone(),
            Protocol::Unknown | Protocol::Http(_) => conn
                .store
                .stream
                .map(|stream| (0, stream))
                .into_iter()
                .collect(),
        };
        for (request_id, stream_key) in streams {
            let store = self.kit.store.as_ref();
            let is_subscription = store
                .and_then(|store| store.streams.get(stream_key))
                .is_some_and(|stream| stream.is_subscription);
            if !is_subscription {
                continue;
            }
            end(conn, &mut self.kit, stream_key);
            match &mut conn.protocol {
                Protocol::Http(http) if http.is_streaming() => {
                    http.close_after_answer();
                    http.end_stream(&mut conn.out, self.kit.clock.now);
                    http::finish_if_closing(conn, CloseReason::Stopped);
                }
                Protocol::Http(_) => routes::fail_stopping(conn, &mut self.kit),
                Protocol::Frames(_) | Protocol::Unknown => {
                    let mut frame = Vec::new();
                    wire::error(
                        &mut frame,
                        request_id,
                        ErrorCode::Shutdown,
                        "the server is stopping",
                        None,
                        true,
                    );
                    conn.out.bulk(Chunk::Owned(frame));
                }
            }
        }
    }
}

fn heartbeat(kit: &Kit, now: Instant) -> Instant {
    now + kit
        .shared
        .store
        .as_ref()
        .map_or(std::time::Duration::from_secs(15), |store| {
            store.config.heartbeat
        })
}

fn is_match(query: &Query, event: tephra::EventRef<'_>) -> bool {
    query.matches(event)
}

/// Queues the matching events of a batch in as many frames as the limit asks for. Returns whether there were any.
fn put_live_frames<S>(
    conn: &mut Conn<S>,
    request_id: u64,
    frame_bytes_max: usize,
    batch: &Batch,
    matches: impl Iterator<Item = usize>,
) -> bool {
    let mut out = Vec::new();
    let mut frame: Option<EventsFrame> = None;
    for index in matches {
        let encoded = batch.wire(index);
        if let Some(full) =
            frame.take_if(|frame| frame.len_with(&out, encoded.len()) > frame_bytes_max)
        {
            full.finish(&mut out);
        }
        frame
            .get_or_insert_with(|| EventsFrame::begin(&mut out, request_id))
            .push_encoded(&mut out, encoded);
    }
    if let Some(last) = frame {
        last.finish(&mut out);
    }
    let has_matches = !out.is_empty();
    conn.out.bulk(Chunk::Owned(out));
    has_matches
}
