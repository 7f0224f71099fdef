//! What an event store is, in memory: dynamic consistency boundaries over a list.

use pumice_frame_proto::tephra::proto::{AppendCondition, Event, Query};

/// A store: the event at position n stands at index n - 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    events: Vec<Event>,
}

/// Why an append is refused, with the position of the event in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Empty,
    AfterBeyondTip,
    Conflict(u64),
    AlreadyExists(u64),
}

/// Whether an event is meant by a query.
pub(crate) fn is_match(query: &Query, event: &Event) -> bool {
    query.all
        || query.items.iter().any(|item| {
            (item.types.is_empty() || item.types.contains(&event.r#type))
                && item.tags.iter().all(|tag| event.tags.contains(tag))
        })
}

impl Model {
    pub(crate) fn tip(&self) -> u64 {
        self.events.len() as u64
    }

    /// Appends one after another, as a client that waits for each answer sees it.
    pub(crate) fn append(
        &mut self,
        events: &[Event],
        condition: Option<&AppendCondition>,
    ) -> Result<(u64, u64), Refusal> {
        if events.is_empty() {
            return Err(Refusal::Empty);
        }
        if let Some(condition) = condition {
            if condition.after > self.tip() {
                return Err(Refusal::AfterBeyondTip);
            }
            let found = |query: &Option<Query>, after| {
                let query = query.as_ref()?;
                Some(self.read(query, after, Some(1), false).first()?.0)
            };
            if let Some(position) = found(&condition.fail_if_events_match, condition.after) {
                return Err(Refusal::Conflict(position));
            }
            if let Some(position) = found(&condition.fail_if_exists, 0) {
                return Err(Refusal::AlreadyExists(position));
            }
        }
        let first = self.tip() + 1;
        self.events.extend(events.iter().cloned());
        Ok((first, self.tip()))
    }

    /// The events after `after` that match, or, in reverse, those before it, the latest first.
    pub(crate) fn read(
        &self,
        query: &Query,
        after: u64,
        limit: Option<u64>,
        reverse: bool,
    ) -> Vec<(u64, Event)> {
        let is_in_range = |position: u64| {
            if reverse {
                position < after
            } else {
                position > after
            }
        };
        let mut found: Vec<(u64, Event)> = (1..)
            .zip(&self.events)
            .filter(|&(position, event)| is_in_range(position) && is_match(query, event))
            .map(|(position, event)| (position, event.clone()))
            .collect();
        if reverse {
            found.reverse();
        }
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        found.truncate(limit.unwrap_or(usize::MAX));
        found
    }
}
