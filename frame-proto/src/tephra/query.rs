//! The query of a read, a subscription or a condition.

use ::tephra::{EventType, Query, QueryItem, Tag, Tags};

use super::error::{Invalid, Part, Place, Reason, WireFault};
use super::wire::Reader;

/// The most items, types and tags, counted together, that one query may have.
///
/// Chosen: far more than any query that answers in useful time, and an empty item, two bytes on the
/// wire, takes about a hundred in memory: a decoded query stays smaller than a frame of 16 MiB.
pub const QUERY_TERMS_MAX: usize = 1 << 16;

/// A query so far.
#[derive(Default)]
pub(super) struct QueryBuilder {
    all: bool,
    items: Vec<QueryItem>,
    /// Items, types and tags so far.
    terms: usize,
    /// The first thing wrong with an item; it counts only if `all` is false at the end.
    invalid: Option<Box<(Part, Reason)>>,
}

impl QueryBuilder {
    pub(super) fn merge(&mut self, mut message: Reader<'_>) -> Result<(), WireFault> {
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

    pub(super) fn finish(self, place: Place) -> Result<Query, Invalid> {
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
