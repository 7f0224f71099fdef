//! User code that panics: one answer of 500, and everything goes on.

use std::panic;
use std::sync::Once;
use std::thread;

use pumice::{Execution, Handler, Inline, Reply, Request, Response, Server};
use support::{Client, TestServer, any_port, app, config, get};

mod support;

const ON_PURPOSE: &str = "a panic on purpose";

/// Keeps the panics of these tests out of their output.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let shown = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let text = info.payload_as_str().unwrap_or_default();
            if !text.contains(ON_PURPOSE) && !text.starts_with("a final status") {
                shown(info);
            }
        }));
    });
}

fn panicking(request: &Request<'_>, response: &mut Response) {
    match request.path() {
        "/panic" => {
            // What was said before the panic is not half an answer.
            response.status(201).text("made\n");
            panic!("{ON_PURPOSE}");
        }
        // A misuse that is documented to panic.
        "/status" => drop(response.status(99)),
        _ => app(request, response),
    }
}

#[test]
fn a_panicking_handler_is_answered_500_and_its_connection_goes_on() {
    hush();
    for server in [
        TestServer::http(config(), Inline(panicking)),
        TestServer::http(config(), panicking),
    ] {
        let mut client = server.connect();
        for path in ["/panic", "/status"] {
            let answer = client.get(path);
            assert_eq!(
                (answer.status, answer.text()),
                (500, "internal server error\n")
            );
            assert_eq!(client.get("/hello").text(), "hello\n");
        }
        client.send([get("/hello"), get("/panic"), get("/hello")].concat());
        for status in [200, 500, 200] {
            assert_eq!(client.answer().status, status);
        }
        assert_eq!(server.totals().handler_panics, 3);
        assert_eq!(server.totals().answers_server_error, 3);
    }
}

#[test]
fn panics_cost_no_handler_thread() {
    hush();
    let mut server = TestServer::http(config(), panicking);
    let addr = server.addr();
    for _ in 0..20 {
        assert_eq!(server.connect().get("/panic").status, 500);
    }
    let clients: Vec<_> = (0..10)
        .map(|_| {
            thread::spawn(move || {
                let mut client = Client::connect(addr);
                for _ in 0..10 {
                    assert_eq!(client.get("/hello").text(), "hello\n");
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("each was served");
    }
    assert_eq!(server.totals().handler_panics, 20);
    // Nobody is still waited for.
    server.stop();
}

/// Panics where it says where it runs.
struct Undecided;

impl Handler for Undecided {
    fn handle(&self, request: &Request<'_>, response: &mut Response) {
        app(request, response);
    }

    fn execution(&self, request: &Request<'_>) -> Execution {
        assert!(request.path() != "/panic", "{ON_PURPOSE}");
        Execution::Inline
    }
}

#[test]
fn a_handler_that_panics_before_it_runs_harms_nobody_either() {
    hush();
    let server = TestServer::http(config(), Undecided);
    let mut client = server.connect();
    let mut other = server.connect();
    assert_eq!(other.get("/hello").text(), "hello\n");
    assert_eq!(client.get("/panic").status, 500);
    assert_eq!(client.get("/hello").text(), "hello\n");
    assert_eq!(other.get("/hello").text(), "hello\n");
    assert_eq!(server.totals().handler_panics, 1);
}

#[test]
fn a_frame_service_that_panics_costs_its_connection_only() {
    hush();
    let service = |payload: &[u8], reply: &mut Reply<'_>| {
        assert!(payload != b"panic", "{ON_PURPOSE}");
        reply.send(payload);
    };
    let server = Server::new(config())
        .expect("the settings can be used")
        .frames(any_port(), service)
        .expect("a free port");
    let server = TestServer::start(server);
    let mut other = server.connect();
    let mut client = server.connect();
    client.send(b"\0\0\0\x02hi\0\0\0\x05panic\0\0\0\x02no");
    assert_eq!(client.read_to_end(), b"\0\0\0\x02hi");
    other.send(b"\0\0\0\x02hi");
    assert_eq!(other.read_exact(6), b"\0\0\0\x02hi");
    assert_eq!(server.totals().handler_panics, 1);
}
