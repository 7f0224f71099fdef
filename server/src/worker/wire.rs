//! The tephra wire protocol: frames in, work for the store out.
//!
//! What the protocol's text leaves open is as tephra-server has it, its messages included.

use pumice_conn_pool::Key;
use pumice_event_loop::Stream;
use pumice_frame_proto::FrameError;
use pumice_frame_proto::tephra::{
    self as wire, Incoming, PROTOCOL_VERSION, RequestError, proto::ErrorCode,
};

use super::store::{ReplyAs, StatsFor};
use super::{Kit, close_after_output, store, streams};
use crate::close::CloseReason;
use crate::conn::{Conn, Protocol};
use crate::store::Append;
use crate::store::cursor::Cursor;
use crate::store::format::{Format, Wire};
use crate::store::stream::{Output, Reading};

/// Answers a frame whose length is over the limit; its request is unknown, so the id is 0.
pub(super) fn refuse_frame<S>(conn: &mut Conn<S>, kit: &Kit, error: &FrameError) {
    if kit.shared.store.is_some() {
        refuse(conn, 0, ErrorCode::TooLarge, &error.to_string());
    }
}

fn refuse<S>(conn: &mut Conn<S>, request_id: u64, code: ErrorCode, message: &str) {
    conn.out
        .control(|out| wire::error(out, request_id, code, message, None, false));
}

fn bad_request<S>(conn: &mut Conn<S>, request_id: u64, message: &str) {
    refuse(conn, request_id, ErrorCode::BadRequest, message);
}

/// Carries out one request.
pub(super) fn on_frame<S: Stream>(conn: &mut Conn<S>, key: Key, kit: &mut Kit, payload: &[u8]) {
    let (request_id, kind) = match wire::decode_request(payload) {
        Ok(received) => (received.request_id, received.kind),
        Err(error) => {
            let is_established = session(conn).is_some_and(|session| session.is_established);
            let message = error.to_string();
            return match error {
                RequestError::Invalid { request_id, .. } if is_established => {
                    bad_request(conn, request_id, &message)
                }
                RequestError::Invalid { request_id, .. } => refuse_hello(conn, request_id),
                // Nothing of a frame that doesn't decode is to be trusted, an id that stood in it no more than the
                // rest; 0 tells a client that the answer is about the connection.
                RequestError::Malformed { .. } => {
                    bad_request(conn, 0, &message);
                    close_after_output(conn, CloseReason::BadInput);
                }
            };
        }
    };
    let Some(session) = session(conn) else {
        return;
    };
    if !session.is_established {
        return hello(conn, request_id, &kind);
    }
    match kind {
        Incoming::Append { events, condition } => {
            append(conn, key, kit, request_id, Append { events, condition });
        }
        Incoming::Read {
            query,
            after,
            limit,
            reverse,
        } => {
            let cursor = Cursor::new(query, after, limit, reverse);
            begin_stream(conn, key, kit, request_id, cursor, false);
        }
        Incoming::Subscribe { query, after } => {
            let cursor = Cursor::new(query, after, None, false);
            begin_stream(conn, key, kit, request_id, cursor, true);
        }
        Incoming::Cancel { target } => {
            if let Some(stream) = session.find(target) {
                streams::end(conn, kit, stream);
            }
        }
        Incoming::Stats => store::stats(
            conn,
            kit,
            StatsFor::Wire {
                conn: key,
                request_id,
            },
        ),
        Incoming::Hello { .. } | Incoming::Unknown => {
            bad_request(
                conn,
                request_id,
                "request has no append, read, subscribe, or cancel set",
            );
        }
    }
}

pub(super) fn session<S>(conn: &mut Conn<S>) -> Option<&mut crate::store::session::Session> {
    match &mut conn.protocol {
        Protocol::Frames(frames) => Some(&mut frames.session),
        Protocol::Unknown | Protocol::Http(_) => None,
    }
}

/// The first frame: it must be a Hello of this protocol's version.
fn hello<S>(conn: &mut Conn<S>, request_id: u64, kind: &Incoming) {
    match kind {
        Incoming::Hello {
            protocol_version: PROTOCOL_VERSION,
            ..
        } => {
            if let Some(session) = session(conn) {
                session.is_established = true;
            }
            conn.out.control(|out| {
                wire::hello_ack(out, request_id, PROTOCOL_VERSION, env!("CARGO_PKG_VERSION"))
            });
        }
        Incoming::Hello {
            protocol_version, ..
        } => {
            let message = format!(
                "unsupported protocol version {protocol_version}: this server speaks {PROTOCOL_VERSION}"
            );
            bad_request(conn, request_id, &message);
            close_after_output(conn, CloseReason::BadInput);
        }
        _ => refuse_hello(conn, request_id),
    }
}

fn refuse_hello<S>(conn: &mut Conn<S>, request_id: u64) {
    refuse(
        conn,
        request_id,
        ErrorCode::Unauthenticated,
        "first frame must be a hello",
    );
    close_after_output(conn, CloseReason::BadInput);
}

fn append<S>(conn: &mut Conn<S>, key: Key, kit: &mut Kit, request_id: u64, append: Append) {
    if let Some(max) = unreadable(kit, &append) {
        let message = format!("an event is too large to be read back in a frame of {max} bytes");
        return refuse(conn, request_id, ErrorCode::TooLarge, &message);
    }
    store::append(conn, key, kit, append, ReplyAs::Wire { request_id });
}

/// The frame limit, if one of the events could never leave in a frame: it would be in the store for ever, and each read
/// of it would end the reader's connection.
pub(super) fn unreadable(kit: &Kit, append: &Append) -> Option<u32> {
    let max = kit.shared.store.as_ref()?.config.frame_bytes_max;
    let fits = append
        .events
        .iter()
        .all(|event| wire::event_fits(event.as_ref(), max));
    (!fits).then_some(max)
}

fn begin_stream<S: Stream>(
    conn: &mut Conn<S>,
    key: Key,
    kit: &mut Kit,
    request_id: u64,
    cursor: Cursor,
    is_subscription: bool,
) {
    let (Some(store), Some(session)) = (&kit.shared.store, session(conn)) else {
        return;
    };
    let config = &store.config;
    if is_subscription {
        if session.subscriptions >= config.subscriptions_per_connection_max {
            return bad_request(
                conn,
                request_id,
                "too many concurrent subscriptions on this connection",
            );
        }
    } else if session.reads >= 2 * config.inflight_per_connection_max {
        return bad_request(
            conn,
            request_id,
            "too many in-flight reads on this connection",
        );
    }
    let format = Format::Wire(Wire {
        request_id,
        batch_events: config.read_batch_events,
        batch_bytes: config.read_batch_bytes,
        frame_bytes_max: config.frame_bytes_max as usize,
    });
    let reading = Box::new(Reading::new(cursor, format));
    if !streams::begin(
        conn,
        key,
        kit,
        Output::Wire { request_id },
        reading,
        is_subscription,
    ) {
        bad_request(conn, request_id, "too many streams on this server");
    }
}
