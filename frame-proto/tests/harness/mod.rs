//! What laws, vectors, corpora and the fuzz targets share: the slow way from a request's bytes to the engine's
//! types, and the checks that any bytes must pass.
//!
//! The fuzz targets in the repository's `fuzz/` include this file, so it depends on nothing but the
//! crate, prost and the engine.
#![allow(dead_code)]

pub(crate) mod reference;

use prost::Message;
use pumice_frame_proto::tephra::proto::{self, response};
use pumice_frame_proto::tephra::{EventsFrame, event_fits};
use pumice_frame_proto::{Decoder, FrameError, PREFIX_BYTES};

use reference::{Comparable, Verdict, fast, slow};

/// What a receiver makes of bytes that come in these pieces: the payloads, and how it ended.
pub(crate) fn receive<'a>(
    frame_bytes_max: u32,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<Vec<u8>>, Result<(), FrameError>) {
    let decoder = Decoder::new(frame_bytes_max);
    let mut buf = Vec::new();
    let mut payloads = Vec::new();
    for piece in pieces {
        buf.extend_from_slice(piece);
        loop {
            match decoder.next(&buf) {
                Ok(Some(range)) => {
                    payloads.push(buf[range.clone()].to_vec());
                    buf.drain(..range.end);
                }
                Ok(None) => break,
                Err(error) => return (payloads, Err(error)),
            }
        }
        assert!(decoder.room(&buf) <= buf.len().max(16 * 1024));
        assert!(decoder.room(&buf) >= PREFIX_BYTES);
    }
    (payloads, decoder.end(&buf))
}

/// Any bytes as a stream of frames: the first says how long a piece is, the second how long a frame may be.
pub(crate) fn check_frames(data: &[u8]) {
    let [piece, max, stream @ ..] = data else {
        return;
    };
    let max = u32::from(*max);
    let whole = receive(max, [stream].into_iter());
    let pieces = receive(max, stream.chunks(usize::from(*piece).max(1)));
    assert_eq!(pieces, whole);
    // What came out is what went in, up to where it ended.
    let mut again = Vec::new();
    for payload in &whole.0 {
        assert!(payload.len() <= max as usize);
        again.extend((payload.len() as u32).to_be_bytes());
        again.extend(payload);
    }
    assert!(stream.starts_with(&again));
    assert_eq!(whole.1.is_ok(), again.len() == stream.len());
}

/// Any bytes as a request: both decoders agree, and the events of an append can be sent and read again.
pub(crate) fn check_request(payload: &[u8]) {
    let verdict = fast(payload);
    // The slow way has no bounds of its own; only a payload this large can reach one.
    if payload.len() < 2 * pumice_frame_proto::tephra::QUERY_TERMS_MAX {
        assert_eq!(verdict, slow(payload));
    }
    let Verdict::Request {
        request_id,
        kind: Comparable::Append(events, _),
    } = verdict
    else {
        return;
    };
    let mut out = Vec::new();
    let mut frame = EventsFrame::begin(&mut out, request_id);
    for (position, event) in (0..).zip(&events) {
        frame.push(&mut out, position, event.as_ref());
    }
    let len = frame.finish(&mut out);
    let response = proto::Response::decode(&out[PREFIX_BYTES..]).expect("a response");
    assert_eq!(response.encoded_len(), len);
    let Some(response::Kind::ReadEvents(sent)) = response.kind else {
        panic!("events")
    };
    assert_eq!(sent.events.len(), events.len());
    for (event, sequenced) in events.iter().zip(sent.events) {
        let sent = sequenced.event.expect("an event");
        assert_eq!(sent.r#type, event.event_type());
        assert!(sent.tags.iter().map(String::as_str).eq(event.tags()));
        assert_eq!(sent.payload, event.data());
        assert!(event_fits(event.as_ref(), len as u32 + 32));
    }
}
