//! The frames themselves: a length prefix, and behind it one message.

use std::ops::Range;

use prost::Message;
use thiserror::Error;

/// Bytes of the length prefix in front of every message: a big-endian `u32`.
pub const PREFIX_BYTES: usize = 4;

/// The most that [`Decoder::room`] asks for while fewer bytes than that have come.
///
/// Chosen: a read of this size fetches some dozens of small frames at once, and a peer that
/// announces a large frame without sending it pins no more than this.
const ROOM_BYTES_MIN: usize = 16 * 1024;

/// Why a frame can't be read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame is longer than the limit. A receiver can't skip it cheaply: answer and close.
    #[error("frame length {len} exceeds the maximum of {max}")]
    TooLarge {
        /// Bytes announced by the prefix, or needed by the message to be sent (at most
        /// `u32::MAX` is shown).
        len: u32,
        /// The limit, in bytes.
        max: u32,
    },
    /// The stream ended within a frame: the peer broke off, and nothing more can be read.
    #[error("the stream ended {missing} bytes before the end of a frame")]
    Incomplete {
        /// Bytes that are missing, as far as the prefix tells; without a whole prefix, the
        /// prefix's own.
        missing: usize,
    },
    /// A whole frame is there, but its bytes are no message of the expected type.
    #[error("frame decode error: {0}")]
    Malformed(#[source] Malformed),
}

/// What exactly makes bytes not a message, in words for a log.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(transparent)]
pub struct Malformed(prost::DecodeError);

/// Finds frames in the bytes received so far.
///
/// It holds nothing but its limit: the bytes stay in the caller's buffer, and every answer is a
/// range of it. Looking costs the same however the bytes were cut, since only the prefix is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoder {
    frame_bytes_max: u32,
}

impl Decoder {
    /// A decoder that takes messages of up to `frame_bytes_max` bytes, the prefix not counted.
    #[must_use]
    pub fn new(frame_bytes_max: u32) -> Self {
        Self { frame_bytes_max }
    }

    /// The limit, in bytes.
    #[must_use]
    pub fn frame_bytes_max(&self) -> u32 {
        self.frame_bytes_max
    }

    /// Looks for a frame at the start of `buf`, all the bytes received and not yet used up.
    ///
    /// `Ok(Some(range))` is where its message lies in `buf`; `range.end` bytes are used up with
    /// it, and the next frame starts there. `Ok(None)` asks for more bytes.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`] as soon as the prefix is there, before any byte of the message.
    pub fn next(&self, buf: &[u8]) -> Result<Option<Range<usize>>, FrameError> {
        let Some(len) = self.message_len(buf)? else {
            return Ok(None);
        };
        let end = PREFIX_BYTES + len;
        Ok((buf.len() >= end).then_some(PREFIX_BYTES..end))
    }

    /// How many bytes the frame at the start of `buf` still lacks: 0 if it is whole or over the
    /// limit, the rest of the prefix if not even that is there.
    ///
    /// The number comes from the peer. Don't allocate by it, but by [`Decoder::room`].
    #[must_use]
    pub fn needed(&self, buf: &[u8]) -> usize {
        match self.message_len(buf) {
            Ok(Some(len)) => (PREFIX_BYTES + len).saturating_sub(buf.len()),
            Ok(None) => PREFIX_BYTES - buf.len(),
            Err(_) => 0,
        }
    }

    /// How many bytes of room to make behind `buf` before the next read.
    ///
    /// It is what the frame lacks, but no more than has already come (or 16 KiB, if that is
    /// more): so memory doubles with the bytes received and never follows the length announced.
    /// Never 0, so that a read into it can't be mistaken for the end of the stream.
    #[must_use]
    pub fn room(&self, buf: &[u8]) -> usize {
        self.needed(buf)
            .clamp(PREFIX_BYTES, buf.len().max(ROOM_BYTES_MIN))
    }

    /// Says whether the stream may end here, `rest` being what is left of it.
    ///
    /// # Errors
    /// [`FrameError::Incomplete`] if `rest` is the beginning of a frame, [`FrameError::TooLarge`]
    /// if that is over the limit.
    pub fn end(&self, rest: &[u8]) -> Result<(), FrameError> {
        if rest.is_empty() || self.next(rest)?.is_some() {
            return Ok(());
        }
        Err(FrameError::Incomplete {
            missing: self.needed(rest),
        })
    }

    fn message_len(&self, buf: &[u8]) -> Result<Option<usize>, FrameError> {
        let Some(prefix) = buf.first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let len = u32::from_be_bytes(*prefix);
        let max = self.frame_bytes_max;
        if len > max {
            return Err(FrameError::TooLarge { len, max });
        }
        Ok(Some(len as usize))
    }
}

/// Reads one message from `payload`, the bytes that [`Decoder::next`] found.
///
/// Allocates what the message holds, at most a multiple of `payload`'s length.
///
/// # Errors
/// [`FrameError::Malformed`] if the bytes are no such message.
pub fn decode<M: Message + Default>(payload: &[u8]) -> Result<M, FrameError> {
    M::decode(payload).map_err(|error| FrameError::Malformed(Malformed(error)))
}

/// Writes `message` as one frame behind what `out` already holds, so that several frames can go
/// out with one write.
///
/// # Errors
/// [`FrameError::TooLarge`] if it takes more than `frame_bytes_max` bytes; `out` is then as it was.
pub fn encode<M: Message>(
    message: &M,
    frame_bytes_max: u32,
    out: &mut Vec<u8>,
) -> Result<(), FrameError> {
    let start = begin(out);
    let len = match message.encode(out) {
        Ok(()) => payload_len(out, start),
        // A `Vec` has room for `isize::MAX` bytes and no more.
        Err(error) => error.required_capacity(),
    };
    if len > frame_bytes_max as usize {
        out.truncate(start);
        return Err(FrameError::TooLarge {
            len: u32::try_from(len).unwrap_or(u32::MAX),
            max: frame_bytes_max,
        });
    }
    patch(out, start);
    Ok(())
}

/// Leaves room for a prefix, and says where it starts.
pub(crate) fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    start
}

/// How many bytes follow the prefix at `start`.
pub(crate) fn payload_len(out: &[u8], start: usize) -> usize {
    out.len() - start - PREFIX_BYTES
}

/// Fills in the prefix at `start`, now that its message ends `out`.
///
/// # Panics
/// If the message is longer than a prefix can say, 4 GiB. Callers bound it far below.
pub(crate) fn patch(out: &mut [u8], start: usize) {
    let len = u32::try_from(payload_len(out, start)).expect("a frame is shorter than 4 GiB");
    out[start..start + PREFIX_BYTES].copy_from_slice(&len.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u32 = 16;

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut out = u32::try_from(payload.len())
            .expect("short")
            .to_be_bytes()
            .to_vec();
        out.extend_from_slice(payload);
        out
    }

    #[test]
    fn a_frame_that_comes_byte_by_byte_is_the_same_frame() {
        let decoder = Decoder::new(MAX);
        let bytes = frame(b"hello");
        for end in 0..bytes.len() {
            let have = &bytes[..end];
            assert_eq!(decoder.next(have), Ok(None), "after {end} bytes");
            let whole_prefix = end >= PREFIX_BYTES;
            let missing = if whole_prefix { 9 } else { PREFIX_BYTES } - end;
            assert_eq!(decoder.needed(have), missing, "after {end} bytes");
        }
        assert_eq!(decoder.next(&bytes), Ok(Some(4..9)));
        assert_eq!(decoder.needed(&bytes), 0);
    }

    #[test]
    fn the_next_frame_stays_in_the_buffer() {
        let mut bytes = frame(b"one");
        bytes.extend(frame(b"two"));
        let decoder = Decoder::new(MAX);
        let first = decoder.next(&bytes).expect("in bounds").expect("whole");
        let rest = &bytes[first.end..];
        let second = decoder.next(rest).expect("in bounds").expect("whole");
        assert_eq!(&bytes[first], b"one");
        assert_eq!(&rest[second], b"two");
    }

    #[test]
    fn a_frame_of_just_the_limit_is_taken_and_one_byte_more_is_not() {
        let decoder = Decoder::new(MAX);
        assert_eq!(decoder.next(&frame(&[0; 16])), Ok(Some(4..20)));
        for len in [17, u32::MAX] {
            let error = FrameError::TooLarge { len, max: MAX };
            // The prefix alone is enough: nothing is waited for.
            assert_eq!(decoder.next(&len.to_be_bytes()), Err(error.clone()));
            assert_eq!(decoder.end(&len.to_be_bytes()), Err(error.clone()));
            assert_eq!(
                error.to_string(),
                format!("frame length {len} exceeds the maximum of 16")
            );
        }
    }

    #[test]
    fn an_empty_frame_is_a_frame() {
        assert_eq!(Decoder::new(0).next(&[0; 4]), Ok(Some(4..4)));
    }

    #[test]
    fn a_length_that_is_only_announced_takes_no_memory() {
        let decoder = Decoder::new(16 * 1024 * 1024);
        let mut bytes = (16_u32 * 1024 * 1024).to_be_bytes().to_vec();
        bytes.reserve_exact(decoder.room(&bytes));
        assert!(bytes.capacity() < 64 * 1024);
    }

    #[test]
    fn room_at_most_doubles_the_bytes_received() {
        let decoder = Decoder::new(16 * 1024 * 1024);
        let mut bytes = (16_u32 * 1024 * 1024).to_be_bytes().to_vec();
        let mut reads = 0;
        while decoder.next(&bytes).expect("in bounds").is_none() {
            let room = decoder.room(&bytes);
            assert!(room <= bytes.len().max(16 * 1024), "{room}");
            bytes.resize(bytes.len() + room, 0);
            reads += 1;
        }
        assert_eq!(bytes.len(), PREFIX_BYTES + 16 * 1024 * 1024);
        assert!(reads < 16, "{reads}");
    }

    #[test]
    fn there_is_always_room_for_a_read() {
        let decoder = Decoder::new(MAX);
        for bytes in [&[][..], &[0; 3], &frame(b"whole"), &[0xff; 4]] {
            assert!(decoder.room(bytes) >= PREFIX_BYTES, "{bytes:?}");
        }
    }

    #[test]
    fn a_stream_may_end_between_frames_only() {
        let decoder = Decoder::new(MAX);
        let bytes = frame(b"hello");
        assert_eq!(decoder.end(b""), Ok(()));
        assert_eq!(
            decoder.end(&bytes[..1]),
            Err(FrameError::Incomplete { missing: 3 })
        );
        assert_eq!(
            decoder.end(&bytes[..8]),
            Err(FrameError::Incomplete { missing: 1 })
        );
    }

    #[test]
    fn bytes_that_are_no_message_are_told_from_missing_ones() {
        let error = decode::<String>(&[0x0A, 5, b'x']).expect_err("too short a field");
        assert!(matches!(error, FrameError::Malformed(_)), "{error}");
    }

    #[test]
    fn a_message_over_the_limit_leaves_the_output_as_it_was() {
        let mut out = b"before".to_vec();
        // Two bytes of field key and length.
        encode(&"x".repeat(14), MAX, &mut out).expect("16 bytes");
        assert_eq!(out.len(), 6 + PREFIX_BYTES + 16);
        let before = out.clone();
        let error = encode(&"x".repeat(15), MAX, &mut out);
        assert_eq!(error, Err(FrameError::TooLarge { len: 17, max: MAX }));
        assert_eq!(out, before);
    }
}
