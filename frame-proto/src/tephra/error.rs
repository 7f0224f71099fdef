//! Why a request is refused before it reaches the store.

use std::fmt;

use ::tephra::{NameError, TagsError};
use thiserror::Error;

/// Why a frame's payload is no request that can be carried out.
///
/// Exhaustive on purpose: there are these two verdicts, and a server has to tell them apart.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The bytes are no `Request` message: answered BAD_REQUEST, and then the connection is closed.
    #[error("frame decode error: {fault}")]
    Malformed {
        /// The request's id if it stood in front of the fault, else 0.
        request_id: u64,
        /// What is wrong with the bytes.
        #[source]
        fault: WireFault,
    },
    /// A well-formed message that asks for something impossible: answered BAD_REQUEST with the
    /// request's id; the connection goes on.
    #[error("{reason}")]
    Invalid {
        /// The request's id.
        request_id: u64,
        /// Which field is wrong, and why.
        #[source]
        reason: Invalid,
    },
}

/// How bytes can fail to be a protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireFault {
    /// A field is longer than what is left of its message.
    #[error("a field runs past the end of its message")]
    Truncated,
    /// A varint of more than 64 bits.
    #[error("a varint is longer than 64 bits")]
    Varint,
    /// A field number of 0 or above 2^29 - 1.
    #[error("a field number is out of range")]
    FieldNumber,
    /// A wire type that doesn't exist, or not the one that the field has.
    #[error("a field has the wrong wire type")]
    WireType,
    /// A group that ends without having begun, or under another number.
    #[error("a group ends that is not open")]
    Group,
    /// Groups nested more than 100 deep.
    #[error("groups are nested too deeply")]
    Nesting,
    /// A string that isn't UTF-8.
    #[error("a string is not valid UTF-8")]
    Utf8,
}

/// A field of a request and what is wrong with it.
///
/// Shown as `events[3].tags[1]: tag must not be empty`.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("{place}{part}: {reason}")]
pub struct Invalid {
    pub(super) place: Place,
    pub(super) part: Part,
    pub(super) reason: Reason,
}

impl Invalid {
    /// What is wrong with the field.
    #[must_use]
    pub fn reason(&self) -> &Reason {
        &self.reason
    }
}

/// What can be wrong with a field.
#[derive(Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// An event type or tag is empty or too long.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A tag is listed twice.
    #[error(transparent)]
    Tags(#[from] TagsError),
    /// An event has more tags than the engine can store.
    #[error("event has more than {max} tags")]
    TooManyTags {
        /// The most it can store.
        max: usize,
    },
    /// An event is too large for the engine's encoding.
    #[error("event of {size} bytes exceeds the maximum of {max}")]
    EventTooLarge {
        /// Its size without the payload, in bytes.
        size: u64,
        /// The largest size, in bytes.
        max: u64,
    },
    /// An append has more than [`APPEND_EVENTS_MAX`](super::APPEND_EVENTS_MAX) events.
    #[error("more than {max} events")]
    TooManyEvents {
        /// The limit.
        max: usize,
    },
    /// A query has more than [`QUERY_TERMS_MAX`](super::QUERY_TERMS_MAX) items, types and tags.
    #[error("more than {max} items, types and tags")]
    TooManyTerms {
        /// The limit.
        max: usize,
    },
}

/// The part of a request that a fault lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Events,
    Event { index: usize },
    Query,
    FailIfEventsMatch,
    FailIfExists,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events => f.write_str("events"),
            Self::Event { index } => write!(f, "events[{index}]"),
            Self::Query => f.write_str("query"),
            Self::FailIfEventsMatch => f.write_str("condition.fail_if_events_match"),
            Self::FailIfExists => f.write_str("condition.fail_if_exists"),
        }
    }
}

/// The field within a [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Type,
    Tag { index: usize },
    Tags,
    ItemType { item: usize, index: usize },
    ItemTag { item: usize, index: usize },
    ItemTags { item: usize },
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Type => f.write_str(".type"),
            Self::Tag { index } => write!(f, ".tags[{index}]"),
            Self::Tags => f.write_str(".tags"),
            Self::ItemType { item, index } => write!(f, ".items[{item}].types[{index}]"),
            Self::ItemTag { item, index } => write!(f, ".items[{item}].tags[{index}]"),
            Self::ItemTags { item } => write!(f, ".items[{item}].tags"),
        }
    }
}
