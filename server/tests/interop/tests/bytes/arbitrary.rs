//! Messages of every kind, as prost's structs.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use pumice_frame_proto::tephra::proto::{self, request, response};

/// Text: any of it, though names will be refused when empty.
fn text() -> BoxedStrategy<String> {
    "\\PC{0,6}".boxed()
}

/// Numbers whose varints have every length, 0 among them.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..65_u32).prop_map(|(bits, shift)| bits.checked_shr(shift).unwrap_or(0))
}

fn event() -> impl Strategy<Value = proto::Event> {
    (text(), vec(text(), 0..4), vec(any::<u8>(), 0..200)).prop_map(|(r#type, tags, payload)| {
        proto::Event {
            r#type,
            tags,
            payload,
        }
    })
}

fn query() -> impl Strategy<Value = proto::Query> {
    let item = (vec(text(), 0..3), vec(text(), 0..3))
        .prop_map(|(types, tags)| proto::QueryItem { types, tags });
    (any::<bool>(), vec(item, 0..3)).prop_map(|(all, items)| proto::Query { all, items })
}

fn condition() -> impl Strategy<Value = proto::AppendCondition> {
    (option::of(query()), number(), option::of(query())).prop_map(
        |(fail_if_events_match, after, fail_if_exists)| proto::AppendCondition {
            fail_if_events_match,
            after,
            fail_if_exists,
        },
    )
}

pub(crate) fn request() -> impl Strategy<Value = proto::Request> {
    use request::Kind;

    let append = (vec(event(), 0..4), option::of(condition()))
        .prop_map(|(events, condition)| Kind::Append(proto::AppendRequest { events, condition }));
    let read = (
        option::of(query()),
        number(),
        option::of(number()),
        any::<bool>(),
    )
        .prop_map(|(query, after, limit, reverse)| {
            Kind::Read(proto::ReadRequest {
                query,
                after,
                limit,
                reverse,
            })
        });
    let subscribe = (option::of(query()), number())
        .prop_map(|(query, after)| Kind::Subscribe(proto::SubscribeRequest { query, after }));
    let cancel = number().prop_map(|target| Kind::Cancel(proto::CancelRequest { target }));
    let hello = (any::<u32>(), option::of(text())).prop_map(|(protocol_version, auth_token)| {
        Kind::Hello(proto::Hello {
            protocol_version,
            auth_token,
        })
    });
    let kind = prop_oneof![
        append,
        read,
        subscribe,
        cancel,
        Just(Kind::Stats(proto::StatsRequest {})),
        hello,
    ];
    (number(), option::weighted(0.95, kind))
        .prop_map(|(request_id, kind)| proto::Request { request_id, kind })
}

pub(crate) fn response() -> impl Strategy<Value = proto::Response> {
    use response::Kind;

    let append = (number(), number())
        .prop_map(|(first, last)| Kind::Append(proto::AppendResponse { first, last }));
    let sequenced = (number(), option::of(event()))
        .prop_map(|(position, event)| proto::SequencedEvent { position, event });
    let events =
        vec(sequenced, 0..4).prop_map(|events| Kind::ReadEvents(proto::ReadEvents { events }));
    let end = number().prop_map(|watermark| Kind::ReadEnd(proto::ReadEnd { watermark }));
    let caught_up =
        number().prop_map(|watermark| Kind::CaughtUp(proto::SubscribeCaughtUp { watermark }));
    let error = (0..10_i32, text(), option::of(number()), any::<bool>()).prop_map(
        |(code, message, conflict_position, retryable)| {
            Kind::Error(proto::ErrorResponse {
                code,
                message,
                conflict_position,
                retryable,
            })
        },
    );
    let hello_ack = (any::<u32>(), text()).prop_map(|(protocol_version, server_version)| {
        Kind::HelloAck(proto::HelloAck {
            protocol_version,
            server_version,
        })
    });
    let kind = prop_oneof![append, events, end, error, caught_up, stats(), hello_ack];
    (number(), option::weighted(0.95, kind))
        .prop_map(|(request_id, kind)| proto::Response { request_id, kind })
}

fn stats() -> impl Strategy<Value = response::Kind> {
    (proptest::array::uniform9(number()), text()).prop_map(|(numbers, version)| {
        let [
            event_count,
            segment_count,
            disk_bytes,
            uptime_seconds,
            active_connections,
            active_subscriptions,
            connections_refused,
            max_connections,
            connections_reaped,
        ] = numbers;
        response::Kind::Stats(proto::StatsResponse {
            event_count,
            segment_count,
            disk_bytes,
            uptime_seconds,
            active_connections,
            active_subscriptions,
            version,
            connections_refused,
            max_connections,
            connections_reaped,
        })
    })
}
