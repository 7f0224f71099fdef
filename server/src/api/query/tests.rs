//! What a query may say, and what it is told when it says something else.

use tephra::{EventType, Query, QueryItem, Tag, Tags};

use super::*;

fn item(types: &[&str], tags: &[&str]) -> QueryItem {
    let types = types.iter().map(|name| EventType::new(*name).unwrap());
    let tags = tags.iter().map(|name| Tag::new(*name).unwrap());
    QueryItem::new(types.collect(), Tags::new(tags).unwrap())
}

fn refusal(text: &str) -> String {
    let error = parse_query(text.as_bytes()).expect_err(text);
    assert_eq!(error.status, 400);
    assert_eq!(error.code, "bad_request");
    error.message.into_owned()
}

#[test]
fn items_types_and_tags_are_read_as_they_stand() {
    let text =
        br#" {"items":[{"types":["A","B"],"tags":["b:2","a:1"]},{"tags":["c"]},{"types":["C"]}]} "#;
    let expected = vec![
        item(&["A", "B"], &["a:1", "b:2"]),
        item(&[], &["c"]),
        item(&["C"], &[]),
    ];
    assert_eq!(parse_query(text), Ok(Query::Items(expected)));
}

#[test]
fn all_means_all_and_no_items_mean_none() {
    assert_eq!(parse_query(br#"{"all":true}"#), Ok(Query::All));
    assert_eq!(parse_query(br#"{"items":[]}"#), Ok(Query::Items(vec![])));
    assert_eq!(
        parse_query(br#"{"items":[{}]}"#),
        Ok(Query::Items(vec![QueryItem::default()]))
    );
}

#[test]
fn escapes_in_names_are_decoded() {
    let text = br#"{"items":[{"tags":["\u0061\n\ud83d\ude00"]}]}"#;
    assert_eq!(
        parse_query(text),
        Ok(Query::Items(vec![item(&[], &["a\n😀"])]))
    );
}

#[test]
fn a_refusal_names_the_field() {
    for (text, message) in [
        (
            "{}",
            "the body: an empty query: write {\"all\":true} for all events or {\"items\":[…]} for some",
        ),
        ("{\"all\":false}", "all: write true, or `items` instead"),
        (
            "{\"all\":true,\"items\":[]}",
            "the body: write either `items` or `all`, not both",
        ),
        (
            "{\"Items\":[]}",
            "Items: unknown field, the known ones are items, all",
        ),
        (
            "{\"items\":[{},{\"type\":[]}]}",
            "items[1].type: unknown field, the known ones are types, tags",
        ),
        (
            "{\"items\":[],\"items\":[]}",
            "items: the field is there twice",
        ),
        (
            "{\"items\":[{\"tags\":[\"a\",\"b\",\"a\"]}]}",
            "items[0].tags[2]: the tag is there twice",
        ),
        (
            "{\"items\":[{\"tags\":[\"a\",\"\"]}]}",
            "items[0].tags[1]: tag must not be empty",
        ),
        (
            "{\"items\":[{\"types\":[\"\"]}]}",
            "items[0].types[0]: event type must not be empty",
        ),
        (
            "{\"items\":[{\"types\":[\"a\",7]}]}",
            "items[0].types[1]: invalid type: integer `7`, expected a string at line 1 column 25",
        ),
        (
            "{\"items\":[{\"tags\":null}]}",
            "items[0].tags: invalid type: null, expected an array of tags at line 1 column 22",
        ),
        (
            "{\"all\":\"yes\"}",
            "all: invalid type: string \"yes\", expected a boolean at line 1 column 12",
        ),
        (
            "[]",
            "the body: invalid type: sequence, expected a query like {\"items\":[{\"types\":[…],\"tags\":[…]}]} or {\"all\":true} \
             at line 1 column 0",
        ),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
}

#[test]
fn broken_json_is_refused_with_its_place() {
    for (text, message) in [
        (
            "",
            "the body: not valid JSON, EOF while parsing a value at line 1 column 0",
        ),
        (
            "{\"all\":true",
            "the body: not valid JSON, EOF while parsing an object at line 1 column 11",
        ),
        (
            "{\"all\":true}}",
            "the body: not valid JSON, trailing characters at line 1 column 13",
        ),
        (
            "{\"all\":true}\n{}",
            "the body: not valid JSON, trailing characters at line 2 column 1",
        ),
        (
            "{\"all\":true,}",
            "the body: not valid JSON, trailing comma at line 1 column 13",
        ),
        (
            "{'all':true}",
            "the body: not valid JSON, key must be a string at line 1 column 2",
        ),
        (
            "{\"all\":tru}",
            "the body: not valid JSON, expected ident at line 1 column 11",
        ),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
    let error = parse_query(b"{\"all\":\xff}").unwrap_err();
    assert_eq!(error.message, "the body: not UTF-8 from byte 7 on");
}

#[test]
fn a_name_of_the_longest_length_is_taken_and_one_byte_more_is_not() {
    let query = |len: usize| format!("{{\"items\":[{{\"types\":[\"{}\"]}}]}}", "x".repeat(len));
    assert!(parse_query(query(65_535).as_bytes()).is_ok());
    assert_eq!(
        refusal(&query(65_536)),
        "items[0].types[0]: event type is 65536 bytes, exceeding the 65535-byte maximum"
    );
}

#[test]
fn the_most_items_are_taken_and_one_more_is_not() {
    let query = |count: usize| format!("{{\"items\":[{}]}}", vec!["{}"; count].join(","));
    assert!(parse_query(query(QUERY_ITEMS_MAX).as_bytes()).is_ok());
    assert_eq!(
        refusal(&query(QUERY_ITEMS_MAX + 1)),
        "items[10000]: a query has at most 10000 items"
    );
}

#[test]
fn the_most_names_are_taken_and_one_more_is_not() {
    let names = |count: usize| vec!["\"a\""; count].join(",");
    let query = |count: usize| {
        format!(
            "{{\"items\":[{{\"tags\":[\"t\"],\"types\":[{}]}},{{\"types\":[{}]}}]}}",
            names(30_000),
            names(count)
        )
    };
    assert!(parse_query(query(QUERY_NAMES_MAX - 30_001).as_bytes()).is_ok());
    assert_eq!(
        refusal(&query(QUERY_NAMES_MAX - 30_000)),
        "items[1].types[35534]: the queries of a request have at most 65535 types and tags"
    );
}

#[test]
fn a_twin_is_found_in_short_lists_and_in_long_ones() {
    for len in [2, PAIRWISE_MAX, PAIRWISE_MAX + 1, 500] {
        let mut tags: Vec<Tag> = (0..len).map(|n| Tag::new(n.to_string()).unwrap()).collect();
        assert_eq!(first_twin(&tags), None, "{len}");
        tags[len - 1] = tags[0].clone();
        assert_eq!(first_twin(&tags), Some(len - 1), "{len}");
    }
}

#[test]
fn what_a_refusal_quotes_is_cut() {
    let known = "unknown field, the known ones are items, all";
    for (start, shown) in [("", 32), ("x", 31)] {
        let long = format!("{start}{}", "ä".repeat(50_000));
        let message = refusal(&format!("{{\"{long}\":1}}"));
        assert_eq!(message, format!("{start}{}…: {known}", "ä".repeat(shown)));
        let message = refusal(&format!("{{\"items\":\"{long}\"}}"));
        let quoted = format!("items: invalid type: string \"{start}ä");
        assert!(message.starts_with(&quoted), "{message}");
        let place = format!("ä… at line 1 column {}", long.len() + 11);
        assert!(message.ends_with(&place), "{message}");
        assert!(message.len() < 300, "{} bytes", message.len());
    }
}

#[test]
fn nesting_of_any_depth_is_refused_without_recursion() {
    let deep = "[".repeat(1_000_000);
    refusal(&deep);
    refusal(&format!("{{\"items\":{deep}"));
}
