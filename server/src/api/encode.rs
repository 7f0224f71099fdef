//! Events, acknowledgements and statistics as JSON.
//!
//! Events go from the engine's bytes straight into the caller's output: one pass to see whether the payload is text,
//! one that copies and escapes it. Nothing is allocated but room in `out`. A newline in a payload is escaped, so what
//! is written here is always one line, as server-sent events and newline-delimited JSON need.
//!
//! Positions are numbers with all their 64 bits. `JSON.parse` in JavaScript rounds those over 2^53; a reviver that looks
//! at `context.source` gets the digits.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tephra::EventRef;

use super::escape::{put_number, put_string};

/// Writes `{"position":7,"type":"T","tags":["a:1"],"data":"…"}`.
///
/// A payload that isn't valid UTF-8 is written as `data_base64` instead of `data`.
pub(crate) fn put_event(out: &mut Vec<u8>, position: u64, event: EventRef<'_>) {
    out.extend_from_slice(b"{\"position\":");
    put_number(out, position);
    out.push(b',');
    put_event_fields(out, event);
    out.push(b'}');
}

/// Writes `{"type":"T","tags":["a:1"],"data":"…","position":7}`, the order of the DCB community's contract.
pub(crate) fn put_dcb_event(out: &mut Vec<u8>, position: u64, event: EventRef<'_>) {
    out.push(b'{');
    put_event_fields(out, event);
    out.extend_from_slice(b",\"position\":");
    put_number(out, position);
    out.push(b'}');
}

fn put_event_fields(out: &mut Vec<u8>, event: EventRef<'_>) {
    out.extend_from_slice(b"\"type\":");
    put_string(out, event.event_type());
    out.extend_from_slice(b",\"tags\":[");
    for (index, tag) in event.tags().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_string(out, tag);
    }
    out.push(b']');
    match str::from_utf8(event.data()) {
        Ok(text) => {
            out.extend_from_slice(b",\"data\":");
            put_string(out, text);
        }
        Err(_) => {
            out.extend_from_slice(b",\"data_base64\":\"");
            put_base64(out, event.data());
            out.push(b'"');
        }
    }
}

fn put_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    STANDARD
        .encode_slice(bytes, &mut out[start..])
        .expect("four characters for three bytes begun is what padded base64 takes");
}

/// Writes `{"first":8,"last":9}`, the answer to an append.
pub(crate) fn put_append_ok(out: &mut Vec<u8>, first: u64, last: u64) {
    out.extend_from_slice(b"{\"first\":");
    put_number(out, first);
    out.extend_from_slice(b",\"last\":");
    put_number(out, last);
    out.push(b'}');
}

/// What the wire protocol's StatsResponse says, field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatsFields<'a> {
    /// Durable events, which is also the tip's position.
    pub(crate) event_count: u64,
    /// Log segments in the data directory.
    pub(crate) segment_count: u64,
    /// Bytes in the data directory, log and index together.
    pub(crate) disk_bytes: u64,
    /// Seconds since the server began to accept.
    pub(crate) uptime_seconds: u64,
    /// Connections being served now, the asking one included.
    pub(crate) active_connections: u64,
    /// Live subscriptions of all connections.
    pub(crate) active_subscriptions: u64,
    /// The server's version.
    pub(crate) version: &'a str,
    /// Connections refused at the connection limit, ever.
    pub(crate) connections_refused: u64,
    /// The connection limit, 0 where there is none.
    pub(crate) max_connections: u64,
    /// Connections closed by a handshake, idle or frame timeout, ever.
    pub(crate) connections_reaped: u64,
}

/// Writes the statistics as one object, its keys named as the wire protocol's fields and in their order.
pub(crate) fn put_stats(out: &mut Vec<u8>, stats: &StatsFields<'_>) {
    let before = [
        ("{\"event_count\":", stats.event_count),
        (",\"segment_count\":", stats.segment_count),
        (",\"disk_bytes\":", stats.disk_bytes),
        (",\"uptime_seconds\":", stats.uptime_seconds),
        (",\"active_connections\":", stats.active_connections),
        (",\"active_subscriptions\":", stats.active_subscriptions),
    ];
    let after = [
        (",\"connections_refused\":", stats.connections_refused),
        (",\"max_connections\":", stats.max_connections),
        (",\"connections_reaped\":", stats.connections_reaped),
    ];
    let put = |out: &mut Vec<u8>, (key, value): (&str, u64)| {
        out.extend_from_slice(key.as_bytes());
        put_number(out, value);
    };
    before.into_iter().for_each(|field| put(out, field));
    out.extend_from_slice(b",\"version\":");
    put_string(out, stats.version);
    after.into_iter().for_each(|field| put(out, field));
    out.push(b'}');
}

#[cfg(test)]
mod tests;
