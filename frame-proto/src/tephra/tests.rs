//! Requests byte by byte, hostile ones above all.

use ::tephra::{AppendError, ConflictClause, ConflictSite, Event, EventType, Position, Tag, Tags};
use prost::Message;
use prost::encoding::encode_varint;

use super::*;

/// A field of wire type 2.
fn len_field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    encode_varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

/// Request 7 with this field behind its id.
fn request(field: &[u8]) -> Vec<u8> {
    [&[0x08, 7], field].concat()
}

/// Request 7: an append with these fields.
fn append(fields: &[u8]) -> Vec<u8> {
    request(&len_field(2, fields))
}

fn event(event_type: &str, tags: &[&str], payload: &[u8]) -> Event {
    let tags = Tags::new(tags.iter().map(|tag| Tag::new(*tag).expect("a tag")));
    let event_type = EventType::new(event_type).expect("a type");
    Event::new(&event_type, &tags.expect("no two alike"), payload).expect("a small event")
}

/// The fault and the request id that goes with it.
fn malformed(payload: &[u8]) -> (u64, WireFault) {
    match decode_request(payload) {
        Err(RequestError::Malformed { request_id, fault }) => (request_id, fault),
        other => panic!("{other:?}"),
    }
}

/// What is said about an invalid request 7.
fn invalid(payload: &[u8]) -> String {
    match decode_request(payload) {
        Err(RequestError::Invalid { request_id, reason }) => {
            assert_eq!(request_id, 7);
            reason.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_append_becomes_the_engines_events() {
    let request = proto::Request {
        request_id: 7,
        kind: Some(proto::request::Kind::Append(proto::AppendRequest {
            events: vec![proto::Event {
                r#type: "T".into(),
                tags: vec!["b".into(), "a".into()],
                payload: b"x".to_vec(),
            }],
            condition: None,
        })),
    };
    let received = decode_request(&request.encode_to_vec()).expect("a request");
    assert_eq!(received.request_id, 7);
    let Incoming::Append { events, condition } = received.kind else {
        panic!("an append")
    };
    assert_eq!(events, [event("T", &["a", "b"], b"x")]);
    assert_eq!(condition, None);
}

#[test]
fn an_empty_frame_is_a_request_of_no_kind() {
    let received = decode_request(&[]).expect("an empty message");
    assert_eq!(received.request_id, 0);
    assert!(matches!(received.kind, Incoming::Unknown));
}

#[test]
fn a_kind_of_a_later_version_is_unknown_and_keeps_its_id() {
    let received = decode_request(&request(&len_field(9, b"later"))).expect("a request");
    assert_eq!(received.request_id, 7);
    assert!(matches!(received.kind, Incoming::Unknown));
}

#[test]
fn the_last_kind_of_several_holds() {
    let stats = len_field(6, &[]);
    let cancel = len_field(5, &[0x08, 3]);
    let received = decode_request(&request(&[cancel.clone(), stats.clone()].concat()));
    assert!(matches!(received.expect("a request").kind, Incoming::Stats));
    let received = decode_request(&request(&[stats, cancel].concat()));
    assert!(matches!(
        received.expect("a request").kind,
        Incoming::Cancel { target: 3 }
    ));
}

#[test]
fn a_kind_that_comes_twice_in_a_row_is_merged() {
    let cancel = [len_field(5, &[0x08, 3]), len_field(5, &[])].concat();
    let received = decode_request(&request(&cancel)).expect("a request");
    assert!(matches!(received.kind, Incoming::Cancel { target: 3 }));

    let hello = [len_field(7, &[0x12, 1, b't']), len_field(7, &[0x08, 1])].concat();
    let received = decode_request(&request(&hello)).expect("a request");
    let Incoming::Hello {
        protocol_version: 1,
        auth_token: Some(token),
    } = received.kind
    else {
        panic!("{received:?}")
    };
    assert_eq!(token, "t");
}

#[test]
fn an_invalid_kind_that_is_replaced_does_no_harm() {
    let no_type = len_field(2, &len_field(1, &[]));
    let stats = len_field(6, &[]);
    let received = decode_request(&request(&[no_type, stats].concat())).expect("a request");
    assert!(matches!(received.kind, Incoming::Stats));
}

#[test]
fn an_invalid_item_does_no_harm_if_all_events_are_meant() {
    let no_tag = len_field(2, &len_field(2, b""));
    let query = [no_tag, vec![0x08, 1]].concat();
    let received = decode_request(&request(&len_field(3, &len_field(1, &query))));
    let Incoming::Read { query, .. } = received.expect("a request").kind else {
        panic!("a read")
    };
    assert_eq!(query, ::tephra::Query::All);
}

#[test]
fn what_is_wrong_names_its_field() {
    let event = |fields: &[&[u8]]| len_field(1, &fields.concat());
    let good = event(&[&len_field(1, b"T")]);
    let no_type = event(&[&len_field(2, b"a")]);
    let no_tag = event(&[&len_field(1, b"T"), &len_field(2, b"a"), &len_field(2, b"")]);
    let twice = event(&[&len_field(1, b"T"), &len_field(2, b"a").repeat(2)]);
    let item = len_field(2, &len_field(1, b""));
    let condition = |number: u8| len_field(2, &len_field(number, &item));
    for (fields, text) in [
        (
            [good.clone(), no_type].concat(),
            "events[1].type: event type must not be empty",
        ),
        (no_tag, "events[0].tags[1]: tag must not be empty"),
        (twice, "events[0].tags: duplicate tag 'a'"),
        (
            [condition(1), good.clone()].concat(),
            "condition.fail_if_events_match.items[0].types[0]: event type must not be empty",
        ),
        (
            [condition(3), good].concat(),
            "condition.fail_if_exists.items[0].types[0]: event type must not be empty",
        ),
    ] {
        assert_eq!(invalid(&append(&fields)), text);
    }
}

#[test]
fn names_are_good_up_to_65_535_bytes() {
    let fields = |len| {
        let name = vec![b'n'; len];
        append(&len_field(
            1,
            &[len_field(1, &name), len_field(2, &name)].concat(),
        ))
    };
    assert!(decode_request(&fields(65_535)).is_ok());
    assert_eq!(
        invalid(&fields(65_536)),
        "events[0].type: event type is 65536 bytes, exceeding the 65535-byte maximum"
    );
}

#[test]
fn an_event_has_at_most_65_535_tags() {
    let fields = |count: u32| {
        let mut event = len_field(1, b"T");
        for tag in 0..count {
            event.extend(len_field(2, &tag.to_string().into_bytes()));
        }
        append(&len_field(1, &event))
    };
    assert!(decode_request(&fields(65_535)).is_ok());
    assert_eq!(
        invalid(&fields(65_536)),
        "events[0].tags: event has more than 65535 tags"
    );
}

#[test]
fn a_query_has_at_most_so_many_terms() {
    let read = |items: usize, types: usize, tags: usize| {
        let mut item = len_field(1, b"T").repeat(types);
        for tag in 0..tags {
            item.extend(len_field(2, &tag.to_string().into_bytes()));
        }
        let items = [len_field(2, &[]).repeat(items), len_field(2, &item)].concat();
        request(&len_field(3, &len_field(1, &items)))
    };
    let third = QUERY_TERMS_MAX / 3;
    // The item with the types and tags is one more.
    let rest = QUERY_TERMS_MAX - 2 * third - 1;
    assert!(decode_request(&read(third, third, rest)).is_ok());
    for payload in [
        read(third + 1, third, rest),
        read(third, third + 1, rest),
        read(third, third, rest + 1),
    ] {
        assert_eq!(
            invalid(&payload),
            "query: more than 65536 items, types and tags"
        );
    }
}

#[test]
fn groups_nested_200_000_deep_are_refused() {
    let start = [0x4B]; // field 9, start of a group
    let end = [0x4C];
    let open = start.repeat(200_000);
    assert_eq!(malformed(&request(&open)), (7, WireFault::Nesting));
    let closed = [open, end.repeat(200_000)].concat();
    assert_eq!(malformed(&request(&closed)), (7, WireFault::Nesting));
    // As deep within an event, and where only messages nest.
    let in_event = append(&len_field(1, &closed));
    assert_eq!(malformed(&in_event), (7, WireFault::Nesting));
}

#[test]
fn messages_nested_200_000_deep_are_an_unknown_field() {
    let mut nested = Vec::new();
    // From the inside out; only the lengths' sum matters, so it is built backwards.
    for _ in 0..200_000 {
        let mut key = vec![0x4A];
        encode_varint(nested.len() as u64, &mut key);
        key.reverse();
        nested.extend(key);
    }
    nested.reverse();
    let received = decode_request(&request(&nested)).expect("a request");
    assert!(matches!(received.kind, Incoming::Unknown));
}

#[test]
fn groups_nested_100_deep_are_passed_over() {
    let groups = |depth| [[0x4B].repeat(depth), [0x4C].repeat(depth)].concat();
    assert!(decode_request(&request(&groups(100))).is_ok());
    assert_eq!(malformed(&request(&groups(101))), (7, WireFault::Nesting));
}

#[test]
fn hostile_bytes_are_malformed_and_tell_the_id_if_it_stood_in_front() {
    let varint = |len: usize| [[0x80].repeat(len - 1), vec![1]].concat();
    let group = |end: u8| request(&[0x4B, end]);
    for (payload, expected) in [
        // A varint of 11 bytes, and one of 10 with 65 bits; then as a length and as a key.
        ([vec![0x08], varint(11)].concat(), (0, WireFault::Varint)),
        (
            [vec![0x08], [0xff].repeat(9), vec![2]].concat(),
            (0, WireFault::Varint),
        ),
        (
            request(&[&[0x12], &varint(11)[..]].concat()),
            (7, WireFault::Varint),
        ),
        (request(&varint(11)), (7, WireFault::Varint)),
        // Wrong wire types: the id as a string, the append as a number, types that don't exist.
        (vec![0x0A, 0], (0, WireFault::WireType)),
        (request(&[0x10, 1]), (7, WireFault::WireType)),
        (request(&[0x0E, 1]), (7, WireFault::WireType)),
        (request(&[0x0F, 1]), (7, WireFault::WireType)),
        // Field 0, and one of more than 29 bits.
        (request(&[0x00, 1]), (7, WireFault::FieldNumber)),
        (
            request(&[0x80, 0x80, 0x80, 0x80, 0x10, 1]),
            (7, WireFault::FieldNumber),
        ),
        // Strings that aren't UTF-8, in each place that has strings.
        (
            append(&len_field(1, &len_field(1, b"\xff"))),
            (7, WireFault::Utf8),
        ),
        (
            append(&len_field(1, &len_field(2, b"\xff"))),
            (7, WireFault::Utf8),
        ),
        (
            request(&len_field(7, &len_field(2, b"\xff"))),
            (7, WireFault::Utf8),
        ),
        // Cut off: a length beyond the end, a key without a value, a group without an end.
        (request(&[0x12, 5, 0]), (7, WireFault::Truncated)),
        (request(&[0x12]), (7, WireFault::Truncated)),
        (request(&[0x4B]), (7, WireFault::Truncated)),
        (vec![0x08, 0x80], (0, WireFault::Truncated)),
        (
            request(&[&[0x12], &[0xff; 9][..], &[1]].concat()),
            (7, WireFault::Truncated),
        ),
        // Groups that end under another number, or without having begun.
        (group(0x54), (7, WireFault::Group)),
        (request(&[0x4C]), (7, WireFault::Group)),
    ] {
        assert_eq!(malformed(&payload), expected, "{payload:02x?}");
        assert!(proto::Request::decode(&payload[..]).is_err());
    }
}

#[test]
fn a_fault_anywhere_outweighs_invalid_content() {
    let no_type = len_field(1, &[]);
    let payload = [append(&no_type), vec![0x12, 5]].concat();
    assert_eq!(malformed(&payload), (7, WireFault::Truncated));
}

#[test]
fn a_frame_of_events_is_what_prost_writes_at_every_length_of_its_length() {
    // The event's envelope takes some 20 bytes: these payloads lie around 2^7, 2^14 and 2^21.
    let around = |middle: usize| middle - 30..middle + 5;
    let lens = around(1 << 7).chain(around(1 << 14)).chain(around(1 << 21));
    for len in lens.chain([0]) {
        let event = event("T", &["a", "b"], &vec![7; len]);
        let mut out = b"before".to_vec();
        let mut frame = EventsFrame::begin(&mut out, 5);
        frame.push(&mut out, 9, event.as_ref());
        frame.finish(&mut out);
        let sent = proto::Response::decode(&out[10..]).expect("a response");
        let mut again = b"before".to_vec();
        crate::encode(&sent, u32::MAX, &mut again).expect("a frame");
        assert!(out == again, "with a payload of {len} bytes");
    }
}

#[test]
fn a_request_of_a_large_event_can_be_taken_though_no_answer_can_carry_it() {
    // An append of just the frame limit: the answer's envelope is larger, so it doesn't fit.
    let max = 1_u32 << 16;
    let envelope = append(&len_field(
        1,
        &[len_field(1, b"T"), len_field(3, &vec![7; 65_000])].concat(),
    ));
    let payload = 65_000 + max as usize - envelope.len();
    let fields = [len_field(1, b"T"), len_field(3, &vec![7; payload])].concat();
    let request = append(&len_field(1, &fields));
    assert_eq!(request.len(), max as usize);
    let Incoming::Append { events, .. } = decode_request(&request).expect("a request").kind else {
        panic!("an append")
    };
    assert!(!event_fits(events[0].as_ref(), max));
    assert!(event_fits(events[0].as_ref(), max + 64));
}

#[test]
fn the_engines_refusals_keep_their_facts() {
    use proto::response::Kind;

    let at = Position::new(0);
    for (refusal, code, conflict_position, retryable) in [
        (
            AppendError::Conflict {
                clause: ConflictClause::Boundary,
                at: ConflictSite::Durable(at),
            },
            ErrorCode::Conflict,
            Some(0),
            false,
        ),
        (
            AppendError::Conflict {
                clause: ConflictClause::Existence,
                at: ConflictSite::SameBatch,
            },
            ErrorCode::AlreadyExists,
            None,
            true,
        ),
        (
            AppendError::AfterBeyondTip { after: at, tip: at },
            ErrorCode::AfterBeyondTip,
            None,
            false,
        ),
        (AppendError::Empty, ErrorCode::Empty, None, false),
        (
            AppendError::TooLarge { size: 1 },
            ErrorCode::TooLarge,
            None,
            false,
        ),
        (AppendError::Shutdown, ErrorCode::Shutdown, None, false),
    ] {
        let mut out = Vec::new();
        append_error(&mut out, 7, &refusal);
        let response: proto::Response = crate::decode(&out[4..]).expect("a response");
        assert_eq!(response.request_id, 7);
        let expected = proto::ErrorResponse {
            code: code.into(),
            message: refusal.to_string(),
            conflict_position,
            retryable,
        };
        assert_eq!(response.kind, Some(Kind::Error(expected)));
    }
}
