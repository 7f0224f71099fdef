//! What an append may say, what its payloads become, and what it is told when it says something else.

use tephra::QueryItem;

use super::*;

fn events(body: &str) -> Vec<Event> {
    parse_append(body.as_bytes()).expect(body).0
}

fn condition(condition: &str) -> Option<AppendCondition> {
    let body = format!("{{\"condition\":{condition},\"events\":[{{\"type\":\"T\"}}]}}");
    parse_append(body.as_bytes()).expect(&body).1
}

fn refusal(body: &str) -> String {
    let error = parse_append(body.as_bytes()).expect_err(body);
    assert_eq!((error.status, error.code), (400, "bad_request"), "{body}");
    error.message.into_owned()
}

/// The payload of an event whose data field is written as `field`.
fn payload(field: &str) -> Vec<u8> {
    let events = events(&format!("{{\"events\":[{{{field},\"type\":\"T\"}}]}}"));
    events[0].data().to_vec()
}

#[test]
fn events_are_read_with_their_tags_sorted() {
    let events = events(
        r#"{"events":[{"type":"A","tags":["b","a"],"data":"x"},{"data_base64":"AP8=","tags":[],"type":"B"},{"type":"C"}]}"#,
    );
    assert_eq!(events.len(), 3);
    assert_eq!(events[0].event_type(), "A");
    assert_eq!(events[0].tags().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(events[0].data(), b"x");
    assert_eq!(events[1].data(), [0, 255]);
    assert_eq!(events[2].tags().count(), 0);
    assert_eq!(events[2].data(), b"");
}

#[test]
fn a_string_is_stored_as_its_characters() {
    assert_eq!(payload(r#""data":"""#), b"");
    assert_eq!(payload(r#""data":"{\"a\":1}""#), br#"{"a":1}"#);
    assert_eq!(
        payload(r#""data":"\u0000\ud83d\ude00\/""#),
        "\0😀/".as_bytes()
    );
    assert_eq!(
        payload("\"data\":\"\u{2028}ä\u{7f}\""),
        "\u{2028}ä\u{7f}".as_bytes()
    );
    assert_eq!(payload(r#""data":"\"""#), b"\"");
}

#[test]
fn any_other_value_is_stored_as_the_text_that_was_sent() {
    for text in [
        "null",
        "true",
        "{}",
        "[ ]",
        "{ \"b\" : 1.0,\n\t\"a\":[1e3 , -0] }",
        "123456789012345678901234567890",
        "1.10",
        "-0",
        "{\"a\":1,\"a\":2}",
        "[\"\\ud800\"]",
        "{\"type\":\"\\\"\"}",
    ] {
        assert_eq!(payload(&format!("\"data\": \n {text} ")), text.as_bytes());
    }
}

#[test]
fn a_deeply_nested_value_is_text_like_any_other() {
    let text = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(payload(&format!("\"data\":{text}")), text.as_bytes());
}

#[test]
fn base64_is_standard_and_padded() {
    assert_eq!(payload(r#""data_base64":"""#), b"");
    assert_eq!(payload(r#""data_base64":"\/+8=""#), [0xff, 0xef]);
    for (text, what) in [
        ("AP8", "Invalid padding"),
        ("_-8=", "Invalid symbol 95, offset 0."),
        ("AP 8=", "Invalid symbol 32, offset 2."),
        ("AP9=", "Invalid last symbol 57, offset 2."),
    ] {
        let body = format!(
            "{{\"events\":[{{\"type\":\"T\"}},{{\"type\":\"T\",\"data_base64\":\"{text}\"}}]}}"
        );
        assert_eq!(
            refusal(&body),
            format!(
                "events[1].data_base64: not base64 in the standard alphabet with padding ({what})"
            )
        );
    }
}

#[test]
fn a_condition_may_be_absent_null_or_partial() {
    let all = Query::All;
    let items = Query::item(QueryItem::default());
    assert_eq!(condition("null"), None);
    assert_eq!(
        parse_append(br#"{"events":[{"type":"T"}]}"#).unwrap().1,
        None
    );
    let boundary = AppendCondition::new(all.clone());
    assert_eq!(
        condition(r#"{"failIfEventsMatch":{"all":true}}"#),
        Some(boundary.clone())
    );
    assert_eq!(
        condition(r#"{"after":7,"failIfExists":null,"failIfEventsMatch":{"all":true}}"#),
        Some(boundary.clone().after(Position::new(7)))
    );
    assert_eq!(
        condition(r#"{"failIfExists":{"items":[{}]},"failIfEventsMatch":null,"after":null}"#),
        Some(AppendCondition::exists_only(items.clone()))
    );
    assert_eq!(
        condition(r#"{"failIfExists":{"items":[{}]},"failIfEventsMatch":{"all":true},"after":0}"#),
        Some(boundary.fail_if_exists(items))
    );
}

#[test]
fn a_position_is_taken_to_its_last_bit_and_nothing_else_is() {
    let after = |number: &str| {
        condition(&format!(
            "{{\"failIfEventsMatch\":{{\"all\":true}},\"after\":{number}}}"
        ))
    };
    for number in [0, 1, (1 << 53) + 1, u64::MAX - 1, u64::MAX] {
        assert_eq!(after(&number.to_string()).unwrap().after.get(), number);
    }
    for (number, what) in [
        ("1.0", "invalid type: floating point `1.0`"),
        ("-1", "invalid type: integer `-1`"),
        ("-0", "invalid type: floating point `-0.0`"),
        ("1e3", "invalid type: floating point `1000.0`"),
        (
            "18446744073709551616",
            "invalid type: floating point `1.8446744073709552e+19`",
        ),
        ("\"7\"", "invalid type: string \"7\""),
        ("true", "invalid type: boolean `true`"),
    ] {
        let body = format!(
            "{{\"events\":[],\"condition\":{{\"after\":{number},\"failIfEventsMatch\":{{\"all\":true}}}}}}"
        );
        let message = refusal(&body);
        let expected = format!(
            "condition.after: {what}, expected a whole number from 0 to 18446744073709551615 at line 1"
        );
        assert!(message.starts_with(&expected), "{message}");
    }
    assert!(
        refusal("{\"condition\":{\"after\":007}}")
            .starts_with("the body: not valid JSON, invalid number")
    );
}

#[test]
fn a_refusal_names_the_field() {
    for (body, message) in [
        ("{}", "events: missing, write an array of events"),
        (
            "{\"event\":[]}",
            "event: unknown field, the known ones are events, condition",
        ),
        (
            "{\"events\":[{}]}",
            "events[0].type: missing, write the event's type as a string",
        ),
        (
            "{\"events\":[{\"type\":\"\"}]}",
            "events[0].type: event type must not be empty",
        ),
        (
            "{\"events\":[{\"type\":\"T\",\"id\":1}]}",
            "events[0].id: unknown field, the known ones are type, tags, data, data_base64",
        ),
        (
            "{\"events\":[{\"type\":\"T\",\"type\":\"T\"}]}",
            "events[0].type: the field is there twice",
        ),
        (
            "{\"events\":[{\"type\":\"T\",\"data\":1,\"d\\u0061ta\":1}]}",
            "events[0].data: the field is there twice",
        ),
        (
            "{\"events\":[],\"events\":[{\"type\":\"T\"}]}",
            "events: the field is there twice",
        ),
        (
            "{\"events\":[{\"type\":\"T\",\"data\":null,\"data_base64\":\"\"}]}",
            "events[0]: write either `data` or `data_base64`, not both",
        ),
        (
            "{\"events\":[{\"type\":\"T\",\"data\":\"\\ud800\"}]}",
            "events[0].data: an escape in the string is half of a surrogate pair",
        ),
        (
            "{\"events\":[{\"type\":\"T\"},{\"type\":\"T\"},{\"type\":\"T\"},{\"type\":\"T\",\"tags\":[\"\"]}]}",
            "events[3].tags[0]: tag must not be empty",
        ),
        (
            "{\"events\":[{\"type\":\"T\",\"tags\":[\"a\",\"a\"]}]}",
            "events[0].tags[1]: the tag is there twice",
        ),
        (
            "{\"events\":{\"type\":\"T\"}}",
            "events: invalid type: map, expected an array of events at line 1 column 10",
        ),
        (
            "{\"condition\":{}}",
            "condition: a condition without a query: write `failIfEventsMatch` or `failIfExists`, or no condition",
        ),
        (
            "{\"condition\":{\"failIfEventMatches\":{}}}",
            "condition.failIfEventMatches: unknown field, the known ones are failIfEventsMatch, after, failIfExists",
        ),
        (
            "{\"condition\":{\"failIfExists\":{\"items\":[{\"tags\":[\"a\",\"\"]}]}}}",
            "condition.failIfExists.items[0].tags[1]: tag must not be empty",
        ),
        (
            "{\"condition\":{\"failIfEventsMatch\":{}}}",
            "condition.failIfEventsMatch: an empty query: write {\"all\":true} for all events or {\"items\":[…]} for some",
        ),
        (
            "{\"condition\":7}",
            "condition: invalid type: integer `7`, expected a condition like {\"failIfEventsMatch\":{…},\"after\":7} at line 1 column 14",
        ),
    ] {
        assert_eq!(refusal(body), message, "{body}");
    }
}

#[test]
fn no_events_have_a_code_of_their_own() {
    for parse in [parse_append, parse_dcb_append] {
        let error = parse(br#"{"events":[]}"#).unwrap_err();
        assert_eq!((error.status, error.code), (400, "empty"));
    }
}

#[test]
fn an_event_may_have_65535_tags_and_not_one_more() {
    let body = |count: usize| {
        let tags: Vec<String> = (0..count).map(|n| format!("\"{n}\"")).collect();
        format!(
            "{{\"events\":[{{\"type\":\"T\",\"tags\":[{}]}}]}}",
            tags.join(",")
        )
    };
    assert_eq!(events(&body(65_535))[0].tags().len(), 65_535);
    assert_eq!(
        refusal(&body(65_536)),
        "events[0].tags[65535]: an event has at most 65535 tags"
    );
}

#[test]
fn bytes_after_the_body_are_refused() {
    let body = r#"{"events":[{"type":"T"}]}"#;
    assert_eq!(events(&format!(" {body}\r\n\t ")).len(), 1);
    refusal(&format!("{body}x"));
    refusal(&format!("{body}{body}"));
    refusal(&format!("{body}\0"));
}

#[test]
fn the_contract_of_the_dcb_community_takes_one_event_or_many() {
    let (events, condition) = parse_dcb_append(
        br#"{"events":{"type":"SomeEvent","tags":["a"],"data":"{}"},"condition":{"failIfEventsMatch":{"items":[{"tags":["a"],"types":["SomeEvent"]}]},"after":0}}"#,
    )
    .unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].data(), b"{}");
    assert!(condition.is_some());
    let (events, condition) =
        parse_dcb_append(br#"{"events":[{"type":"A"},{"type":"B","data_base64":"/w=="}]}"#)
            .unwrap();
    assert_eq!(events[1].data(), [255]);
    assert_eq!(condition, None);
}

#[test]
fn the_contract_of_the_dcb_community_refuses_as_strictly() {
    for (body, message) in [
        (
            "{\"events\":{\"type\":\"\"}}",
            "events.type: event type must not be empty",
        ),
        (
            "{\"events\":[{\"type\":\"A\"},{\"x\":\"\"}]}",
            "events[1].x: unknown field, the known ones are type, tags, data, data_base64",
        ),
        (
            "{\"events\":7}",
            "events: invalid type: integer `7`, expected an event or an array of events at line 1 column 11",
        ),
        (
            "{\"events\":null}",
            "events: invalid type: null, expected an event or an array of events at line 1 column 14",
        ),
        (
            "{\"condition\":{\"failIfExists\":{}}}",
            "condition.failIfExists: unknown field, the known ones are failIfEventsMatch, after",
        ),
        (
            "{\"condition\":{\"after\":1}}",
            "condition: a condition without a query: write `failIfEventsMatch`, or no condition",
        ),
    ] {
        assert_eq!(
            parse_dcb_append(body.as_bytes()).unwrap_err().message,
            message,
            "{body}"
        );
    }
}
