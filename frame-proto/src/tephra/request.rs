//! Requests: from a frame's payload straight to the engine's types.
//!
//! The rules are protobuf's. Of a singular field that comes twice the last value holds, and messages
//! are merged; of the kinds of a request the last holds, merged only with what came directly before it
//! of the same kind. So nothing can be refused for its content before the last byte is seen:
//! what is invalid is remembered where it stands, and counts only if it is still there at the end.

use ::tephra::{AppendCondition, Event, Position, Query};

use super::append::AppendBuilder;
use super::error::{Invalid, Place, RequestError, WireFault};
use super::query::QueryBuilder;
use super::wire::{Key, Reader};

/// A request as it came.
#[derive(Debug)]
pub struct Received {
    /// Chosen by the client; all answers bear it.
    pub request_id: u64,
    /// What is asked for.
    pub kind: Incoming,
}

/// What a request asks for.
///
/// Exhaustive on purpose: a new kind in the protocol is to be answered, not overlooked.
#[derive(Debug)]
pub enum Incoming {
    /// Store events.
    Append {
        /// The events, ready for the engine. May be empty: the engine refuses that.
        events: Vec<Event>,
        /// What must not be true.
        condition: Option<AppendCondition>,
    },
    /// Read events.
    Read {
        /// Which.
        query: Query,
        /// Forwards the exclusive lower bound, backwards the exclusive upper one.
        after: Position,
        /// The most events to send; `None` is no limit, 0 none.
        limit: Option<u64>,
        /// Newest first.
        reverse: bool,
    },
    /// Follow events.
    Subscribe {
        /// Which.
        query: Query,
        /// Only later ones.
        after: Position,
    },
    /// End a read or subscription.
    Cancel {
        /// Its request id.
        target: u64,
    },
    /// Show the server's state.
    Stats,
    /// Open the connection.
    Hello {
        /// The version that the client speaks.
        protocol_version: u32,
        /// Its bearer token.
        auth_token: Option<String>,
    },
    /// No kind, or none that this version knows: answered BAD_REQUEST.
    Unknown,
}

/// Decodes the payload of a frame.
///
/// Payloads of events are copied once, into the engine's event. The work is linear in the
/// payload's length, and so is the memory: see [`APPEND_EVENTS_MAX`](super::APPEND_EVENTS_MAX) and
/// [`QUERY_TERMS_MAX`](super::QUERY_TERMS_MAX).
///
/// # Errors
/// [`RequestError::Malformed`] if the bytes are no `Request`, [`RequestError::Invalid`] if what it asks
/// for breaks the store's rules.
pub fn decode_request(payload: &[u8]) -> Result<Received, RequestError> {
    let mut request = Builder::default();
    if let Err(fault) = request.merge(Reader::new(payload)) {
        return Err(RequestError::Malformed {
            request_id: request.request_id,
            fault,
        });
    }
    let request_id = request.request_id;
    match request.kind.finish() {
        Ok(kind) => Ok(Received { request_id, kind }),
        Err(reason) => Err(RequestError::Invalid { request_id, reason }),
    }
}

#[derive(Default)]
struct Builder<'a> {
    request_id: u64,
    kind: Kind<'a>,
}

impl<'a> Builder<'a> {
    fn merge(&mut self, mut reader: Reader<'a>) -> Result<(), WireFault> {
        while let Some(key) = reader.next_key()? {
            match key.number {
                1 => self.request_id = reader.uint(key)?,
                2..=7 => self.kind.merge(key, reader.message(key)?)?,
                _ => reader.skip(key)?,
            }
        }
        Ok(())
    }
}

#[derive(Default)]
enum Kind<'a> {
    #[default]
    Unknown,
    Append(AppendBuilder<'a>),
    Read(ReadBuilder),
    Subscribe(ReadBuilder),
    Cancel {
        target: u64,
    },
    Stats,
    Hello {
        protocol_version: u32,
        auth_token: Option<&'a str>,
    },
}

impl<'a> Kind<'a> {
    fn merge(&mut self, key: Key, message: Reader<'a>) -> Result<(), WireFault> {
        match (key.number, &mut *self) {
            (2, Self::Append(append)) => append.merge(message),
            (2, other) => {
                let mut append = AppendBuilder::default();
                append.merge(message)?;
                *other = Self::Append(append);
                Ok(())
            }
            (3, Self::Read(read)) => read.merge_read(message),
            (3, other) => {
                let mut read = ReadBuilder::default();
                read.merge_read(message)?;
                *other = Self::Read(read);
                Ok(())
            }
            (4, Self::Subscribe(subscribe)) => subscribe.merge_subscribe(message),
            (4, other) => {
                let mut subscribe = ReadBuilder::default();
                subscribe.merge_subscribe(message)?;
                *other = Self::Subscribe(subscribe);
                Ok(())
            }
            (5, other) => other.merge_cancel(message),
            (6, other) => {
                *other = Self::Stats;
                skip_all(message)
            }
            (_, other) => other.merge_hello(message),
        }
    }

    fn merge_cancel(&mut self, mut message: Reader<'a>) -> Result<(), WireFault> {
        let mut cancelled = match self {
            Self::Cancel { target } => *target,
            _ => 0,
        };
        while let Some(key) = message.next_key()? {
            match key.number {
                1 => cancelled = message.uint(key)?,
                _ => message.skip(key)?,
            }
        }
        *self = Self::Cancel { target: cancelled };
        Ok(())
    }

    fn merge_hello(&mut self, mut message: Reader<'a>) -> Result<(), WireFault> {
        let (mut version, mut token) = match self {
            Self::Hello {
                protocol_version,
                auth_token,
            } => (*protocol_version, *auth_token),
            _ => (0, None),
        };
        while let Some(key) = message.next_key()? {
            match key.number {
                // A uint32 keeps the lower half of a longer varint: that is protobuf's rule.
                1 => version = message.uint(key)? as u32,
                2 => token = Some(message.string(key)?),
                _ => message.skip(key)?,
            }
        }
        *self = Self::Hello {
            protocol_version: version,
            auth_token: token,
        };
        Ok(())
    }

    fn finish(self) -> Result<Incoming, Invalid> {
        Ok(match self {
            Self::Unknown => Incoming::Unknown,
            Self::Append(append) => {
                let (events, condition) = append.finish()?;
                Incoming::Append { events, condition }
            }
            Self::Read(read) => Incoming::Read {
                query: read.query.finish(Place::Query)?,
                after: Position::new(read.after),
                limit: read.limit,
                reverse: read.reverse,
            },
            Self::Subscribe(subscribe) => Incoming::Subscribe {
                query: subscribe.query.finish(Place::Query)?,
                after: Position::new(subscribe.after),
            },
            Self::Cancel { target } => Incoming::Cancel { target },
            Self::Stats => Incoming::Stats,
            Self::Hello {
                protocol_version,
                auth_token,
            } => Incoming::Hello {
                protocol_version,
                auth_token: auth_token.map(str::to_owned),
            },
        })
    }
}

fn skip_all(mut message: Reader<'_>) -> Result<(), WireFault> {
    while let Some(key) = message.next_key()? {
        message.skip(key)?;
    }
    Ok(())
}

/// A read; a subscription is one without `limit` and `reverse`.
#[derive(Default)]
struct ReadBuilder {
    query: QueryBuilder,
    after: u64,
    limit: Option<u64>,
    reverse: bool,
}

impl ReadBuilder {
    fn merge_read(&mut self, mut message: Reader<'_>) -> Result<(), WireFault> {
        while let Some(key) = message.next_key()? {
            match key.number {
                1 => self.query.merge(message.message(key)?)?,
                2 => self.after = message.uint(key)?,
                3 => self.limit = Some(message.uint(key)?),
                4 => self.reverse = message.uint(key)? != 0,
                _ => message.skip(key)?,
            }
        }
        Ok(())
    }

    fn merge_subscribe(&mut self, mut message: Reader<'_>) -> Result<(), WireFault> {
        while let Some(key) = message.next_key()? {
            match key.number {
                1 => self.query.merge(message.message(key)?)?,
                2 => self.after = message.uint(key)?,
                _ => message.skip(key)?,
            }
        }
        Ok(())
    }
}
