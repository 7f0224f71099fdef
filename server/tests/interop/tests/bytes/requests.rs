//! A server's way: requests made by tephra-proto through `decode_request`, whose verdict is that of
//! tephra-proto's own conversions.

use proptest::prelude::*;
use protobuf::Serialize;
use pumice_frame_proto::tephra::{Incoming, Received, RequestError, decode_request};
use tephra::{Event, EventType, Position};
use tephra_proto::convert;
use tephra_proto::tephra::{self as pb, request::KindOneof};

use super::{arbitrary, theirs};

/// What tephra-server 0.4.4 does with the events of an append.
fn event(event: pb::EventView<'_>) -> Option<Event> {
    let event_type = EventType::new(event.r#type().to_str().ok()?).ok()?;
    let tags = convert::tags_from_pb(event.tags().iter()).ok()?;
    Event::new(&event_type, &tags, event.payload()).ok()
}

/// Says whether what was decoded here is what their conversions make of the request.
fn agrees(request: pb::RequestView<'_>, kind: &Incoming) -> bool {
    match (request.kind(), kind) {
        (KindOneof::Append(append), Incoming::Append { events, condition }) => {
            let theirs: Option<Vec<_>> = append.events().iter().map(event).collect();
            let their_condition = append.condition_opt();
            let their_condition = their_condition.map(|it| convert::condition_from_pb(it).ok());
            theirs.as_ref() == Some(events) && their_condition == condition.clone().map(Some)
        }
        (
            KindOneof::Read(read),
            Incoming::Read {
                query,
                after,
                limit,
                reverse,
            },
        ) => {
            convert::query_from_pb(read.query()).ok().as_ref() == Some(query)
                && Position::new(read.after()) == *after
                && read.limit_opt() == *limit
                && read.reverse() == *reverse
        }
        (KindOneof::Subscribe(subscribe), Incoming::Subscribe { query, after }) => {
            convert::query_from_pb(subscribe.query()).ok().as_ref() == Some(query)
                && Position::new(subscribe.after()) == *after
        }
        (KindOneof::Cancel(cancel), Incoming::Cancel { target }) => cancel.target() == *target,
        (KindOneof::Stats(_), Incoming::Stats) => true,
        (
            KindOneof::Hello(hello),
            Incoming::Hello {
                protocol_version,
                auth_token,
            },
        ) => {
            let token = hello.auth_token_opt().and_then(|token| token.to_str().ok());
            hello.protocol_version() == *protocol_version && token == auth_token.as_deref()
        }
        (KindOneof::not_set(_), Incoming::Unknown) => true,
        _ => false,
    }
}

/// Says whether their conversions refuse the request, too.
fn is_refused(request: pb::RequestView<'_>) -> bool {
    match request.kind() {
        KindOneof::Append(append) => {
            let condition = append.condition_opt().map(convert::condition_from_pb);
            append.events().iter().any(|it| event(it).is_none())
                || condition.is_some_and(|condition| condition.is_err())
        }
        KindOneof::Read(read) => convert::query_from_pb(read.query()).is_err(),
        KindOneof::Subscribe(subscribe) => convert::query_from_pb(subscribe.query()).is_err(),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn their_requests_get_their_verdicts(request in arbitrary::request()) {
        let request = theirs::build_request(&request);
        let bytes = request.serialize().expect("a message");
        match decode_request(&bytes) {
            Ok(Received { request_id, kind }) => {
                prop_assert_eq!(request_id, request.request_id());
                prop_assert!(agrees(request.as_view(), &kind), "{:?}", kind);
            }
            Err(RequestError::Invalid { request_id, reason }) => {
                prop_assert_eq!(request_id, request.request_id());
                prop_assert!(is_refused(request.as_view()), "{}", reason);
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}
