//! A connection of length-prefixed frames.
//!
//! ```text
//!            poll: a frame is whole
//!          ┌──────────────────────┐
//!          ▼                      │
//!   Between frames ──────▶ Within a frame ──▶ timer `FRAME`
//!          poll: some bytes of one
//! ```

use std::ops::Range;
use std::time::Instant;

use pumice_frame_proto::{Decoder, FrameError};

/// Cuts a connection's bytes into frames, and knows since when one is incomplete.
#[derive(Debug)]
pub(crate) struct Frames {
    decoder: Decoder,
    /// When the first byte of the incomplete frame came. A trickle doesn't reset it.
    pub(crate) incomplete_since: Option<Instant>,
    /// When the last whole frame came.
    pub(crate) last_frame: Instant,
}

impl Frames {
    pub(crate) fn new(frame_bytes_max: u32, now: Instant) -> Self {
        Self {
            decoder: Decoder::new(frame_bytes_max),
            incomplete_since: None,
            last_frame: now,
        }
    }

    /// The timers start anew: they rested, since the peer was still taking answers.
    pub(crate) fn restart_timers(&mut self, now: Instant) {
        self.last_frame = now;
        if let Some(since) = &mut self.incomplete_since {
            *since = now;
        }
    }

    /// The range of the first frame's payload in `input`; its end is what that frame uses up.
    ///
    /// # Errors
    /// The announced length is over the limit: answer it and close.
    pub(crate) fn poll(
        &mut self,
        input: &[u8],
        now: Instant,
    ) -> Result<Option<Range<usize>>, FrameError> {
        let frame = self.decoder.next(input)?;
        if frame.is_some() {
            self.incomplete_since = None;
            self.last_frame = now;
        } else if !input.is_empty() {
            self.incomplete_since.get_or_insert(now);
        }
        Ok(frame)
    }
}
