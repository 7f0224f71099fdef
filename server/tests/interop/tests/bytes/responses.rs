//! A server's way: frames written here, read by tephra-proto's own framing.

use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::*;
use pumice_frame_proto::tephra::proto::{self, ErrorCode, response::Kind};
use pumice_frame_proto::tephra::{
    EventsFrame, append_ok, caught_up, error, hello_ack, put_sequenced, read_end, stats,
};
use tephra::{Event, EventType, Tags};
use tephra_proto::tephra as pb;
use tephra_proto::{DEFAULT_MAX_FRAME_LEN, read_frame};

use super::{arbitrary, theirs};

/// Writes a response as a server does. `None` for what it never sends.
fn write(out: &mut Vec<u8>, response: &proto::Response) -> Option<()> {
    let id = response.request_id;
    match response.kind.as_ref()? {
        Kind::Append(append) => append_ok(out, id, append.first, append.last),
        Kind::ReadEvents(events) => {
            let mut frame = EventsFrame::begin(out, id);
            for (index, sequenced) in events.events.iter().enumerate() {
                let event = engine_event(sequenced.event.as_ref()?)?;
                if index % 2 == 0 {
                    frame.push(out, sequenced.position, event.as_ref());
                } else {
                    let mut shared = Vec::new();
                    put_sequenced(&mut shared, sequenced.position, event.as_ref());
                    frame.push_encoded(out, &shared);
                }
            }
            frame.finish(out);
        }
        Kind::ReadEnd(end) => read_end(out, id, end.watermark),
        Kind::CaughtUp(edge) => caught_up(out, id, edge.watermark),
        Kind::Error(it) => error(
            out,
            id,
            ErrorCode::try_from(it.code).ok()?,
            &it.message,
            it.conflict_position,
            it.retryable,
        ),
        Kind::Stats(it) => stats(out, id, it),
        Kind::HelloAck(ack) => hello_ack(out, id, ack.protocol_version, &ack.server_version),
    }
    Some(())
}

/// The engine's event, whose tags are sorted: `None` unless it is just the same.
fn engine_event(event: &proto::Event) -> Option<Event> {
    let tags = event.tags.iter().map(|tag| tephra::Tag::new(tag.as_str()));
    let tags = Tags::new(tags.collect::<Result<Vec<_>, _>>().ok()?).ok()?;
    let is_sorted = event.tags.is_sorted();
    let event_type = EventType::new(event.r#type.as_str()).ok()?;
    let event = Event::new(&event_type, &tags, &event.payload).ok()?;
    is_sorted.then_some(event)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn frames_written_here_are_read_by_them(responses in vec(arbitrary::response(), 1..6)) {
        let mut out = Vec::new();
        let mut sent = Vec::new();
        for response in responses {
            let start = out.len();
            match write(&mut out, &response) {
                Some(()) => sent.push(response),
                None => out.truncate(start),
            }
        }
        let mut stream = Cursor::new(&out);
        let mut received = Vec::new();
        while let Some(response) =
            read_frame::<pb::Response, _>(&mut stream, DEFAULT_MAX_FRAME_LEN).expect("frames")
        {
            received.push(theirs::read_response(response.as_view()));
        }
        prop_assert_eq!(received, sent);
    }
}

#[test]
fn error_codes_have_their_numbers() {
    for (ours, theirs) in [
        (ErrorCode::Unspecified, pb::ErrorCode::Unspecified),
        (ErrorCode::Conflict, pb::ErrorCode::Conflict),
        (ErrorCode::AfterBeyondTip, pb::ErrorCode::AfterBeyondTip),
        (ErrorCode::Empty, pb::ErrorCode::Empty),
        (ErrorCode::TooLarge, pb::ErrorCode::TooLarge),
        (ErrorCode::BadRequest, pb::ErrorCode::BadRequest),
        (ErrorCode::Internal, pb::ErrorCode::Internal),
        (ErrorCode::Shutdown, pb::ErrorCode::Shutdown),
        (ErrorCode::Unauthenticated, pb::ErrorCode::Unauthenticated),
        (ErrorCode::AlreadyExists, pb::ErrorCode::AlreadyExists),
    ] {
        assert_eq!(ours as i32, i32::from(theirs), "{ours:?}");
    }
}
