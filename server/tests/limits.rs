//! Bounds of a request: the largest that passes, the first that doesn't, and that its client can read why.

use std::io::ErrorKind;

use pumice::{Config, Inline, Limits};
use support::{Answer, Client, TestServer, app, both, config, get, pattern, post};

mod support;

/// The answer of a server that then closes, to a client that writes everything before it reads.
#[track_caller]
fn last_answer(client: &mut Client) -> Answer {
    let answer = client.answer();
    assert!(answer.closes(), "{}", answer.head);
    client.expect_end();
    answer
}

#[test]
fn the_longest_target_passes_and_a_longer_one_is_414() {
    let limits = Limits::default();
    let server = TestServer::http(config(), Inline(app));
    let path = |len: usize| format!("/{}", "p".repeat(len - 1));
    let mut client = server.connect();
    assert_eq!(client.get(&path(limits.target_bytes_max)).status, 404);
    client.send_get(&path(limits.target_bytes_max + 1));
    assert_eq!(last_answer(&mut client).status, 414);
    // Also where the request line never ends.
    for len in [100 * 1024, 1 << 20] {
        let mut client = server.connect();
        client.send(format!("GET {}", path(len)));
        assert_eq!(last_answer(&mut client).status, 414, "{len} bytes");
    }
}

#[test]
fn as_many_fields_as_allowed_pass_and_one_more_is_431() {
    let max = Limits::default().fields_max;
    let server = TestServer::http(config(), Inline(app));
    let request = |fields: usize| {
        // Host is one of them.
        let more: String = (1..fields).map(|n| format!("X-{n}: {n}\r\n")).collect();
        format!("GET /hello HTTP/1.1\r\nHost: a\r\n{more}\r\n")
    };
    let mut client = server.connect();
    client.send(request(max));
    assert_eq!(client.answer().text(), "hello\n");
    client.send(request(max + 1));
    assert_eq!(last_answer(&mut client).status, 431);
    let mut client = server.connect();
    client.send(request(max * 20));
    assert_eq!(last_answer(&mut client).status, 431);
}

#[test]
fn a_field_and_a_head_of_the_longest_length_pass_and_longer_ones_are_431() {
    let limits = Limits::default();
    let server = TestServer::http(config(), Inline(app));
    let field = |len: usize| format!("X: {}\r\n", "v".repeat(len - 5));
    let request = |fields: &str| format!("GET /hello HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let mut client = server.connect();
    client.send(request(&field(limits.field_bytes_max)));
    assert_eq!(client.answer().text(), "hello\n");
    client.send(request(&field(limits.field_bytes_max + 1)));
    assert_eq!(last_answer(&mut client).status, 431);

    let room = limits.head_bytes_max - request("").len();
    let fields = |len: usize| format!("{}{}", field(len / 2), field(len - len / 2));
    let mut client = server.connect();
    client.send(request(&fields(room)));
    assert_eq!(client.answer().text(), "hello\n");
    client.send(request(&fields(room + 1)));
    assert_eq!(last_answer(&mut client).status, 431);
}

/// The body in chunks of `size` bytes, its last chunk included.
fn chunks(body: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in body.chunks(size) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

const CHUNKED: &str = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn the_largest_body_passes_and_a_larger_one_is_413() {
    let config = Config {
        limits: Limits {
            body_bytes_max: 10_000,
            ..Limits::default()
        },
        ..config()
    };
    for server in both(config.clone()) {
        let mut client = server.connect();
        let body = pattern(10_000, 1);
        assert!(client.post("/echo", &body).body == body);
        client.send([CHUNKED.as_bytes(), &chunks(&body, 999)].concat());
        assert!(client.answer().body == body);

        let body = pattern(10_001, 1);
        client.send([CHUNKED.as_bytes(), &chunks(&body, 999)].concat());
        assert_eq!(last_answer(&mut client).status, 413);
        // Before a byte of the body has come.
        let mut client = server.connect();
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10001\r\n\r\n");
        assert_eq!(last_answer(&mut client).status, 413);
        // To a path that takes no bodies too.
        let mut client = server.connect();
        client.send_post("/nowhere", &body);
        assert_eq!(last_answer(&mut client).status, 413);
    }
}

#[test]
fn a_client_that_writes_20_mb_before_it_reads_can_read_413() {
    let body = vec![b'x'; 20 << 20];
    let head = format!(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    for server in both(config()) {
        let mut client = server.connect();
        client.send(&head);
        client.send(&body);
        assert_eq!(last_answer(&mut client).status, 413);
        drop(client);
        let mut client = server.connect();
        client.send(CHUNKED);
        client.send(chunks(&body, 1 << 20));
        assert_eq!(last_answer(&mut client).status, 413);
        drop(client);
        server.wait_for("closed", |totals| totals.connections_open == 0);
        assert_eq!(server.totals().http_requests, 0);
    }
}

#[test]
fn an_upload_without_end_is_cut_off() {
    let server = TestServer::http(config(), Inline(app));
    let mut client = server.connect();
    client.send(CHUNKED);
    let chunk = [&b"10000\r\n"[..], &[b'x'; 0x10000], b"\r\n"].concat();
    let error = loop {
        if let Err(error) = client.try_send(&chunk) {
            break error;
        }
    };
    assert!(
        matches!(
            error.kind(),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
        ),
        "{error}"
    );
    server.wait_for("closed", |totals| totals.connections_open == 0);
    assert_eq!(server.totals().closed_bad_input, 1);
}

#[test]
fn chunk_extensions_and_trailers_have_bounds_of_their_own() {
    let server = TestServer::http(config(), Inline(app));
    let extension = format!("1;{}\r\na\r\n", "x".repeat(600));
    let trailer = |lines: usize| "T: x\r\n".repeat(lines);
    for (body, status) in [
        (format!("{extension}0\r\n\r\n"), 200),
        (extension.repeat(2), 400),
        (format!("1;{}", "x".repeat(64 * 1024)), 400),
        (format!("0\r\n{}\r\n", trailer(32)), 200),
        (format!("0\r\n{}\r\n", trailer(33)), 431),
        (format!("0\r\nT: {}\r\n\r\n", "x".repeat(8 * 1024)), 431),
    ] {
        let mut client = server.connect();
        client.send(format!("{CHUNKED}{body}"));
        let answer = client.answer();
        assert_eq!((answer.status, answer.closes()), (status, status != 200));
    }
}

#[test]
fn a_length_that_is_only_announced_costs_no_memory() {
    let config = Config {
        limits: Limits {
            body_bytes_max: u64::MAX,
            ..Limits::default()
        },
        ..config()
    };
    let mapped = || {
        let text = std::fs::read_to_string("/proc/self/statm").expect("this runs on Linux");
        let pages = text
            .split(' ')
            .next()
            .and_then(|pages| pages.parse::<usize>().ok());
        pages.expect("a number of pages") * 4_096
    };
    let server = TestServer::http(config, Inline(app));
    let before = mapped();
    let clients: Vec<_> = (0..50)
        .map(|_| {
            let mut client = server.connect();
            client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000000\r\n\r\nx");
            client
        })
        .collect();
    let bytes = clients.len() as u64 * 60;
    server.wait_for("all was read", |totals| totals.bytes_read > bytes);
    // Other tests of this file run meanwhile, and none of them comes near to what was announced.
    assert!(mapped().saturating_sub(before) < 5_000_000_000);
}

#[test]
fn a_refusal_takes_nothing_from_answers_before_it() {
    for server in both(config()) {
        let mut client = server.connect();
        client.send(
            [
                post("/echo", "first"),
                get("/bytes/1000000"),
                b"GET / HTTP/1.1\r\nNo Host\r\n\r\n".to_vec(),
            ]
            .concat(),
        );
        assert_eq!(client.answer().text(), "first");
        assert!(client.answer().body == pattern(1_000_000, 1_000_000));
        assert_eq!(last_answer(&mut client).status, 400);
    }
}
