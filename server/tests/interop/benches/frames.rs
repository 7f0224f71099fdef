//! An append decoded, a page and a batch of events encoded: by frame-proto, and as tephra-server does it with
//! tephra-proto.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use protobuf::{Parse, Serialize};
use pumice_frame_proto::tephra::{EventsFrame, decode_request};
use tephra::{Event, EventType, Tag, Tags};
use tephra_proto::tephra::{self as pb, request::KindOneof};
use tephra_proto::{DEFAULT_MAX_FRAME_LEN, convert, write_frame};

/// An event as applications write them: a type of 15 bytes, two tags, a payload of 200 bytes.
fn event(n: u64) -> Event {
    let tags = [format!("course:c{n}"), format!("student:s{}", n % 100)];
    let tags = Tags::new(tags.map(|tag| Tag::new(tag).expect("a tag"))).expect("two tags");
    let event_type = EventType::new("StudentEnrolled").expect("a type");
    Event::new(&event_type, &tags, &[b'x'; 200]).expect("a small event")
}

fn append_request(events: &[Event]) -> Vec<u8> {
    let mut append = pb::AppendRequest::new();
    for event in events {
        let mut message = pb::Event::new();
        message.set_type(event.event_type());
        for tag in event.tags() {
            message.tags_mut().push(tag);
        }
        message.set_payload(event.data());
        append.events_mut().push(message);
    }
    let mut request = pb::Request::new();
    request.set_request_id(7);
    request.set_append(append);
    request.serialize().expect("a message")
}

/// As tephra-server 0.4.4's `events_from_proto`.
fn decode_by_tephra_proto(payload: &[u8]) -> Vec<Event> {
    let request = pb::Request::parse(payload).expect("a request");
    let KindOneof::Append(append) = request.kind() else {
        panic!("an append")
    };
    let convert = |event: pb::EventView<'_>| {
        let event_type = convert::as_str(event.r#type()).expect("UTF-8");
        let event_type = EventType::new(event_type).expect("a type");
        let tags = convert::tags_from_pb(event.tags().iter()).expect("tags");
        Event::new(&event_type, &tags, event.payload()).expect("a small event")
    };
    append.events().iter().map(convert).collect()
}

/// As tephra-server 0.4.4's `sequenced_to_proto` and its writer.
fn encode_by_tephra_proto(events: &[Event], out: &mut Vec<u8>) {
    let mut batch = pb::ReadEvents::new();
    for (position, event) in (1..).zip(events) {
        let mut sequenced = pb::SequencedEvent::new();
        sequenced.set_position(position);
        let mut message = sequenced.event_mut();
        message.set_type(event.event_type());
        for tag in event.tags() {
            message.tags_mut().push(tag);
        }
        message.set_payload(event.data());
        batch.events_mut().push(sequenced);
    }
    let mut response = pb::Response::new();
    response.set_request_id(7);
    response.set_read_events(batch);
    write_frame(out, &response, DEFAULT_MAX_FRAME_LEN).expect("a frame");
}

fn decode(c: &mut Criterion) {
    for count in [1, 100] {
        let events: Vec<_> = (1..=count).map(event).collect();
        let payload = append_request(&events);
        let mut group = c.benchmark_group(format!("decode an append of {count}"));
        group.throughput(Throughput::Elements(count));
        group.bench_function("decode_request", |b| {
            b.iter(|| decode_request(black_box(&payload)).expect("a request"))
        });
        group.bench_function("tephra-proto, then the engine's types", |b| {
            b.iter(|| decode_by_tephra_proto(black_box(&payload)))
        });
        group.finish();
    }
}

fn encode(c: &mut Criterion) {
    for count in [10, 1_024] {
        let events: Vec<_> = (1..=count).map(event).collect();
        let mut out = Vec::new();
        let mut group = c.benchmark_group(format!("encode {count} events"));
        group.throughput(Throughput::Elements(count));
        group.bench_function("EventsFrame", |b| {
            b.iter(|| {
                out.clear();
                let mut frame = EventsFrame::begin(&mut out, 7);
                for (position, event) in (1..).zip(&events) {
                    frame.push(&mut out, position, black_box(event).as_ref());
                }
                frame.finish(&mut out)
            })
        });
        group.bench_function("tephra-proto", |b| {
            b.iter(|| {
                out.clear();
                encode_by_tephra_proto(black_box(&events), &mut out);
            })
        });
        group.finish();
    }
}

criterion_group!(benches, decode, encode);
criterion_main!(benches);
