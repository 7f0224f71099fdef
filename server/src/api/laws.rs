//! Laws that any event, any query and any text keep.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tephra::{Event, EventType, Query, QueryItem, Tag, Tags};

use super::append::{parse_append, parse_dcb_append};
use super::encode::{put_append_ok, put_dcb_event, put_event};
use super::error::ApiError;
use super::escape::put_string;
use super::params::{parse_dcb_read_params, parse_events_params, parse_subscribe_params};
use super::query::parse_query;

fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        4 => any::<char>(),
        4 => proptest::char::range('\0', '\u{7f}'),
        1 => select(vec!['"', '\\', '\n', '\u{7f}', '\u{2028}', '/', '%', '+', '&', '=']),
    ]
}

fn text(chars: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    vec(character(), chars).prop_map(String::from_iter)
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => text(0..20).prop_map(String::into_bytes),
        1 => text(100..350).prop_map(String::into_bytes),
        4 => vec(any::<u8>(), 0..40),
        2 => json_value().prop_map(|value| value.to_string().into_bytes()),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let tags = proptest::collection::btree_set(text(1..12), 0..7);
    (text(1..12), tags, payload()).prop_map(|(event_type, tags, payload)| {
        let tags = tags.into_iter().map(|tag| Tag::new(tag).unwrap());
        Event::new(
            &EventType::new(event_type).unwrap(),
            &Tags::new(tags).unwrap(),
            &payload,
        )
        .unwrap()
    })
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text(0..8).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((text(0..4), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A query and what it is in JSON.
fn query() -> impl Strategy<Value = (Query, Value)> {
    let tags = proptest::collection::btree_set(text(1..6), 0..20);
    let item = (vec(text(1..6), 0..4), tags).prop_map(|(types, tags)| {
        let json = json!({"types": types, "tags": tags});
        let types = types
            .into_iter()
            .map(|name| EventType::new(name).unwrap())
            .collect();
        let tags = tags.into_iter().map(|name| Tag::new(name).unwrap());
        (QueryItem::new(types, Tags::new(tags).unwrap()), json)
    });
    prop_oneof![
        1 => Just((Query::All, json!({"all": true}))),
        4 => vec(item, 0..4).prop_map(|items| {
            let (items, json): (Vec<_>, Vec<_>) = items.into_iter().unzip();
            (Query::Items(items), json!({"items": json}))
        }),
    ]
}

fn written(put: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = b"before".to_vec();
    put(&mut out);
    String::from_utf8(out).unwrap().split_off(6)
}

/// A form field's value with every byte but letters and digits escaped, in either case, or `+` for a space.
fn form_encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b' ' => String::from("+"),
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte if byte % 2 == 0 => format!("%{byte:02x}"),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// What holds for each refusal: a client's fault, of bounded length, and valid JSON.
fn check_refusal<T>(result: Result<T, ApiError>) {
    let Err(error) = result else { return };
    assert!(matches!(error.status, 400 | 413), "{error:?}");
    assert!(
        error.message.len() < 600,
        "{} bytes of {error}",
        error.message.len()
    );
    let value: Value = serde_json::from_str(&written(|out| error.put_json(out))).unwrap();
    assert_eq!(value["error"]["message"], *error.message);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_text_is_written_as_serde_json_writes_it(text in text(0..350)) {
        let json = written(|out| put_string(out, &text));
        prop_assert_eq!(json, serde_json::to_string(&text).unwrap());
    }

    #[test]
    fn a_written_event_says_what_the_event_says(event in event(), position in any::<u64>()) {
        for json in [
            written(|out| put_event(out, position, event.as_ref())),
            written(|out| put_dcb_event(out, position, event.as_ref())),
        ] {
            prop_assert!(json.bytes().all(|byte| byte >= 0x20), "not one line: {}", json);
            let value: Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(value.as_object().unwrap().len(), 4);
            prop_assert_eq!(&value["position"], &json!(position));
            prop_assert_eq!(&value["type"], &json!(event.event_type()));
            prop_assert_eq!(&value["tags"], &json!(event.tags().collect::<Vec<_>>()));
            match str::from_utf8(event.data()) {
                Ok(text) => prop_assert_eq!(&value["data"], &json!(text)),
                Err(_) => prop_assert!(value["data_base64"].is_string()),
            }
        }
    }

    #[test]
    fn what_is_read_can_be_appended_again_byte_for_byte(
        events in vec(event(), 1..4),
        position in any::<u64>(),
    ) {
        let first = format!("{{\"position\":{position},");
        let last = format!(",\"position\":{position}}}");
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for event in &events {
            let json = written(|out| put_event(out, position, event.as_ref()));
            ours.push(format!("{{{}", json.strip_prefix(&first).unwrap()));
            let json = written(|out| put_dcb_event(out, position, event.as_ref()));
            theirs.push(format!("{}}}", json.strip_suffix(&last).unwrap()));
        }
        let body = format!("{{\"events\":[{}]}}", ours.join(","));
        let (appended, condition) = parse_append(body.as_bytes()).unwrap();
        prop_assert_eq!(&appended, &events);
        prop_assert_eq!(condition, None);
        let body = format!("{{\"events\":[{}]}}", theirs.join(","));
        let (appended, _) = parse_dcb_append(body.as_bytes()).unwrap();
        prop_assert_eq!(&appended, &events);
        let body = format!("{{\"events\":{}}}", theirs[0]);
        let (appended, _) = parse_dcb_append(body.as_bytes()).unwrap();
        prop_assert_eq!(&appended[..], &events[..1]);
    }

    #[test]
    fn any_value_is_stored_as_its_text(value in json_value(), pretty in any::<bool>()) {
        let text = match pretty {
            true => serde_json::to_string_pretty(&value),
            false => serde_json::to_string(&value),
        }
        .unwrap();
        let body = format!("{{\"events\":[{{\"data\":\n{text}\t,\"type\":\"T\"}}]}}");
        let expected = value.as_str().unwrap_or(&text);
        let (events, _) = parse_append(body.as_bytes()).unwrap();
        prop_assert_eq!(events[0].data(), expected.as_bytes());
    }

    #[test]
    fn a_query_is_the_same_wherever_it_is_written((query, json) in query(), after in any::<u64>()) {
        let text = json.to_string();
        prop_assert_eq!(parse_query(text.as_bytes()), Ok(query.clone()));
        let params = format!("after={after}&query={}", form_encode(&text));
        let events = parse_events_params(Some(&params), None).unwrap();
        prop_assert_eq!((&events.query, events.after), (&query, Some(after)));
        let params = format!("query={}&options=%7B%22after%22:{after}}}", form_encode(&text));
        let read = parse_dcb_read_params(Some(&params)).unwrap();
        prop_assert_eq!((&read.query, read.after), (&query, Some(after)));
        let condition = json!({"failIfExists": json, "after": after, "failIfEventsMatch": json});
        let body = json!({"condition": condition, "events": [{"type": "T"}]}).to_string();
        let condition = parse_append(body.as_bytes()).unwrap().1.unwrap();
        prop_assert_eq!(&condition.fail_if_events_match, &query);
        prop_assert_eq!(condition.fail_if_exists.as_ref(), Some(&query));
        prop_assert_eq!(condition.after.get(), after);
    }

    #[test]
    fn types_and_tags_survive_the_form_encoding(
        types in vec(text(1..8), 0..4),
        tags in proptest::collection::btree_set(text(1..8), 1..4),
    ) {
        let params = types.iter().map(|name| ("type", name));
        let params = params.chain(tags.iter().map(|name| ("tag", name)));
        let params: Vec<_> = params
            .map(|(key, name)| format!("{key}={}", form_encode(name)))
            .collect();
        let types = types.iter().map(|name| EventType::new(name.as_str()).unwrap()).collect();
        let tags = tags.iter().map(|name| Tag::new(name.as_str()).unwrap());
        let expected = Query::item(QueryItem::new(types, Tags::new(tags).unwrap()));
        prop_assert_eq!(parse_subscribe_params(Some(&params.join("&"))).unwrap().query, expected);
    }

    #[test]
    fn a_body_that_was_changed_anywhere_is_read_or_refused(
        events in vec(event(), 1..3),
        (_, json) in query(),
        changes in vec((any::<prop::sample::Index>(), option::of(any::<u8>())), 0..3),
    ) {
        let events: Vec<Value> = events
            .iter()
            .map(|event| {
                let tags: Vec<_> = event.tags().collect();
                json!({"type": event.event_type(), "tags": tags, "data": json})
            })
            .collect();
        let condition = json!({"failIfEventsMatch": json, "after": 7});
        let body = json!({"events": events, "condition": condition});
        let mut body = body.to_string().into_bytes();
        for (at, change) in changes {
            let at = at.index(body.len());
            match change {
                Some(byte) => body[at] = byte,
                None => body.truncate(at.max(1)),
            }
        }
        for parse in [parse_append, parse_dcb_append] {
            let result = parse(&body);
            if result.is_ok() {
                prop_assert!(serde_json::from_slice::<IgnoredAny>(&body).is_ok());
            }
            check_refusal(result);
        }
        check_refusal(parse_query(&body));
    }

    #[test]
    fn any_query_string_is_read_or_refused(
        text in "(query|type|tag|after|limit|reverse|options|[a-z%&=+{}\":0-9é]{0,6}){0,8}",
    ) {
        check_refusal(parse_events_params(Some(&text), Some(10)));
        check_refusal(parse_subscribe_params(Some(&text)));
        check_refusal(parse_dcb_read_params(Some(&text)));
    }

    #[test]
    fn an_acknowledgement_keeps_every_bit(first in any::<u64>(), last in any::<u64>()) {
        let json = written(|out| put_append_ok(out, first, last));
        let value: Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(value, json!({"first": first, "last": last}));
    }
}
