//! Which of a connection's timers is due first, and what happens when it is.
//!
//! A request that is being handled is on no timer but the write timer, and neither is a connection whose peer is still
//! taking its answers: as long as it does, it need not ask for more, and it may not be read either. The other timers
//! start anew when the last byte is out.
//!
//! A client of the wire protocol is not on the write timer: after its Hello only the store's timeouts hold.

use std::time::{Duration, Instant};

use pumice_event_loop::Platform;

use super::{Kit, Worker};
use crate::close::CloseReason;
use crate::conn::{Conn, FrameConn, Life, Protocol, timer};
use crate::proto::http::HttpTimer;
#[cfg(feature = "store")]
use crate::shared::Speaks;

/// How long a stopping server waits for a peer to see that it was answered and closed. Chosen: many round trips, and
/// less than the second within which a server that has nothing to do ends.
const STOPPING_LINGER_MAX: Duration = Duration::from_millis(500);

/// The earliest timer of `conn`: its list and its deadline.
pub(super) fn next<S>(conn: &Conn<S>, kit: &Kit) -> Option<(usize, Instant)> {
    let config = &kit.shared.config;
    if let Some(since) = conn.blocked_since {
        return (!may_pause(conn)).then(|| (timer::WRITE, since + config.write_timeout));
    }
    match (conn.life, &conn.protocol) {
        (Life::Lingering { .. }, _) => {
            let bound = if kit.is_stopping {
                STOPPING_LINGER_MAX
            } else {
                Duration::MAX
            };
            Some((timer::LINGER, conn.since + config.linger_timeout.min(bound)))
        }
        (Life::Closing(_), _) => None,
        (Life::Open, Protocol::Unknown) => Some((timer::HEAD, conn.since + config.head_timeout)),
        (Life::Open, Protocol::Http(http)) => match http.timer() {
            Some((running, since)) => {
                let list = match running {
                    HttpTimer::Head => timer::HEAD,
                    HttpTimer::Body => timer::BODY,
                    HttpTimer::Idle => timer::IDLE,
                };
                Some((list, since + kit.shared.http_timeouts.of(running)))
            }
            #[cfg(feature = "store")]
            None => conn.store.heartbeat_at().map(|at| (timer::HEARTBEAT, at)),
            #[cfg(not(feature = "store"))]
            None => None,
        },
        (Life::Open, Protocol::Frames(frames)) => next_of_frames(conn, frames, kit),
    }
}

/// Whether the peer may stop taking what it is sent for as long as it likes. A client of the wire protocol that works on
/// each event of a stream before it takes the next does so; its outbox is bounded, its streams wait, and TCP's own probes
/// find it if its machine is gone. One that has said its last word is only to take its answers.
#[cfg(feature = "store")]
fn may_pause<S>(conn: &Conn<S>) -> bool {
    match &conn.protocol {
        Protocol::Frames(frames) => {
            frames.session.is_established && conn.is_open() && !conn.has_ended
        }
        Protocol::Unknown | Protocol::Http(_) => false,
    }
}

#[cfg(not(feature = "store"))]
fn may_pause<S>(_: &Conn<S>) -> bool {
    false
}

#[cfg(feature = "store")]
fn next_of_frames<S>(conn: &Conn<S>, frames: &FrameConn, kit: &Kit) -> Option<(usize, Instant)> {
    let set = |timeout: Duration| (!timeout.is_zero()).then_some(timeout);
    let Some(store) = &kit.shared.store else {
        return next_of_plain_frames(conn, frames, kit);
    };
    let session = &frames.session;
    // A stalled connection isn't read, so what of a frame is missing isn't its fault.
    let incomplete = (!conn.store.has_stalled())
        .then_some(frames.frames.incomplete_since)
        .flatten();
    let incomplete = incomplete
        .zip(set(store.config.incomplete_frame_timeout))
        .map(|(since, timeout)| (timer::FRAME, since + timeout));
    let handshake = if session.is_established {
        None
    } else {
        let is_shared = kit.shared.sites[conn.site].speaks == Speaks::Auto;
        let timeout = set(store.config.handshake_timeout)
            .or_else(|| is_shared.then_some(kit.shared.config.head_timeout));
        timeout.map(|timeout| (timer::HEAD, conn.since + timeout))
    };
    let idle = (session.is_established && !session.is_active() && !conn.store.has_stalled())
        .then(|| {
            set(store.config.idle_timeout)
                .map(|timeout| (timer::IDLE, frames.frames.last_frame + timeout))
        })
        .flatten();
    [incomplete, handshake, idle]
        .into_iter()
        .flatten()
        .min_by_key(|&(_, deadline)| deadline)
}

#[cfg(not(feature = "store"))]
fn next_of_frames<S>(conn: &Conn<S>, frames: &FrameConn, kit: &Kit) -> Option<(usize, Instant)> {
    next_of_plain_frames(conn, frames, kit)
}

/// A user's frame service has the timers of HTTP: one for a frame, one for the silence between frames.
fn next_of_plain_frames<S>(_: &Conn<S>, frames: &FrameConn, kit: &Kit) -> Option<(usize, Instant)> {
    let config = &kit.shared.config;
    let timeout = |timeout: Duration, since: Instant| since + timeout;
    Some(match frames.frames.incomplete_since {
        Some(since) => (timer::FRAME, timeout(config.body_timeout, since)),
        None => (
            timer::IDLE,
            timeout(config.idle_timeout, frames.frames.last_frame),
        ),
    })
}

impl<P: Platform> Worker<P> {
    /// Closes, in one pass, every connection with a timer that is due.
    pub(super) fn close_overdue(&mut self) {
        let now = self.kit.clock.now;
        while let Some(expired) = self.pool.expired(now) {
            let key = expired.key;
            let Some(conn) = self.pool.get_mut(key) else {
                continue;
            };
            match expired.list {
                // A request has begun: its client learns why it gets no answer (RFC 9110 §15.5.9).
                timer::HEAD | timer::BODY if matches!(&conn.protocol, Protocol::Http(http) if !http.is_idle()) =>
                {
                    let reason = if expired.list == timer::HEAD {
                        CloseReason::HeadTimeout
                    } else {
                        CloseReason::BodyTimeout
                    };
                    self.kit.lend_output(conn);
                    super::http::refuse(conn, &mut self.kit, 408, reason);
                    self.serve(key);
                }
                #[cfg(feature = "store")]
                timer::HEARTBEAT => {
                    self.beat(key);
                    self.serve(key);
                }
                timer::LINGER => {
                    let reason = match conn.life {
                        Life::Lingering { reason, .. } => reason,
                        Life::Open | Life::Closing(_) => CloseReason::AfterAnswer,
                    };
                    self.close(key, reason);
                }
                list => self.close(key, reason_of(list)),
            }
        }
    }
}

fn reason_of(list: usize) -> CloseReason {
    match list {
        timer::HEAD => CloseReason::HeadTimeout,
        timer::BODY => CloseReason::BodyTimeout,
        timer::IDLE => CloseReason::IdleTimeout,
        timer::WRITE => CloseReason::WriteTimeout,
        timer::FRAME => CloseReason::FrameTimeout,
        _ => CloseReason::AfterAnswer,
    }
}
