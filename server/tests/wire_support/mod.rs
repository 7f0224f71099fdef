//! What the tests of the wire protocol share: a client that speaks in raw frames, and words for what it says and hears.

#![allow(dead_code, reason = "each file of tests uses a part of this")]
#![allow(unused_imports, reason = "each file of tests uses a part of this")]

mod client;
mod model;

use std::time::Duration;

use pumice_frame_proto::tephra::proto::{
    AppendCondition, AppendRequest, CancelRequest, ErrorResponse, Event, Hello, Query, QueryItem,
    ReadRequest, Request, Response, StatsRequest, StatsResponse, SubscribeRequest, request,
    response,
};

pub(crate) use client::{Client, frame};
pub(crate) use model::{Model, Refusal};

/// How long anything may take before a test gives up. Chosen: far beyond what a busy machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An event of this type and these tags.
pub(crate) fn event(kind: &str, tags: &[&str], payload: impl Into<Vec<u8>>) -> Event {
    Event {
        r#type: kind.to_owned(),
        tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
        payload: payload.into(),
    }
}

/// Every event.
pub(crate) fn all() -> Query {
    Query {
        all: true,
        items: Vec::new(),
    }
}

/// The events of one of these types with all of these tags.
pub(crate) fn matching(types: &[&str], tags: &[&str]) -> Query {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Query {
        all: false,
        items: vec![QueryItem {
            types: owned(types),
            tags: owned(tags),
        }],
    }
}

fn request(request_id: u64, kind: request::Kind) -> Request {
    Request {
        request_id,
        kind: Some(kind),
    }
}

pub(crate) fn hello(request_id: u64) -> Request {
    hello_of_version(request_id, 1)
}

pub(crate) fn hello_of_version(request_id: u64, protocol_version: u32) -> Request {
    let hello = Hello {
        protocol_version,
        auth_token: None,
    };
    request(request_id, request::Kind::Hello(hello))
}

pub(crate) fn append(request_id: u64, events: Vec<Event>) -> Request {
    append_if(request_id, events, None)
}

pub(crate) fn append_if(
    request_id: u64,
    events: Vec<Event>,
    condition: impl Into<Option<AppendCondition>>,
) -> Request {
    let append = AppendRequest {
        events,
        condition: condition.into(),
    };
    request(request_id, request::Kind::Append(append))
}

/// The condition that nothing after `after` matches.
pub(crate) fn unless(query: Query, after: u64) -> AppendCondition {
    AppendCondition {
        fail_if_events_match: Some(query),
        after,
        fail_if_exists: None,
    }
}

/// All events after `after`.
pub(crate) fn read(request_id: u64, after: u64) -> Request {
    read_of(request_id, all(), after, None, false)
}

pub(crate) fn read_of(
    request_id: u64,
    query: Query,
    after: u64,
    limit: Option<u64>,
    reverse: bool,
) -> Request {
    let read = ReadRequest {
        query: Some(query),
        after,
        limit,
        reverse,
    };
    request(request_id, request::Kind::Read(read))
}

pub(crate) fn subscribe(request_id: u64, query: Query, after: u64) -> Request {
    let subscribe = SubscribeRequest {
        query: Some(query),
        after,
    };
    request(request_id, request::Kind::Subscribe(subscribe))
}

pub(crate) fn cancel(target: u64) -> Request {
    request(0, request::Kind::Cancel(CancelRequest { target }))
}

pub(crate) fn stats(request_id: u64) -> Request {
    request(request_id, request::Kind::Stats(StatsRequest {}))
}

/// What a response says, for tests that match on it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Appended { first: u64, last: u64 },
    Events(Vec<(u64, Event)>),
    ReadEnd { watermark: u64 },
    CaughtUp { watermark: u64 },
    Error(ErrorResponse),
    Stats(StatsResponse),
    Other(Box<response::Kind>),
}

/// A response's request id and what it says.
pub(crate) fn answer(response: Response) -> (u64, Answer) {
    let answer = match response.kind.expect("every response has a kind") {
        response::Kind::Append(range) => Answer::Appended {
            first: range.first,
            last: range.last,
        },
        response::Kind::ReadEvents(events) => Answer::Events(
            events
                .events
                .into_iter()
                .map(|event| (event.position, event.event.expect("an event")))
                .collect(),
        ),
        response::Kind::ReadEnd(end) => Answer::ReadEnd {
            watermark: end.watermark,
        },
        response::Kind::CaughtUp(edge) => Answer::CaughtUp {
            watermark: edge.watermark,
        },
        response::Kind::Error(error) => Answer::Error(error),
        response::Kind::Stats(stats) => Answer::Stats(stats),
        other => Answer::Other(Box::new(other)),
    };
    (response.request_id, answer)
}
