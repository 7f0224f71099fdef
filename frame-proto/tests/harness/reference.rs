//! The slow way from a request's bytes to the engine's types: prost's generated decoder, then
//! tephra-server's conversions one after the other.

use prost::Message;
use pumice_frame_proto::tephra::proto::{self, request::Kind};
use pumice_frame_proto::tephra::{Incoming, RequestError, decode_request};
use tephra::{AppendCondition, Event, EventType, Position, Query, QueryItem, Tag, Tags};

/// A decoder's verdict, in a form that can be compared.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Malformed,
    Invalid { request_id: u64, text: String },
    Request { request_id: u64, kind: Comparable },
}

/// [`Incoming`], comparable.
#[derive(Debug, PartialEq)]
pub(crate) enum Comparable {
    Append(Vec<Event>, Option<AppendCondition>),
    Read(Query, Position, Option<u64>, bool),
    Subscribe(Query, Position),
    Cancel(u64),
    Stats,
    Hello(u32, Option<String>),
    Unknown,
}

/// What this crate's decoder says.
pub(crate) fn fast(payload: &[u8]) -> Verdict {
    match decode_request(payload) {
        Ok(received) => Verdict::Request {
            request_id: received.request_id,
            kind: match received.kind {
                Incoming::Append { events, condition } => Comparable::Append(events, condition),
                Incoming::Read {
                    query,
                    after,
                    limit,
                    reverse,
                } => Comparable::Read(query, after, limit, reverse),
                Incoming::Subscribe { query, after } => Comparable::Subscribe(query, after),
                Incoming::Cancel { target } => Comparable::Cancel(target),
                Incoming::Stats => Comparable::Stats,
                Incoming::Hello {
                    protocol_version,
                    auth_token,
                } => Comparable::Hello(protocol_version, auth_token),
                Incoming::Unknown => Comparable::Unknown,
            },
        },
        Err(RequestError::Malformed { .. }) => Verdict::Malformed,
        Err(RequestError::Invalid { request_id, reason }) => Verdict::Invalid {
            request_id,
            text: reason.to_string(),
        },
    }
}

/// What the slow way says.
pub(crate) fn slow(payload: &[u8]) -> Verdict {
    let Ok(request) = proto::Request::decode(payload) else {
        return Verdict::Malformed;
    };
    let request_id = request.request_id;
    match convert(request.kind) {
        Ok(kind) => Verdict::Request { request_id, kind },
        Err(text) => Verdict::Invalid { request_id, text },
    }
}

fn convert(kind: Option<Kind>) -> Result<Comparable, String> {
    Ok(match kind {
        None => Comparable::Unknown,
        Some(Kind::Append(append)) => {
            let events = append.events.iter().enumerate();
            let events = events.map(|(index, event)| convert_event(index, event));
            let events = events.collect::<Result<_, _>>()?;
            let condition = append.condition.map(convert_condition).transpose()?;
            Comparable::Append(events, condition)
        }
        Some(Kind::Read(read)) => Comparable::Read(
            convert_query("query", read.query)?,
            Position::new(read.after),
            read.limit,
            read.reverse,
        ),
        Some(Kind::Subscribe(subscribe)) => Comparable::Subscribe(
            convert_query("query", subscribe.query)?,
            Position::new(subscribe.after),
        ),
        Some(Kind::Cancel(cancel)) => Comparable::Cancel(cancel.target),
        Some(Kind::Stats(_)) => Comparable::Stats,
        Some(Kind::Hello(hello)) => Comparable::Hello(hello.protocol_version, hello.auth_token),
    })
}

fn convert_event(index: usize, event: &proto::Event) -> Result<Event, String> {
    let place = format!("events[{index}]");
    let event_type = EventType::new(event.r#type.as_str());
    let event_type = event_type.map_err(|error| format!("{place}.type: {error}"))?;
    let tags = convert_tags(&place, &event.tags)?;
    Event::new(&event_type, &tags, &event.payload).map_err(|error| format!("{place}: {error}"))
}

fn convert_tags(place: &str, tags: &[String]) -> Result<Tags, String> {
    let mut valid = Vec::new();
    for (index, tag) in tags.iter().enumerate() {
        let tag = Tag::new(tag.as_str());
        valid.push(tag.map_err(|error| format!("{place}.tags[{index}]: {error}"))?);
    }
    Tags::new(valid).map_err(|error| format!("{place}.tags: {error}"))
}

fn convert_query(place: &str, query: Option<proto::Query>) -> Result<Query, String> {
    let query = query.unwrap_or_default();
    if query.all {
        return Ok(Query::All);
    }
    let mut items = Vec::new();
    for (index, item) in query.items.iter().enumerate() {
        let place = format!("{place}.items[{index}]");
        let mut types = Vec::new();
        for (index, name) in item.types.iter().enumerate() {
            let event_type = EventType::new(name.as_str());
            types.push(event_type.map_err(|error| format!("{place}.types[{index}]: {error}"))?);
        }
        items.push(QueryItem::new(types, convert_tags(&place, &item.tags)?));
    }
    Ok(Query::items(items))
}

fn convert_condition(condition: proto::AppendCondition) -> Result<AppendCondition, String> {
    let place = "condition.fail_if_events_match";
    let fail_if_events_match = convert_query(place, condition.fail_if_events_match)?;
    let mut converted =
        AppendCondition::new(fail_if_events_match).after(Position::new(condition.after));
    if let Some(query) = condition.fail_if_exists {
        let query = convert_query("condition.fail_if_exists", Some(query))?;
        converted = converted.fail_if_exists(query);
    }
    Ok(converted)
}
