//! An independent HTTP client, with a parser and a connection pool of its own, finds nothing amiss.

use std::io::{self, Read};
#[cfg(feature = "store")]
use std::io::{BufRead, BufReader};

#[cfg(feature = "store")]
use pumice::StoreConfig;
use pumice::{Config, Inline, Limits};
use support::{PATIENCE, TestServer, app, both, config, pattern};
use ureq::{Agent, Body, SendBody, http};

mod support;

/// A client that keeps its connections, and gives an answer as it is whatever its status.
fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into()
}

fn url(server: &TestServer, path: &str) -> String {
    format!("http://{}{path}", server.addr())
}

fn status_and_text(answer: http::Response<Body>) -> (u16, String) {
    let status = answer.status().as_u16();
    let mut text = String::new();
    answer
        .into_body()
        .into_reader()
        .read_to_string(&mut text)
        .expect("a whole body of text");
    (status, text)
}

#[test]
fn its_pool_keeps_one_connection_for_all_requests() {
    for server in both(config()) {
        let agent = agent();
        for _ in 0..5 {
            let answer = agent.get(url(&server, "/hello")).call().expect("an answer");
            assert_eq!(status_and_text(answer), (200, "hello\n".into()));
            let answer = agent.get(url(&server, "/none")).call().expect("an answer");
            assert_eq!(status_and_text(answer), (404, "not found\n".into()));
            let answer = agent
                .head(url(&server, "/hello"))
                .call()
                .expect("an answer");
            assert_eq!(answer.headers()["content-length"], "6");
            assert_eq!(status_and_text(answer), (200, String::new()));
            let answer = agent
                .post(url(&server, "/echo"))
                .send("hi")
                .expect("an answer");
            assert_eq!(status_and_text(answer), (200, "hi".into()));
        }
        assert_eq!(server.totals().connections_accepted, 1);
        assert_eq!(server.totals().http_requests, 20);
    }
}

#[test]
fn it_asks_again_when_the_server_has_closed_meanwhile() {
    let config = Config {
        requests_per_connection_max: 2,
        ..config()
    };
    let server = TestServer::http(config, Inline(app));
    let agent = agent();
    for _ in 0..6 {
        let answer = agent.get(url(&server, "/hello")).call().expect("an answer");
        assert_eq!(status_and_text(answer), (200, "hello\n".into()));
    }
    assert_eq!(server.totals().connections_accepted, 3);
}

#[test]
fn it_uploads_in_chunks_and_downloads_what_it_sent() {
    let config = Config {
        limits: Limits {
            body_bytes_max: 8 << 20,
            ..Limits::default()
        },
        ..config()
    };
    for server in both(config.clone()) {
        let agent = agent();
        for len in [0, 1, 10_000, 3 << 20] {
            let body = pattern(len, 5);
            // Of unknown length, and so in chunks.
            let mut reader = io::Cursor::new(&body);
            let answer = agent
                .post(url(&server, "/echo"))
                .send(SendBody::from_reader(&mut reader))
                .expect("an answer");
            let mut back = Vec::new();
            let mut reader = answer.into_body().into_reader();
            reader.read_to_end(&mut back).expect("a whole body");
            assert!(back == body, "{len} bytes");
            // And with a length, after the server has said that it may come.
            let answer = agent
                .put(url(&server, "/echo"))
                .header("Expect", "100-continue")
                .send(&body)
                .expect("an answer");
            let mut back = Vec::new();
            let mut reader = answer.into_body().into_reader();
            reader.read_to_end(&mut back).expect("a whole body");
            assert!(back == body, "{len} bytes");
        }
    }
}

#[test]
fn it_reads_why_an_upload_was_refused() {
    let server = TestServer::http(config(), Inline(app));
    let agent = agent();
    let body = vec![b'x'; 3 << 20];
    let answer = agent
        .post(url(&server, "/echo"))
        .send(&body)
        .expect("an answer");
    assert_eq!(status_and_text(answer).0, 413);
    let answer = agent
        .get(url(&server, &format!("/{}", "p".repeat(60_000))))
        .call()
        .expect("an answer");
    assert_eq!(status_and_text(answer).0, 414);
    let answer = agent.get(url(&server, "/hello")).call().expect("an answer");
    assert_eq!(status_and_text(answer), (200, "hello\n".into()));
}

#[cfg(feature = "store")]
#[test]
fn it_appends_and_reads_and_streams() {
    let server = TestServer::store(config(), StoreConfig::default());
    let agent = agent();
    let event = format!("{{\"type\":\"T\",\"data\":\"{}\"}}", "x".repeat(500));
    let body = format!("{{\"events\":[{}]}}", vec![event; 1_000].join(","));
    let answer = agent
        .post(url(&server, "/v1/append"))
        .content_type("application/json")
        .send(&body)
        .expect("an answer");
    assert_eq!(
        status_and_text(answer),
        (200, "{\"first\":1,\"last\":1000}\n".into())
    );
    let answer = agent
        .get(url(&server, "/v1/events"))
        .header("Accept", "application/x-ndjson")
        .call()
        .expect("an answer");
    let lines = BufReader::new(answer.into_body().into_reader()).lines();
    for (line, position) in lines.zip(1..) {
        let line = line.expect("a line of text");
        assert!(
            line.starts_with(&format!("{{\"position\":{position},")),
            "{line}"
        );
    }
    let answer = agent
        .get(url(&server, "/v1/events?reverse=true&limit=1"))
        .call()
        .expect("an answer");
    assert!(status_and_text(answer).1.contains("\"position\":1000,"));
    assert_eq!(server.totals().connections_accepted, 1);
}

#[cfg(feature = "store")]
#[test]
fn it_follows_a_subscription_and_leaves_it() {
    let server = TestServer::store(config(), StoreConfig::default());
    let agent = agent();
    let append = || {
        let answer = agent
            .post(url(&server, "/v1/append"))
            .send("{\"events\":[{\"type\":\"T\"}]}")
            .expect("an answer");
        assert_eq!(status_and_text(answer).0, 200);
    };
    append();
    let answer = agent
        .get(url(&server, "/v1/subscribe"))
        .call()
        .expect("an answer");
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut lines = BufReader::new(answer.into_body().into_reader()).lines();
    let mut next_id = || {
        let mut texts = lines.by_ref().map(|line| line.expect("a line of text"));
        texts.find_map(|line| line.strip_prefix("id: ").map(str::to_owned))
    };
    assert_eq!(next_id().as_deref(), Some("1"));
    append();
    assert_eq!(next_id().as_deref(), Some("2"));
    drop(lines);
    server.wait_for("it has left", |totals| totals.subscriptions_live == 0);
}
