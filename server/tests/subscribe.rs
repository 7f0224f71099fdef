//! Subscriptions over HTTP: every event once and in order, from the store or live, however slowly it is taken.
#![cfg(feature = "store")]

use std::thread;
use std::time::Duration;

use pumice::{Config, StoreConfig};
use serde_json::json;
use support::{Client, EventStream, Sse, TestServer, config};

mod support;

fn store() -> TestServer {
    TestServer::store(config(), StoreConfig::default())
}

/// Appends events of these types in one go.
#[track_caller]
fn append(client: &mut Client, types: &[&str]) {
    let events: Vec<_> = types
        .iter()
        .map(|event_type| json!({"type": event_type, "tags": ["t"], "data": "d"}))
        .collect();
    let answer = client.post("/v1/append", json!({"events": events}).to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[track_caller]
fn subscribe(server: &TestServer, params: &str) -> EventStream {
    EventStream::open(server.connect(), &format!("/v1/subscribe{params}"), "")
}

#[test]
fn a_subscriber_catches_up_is_told_and_goes_on_live() {
    let server = store();
    let mut client = server.connect();
    append(&mut client, &["A", "B", "A"]);
    let mut stream = subscribe(&server, "?after=0");
    let (id, event, data) = stream.next_event();
    assert_eq!((id.as_deref(), event.as_str()), (Some("1"), "event"));
    assert_eq!(data, r#"{"position":1,"type":"A","tags":["t"],"data":"d"}"#);
    assert_eq!(stream.next_position(), 2);
    assert_eq!(stream.next_position(), 3);
    stream.expect_caught_up(3);
    for position in 4..10 {
        append(&mut client, &["C"]);
        assert_eq!(stream.next_position(), position);
        stream.expect_caught_up(position);
    }
    assert_eq!(server.totals().subscriptions_live, 1);
}

#[test]
fn a_subscriber_of_an_empty_store_is_at_its_edge() {
    let server = store();
    let mut stream = subscribe(&server, "");
    stream.expect_caught_up(0);
    append(&mut server.connect(), &["A"]);
    assert_eq!(stream.next_position(), 1);
}

#[test]
fn a_subscriber_gets_what_matches_its_query_and_nothing_else() {
    let server = store();
    let mut client = server.connect();
    append(&mut client, &["A", "B", "A"]);
    let mut typed = subscribe(&server, "?type=B");
    assert_eq!(typed.next_position(), 2);
    typed.expect_caught_up(3);
    let mut none = subscribe(&server, "?query=%7b%22items%22:[]%7d");
    none.expect_caught_up(3);
    append(&mut client, &["A"]);
    append(&mut client, &["A", "B"]);
    assert_eq!(typed.next_position(), 6);
    typed.expect_caught_up(6);
    // What it was told in between is nothing at all.
    assert!(none.client().try_send("").is_ok());
    none.client().expect_silence(Duration::from_millis(50));
}

#[test]
fn a_subscription_starts_where_it_is_told_to() {
    let server = store();
    let mut client = server.connect();
    append(&mut client, &["A", "B", "C", "D"]);
    let open = |params: &str, fields: &str| {
        EventStream::open(server.connect(), &format!("/v1/subscribe{params}"), fields)
    };
    // What a browser says when it comes back counts more than the address that it was given at first.
    for (params, fields, first) in [
        ("?after=2", "", 3),
        ("?after=0", "Last-Event-ID: 3\r\n", 4),
        ("?after=latest", "Last-Event-ID: 1\r\n", 2),
        ("", "last-event-id: 0\r\n", 1),
    ] {
        let mut stream = open(params, fields);
        assert_eq!(stream.next_position(), first, "{params} {fields}");
    }
    let mut latest = open("?after=latest", "");
    latest.expect_caught_up(4);
    let mut tip = open("?after=4", "");
    tip.expect_caught_up(4);
    append(&mut client, &["E"]);
    assert_eq!(latest.next_position(), 5);
    assert_eq!(tip.next_position(), 5);
}

#[test]
fn a_place_that_is_none_is_an_error_and_never_a_reset() {
    let server = store();
    let mut client = server.connect();
    append(&mut client, &["A", "B"]);
    let mut ask = |params: &str, fields: &str| {
        client.send(format!(
            "GET /v1/subscribe{params} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"
        ));
        let answer = client.answer();
        assert_eq!(answer.status, 400, "{params} {fields}");
        answer.json()["error"].clone()
    };
    // The client has seen a log that isn't this one.
    assert_eq!(ask("?after=3", "")["position"], 2);
    assert_eq!(ask("", "Last-Event-ID: 1000\r\n")["position"], 2);
    for id in ["x", "-1", "1.5", "", "\u{e4}"] {
        let error = ask("", &format!("Last-Event-ID: {id}\r\n"));
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("Last-Event-ID"), "{message}");
    }
}

#[test]
fn a_silent_stream_beats() {
    let store_config = StoreConfig {
        heartbeat: Duration::from_millis(50),
        ..StoreConfig::default()
    };
    let server = TestServer::store(config(), store_config);
    let mut stream = subscribe(&server, "");
    stream.expect_caught_up(0);
    for _ in 0..3 {
        assert_eq!(stream.next(), Some(Sse::Comment));
    }
    append(&mut server.connect(), &["A"]);
    assert_eq!(stream.next_position(), 1);
    stream.expect_caught_up(1);
    assert_eq!(stream.next(), Some(Sse::Comment));
}

/// Committed between the last read and the first live event, while the subscriber is on its way to the edge.
#[test]
fn nothing_is_missed_or_repeated_on_the_way_to_the_edge() {
    const EVENTS: u64 = 600;
    let config = Config {
        workers: 2,
        ..config()
    };
    let server = TestServer::store(config, StoreConfig::default());
    let addr = server.addr();
    let writers: Vec<_> = (0..3)
        .map(|_| {
            thread::spawn(move || {
                let mut client = Client::connect(addr);
                for batch in 0..50 {
                    append(&mut client, &["A", "B", "A", "A"][..1 + batch % 4]);
                }
                let rest = EVENTS as usize / 3 - 50 / 4 * 10 - 3;
                append(&mut client, &vec!["B"; rest]);
            })
        })
        .collect();
    let readers: Vec<_> = (0..6)
        .map(|reader| {
            thread::spawn(move || {
                // Each at another moment.
                let mut client = Client::connect(addr);
                let tip = loop {
                    let page = client.get("/v1/events?limit=0").json();
                    let tip = page["watermark"].as_u64().expect("a position");
                    if tip >= reader * 60 {
                        break tip;
                    }
                };
                let after = tip.saturating_sub(40);
                let target = format!("/v1/subscribe?after={after}");
                let mut stream = EventStream::open(Client::connect(addr), &target, "");
                for position in after + 1..=EVENTS {
                    assert_eq!(stream.next_position(), position);
                }
            })
        })
        .collect();
    for thread in writers.into_iter().chain(readers) {
        thread.join().expect("every event came once and in order");
    }
}

#[test]
fn a_slow_reader_falls_back_to_the_store_and_comes_back_live() {
    let config = Config {
        outbox_bytes_max: 32 * 1024,
        ..config()
    };
    let server = TestServer::store(config, StoreConfig::default());
    let mut client = server.connect();
    let mut quick = subscribe(&server, "");
    quick.expect_caught_up(0);
    let slow = Client::connect_with_small_window(server.addr());
    let mut slow = EventStream::open(slow, "/v1/subscribe", "");
    slow.expect_caught_up(0);
    let data = "x".repeat(20_000);
    let mut tip = 0;
    for _ in 0..2 {
        // 8 MB, more than its sockets and its outbox hold.
        let events = json!({"events": vec![json!({"type": "T", "data": data}); 40]}).to_string();
        for _ in 0..10 {
            assert_eq!(client.post("/v1/append", &events).status, 200);
            tip += 40;
        }
        // Who keeps up is not held up.
        for position in tip - 399..=tip {
            assert_eq!(quick.next_position(), position);
        }
        for position in tip - 399..=tip {
            assert_eq!(slow.next_position(), position);
        }
        // And live again.
        append(&mut client, &["L"]);
        tip += 1;
        assert_eq!(quick.next_position(), tip);
        assert_eq!(slow.next_position(), tip);
    }
}

#[test]
fn each_of_many_subscribers_gets_each_event() {
    let config = Config {
        workers: 2,
        ..config()
    };
    let server = TestServer::store(config, StoreConfig::default());
    let mut client = server.connect();
    append(&mut client, &["A", "B"]);
    let mut streams: Vec<_> = (0..50)
        .map(|index| {
            let mut stream = subscribe(
                &server,
                ["", "?type=A", "?tag=t&type=B", "?after=latest"][index % 4],
            );
            let caught_up: &[u64] = [&[1, 2][..], &[1], &[2], &[]][index % 4];
            for &position in caught_up {
                assert_eq!(stream.next_position(), position);
            }
            stream.expect_caught_up(2);
            stream
        })
        .collect();
    assert_eq!(server.totals().subscriptions_live, 50);
    append(&mut client, &["A", "B", "A"]);
    append(&mut client, &["B"]);
    for (index, stream) in streams.iter_mut().enumerate() {
        let live: &[u64] = [&[3, 4, 5, 6][..], &[3, 5], &[4, 6], &[3, 4, 5, 6]][index % 4];
        for &position in live {
            assert_eq!(stream.next_position(), position);
        }
    }
}

#[test]
fn a_subscriber_that_vanishes_leaves_nothing_behind() {
    // A place that was not given back would soon be missed.
    let config = Config {
        connections_max: 3,
        ..config()
    };
    let server = TestServer::store(config, StoreConfig::default());
    let mut client = server.connect();
    append(&mut client, &["A"]);
    for round in 0..12 {
        let mut stream = subscribe(&server, "");
        assert_eq!(stream.next_position(), 1);
        if round % 2 == 0 {
            stream.expect_caught_up(1);
        }
        let client = stream.into_client();
        match round % 3 {
            0 => drop(client),
            1 => client.reset(),
            _ => {
                client.shutdown_write();
                server.wait_for("its end is seen", |totals| totals.subscriptions_live == 0);
            }
        }
    }
    server.wait_for("no subscription", |totals| totals.subscriptions_live == 0);
    server.wait_for("no connection", |totals| totals.connections_open == 1);
    // The tail goes on for those who come later.
    let mut stream = subscribe(&server, "?after=latest");
    stream.expect_caught_up(1);
    append(&mut client, &["B"]);
    assert_eq!(stream.next_position(), 2);
}

#[test]
fn an_http_1_0_client_subscribes_without_chunks() {
    let server = store();
    append(&mut server.connect(), &["A"]);
    let mut client = server.connect();
    client.send("GET /v1/subscribe HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let head = client.read_head();
    assert!(!head.contains("chunked"), "{head}");
    assert!(head.contains("Connection: close\r\n"), "{head}");
    let text = client.read_through(b"event: caught-up\ndata: {\"watermark\":1}\n\n");
    assert!(text.starts_with(b"id: 1\nevent: event\ndata: {\"position\":1,"));
}

#[test]
fn a_subscriber_that_pipelines_its_request_behind_others_gets_them_all() {
    let server = store();
    let mut client = server.connect();
    let subscribe = support::get("/v1/subscribe");
    let append = support::post("/v1/append", r#"{"events":[{"type":"T"}]}"#);
    client.send([append.clone(), append, support::get("/healthz"), subscribe].concat());
    for text in [
        "{\"first\":1,\"last\":1}\n",
        "{\"first\":2,\"last\":2}\n",
        "ok\n",
    ] {
        assert_eq!(client.answer().text(), text);
    }
    let mut stream = EventStream::begin(client);
    assert_eq!(stream.next_position(), 1);
    assert_eq!(stream.next_position(), 2);
    stream.expect_caught_up(2);
}

#[test]
fn a_stream_is_ended_in_order_when_the_server_stops() {
    let mut server = store();
    append(&mut server.connect(), &["A"]);
    let mut streams: Vec<_> = (0..5).map(|_| subscribe(&server, "")).collect();
    for stream in &mut streams {
        assert_eq!(stream.next_position(), 1);
        stream.expect_caught_up(1);
    }
    server.handle().stop();
    for stream in &mut streams {
        // The last chunk, then the end.
        assert_eq!(stream.next(), None);
        stream.client().expect_end();
    }
    server.join();
}
