//! Query strings: what `GET /v1/events`, `GET /v1/subscribe` and `GET /read` are asked for.
//!
//! Read as browsers write forms: pairs between `&`, `+` for a space, percent escapes for the rest. Empty pairs are
//! skipped. A value never appears in an error, since one of them may be a token.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, MapAccess};
use tephra::{EventType, Query, QueryItem, Tag};

use super::error::ApiError;
use super::json::{self, Context, Fields, Object, OptionalNumber, unknown};
use super::query::{TagList, parse_query_of};

/// What `GET /v1/events` is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventsParams {
    /// Which events.
    pub(crate) query: Query,
    /// Only after this position; before it with `reverse`. Absent: from the first one, or from the tip.
    pub(crate) after: Option<u64>,
    /// At most so many events.
    pub(crate) limit: Option<u64>,
    /// From the youngest to the oldest.
    pub(crate) reverse: bool,
}

/// What `GET /v1/subscribe` is asked for.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SubscribeParams {
    /// Which events.
    pub(crate) query: Query,
    /// Where to begin.
    pub(crate) after: SubscribeAfter,
    /// A token from a browser that can't send `Authorization`. Never to be logged.
    pub(crate) access_token: Option<String>,
}

/// Says that there is a token, not which.
impl fmt::Debug for SubscribeParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscribeParams")
            .field("query", &self.query)
            .field("after", &self.after)
            .field("access_token", &self.access_token.as_ref().map(|_| "…"))
            .finish()
    }
}

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubscribeAfter {
    /// With the first event there is.
    Start,
    /// After this position.
    Position(u64),
    /// With the first event that is appended from now on.
    Latest,
}

/// What `GET /read` is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DcbReadParams {
    /// Which events; all of them when the parameter is absent.
    pub(crate) query: Query,
    /// From the youngest to the oldest.
    pub(crate) backwards: bool,
    /// At most so many events.
    pub(crate) limit: Option<u64>,
    /// Only after this position; before it with `backwards`.
    pub(crate) after: Option<u64>,
}

/// Reads the query string of `GET /v1/events`; a `limit` over `limit_max` is refused.
///
/// # Errors
/// 400 naming the parameter, and the known ones where it is unknown.
pub(crate) fn parse_events_params(
    query: Option<&str>,
    limit_max: Option<u64>,
) -> Result<EventsParams, ApiError> {
    let mut selection = Selection::default();
    let (mut after, mut limit, mut reverse) = (None, None, false);
    let known = ["query", "type", "tag", "after", "limit", "reverse"];
    for_each_param(query, &known, |name, value| {
        match name {
            "after" => after = Some(parse_number(name, &value)?),
            "limit" => limit = Some(parse_limit(&value, limit_max)?),
            "reverse" => reverse = parse_bool(name, &value)?,
            _ => selection.take(name, &value)?,
        }
        Ok(())
    })?;
    Ok(EventsParams {
        query: selection.finish()?,
        after,
        limit,
        reverse,
    })
}

/// Reads the query string of `GET /v1/subscribe`.
///
/// # Errors
/// 400 naming the parameter, and the known ones where it is unknown.
pub(crate) fn parse_subscribe_params(query: Option<&str>) -> Result<SubscribeParams, ApiError> {
    let mut selection = Selection::default();
    let (mut after, mut access_token) = (SubscribeAfter::Start, None);
    let known = ["query", "type", "tag", "after", "access_token"];
    for_each_param(query, &known, |name, value| {
        match name {
            "after" if value == "latest" => after = SubscribeAfter::Latest,
            "after" => {
                after = SubscribeAfter::Position(
                    digits(&value)
                        .ok_or_else(|| refuse(name, "write a position in digits, or `latest`"))?,
                );
            }
            "access_token" => access_token = Some(value.into_owned()),
            _ => selection.take(name, &value)?,
        }
        Ok(())
    })?;
    Ok(SubscribeParams {
        query: selection.finish()?,
        after,
        access_token,
    })
}

/// Reads the query string of `GET /read`: `query=Q` and `options={"backwards":true,"limit":1,"after":7}`.
///
/// The options also take the contract's `from`, which is `after` with its own position included.
///
/// # Errors
/// 400 naming the parameter or the field in it.
pub(crate) fn parse_dcb_read_params(query: Option<&str>) -> Result<DcbReadParams, ApiError> {
    let mut params = DcbReadParams {
        query: Query::All,
        backwards: false,
        limit: None,
        after: None,
    };
    for_each_param(query, &["query", "options"], |name, value| {
        if name == "query" {
            params.query = parse_query_of(value.as_bytes(), "query")?;
            return Ok(());
        }
        let ctx = Context::new("options", 0);
        let options = json::read(
            value.as_bytes(),
            &ctx,
            Object(&ctx, OptionFields::default()),
        )?;
        params.backwards = options.backwards;
        params.limit = options.limit;
        params.after = options.after;
        Ok(())
    })?;
    Ok(params)
}

#[derive(Default)]
struct OptionFields {
    backwards: bool,
    limit: Option<u64>,
    after: Option<u64>,
    from: Option<u64>,
}

impl<'de> Fields<'de> for OptionFields {
    type Value = Self;

    const EXPECTED: &'static str = "options like {\"backwards\":true,\"limit\":1,\"after\":7}";

    fn known(&self) -> &'static [&'static str] {
        &["backwards", "limit", "after", "from"]
    }

    fn field<A: MapAccess<'de>>(
        &mut self,
        field: usize,
        map: &mut A,
        _ctx: &Context,
    ) -> Result<(), A::Error> {
        match field {
            0 => self.backwards = map.next_value::<Option<bool>>()?.unwrap_or(false),
            1 => self.limit = map.next_value_seed(OptionalNumber)?,
            2 => self.after = map.next_value_seed(OptionalNumber)?,
            _ => self.from = map.next_value_seed(OptionalNumber)?,
        }
        Ok(())
    }

    fn finish<E: de::Error>(mut self, ctx: &Context) -> Result<Self, E> {
        let Some(from) = self.from else {
            return Ok(self);
        };
        if self.after.is_some() {
            return Err(ctx.fail("write either `after` or `from`, not both"));
        }
        self.after = Some(if self.backwards {
            from.saturating_add(1)
        } else {
            from.saturating_sub(1)
        });
        Ok(self)
    }
}

/// The events chosen by `query`, or by `type` and `tag`.
#[derive(Default)]
struct Selection {
    query: Option<Query>,
    types: Vec<EventType>,
    tags: Vec<Tag>,
}

impl Selection {
    fn take(&mut self, name: &'static str, value: &str) -> Result<(), ApiError> {
        match name {
            "query" => self.query = Some(parse_query_of(value.as_bytes(), name)?),
            "type" => {
                let event_type = EventType::new(value)
                    .map_err(|error| refuse_nth(name, self.types.len(), error))?;
                self.types.push(event_type);
            }
            _ => {
                let tag =
                    Tag::new(value).map_err(|error| refuse_nth(name, self.tags.len(), error))?;
                self.tags.push(tag);
            }
        }
        Ok(())
    }

    /// Several types and tags are one item; nothing at all means all events.
    fn finish(self) -> Result<Query, ApiError> {
        let has_names = !self.types.is_empty() || !self.tags.is_empty();
        match self.query {
            Some(_) if has_names => Err(refuse(
                "query",
                "write either `query` or `type` and `tag`, not both",
            )),
            Some(query) => Ok(query),
            None if has_names => {
                let tags = TagList::finish(self.tags)
                    .map_err(|twin| refuse_nth("tag", twin, "the tag is there twice"))?;
                Ok(Query::item(QueryItem::new(self.types, tags)))
            }
            None => Ok(Query::All),
        }
    }
}

/// Calls `take` with each parameter, decoded. Only `type` and `tag` may come more than once.
fn for_each_param<'q>(
    query: Option<&'q str>,
    known: &[&'static str],
    mut take: impl FnMut(&'static str, Cow<'q, str>) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let mut seen = 0_u32;
    for pair in query
        .unwrap_or("")
        .split('&')
        .filter(|pair| !pair.is_empty())
    {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name)
            .map_err(|reason| ApiError::bad_request(format!("a parameter's name: {reason}")))?;
        let Some(index) = known.iter().position(|known| **known == *name) else {
            return Err(ApiError::bad_request(unknown(&name, "parameter", known)));
        };
        let name = known[index];
        let value = decode(value).map_err(|reason| refuse(name, reason))?;
        if seen & (1 << index) != 0 && !matches!(name, "type" | "tag") {
            return Err(refuse(name, "the parameter is there twice"));
        }
        seen |= 1 << index;
        take(name, value)?;
    }
    Ok(())
}

fn refuse(name: &str, reason: impl fmt::Display) -> ApiError {
    ApiError::bad_request(format!("{name}: {reason}"))
}

fn refuse_nth(name: &str, index: usize, reason: impl fmt::Display) -> ApiError {
    ApiError::bad_request(format!("{name}[{index}]: {reason}"))
}

/// Reads a position or count: digits only, at most `u64::MAX`. `name` is what the error names, a parameter or a field.
///
/// # Errors
/// 400 naming it.
pub(crate) fn parse_number(name: &str, value: &str) -> Result<u64, ApiError> {
    digits(value).ok_or_else(|| {
        refuse(
            name,
            format_args!("write a whole number from 0 to {} in digits", u64::MAX),
        )
    })
}

fn digits(value: &str) -> Option<u64> {
    // The standard parser alone would take a leading plus.
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| value.parse().ok()).flatten()
}

fn parse_limit(value: &str, limit_max: Option<u64>) -> Result<u64, ApiError> {
    let limit = parse_number("limit", value)?;
    match limit_max {
        Some(max) if limit > max => Err(ApiError {
            limit: Some(max),
            ..refuse(
                "limit",
                format_args!(
                    "at most {max} events a page; ask for the next page, or for `application/x-ndjson`"
                ),
            )
        }),
        _ => Ok(limit),
    }
}

fn parse_bool(name: &str, value: &str) -> Result<bool, ApiError> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(refuse(name, "write `true` or `false`")),
    }
}

/// Undoes form encoding. The error is a reason.
fn decode(text: &str) -> Result<Cow<'_, str>, &'static str> {
    let Some(first) = memchr::memchr2(b'%', b'+', text.as_bytes()) else {
        return Ok(Cow::Borrowed(text));
    };
    let mut bytes = text.as_bytes()[..first].to_vec();
    let mut rest = &text.as_bytes()[first..];
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (escape, tail) = rest.split_first_chunk::<2>().ok_or(BAD_ESCAPE)?;
                rest = tail;
                hex(escape[0])? << 4 | hex(escape[1])?
            }
            other => other,
        });
    }
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| "the percent escapes are not UTF-8")
}

const BAD_ESCAPE: &str =
    "a `%` is not followed by two hexadecimal digits; write `%25` for a percent sign";

fn hex(digit: u8) -> Result<u8, &'static str> {
    char::from(digit)
        .to_digit(16)
        .map(|value| value as u8)
        .ok_or(BAD_ESCAPE)
}

#[cfg(test)]
mod tests;
