//! The store's HTTP API: which path does what, and the answers that aren't streams.

use std::time::Instant;

use pumice_conn_pool::Key;
use pumice_event_loop::Stream;
use pumice_http_parse::Method;
use tephra::Position;

use super::store::{ReplyAs, StatsFor};
use super::{Kit, http, store, streams};
use crate::api::append::{parse_append, parse_dcb_append};
use crate::api::encode::{StatsFields, put_append_ok, put_stats};
use crate::api::error::ApiError;
use crate::api::params::{
    SubscribeAfter, parse_dcb_read_params, parse_events_params, parse_number,
    parse_subscribe_params,
};
use crate::close::CloseReason;
use crate::conn::{Conn, Protocol};
use crate::metrics::Totals;
use crate::request::Request;
use crate::store::cursor::Cursor;
use crate::store::format::{Format, Page};
use crate::store::stats::DiskUse;
use crate::store::stream::{Output, Reading};
use crate::store::{Append, Done};

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";
const EVENT_STREAM: &str = "text/event-stream";
/// Events of a page where the client doesn't say.
const PAGE_EVENTS: u64 = 1_000;
/// Events of a page at most; NDJSON has no such bound.
const PAGE_EVENTS_MAX: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Append,
    Events,
    Subscribe,
    Stats,
    DcbRead,
    DcbAppend,
    Healthz,
    Readyz,
}

impl Route {
    fn of(path: &str) -> Option<Self> {
        Some(match path {
            "/v1/append" => Self::Append,
            "/v1/events" => Self::Events,
            "/v1/subscribe" => Self::Subscribe,
            "/v1/stats" => Self::Stats,
            "/read" => Self::DcbRead,
            "/append" => Self::DcbAppend,
            "/healthz" => Self::Healthz,
            "/readyz" => Self::Readyz,
            _ => return None,
        })
    }

    /// The methods it takes, as the `Allow` field lists them.
    fn allow(self) -> &'static str {
        match self {
            Self::Append | Self::DcbAppend => "POST, OPTIONS",
            _ => "GET, HEAD, OPTIONS",
        }
    }

    fn takes(self, method: Method) -> bool {
        match self {
            Self::Append | Self::DcbAppend => method == Method::Post,
            _ => matches!(method, Method::Get | Method::Head),
        }
    }
}

/// Answers a request, or starts what will.
pub(super) fn serve<S: Stream>(conn: &mut Conn<S>, key: Key, kit: &mut Kit, request: &Request<'_>) {
    let is_loopback = kit.shared.sites[conn.site].is_loopback;
    let result = admit(request, is_loopback).and_then(|()| {
        let route = Route::of(request.path()).ok_or_else(ApiError::not_found)?;
        if request.method() == Method::Options {
            kit.response.reset();
            kit.response.put_field("Allow", route.allow().as_bytes());
            kit.response.status = 204;
            http::answer(conn, kit);
            return Ok(());
        }
        if !route.takes(request.method()) {
            return Err(ApiError::method_not_allowed());
        }
        carry_out(route, conn, key, kit, request)
    });
    if let Err(error) = result {
        kit.response.reset();
        if error.status == 405
            && let Some(route) = Route::of(request.path())
        {
            kit.response.put_field("Allow", route.allow().as_bytes());
        }
        answer_error(conn, kit, &error);
    }
}

fn carry_out<S: Stream>(
    route: Route,
    conn: &mut Conn<S>,
    key: Key,
    kit: &mut Kit,
    request: &Request<'_>,
) -> Result<(), ApiError> {
    match route {
        Route::Append => {
            accept_json(request)?;
            let (events, condition) = parse_append(request.body())?;
            append(conn, key, kit, Append { events, condition }, ReplyAs::Http)
        }
        Route::DcbAppend => {
            accept_json(request)?;
            let (events, condition) = parse_dcb_append(request.body())?;
            let reply = ReplyAs::Dcb {
                started: Instant::now(),
            };
            append(conn, key, kit, Append { events, condition }, reply)
        }
        Route::Events => events(conn, key, kit, request),
        Route::DcbRead => {
            let params = parse_dcb_read_params(request.query())?;
            let place = start(params.after, params.backwards);
            let cursor = Cursor::new(params.query, place, params.limit, params.backwards);
            begin(
                conn,
                key,
                kit,
                Reading::new(cursor, Format::DcbPage { any: false }),
                false,
            )
        }
        Route::Subscribe => subscribe(conn, key, kit, request),
        Route::Stats => {
            store::stats(conn, kit, StatsFor::Http { conn: key });
            Ok(())
        }
        Route::Healthz | Route::Readyz => {
            answer_health(conn, kit);
            Ok(())
        }
    }
}

/// Keeps pages of the web away from a store that trusts whoever reaches it.
///
/// A page of another origin is told apart by its `Origin`; one that has its own name resolve to this machine, by the
/// `Host` that is then not this machine's.
fn admit(request: &Request<'_>, is_loopback: bool) -> Result<(), ApiError> {
    let host = request.host().unwrap_or_default();
    if is_loopback && !is_local_name(host) {
        return Err(ApiError::forbidden(
            "this listener serves its own machine only: use localhost, 127.0.0.1 or [::1] as the host",
        ));
    }
    let Some(origin) = request.header("origin") else {
        return Ok(());
    };
    let is_own = [&b"http://"[..], b"https://"]
        .iter()
        .filter_map(|scheme| origin.strip_prefix(*scheme))
        .any(|authority| !host.is_empty() && authority.eq_ignore_ascii_case(host.as_bytes()));
    if is_own {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "pages of other origins may not use this server",
    ))
}

/// Whether a `Host` names this machine.
fn is_local_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => return rest.starts_with("::1]"),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|addr| addr.is_loopback())
}

/// Whether a body may be read as JSON: by its type, by having none, or by coming from a command line.
fn accept_json(request: &Request<'_>) -> Result<(), ApiError> {
    let Some(value) = request.header("content-type") else {
        return Ok(());
    };
    let media_type = value
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    let is_json = media_type.eq_ignore_ascii_case(JSON.as_bytes());
    // What curl says where it wasn't told; a browser's form would come with an Origin.
    let is_plain_curl = media_type.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        && request.header("origin").is_none();
    if is_json || is_plain_curl {
        Ok(())
    } else {
        Err(ApiError::unsupported_media_type())
    }
}

fn append<S>(
    conn: &mut Conn<S>,
    key: Key,
    kit: &mut Kit,
    append: Append,
    reply: ReplyAs,
) -> Result<(), ApiError> {
    if let Some(max) = super::wire::unreadable(kit, &append) {
        return Err(ApiError::payload_too_large(u64::from(max)));
    }
    store::append(conn, key, kit, append, reply);
    Ok(())
}

/// Where a read starts: after the position, or, in reverse, before it. Without one, at its end of the log.
fn start(after: Option<u64>, reverse: bool) -> Position {
    match (after, reverse) {
        (Some(after), _) => Position::new(after),
        (None, false) => Position::ZERO,
        (None, true) => Position::MAX,
    }
}

fn events<S>(
    conn: &mut Conn<S>,
    key: Key,
    kit: &mut Kit,
    request: &Request<'_>,
) -> Result<(), ApiError> {
    let is_stream = accepts(request, NDJSON);
    if !is_stream
        && request.header("accept").is_some()
        && ![JSON, "application/*", "*/*"]
            .iter()
            .any(|media_type| accepts(request, media_type))
    {
        return Err(ApiError::not_acceptable());
    }
    let params = parse_events_params(request.query(), (!is_stream).then_some(PAGE_EVENTS_MAX))?;
    let (limit, format) = if is_stream {
        (params.limit, Format::Ndjson)
    } else {
        let left = params.limit.unwrap_or(PAGE_EVENTS);
        // One more than fits shows whether there is a next page.
        let limit = if left == 0 { 0 } else { left + 1 };
        (
            Some(limit),
            Format::Page(Page {
                left,
                last: None,
                has_next: false,
            }),
        )
    };
    let cursor = Cursor::new(
        params.query,
        start(params.after, params.reverse),
        limit,
        params.reverse,
    );
    begin(conn, key, kit, Reading::new(cursor, format), false)
}

/// Whether the client's `Accept` lists this media range.
fn accepts(request: &Request<'_>, media_type: &str) -> bool {
    let accept = request.header("accept").unwrap_or_default();
    accept.split(|&byte| byte == b',').any(|range| {
        let range = range.split(|&byte| byte == b';').next().unwrap_or_default();
        range
            .trim_ascii()
            .eq_ignore_ascii_case(media_type.as_bytes())
    })
}

fn subscribe<S>(
    conn: &mut Conn<S>,
    key: Key,
    kit: &mut Kit,
    request: &Request<'_>,
) -> Result<(), ApiError> {
    let params = parse_subscribe_params(request.query())?;
    let tip = kit
        .store
        .as_ref()
        .map_or(Position::ZERO, |store| store.reader.0.head());
    let last_seen = match request.header("last-event-id") {
        Some(value) => {
            let text = std::str::from_utf8(value).map_err(|_| {
                ApiError::bad_request(
                    "Last-Event-ID must be the id of an event, which is its position",
                )
            })?;
            Some(parse_number("Last-Event-ID", text.trim())?)
        }
        None => None,
    };
    let after = match (last_seen, params.after) {
        (Some(seen), _) => Position::new(seen),
        (None, SubscribeAfter::Start) => Position::ZERO,
        (None, SubscribeAfter::Position(after)) => Position::new(after),
        (None, SubscribeAfter::Latest) => tip,
    };
    if after > tip {
        // Waiting in silence would hide that the client has seen a log which is not this one.
        return Err(ApiError {
            position: Some(tip.get()),
            ..ApiError::bad_request(format!("after is {after}, beyond the last event at {tip}"))
        });
    }
    let cursor = Cursor::new(params.query, after, None, false);
    begin(conn, key, kit, Reading::new(cursor, Format::Sse), true)
}

fn begin<S>(
    conn: &mut Conn<S>,
    key: Key,
    kit: &mut Kit,
    reading: Reading,
    is_subscription: bool,
) -> Result<(), ApiError> {
    if streams::begin(
        conn,
        key,
        kit,
        Output::Http,
        Box::new(reading),
        is_subscription,
    ) {
        Ok(())
    } else {
        Err(ApiError::not_appended())
    }
}

fn media_type(format: &Format) -> &'static str {
    match format {
        Format::Ndjson => NDJSON,
        Format::Sse => EVENT_STREAM,
        Format::Wire(_) | Format::Page(_) | Format::DcbPage { .. } => JSON,
    }
}

/// Answers with a body that is whole.
pub(super) fn answer_page<S>(conn: &mut Conn<S>, kit: &mut Kit, format: &Format, bytes: Vec<u8>) {
    kit.response.reset();
    kit.response.content_type(media_type(format)).bytes(bytes);
    http::answer(conn, kit);
    http::finish_if_closing(conn, CloseReason::AfterAnswer);
}

/// Writes the head of a streamed body. `false`: the request was for the head alone, and has it.
pub(super) fn begin_body<S>(conn: &mut Conn<S>, kit: &mut Kit, format: &Format) -> bool {
    let Protocol::Http(http) = &mut conn.protocol else {
        return false;
    };
    kit.response.reset();
    kit.response.content_type(media_type(format));
    if matches!(format, Format::Sse) {
        // A cache or a buffering proxy would hold events back.
        kit.response.put_field("Cache-Control", b"no-store");
        kit.response.put_field("X-Accel-Buffering", b"no");
    }
    http::count(&kit.shared.counters[kit.index], 200);
    let has_body = http.begin_stream(
        &kit.response,
        kit.clock.date(),
        &mut conn.out,
        kit.clock.now,
    );
    if !has_body {
        http::finish_if_closing(conn, CloseReason::AfterAnswer);
    }
    has_body
}

/// A read failed: 500 if nothing was sent, else the body ends without its end, so that nobody takes it for whole.
pub(super) fn fail_stream<S>(conn: &mut Conn<S>, kit: &mut Kit, has_head: bool) {
    if has_head {
        if let Protocol::Http(http) = &mut conn.protocol {
            http.abort_stream();
        }
        http::finish_if_closing(conn, CloseReason::Io);
        return;
    }
    kit.response.reset();
    let error = ApiError {
        status: 500,
        code: "internal",
        message: "the events can't be read; the server's log says why".into(),
        ..ApiError::not_found()
    };
    answer_error(conn, kit, &error);
    http::finish_if_closing(conn, CloseReason::AfterAnswer);
}

/// The server stops before a stream had its first byte.
pub(super) fn fail_stopping<S>(conn: &mut Conn<S>, kit: &mut Kit) {
    if let Protocol::Http(http) = &mut conn.protocol {
        http.close_after_answer();
    }
    kit.response.reset();
    let error = ApiError {
        message: "the server is stopping".into(),
        code: "stopping",
        ..ApiError::not_appended()
    };
    answer_error(conn, kit, &error);
    http::finish_if_closing(conn, CloseReason::Stopped);
}

/// Queues an error; fields already in `kit.response` go with it.
fn answer_error<S>(conn: &mut Conn<S>, kit: &mut Kit, error: &ApiError) {
    let mut body = Vec::new();
    error.put_json(&mut body);
    body.push(b'\n');
    kit.response.status = error.status;
    if let Some(seconds) = error.retry_after_secs {
        kit.response
            .put_field("Retry-After", seconds.to_string().as_bytes());
    }
    kit.response.content_type(JSON).bytes(body);
    http::answer(conn, kit);
}

/// Answers `POST /v1/append`.
pub(super) fn answer_append<S>(conn: &mut Conn<S>, kit: &mut Kit, done: &Done) {
    kit.response.reset();
    match appended(done) {
        Ok((first, last)) => {
            let mut body = Vec::with_capacity(48);
            put_append_ok(&mut body, first.get(), last.get());
            body.push(b'\n');
            kit.response.content_type(JSON).bytes(body);
            http::answer(conn, kit);
        }
        Err(error) => answer_error(conn, kit, &error),
    }
    http::finish_if_closing(conn, CloseReason::AfterAnswer);
}

fn appended(done: &Done) -> Result<(Position, Position), ApiError> {
    match done {
        Done::Appended { first, last } => Ok((*first, *last)),
        Done::Refused(error) => Err(ApiError::from_append(error)),
        Done::NotAppended | Done::Reached => Err(ApiError::not_appended()),
        Done::Unknown(reason) => {
            tracing::error!(%reason, "an append's outcome is unknown");
            Err(ApiError::unknown_outcome())
        }
    }
}

/// Answers `POST /append` of the DCB test contract: a condition that failed is an answer there, not an error.
pub(super) fn answer_dcb_append<S>(
    conn: &mut Conn<S>,
    kit: &mut Kit,
    done: &Done,
    started: Instant,
) {
    kit.response.reset();
    let failed = match appended(done) {
        Ok(_) => false,
        Err(error) if error.status == 409 => true,
        Err(error) => {
            answer_error(conn, kit, &error);
            return http::finish_if_closing(conn, CloseReason::AfterAnswer);
        }
    };
    let micros = kit.clock.now.saturating_duration_since(started).as_micros();
    let body =
        format!("{{\"durationInMicroseconds\":{micros},\"appendConditionFailed\":{failed}}}\n");
    kit.response.content_type(JSON).bytes(body);
    http::answer(conn, kit);
    http::finish_if_closing(conn, CloseReason::AfterAnswer);
}

fn answer_health<S>(conn: &mut Conn<S>, kit: &mut Kit) {
    kit.response.reset();
    let is_writable = kit
        .shared
        .store
        .as_ref()
        .is_some_and(|store| store.store.status().is_writable);
    if is_writable {
        kit.response.text("ok\n");
    } else {
        kit.response
            .status(503)
            .text("the store's writer has ended: restart the server, and look at its log\n");
    }
    http::answer(conn, kit);
}

/// The numbers of both protocols' statistics.
pub(super) fn stats_of(kit: &Kit, disk: DiskUse) -> StatsFields<'static> {
    let totals = Totals::of(&kit.shared.counters);
    let store = kit.shared.store.as_ref();
    StatsFields {
        event_count: store.map_or(0, |store| store.store.status().tip.get()),
        segment_count: disk.segments,
        disk_bytes: disk.bytes,
        uptime_seconds: kit
            .clock
            .now
            .saturating_duration_since(kit.shared.started)
            .as_secs(),
        active_connections: totals.connections_open,
        active_subscriptions: totals.subscriptions_live,
        version: env!("CARGO_PKG_VERSION"),
        connections_refused: totals.connections_refused,
        max_connections: store.map_or(0, |store| store.config.connections_max as u64),
        connections_reaped: totals.closed_head_timeout
            + totals.closed_idle_timeout
            + totals.closed_frame_timeout,
    }
}

/// Answers `GET /v1/stats`.
pub(super) fn answer_stats<S>(conn: &mut Conn<S>, kit: &mut Kit, disk: DiskUse) {
    let mut body = Vec::with_capacity(256);
    put_stats(&mut body, &stats_of(kit, disk));
    body.push(b'\n');
    kit.response.reset();
    kit.response.content_type(JSON).bytes(body);
    http::answer(conn, kit);
    http::finish_if_closing(conn, CloseReason::AfterAnswer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for host in [
            "localhost",
            "localhost:9000",
            "LOCALHOST.",
            "a.localhost:1",
            "127.0.0.1",
            "127.9.9.9:9000",
            "[::1]:9000",
        ] {
            assert!(is_local_name(host), "{host}");
        }
        for host in [
            "example.org",
            "example.org:9000",
            "localhost.example.org",
            "10.0.0.1",
            "[::2]",
            "",
            "127.0.0.1.example.org",
        ] {
            assert!(!is_local_name(host), "{host}");
        }
    }
}
