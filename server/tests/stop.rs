//! How a server ends: in order and soon, the binary on the first signal, and at once on the second.
#![cfg(feature = "store")]

use std::net::TcpStream;
use std::time::{Duration, Instant};

use pumice::{Config, Request, Response};
use rustix::process::Signal;
use support::{Binary, Client, EventStream, Gate, TestServer, config, get, wait_until};

mod support;

/// A server with nothing to finish ends within a second; a busy machine gets some more. It is below every timer that
/// could hold it up: five seconds of lingering, ten until a stop gives up.
const SOON: Duration = Duration::from_secs(4);

const APPEND: &str = r#"{"events":[{"type":"T"}]}"#;

#[track_caller]
fn expect_soon(start: Instant) {
    let time = start.elapsed();
    assert!(time < SOON, "it took {time:?}");
}

/// Waits until the server, told to stop, has closed its listeners.
fn wait_for_stop(binary: &Binary) {
    let addr = binary.addr();
    wait_until("nobody listens", || TcpStream::connect(addr).is_err());
}

#[test]
fn idle_clients_hold_up_no_end() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut binary = Binary::start();
        let mut used: Vec<_> = (0..5).map(|_| binary.connect()).collect();
        for client in &mut used {
            assert_eq!(client.get("/healthz").text(), "ok\n");
            assert_eq!(client.post("/v1/append", APPEND).status, 200);
        }
        // A browser connects before it knows whether it will ask for anything.
        let mut silent: Vec<_> = (0..2).map(|_| binary.connect()).collect();
        // And some have been refused, and don't go away.
        let mut refused = binary.connect();
        refused.send("NONSENSE\r\n\r\n");
        assert_eq!(refused.answer().status, 400);
        let start = Instant::now();
        binary.signal(signal);
        assert_eq!(binary.wait().code(), Some(0), "{}", binary.log());
        expect_soon(start);
        for client in used.iter_mut().chain(&mut silent) {
            client.expect_end();
        }
    }
}

#[test]
fn a_request_under_way_is_finished_and_told_that_it_was_the_last() {
    let mut binary = Binary::start();
    let mut client = binary.connect();
    let request = support::post("/v1/append", APPEND);
    client.send(&request[..request.len() - 5]);
    // Somebody who waits for nothing shows that the bytes have come.
    let mut other = binary.connect();
    assert_eq!(other.get("/healthz").status, 200);
    let start = Instant::now();
    binary.terminate();
    wait_for_stop(&binary);
    other.expect_end();
    client.send(&request[request.len() - 5..]);
    let answer = client.answer();
    assert_eq!(
        (answer.text(), answer.closes()),
        ("{\"first\":1,\"last\":1}\n", true)
    );
    client.expect_end();
    drop(client);
    assert_eq!(binary.wait().code(), Some(0), "{}", binary.log());
    expect_soon(start);
}

#[test]
fn what_was_pipelined_before_the_signal_is_acknowledged_or_not_taken() {
    let mut binary = Binary::start();
    let mut client = binary.connect();
    let request = support::post("/v1/append", APPEND);
    client.send(request.repeat(300));
    client.read_exact(1);
    binary.terminate();
    let mut acknowledged = 0;
    let mut answers = client.read_to_end();
    answers.insert(0, b'H');
    let text = String::from_utf8(answers).expect("answers of text");
    for answer in text.split("HTTP/1.1 ").skip(1) {
        assert!(answer.starts_with("200 OK"), "{answer}");
        acknowledged += 1;
        assert!(answer.ends_with(&format!(
            "{{\"first\":{acknowledged},\"last\":{acknowledged}}}\n"
        )));
    }
    assert!(text.contains("Connection: close") || acknowledged == 300);
    drop(client);
    assert_eq!(binary.wait().code(), Some(0), "{}", binary.log());
    // Nothing was taken without an answer, and no answer was given for nothing.
    let binary = Binary::start_in(binary.kill(), &[]);
    let page = binary.connect().get("/v1/events?limit=0").json();
    assert_eq!(page["watermark"], acknowledged);
}

#[test]
fn open_streams_are_ended_in_order() {
    let mut binary = Binary::start();
    let mut client = binary.connect();
    assert_eq!(client.post("/v1/append", APPEND).status, 200);
    let mut streams: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = EventStream::open(binary.connect(), "/v1/subscribe", "");
            assert_eq!(stream.next_position(), 1);
            stream.expect_caught_up(1);
            stream
        })
        .collect();
    let start = Instant::now();
    binary.terminate();
    for stream in &mut streams {
        assert_eq!(stream.next(), None);
        stream.client().expect_end();
    }
    assert_eq!(binary.wait().code(), Some(0), "{}", binary.log());
    expect_soon(start);
}

#[test]
fn a_stream_that_is_read_slowly_is_finished_too() {
    let mut binary = Binary::start();
    let mut client = binary.connect();
    let event = format!("{{\"type\":\"T\",\"data\":\"{}\"}}", "x".repeat(20_000));
    let body = format!("{{\"events\":[{}]}}", vec![event; 40].join(","));
    for _ in 0..10 {
        assert_eq!(client.post("/v1/append", &body).status, 200);
    }
    // 8 MB, more than the sockets hold.
    let mut slow = Client::connect_with_small_window(binary.addr());
    slow.send("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n");
    slow.read_exact(1);
    binary.terminate();
    wait_for_stop(&binary);
    let rest = slow.read_to_end();
    assert!(rest.ends_with(b"\r\n0\r\n\r\n"), "the stream was cut short");
    drop(slow);
    assert_eq!(binary.wait().code(), Some(0), "{}", binary.log());
}

#[test]
fn a_signal_to_the_process_and_its_group_is_one_signal() {
    for _ in 0..5 {
        let mut binary = Binary::start();
        binary.connect().get("/healthz");
        binary.terminate();
        binary.terminate();
        assert_eq!(binary.wait().code(), Some(0), "{}", binary.log());
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut binary = Binary::start();
    let mut client = binary.connect();
    let request = support::post("/v1/append", APPEND);
    client.send(&request[..request.len() - 5]);
    assert_eq!(binary.connect().get("/healthz").status, 200);
    binary.terminate();
    wait_for_stop(&binary);
    // Within a tenth of a second it would be the same signal once more.
    std::thread::sleep(Duration::from_millis(110));
    let start = Instant::now();
    binary.terminate();
    assert_eq!(binary.wait().code(), Some(143), "{}", binary.log());
    expect_soon(start);
    client.expect_gone();
}

#[test]
fn what_was_acknowledged_is_there_after_the_next_start() {
    let mut dir = None;
    for start in 0..3_u64 {
        let mut binary = match dir.take() {
            Some(dir) => Binary::start_in(dir, &["--workers", "2"]),
            None => Binary::start(),
        };
        let mut client = binary.connect();
        let page = client.get("/v1/events?limit=0").json();
        assert_eq!(page["watermark"], start * 20);
        client.send(
            [
                support::post("/v1/append", APPEND).repeat(20),
                get("/healthz"),
            ]
            .concat(),
        );
        for position in start * 20 + 1..=start * 20 + 20 {
            let answer = client.answer();
            assert_eq!(
                answer.text(),
                format!("{{\"first\":{position},\"last\":{position}}}\n")
            );
        }
        assert_eq!(client.answer().status, 200);
        if start == 0 {
            // A loss of power, as far as a process can have one.
            dir = Some(binary.kill());
        } else {
            binary.terminate();
            assert_eq!(binary.wait().code(), Some(0), "{}", binary.log());
            dir = Some(binary.kill());
        }
    }
}

#[test]
fn a_handler_that_runs_is_waited_for_and_its_answer_is_sent() {
    let gate = Gate::default();
    let mut server = TestServer::http(config(), waiting(&gate));
    let mut clients: Vec<_> = (0..2).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send([get("/"), get("/")].concat());
    }
    gate.wait_for_arrivals(2);
    let mut idle = server.connect();
    server.wait_for("accepted", |totals| totals.connections_open == 3);
    server.handle().stop();
    idle.expect_end();
    assert!(!server.is_finished());
    gate.open();
    for client in &mut clients {
        let answer = client.answer();
        assert_eq!((answer.text(), answer.closes()), ("done\n", true));
        client.expect_end();
    }
    drop(clients);
    server.join();
}

#[test]
fn a_handler_that_never_returns_is_left_behind_when_patience_is_over() {
    let gate = Gate::default();
    let config = Config {
        stop_timeout: Duration::from_millis(200),
        ..config()
    };
    let mut server = TestServer::http(config, waiting(&gate));
    let mut client = server.connect();
    client.send_get("/");
    gate.wait_for_arrivals(1);
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() >= Duration::from_millis(200));
    expect_soon(start);
    client.expect_gone();
    gate.open();
}

fn waiting(gate: &Gate) -> impl Fn(&Request<'_>, &mut Response) + Send + Sync + use<> {
    let gate = gate.clone();
    move |_, response| {
        gate.wait();
        response.text("done\n");
    }
}
