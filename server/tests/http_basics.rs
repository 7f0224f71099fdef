//! One request at a time: what an answer looks like, when a connection is kept, and what is refused.

use std::time::{Duration, SystemTime};

use pumice::{Config, Inline, Method, Request, Response, Server, Version};
use support::{Client, TestServer, any_port, app, both, config, get, pattern, post};

mod support;

#[test]
fn an_answer_has_a_date_and_a_length_and_the_connection_stays() {
    for server in both(config()) {
        let mut client = server.connect();
        for _ in 0..3 {
            let answer = client.get("/hello");
            assert_eq!((answer.status, answer.text()), (200, "hello\n"));
            assert!(answer.head.starts_with("HTTP/1.1 200 OK\r\n"));
            assert_eq!(answer.field("content-length"), Some("6"));
            assert_eq!(
                answer.field("content-type"),
                Some("text/plain; charset=utf-8")
            );
            assert_eq!(answer.field("connection"), None);
            let date = httpdate::parse_http_date(answer.field("date").expect("a date"))
                .expect("an HTTP date");
            let age = SystemTime::now().duration_since(date).unwrap_or_default();
            assert!(age < Duration::from_secs(5), "{age:?} old");
        }
        assert_eq!(client.get("/nowhere").status, 404);
    }
}

#[test]
fn an_http_1_0_client_is_told_what_becomes_of_the_connection() {
    for server in both(config()) {
        let mut client = server.connect();
        client.send("GET /hello HTTP/1.0\r\n\r\n");
        let answer = client.answer();
        assert_eq!((answer.text(), answer.closes()), ("hello\n", true));
        client.expect_end();

        let mut client = server.connect();
        for _ in 0..2 {
            client.send("GET /hello HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
            let answer = client.answer();
            assert_eq!(answer.field("connection"), Some("keep-alive"));
            assert_eq!(answer.text(), "hello\n");
        }
        // The request before must not have left its mark.
        client.send("GET /hello HTTP/1.0\r\n\r\n");
        assert!(client.answer().closes());
        client.expect_end();
    }
}

#[test]
fn a_client_that_says_close_is_closed_after_its_answer_and_is_told() {
    for server in both(config()) {
        for value in ["close", "Close", "keep-alive, CLOSE", "x ,close"] {
            let mut client = server.connect();
            // On the second request as on the first.
            assert_eq!(client.get("/hello").field("connection"), None);
            client.send(format!(
                "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: {value}\r\n\r\n"
            ));
            let answer = client.answer();
            assert_eq!((answer.text(), answer.closes()), ("hello\n", true));
            client.expect_end();
        }
        server.wait_for("all closed", |totals| totals.connections_open == 0);
        assert_eq!(server.totals().closed_after_answer, 4);
    }
}

#[test]
fn the_answer_to_head_is_that_to_get_without_its_body() {
    for server in both(config()) {
        let mut client = server.connect();
        for (path, status, length) in [
            ("/hello", 200, "6"),
            ("/bytes/100000", 200, "100000"),
            ("/nowhere", 404, "10"),
        ] {
            client.send(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let answer = client.head_answer();
            assert_eq!(answer.status, status);
            assert_eq!(answer.field("content-length"), Some(length));
            // The next answer starts right behind the head.
            assert_eq!(client.get("/hello").text(), "hello\n");
        }
    }
}

#[test]
fn a_body_is_taken_whole_whatever_its_size_against_the_read_buffer() {
    // The worker reads 64 KiB at once; nothing more is sent that could wake it.
    let head = post("/echo", b"").len() + 4;
    for server in both(config()) {
        for len in [
            0,
            1,
            4_095,
            4_096,
            65_536 - head - 1,
            65_536 - head,
            65_536 - head + 1,
            65_536,
            65_537,
            131_072 - head,
            1_048_576,
        ] {
            let body = pattern(len, 7);
            let answer = server.connect().post("/echo", &body);
            assert!(answer.body == body, "{len} bytes");
        }
    }
}

#[test]
fn a_body_that_comes_after_its_head_is_read_with_it() {
    for server in both(config()) {
        let mut client = server.connect();
        for _ in 0..2 {
            // To a path that doesn't look at bodies.
            client.send("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n");
            client.expect_silence(Duration::from_millis(20));
            client.send("{}");
            assert_eq!(client.answer().text(), "hello\n");
        }
    }
}

#[test]
fn a_chunked_body_is_decoded_and_its_trailers_are_skipped() {
    let request = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3;a=\"b\"\r\nabc\r\n0a\r\n0123456789\r\n0; n=v\r\nTrailer: x\r\n\r\n";
    for server in both(config()) {
        let mut client = server.connect();
        client.send(request);
        assert_eq!(client.answer().text(), "abc0123456789");
        for cut in (1..request.len()).step_by(7) {
            client.send(&request[..cut]);
            client.expect_silence(Duration::from_millis(1));
            client.send(&request[cut..]);
            assert_eq!(client.answer().text(), "abc0123456789", "cut at {cut}");
        }
        assert_eq!(client.get("/hello").text(), "hello\n");
    }
}

#[test]
fn a_client_that_expects_100_continue_gets_it_before_it_sends_its_body() {
    for server in both(config()) {
        let mut client = server.connect();
        for _ in 0..2 {
            client.send(
                "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n",
            );
            assert_eq!(client.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
            client.send("hello");
            assert_eq!(client.answer().text(), "hello");
        }
        // Whoever sends the body at once needs none, and an HTTP/1.0 client would not understand it.
        client.send(
            "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
        );
        assert_eq!(client.answer().text(), "hello");
        client.send("POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
        client.expect_silence(Duration::from_millis(20));
        client.send("hello");
        assert_eq!(client.answer().text(), "hello");
    }
}

#[test]
fn an_expectation_that_is_not_met_closes_so_that_the_body_is_no_request() {
    let server = TestServer::http(config(), Inline(app));
    for (request, status) in [
        ("Expect: 200-maybe\r\nContent-Length: 10\r\n\r\n", 417),
        (
            "Expect: 100-continue\r\nContent-Length: 9999999\r\n\r\n",
            413,
        ),
    ] {
        let mut client = server.connect();
        client.send(format!("POST /echo HTTP/1.1\r\nHost: a\r\n{request}"));
        client.send_get("/hello");
        let answer = client.answer();
        assert_eq!((answer.status, answer.closes()), (status, true));
        client.expect_end();
    }
}

/// Everything that is ambiguous or wrong is answered and the connection closed, however little of it has come.
#[test]
fn what_cannot_be_read_for_sure_is_refused_and_closed() {
    let server = TestServer::http(config(), Inline(app));
    let post = |fields: &str| format!("POST /echo HTTP/1.1\r\nHost: a\r\n{fields}");
    let chunked = |body: &str| post(&format!("Transfer-Encoding: chunked\r\n\r\n{body}"));
    let cases = [
        (
            400,
            post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello"),
        ),
        (
            400,
            post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        (
            400,
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
        ),
        (
            400,
            post("Content-Length: 5\r\nContent-Length: 0\r\n\r\nhello"),
        ),
        (400, post("Content-Length: +5\r\n\r\nhello")),
        (400, post("Content-Length: -1\r\n\r\n")),
        (400, post("Content-Length: 5 5\r\n\r\nhello")),
        (400, post("Content-Length:\r\n\r\n")),
        (
            400,
            post("Content-Length: 99999999999999999999999999\r\n\r\n"),
        ),
        (400, post("Content-Length : 5\r\n\r\nhello")),
        (400, post("Folded: a\r\n b\r\n\r\n")),
        (400, chunked("5\nhello\r\n0\r\n\r\n")),
        (400, chunked("5\r\nhello0\r\n\r\n")),
        (400, chunked("0x1\r\na\r\n0\r\n\r\n")),
        (400, chunked("+5\r\nhello\r\n0\r\n\r\n")),
        (400, chunked("\r\n\r\n")),
        (400, chunked(";x\r\n\r\n")),
        (400, chunked("10000000000000000\r\n")),
        (501, post("Transfer-Encoding: gzip, chunked\r\n\r\n")),
        (400, "GET / HTTP/1.1\r\n\r\n".into()),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".into()),
        (400, "GET /x\nHost: a\r\n\r\n".into()),
        (400, "GET /x\r\n\r\n".into()),
        (400, "GET  /x HTTP/1.1\r\nHost: a\r\n\r\n".into()),
        (400, "G@T / HTTP/1.1\r\nHost: a\r\n\r\n".into()),
        (505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n".into()),
        (400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into()),
        (
            501,
            format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "M".repeat(40)),
        ),
    ];
    for (status, request) in &cases {
        let mut client = server.connect();
        client.send(request);
        // Whatever follows is no request.
        client.send_get("/hello");
        let answer = client.answer();
        assert_eq!(
            (answer.status, answer.closes()),
            (*status, true),
            "{request:?}"
        );
        assert!(answer.field("date").is_some(), "{request:?}");
        client.expect_end();
    }
    assert_eq!(server.totals().parse_errors, cases.len() as u64);
}

#[test]
fn junk_and_clients_that_only_knock_harm_nobody() {
    let server = TestServer::http(config(), Inline(app));
    for seed in 0..100 {
        drop(server.connect());
        let mut client = server.connect();
        let len = 1 + seed as usize * 2;
        // The server may have closed at the first of these bytes.
        let _ = client.try_send(pattern(len, seed));
        match seed % 3 {
            0 => drop(client),
            1 => client.reset(),
            _ => {
                client.shutdown_write();
                client.expect_gone();
            }
        }
    }
    assert_eq!(server.connect().get("/hello").text(), "hello\n");
    server.wait_for("all closed", |totals| totals.connections_open <= 1);
    assert_eq!(server.totals().handler_panics, 0);
}

#[test]
fn a_handler_sees_the_request_as_it_was_sent() {
    let see = |request: &Request<'_>, response: &mut Response| {
        let names: Vec<_> = request.headers().map(|(name, _)| name).collect();
        let text = format!(
            "{:?} {} {} {} {:?} {:?} {:?} {:?} {names:?} {}",
            request.method(),
            request.method_str(),
            request.target(),
            request.path(),
            request.query(),
            request.version(),
            request.host(),
            request.header("X-One").map(String::from_utf8_lossy),
            String::from_utf8_lossy(request.body()),
        );
        response.bytes(text);
    };
    let cases = [
        (
            "PUT /a%20b?c=d&e HTTP/1.1\r\nHost: h:1\r\nX-ONE:  two\t\r\nContent-Length: 2\r\n\r\nhi",
            format!(
                "{:?} PUT /a%20b?c=d&e /a%20b {:?} {:?} {:?} {:?} {:?} hi",
                Method::Put,
                Some("c=d&e"),
                Version::Http11,
                Some("h:1"),
                Some("two"),
                ["Host", "X-ONE", "Content-Length"],
            ),
        ),
        (
            "BREW http://pot.example/x HTTP/1.1\r\nHost: pot.example\r\n\r\n",
            format!(
                "{:?} BREW http://pot.example/x /x {:?} {:?} {:?} {:?} {:?} ",
                Method::Other,
                None::<&str>,
                Version::Http11,
                Some("pot.example"),
                None::<&str>,
                ["Host"],
            ),
        ),
    ];
    for server in [
        TestServer::http(config(), Inline(see)),
        TestServer::http(config(), see),
    ] {
        let mut client = server.connect();
        for (request, expected) in &cases {
            client.send(request);
            assert_eq!(client.answer().text(), expected);
        }
    }
}

#[test]
fn a_handler_says_status_fields_and_whether_to_close() {
    let answer = |request: &Request<'_>, response: &mut Response| match request.path() {
        "/204" => {
            response.status(204).text("this is not sent");
        }
        "/304" => {
            response.status(304).text("nor is this");
        }
        "/close" => response.close().text("bye\n"),
        "/shared" => response.shared(vec![b'x'; 100_000].into()),
        _ => {
            response
                .status(201)
                .content_type("text/x-test")
                .header("Location", "/new")
                .and_then(|response| response.header("X-Bytes", b"\xe4"))
                .expect("both can be sent")
                .bytes("made");
        }
    };
    let server = TestServer::http(config(), Inline(answer));
    let mut client = server.connect();
    for path in ["/204", "/304"] {
        let answer = client.get(path);
        assert_eq!(answer.field("content-length"), None, "{path}");
    }
    client.send_get("/new");
    let made = String::from_utf8_lossy(&client.read_through(b"made")).into_owned();
    assert!(made.starts_with("HTTP/1.1 201 Created\r\n"), "{made}");
    for line in [
        "Location: /new\r\n",
        "Content-Type: text/x-test\r\n",
        "\r\n\r\nmade",
    ] {
        assert!(made.contains(line), "{line:?} in {made}");
    }
    // What one answer said isn't in the next.
    let answer = client.get("/shared");
    assert_eq!((answer.status, answer.field("location")), (200, None));
    assert!(answer.body == vec![b'x'; 100_000]);
    let answer = client.get("/close");
    assert_eq!((answer.text(), answer.closes()), ("bye\n", true));
    client.expect_end();
}

#[test]
fn a_connection_serves_as_many_requests_as_it_may() {
    let config = Config {
        requests_per_connection_max: 3,
        ..config()
    };
    for server in both(config.clone()) {
        let mut client = server.connect();
        for request in 1..=3 {
            let answer = client.get("/hello");
            assert_eq!((answer.text(), answer.closes()), ("hello\n", request == 3));
        }
        client.expect_end();
    }
}

#[test]
fn a_large_answer_arrives_byte_for_byte_through_a_small_window() {
    let len = 4 << 20;
    for server in both(config()) {
        let mut client = Client::connect_with_small_window(server.addr());
        client.send_get(&format!("/bytes/{len}"));
        let answer = client.answer();
        assert!(answer.body == pattern(len, len as u32));
        assert_eq!(client.get("/hello").text(), "hello\n");
    }
}

#[test]
fn many_who_connect_at_once_are_all_served() {
    // Bound, and so connected to, before anything runs: one event tells of all of them.
    let server = Server::new(config())
        .expect("the settings can be used")
        .http(any_port(), Inline(app))
        .expect("a free port");
    let addr = server.local_addrs()[0];
    let mut clients: Vec<_> = (0..200).map(|_| Client::connect(addr)).collect();
    for client in &mut clients {
        client.send_get("/hello");
    }
    let _server = TestServer::start(server);
    for client in &mut clients {
        assert_eq!(client.answer().text(), "hello\n");
    }
}

#[test]
fn a_taken_port_is_an_error_and_the_next_one_serves() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = taken.local_addr().expect("it is bound");
    let server = Server::new(config()).expect("the settings can be used");
    let error = server
        .http(addr.into(), Inline(app))
        .expect_err("it's taken");
    assert!(error.to_string().contains(&addr.to_string()), "{error}");
    let server = TestServer::http(config(), Inline(app));
    assert_eq!(server.connect().get("/hello").text(), "hello\n");
}

#[test]
fn a_server_listens_at_several_addresses_each_with_a_handler() {
    let server = Server::new(config())
        .expect("the settings can be used")
        .http(any_port(), |_: &Request<'_>, response: &mut Response| {
            response.text("one")
        })
        .and_then(|server| {
            server.http(any_port(), |_: &Request<'_>, response: &mut Response| {
                response.text("two")
            })
        })
        .expect("free ports");
    let server = TestServer::start(server);
    for (&addr, expected) in server.addrs().iter().zip(["one", "two"]) {
        assert_eq!(Client::connect(addr).get("/").text(), expected);
    }
}

#[test]
fn a_unix_socket_serves_too() {
    use std::io::{Read, Write};
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("http.sock");
    let server = Server::new(config())
        .expect("the settings can be used")
        .http(pumice::Address::Unix(path.clone()), app)
        .expect("a new path");
    let _server = TestServer::start(server);
    let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("it listens");
    stream
        .set_read_timeout(Some(support::PATIENCE))
        .expect("a time above zero");
    stream.write_all(&get("/hello")).expect("it reads");
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("it stands");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("it answers and closes");
    assert!(answer.ends_with("\r\n\r\nhello\n"), "{answer}");
}
