//! Several requests on their way at once: answered one by one, in order, however their bytes come.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use pumice::{Config, Execution, Handler, Inline, Request, Response};
use support::{Client, Gate, TestServer, app, both, config, get, post};

mod support;

#[test]
fn requests_behind_one_that_closes_are_not_run() {
    let run = Arc::new(AtomicUsize::new(0));
    let count = |run: &Arc<AtomicUsize>| {
        let run = Arc::clone(run);
        move |_: &Request<'_>, response: &mut Response| {
            let turn = run.fetch_add(1, Ordering::SeqCst) + 1;
            response.bytes(turn.to_string());
        }
    };
    for server in [
        TestServer::http(config(), Inline(count(&run))),
        TestServer::http(config(), count(&run)),
    ] {
        run.store(0, Ordering::SeqCst);
        let mut requests = Vec::new();
        for number in 1..=10 {
            let connection = if number == 4 { "close" } else { "keep-alive" };
            let request = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {connection}\r\n\r\n");
            requests.extend_from_slice(request.as_bytes());
        }
        let mut client = server.connect();
        client.send(requests);
        for number in 1..=4 {
            let answer = client.answer();
            assert_eq!(answer.text(), number.to_string());
            assert_eq!(answer.closes(), number == 4);
        }
        client.expect_end();
        drop(client);
        server.wait_for("closed", |totals| totals.connections_open == 0);
        assert_eq!(run.load(Ordering::SeqCst), 4);
    }
}

/// The client can't know that the server is going to close, and writes everything before it reads.
#[test]
fn a_client_that_goes_on_sending_behind_the_last_answer_still_gets_it() {
    let config = Config {
        requests_per_connection_max: 1,
        ..config()
    };
    for server in both(config) {
        let mut client = server.connect();
        client.send_get("/hello");
        for _ in 0..200 {
            client.send(post("/echo", [b'x'; 40_000]));
        }
        let answer = client.answer();
        assert_eq!((answer.text(), answer.closes()), ("hello\n", true));
        client.expect_end();
    }
}

#[test]
fn two_posts_in_one_stream_are_two_wherever_it_is_cut() {
    let stream = [
        post("/echo", "0123456789"),
        post("/echo", "GET / HTTP"),
        post("/echo", ""),
    ]
    .concat();
    for server in both(config()) {
        let mut client = server.connect();
        for cut in 0..stream.len() {
            send_in_pieces(&server, &mut client, &[&stream[..cut], &stream[cut..]]);
            for body in ["0123456789", "GET / HTTP", ""] {
                assert_eq!(client.answer().text(), body, "cut at {cut}");
            }
        }
    }
}

#[test]
fn a_body_that_reads_like_a_request_is_a_body() {
    let body = "GET /admin HTTP/1.1\r\nHost: x\r\n\r\n";
    for server in both(config()) {
        let mut client = server.connect();
        client.send([post("/echo", body), get("/hello")].concat());
        assert_eq!(client.answer().text(), body);
        assert_eq!(client.answer().text(), "hello\n");
        assert_eq!(server.totals().http_requests, 2);
    }
}

#[test]
fn what_follows_a_body_in_the_same_segment_is_the_next_request() {
    let chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3\r\nabc\r\n0\r\n\r\n";
    for server in both(config()) {
        let mut client = server.connect();
        client.send([chunked.as_bytes(), &get("/hello"), chunked.as_bytes()].concat());
        for body in ["abc", "hello\n", "abc"] {
            assert_eq!(client.answer().text(), body);
        }
        // The surplus is half a head, then the rest of it comes.
        let (first, second) = (post("/echo", "hello"), get("/hello"));
        let pieces: [&[u8]; 3] = [
            &[&first[..], &second[..9]].concat(),
            &second[9..20],
            &second[20..],
        ];
        send_in_pieces(&server, &mut client, &pieces);
        assert_eq!(client.answer().text(), "hello");
        assert_eq!(client.answer().text(), "hello\n");
    }
}

/// `/wait` is answered on a handler thread when the gate opens, everything else on the worker.
struct Mixed(Gate);

impl Handler for Mixed {
    fn handle(&self, request: &Request<'_>, response: &mut Response) {
        if request.path() == "/wait" {
            self.0.wait();
        }
        response.bytes(request.path());
    }

    fn execution(&self, request: &Request<'_>) -> Execution {
        match request.path() {
            "/wait" => Execution::Offloaded,
            _ => Execution::Inline,
        }
    }
}

#[test]
fn requests_behind_one_that_is_being_handled_wait_and_need_no_further_byte() {
    let gate = Gate::default();
    let server = TestServer::http(config(), Mixed(gate.clone()));
    let mut client = server.connect();
    let paths = ["/wait", "/1", "/wait", "/wait", "/2", "/3"];
    client.send(paths.map(get).concat());
    for arrived in 1..=3 {
        gate.wait_for_arrivals(arrived);
        assert_eq!(gate.waiting(), 1, "one request of a connection at a time");
        gate.let_one_through();
    }
    for path in paths {
        assert_eq!(client.answer().text(), path);
    }
}

/// A client that asks without taking costs what the outbox holds, and loses nothing.
#[test]
fn ten_thousand_unread_answers_hold_the_requests_back_and_come_in_order() {
    const REQUESTS: usize = 10_000;
    let pad = |request: &Request<'_>, response: &mut Response| {
        response.bytes(format!("{:>2000}", request.path()));
    };
    let server = TestServer::http(config(), Inline(pad));
    let mut client = Client::connect_with_small_window(server.addr());
    let mut sender = client.stream().try_clone().expect("a descriptor");
    let send = thread::spawn(move || {
        use std::io::Write;
        let requests: Vec<u8> = (0..REQUESTS)
            .flat_map(|number| get(&format!("/{number}")))
            .collect();
        sender
            .write_all(&requests)
            .expect("the server takes them in time");
    });
    let mut before = None;
    // It has stopped when nothing has changed for a while.
    support::wait_until("the server has stopped reading", || {
        thread::sleep(Duration::from_millis(20));
        let now = server.totals().http_requests;
        before.replace(now) == Some(now) && now > 0
    });
    let taken = server.totals().http_requests as usize;
    assert!(taken < REQUESTS, "20 MB of answers were made for nobody");
    for number in 0..REQUESTS {
        assert_eq!(client.answer().text().trim_start(), format!("/{number}"));
    }
    send.join().expect("all was sent");
}

/// Bytes that were ready before must be looked at again when an answer has made room, also where the bytes at hand
/// ended with a request.
#[test]
fn a_full_outbox_at_the_end_of_a_read_buffer_stops_nothing() {
    const READ_BYTES: usize = 64 * 1024;
    const REQUEST_BYTES: usize = 64;
    let gate = Gate::default();
    let handler = {
        let gate = gate.clone();
        move |request: &Request<'_>, response: &mut Response| {
            if request.path() == "/gate" {
                gate.wait();
            }
            response.bytes([b'a'; 5_000]);
        }
    };
    let config = Config {
        outbox_bytes_max: 4_096,
        ..config()
    };
    let server = TestServer::http(config, Inline(handler));
    // While the only worker waits, what the other client sends gathers in its socket.
    let mut first = server.connect();
    first.send_get("/gate");
    gate.wait_for_arrivals(1);
    let mut client = server.connect();
    let padding = REQUEST_BYTES - get("/").len();
    let request = get(&format!("/{}", "p".repeat(padding)));
    assert_eq!(request.len(), REQUEST_BYTES);
    let requests = READ_BYTES / REQUEST_BYTES;
    client.send(request.repeat(requests));
    client.shutdown_write();
    gate.open();
    for _ in 0..requests {
        assert_eq!(client.answer().body.len(), 5_000);
    }
    client.expect_end();
}

/// Sends each piece when the server has read the one before.
fn send_in_pieces(server: &TestServer, client: &mut Client, pieces: &[&[u8]]) {
    let mut read = server.totals().bytes_read;
    for piece in pieces {
        client.send(piece);
        read += piece.len() as u64;
        server.wait_for("the piece was read", |totals| totals.bytes_read >= read);
    }
}

/// A request and what is to come of it: the status, and the body unless it is HEAD.
#[derive(Clone, Debug)]
struct Exchange {
    request: Vec<u8>,
    status: u16,
    body: Option<Vec<u8>>,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let body = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..60),
        1 => prop::collection::vec(any::<u8>(), 4_000..5_000),
        1 => Just(b"\r\n\r\nGET / HTTP/1.1\r\n\r\n".to_vec()),
    ];
    let sizes = prop::collection::vec(1..40_usize, 1..8);
    prop_oneof![
        Just(Exchange {
            request: get("/hello"),
            status: 200,
            body: Some(b"hello\n".to_vec())
        }),
        Just(Exchange {
            request: get("/none?x"),
            status: 404,
            body: Some(b"not found\n".to_vec())
        }),
        Just(Exchange {
            request: b"HEAD /hello HTTP/1.1\r\nhost:a\r\n\r\n".to_vec(),
            status: 200,
            body: None,
        }),
        Just(Exchange {
            request: b"\r\nGET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_vec(),
            status: 200,
            body: Some(b"hello\n".to_vec()),
        }),
        body.clone().prop_map(|body| Exchange {
            request: post("/echo", &body),
            status: 200,
            body: Some(body),
        }),
        (body, sizes).prop_map(|(body, sizes)| Exchange {
            request: chunked(&body, &sizes),
            status: 200,
            body: Some(body),
        }),
    ]
}

/// A `POST /echo` whose body comes in chunks of these sizes, over and over.
fn chunked(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut request =
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let mut rest = body;
    for &size in sizes.iter().cycle() {
        let (chunk, tail) = rest.split_at(size.min(rest.len()));
        if chunk.is_empty() {
            break;
        }
        // On the first alone, since a body has a bound for all of them.
        let extension = if rest.len() == body.len() { ";e=1" } else { "" };
        request.extend_from_slice(format!("{:X}{extension}\r\n", chunk.len()).as_bytes());
        request.extend_from_slice(chunk);
        request.extend_from_slice(b"\r\n");
        rest = tail;
    }
    request.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
    request
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_of_a_stream_of_requests_gives_the_same_answers(
        exchanges in prop::collection::vec(exchange(), 1..10),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream: Vec<u8> = exchanges.iter().flat_map(|each| each.request.clone()).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &stream[ends[0]..ends[1]]).collect();
        for server in both(config()) {
            let mut client = server.connect();
            send_in_pieces(&server, &mut client, &pieces);
            for exchange in &exchanges {
                let answer = match exchange.body {
                    Some(_) => client.answer(),
                    None => client.head_answer(),
                };
                prop_assert_eq!(answer.status, exchange.status);
                prop_assert_eq!(&answer.body, exchange.body.as_deref().unwrap_or_default());
            }
            client.shutdown_write();
            client.expect_end();
            prop_assert_eq!(server.totals().http_requests, exchanges.len() as u64);
        }
    }
}

#[test]
fn workers_share_nothing_that_mixes_up_answers() {
    let config = Config {
        workers: 2,
        ..config()
    };
    for server in [
        TestServer::http(config.clone(), Inline(app)),
        TestServer::http(config.clone(), app),
    ] {
        let addr = server.addr();
        let clients: Vec<_> = (0..8)
            .map(|client| {
                thread::spawn(move || {
                    let mut connection = Client::connect(addr);
                    for round in 0..20 {
                        let bodies: Vec<_> =
                            (0..10).map(|n| format!("{client} {round} {n}")).collect();
                        let requests: Vec<u8> =
                            bodies.iter().flat_map(|body| post("/echo", body)).collect();
                        connection.send(requests);
                        for body in &bodies {
                            assert_eq!(connection.answer().text(), body);
                        }
                        if round % 7 == client % 7 {
                            // What is under way then goes to nobody, least of all to the next.
                            connection.send(post("/echo", "lost"));
                            connection.reset();
                            connection = Client::connect(addr);
                        }
                    }
                })
            })
            .collect();
        for client in clients {
            client.join().expect("each got its own answers");
        }
    }
}
