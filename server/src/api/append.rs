//! Appends as JSON: events with their payloads, and the condition that guards them.
//!
//! A payload is copied once, from the body into the event as the engine stores it; only a string with escapes and
//! base64 are decoded on the way. Names cost an allocation each, which the engine's constructors ask for.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tephra::event::EncodeError;
use tephra::{AppendCondition, Event, EventType, Position, Query, Tags};

use super::error::ApiError;
use super::json::{self, Context, Elements, Fields, List, Object, Optional, OptionalNumber, Text};
use super::query::{QUERY_NAMES_MAX, QueryFields, TAGS_MAX, TagList};

/// Reads the body of `POST /v1/append`:
/// `{"events":[{"type","tags","data"}],"condition":{"failIfEventsMatch":Q,"after":7,"failIfExists":Q}}`.
///
/// A `data` that is a string is stored as its UTF-8 bytes, any other JSON value (`null` too) as the exact text that
/// was sent; `data_base64` holds any bytes, in the standard alphabet with padding. Neither of them is an empty
/// payload. `condition` and each of its fields may be absent or `null`, but a condition has at least one of the two
/// queries; `after` is 0 when absent, and bounds `failIfEventsMatch` only. Positions are read to their last bit: from
/// JavaScript, write those over 2^53 as digits into the text, since `JSON.stringify` rounds them.
///
/// # Errors
/// 400 with the path of the field that is wrong, 400 `empty` without events, 413 for an event that tephra can't hold.
pub(crate) fn parse_append(body: &[u8]) -> Result<(Vec<Event>, Option<AppendCondition>), ApiError> {
    parse(body, Dialect::Pumice)
}

/// Reads the body of `POST /append`, the DCB community's contract: `events` may also be one event without an array,
/// and a condition is `{"failIfEventsMatch":Q,"after":7}`. Else as [`parse_append`].
///
/// # Errors
/// As [`parse_append`].
pub(crate) fn parse_dcb_append(
    body: &[u8],
) -> Result<(Vec<Event>, Option<AppendCondition>), ApiError> {
    parse(body, Dialect::Dcb)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Pumice,
    Dcb,
}

fn parse(body: &[u8], dialect: Dialect) -> Result<(Vec<Event>, Option<AppendCondition>), ApiError> {
    let ctx = Context::new("", QUERY_NAMES_MAX);
    let fields = AppendFields {
        dialect,
        events: None,
        condition: None,
    };
    json::read(body, &ctx, Object(&ctx, fields))
}

struct AppendFields {
    dialect: Dialect,
    events: Option<Vec<Event>>,
    condition: Option<AppendCondition>,
}

impl<'de> Fields<'de> for AppendFields {
    type Value = (Vec<Event>, Option<AppendCondition>);

    const EXPECTED: &'static str = "an object like {\"events\":[…],\"condition\":{…}}";

    fn known(&self) -> &'static [&'static str] {
        &["events", "condition"]
    }

    fn field<A: MapAccess<'de>>(
        &mut self,
        field: usize,
        map: &mut A,
        ctx: &Context,
    ) -> Result<(), A::Error> {
        let dialect = self.dialect;
        if field == 0 {
            self.events = Some(match dialect {
                Dialect::Pumice => map.next_value_seed(List(ctx, Events::default()))?.0,
                Dialect::Dcb => map.next_value_seed(OneOrMany(ctx))?,
            });
        } else {
            let fields = ConditionFields {
                dialect,
                fail_if_events_match: None,
                after: None,
                fail_if_exists: None,
            };
            self.condition = map.next_value_seed(Optional(Object(ctx, fields)))?;
        }
        Ok(())
    }

    fn finish<E: de::Error>(self, ctx: &Context) -> Result<Self::Value, E> {
        match self.events {
            Some(events) if !events.is_empty() => Ok((events, self.condition)),
            Some(_) => Err(ctx.fail_with(ApiError::empty())),
            None => Err(ctx.fail_at("events", "missing, write an array of events")),
        }
    }
}

#[derive(Default)]
struct Events(Vec<Event>);

impl<'de> Elements<'de> for Events {
    const EXPECTED: &'static str = "an array of events";

    fn element<A: SeqAccess<'de>>(&mut self, seq: &mut A, ctx: &Context) -> Result<bool, A::Error> {
        let event = seq.next_element_seed(Object(ctx, EventFields::default()))?;
        let is_one = event.is_some();
        self.0.extend(event);
        Ok(is_one)
    }
}

/// Reads an array of events, or one event.
struct OneOrMany<'c>(&'c Context);

impl<'de> DeserializeSeed<'de> for OneOrMany<'_> {
    type Value = Vec<Event>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Event>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OneOrMany<'_> {
    type Value = Vec<Event>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event or an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vec<Event>, A::Error> {
        List(self.0, Events::default())
            .visit_seq(seq)
            .map(|events| events.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<Event>, A::Error> {
        Object(self.0, EventFields::default())
            .visit_map(map)
            .map(|event| vec![event])
    }
}

/// An event as far as it has been read; its fields come in any order.
#[derive(Default)]
struct EventFields<'de> {
    event_type: Option<EventType>,
    tags: Tags,
    data: Option<&'de str>,
    data_base64: Option<Vec<u8>>,
}

impl<'de> Fields<'de> for EventFields<'de> {
    type Value = Event;

    const EXPECTED: &'static str = "an event like {\"type\":\"T\",\"tags\":[…],\"data\":…}";

    fn known(&self) -> &'static [&'static str] {
        &["type", "tags", "data", "data_base64"]
    }

    fn field<A: MapAccess<'de>>(
        &mut self,
        field: usize,
        map: &mut A,
        ctx: &Context,
    ) -> Result<(), A::Error> {
        match field {
            0 => {
                self.event_type =
                    Some(map.next_value_seed(Text(ctx, |text: &str| EventType::new(text)))?)
            }
            1 => {
                let tags = map.next_value_seed(List(ctx, TagList::of_event()))?;
                self.tags = tags.finish_in(ctx)?;
            }
            // Not as an `Option`: `null` is a value like any other here.
            2 => self.data = Some(map.next_value::<&RawValue>()?.get()),
            _ => self.data_base64 = Some(map.next_value_seed(Text(ctx, decode_base64))?),
        }
        Ok(())
    }

    fn finish<E: de::Error>(self, ctx: &Context) -> Result<Event, E> {
        let Some(event_type) = self.event_type else {
            return Err(ctx.fail_at("type", "missing, write the event's type as a string"));
        };
        let event = |payload: &[u8]| Event::new(&event_type, &self.tags, payload);
        let event = match (self.data, &self.data_base64) {
            (Some(_), Some(_)) => {
                return Err(ctx.fail("write either `data` or `data_base64`, not both"));
            }
            (None, None) => event(b""),
            (None, Some(bytes)) => event(bytes),
            (Some(text), None) => match plain_string(text) {
                Some(plain) => event(plain),
                None => {
                    let text: String = serde_json::from_str(text).map_err(|_| {
                        ctx.fail_at(
                            "data",
                            "an escape in the string is half of a surrogate pair",
                        )
                    })?;
                    event(text.as_bytes())
                }
            },
        };
        event.map_err(|error| match error {
            EncodeError::TooManyTags { .. } => {
                ctx.fail_at("tags", format_args!("an event has at most {TAGS_MAX} tags"))
            }
            EncodeError::TooLarge { max, .. } => ctx.fail_with(ApiError::payload_too_large(max)),
        })
    }
}

/// The payload that needs no decoding: a string without escapes, or a JSON value that is no string.
fn plain_string(raw: &str) -> Option<&[u8]> {
    let Some(text) = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) else {
        return Some(raw.as_bytes());
    };
    memchr::memchr(b'\\', text.as_bytes())
        .is_none()
        .then_some(text.as_bytes())
}

fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    STANDARD
        .decode(text)
        .map_err(|error| format!("not base64 in the standard alphabet with padding ({error})"))
}

struct ConditionFields {
    dialect: Dialect,
    fail_if_events_match: Option<Query>,
    after: Option<u64>,
    fail_if_exists: Option<Query>,
}

impl<'de> Fields<'de> for ConditionFields {
    type Value = AppendCondition;

    const EXPECTED: &'static str = "a condition like {\"failIfEventsMatch\":{…},\"after\":7}";

    fn known(&self) -> &'static [&'static str] {
        match self.dialect {
            Dialect::Pumice => &["failIfEventsMatch", "after", "failIfExists"],
            Dialect::Dcb => &["failIfEventsMatch", "after"],
        }
    }

    fn field<A: MapAccess<'de>>(
        &mut self,
        field: usize,
        map: &mut A,
        ctx: &Context,
    ) -> Result<(), A::Error> {
        let query = || Optional(Object(ctx, QueryFields::default()));
        match field {
            0 => self.fail_if_events_match = map.next_value_seed(query())?,
            1 => self.after = map.next_value_seed(OptionalNumber)?,
            _ => self.fail_if_exists = map.next_value_seed(query())?,
        }
        Ok(())
    }

    fn finish<E: de::Error>(self, ctx: &Context) -> Result<AppendCondition, E> {
        let condition = match (self.fail_if_events_match, self.fail_if_exists) {
            (Some(query), None) => AppendCondition::new(query),
            (Some(query), Some(exists)) => AppendCondition::new(query).fail_if_exists(exists),
            (None, Some(exists)) => AppendCondition::exists_only(exists),
            (None, None) => {
                let known = match self.dialect {
                    Dialect::Pumice => "`failIfEventsMatch` or `failIfExists`",
                    Dialect::Dcb => "`failIfEventsMatch`",
                };
                return Err(ctx.fail(format_args!(
                    "a condition without a query: write {known}, or no condition"
                )));
            }
        };
        Ok(condition.after(Position::new(self.after.unwrap_or(0))))
    }
}

#[cfg(test)]
mod tests;
