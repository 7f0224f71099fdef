//! Requests and answers of tephra's protocol, byte by byte.

use ::tephra::{Event, EventType, Tag, Tags};
use prost::Message;

use super::*;

fn event(event_type: &str, tags: &[&str], payload: &[u8]) -> Event {
    let tags = tags.iter().map(|tag| Tag::new(*tag).expect("a tag"));
    let tags = Tags::new(tags).expect("tags");
    Event::new(&EventType::new(event_type).expect("a type"), &tags, payload).expect("an event")
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
fn a_frame_of_events_is_what_prost_writes() {
    for payload in [0, 1, 100, 20_000, 3_000_000] {
        let event = event("T", &["a", "b"], &vec![7; payload]);
        let mut out = b"before".to_vec();
        let mut frame = EventsFrame::begin(&mut out, 5);
        frame.push(&mut out, 9, event.as_ref());
        frame.finish(&mut out);
        let sent = proto::Response::decode(&out[10..]).expect("a response");
        let mut again = b"before".to_vec();
        crate::encode(&sent, u32::MAX, &mut again).expect("a frame");
        assert!(out == again, "with a payload of {payload} bytes");
    }
}
