//! The append of a request: events in the engine's own encoding, and a condition.

use ::tephra::event::EncodeError;
use ::tephra::{AppendCondition, Event, EventType, Position, Tag, Tags};

use super::error::{Invalid, Part, Place, Reason, WireFault};
use super::query::QueryBuilder;
use super::wire::Reader;

/// The most events that one append may have.
///
/// Chosen: a frame of 16 MiB reaches it with events of 16 bytes, less than any useful one has, and
/// without it such a frame of 5-byte events would grow to 200 MB in memory.
pub const APPEND_EVENTS_MAX: usize = 1 << 20;

/// The most tags that the engine's encoding of an event has room for.
const EVENT_TAGS_MAX: usize = u16::MAX as usize;

/// An append so far.
#[derive(Default)]
pub(super) struct AppendBuilder<'a> {
    events: Vec<Event>,
    /// The first event that is none. From then on events are only checked for their encoding.
    invalid: Option<Box<Invalid>>,
    condition: Option<ConditionBuilder>,
    /// The tags of the event at hand; kept to be used again.
    tags: Vec<&'a str>,
}

impl<'a> AppendBuilder<'a> {
    pub(super) fn merge(&mut self, mut message: Reader<'a>) -> Result<(), WireFault> {
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

    /// The events and the condition, unless one of them is invalid: events come first.
    pub(super) fn finish(self) -> Result<(Vec<Event>, Option<AppendCondition>), Invalid> {
        if let Some(invalid) = self.invalid {
            return Err(*invalid);
        }
        let condition = self.condition.map(ConditionBuilder::finish).transpose()?;
        Ok((self.events, condition))
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

#[cfg(test)]
mod tests {
    use super::*;

    // On the builder's helper, since a million events take seconds to build.
    #[test]
    fn an_append_has_at_most_so_many_events() {
        assert!(event(APPEND_EVENTS_MAX - 1, "T", &[], b"").is_ok());
        let invalid = event(APPEND_EVENTS_MAX, "T", &[], b"").expect_err("one too many");
        assert_eq!(invalid.to_string(), "events: more than 1048576 events");
    }
}
