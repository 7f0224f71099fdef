//! Answers: the bytes written here beside those that prost writes.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use prost::Message;
use pumice_frame_proto::tephra::proto::{self, response::Kind};
use pumice_frame_proto::tephra::{
    ERROR_MESSAGE_BYTES_MAX, EventsFrame, append_ok, caught_up, error, event_fits, hello_ack,
    put_sequenced, read_end, sequenced_len, stats,
};
use tephra::{Event, EventType, Tag, Tags};

/// The whole frame, as prost writes the message in it.
fn frame(request_id: u64, kind: Kind) -> Vec<u8> {
    let response = proto::Response {
        request_id,
        kind: Some(kind),
    };
    let mut out = (response.encoded_len() as u32).to_be_bytes().to_vec();
    response.encode(&mut out).expect("a Vec has room");
    out
}

fn event() -> impl Strategy<Value = Event> {
    let tags = btree_set("\\PC{1,5}|[a-z]{126,130}", 0..5);
    let payload = prop_oneof![
        vec(any::<u8>(), 0..8),
        vec(any::<u8>(), 120..135),
        (16_370..16_400_usize).prop_map(|len| vec![0x80; len]),
    ];
    ("\\PC{1,9}|[A-Z]{126,130}", tags, payload).prop_map(|(event_type, tags, payload)| {
        let tags = Tags::new(tags.into_iter().map(|tag| Tag::new(tag).expect("a tag")));
        let event_type = EventType::new(event_type).expect("a type");
        Event::new(&event_type, &tags.expect("no two alike"), &payload).expect("a small event")
    })
}

fn message(position: u64, event: &Event) -> proto::SequencedEvent {
    proto::SequencedEvent {
        position,
        event: Some(proto::Event {
            r#type: event.event_type().to_owned(),
            tags: event.tags().map(str::to_owned).collect(),
            payload: event.data().to_vec(),
        }),
    }
}

/// Numbers whose varints have every length, 0 among them.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..65_u32).prop_map(|(bits, shift)| bits.checked_shr(shift).unwrap_or(0))
}

proptest! {
    #[test]
    fn a_frame_of_events_is_what_prost_writes(
        before in vec(any::<u8>(), 0..3),
        request_id in number(),
        events in vec((number(), event(), any::<bool>()), 0..6),
    ) {
        let mut out = before.clone();
        let mut frame_of_events = EventsFrame::begin(&mut out, request_id);
        let mut so_far = 0;
        for (position, event, shared) in &events {
            let len = sequenced_len(*position, event.as_ref());
            let expected = frame_of_events.len_with(&out, len);
            let pushed = if *shared {
                let mut encoded = Vec::new();
                put_sequenced(&mut encoded, *position, event.as_ref());
                frame_of_events.push_encoded(&mut out, &encoded)
            } else {
                frame_of_events.push(&mut out, *position, event.as_ref())
            };
            so_far += len;
            prop_assert_eq!(pushed, so_far);
            prop_assert_eq!(frame_of_events.len_with(&out, 0), expected);
        }
        let expected_len = frame_of_events.len_with(&out, 0);
        let len = frame_of_events.finish(&mut out);
        prop_assert_eq!(len, expected_len);

        let sequenced = events.iter().map(|(position, event, _)| message(*position, event));
        let events = proto::ReadEvents { events: sequenced.collect() };
        prop_assert_eq!(&out[..before.len()], before.as_slice());
        prop_assert!(out[before.len()..] == frame(request_id, Kind::ReadEvents(events)));
    }

    #[test]
    fn an_event_fits_if_its_worst_frame_does(event in event()) {
        let worst = proto::Response {
            request_id: u64::MAX,
            kind: Some(Kind::ReadEvents(proto::ReadEvents {
                events: vec![message(u64::MAX, &event)],
            })),
        };
        let len = worst.encoded_len() as u32;
        prop_assert!(event_fits(event.as_ref(), len));
        prop_assert!(!event_fits(event.as_ref(), len - 1));
    }

    #[test]
    fn small_answers_are_what_prost_writes(id in number(), first in number(), last in number()) {
        let mut out = Vec::new();
        append_ok(&mut out, id, first, last);
        read_end(&mut out, id, first);
        caught_up(&mut out, id, last);
        let expected = [
            frame(id, Kind::Append(proto::AppendResponse { first, last })),
            frame(id, Kind::ReadEnd(proto::ReadEnd { watermark: first })),
            frame(id, Kind::CaughtUp(proto::SubscribeCaughtUp { watermark: last })),
        ];
        prop_assert_eq!(out, expected.concat());
    }

    #[test]
    fn errors_are_what_prost_writes(
        id in number(),
        code in 0..10_i32,
        text in "\\PC{0,200}|a{1020,1030}",
        conflict_position in proptest::option::of(number()),
        retryable in any::<bool>(),
    ) {
        let code = proto::ErrorCode::try_from(code).expect("a code");
        let mut out = Vec::new();
        error(&mut out, id, code, &text, conflict_position, retryable);
        let kept = text.char_indices().map(|(at, c)| at + c.len_utf8());
        let kept = kept.take_while(|&end| end <= ERROR_MESSAGE_BYTES_MAX).last().unwrap_or(0);
        let response = proto::ErrorResponse {
            code: code.into(),
            message: text[..kept].to_owned(),
            conflict_position,
            retryable,
        };
        prop_assert_eq!(out, frame(id, Kind::Error(response)));
    }

    #[test]
    fn stats_and_hello_acks_are_what_prost_writes(
        id in number(),
        numbers in proptest::array::uniform9(number()),
        version in "\\PC{0,12}",
        protocol_version in any::<u32>(),
    ) {
        let [
            event_count, segment_count, disk_bytes, uptime_seconds, active_connections,
            active_subscriptions, connections_refused, max_connections, connections_reaped,
        ] = numbers;
        let state = proto::StatsResponse {
            event_count,
            segment_count,
            disk_bytes,
            uptime_seconds,
            active_connections,
            active_subscriptions,
            version: version.clone(),
            connections_refused,
            max_connections,
            connections_reaped,
        };
        let mut out = Vec::new();
        stats(&mut out, id, &state);
        hello_ack(&mut out, id, protocol_version, &version);
        let ack = proto::HelloAck { protocol_version, server_version: version };
        prop_assert_eq!(out, [frame(id, Kind::Stats(state)), frame(id, Kind::HelloAck(ack))].concat());
    }
}
