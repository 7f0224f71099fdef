//! HTTP requests: from the parser to a handler, and the answer back into the outbox.

use std::mem;
use std::panic::{self, AssertUnwindSafe};

use pumice_conn_pool::Key;
use pumice_event_loop::{Platform, Stream};

use super::turn::Taken;
use super::{Kit, Worker, close_after_output};
use crate::close::CloseReason;
use crate::conn::{Conn, Protocol};
use crate::executor::{HandleJob, Job, Lane};
use crate::handler::Execution;
use crate::metrics::Counters;
use crate::proto::http::{CONTINUE, Step};
use crate::request::{OwnedRequest, Request};
use crate::response::Response;
use crate::shared::Service;

/// Takes one step with the input at hand.
pub(super) fn step<S: Stream>(conn: &mut Conn<S>, key: Key, kit: &mut Kit, input: &[u8]) -> Taken {
    let Protocol::Http(http) = &mut conn.protocol else {
        return Taken::Enough(0);
    };
    let now = kit.clock.now;
    match http.poll(input, &mut kit.head, &kit.shared.config.limits, now) {
        Step::More { consumed } => Taken::Enough(consumed),
        Step::Continue { consumed } => {
            conn.out.tail(|out| out.extend_from_slice(CONTINUE));
            Taken::Some(consumed)
        }
        Step::Request { head_len, body } => {
            let used = body.end;
            let mut head = mem::take(&mut kit.head);
            let Some(stream) = &conn.stream else {
                return Taken::Enough(used);
            };
            let peer = stream.peer();
            let request = Request::new(head.view(&input[..head_len]), &input[body.clone()], &peer);
            if let Some(handler_job) = dispatch(conn, key, kit, &request) {
                let mut owned = Box::<OwnedRequest>::default();
                owned.copy(&input[..head_len], &mut head, &input[body]);
                submit(
                    conn,
                    kit,
                    HandleJob {
                        request: owned,
                        peer,
                        ..handler_job
                    },
                );
            }
            kit.head = head;
            finish_if_closing(conn, CloseReason::AfterAnswer);
            Taken::Some(used)
        }
        Step::Gathered { consumed } => {
            if let Some(owned) = http.take_gathered()
                && let Some(stream) = &conn.stream
            {
                let peer = stream.peer();
                if let Some(handler_job) = dispatch(conn, key, kit, &owned.view(&peer)) {
                    submit(
                        conn,
                        kit,
                        HandleJob {
                            request: owned,
                            peer,
                            ..handler_job
                        },
                    );
                }
            }
            finish_if_closing(conn, CloseReason::AfterAnswer);
            Taken::Some(consumed)
        }
        Step::Reject { error } => {
            tracing::debug!(status = error.status(), reason = error.reason(), "refused");
            kit.counters().parse_errors.increment();
            refuse(conn, kit, error.status(), CloseReason::BadInput);
            Taken::Enough(0)
        }
    }
}

/// Answers a request on the worker, or gives the job for a handler thread, its request still to be filled in.
fn dispatch<S: Stream>(
    conn: &mut Conn<S>,
    key: Key,
    kit: &mut Kit,
    request: &Request<'_>,
) -> Option<HandleJob> {
    kit.counters().http_requests.increment();
    if let Protocol::Http(http) = &mut conn.protocol {
        let max = kit.shared.config.requests_per_connection_max;
        if max > 0 && http.requests() >= max {
            http.close_after_answer();
        }
    }
    match &kit.shared.sites[conn.site].service {
        Service::Handler(handler) => {
            let response = &mut kit.response;
            response.reset();
            // Where it runs is up to the user's code too, which may panic there.
            let handled = panic::catch_unwind(AssertUnwindSafe(|| {
                let execution = handler.execution(request);
                if execution == Execution::Inline {
                    handler.handle(request, response);
                }
                execution
            }));
            match handled {
                Ok(Execution::Offloaded) => {
                    return Some(HandleJob {
                        conn: key,
                        request: Box::default(),
                        handler: std::sync::Arc::clone(handler),
                        peer: *request.peer(),
                    });
                }
                Ok(Execution::Inline) => {}
                Err(_) => note_panic(&kit.shared.counters[kit.index], response),
            }
            answer(conn, kit);
            None
        }
        #[cfg(feature = "store")]
        Service::Store => {
            super::routes::serve(conn, key, kit, request);
            None
        }
        // Only listeners for frames have one, and those never speak HTTP.
        Service::Frames(_) => None,
    }
}

fn note_panic(counters: &Counters, response: &mut Response) {
    // The panic hook has shown where; the counter and this line are for those who don't watch stderr.
    tracing::error!("a handler panicked; its request is answered 500");
    counters.handler_panics.increment();
    response.reset();
    response.status(500).text("internal server error\n");
}

/// Hands a request to the handler threads, or answers 503 when too many wait.
fn submit<S>(conn: &mut Conn<S>, kit: &mut Kit, job: HandleJob) {
    let submitted = kit
        .shared
        .executor
        .submit(kit.index, Lane::Handlers, Job::Handle(job));
    if submitted.is_err() {
        kit.counters().handler_queue_full.increment();
        kit.response.reset();
        kit.response.put_field("Retry-After", b"1");
        kit.response
            .status(503)
            .text("too many requests are waiting\n");
        answer(conn, kit);
    }
}

/// Queues `kit.response` as the answer to the request at hand.
pub(super) fn answer<S>(conn: &mut Conn<S>, kit: &mut Kit) {
    let Protocol::Http(http) = &mut conn.protocol else {
        return;
    };
    if kit.is_stopping {
        http.close_after_answer();
    }
    count(&kit.shared.counters[kit.index], kit.response.status);
    http.respond(
        &mut kit.response,
        kit.clock.date(),
        &mut conn.out,
        kit.clock.now,
    );
}

pub(super) fn count(counters: &Counters, status: u16) {
    match status {
        0..=399 => counters.answers_ok.increment(),
        400..=499 => counters.answers_client_error.increment(),
        _ => counters.answers_server_error.increment(),
    }
}

/// Answers whatever has come of a request with `status`, and closes.
pub(super) fn refuse<S>(conn: &mut Conn<S>, kit: &mut Kit, status: u16, reason: CloseReason) {
    if let Protocol::Http(http) = &mut conn.protocol {
        http.refuse();
    }
    kit.response.reset();
    kit.response.status = status;
    kit.response.text(match status {
        408 => "the request took too long\n",
        413 => "the body is too large\n",
        414 => "the request target is too long\n",
        417 => "this expectation can't be met\n",
        431 => "the request head is too large\n",
        501 => "this transfer coding is not implemented\n",
        505 => "this server speaks HTTP/1.1\n",
        _ => "this is not a valid HTTP/1.1 request\n",
    });
    answer(conn, kit);
    finish_if_closing(conn, reason);
}

/// After the last answer of a connection: close it when the answer is out.
pub(super) fn finish_if_closing<S>(conn: &mut Conn<S>, reason: CloseReason) {
    if let Protocol::Http(http) = &conn.protocol
        && http.is_closing()
    {
        close_after_output(conn, reason);
    }
}

impl<P: Platform> Worker<P> {
    /// A handler thread is done with a connection's request.
    pub(super) fn on_handled(&mut self, key: Key, response: Option<Box<Response>>) {
        let Some(conn) = self.pool.get_mut(key) else {
            return;
        };
        match response {
            Some(response) => self.kit.response = *response,
            None => note_panic(
                &self.kit.shared.counters[self.kit.index],
                &mut self.kit.response,
            ),
        }
        self.kit.lend_output(conn);
        answer(conn, &mut self.kit);
        finish_if_closing(conn, CloseReason::AfterAnswer);
        self.kit.queue(key, conn);
    }
}
