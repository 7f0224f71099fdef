//! Frames: from the decoder to the store or a user's service.

use std::panic::{self, AssertUnwindSafe};

use pumice_conn_pool::Key;
use pumice_event_loop::Stream;

use super::turn::Taken;
use super::{Kit, close_after_output};
use crate::close::CloseReason;
use crate::conn::{Conn, Protocol};
use crate::handler::Reply;
use crate::shared::Service;

/// Takes one step with the input at hand.
pub(super) fn step<S: Stream>(conn: &mut Conn<S>, key: Key, kit: &mut Kit, input: &[u8]) -> Taken {
    let Protocol::Frames(frames) = &mut conn.protocol else {
        return Taken::Enough(0);
    };
    let range = match frames.frames.poll(input, kit.clock.now) {
        Ok(Some(range)) => range,
        Ok(None) => return Taken::Enough(0),
        Err(error) => {
            tracing::debug!(%error, "closing");
            #[cfg(feature = "store")]
            super::wire::refuse_frame(conn, kit, &error);
            close_after_output(conn, CloseReason::BadInput);
            return Taken::Enough(0);
        }
    };
    let used = range.end;
    kit.counters().frames_read.increment();
    let payload = &input[range];
    match &kit.shared.sites[conn.site].service {
        Service::Frames(service) => {
            let mut closes = false;
            let handled = conn.out.control(|out| {
                let mut reply = Reply { out, close: false };
                let handled =
                    panic::catch_unwind(AssertUnwindSafe(|| service.handle(payload, &mut reply)));
                closes = reply.close;
                handled
            });
            if handled.is_err() {
                tracing::error!("a frame service panicked; its connection is closed");
                kit.counters().handler_panics.increment();
                closes = true;
            }
            if closes {
                close_after_output(conn, CloseReason::AfterAnswer);
            }
        }
        #[cfg(feature = "store")]
        Service::Store => super::wire::on_frame(conn, key, kit, payload),
        // Only listeners for HTTP have one, and those never speak frames.
        Service::Handler(_) => {}
    }
    #[cfg(not(feature = "store"))]
    let _ = key;
    Taken::Some(used)
}
