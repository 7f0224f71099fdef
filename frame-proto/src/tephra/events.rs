//! Events of reads and subscriptions, from the engine's bytes straight into the output.
//!
//! ```text
//!            begin                        push*                          finish
//! ┌────────┬────────────┬──────┬─────┬──────────────────────────┐
//! │ prefix │ request_id │ 0x1A │ len │ 0x0A len SequencedEvent … │   len: 3 bytes until it is known
//! └────────┴────────────┴──────┴─────┴──────────────────────────┘
//! ```
//!
//! Lengths come before what they measure. Those of an event are known beforehand. That of all
//! events together isn't, so three bytes are kept for it, right for 16 KiB to 2 MiB; at the end a
//! smaller body, cheap to move, moves back, and a larger one forward.

use ::tephra::EventRef;

use super::wire::{
    VARINT_BYTES_MAX, len_field_len, put_bytes_field, put_len_prefix, put_uint_field,
    uint_field_len, varint_len,
};
use crate::frame::{self, PREFIX_BYTES};

/// Bytes kept for the length of a frame's events until it is known.
const LEN_BYTES_KEPT: usize = 3;

/// A frame of events that is being written at the end of an output buffer.
///
/// The same buffer goes into every call, and nobody else may touch it from `begin` to `finish`.
#[derive(Debug)]
#[must_use = "a frame that isn't finished has no length"]
pub struct EventsFrame {
    /// Where the prefix starts.
    start: usize,
    /// Where the events start.
    body: usize,
}

impl EventsFrame {
    /// Starts a frame behind what `out` holds.
    pub fn begin(out: &mut Vec<u8>, request_id: u64) -> Self {
        let start = frame::begin(out);
        put_uint_field(out, 1, request_id);
        out.push(0x1A);
        out.extend_from_slice(&[0; LEN_BYTES_KEPT]);
        Self {
            start,
            body: out.len(),
        }
    }

    /// Appends an event. Returns the bytes of all events so far.
    pub fn push(&mut self, out: &mut Vec<u8>, position: u64, event: EventRef<'_>) -> usize {
        put_sequenced(out, position, event);
        out.len() - self.body
    }

    /// Appends events that [`put_sequenced`] wrote elsewhere. Returns the bytes of all events so far.
    pub fn push_encoded(&mut self, out: &mut Vec<u8>, sequenced: &[u8]) -> usize {
        out.extend_from_slice(sequenced);
        out.len() - self.body
    }

    /// The frame's length, without its prefix, if `more` bytes of events were appended and it was
    /// finished then: what is to be held against the frame limit before a `push`.
    #[must_use]
    pub fn len_with(&self, out: &[u8], more: usize) -> usize {
        let head = self.body - LEN_BYTES_KEPT - self.start - PREFIX_BYTES;
        let events = out.len() - self.body + more;
        head + varint_len(events as u64) + events
    }

    /// Completes the frame. Returns its length without the prefix.
    ///
    /// # Panics
    /// If it is longer than 4 GiB, which the frame limit rules out.
    pub fn finish(self, out: &mut Vec<u8>) -> usize {
        let end = out.len();
        let mut len = (end - self.body) as u64;
        let len_bytes = varint_len(len);
        let at = self.body - LEN_BYTES_KEPT;
        let body = at + len_bytes;
        if body > self.body {
            out.resize(end + body - self.body, 0);
        }
        if body != self.body {
            out.copy_within(self.body..end, body);
            out.truncate(end + body - self.body);
        }
        for byte in &mut out[at..body - 1] {
            *byte = len as u8 | 0x80;
            len >>= 7;
        }
        out[body - 1] = len as u8;
        frame::patch(out, self.start);
        frame::payload_len(out, self.start)
    }
}

/// Appends one event with its position, as an element of `ReadEvents.events`.
///
/// The bytes are the same for every reader and request, so they can be made once and shared:
/// [`EventsFrame::push_encoded`] takes one or many of them.
pub fn put_sequenced(out: &mut Vec<u8>, position: u64, event: EventRef<'_>) {
    let event_len = event_len(event);
    out.reserve(sequenced_field_len(position, event_len));
    put_len_prefix(out, 1, uint_field_len(position) + len_field_len(event_len));
    put_uint_field(out, 1, position);
    put_len_prefix(out, 2, event_len);
    put_bytes_field(out, 1, event.event_type().as_bytes());
    for tag in event.tags() {
        put_bytes_field(out, 2, tag.as_bytes());
    }
    if !event.data().is_empty() {
        put_bytes_field(out, 3, event.data());
    }
}

/// How many bytes [`put_sequenced`] appends.
#[must_use]
pub fn sequenced_len(position: u64, event: EventRef<'_>) -> usize {
    sequenced_field_len(position, event_len(event))
}

/// Says whether an event can be sent alone in a frame of at most `frame_bytes_max` bytes, whatever
/// its position and the request's id will be.
///
/// What a request brings isn't always what an answer can carry: the position and a second envelope
/// come on top. An event that fails this test, once stored, could never be read.
#[must_use]
pub fn event_fits(event: EventRef<'_>, frame_bytes_max: u32) -> bool {
    const REQUEST_ID_BYTES: usize = 1 + VARINT_BYTES_MAX;
    let sequenced = sequenced_len(u64::MAX, event);
    REQUEST_ID_BYTES + len_field_len(sequenced) <= frame_bytes_max as usize
}

fn sequenced_field_len(position: u64, event_len: usize) -> usize {
    len_field_len(uint_field_len(position) + len_field_len(event_len))
}

/// Bytes of an event's message. Its type is never empty.
fn event_len(event: EventRef<'_>) -> usize {
    let mut len = len_field_len(event.event_type().len());
    for tag in event.tags() {
        len += len_field_len(tag.len());
    }
    if !event.data().is_empty() {
        len += len_field_len(event.data().len());
    }
    len
}
