//! The store over HTTP: appends and their refusals, reads in all their forms, and who may ask.
#![cfg(feature = "store")]

use std::sync::{Arc, Barrier};
use std::thread;

use pumice::{Config, Limits, StoreConfig};
use serde_json::{Value, json};
use support::{Answer, Client, TestServer, config, get, pattern};

mod support;

fn store() -> TestServer {
    TestServer::store(config(), StoreConfig::default())
}

#[track_caller]
fn append(client: &mut Client, body: &Value) -> Answer {
    client.post("/v1/append", body.to_string())
}

/// Appends events of these types, each with these tags, and returns the last position.
#[track_caller]
fn append_events(client: &mut Client, events: &[(&str, &[&str])]) -> u64 {
    let events: Vec<_> = events
        .iter()
        .map(|(event_type, tags)| json!({"type": event_type, "tags": tags}))
        .collect();
    let answer = append(client, &json!({"events": events}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["last"].as_u64().expect("a position")
}

/// The positions of a page's events.
fn positions(page: &Value) -> Vec<u64> {
    let events = page["events"].as_array().expect("an array of events");
    events
        .iter()
        .map(|event| event["position"].as_u64().expect("a position"))
        .collect()
}

/// An error's status, code, position and whether it may be retried.
#[track_caller]
fn error(answer: &Answer) -> (u16, String, Option<u64>, bool) {
    assert_eq!(answer.field("content-type"), Some("application/json"));
    let body = answer.json();
    let error = &body["error"];
    assert!(!error["message"].as_str().expect("a message").is_empty());
    (
        answer.status,
        error["code"].as_str().expect("a code").to_owned(),
        error["position"].as_u64(),
        error["retryable"].as_bool().expect("a flag"),
    )
}

/// A query value for a URL.
fn escaped(value: &Value) -> String {
    value
        .to_string()
        .bytes()
        .map(|byte| format!("%{byte:02x}"))
        .collect()
}

#[test]
fn appends_get_dense_positions_and_come_back() {
    let server = store();
    let mut client = server.connect();
    let answer = append(
        &mut client,
        &json!({"events": [
            {"type": "CourseOpened", "tags": ["course:c1"], "data": {"seats": 30}},
            {"type": "CourseRenamed", "tags": ["course:c1", "by:ann"], "data": "Zoë"},
        ]}),
    );
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(answer.text(), "{\"first\":1,\"last\":2}\n");
    let answer = append(&mut client, &json!({"events": [{"type": "CourseClosed"}]}));
    assert_eq!(answer.text(), "{\"first\":3,\"last\":3}\n");
    let page = client.get("/v1/events");
    assert_eq!(page.field("content-type"), Some("application/json"));
    assert_eq!(
        page.json(),
        json!({
            "events": [
                {"position": 1, "type": "CourseOpened", "tags": ["course:c1"], "data": "{\"seats\":30}"},
                {"position": 2, "type": "CourseRenamed", "tags": ["by:ann", "course:c1"], "data": "Zoë"},
                {"position": 3, "type": "CourseClosed", "tags": [], "data": ""},
            ],
            "watermark": 3,
        })
    );
}

#[test]
fn pipelined_appends_are_carried_out_in_order() {
    let server = store();
    let mut client = server.connect();
    let requests: Vec<u8> = (0..50)
        .flat_map(|n| {
            support::post(
                "/v1/append",
                format!("{{\"events\":[{{\"type\":\"T{n}\"}}]}}"),
            )
        })
        .chain(get("/v1/events?type=T49"))
        .collect();
    client.send(requests);
    for n in 1..=50 {
        assert_eq!(client.answer().json(), json!({"first": n, "last": n}));
    }
    // What was acknowledged can be read.
    assert_eq!(positions(&client.answer().json()), [50]);
}

#[test]
fn payloads_come_back_byte_for_byte() {
    let server = store();
    let mut client = server.connect();
    let large = "\u{20ac}\"\\\n".repeat(30_000);
    // What is sent as `data`, and what is stored.
    let texts = [
        (r#""""#.to_owned(), String::new()),
        (r#""plain""#.into(), "plain".into()),
        (
            r#""a\"b\\c\u00e4\ud83d\ude00\u0000\n""#.into(),
            "a\"b\\c\u{e4}\u{1f600}\0\n".into(),
        ),
        (
            r#"{ "a" : [1, 2.50, 1e400, 12345678901234567890123] ,"a":null}"#.into(),
            String::new(),
        ),
        ("null".into(), String::new()),
        ("-0".into(), String::new()),
        ("[\t]".into(), String::new()),
        (Value::from(large.as_str()).to_string(), large),
    ];
    for (sent, stored) in &texts {
        let stored = if stored.is_empty() && sent != "\"\"" {
            sent
        } else {
            stored
        };
        let body = format!("{{\"events\":[{{\"data\": {sent} ,\"type\":\"T\"}}]}}");
        let answer = client.post("/v1/append", body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let page = client.get("/v1/events?reverse=true&limit=1").json();
        assert_eq!(page["events"][0]["data"].as_str(), Some(stored.as_str()));
    }
    use base64::Engine as _;
    let base64 = &base64::engine::general_purpose::STANDARD;
    for bytes in [
        vec![0xff],
        vec![0, 0xc3, 0x28],
        (0..=255).collect(),
        pattern(200_000, 9),
    ] {
        let answer = append(
            &mut client,
            &json!({"events": [{"type": "B", "data_base64": base64.encode(&bytes)}]}),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        for (path, pointer) in [
            ("/v1/events?reverse=true&limit=1", "/events/0/data_base64"),
            (
                "/read?options=%7b%22backwards%22:true,%22limit%22:1%7d",
                "/0/data_base64",
            ),
        ] {
            let page = client.get(path).json();
            let text = page.pointer(pointer).and_then(Value::as_str);
            let back = base64.decode(text.expect("base64")).expect("base64");
            assert!(back == bytes, "{} bytes by {path}", bytes.len());
        }
    }
    // Valid text sent as base64 is text.
    append(
        &mut client,
        &json!({"events": [{"type": "B", "data_base64": "aGk="}]}),
    );
    let page = client.get("/v1/events?reverse=true&limit=1").json();
    assert_eq!(page["events"][0]["data"], "hi");
}

#[test]
fn a_condition_refuses_with_the_facts() {
    let server = store();
    let mut client = server.connect();
    append_events(&mut client, &[("A", &["x"]), ("B", &["y"]), ("A", &["y"])]);
    let query =
        |event_type: &str, tag: &str| json!({"items": [{"types": [event_type], "tags": [tag]}]});
    let event = json!([{"type": "N", "tags": ["n"]}]);
    let cases = [
        (
            json!({"failIfEventsMatch": query("A", "x")}),
            (409, "conflict", Some(1)),
        ),
        (
            json!({"failIfEventsMatch": {"all": true}, "after": 2}),
            (409, "conflict", Some(3)),
        ),
        (
            json!({"failIfExists": query("B", "y")}),
            (409, "already_exists", Some(2)),
        ),
        // Existence looks at the whole log, whatever `after` says.
        (
            json!({"failIfExists": query("B", "y"), "after": 3}),
            (409, "already_exists", Some(2)),
        ),
        (
            json!({"failIfEventsMatch": query("A", "x"), "after": 4}),
            (409, "after_beyond_tip", Some(3)),
        ),
    ];
    for (condition, (status, code, position)) in cases {
        let answer = append(
            &mut client,
            &json!({"events": event, "condition": condition}),
        );
        assert_eq!(
            error(&answer),
            (status, code.into(), position, false),
            "{condition}"
        );
    }
    for condition in [
        json!({"failIfEventsMatch": query("A", "z")}),
        json!({"failIfEventsMatch": query("A", "x"), "after": 1}),
        json!({"failIfEventsMatch": {"items": []}}),
        json!({"failIfExists": query("C", "y"), "failIfEventsMatch": null, "after": null}),
        Value::Null,
    ] {
        let answer = append(
            &mut client,
            &json!({"events": event, "condition": condition}),
        );
        assert_eq!(answer.status, 200, "{condition}: {}", answer.text());
    }
    // Nothing of what was refused is there.
    assert_eq!(client.get("/v1/events").json()["watermark"], 8);
}

#[test]
fn what_is_wrong_in_an_append_is_400_and_named() {
    let server = store();
    let mut client = server.connect();
    let cases = [
        ("", "bad_request", ""),
        ("{", "bad_request", ""),
        ("[]", "bad_request", ""),
        ("{}", "bad_request", "events"),
        (r#"{"events":[]}"#, "empty", "events"),
        (r#"{"events":[{}]}"#, "bad_request", "events[0].type"),
        (
            r#"{"events":[{"type":""}]}"#,
            "bad_request",
            "events[0].type",
        ),
        (
            r#"{"events":[{"type":"T"},{"type":"T","tags":["a","a"]}]}"#,
            "bad_request",
            "events[1].tags[1]",
        ),
        (
            r#"{"events":[{"type":"T","tags":[""]}]}"#,
            "bad_request",
            "events[0].tags[0]",
        ),
        (
            r#"{"events":[{"type":"T","data":1,"data_base64":""}]}"#,
            "bad_request",
            "data_base64",
        ),
        (
            r#"{"events":[{"type":"T","data_base64":"?"}]}"#,
            "bad_request",
            "data_base64",
        ),
        (
            r#"{"events":[{"type":"T","when":"now"}]}"#,
            "bad_request",
            "when",
        ),
        (
            r#"{"events":[{"type":"T"}],"conditions":{}}"#,
            "bad_request",
            "conditions",
        ),
        (
            r#"{"events":[{"type":"T"}],"condition":{}}"#,
            "bad_request",
            "condition",
        ),
        (
            r#"{"events":[{"type":"T"}],"condition":{"after":1}}"#,
            "bad_request",
            "failIfEventsMatch",
        ),
        (
            r#"{"events":[{"type":"T"}],"condition":{"failIfExists":{"all":true},"after":-1}}"#,
            "bad_request",
            "after",
        ),
        (r#"{"events":[{"type":"T"}]} x"#, "bad_request", ""),
        ("{\"events\":[{\"type\":\"\u{0}\"}]}", "bad_request", ""),
    ];
    for (body, code, name) in cases {
        let answer = client.post("/v1/append", body);
        assert_eq!(error(&answer), (400, code.into(), None, false), "{body}");
        assert!(answer.text().contains(name), "{name} in {}", answer.text());
    }
    let answer = client.post("/v1/append", b"{\"events\":[{\"type\":\"\xff\"}]}");
    assert_eq!(answer.status, 400);
    assert_eq!(client.get("/v1/events").json()["watermark"], 0);
}

#[test]
fn what_could_never_be_read_or_stored_is_413() {
    let config = Config {
        limits: Limits {
            body_bytes_max: 4 << 20,
            ..Limits::default()
        },
        ..config()
    };
    let store_config = StoreConfig {
        frame_bytes_max: 64 * 1024,
        segment_bytes: 1 << 20,
        ..StoreConfig::default()
    };
    let server = TestServer::store(config, store_config);
    let mut client = server.connect();
    let event = |len: usize| json!({"type": "T", "data": "x".repeat(len)});
    // An event that no frame could hold.
    let answer = append(&mut client, &json!({"events": [event(70_000)]}));
    assert_eq!(error(&answer), (413, "too_large".into(), None, false));
    assert_eq!(answer.json()["error"]["limit"], 64 * 1024);
    // Events that don't fit a segment together.
    let answer = append(&mut client, &json!({"events": vec![event(60_000); 20]}));
    assert_eq!(error(&answer), (413, "too_large".into(), None, false));
    let answer = append(&mut client, &json!({"events": vec![event(60_000); 10]}));
    assert_eq!(answer.text(), "{\"first\":1,\"last\":10}\n");
    // And a body that is longer than any that is read.
    let answer = append(&mut client, &json!({"events": vec![event(60_000); 80]}));
    assert_eq!((answer.status, answer.closes()), (413, true));
    client.expect_end();
    let mut client = server.connect();
    assert_eq!(client.get("/v1/events").json()["watermark"], 10);
}

#[test]
fn a_page_has_what_was_asked_for() {
    let server = store();
    let mut client = server.connect();
    append_events(
        &mut client,
        &[
            ("A", &["x"]),
            ("B", &["x", "y"]),
            ("A", &["y"]),
            ("C", &[]),
            ("A", &["x", "y"]),
            ("B", &["z"]),
        ],
    );
    let query = |items: Value| format!("query={}", escaped(&json!({"items": items})));
    let cases: [(String, &[u64], Option<u64>); 25] = [
        (String::new(), &[1, 2, 3, 4, 5, 6], None),
        ("type=A".into(), &[1, 3, 5], None),
        ("type=A&type=C".into(), &[1, 3, 4, 5], None),
        ("tag=x&tag=y".into(), &[2, 5], None),
        ("tag=y&type=A".into(), &[3, 5], None),
        ("type=none".into(), &[], None),
        ("type=%41".into(), &[1, 3, 5], None),
        (
            query(json!([{"types": ["C"]}, {"tags": ["x", "y"]}])),
            &[2, 4, 5],
            None,
        ),
        (query(json!([])), &[], None),
        (query(json!([{}])), &[1, 2, 3, 4, 5, 6], None),
        (
            format!("query={}", escaped(&json!({"all": true}))),
            &[1, 2, 3, 4, 5, 6],
            None,
        ),
        ("after=4".into(), &[5, 6], None),
        ("after=6".into(), &[], None),
        ("after=7".into(), &[], None),
        ("after=18446744073709551615".into(), &[], None),
        ("limit=2".into(), &[1, 2], Some(2)),
        ("limit=6".into(), &[1, 2, 3, 4, 5, 6], None),
        ("limit=0".into(), &[], None),
        ("limit=2&after=4".into(), &[5, 6], None),
        ("type=A&limit=2&after=1".into(), &[3, 5], None),
        ("type=A&limit=1&after=1".into(), &[3], Some(3)),
        ("reverse=true".into(), &[6, 5, 4, 3, 2, 1], None),
        ("reverse=true&after=4".into(), &[3, 2, 1], None),
        ("reverse=true&limit=2&tag=x".into(), &[5, 2], Some(2)),
        ("reverse=true&after=1".into(), &[], None),
    ];
    for (params, expected, next) in cases {
        let page = client.get(&format!("/v1/events?{params}")).json();
        assert_eq!(positions(&page), expected, "{params}");
        assert_eq!(page["watermark"], 6, "{params}");
        assert_eq!(page.get("next").and_then(Value::as_u64), next, "{params}");
    }
}

#[test]
fn an_empty_store_answers_too() {
    let server = store();
    let mut client = server.connect();
    for params in ["", "?reverse=true", "?limit=0", "?after=0&reverse=true"] {
        let page = client.get(&format!("/v1/events{params}"));
        assert_eq!(page.text(), "{\"events\":[],\"watermark\":0}\n", "{params}");
    }
    assert_eq!(client.get("/read").text(), "[]\n");
}

#[test]
fn pages_visit_every_event_once_in_both_directions() {
    let server = store();
    let mut client = server.connect();
    let events: Vec<(&str, &[&str])> = (0..100)
        .map(|n| {
            if n % 3 == 0 {
                ("A", &["x"][..])
            } else {
                ("B", &[][..])
            }
        })
        .collect();
    append_events(&mut client, &events);
    for (filter, reverse, step) in [
        ("", false, 1),
        ("", true, 1),
        ("type=A&", false, 3),
        ("type=A&", true, 3),
    ] {
        let mut expected: Vec<u64> = (1..=100).step_by(step).collect();
        if reverse {
            expected.reverse();
        }
        for limit in [1, 7, 34, 99, 100, 101] {
            let mut seen = Vec::new();
            let mut after = String::new();
            loop {
                let page = client
                    .get(&format!(
                        "/v1/events?{filter}reverse={reverse}&limit={limit}{after}"
                    ))
                    .json();
                assert!(positions(&page).len() <= limit);
                seen.extend(positions(&page));
                let Some(next) = page.get("next") else { break };
                assert_eq!(
                    positions(&page).len(),
                    limit,
                    "a page before the last is full"
                );
                after = format!("&after={next}");
            }
            assert_eq!(seen, expected, "{filter} {reverse} {limit}");
        }
    }
}

#[test]
fn parameters_that_cannot_be_read_are_400_and_named() {
    let server = store();
    let mut client = server.connect();
    for (target, name) in [
        ("/v1/events?types=A", "types"),
        ("/v1/events?after=-1", "after"),
        ("/v1/events?after=+1", "after"),
        ("/v1/events?after=1&after=2", "after"),
        ("/v1/events?after=18446744073709551616", "after"),
        ("/v1/events?limit=ten", "limit"),
        ("/v1/events?limit=10001", "limit"),
        ("/v1/events?reverse=yes", "reverse"),
        ("/v1/events?type=", "type"),
        ("/v1/events?tag=a&tag=a", "tag"),
        ("/v1/events?tag=%ff", "tag"),
        ("/v1/events?tag=%zz", "tag"),
        ("/v1/events?query=x", "query"),
        ("/v1/events?query=%7b%22all%22:true%7d&type=A", "query"),
        ("/v1/subscribe?limit=1", "limit"),
        ("/v1/subscribe?after=first", "after"),
        ("/read?option=1", "option"),
        ("/read?options=%7b%22up%22:1%7d", "up"),
    ] {
        let answer = client.get(target);
        assert_eq!(
            error(&answer),
            (400, "bad_request".into(), None, false),
            "{target}"
        );
        assert!(answer.text().contains(name), "{name} in {}", answer.text());
    }
    assert_eq!(
        client.get("/v1/events?limit=10001").json()["error"]["limit"],
        10_000
    );
    assert_eq!(client.get("/v1/events?limit=10000").status, 200);
}

#[test]
fn a_stream_of_lines_has_no_bound() {
    let server = store();
    let mut client = server.connect();
    let events: Vec<(&str, &[&str])> = vec![("A", &["tag"]); 2_000];
    for _ in 0..6 {
        append_events(&mut client, &events);
    }
    let mut read = |params: &str| {
        client.send(format!(
            "GET /v1/events{params} HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n"
        ));
        let answer = client.answer();
        assert_eq!(answer.field("content-type"), Some("application/x-ndjson"));
        let positions: Vec<u64> = answer
            .text()
            .lines()
            .map(|line| {
                let event: Value = serde_json::from_str(line).expect("each line is an event");
                assert_eq!(
                    (&event["type"], &event["tags"][0]),
                    (&json!("A"), &json!("tag"))
                );
                event["position"].as_u64().expect("a position")
            })
            .collect();
        positions
    };
    assert_eq!(read(""), (1..=12_000).collect::<Vec<_>>());
    assert_eq!(
        read("?limit=11000&after=10"),
        (11..=11_010).collect::<Vec<_>>()
    );
    assert_eq!(read("?reverse=true&limit=3"), [12_000, 11_999, 11_998]);
    assert_eq!(read("?type=B"), [0_u64; 0]);
    assert_eq!(read("?limit=0"), [0_u64; 0]);
    // A page of the most events that one may have, which is far more than is read at once.
    let page = client.get("/v1/events?limit=10000");
    assert_eq!(page.field("transfer-encoding"), Some("chunked"));
    assert_eq!(positions(&page.json()), (1..=10_000).collect::<Vec<_>>());
    assert_eq!(page.json()["next"], 10_000);
    // To a client that doesn't know chunks, closed at its end.
    client.send(
        "GET /v1/events?limit=10000 HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n",
    );
    let old = client.answer();
    assert_eq!(old.field("transfer-encoding"), None);
    assert!(old.closes());
    assert!(old.body == page.body);
}

#[test]
fn the_dcb_contract_is_kept() {
    let server = store();
    let mut client = server.connect();
    let mut post = |body: Value| {
        let answer = client.post("/append", body.to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        assert!(answer["durationInMicroseconds"].is_u64(), "{answer}");
        answer["appendConditionFailed"].as_bool().expect("a flag")
    };
    let event =
        |event_type: &str, tag: &str| json!({"type": event_type, "tags": [tag], "data": "d"});
    let query = json!({"items": [{"types": ["A"], "tags": ["x"]}]});
    assert!(!post(json!({"events": event("A", "x")})));
    assert!(!post(json!({"events": [event("B", "x"), event("A", "y")]})));
    assert!(post(
        json!({"events": event("A", "x"), "condition": {"failIfEventsMatch": query}})
    ));
    assert!(!post(
        json!({"events": event("C", "x"), "condition": {"failIfEventsMatch": query, "after": 1}})
    ));
    // What is wrong is an error here too.
    let answer = client.post("/append", "{\"events\":[]}");
    assert_eq!(answer.status, 400);
    let mut read = |query: Option<&Value>, options: Value| {
        let query = query.map_or_else(String::new, |query| format!("query={}&", escaped(query)));
        let answer = client.get(&format!("/read?{query}options={}", escaped(&options)));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let events = answer.json();
        let events = events.as_array().expect("an array").clone();
        events
            .iter()
            .map(|event| event["position"].as_u64().expect("a position"))
            .collect::<Vec<_>>()
    };
    assert_eq!(read(None, json!({})), [1, 2, 3, 4]);
    assert_eq!(read(Some(&query), json!({})), [1]);
    assert_eq!(read(None, json!({"backwards": true, "limit": 2})), [4, 3]);
    assert_eq!(read(None, json!({"after": 2, "limit": 1})), [3]);
    assert_eq!(read(None, json!({"backwards": true, "after": 3})), [2, 1]);
    assert_eq!(read(None, json!({"from": 3})), [3, 4]);
    assert_eq!(read(None, json!({"limit": 0})), [0_u64; 0]);
    let first = &client.get("/read").json()[0];
    assert_eq!(
        *first,
        json!({"type": "A", "tags": ["x"], "data": "d", "position": 1})
    );
}

#[test]
fn each_path_takes_its_methods_and_says_which() {
    let server = store();
    let mut client = server.connect();
    let paths = [
        ("/v1/append", "POST, OPTIONS"),
        ("/append", "POST, OPTIONS"),
        ("/v1/events", "GET, HEAD, OPTIONS"),
        ("/v1/subscribe", "GET, HEAD, OPTIONS"),
        ("/v1/stats", "GET, HEAD, OPTIONS"),
        ("/read", "GET, HEAD, OPTIONS"),
        ("/healthz", "GET, HEAD, OPTIONS"),
        ("/readyz", "GET, HEAD, OPTIONS"),
    ];
    for (path, allow) in paths {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
            if path == "/v1/subscribe" && method == "GET" {
                continue;
            }
            client.send(format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
            ));
            let answer = if method == "HEAD" {
                client.head_answer()
            } else {
                client.answer()
            };
            let status = match method {
                "OPTIONS" => 204,
                // An empty body is no append.
                "POST" if allow.contains("POST") => 400,
                _ if allow.contains(method) => 200,
                _ => 405,
            };
            assert_eq!(answer.status, status, "{method} {path}");
            let expected = matches!(status, 204 | 405).then_some(allow);
            assert_eq!(answer.field("allow"), expected, "{method} {path}");
        }
    }
    assert_eq!(
        error(&client.get("/v1/nothing")),
        (404, "not_found".into(), None, false)
    );
    assert_eq!(error(&client.get("/v1/events/")).0, 404);
}

#[test]
fn the_answer_to_head_has_the_length_of_that_to_get() {
    let server = store();
    let mut client = server.connect();
    append_events(&mut client, &[("A", &["x"])]);
    for path in [
        "/v1/events",
        "/v1/events?limit=0",
        "/read",
        "/healthz",
        "/v1/events?nonsense",
        "/none",
    ] {
        let get = client.get(path);
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let head = client.head_answer();
        assert_eq!(head.status, get.status);
        assert_eq!(
            head.field("content-length"),
            get.field("content-length"),
            "{path}"
        );
        assert_eq!(
            head.field("content-type"),
            get.field("content-type"),
            "{path}"
        );
    }
    // Long answers and endless ones have heads too, and nothing is left of them in the connection.
    client.send("HEAD /v1/subscribe HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let head = client.head_answer();
    assert_eq!(head.field("content-type"), Some("text/event-stream"));
    assert_eq!(client.get("/healthz").text(), "ok\n");
    server.wait_for("no subscription", |totals| totals.subscriptions_live == 0);
}

#[test]
fn bodies_of_other_types_are_415() {
    let server = store();
    let mut client = server.connect();
    let body = r#"{"events":[{"type":"T"}]}"#;
    let mut post = |path: &str, fields: &str| {
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        client.answer()
    };
    for path in ["/v1/append", "/append"] {
        for fields in [
            "",
            "Content-Type: application/json\r\n",
            "Content-Type: Application/JSON; charset=utf-8\r\n",
            // curl's own, where it wasn't told.
            "Content-Type: application/x-www-form-urlencoded\r\n",
        ] {
            assert_eq!(post(path, fields).status, 200, "{fields}");
        }
        for fields in [
            "Content-Type: text/plain\r\n",
            "Content-Type: application/jsonx\r\n",
            "Content-Type: multipart/form-data; boundary=application/json\r\n",
            // A form of a page, which could come from anywhere if it were not for its Origin.
            "Content-Type: application/x-www-form-urlencoded\r\nOrigin: http://localhost\r\n",
        ] {
            let answer = post(path, fields);
            assert_eq!(
                error(&answer),
                (415, "unsupported_media_type".into(), None, false),
                "{fields}"
            );
        }
    }
}

#[test]
fn pages_of_the_web_and_foreign_names_are_kept_out() {
    let server = store();
    let mut client = server.connect();
    let port = server.addr().port();
    let mut ask = |host: &str, origin: Option<&str>| {
        let origin = origin.map_or_else(String::new, |origin| format!("Origin: {origin}\r\n"));
        client.send(format!(
            "GET /v1/events HTTP/1.1\r\nHost: {host}\r\n{origin}\r\n"
        ));
        client.answer()
    };
    let own = format!("127.0.0.1:{port}");
    for (host, origin) in [
        (own.as_str(), None),
        ("localhost", None),
        ("LOCALHOST:1", None),
        ("[::1]:9000", None),
        (&own, Some(format!("http://{own}"))),
        ("Localhost:80", Some("https://localhost:80".into())),
    ] {
        assert_eq!(
            ask(host, origin.as_deref()).status,
            200,
            "{host} {origin:?}"
        );
    }
    for (host, origin) in [
        ("example.org", None),
        ("localhost.example.org", None),
        ("127.0.0.1.example.org:9000", None),
        // A name that its owner has resolve to this machine.
        ("evil.example", Some("http://evil.example")),
        (&own, Some("http://evil.example")),
        (&own, Some("null")),
        (&own, Some("")),
        (&own, Some("http://localhost")),
        ("localhost", Some("http://localhost.evil.example")),
    ] {
        let answer = ask(host, origin);
        assert_eq!(
            error(&answer),
            (403, "forbidden".into(), None, false),
            "{host} {origin:?}"
        );
        assert_eq!(answer.field("access-control-allow-origin"), None);
    }
    // An HTTP/1.0 client need not name a host; then nobody knows whom it means.
    client.send("GET /v1/events HTTP/1.0\r\n\r\n");
    assert_eq!(client.answer().status, 403);
}

#[test]
fn health_and_statistics_are_told() {
    let server = store();
    let mut client = server.connect();
    for path in ["/healthz", "/readyz"] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.text()), (200, "ok\n"));
    }
    append_events(&mut client, &[("A", &[]), ("B", &[])]);
    let _other = {
        let mut other = server.connect();
        assert_eq!(other.get("/healthz").status, 200);
        other
    };
    let answer = client.get("/v1/stats");
    let stats = answer.json();
    assert_eq!(stats["event_count"], 2);
    assert_eq!(stats["active_connections"], 2);
    assert_eq!(stats["active_subscriptions"], 0);
    assert_eq!(stats["connections_refused"], 0);
    assert_eq!(stats["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(stats["segment_count"], 1);
    assert!(stats["disk_bytes"].as_u64() > Some(0));
    assert!(stats["uptime_seconds"].is_u64());
    // Many at once measure the disk once; each has its answer.
    client.send(get("/v1/stats").repeat(20));
    for _ in 0..20 {
        assert_eq!(client.answer().json()["event_count"], 2);
    }
}

/// The condition is part of the commit: of any number who saw the same, one gets through.
#[test]
fn of_racing_appends_under_one_condition_exactly_one_succeeds() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 25;
    let config = Config {
        workers: 2,
        ..config()
    };
    let server = TestServer::store(config, StoreConfig::default());
    let addr = server.addr();
    let barrier = Arc::new(Barrier::new(CLIENTS));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                let mut connection = Client::connect(addr);
                let mut wins = 0;
                for round in 0..ROUNDS {
                    let tag = format!("round:{round}");
                    let body = json!({
                        "events": [{"type": "Won", "tags": [tag], "data": client}],
                        "condition": {"failIfEventsMatch": {"items": [{"tags": [tag]}]}},
                    });
                    barrier.wait();
                    let answer = append(&mut connection, &body);
                    match answer.status {
                        200 => wins += 1,
                        409 => {
                            let (_, code, position, retryable) = error(&answer);
                            assert_eq!(code, "conflict");
                            // Either the winner is on disk, with its position, or it is about to be.
                            assert_eq!(position.is_none(), retryable);
                        }
                        status => panic!("{status}: {}", answer.text()),
                    }
                }
                wins
            })
        })
        .collect();
    let wins: usize = clients
        .into_iter()
        .map(|client| client.join().expect("no answer but these two"))
        .sum();
    assert_eq!(wins, ROUNDS);
    let page = server.connect().get("/v1/events").json();
    assert_eq!(positions(&page), (1..=ROUNDS as u64).collect::<Vec<_>>());
}

#[test]
fn appends_that_find_the_queue_full_wait_and_are_carried_out() {
    let store_config = StoreConfig {
        queue_capacity: 1,
        ..StoreConfig::default()
    };
    let server = TestServer::store(config(), store_config);
    let addr = server.addr();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(move || {
                let mut client = Client::connect(addr);
                let request = support::post("/v1/append", r#"{"events":[{"type":"T"}]}"#);
                client.send(request.repeat(10));
                let position =
                    |answer: Answer| answer.json()["first"].as_u64().expect("a position");
                (0..10)
                    .map(|_| position(client.answer()))
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let mut seen = Vec::new();
    for client in clients {
        let positions = client.join().expect("each was answered");
        assert!(positions.is_sorted(), "{positions:?}");
        seen.extend(positions);
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=80).collect::<Vec<_>>());
    assert!(server.totals().appends_stalled > 0);
}
