//! The timers: which one closes whom, and when none of them may.

use std::thread;
use std::time::{Duration, Instant};

#[cfg(feature = "store")]
use pumice::StoreConfig;
use pumice::{Config, Inline, Request, Response};
use support::{Client, Gate, TestServer, app, both, config, get, pattern, post};

mod support;

/// What a timer is set to in these tests. All others are left at their defaults, far beyond a test's time.
const SHORT: Duration = Duration::from_millis(200);

/// Runs a test against a handler on the worker and one on handler threads, at the same time.
fn on_both(config: Config, test: impl Fn(&TestServer) + Sync) {
    let servers = both(config);
    thread::scope(|scope| {
        for server in &servers {
            scope.spawn(|| test(server));
        }
    });
}

#[test]
fn all_idle_connections_are_closed_however_many_are_due_together() {
    let config = Config {
        idle_timeout: SHORT * 3,
        ..config()
    };
    on_both(config, |server| {
        let connect = |index: u32| {
            let mut client = server.connect();
            // Some have served a request, some have never sent a byte.
            if !index.is_multiple_of(3) {
                assert_eq!(client.get("/hello").text(), "hello\n");
            }
            client
        };
        let mut clients: Vec<_> = (0..50).map(connect).collect();
        // No other traffic: the timer alone must get round to all of them.
        for client in &mut clients {
            client.expect_end();
        }
        server.wait_for("closed", |totals| totals.connections_open == 0);
        assert_eq!(server.totals().closed_idle_timeout, 50);
    });
}

#[test]
fn a_head_that_trickles_in_is_cut_off_from_its_first_byte() {
    let config = Config {
        head_timeout: SHORT,
        ..config()
    };
    on_both(config, |server| {
        for requests_before in [0, 2] {
            let mut client = server.connect();
            for _ in 0..requests_before {
                assert_eq!(client.get("/hello").status, 200);
            }
            // Each byte alone is soon enough; all together are not.
            let trickle = get("/hello").into_iter().take(12);
            let start = Instant::now();
            for byte in trickle {
                if client.try_send([byte]).is_err() {
                    break;
                }
                thread::sleep(SHORT / 5);
            }
            let answer = client.answer();
            assert_eq!((answer.status, answer.closes()), (408, true));
            assert!(start.elapsed() >= SHORT);
            client.expect_gone();
        }
        server.wait_for("closed", |totals| totals.connections_open == 0);
        assert_eq!(server.totals().closed_head_timeout, 2);
    });
}

#[test]
fn a_body_that_stops_is_cut_off() {
    let config = Config {
        body_timeout: SHORT,
        ..config()
    };
    on_both(config, |server| {
        let mut client = server.connect();
        let request = post("/echo", "0123456789");
        for missing in [1, 10] {
            client.send(&request);
            assert_eq!(client.answer().text(), "0123456789");
            client.send(&request[..request.len() - missing]);
            let answer = client.answer();
            assert_eq!((answer.status, answer.closes()), (408, true));
            client.expect_end();
            client = server.connect();
        }
        drop(client);
        server.wait_for("closed", |totals| totals.connections_open == 0);
        assert_eq!(server.totals().closed_body_timeout, 2);
    });
}

/// The client sees the end of its patience only when it has sent everything: the answer must still be there.
#[test]
fn a_client_that_sends_on_after_408_can_read_it() {
    let config = Config {
        body_timeout: SHORT,
        head_timeout: SHORT,
        ..config()
    };
    let server = TestServer::http(config, Inline(app));
    let body = pattern(500_000, 3);
    let request = post("/echo", &body);
    for cut in [10, request.len() - body.len(), request.len() - 1_000] {
        let mut client = server.connect();
        let refused = server.totals().answers_client_error;
        client.send(&request[..cut]);
        server.wait_for("it is refused", |totals| {
            totals.answers_client_error > refused
        });
        for piece in request[cut..].chunks(10_000) {
            client.send(piece);
        }
        let answer = client.answer();
        assert_eq!(
            (answer.status, answer.closes()),
            (408, true),
            "cut at {cut}"
        );
        client.expect_end();
    }
}

#[test]
fn no_timer_runs_while_a_handler_works() {
    let gate = Gate::default();
    let wait = {
        let gate = gate.clone();
        move |_: &Request<'_>, response: &mut Response| {
            gate.wait();
            response.text("done\n");
        }
    };
    let config = Config {
        head_timeout: SHORT,
        body_timeout: SHORT,
        idle_timeout: SHORT * 2,
        write_timeout: SHORT,
        linger_timeout: SHORT,
        ..config()
    };
    let server = TestServer::http(config, wait);
    let mut quiet = server.connect();
    quiet.send_post("/", "body");
    let mut eager = server.connect();
    eager.send([get("/"), get("/"), b"GET /".to_vec()].concat());
    gate.wait_for_arrivals(2);
    quiet.expect_silence(SHORT * 4);
    eager.send("next HTTP/1.1\r\nHost: a\r\n\r\n");
    gate.open();
    assert_eq!(quiet.answer().text(), "done\n");
    for _ in 0..3 {
        assert_eq!(eager.answer().text(), "done\n");
    }
    // And afterwards they run again.
    quiet.expect_end();
    eager.expect_end();
}

#[test]
fn a_client_that_takes_nothing_is_cut_off() {
    let config = Config {
        write_timeout: SHORT,
        ..config()
    };
    on_both(config, |server| {
        let mut client = Client::connect_with_small_window(server.addr());
        client.send_get("/bytes/16000000");
        server.wait_for("cut off", |totals| totals.closed_write_timeout == 1);
        client.expect_gone();
    });
}

/// What an answer has that is taken slowly. The sockets hold some 4 MB of it, so that the server is sure to wait while
/// the first half is taken.
const LONG: usize = 16 << 20;

/// Reads an answer of [`LONG`] bytes: the first half in eight parts with a pause before each, then all the rest.
fn take_slowly(client: &mut Client, pause: Duration) {
    let head = client.read_head();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut body = Vec::new();
    for _ in 0..8 {
        thread::sleep(pause);
        body.extend_from_slice(&client.read_exact(LONG / 16));
    }
    body.extend_from_slice(&client.read_exact(LONG / 2));
    assert!(body == pattern(LONG, LONG as u32));
}

#[test]
fn a_client_that_takes_slowly_gets_everything_whatever_the_other_timers_say() {
    let config = Config {
        idle_timeout: SHORT * 3,
        head_timeout: SHORT,
        ..config()
    };
    on_both(config, |server| {
        let mut client = Client::connect_with_small_window(server.addr());
        client.send_get(&format!("/bytes/{LONG}"));
        take_slowly(&mut client, SHORT / 2);
        // The silence between requests begins when the answer is out.
        client.expect_end();
        assert_eq!(server.totals().closed_idle_timeout, 1);
    });
}

#[test]
fn half_a_request_behind_an_answer_that_is_taken_slowly_is_no_trickle() {
    let config = Config {
        head_timeout: SHORT,
        body_timeout: SHORT,
        ..config()
    };
    for behind in [get("/hello"), post("/echo", "hello\n")] {
        let server = TestServer::http(config.clone(), Inline(app));
        let mut client = Client::connect_with_small_window(server.addr());
        client.send([&get(&format!("/bytes/{LONG}")), &behind[..behind.len() - 3]].concat());
        client.read_head();
        for _ in 0..6 {
            thread::sleep(SHORT / 3);
            client.read_exact(LONG / 16);
        }
        let totals = server.totals();
        assert_eq!(
            (totals.connections_open, totals.answers_client_error),
            (1, 0)
        );
    }
}

#[test]
fn idle_connections_give_their_places_to_those_who_wait() {
    let config = Config {
        idle_timeout: SHORT * 3,
        connections_max: 8,
        ..config()
    };
    let server = TestServer::http(config, Inline(app));
    let mut idle: Vec<_> = (0..8)
        .map(|_| {
            let mut client = server.connect();
            assert_eq!(client.get("/hello").status, 200);
            client
        })
        .collect();
    for _ in 0..20 {
        // Each of these finds a full house, or one whose timers are due.
        assert_eq!(server.connect().get("/hello").text(), "hello\n");
    }
    for client in &mut idle {
        client.expect_end();
    }
}

/// Requests sent just when the idle timer is due: whoever's request was taken gets its answer.
#[test]
fn a_request_that_meets_the_idle_timer_is_answered_or_not_taken() {
    let config = Config {
        idle_timeout: SHORT * 2,
        ..config()
    };
    let server = TestServer::http(config, Inline(app));
    let addr = server.addr();
    let clients: Vec<_> = (0..40_u32)
        .map(|number| {
            thread::spawn(move || {
                let mut client = Client::connect(addr);
                assert_eq!(client.get("/hello").status, 200);
                thread::sleep(
                    SHORT * 2 - Duration::from_millis(2) + Duration::from_micros(100) * number,
                );
                let sent = client.try_send(get("/hello"));
                sent.is_ok()
                    && client
                        .try_answer()
                        .is_some_and(|answer| answer.text() == "hello\n")
            })
        })
        .collect();
    let answered = clients
        .into_iter()
        .map(|client| u64::from(client.join().expect("no answer is torn")))
        .sum::<u64>();
    server.wait_for("closed", |totals| totals.connections_open == 0);
    assert_eq!(server.totals().http_requests, 40 + answered);
}

#[test]
fn a_refused_client_that_stays_is_closed_when_the_linger_timer_says_so() {
    let config = Config {
        linger_timeout: SHORT,
        ..config()
    };
    let server = TestServer::http(config, Inline(app));
    let mut client = server.connect();
    client.send("NONSENSE\r\n\r\n");
    assert_eq!(client.answer().status, 400);
    client.expect_end();
    // The client doesn't close, and sends on.
    server.wait_for("closed", |totals| {
        let _ = client.try_send("more");
        totals.connections_open == 0
    });
    assert_eq!(server.totals().closed_bad_input, 1);
}

#[cfg(feature = "store")]
#[test]
fn a_client_of_a_shared_port_that_says_nothing_is_closed_by_the_head_timer() {
    let config = Config {
        head_timeout: SHORT * 3,
        ..config()
    };
    let server = TestServer::store(config, StoreConfig::default());
    let mut used = server.connect();
    assert_eq!(used.get("/healthz").text(), "ok\n");
    let mut silent = server.connect();
    silent.expect_end();
    assert_eq!(server.totals().closed_head_timeout, 1);
    // The idle timer, which is a long one, holds for those who have spoken.
    assert_eq!(used.get("/healthz").text(), "ok\n");
}

#[cfg(feature = "store")]
#[test]
fn a_reader_of_a_stream_is_cut_off_when_it_takes_nothing_but_not_while_it_is_slow() {
    let open = |write_timeout: Duration| {
        let config = Config {
            write_timeout,
            idle_timeout: SHORT * 3,
            head_timeout: SHORT * 3,
            ..config()
        };
        let server = TestServer::store(config, StoreConfig::default());
        let event = format!("{{\"type\":\"T\",\"data\":\"{}\"}}", "x".repeat(10_000));
        let body = format!("{{\"events\":[{}]}}", vec![event; 50].join(","));
        for _ in 0..20 {
            assert_eq!(server.connect().post("/v1/append", &body).status, 200);
        }
        // 10 MB in lines, twice what the sockets hold.
        let mut client = Client::connect_with_small_window(server.addr());
        client.send(
            "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n",
        );
        (server, client)
    };
    let (_server, mut slow) = open(Config::default().write_timeout);
    slow.read_head();
    let mut lines = 0;
    loop {
        let chunk = slow.read_chunk();
        if chunk.is_empty() {
            break;
        }
        lines += chunk.iter().filter(|&&byte| byte == b'\n').count();
        thread::sleep(SHORT / 20);
    }
    assert_eq!(lines, 1_000);
    slow.expect_end();

    let (server, mut stuck) = open(SHORT);
    server.wait_for("cut off", |totals| totals.closed_write_timeout == 1);
    stuck.expect_gone();
}
