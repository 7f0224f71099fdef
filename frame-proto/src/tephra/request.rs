//! Requests: from a frame's payload straight to the engine's types.
//!
//! The rules are protobuf's. Of a singular field that comes twice the last value holds, and messages
//! are merged; of the kinds of a request the last holds, merged only with what came directly before it
//! of the same kind. So nothing can be refused for its content before the last byte is seen:
//! what is invalid is remembered where it stands, and counts only if it is still there at the end.

use ::tephra::event::EncodeError;
use ::tephra::{AppendCondition, Event, EventType, Position, Query, QueryItem, Tag, Tags};

use super::error::{Invalid, Part, Place, Reason, RequestError, WireFault};
use super::wire::{Key, Reader};

/// The most events that one append may have.
///
/// Chosen: a frame of 16 MiB reaches it with events of 16 bytes, less than any useful one has, and
/// without it such a frame of 5-byte events would grow to 200 MB in memory.
pub const APPEND_EVENTS_MAX: usize = 1 << 20;

/// The most items, types and tags, counted together, that one query may have.
///
/// Chosen: far more than any query that answers in useful time, and an empty item, two bytes on the
/// wire, takes about a hundred in memory: a decoded query stays smaller than a frame of 16 MiB.
pub const QUERY_TERMS_MAX: usize = 1 << 16;

/// The most tags that the engine's encoding of an event has room for.
const EVENT_TAGS_MAX: usize = u16::MAX as usize;

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
/// payload's length, and so is the memory: see [`APPEND_EVENTS_MAX`] and [`QUERY_TERMS_MAX`].
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
            Self::Append(append) => append.finish()?,
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

#[derive(Default)]
struct AppendBuilder<'a> {
    events: Vec<Event>,
    /// The first event that is none. From then on events are only checked for their encoding.
    invalid: Option<Box<Invalid>>,
    condition: Option<ConditionBuilder>,
    /// The tags of the event at hand; kept to be used again.
    tags: Vec<&'a str>,
}

impl<'a> AppendBuilder<'a> {
    fn merge(&mut self, mut message: Reader<'a>) -> Result<(), WireFault> {
        while let Some(key) = message.next_key()? {
            match key.number {
                1 => self.push(message.message(key)?)?,
                2 => {
                    let condition = self.condition.get_or_insert_default();
                    condition.merge(message.message(key)?)?;
                }
                _ => message.skip(key)?,
            }
        }
        Ok(())
    }

    fn push(&mut self, mut message: Reader<'a>) -> Result<(), WireFault> {
        let mut event_type = "";
        let mut payload: &[u8] = &[];
        self.tags.clear();
        while let Some(key) = message.next_key()? {
            match key.number {
                1 => event_type = message.string(key)?,
                2 => {
                    let tag = message.string(key)?;
                    // One more than can be stored is enough to know that they can't be.
                    if self.tags.len() <= EVENT_TAGS_MAX {
                        self.tags.push(tag);
                    }
                }
                3 => payload = message.bytes(key)?,
                _ => message.skip(key)?,
            }
        }
        if self.invalid.is_none() {
            match event(self.events.len(), event_type, &self.tags, payload) {
                Ok(event) => self.events.push(event),
                Err(invalid) => {
                    // They won't be needed: a refused frame shall not hold twice its memory.
                    self.events = Vec::new();
                    self.invalid = Some(Box::new(invalid));
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Incoming, Invalid> {
        if let Some(invalid) = self.invalid {
            return Err(*invalid);
        }
        Ok(Incoming::Append {
            events: self.events,
            condition: self.condition.map(ConditionBuilder::finish).transpose()?,
        })
    }
}

/// Builds the engine's event, or says what the engine has against it.
fn event(index: usize, event_type: &str, tags: &[&str], payload: &[u8]) -> Result<Event, Invalid> {
    if index == APPEND_EVENTS_MAX {
        return Err(Invalid {
            place: Place::Events,
            part: Part::Whole,
            reason: Reason::TooManyEvents {
                max: APPEND_EVENTS_MAX,
            },
        });
    }
    let invalid = |part, reason| Invalid {
        place: Place::Event { index },
        part,
        reason,
    };
    let event_type =
        EventType::new(event_type).map_err(|error| invalid(Part::Type, error.into()))?;
    if tags.len() > EVENT_TAGS_MAX {
        let max = EVENT_TAGS_MAX;
        return Err(invalid(Part::Tags, Reason::TooManyTags { max }));
    }
    let mut wrong = None;
    let tags = Tags::new(tags.iter().enumerate().map_while(|(index, &tag)| {
        Tag::new(tag)
            .map_err(|error| wrong = Some((index, error)))
            .ok()
    }));
    if let Some((index, error)) = wrong {
        return Err(invalid(Part::Tag { index }, error.into()));
    }
    let tags = tags.map_err(|error| invalid(Part::Tags, error.into()))?;
    Event::new(&event_type, &tags, payload).map_err(|error| {
        let reason = match error {
            EncodeError::TooManyTags { max, .. } => Reason::TooManyTags { max },
            EncodeError::TooLarge { size, max } => Reason::EventTooLarge { size, max },
        };
        invalid(Part::Whole, reason)
    })
}

#[derive(Default)]
struct ConditionBuilder {
    fail_if_events_match: QueryBuilder,
    after: u64,
    fail_if_exists: Option<QueryBuilder>,
}

impl ConditionBuilder {
    fn merge(&mut self, mut message: Reader<'_>) -> Result<(), WireFault> {
        while let Some(key) = message.next_key()? {
            match key.number {
                1 => self.fail_if_events_match.merge(message.message(key)?)?,
                2 => self.after = message.uint(key)?,
                3 => {
                    let query = self.fail_if_exists.get_or_insert_default();
                    query.merge(message.message(key)?)?;
                }
                _ => message.skip(key)?,
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<AppendCondition, Invalid> {
        let fail_if_events_match = self.fail_if_events_match.finish(Place::FailIfEventsMatch)?;
        let fail_if_exists = self
            .fail_if_exists
            .map(|query| query.finish(Place::FailIfExists))
            .transpose()?;
        Ok(AppendCondition {
            fail_if_events_match,
            after: Position::new(self.after),
            fail_if_exists,
        })
    }
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

#[derive(Default)]
struct QueryBuilder {
    all: bool,
    items: Vec<QueryItem>,
    /// Items, types and tags so far.
    terms: usize,
    /// The first thing wrong with an item; it counts only if `all` is false at the end.
    invalid: Option<Box<(Part, Reason)>>,
}

impl QueryBuilder {
    fn merge(&mut self, mut message: Reader<'_>) -> Result<(), WireFault> {
        while let Some(key) = message.next_key()? {
            match key.number {
                1 => self.all = message.uint(key)? != 0,
                2 => self.push(message.message(key)?)?,
                _ => message.skip(key)?,
            }
        }
        Ok(())
    }

    fn push(&mut self, mut message: Reader<'_>) -> Result<(), WireFault> {
        self.count_term();
        let item = self.items.len();
        let mut types = Vec::new();
        let mut tags = Vec::new();
        // Types are checked before tags, in whatever order they come.
        let mut wrong_tag = None;
        while let Some(key) = message.next_key()? {
            match key.number {
                1 => {
                    let name = message.string(key)?;
                    if self.count_term() {
                        match EventType::new(name) {
                            Ok(event_type) => types.push(event_type),
                            Err(error) => {
                                let index = types.len();
                                self.refuse(Part::ItemType { item, index }, error.into());
                            }
                        }
                    }
                }
                2 => {
                    let name = message.string(key)?;
                    if self.count_term() && wrong_tag.is_none() {
                        match Tag::new(name) {
                            Ok(tag) => tags.push(tag),
                            Err(error) => wrong_tag = Some((tags.len(), error)),
                        }
                    }
                }
                _ => message.skip(key)?,
            }
        }
        if let Some((index, error)) = wrong_tag {
            self.refuse(Part::ItemTag { item, index }, error.into());
        }
        if self.invalid.is_none() {
            match Tags::new(tags) {
                Ok(tags) => self.items.push(QueryItem::new(types, tags)),
                Err(error) => self.refuse(Part::ItemTags { item }, error.into()),
            }
        }
        Ok(())
    }

    /// Says whether one more type or tag is to be kept.
    fn count_term(&mut self) -> bool {
        self.terms = self.terms.saturating_add(1);
        if self.terms > QUERY_TERMS_MAX {
            let max = QUERY_TERMS_MAX;
            self.refuse(Part::Whole, Reason::TooManyTerms { max });
        }
        self.invalid.is_none()
    }

    fn refuse(&mut self, part: Part, reason: Reason) {
        if self.invalid.is_none() {
            self.items = Vec::new();
            self.invalid = Some(Box::new((part, reason)));
        }
    }

    fn finish(self, place: Place) -> Result<Query, Invalid> {
        if self.all {
            return Ok(Query::All);
        }
        let Some(invalid) = self.invalid else {
            return Ok(Query::Items(self.items));
        };
        let (part, reason) = *invalid;
        Err(Invalid {
            place,
            part,
            reason,
        })
    }
}
