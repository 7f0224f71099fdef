//! Servers that start and stop within one process leave nothing of themselves behind. The only test of this file, since
//! it counts what the whole process has.
#![cfg(feature = "store")]

use pumice::{Config, Inline, Request, Response, StoreConfig};
use support::{EventStream, TestServer, app, config, descriptors_of, threads_of, wait_until};

mod support;

#[test]
fn twenty_starts_and_stops_leak_no_thread_and_no_descriptor() {
    let pid = std::process::id();
    let config = Config {
        workers: 2,
        ..config()
    };
    let panicking = |request: &Request<'_>, response: &mut Response| match request.path() {
        // Silent, unlike a panic: the hook isn't called.
        "/panic" => std::panic::resume_unwind(Box::new(())),
        _ => app(request, response),
    };
    let cycle = || {
        let mut server = TestServer::store(config.clone(), StoreConfig::default());
        let mut client = server.connect();
        assert_eq!(
            client
                .post("/v1/append", r#"{"events":[{"type":"T"}]}"#)
                .status,
            200
        );
        assert_eq!(client.get("/v1/events").status, 200);
        let mut stream = EventStream::open(server.connect(), "/v1/subscribe", "");
        assert_eq!(stream.next_position(), 1);
        server.stop();
        client.expect_end();

        for mut server in [
            TestServer::http(config.clone(), Inline(panicking)),
            TestServer::http(config.clone(), panicking),
        ] {
            let mut client = server.connect();
            assert_eq!(client.get("/hello").status, 200);
            assert_eq!(client.get("/panic").status, 500);
            server.stop();
            client.expect_end();
        }
        // One that is told to stop before it has begun.
        let server = TestServer::http(config.clone(), panicking);
        server.handle().stop();
    };
    cycle();
    // The tail thread isn't waited for; it ends when the store has.
    wait_until("only the test's threads are left", || threads_of(pid) <= 2);
    let descriptors = descriptors_of(pid);
    for _ in 0..20 {
        cycle();
    }
    wait_until("only the test's threads are left", || threads_of(pid) <= 2);
    wait_until("no descriptor is left", || {
        descriptors_of(pid) <= descriptors
    });
}
