//! The clients' values, made and taken apart in few words.

use std::fmt::Debug;

use tephra_client::{
    AppendCondition, ClientError, ErrorCode, Event, EventType, Position, Query, QueryItem,
    SequencedEvent, Tag, Tags,
};

/// An event.
///
/// # Panics
/// If the type or a tag is none.
#[must_use]
pub fn event(event_type: &str, tags: &[&str], payload: &[u8]) -> Event {
    Event::new(event_type, tags.iter().copied(), payload).expect("an event")
}

/// The query for events that bear all these tags.
///
/// # Panics
/// If one is no tag.
#[must_use]
pub fn by_tags(tags: &[&str]) -> Query {
    let tags = Tags::new(tags.iter().map(|tag| Tag::new(*tag).expect("a tag")));
    Query::item(QueryItem::with_tags(tags.expect("no two alike")))
}

/// The query for events of one of these types.
///
/// # Panics
/// If one is no type.
#[must_use]
pub fn by_types(types: &[&str]) -> Query {
    let types = types.iter().map(|it| EventType::new(*it).expect("a type"));
    Query::item(QueryItem::of_types(types.collect()))
}

/// The condition that no event later than `after` bears all these tags.
#[must_use]
pub fn unless(tags: &[&str], after: u64) -> AppendCondition {
    AppendCondition::new(by_tags(tags)).after(Position::new(after))
}

/// An event as it came back: position, type, tags, payload.
#[must_use]
pub fn plain(sequenced: &SequencedEvent) -> (u64, &str, Vec<&str>, &[u8]) {
    let event = sequenced.event();
    (
        sequenced.position().get(),
        event.event_type(),
        event.tags().collect(),
        event.payload(),
    )
}

/// The positions of events.
#[must_use]
pub fn position_of(events: &[SequencedEvent]) -> Vec<u64> {
    events.iter().map(|event| event.position().get()).collect()
}

/// What the server refused a request with: code, the position in the way, whether to try again.
///
/// # Panics
/// If it didn't, or the connection broke instead.
pub fn refusal<T: Debug>(outcome: Result<T, ClientError>) -> (ErrorCode, Option<u64>, bool) {
    match outcome {
        Err(ClientError::Server {
            code,
            retryable,
            conflict_position,
            ..
        }) => (code, conflict_position.map(Position::get), retryable),
        other => panic!("no refusal: {other:?}"),
    }
}
