//! Known bytes: each `.bin` in `vectors/` gives the text beside it, now and later.
//!
//! `answer-*` are frames, and what this crate writes for their content is the same bytes again. All
//! others are payloads of requests.
//!
//! The bytes were made by `protoc --encode` from tephra-proto's published `.proto`, the broken ones by hand.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use pumice_frame_proto::tephra::proto::{self, ErrorCode, response};
use pumice_frame_proto::tephra::{
    EventsFrame, RequestError, append_ok, caught_up, decode_request, error, hello_ack, read_end,
    stats,
};
use pumice_frame_proto::{Decoder, decode};
use tephra::{Event, EventType, Query, Tag, Tags};

mod harness;

use harness::reference::{Comparable, Verdict, fast};

#[test]
fn known_bytes_have_their_known_meaning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut wrong = String::new();
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            count += 1;
            check(&path, &mut wrong);
        }
    }
    assert!(count >= 60, "only {count} vectors");
    assert!(wrong.is_empty(), "{wrong}");
}

fn check(path: &PathBuf, wrong: &mut String) {
    let bytes = fs::read(path).expect("bytes");
    let name = path.file_stem().expect("a name").to_string_lossy();
    let text = match name.strip_prefix("answer-") {
        Some(_) => answers(&bytes),
        None => request(&bytes),
    };
    let expected = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
    if text != expected {
        writeln!(wrong, "== {name}\n{text}-- expected\n{expected}").expect("memory");
    }
}

fn request(payload: &[u8]) -> String {
    let mut text = String::new();
    if let Err(RequestError::Malformed { request_id, fault }) = decode_request(payload) {
        return format!("malformed, id {request_id}: {fault}\n");
    }
    let put = match fast(payload) {
        Verdict::Malformed => unreachable!("returned above"),
        Verdict::Invalid {
            request_id,
            text: reason,
        } => {
            writeln!(text, "invalid, id {request_id}: {reason}")
        }
        Verdict::Request { request_id, kind } => {
            write!(text, "id {request_id}: ").and_then(|()| put_kind(&mut text, &kind))
        }
    };
    put.expect("memory");
    text
}

fn put_kind(text: &mut String, kind: &Comparable) -> std::fmt::Result {
    match kind {
        Comparable::Append(events, condition) => {
            writeln!(text, "append")?;
            for event in events {
                let tags: Vec<_> = event.tags().collect();
                let payload = event.data().escape_ascii();
                writeln!(text, "  {:?} {tags:?} \"{payload}\"", event.event_type())?;
            }
            if let Some(condition) = condition {
                writeln!(
                    text,
                    "  unless after {} {}",
                    condition.after,
                    query(&condition.fail_if_events_match)
                )?;
                if let Some(exists) = &condition.fail_if_exists {
                    writeln!(text, "  unless there is {}", query(exists))?;
                }
            }
            Ok(())
        }
        Comparable::Read(which, after, limit, reverse) => writeln!(
            text,
            "read {} after {after} limit {limit:?} reverse {reverse}",
            query(which)
        ),
        Comparable::Subscribe(which, after) => {
            writeln!(text, "subscribe {} after {after}", query(which))
        }
        Comparable::Cancel(target) => writeln!(text, "cancel {target}"),
        Comparable::Stats => writeln!(text, "stats"),
        Comparable::Hello(version, token) => writeln!(text, "hello {version} {token:?}"),
        Comparable::Unknown => writeln!(text, "unknown"),
    }
}

fn query(query: &Query) -> String {
    let Query::Items(items) = query else {
        return "all".to_owned();
    };
    let items = items.iter().map(|item| {
        let types: Vec<_> = item.types.iter().map(EventType::as_str).collect();
        let tags: Vec<_> = item.tags.iter().map(Tag::as_str).collect();
        format!("(types {types:?} tags {tags:?})")
    });
    let items: Vec<_> = items.collect();
    format!("[{}]", items.join(" or "))
}

/// The frames' content; and that it makes the same frames.
fn answers(frames: &[u8]) -> String {
    let decoder = Decoder::new(u32::MAX);
    let (mut text, mut again) = (String::new(), Vec::new());
    let mut rest = frames;
    while let Some(range) = decoder.next(rest).expect("in bounds") {
        let response: proto::Response = decode(&rest[range.clone()]).expect("a response");
        rest = &rest[range.end..];
        let line = format!("{response:?}\n").replace(", 120".repeat(19_999).as_str(), "…");
        text.push_str(&line);
        put_answer(&mut again, response);
    }
    assert!(rest.is_empty());
    assert!(again == frames, "{text}");
    text
}

fn put_answer(out: &mut Vec<u8>, response: proto::Response) {
    use response::Kind;

    let id = response.request_id;
    match response.kind.expect("a kind") {
        Kind::Append(append) => append_ok(out, id, append.first, append.last),
        Kind::ReadEvents(events) => {
            let mut frame = EventsFrame::begin(out, id);
            for sequenced in events.events {
                let event = sequenced.event.expect("an event");
                let tags = event
                    .tags
                    .into_iter()
                    .map(|tag| Tag::new(tag).expect("a tag"));
                let tags = Tags::new(tags).expect("no two alike");
                let event_type = EventType::new(event.r#type).expect("a type");
                let event = Event::new(&event_type, &tags, &event.payload).expect("an event");
                frame.push(out, sequenced.position, event.as_ref());
            }
            frame.finish(out);
        }
        Kind::ReadEnd(end) => read_end(out, id, end.watermark),
        Kind::Error(it) => error(
            out,
            id,
            ErrorCode::try_from(it.code).expect("a code"),
            &it.message,
            it.conflict_position,
            it.retryable,
        ),
        Kind::CaughtUp(edge) => caught_up(out, id, edge.watermark),
        Kind::Stats(it) => stats(out, id, &it),
        Kind::HelloAck(ack) => hello_ack(out, id, ack.protocol_version, &ack.server_version),
    }
}
