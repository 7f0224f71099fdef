//! Clients that close one half of the connection, or all of it, before they have their answer.

use std::thread;
use std::time::Duration;

#[cfg(feature = "store")]
use pumice::StoreConfig;
use pumice::{Config, Inline, Request, Response};
use support::{Client, Gate, TestServer, app, both, config, cpu_time, get, pattern, post};

mod support;

#[test]
fn a_request_before_the_end_is_answered_whole() {
    for server in both(config()) {
        // Small, and more than the outbox holds.
        for len in [6, 3 << 20] {
            let mut client = server.connect();
            client.send_get(&format!("/bytes/{len}"));
            client.shutdown_write();
            let answer = client.answer();
            assert!(answer.body == pattern(len, len as u32), "{len} bytes");
            client.expect_end();
        }
        server.wait_for("closed", |totals| totals.connections_open == 0);
        assert_eq!(server.totals().closed_by_peer, 2);
    }
}

#[test]
fn all_pipelined_requests_before_the_end_are_answered() {
    for server in both(config()) {
        let mut client = server.connect();
        let mut requests: Vec<u8> = (0..20)
            .flat_map(|number| post("/echo", number.to_string()))
            .collect();
        requests.extend_from_slice(&get("/bytes/1000000"));
        // And half a request, which nobody can answer.
        requests.extend_from_slice(b"GET /hel");
        client.send(requests);
        client.shutdown_write();
        for number in 0..20 {
            assert_eq!(client.answer().text(), number.to_string());
        }
        assert_eq!(client.answer().body.len(), 1_000_000);
        client.expect_gone();
        server.wait_for("closed", |totals| totals.connections_open == 0);
    }
}

#[test]
fn an_unfinished_request_at_the_end_is_closed_at_once() {
    for server in both(config()) {
        for request in [
            "",
            "GET",
            "GET /hello HTTP/1.1\r\nHost: a\r\n",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        ] {
            let mut client = server.connect();
            client.send(request);
            client.shutdown_write();
            let rest = client.read_to_end();
            assert!(!rest.starts_with(b"HTTP/1.1 200"), "{request:?}");
        }
        server.wait_for("closed", |totals| totals.connections_open == 0);
        assert_eq!(server.totals().http_requests, 0);
    }
}

/// `/task` tells which thread the worker is; `/wait` waits at the gate on a handler thread.
struct Waiting(Gate);

impl pumice::Handler for Waiting {
    fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match request.path() {
            "/task" => {
                let task = std::fs::read_link("/proc/thread-self").expect("this runs on Linux");
                response.bytes(task.into_os_string().into_encoded_bytes());
            }
            "/wait" => {
                self.0.wait();
                response.text("waited\n");
            }
            _ => app(request, response),
        }
    }

    fn execution(&self, request: &Request<'_>) -> pumice::Execution {
        match request.path() {
            "/wait" => pumice::Execution::Offloaded,
            _ => pumice::Execution::Inline,
        }
    }
}

/// The worker's time on a processor while nothing happens for a while.
fn idle_cost(task: &str) -> Duration {
    let before = cpu_time(task);
    thread::sleep(Duration::from_millis(200));
    cpu_time(task) - before
}

#[test]
fn an_end_or_more_bytes_during_a_handler_cost_no_cpu_and_the_answer_comes() {
    let gate = Gate::default();
    let server = TestServer::http(config(), Waiting(gate.clone()));
    let task = server.connect().get("/task").text().to_owned();
    let mut ended = server.connect();
    ended.send_get("/wait");
    ended.shutdown_write();
    let mut eager = server.connect();
    eager.send([get("/wait"), get("/hello")].concat());
    gate.wait_for_arrivals(2);
    eager.send(get("/hello"));
    let cost = idle_cost(&task);
    assert!(cost < Duration::from_millis(20), "{cost:?} of 200 ms");
    gate.open();
    assert_eq!(ended.answer().text(), "waited\n");
    ended.expect_end();
    for text in ["waited\n", "hello\n", "hello\n"] {
        assert_eq!(eager.answer().text(), text);
    }
}

#[test]
fn an_end_before_a_large_answer_is_taken_costs_no_cpu_and_loses_nothing() {
    let len = 16 << 20;
    let server = TestServer::http(config(), Waiting(Gate::default()));
    let task = server.connect().get("/task").text().to_owned();
    let mut client = Client::connect_with_small_window(server.addr());
    client.send_get(&format!("/bytes/{len}"));
    client.shutdown_write();
    // The answer is as large as it gets in the sockets, and the rest waits.
    client.read_exact(1);
    let sent = server.totals().bytes_written;
    let cost = idle_cost(&task);
    assert!(cost < Duration::from_millis(20), "{cost:?} of 200 ms");
    assert!(server.totals().bytes_written - sent < len as u64);
    let rest = client.read_to_end();
    assert!(rest.ends_with(&pattern(len, len as u32)));
}

#[test]
fn clients_that_vanish_leave_nothing_behind() {
    for server in both(config()) {
        for round in 0..150 {
            let mut client = server.connect();
            match round % 5 {
                // Request and end in one read.
                0 => client.send_get("/hello"),
                1 => client.send_get("/bytes/300000"),
                2 => client.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\nx"),
                3 => {
                    client.send([get("/hello"), get("/bytes/3000000")].concat());
                    client.read_exact(10);
                }
                _ => {}
            }
            if round % 2 == 0 {
                client.reset();
            }
        }
        server.wait_for("all are gone", |totals| totals.connections_open == 0);
        assert_eq!(server.connect().get("/hello").text(), "hello\n");
    }
}

#[test]
fn an_answer_for_a_client_that_is_gone_is_dropped() {
    let gate = Gate::default();
    let config = Config {
        connections_max: 1,
        ..config()
    };
    let server = TestServer::http(config, Waiting(gate.clone()));
    let mut client = server.connect();
    client.send_get("/wait");
    gate.wait_for_arrivals(1);
    client.reset();
    gate.open();
    // The only place there is comes free, and its next owner gets answers of its own.
    let mut client = server.connect();
    assert_eq!(client.get("/hello").text(), "hello\n");
    assert_eq!(server.totals().connections_accepted, 2);
}

#[cfg(feature = "store")]
#[test]
fn an_append_is_carried_out_though_its_client_closed_at_once() {
    let server = TestServer::store(config(), StoreConfig::default());
    for number in 0..100 {
        let mut client = server.connect();
        client.send_post(
            "/v1/append",
            format!("{{\"events\":[{{\"type\":\"T{number}\"}}]}}"),
        );
        if number % 2 == 0 {
            client.shutdown_write();
            assert_eq!(client.answer().status, 200);
            client.expect_end();
        }
    }
    server.wait_for("all are appended", |totals| totals.appends == 100);
    server.wait_for("all are gone", |totals| totals.connections_open == 0);
    // In the queue before this one, and so written before it.
    let mut client = server.connect();
    let answer = client.post("/v1/append", r#"{"events":[{"type":"Last"}]}"#);
    assert_eq!(answer.text(), "{\"first\":101,\"last\":101}\n");
}

#[cfg(feature = "store")]
#[test]
fn a_read_before_the_end_comes_whole_whatever_its_length() {
    let server = TestServer::store(config(), StoreConfig::default());
    let mut client = server.connect();
    let data = "x".repeat(4_000);
    for _ in 0..10 {
        let event = format!("{{\"type\":\"T\",\"data\":\"{data}\"}}");
        let events = vec![event; 50].join(",");
        let answer = client.post("/v1/append", format!("{{\"events\":[{events}]}}"));
        assert_eq!(answer.status, 200);
    }
    // 2 MB, four times what the outbox holds.
    for (accept, lines) in [("application/x-ndjson", 500), ("*/*", 1)] {
        let mut client = server.connect();
        client.send(format!(
            "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n"
        ));
        client.shutdown_write();
        let answer = client.answer();
        assert_eq!(answer.text().lines().count(), lines);
        assert!(answer.body.len() > 2_000_000);
        client.expect_end();
    }
}

#[test]
fn the_last_answer_is_not_torn_by_a_client_that_ends_late() {
    let server = TestServer::http(config(), Inline(app));
    let mut client = server.connect();
    client.send("GET /bytes/2000000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let answer = client.answer();
    assert!(answer.body == pattern(2_000_000, 2_000_000));
    client.expect_end();
    client.shutdown_write();
}
