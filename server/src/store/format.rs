//! How the events of a read leave: frames of the wire protocol, or JSON of the HTTP API.

use pumice_frame_proto::tephra::{EventsFrame, sequenced_len};
use tephra::{EventRef, Position};

use super::cursor::Flow;
use super::stream::ReadFault;
use crate::api::encode;

/// The shape of a stream's bytes, and where within it the stream is.
#[derive(Debug)]
pub(crate) enum Format {
    /// `ReadEvents` frames.
    Wire(Wire),
    /// One JSON object a line.
    Ndjson,
    /// One JSON object with the events of a page in it.
    Page(Page),
    /// One JSON array of the DCB test contract.
    DcbPage {
        /// Whether an event was written.
        any: bool,
    },
    /// Server-sent events (the WHATWG's HTML standard, §9.2).
    Sse,
}

/// The bounds of one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) request_id: u64,
    pub(crate) batch_events: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) frame_bytes_max: usize,
}

/// A page under way.
#[derive(Debug)]
pub(crate) struct Page {
    /// Events that this page may still hold. The cursor may give one more, which shows that there is a next page.
    pub(crate) left: u64,
    pub(crate) last: Option<Position>,
    pub(crate) has_next: bool,
}

/// The bytes that were written before a page's first event.
const PAGE_START: &[u8] = b"{\"events\":[";

/// Puts events into a portion's bytes.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    format: &'a mut Format,
    out: &'a mut Vec<u8>,
    /// Bytes after which the portion is large enough.
    budget: usize,
    /// The frame under way and the number of its events.
    frame: Option<(EventsFrame, usize)>,
    fault: Option<ReadFault>,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(format: &'a mut Format, out: &'a mut Vec<u8>, budget: usize) -> Self {
        Self {
            format,
            out,
            budget,
            frame: None,
            fault: None,
        }
    }

    /// Encodes one event.
    pub(crate) fn put(&mut self, position: Position, event: EventRef<'_>) -> Flow {
        match self.format {
            Format::Wire(wire) => {
                let wire = *wire;
                if !self.put_in_frame(wire, position, event) {
                    return Flow::Stop;
                }
            }
            Format::Ndjson => {
                encode::put_event(self.out, position.get(), event);
                self.out.push(b'\n');
            }
            Format::Page(page) => {
                if page.left == 0 {
                    page.has_next = true;
                    return Flow::Stop;
                }
                page.left -= 1;
                self.out.extend_from_slice(if page.last.is_none() {
                    PAGE_START
                } else {
                    b","
                });
                page.last = Some(position);
                encode::put_event(self.out, position.get(), event);
            }
            Format::DcbPage { any } => {
                self.out.push(if *any { b',' } else { b'[' });
                *any = true;
                encode::put_dcb_event(self.out, position.get(), event);
            }
            Format::Sse => put_sse_event(self.out, position.get(), event),
        }
        if self.out.len() >= self.budget {
            Flow::Pause
        } else {
            Flow::More
        }
    }

    /// `false`: the event doesn't fit a frame of its own.
    fn put_in_frame(&mut self, wire: Wire, position: Position, event: EventRef<'_>) -> bool {
        let len = sequenced_len(position.get(), event);
        if let Some((frame, _)) = &self.frame
            && frame.len_with(self.out, len) > wire.frame_bytes_max
        {
            self.finish_frame();
        }
        let start = self.out.len();
        let (frame, events) = self
            .frame
            .get_or_insert_with(|| (EventsFrame::begin(self.out, wire.request_id), 0));
        if *events == 0 && frame.len_with(self.out, len) > wire.frame_bytes_max {
            self.out.truncate(start);
            self.frame = None;
            self.fault = Some(ReadFault::TooLong {
                position: position.get(),
                max: wire.frame_bytes_max,
            });
            return false;
        }
        let bytes = frame.push(self.out, position.get(), event);
        *events += 1;
        if *events >= wire.batch_events || bytes >= wire.batch_bytes {
            self.finish_frame();
        }
        true
    }

    /// Why the event at which [`Flow::Stop`] was said can't be given, if that was the reason.
    pub(crate) fn take_fault(&mut self) -> Option<ReadFault> {
        self.fault.take()
    }

    fn finish_frame(&mut self) {
        if let Some((frame, _)) = self.frame.take() {
            frame.finish(self.out);
        }
    }

    /// Ends the portion: what it holds can be sent.
    pub(crate) fn pause(mut self) {
        self.finish_frame();
    }

    /// Ends the portion and what the format itself has at its end.
    pub(crate) fn end(mut self, watermark: Position) {
        self.finish_frame();
        match self.format {
            Format::Page(page) => {
                if page.last.is_none() {
                    self.out.extend_from_slice(PAGE_START);
                }
                self.out.extend_from_slice(b"],\"watermark\":");
                self.out
                    .extend_from_slice(itoa::Buffer::new().format(watermark.get()).as_bytes());
                if let (true, Some(last)) = (page.has_next, page.last) {
                    self.out.extend_from_slice(b",\"next\":");
                    self.out
                        .extend_from_slice(itoa::Buffer::new().format(last.get()).as_bytes());
                }
                self.out.extend_from_slice(b"}\n");
            }
            Format::DcbPage { any } => {
                self.out
                    .extend_from_slice(if *any { b"]\n" } else { b"[]\n" })
            }
            Format::Wire(_) | Format::Ndjson | Format::Sse => {}
        }
    }
}

/// Writes one server-sent event. The JSON has no line break in it, so one `data` line holds it.
pub(crate) fn put_sse_event(out: &mut Vec<u8>, position: u64, event: EventRef<'_>) {
    out.extend_from_slice(b"id: ");
    out.extend_from_slice(itoa::Buffer::new().format(position).as_bytes());
    out.extend_from_slice(b"\nevent: event\ndata: ");
    encode::put_event(out, position, event);
    out.extend_from_slice(b"\n\n");
}

/// Writes the server-sent event that says that all events up to `watermark` have been sent.
pub(crate) fn put_sse_caught_up(out: &mut Vec<u8>, watermark: u64) {
    out.extend_from_slice(b"event: caught-up\ndata: {\"watermark\":");
    out.extend_from_slice(itoa::Buffer::new().format(watermark).as_bytes());
    out.extend_from_slice(b"}\n\n");
}
