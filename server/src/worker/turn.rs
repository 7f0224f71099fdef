//! One connection's turn: use what came, read more, send what there is, and see what is left of it.
//!
//! ```text
//!            ┌──────────────────────────────────────┐
//!            ▼                                      │ the outbox has room again
//!   advance: handle buffered input, read, ... ──▶ flush ──▶ fate: keep, close, or go on in the next turn
//! ```

use std::mem;

use pumice_conn_pool::Key;
use pumice_event_loop::{Ready, Stream};

use super::{Kit, close_after_output, frames, http, owes_answers};
use crate::close::CloseReason;
use crate::conn::{Conn, Filled, Life, Protocol};
use crate::proto::detect::{Detected, detect};
use crate::shared::Speaks;

/// Bytes read for one connection before others have their turn.
const TURN_BYTES_MAX: usize = 256 * 1024;
/// Bytes thrown away of a connection that lingers. Chosen: an upload that was refused can finish, an endless one can't.
const LINGER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The least room that a growing input gets.
const INPUT_ROOM_MIN: usize = 4 * 1024;

/// What becomes of a connection after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It waits for its socket, another thread or a timer.
    Keep,
    /// It could go on at once, but others are to have their turn first.
    Again,
    Close(CloseReason),
}

/// What a protocol made of some input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// These bytes are used up, and there may be more to do with the rest.
    Some(usize),
    /// These bytes are used up; the rest is not enough, or can't be used now.
    Enough(usize),
}

/// Lets `conn` do all that it can.
pub(super) fn turn<S: Stream>(conn: &mut Conn<S>, key: Key, kit: &mut Kit) -> Verdict {
    kit.lend_output(conn);
    let mut budget = TURN_BYTES_MAX;
    loop {
        let read = match conn.life {
            Life::Open => advance(conn, key, kit, &mut budget),
            Life::Closing(_) => Ok(()),
            Life::Lingering { .. } => discard(conn, kit, &mut budget),
        };
        // Whatever the read says, answers that were made are sent as far as they go.
        let could_take = wants_input(conn, kit);
        let sent = conn.flush(kit.clock.now);
        let (Ok(()), Ok(sent)) = (read, sent) else {
            return Verdict::Close(CloseReason::Io);
        };
        if sent > 0 {
            kit.counters().bytes_written.add(sent as u64);
        }
        #[cfg(feature = "store")]
        super::streams::pull(conn, kit);
        // The flush may have made the room that input waits for, and nobody reports that input again.
        let has_input = !conn.input.is_empty() || conn.ready.is_readable();
        let can_take_more = !could_take && has_input && wants_input(conn, kit);
        if !can_take_more {
            break;
        }
    }
    fate(conn, kit, budget)
}

/// Whether more of the peer's bytes could be used now.
fn wants_input<S>(conn: &Conn<S>, kit: &Kit) -> bool {
    if !conn.is_open() || conn.out.pending() >= kit.shared.config.outbox_bytes_max {
        return false;
    }
    #[cfg(feature = "store")]
    if conn.store.has_stalled() {
        return false;
    }
    match &conn.protocol {
        Protocol::Http(http) => http.wants_input(),
        Protocol::Unknown | Protocol::Frames(_) => true,
    }
}

/// Handles buffered input and reads more, until nothing more is wanted, there, or due to this turn.
fn advance<S: Stream>(
    conn: &mut Conn<S>,
    key: Key,
    kit: &mut Kit,
    budget: &mut usize,
) -> std::io::Result<()> {
    while wants_input(conn, kit) {
        if !conn.input.is_empty() {
            let mut input = mem::take(&mut conn.input);
            let used = handle(conn, key, kit, input.filled());
            input.consume(used);
            if input.is_empty() {
                kit.buffers.give_back(input);
            } else {
                conn.input = input;
            }
            if !wants_input(conn, kit) {
                return Ok(());
            }
        }
        if conn.has_ended || !conn.ready.is_readable() || *budget == 0 {
            return Ok(());
        }
        let filled = if conn.input.is_empty() {
            read_fresh(conn, key, kit)?
        } else {
            // Grows with what has come, never with what was announced.
            let room = conn.input.len().clamp(INPUT_ROOM_MIN, super::READ_BYTES);
            conn.read_more(room, &mut kit.buffers)?
        };
        let Filled::Bytes(n) = filled else {
            return Ok(());
        };
        *budget = budget.saturating_sub(n);
        kit.counters().bytes_read.add(n as u64);
    }
    Ok(())
}

/// Reads into the worker's own buffer and handles it there; only what is left over moves into the connection's.
fn read_fresh<S: Stream>(conn: &mut Conn<S>, key: Key, kit: &mut Kit) -> std::io::Result<Filled> {
    let mut buf = mem::take(&mut kit.read_buf);
    let filled = conn.read(&mut buf);
    if let Ok(Filled::Bytes(n)) = filled {
        let used = handle(conn, key, kit, &buf[..n]);
        if used < n && !conn.is_open() {
            conn.has_dropped_input = true;
        } else if used < n {
            let mut input = kit.buffers.lend(n - used);
            input.extend_from_slice(&buf[used..n]);
            conn.input = input;
        }
    }
    kit.read_buf = buf;
    filled
}

/// Hands input to the protocol, request by request. Returns the bytes used.
fn handle<S: Stream>(conn: &mut Conn<S>, key: Key, kit: &mut Kit, input: &[u8]) -> usize {
    let mut used = 0;
    loop {
        let rest = &input[used..];
        let taken = match &conn.protocol {
            Protocol::Unknown => begin_protocol(conn, kit, rest),
            Protocol::Http(_) => http::step(conn, key, kit, rest),
            Protocol::Frames(_) => frames::step(conn, key, kit, rest),
        };
        match taken {
            Taken::Enough(n) => return used + n,
            Taken::Some(n) => used += n,
        }
        if !wants_input(conn, kit) {
            return used;
        }
    }
}

/// The first byte tells the protocol.
fn begin_protocol<S>(conn: &mut Conn<S>, kit: &Kit, input: &[u8]) -> Taken {
    let Some(&first) = input.first() else {
        return Taken::Enough(0);
    };
    let site = &kit.shared.sites[conn.site];
    debug_assert_eq!(site.speaks, Speaks::Auto);
    match detect(first) {
        Detected::Http => conn.protocol = Protocol::Http(crate::proto::http::Http::new(conn.since)),
        Detected::Frames => {
            conn.protocol =
                Protocol::Frames(Box::new(super::accept::frame_conn(&site.service, kit)));
        }
        // There is nothing that a TLS client could read.
        Detected::Tls => close_after_output(conn, CloseReason::BadInput),
    }
    Taken::Some(0)
}

/// Reads and throws away.
fn discard<S: Stream>(
    conn: &mut Conn<S>,
    kit: &mut Kit,
    budget: &mut usize,
) -> std::io::Result<()> {
    let Life::Lingering {
        reason,
        mut bytes_left,
    } = conn.life
    else {
        return Ok(());
    };
    while conn.ready.is_readable() && *budget > 0 && bytes_left > 0 {
        let Filled::Bytes(n) = conn.read(&mut kit.read_buf)? else {
            break;
        };
        *budget = budget.saturating_sub(n);
        bytes_left = bytes_left.saturating_sub(n);
    }
    conn.life = Life::Lingering { reason, bytes_left };
    Ok(())
}

/// What becomes of `conn` now that it can do no more, or has used up its turn.
fn fate<S: Stream>(conn: &mut Conn<S>, kit: &Kit, budget: usize) -> Verdict {
    // The peer has reset the connection: no answer can reach it, so none is waited for. One that lingers has shut its
    // writing side itself.
    let lingers = matches!(conn.life, Life::Lingering { .. });
    if conn.ready.contains(Ready::WRITE_CLOSED) && !lingers {
        return Verdict::Close(CloseReason::Io);
    }
    match conn.life {
        Life::Lingering { reason, bytes_left } => {
            if conn.has_ended || bytes_left == 0 {
                return Verdict::Close(reason);
            }
        }
        Life::Closing(reason) => {
            if conn.out.is_empty() && !owes_answers(conn) {
                return close_or_linger(conn, kit, reason);
            }
            return Verdict::Keep;
        }
        Life::Open => {
            if let Some(reason) = is_over(conn, kit) {
                return close_or_linger(conn, kit, reason);
            }
        }
    }
    let is_cut_short = budget == 0 && conn.ready.is_readable();
    if is_cut_short && (wants_input(conn, kit) || !conn.is_open()) {
        Verdict::Again
    } else {
        Verdict::Keep
    }
}

/// Why an open connection has nothing more to do, if so.
fn is_over<S>(conn: &Conn<S>, kit: &Kit) -> Option<CloseReason> {
    if owes_answers(conn) || !conn.out.is_empty() {
        // A stream that never ends by itself is no reason to wait for a peer that is gone.
        #[cfg(feature = "store")]
        if conn.ready.is_read_closed() && conn.store.heartbeat_at().is_some() {
            return Some(CloseReason::Peer);
        }
        return None;
    }
    // Whole requests in the input were served before; what is left can't become one. A subscription ends with the half
    // of the connection on which it could be cancelled.
    if conn.has_ended {
        return Some(CloseReason::Peer);
    }
    let is_idle = match &conn.protocol {
        Protocol::Unknown => true,
        Protocol::Http(http) => http.is_idle(),
        Protocol::Frames(frames) => frames.frames.incomplete_since.is_none(),
    };
    (kit.is_stopping && is_idle).then_some(CloseReason::Stopped)
}

/// A peer that is still sending would lose its answer to the reset that a close sends then (RFC 9112 §9.6): shut the
/// writing side, and read on for a while.
fn close_or_linger<S: Stream>(conn: &mut Conn<S>, kit: &Kit, reason: CloseReason) -> Verdict {
    let expects_no_more = match (reason, &conn.protocol) {
        (CloseReason::AfterAnswer, Protocol::Http(http)) => http.is_last_request(),
        (CloseReason::AfterAnswer, Protocol::Unknown | Protocol::Frames(_)) => false,
        (CloseReason::BadInput | CloseReason::HeadTimeout | CloseReason::BodyTimeout, _) => false,
        // These come without an answer that could be lost.
        _ => true,
    };
    let has_surplus = conn.has_dropped_input || !conn.input.is_empty() || conn.ready.is_readable();
    let may_be_sending = !conn.has_ended && (has_surplus || !expects_no_more);
    if !may_be_sending || reason == CloseReason::Io {
        return Verdict::Close(reason);
    }
    conn.shutdown_write();
    conn.input.clear();
    conn.since = kit.clock.now;
    conn.life = Life::Lingering {
        reason,
        bytes_left: LINGER_BYTES_MAX,
    };
    // What has come already is thrown away in the next turn.
    if conn.ready.is_readable() {
        Verdict::Again
    } else {
        Verdict::Keep
    }
}
