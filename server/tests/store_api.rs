//! The store's HTTP API as a whole: the DCB contract, methods, types, origins, and who may ask.
#![cfg(feature = "store")]

use serde_json::{Value, json};
use support::get;
use support::store::{append_events, error, escaped, store};

mod support;

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
