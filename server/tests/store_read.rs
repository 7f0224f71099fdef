//! Reads over HTTP: pages, streams of lines, and the parameters that select.
#![cfg(feature = "store")]

use serde_json::{Value, json};
use support::store::{append_events, error, escaped, positions, store};

mod support;

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
