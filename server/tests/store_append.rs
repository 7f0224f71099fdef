//! Appends over HTTP: what they store, what refuses them, and what they do when many come at once.
#![cfg(feature = "store")]

use std::sync::{Arc, Barrier};
use std::thread;

use pumice::{Config, Limits, StoreConfig};
use serde_json::{Value, json};
use support::store::{append, append_events, error, positions, store};
use support::{Answer, Client, TestServer, config, get, pattern};

mod support;

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
