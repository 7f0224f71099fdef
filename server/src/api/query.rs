//! The query language of the HTTP API: `{"items":[{"types":["A"],"tags":["a:1"]}]}` or `{"all":true}`.

use serde::de::{self, MapAccess, SeqAccess};
use tephra::{EventType, Query, QueryItem, Tag, Tags};

use super::error::ApiError;
use super::json::{self, Context, Elements, Fields, List, Object, Text};

/// Items that a query may have. An item takes a hundred bytes and may be written in three, so a body of allowed size
/// could ask for thirty times its memory; no decision has ten thousand alternatives.
pub(crate) const QUERY_ITEMS_MAX: usize = 10_000;

/// Types and tags that the queries of one request may have, for the same reason; as many as an event may have tags.
pub(crate) const QUERY_NAMES_MAX: usize = u16::MAX as usize;

/// Tags that an event may have: the engine counts them in 16 bits.
pub(super) const TAGS_MAX: usize = u16::MAX as usize;

/// Lists of up to this many tags are searched for twins pair by pair; longer ones by a set.
const PAIRWISE_MAX: usize = 16;

/// Reads a query: items are alternatives, as are the types in an item; of an item's tags, an event must have all.
///
/// No items match nothing; an item without types and tags matches every event.
///
/// # Errors
/// 400 with the path of the field that is wrong.
#[cfg(test)]
pub(crate) fn parse_query(text: &[u8]) -> Result<Query, ApiError> {
    parse_query_of(text, "")
}

/// Reads the query in parameter `root`, whose name starts the paths in errors.
pub(super) fn parse_query_of(text: &[u8], root: &'static str) -> Result<Query, ApiError> {
    let ctx = Context::new(root, QUERY_NAMES_MAX);
    json::read(text, &ctx, Object(&ctx, QueryFields::default()))
}

#[derive(Default)]
pub(super) struct QueryFields {
    all: Option<bool>,
    items: Option<Vec<QueryItem>>,
}

impl<'de> Fields<'de> for QueryFields {
    type Value = Query;

    const EXPECTED: &'static str =
        "a query like {\"items\":[{\"types\":[…],\"tags\":[…]}]} or {\"all\":true}";

    fn known(&self) -> &'static [&'static str] {
        &["items", "all"]
    }

    fn field<A: MapAccess<'de>>(
        &mut self,
        field: usize,
        map: &mut A,
        ctx: &Context,
    ) -> Result<(), A::Error> {
        if field == 0 {
            self.items = Some(map.next_value_seed(List(ctx, Items(Vec::new())))?.0);
        } else {
            self.all = Some(map.next_value()?);
        }
        Ok(())
    }

    fn finish<E: de::Error>(self, ctx: &Context) -> Result<Query, E> {
        match (self.items, self.all) {
            (Some(items), None) => Ok(Query::Items(items)),
            (None, Some(true)) => Ok(Query::All),
            (None, Some(false)) => Err(ctx.fail_at("all", "write true, or `items` instead")),
            (Some(_), Some(_)) => Err(ctx.fail("write either `items` or `all`, not both")),
            (None, None) => Err(ctx.fail(
                "an empty query: write {\"all\":true} for all events or {\"items\":[…]} for some",
            )),
        }
    }
}

struct Items(Vec<QueryItem>);

impl<'de> Elements<'de> for Items {
    const EXPECTED: &'static str = "an array of query items";

    fn element<A: SeqAccess<'de>>(&mut self, seq: &mut A, ctx: &Context) -> Result<bool, A::Error> {
        let Some(item) = seq.next_element_seed(Object(ctx, ItemFields::default()))? else {
            return Ok(false);
        };
        if self.0.len() == QUERY_ITEMS_MAX {
            return Err(ctx.fail(format_args!("a query has at most {QUERY_ITEMS_MAX} items")));
        }
        self.0.push(item);
        Ok(true)
    }
}

#[derive(Default)]
struct ItemFields(QueryItem);

impl<'de> Fields<'de> for ItemFields {
    type Value = QueryItem;

    const EXPECTED: &'static str = "a query item like {\"types\":[…],\"tags\":[…]}";

    fn known(&self) -> &'static [&'static str] {
        &["types", "tags"]
    }

    fn field<A: MapAccess<'de>>(
        &mut self,
        field: usize,
        map: &mut A,
        ctx: &Context,
    ) -> Result<(), A::Error> {
        if field == 0 {
            self.0.types = map.next_value_seed(List(ctx, Types(Vec::new())))?.0;
        } else {
            let tags = map.next_value_seed(List(ctx, TagList::of_query()))?;
            self.0.tags = tags.finish_in(ctx)?;
        }
        Ok(())
    }

    fn finish<E: de::Error>(self, _ctx: &Context) -> Result<QueryItem, E> {
        Ok(self.0)
    }
}

struct Types(Vec<EventType>);

impl<'de> Elements<'de> for Types {
    const EXPECTED: &'static str = "an array of event types";

    fn element<A: SeqAccess<'de>>(&mut self, seq: &mut A, ctx: &Context) -> Result<bool, A::Error> {
        let Some(event_type) =
            seq.next_element_seed(Text(ctx, |text: &str| EventType::new(text)))?
        else {
            return Ok(false);
        };
        count_name(ctx)?;
        self.0.push(event_type);
        Ok(true)
    }
}

fn count_name<E: de::Error>(ctx: &Context) -> Result<(), E> {
    if ctx.take_name() {
        return Ok(());
    }
    Err(ctx.fail(format_args!(
        "the queries of a request have at most {QUERY_NAMES_MAX} types and tags"
    )))
}

/// Tags in the order they came in.
pub(super) struct TagList {
    tags: Vec<Tag>,
    is_query: bool,
}

impl TagList {
    /// The tags of a query's item: they count towards [`QUERY_NAMES_MAX`].
    pub(super) fn of_query() -> Self {
        Self {
            tags: Vec::new(),
            is_query: true,
        }
    }

    /// The tags of an event: at most [`TAGS_MAX`].
    pub(super) fn of_event() -> Self {
        Self {
            tags: Vec::new(),
            is_query: false,
        }
    }

    /// The set, or the index of the first tag that was there before.
    pub(super) fn finish(tags: Vec<Tag>) -> Result<Tags, usize> {
        match first_twin(&tags) {
            Some(twin) => Err(twin),
            None => Ok(Tags::new(tags).expect("twins were looked for")),
        }
    }

    /// The set; a tag that is there twice is refused by its index.
    pub(super) fn finish_in<E: de::Error>(self, ctx: &Context) -> Result<Tags, E> {
        Self::finish(self.tags).map_err(|twin| ctx.fail_at_index(twin, "the tag is there twice"))
    }
}

impl<'de> Elements<'de> for TagList {
    const EXPECTED: &'static str = "an array of tags";

    fn element<A: SeqAccess<'de>>(&mut self, seq: &mut A, ctx: &Context) -> Result<bool, A::Error> {
        let Some(tag) = seq.next_element_seed(Text(ctx, |text: &str| Tag::new(text)))? else {
            return Ok(false);
        };
        if self.is_query {
            count_name(ctx)?;
        } else if self.tags.len() == TAGS_MAX {
            return Err(ctx.fail(format_args!("an event has at most {TAGS_MAX} tags")));
        }
        self.tags.push(tag);
        Ok(true)
    }
}

fn first_twin(tags: &[Tag]) -> Option<usize> {
    if tags.len() <= PAIRWISE_MAX {
        return (1..tags.len()).find(|&index| tags[..index].contains(&tags[index]));
    }
    let mut seen = std::collections::BTreeSet::new();
    tags.iter().position(|tag| !seen.insert(tag))
}

#[cfg(test)]
mod tests;
