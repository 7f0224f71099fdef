//! Answers, written as whole frames behind what the output already holds.
//!
//! They are small and bounded: no limit of a frame is asked for, since each is below any sensible one.

use ::tephra::{AppendError, ConflictClause, ConflictSite};
use prost::Message;

use super::proto::{ErrorCode, HelloAck, StatsResponse};
use super::wire::{
    len_field_len, put_bytes_field, put_len_prefix, put_present_uint_field, put_uint_field,
    uint_field_len, varint_len,
};
use crate::frame;

/// The longest error message that is sent, in bytes; what is longer is cut.
///
/// Chosen: room for a sentence and a name, while a message that quotes a tag of 65 535 bytes doesn't
/// make a small answer a large one.
pub const ERROR_MESSAGE_BYTES_MAX: usize = 1024;

/// An append is stored, at the positions from `first` to `last`.
pub fn append_ok(out: &mut Vec<u8>, request_id: u64, first: u64, last: u64) {
    let len = uint_field_len(first) + uint_field_len(last);
    answer(out, request_id, 2, len, |out| {
        put_uint_field(out, 1, first);
        put_uint_field(out, 2, last);
    });
}

/// A read is complete: it saw the log up to `watermark`.
pub fn read_end(out: &mut Vec<u8>, request_id: u64, watermark: u64) {
    answer(out, request_id, 4, uint_field_len(watermark), |out| {
        put_uint_field(out, 1, watermark);
    });
}

/// A subscription has sent all there is up to `watermark`.
pub fn caught_up(out: &mut Vec<u8>, request_id: u64, watermark: u64) {
    answer(out, request_id, 6, uint_field_len(watermark), |out| {
        put_uint_field(out, 1, watermark);
    });
}

/// A request failed. `message` is cut to [`ERROR_MESSAGE_BYTES_MAX`].
pub fn error(
    out: &mut Vec<u8>,
    request_id: u64,
    code: ErrorCode,
    message: &str,
    conflict_position: Option<u64>,
    retryable: bool,
) {
    let message = &message[..message.floor_char_boundary(ERROR_MESSAGE_BYTES_MAX)];
    // Codes are small and not negative.
    let code = u64::from(code as u32);
    let mut len = uint_field_len(code) + uint_field_len(u64::from(retryable));
    if !message.is_empty() {
        len += len_field_len(message.len());
    }
    if let Some(position) = conflict_position {
        len += 1 + varint_len(position);
    }
    answer(out, request_id, 5, len, |out| {
        put_uint_field(out, 1, code);
        if !message.is_empty() {
            put_bytes_field(out, 2, message.as_bytes());
        }
        if let Some(position) = conflict_position {
            put_present_uint_field(out, 3, position);
        }
        put_uint_field(out, 4, u64::from(retryable));
    });
}

/// The engine refused an append, or failed at it.
pub fn append_error(out: &mut Vec<u8>, request_id: u64, refusal: &AppendError) {
    let mut conflict_position = None;
    let mut retryable = false;
    let code = match refusal {
        AppendError::Conflict { clause, at } => {
            match at {
                ConflictSite::Durable(position) => conflict_position = Some(position.get()),
                // The event in the way may yet come to nothing.
                ConflictSite::SameBatch => retryable = true,
            }
            match clause {
                ConflictClause::Boundary => ErrorCode::Conflict,
                ConflictClause::Existence => ErrorCode::AlreadyExists,
            }
        }
        AppendError::AfterBeyondTip { .. } => ErrorCode::AfterBeyondTip,
        AppendError::Empty => ErrorCode::Empty,
        AppendError::TooLarge { .. } => ErrorCode::TooLarge,
        AppendError::Log(_) | AppendError::Corrupt(_) => ErrorCode::Internal,
        AppendError::Shutdown => ErrorCode::Shutdown,
    };
    let message = refusal.to_string();
    error(
        out,
        request_id,
        code,
        &message,
        conflict_position,
        retryable,
    );
}

/// The server's state.
pub fn stats(out: &mut Vec<u8>, request_id: u64, stats: &StatsResponse) {
    answer(out, request_id, 7, stats.encoded_len(), |out| {
        stats.encode(out).expect("a Vec has room");
    });
}

/// The connection is open: `version` and this server's own version.
pub fn hello_ack(out: &mut Vec<u8>, request_id: u64, version: u32, server_version: &str) {
    let ack = HelloAck {
        protocol_version: version,
        server_version: server_version.to_owned(),
    };
    answer(out, request_id, 8, ack.encoded_len(), |out| {
        ack.encode(out).expect("a Vec has room");
    });
}

/// Writes a response whose kind is a message of `len` bytes, which `put` appends.
fn answer(
    out: &mut Vec<u8>,
    request_id: u64,
    kind: u8,
    len: usize,
    put: impl FnOnce(&mut Vec<u8>),
) {
    let start = frame::begin(out);
    put_uint_field(out, 1, request_id);
    put_len_prefix(out, kind, len);
    put(out);
    frame::patch(out, start);
}
