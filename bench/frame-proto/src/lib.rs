//! What is encoded and decoded: ordinary events, and the way through prost's messages.

use prost::Message;
use pumice_frame_proto::tephra::proto::{self, request, response};
use tephra::{Event, EventType, Tag, Tags};

/// An event as applications write them: a type of 15 bytes, two tags, a payload of 200 bytes.
pub fn event(n: u64) -> Event {
    let tags = [format!("course:c{n}"), format!("student:s{}", n % 100)];
    let tags = Tags::new(tags.map(|tag| Tag::new(tag).expect("a tag"))).expect("two tags");
    let event_type = EventType::new("StudentEnrolled").expect("a type");
    Event::new(&event_type, &tags, &[b'x'; 200]).expect("a small event")
}

/// So many of them.
pub fn events(count: u64) -> Vec<Event> {
    (1..=count).map(event).collect()
}

fn message(event: &Event) -> proto::Event {
    proto::Event {
        r#type: event.event_type().to_owned(),
        tags: event.tags().map(str::to_owned).collect(),
        payload: event.data().to_vec(),
    }
}

/// The payload of a frame that appends these events.
pub fn append_request(events: &[Event]) -> Vec<u8> {
    let append = proto::AppendRequest {
        events: events.iter().map(message).collect(),
        condition: None,
    };
    let request = proto::Request {
        request_id: 7,
        kind: Some(request::Kind::Append(append)),
    };
    request.encode_to_vec()
}

/// The engine's events of an append, by way of prost's messages.
pub fn decode_by_prost(payload: &[u8]) -> Vec<Event> {
    let request = proto::Request::decode(payload).expect("a request");
    let Some(request::Kind::Append(append)) = request.kind else {
        panic!("an append")
    };
    let convert = |event: proto::Event| {
        let event_type = EventType::new(event.r#type).expect("a type");
        let tags = event
            .tags
            .into_iter()
            .map(|tag| Tag::new(tag).expect("a tag"));
        let tags = Tags::new(tags).expect("no two alike");
        Event::new(&event_type, &tags, &event.payload).expect("a small event")
    };
    append.events.into_iter().map(convert).collect()
}

/// A frame of these events, the first at position 1, by way of prost's messages.
pub fn encode_by_prost(events: &[Event], out: &mut Vec<u8>) {
    let sequenced = (1..)
        .zip(events)
        .map(|(position, event)| proto::SequencedEvent {
            position,
            event: Some(message(event)),
        });
    let events = proto::ReadEvents {
        events: sequenced.collect(),
    };
    let response = proto::Response {
        request_id: 7,
        kind: Some(response::Kind::ReadEvents(events)),
    };
    pumice_frame_proto::encode(&response, u32::MAX, out).expect("no limit");
}
