//! More than there is room for: connections that wait for a place, requests that find the handlers busy.

use std::thread;
use std::time::Duration;

#[cfg(feature = "store")]
use pumice::StoreConfig;
use pumice::{Config, Inline, Request, Response};
use support::{Client, Gate, TestServer, app, config, cpu_time, get};

mod support;

fn task_or_app(request: &Request<'_>, response: &mut Response) {
    if request.path() == "/task" {
        let task = std::fs::read_link("/proc/thread-self").expect("this runs on Linux");
        response.bytes(task.into_os_string().into_encoded_bytes());
    } else {
        app(request, response);
    }
}

#[test]
fn a_client_without_a_place_waits_at_no_cost_and_is_served_when_one_leaves() {
    let config = Config {
        connections_max: 3,
        ..config()
    };
    let server = TestServer::http(config, Inline(task_or_app));
    let mut inside: Vec<_> = (0..3).map(|_| server.connect()).collect();
    let task = inside[0].get("/task").text().to_owned();
    for client in &mut inside {
        assert_eq!(client.get("/hello").status, 200);
    }
    let mut waiting: Vec<_> = (0..2).map(|_| server.connect()).collect();
    for client in &mut waiting {
        client.send_get("/hello");
    }
    let before = cpu_time(&task);
    waiting[0].expect_silence(Duration::from_millis(200));
    let cost = cpu_time(&task) - before;
    assert!(cost < Duration::from_millis(20), "{cost:?} of 200 ms");
    assert_eq!(server.totals().connections_open, 3);
    // Those inside are served meanwhile.
    assert_eq!(inside[2].get("/hello").text(), "hello\n");
    for client in &mut waiting {
        inside.remove(0);
        assert_eq!(client.answer().text(), "hello\n");
    }
    assert_eq!(server.totals().connections_refused, 0);
}

#[test]
fn a_full_house_that_empties_at_once_takes_everybody_who_waits() {
    let config = Config {
        connections_max: 4,
        ..config()
    };
    for workers in [1, 2, 3] {
        let server = TestServer::http(
            Config {
                workers,
                ..config.clone()
            },
            Inline(app),
        );
        for _ in 0..5 {
            let mut inside: Vec<_> = (0..4 * workers).map(|_| server.connect()).collect();
            for client in &mut inside {
                assert_eq!(client.get("/hello").status, 200);
            }
            let mut waiting: Vec<_> = (0..4 * workers).map(|_| server.connect()).collect();
            for client in &mut waiting {
                client.send_get("/hello");
            }
            drop(inside);
            for client in &mut waiting {
                assert_eq!(client.answer().text(), "hello\n");
            }
        }
        assert_eq!(server.totals().connections_refused, 0);
    }
}

#[test]
fn newcomers_of_a_full_worker_are_served_by_another_with_room() {
    let config = Config {
        workers: 3,
        connections_max: 4,
        ..config()
    };
    for _ in 0..10 {
        let server = TestServer::http(config.clone(), Inline(app));
        // The system deals them out as it likes; there is a place for each of them somewhere.
        let mut clients: Vec<_> = (0..12).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.send_get("/hello");
        }
        for client in &mut clients {
            assert_eq!(client.answer().text(), "hello\n");
        }
        let mut waiting = server.connect();
        waiting.send_get("/hello");
        // Whichever worker it waits at, and whichever one gets room.
        drop(clients.pop());
        assert_eq!(waiting.answer().text(), "hello\n");
        assert_eq!(server.totals().connections_refused, 0);
    }
}

#[test]
fn a_crowd_through_a_narrow_door_is_served_to_the_last() {
    let config = Config {
        workers: 2,
        connections_max: 2,
        ..config()
    };
    let server = TestServer::http(config, Inline(app));
    let addr = server.addr();
    let crowd: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(move || {
                for _ in 0..50 {
                    let mut client = Client::connect(addr);
                    assert_eq!(client.get("/hello").text(), "hello\n");
                }
            })
        })
        .collect();
    for client in crowd {
        client.join().expect("each of its connections was served");
    }
    assert_eq!(server.totals().connections_refused, 0);
    assert_eq!(server.totals().connections_accepted, 400);
}

#[test]
fn a_request_that_finds_the_handler_queue_full_is_503_and_may_come_again() {
    let gate = Gate::default();
    let wait = {
        let gate = gate.clone();
        move |_: &Request<'_>, response: &mut Response| {
            gate.wait();
            response.text("done\n");
        }
    };
    let config = Config {
        handler_threads: 1,
        handler_queue_max: 2,
        ..config()
    };
    let server = TestServer::http(config, wait);
    let mut running = server.connect();
    running.send_get("/");
    gate.wait_for_arrivals(1);
    let mut queued: Vec<_> = (0..2).map(|_| server.connect()).collect();
    for (index, client) in queued.iter_mut().enumerate() {
        client.send_get("/");
        let requests = index as u64 + 2;
        server.wait_for("queued", |totals| totals.http_requests == requests);
    }
    let mut refused = server.connect();
    // Neither accepting nor answering waits for the handlers.
    for _ in 0..3 {
        let answer = refused.get("/");
        assert_eq!(answer.status, 503);
        assert_eq!(answer.field("retry-after"), Some("1"));
        assert!(!answer.closes());
    }
    assert_eq!(server.totals().handler_queue_full, 3);
    gate.open();
    for client in queued.iter_mut().chain([&mut running]) {
        assert_eq!(client.answer().text(), "done\n");
    }
    assert_eq!(refused.get("/").text(), "done\n");
}

#[test]
fn pipelined_requests_of_one_client_never_fill_the_handler_queue() {
    let config = Config {
        handler_threads: 1,
        handler_queue_max: 1,
        ..config()
    };
    let server = TestServer::http(config, app);
    let mut client = server.connect();
    client.send(get("/hello").repeat(100));
    for _ in 0..100 {
        assert_eq!(client.answer().text(), "hello\n");
    }
}

/// Slow readers hold neither handler threads nor the worker.
#[test]
fn clients_that_do_not_read_hold_up_nobody_else() {
    let server = TestServer::http(config(), app);
    let stuck: Vec<_> = (0..8)
        .map(|_| {
            let mut client = Client::connect_with_small_window(server.addr());
            client.send_get("/bytes/4000000");
            client
        })
        .collect();
    server.wait_for("all are made", |totals| totals.answers_ok == 8);
    let mut client = server.connect();
    for _ in 0..20 {
        assert_eq!(client.get("/hello").text(), "hello\n");
    }
    // Half of them go away in the middle of their answers, the others take them.
    for (index, mut client) in stuck.into_iter().enumerate() {
        if index % 2 == 0 {
            client.read_exact(1_000);
        } else {
            assert_eq!(client.answer().body.len(), 4_000_000);
        }
    }
    assert_eq!(client.get("/hello").text(), "hello\n");
}

#[cfg(feature = "store")]
#[test]
fn one_connection_more_than_the_store_takes_is_closed_at_once_and_counted() {
    let store_config = StoreConfig {
        connections_max: 3,
        ..StoreConfig::default()
    };
    let config = Config {
        workers: 2,
        ..config()
    };
    let server = TestServer::store(config, store_config);
    let mut inside: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for client in &mut inside {
        assert_eq!(client.get("/healthz").text(), "ok\n");
    }
    for refused in 1..=3 {
        server.connect().expect_gone();
        server.wait_for("counted", |totals| totals.connections_refused == refused);
    }
    inside.pop();
    server.wait_for("there is room", |totals| totals.connections_open == 2);
    let mut client = server.connect();
    assert_eq!(client.get("/healthz").text(), "ok\n");
    let stats = client.get("/v1/stats").json();
    assert_eq!(stats["connections_refused"], 3);
    assert_eq!(stats["max_connections"], 3);
    assert_eq!(stats["active_connections"], 3);
}
