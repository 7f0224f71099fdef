//! Why a request is refused, as HTTP status and as the JSON that says so.

use std::borrow::Cow;

use tephra::{AppendError, ConflictClause, ConflictSite};

use super::escape::{put_number, put_string};

/// An answer other than success: status, code, what to do about it, and the facts.
///
/// `code` is what programs match on and never changes its meaning; `message` is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    /// The HTTP status.
    pub(crate) status: u16,
    /// One of a fixed set of words, in snake_case.
    pub(crate) code: &'static str,
    /// What was wrong and what to write instead.
    pub(crate) message: Cow<'static, str>,
    /// The conflicting event's position, or for `after_beyond_tip` the tip.
    pub(crate) position: Option<u64>,
    /// The same request, sent again unchanged, may succeed.
    pub(crate) retryable: bool,
    /// The bound that was passed, in the unit that `message` says.
    pub(crate) limit: Option<u64>,
    /// Seconds to wait before trying again: the `Retry-After` field as well.
    pub(crate) retry_after_secs: Option<u32>,
}

impl ApiError {
    fn new(status: u16, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            position: None,
            retryable: false,
            limit: None,
            retry_after_secs: None,
        }
    }

    /// 400: the request itself is wrong; `message` names the field or parameter.
    pub(crate) fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, "bad_request", message)
    }

    /// 400 with the code that the wire protocol calls EMPTY: an append without events.
    pub(crate) fn empty() -> Self {
        Self::new(400, "empty", "events: an append needs at least one event")
    }

    /// 403: a page of another origin, or a foreign `Host` on a loopback listener; `message` says which.
    pub(crate) fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(403, "forbidden", message)
    }

    /// 404: no such path.
    pub(crate) fn not_found() -> Self {
        Self::new(404, "not_found", "there is nothing at this path")
    }

    /// 405: the path is known, the method isn't. The caller adds `Allow`.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            405,
            "method_not_allowed",
            "this path does not take this method, see the Allow field",
        )
    }

    /// 406: nothing that `Accept` lists can be given here.
    pub(crate) fn not_acceptable() -> Self {
        Self::new(
            406,
            "not_acceptable",
            "the answer has none of the types that the Accept field lists",
        )
    }

    /// 409 and the like: what the engine said to an append.
    ///
    /// A refusal with facts keeps them. [`AppendError::Shutdown`] is certainly not appended; a failed write or an
    /// unreadable log may have left the events there or not, so it is [`ApiError::unknown_outcome`].
    pub(crate) fn from_append(error: &AppendError) -> Self {
        match error {
            AppendError::Conflict { clause, at } => Self::from_conflict(*clause, *at),
            AppendError::AfterBeyondTip { after, tip } => Self {
                position: Some(tip.get()),
                ..Self::new(
                    409,
                    "after_beyond_tip",
                    format!(
                        "condition.after is {after}, beyond the last event at {tip}: no reader can have seen that yet"
                    ),
                )
            },
            AppendError::Empty => Self::empty(),
            AppendError::TooLarge { size } => Self::new(
                413,
                "too_large",
                format!(
                    "the events take {size} bytes and don't fit one segment: append them in smaller batches"
                ),
            ),
            AppendError::Log(_) | AppendError::Corrupt(_) => Self::unknown_outcome(),
            AppendError::Shutdown => Self::not_appended(),
        }
    }

    fn from_conflict(clause: ConflictClause, at: ConflictSite) -> Self {
        let (code, query) = match clause {
            ConflictClause::Boundary => ("conflict", "failIfEventsMatch"),
            ConflictClause::Existence => ("already_exists", "failIfExists"),
        };
        match at {
            ConflictSite::Durable(position) => Self {
                position: Some(position.get()),
                ..Self::new(
                    409,
                    code,
                    format!(
                        "the event at {position} matches condition.{query}: read again and decide anew"
                    ),
                )
            },
            ConflictSite::SameBatch => Self {
                retryable: true,
                ..Self::new(
                    409,
                    code,
                    format!(
                        "an event that is being appended at the same moment matches condition.{query}: send it again"
                    ),
                )
            },
        }
    }

    /// 413: the body, or one event in it, is over `limit` bytes.
    pub(crate) fn payload_too_large(limit: u64) -> Self {
        Self {
            limit: Some(limit),
            ..Self::new(
                413,
                "too_large",
                format!(
                    "more than the {limit} bytes that are taken here: append in smaller batches"
                ),
            )
        }
    }

    /// 415: a body of a type that this path doesn't read.
    pub(crate) fn unsupported_media_type() -> Self {
        Self::new(
            415,
            "unsupported_media_type",
            "the body's type is not read here: send `Content-Type: application/json`",
        )
    }

    /// 503: certainly not in the store, now or later. Safe to send again.
    pub(crate) fn not_appended() -> Self {
        Self {
            retryable: true,
            retry_after_secs: Some(1),
            ..Self::new(
                503,
                "not_appended",
                "nothing was appended, the store is not taking appends: send it again",
            )
        }
    }

    /// 504: the append may be in the store, now or later. Not retryable blindly: the same events could be there twice.
    pub(crate) fn unknown_outcome() -> Self {
        Self::new(
            504,
            "unknown",
            "the append may or may not be in the store: read before sending it again",
        )
    }

    /// Writes `{"error":{…}}`; facts that are absent are left out, `retryable` is always there.
    pub(crate) fn put_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"error\":{\"code\":");
        put_string(out, self.code);
        out.extend_from_slice(b",\"message\":");
        put_string(out, &self.message);
        if let Some(position) = self.position {
            out.extend_from_slice(b",\"position\":");
            put_number(out, position);
        }
        out.extend_from_slice(if self.retryable {
            b",\"retryable\":true"
        } else {
            b",\"retryable\":false"
        });
        if let Some(limit) = self.limit {
            out.extend_from_slice(b",\"limit\":");
            put_number(out, limit);
        }
        if let Some(secs) = self.retry_after_secs {
            out.extend_from_slice(b",\"retry_after_secs\":");
            put_number(out, secs.into());
        }
        out.extend_from_slice(b"}}");
    }
}

#[cfg(test)]
mod tests;
