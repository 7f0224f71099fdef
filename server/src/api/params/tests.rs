//! What the query strings may say, and what they are told when they say something else.

use tephra::Tags;

use super::*;

fn item(types: &[&str], tags: &[&str]) -> Query {
    let types = types.iter().map(|name| EventType::new(*name).unwrap());
    let tags = tags.iter().map(|name| Tag::new(*name).unwrap());
    Query::item(QueryItem::new(types.collect(), Tags::new(tags).unwrap()))
}

fn events(query: &str) -> EventsParams {
    parse_events_params(Some(query), Some(10_000)).expect(query)
}

fn refusal<T: fmt::Debug>(result: Result<T, ApiError>) -> String {
    let error = result.unwrap_err();
    assert_eq!((error.status, error.code), (400, "bad_request"), "{error}");
    error.message.into_owned()
}

#[test]
fn no_parameters_mean_all_events() {
    let all = EventsParams {
        query: Query::All,
        after: None,
        limit: None,
        reverse: false,
    };
    for query in [None, Some(""), Some("&"), Some("&&")] {
        assert_eq!(
            parse_events_params(query, None),
            Ok(all.clone()),
            "{query:?}"
        );
    }
    let start = SubscribeParams {
        query: Query::All,
        after: SubscribeAfter::Start,
        access_token: None,
    };
    assert_eq!(parse_subscribe_params(None), Ok(start));
    let read = DcbReadParams {
        query: Query::All,
        backwards: false,
        limit: None,
        after: None,
    };
    assert_eq!(parse_dcb_read_params(None), Ok(read));
}

#[test]
fn several_types_and_tags_are_one_item() {
    let params = events("type=A&tag=b:2&type=B&after=7&tag=a:1&limit=100&reverse=true");
    assert_eq!(params.query, item(&["A", "B"], &["a:1", "b:2"]));
    assert_eq!(
        (params.after, params.limit, params.reverse),
        (Some(7), Some(100), true)
    );
}

#[test]
fn a_query_is_json_in_a_parameter() {
    let query = "query=%7B%22items%22%3A%5B%7B%22tags%22:%5B%22a+%C3%A4%22]}]}&reverse=false";
    assert_eq!(events(query).query, item(&[], &["a ä"]));
    assert_eq!(events("query={\"items\":[]}").query, Query::Items(vec![]));
    assert_eq!(events("query={\"all\":true}").query, Query::All);
}

#[test]
fn values_are_decoded_as_forms_are() {
    for (text, expected) in [
        ("tag=a+b", "a b"),
        ("tag=%2B%20%26%3d%3D", "+ &=="),
        ("tag==a=b=", "=a=b="),
        ("tag=%F0%9F%98%80%00", "😀\0"),
        ("t%61g=a", "a"),
        ("&&tag=;?/&", ";?/"),
    ] {
        assert_eq!(events(text).query, item(&[], &[expected]), "{text}");
    }
}

#[test]
fn broken_escapes_are_refused_by_name() {
    let escape = "a `%` is not followed by two hexadecimal digits; write `%25` for a percent sign";
    for (text, message) in [
        ("tag=100%", format!("tag: {escape}")),
        ("tag=%4", format!("tag: {escape}")),
        ("tag=%zz", format!("tag: {escape}")),
        ("tag=%+1", format!("tag: {escape}")),
        ("tag=%0é", format!("tag: {escape}")),
        (
            "type=%C3",
            String::from("type: the percent escapes are not UTF-8"),
        ),
        (
            "type=%C3+%A4",
            String::from("type: the percent escapes are not UTF-8"),
        ),
        (
            "%ED%A0%80=1",
            String::from("a parameter's name: the percent escapes are not UTF-8"),
        ),
    ] {
        assert_eq!(
            refusal(parse_events_params(Some(text), None)),
            message,
            "{text}"
        );
    }
}

#[test]
fn positions_and_limits_are_digits_within_64_bits() {
    let max = u64::MAX.to_string();
    assert_eq!(events(&format!("after={max}")).after, Some(u64::MAX));
    assert_eq!(events("after=0&limit=0").limit, Some(0));
    for value in [
        "",
        "-1",
        "%2B1",
        "+1",
        "1.0",
        "1e3",
        "0x1",
        "18446744073709551616",
        "latest",
        "%D9%A1",
    ] {
        for name in ["after", "limit"] {
            assert_eq!(
                refusal(parse_events_params(Some(&format!("{name}={value}")), None)),
                format!("{name}: write a whole number from 0 to {max} in digits"),
                "{value}"
            );
        }
    }
}

#[test]
fn a_limit_at_its_bound_is_taken_and_one_more_names_the_bound() {
    assert_eq!(events("limit=10000").limit, Some(10_000));
    let error = parse_events_params(Some("limit=10001"), Some(10_000)).unwrap_err();
    assert_eq!((error.status, error.limit), (400, Some(10_000)));
    assert!(
        error.message.starts_with("limit: at most 10000 events"),
        "{error}"
    );
    let unbounded = parse_events_params(Some("limit=10001"), None).unwrap();
    assert_eq!(unbounded.limit, Some(10_001));
}

#[test]
fn a_refusal_names_the_parameter() {
    let known = "the known ones are query, type, tag, after, limit, reverse";
    for (text, message) in [
        ("from=1", format!("from: unknown parameter, {known}")),
        ("Type=A", format!("Type: unknown parameter, {known}")),
        ("=1", format!(": unknown parameter, {known}")),
        (
            "access_token=secret",
            format!("access_token: unknown parameter, {known}"),
        ),
        (
            "after=1&after=1",
            String::from("after: the parameter is there twice"),
        ),
        (
            "query={\"all\":true}&query={\"all\":true}",
            String::from("query: the parameter is there twice"),
        ),
        (
            "query={\"all\":true}&tag=a",
            String::from("query: write either `query` or `type` and `tag`, not both"),
        ),
        (
            "type=A&query={\"items\":[]}",
            String::from("query: write either `query` or `type` and `tag`, not both"),
        ),
        ("reverse", String::from("reverse: write `true` or `false`")),
        (
            "reverse=1",
            String::from("reverse: write `true` or `false`"),
        ),
        (
            "type=A&type=",
            String::from("type[1]: event type must not be empty"),
        ),
        ("tag", String::from("tag[0]: tag must not be empty")),
        (
            "tag=a&type=A&tag=b&tag=a",
            String::from("tag[2]: the tag is there twice"),
        ),
        (
            "query={\"items\":[{},{\"tags\":[\"a\",\"\"]}]}",
            String::from("query.items[1].tags[1]: tag must not be empty"),
        ),
        (
            "query={\"itmes\":[]}",
            String::from("query.itmes: unknown field, the known ones are items, all"),
        ),
        (
            "query=",
            String::from("query: not valid JSON, EOF while parsing a value at line 1 column 0"),
        ),
    ] {
        assert_eq!(
            refusal(parse_events_params(Some(text), None)),
            message,
            "{text}"
        );
    }
}

#[test]
fn a_subscription_begins_where_it_is_told() {
    let after = |text: &str| parse_subscribe_params(Some(text)).unwrap().after;
    assert_eq!(after("type=A"), SubscribeAfter::Start);
    assert_eq!(after("after=0"), SubscribeAfter::Position(0));
    assert_eq!(
        after("after=18446744073709551615"),
        SubscribeAfter::Position(u64::MAX)
    );
    assert_eq!(after("after=latest"), SubscribeAfter::Latest);
    assert_eq!(
        refusal(parse_subscribe_params(Some("after=Latest"))),
        "after: write a position in digits, or `latest`"
    );
    assert_eq!(
        refusal(parse_subscribe_params(Some("limit=1"))),
        "limit: unknown parameter, the known ones are query, type, tag, after, access_token"
    );
}

#[test]
fn a_token_is_read_and_never_shown() {
    let params = parse_subscribe_params(Some("access_token=s%2Bcret&tag=a")).unwrap();
    assert_eq!(params.access_token.as_deref(), Some("s+cret"));
    assert_eq!(params.query, item(&[], &["a"]));
    for text in [
        "access_token=secret%",
        "access_token=secret&access_token=secret",
        "access_token=%ffsecret",
    ] {
        let message = refusal(parse_subscribe_params(Some(text)));
        assert!(message.starts_with("access_token: "), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
    assert!(!format!("{params:?}").contains("cret"));
}

#[test]
fn the_contract_of_the_dcb_community_has_its_options_in_json() {
    let read = |text: &str| parse_dcb_read_params(Some(text)).expect(text);
    let params = read(
        "query={\"items\":[{\"types\":[\"A\"]}]}&options={\"backwards\":true,\"limit\":1,\"after\":7}",
    );
    assert_eq!(params.query, item(&["A"], &[]));
    assert_eq!(
        (params.backwards, params.limit, params.after),
        (true, Some(1), Some(7))
    );
    let params = read("options={}");
    assert_eq!(
        (params.backwards, params.limit, params.after),
        (false, None, None)
    );
    let params = read("options={\"after\":null,\"backwards\":null,\"limit\":null}");
    assert_eq!(
        (params.backwards, params.limit, params.after),
        (false, None, None)
    );
    for (text, message) in [
        (
            "options={\"reverse\":true}",
            "options.reverse: unknown field, the known ones are backwards, limit, after, from",
        ),
        (
            "options={\"limit\":1,\"limit\":2}",
            "options.limit: the field is there twice",
        ),
        (
            "options={\"limit\":-1}",
            "options.limit: invalid type: integer `-1`, expected a whole number from 0 to 18446744073709551615 at line 1 column 11",
        ),
        (
            "options={\"backwards\":1}",
            "options.backwards: invalid type: integer `1`, expected a boolean at line 1 column 14",
        ),
        (
            "options={\"after\":1,\"from\":1}",
            "options: write either `after` or `from`, not both",
        ),
        (
            "options={",
            "options: not valid JSON, EOF while parsing an object at line 1 column 1",
        ),
        (
            "option={}",
            "option: unknown parameter, the known ones are query, options",
        ),
        (
            "query={}",
            "query: an empty query: write {\"all\":true} for all events or {\"items\":[…]} for some",
        ),
    ] {
        assert_eq!(
            refusal(parse_dcb_read_params(Some(text))),
            message,
            "{text}"
        );
    }
}

#[test]
fn from_is_after_with_its_own_position() {
    let after = |options: &str| {
        parse_dcb_read_params(Some(&format!("options={options}")))
            .unwrap()
            .after
    };
    assert_eq!(after("{\"from\":7}"), Some(6));
    assert_eq!(after("{\"from\":0}"), Some(0));
    assert_eq!(after("{\"from\":7,\"backwards\":true}"), Some(8));
    assert_eq!(
        after("{\"backwards\":true,\"from\":18446744073709551615}"),
        Some(u64::MAX)
    );
    assert_eq!(after("{\"from\":null,\"after\":3}"), Some(3));
}
