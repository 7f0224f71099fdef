//! What connections and subscriptions cost the process: no thread, no processor while nothing happens, no more memory
//! for slow clients than is said, and no more descriptors than there are.
#![cfg(feature = "store")]

use std::thread;
use std::time::Duration;

use support::{Binary, Client, EventStream, cpu_time, descriptors_of, threads_of, wait_until};

mod support;

const APPEND: &str = r#"{"events":[{"type":"T"}]}"#;

/// The time that all threads of the process have spent on a processor.
fn cpu_time_of(pid: u32) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    tasks
        .map(|task| {
            let task = task.expect("a thread").file_name();
            cpu_time(&format!("{pid}/task/{}", task.display()))
        })
        .sum()
}

#[test]
fn five_hundred_connections_and_a_hundred_subscriptions_need_no_thread() {
    let binary = Binary::start();
    let pid = binary.pid();
    let mut client = binary.connect();
    // Whatever is started on demand has been started.
    assert_eq!(client.post("/v1/append", APPEND).status, 200);
    assert_eq!(client.get("/v1/stats").status, 200);
    let mut stream = EventStream::open(binary.connect(), "/v1/subscribe", "");
    assert_eq!(stream.next_position(), 1);
    drop(stream);
    let stats = |client: &mut Client, name: &str| client.get("/v1/stats").json()[name].as_u64();
    wait_until("only this connection is left", || {
        stats(&mut client, "active_connections") == Some(1)
    });
    let threads = threads_of(pid);
    let descriptors = descriptors_of(pid);

    let mut clients: Vec<_> = (0..500).map(|_| binary.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/healthz").text(), "ok\n");
    }
    let mut streams: Vec<_> = (0..100)
        .map(|_| EventStream::open(binary.connect(), "/v1/subscribe", ""))
        .collect();
    for stream in &mut streams {
        assert_eq!(stream.next_position(), 1);
        stream.expect_caught_up(1);
    }
    assert_eq!(stats(&mut client, "active_connections"), Some(601));
    assert_eq!(stats(&mut client, "active_subscriptions"), Some(100));
    assert_eq!(threads_of(pid), threads);

    let before = cpu_time_of(pid);
    thread::sleep(Duration::from_millis(300));
    let cost = cpu_time_of(pid) - before;
    assert!(
        cost < Duration::from_millis(15),
        "{cost:?} in 300 ms of silence"
    );

    // Requests of all of them at once, and an event for each of the subscriptions.
    for client in &mut clients {
        client.send_get("/v1/events");
    }
    assert_eq!(client.post("/v1/append", APPEND).status, 200);
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    for stream in &mut streams {
        assert_eq!(stream.next_position(), 2);
    }
    assert_eq!(threads_of(pid), threads);

    drop((clients, streams));
    wait_until("all are gone", || descriptors_of(pid) == descriptors);
    assert_eq!(stats(&mut client, "active_subscriptions"), Some(0));
    assert_eq!(threads_of(pid), threads);
}

/// The memory of a process that is really there.
fn resident_bytes(pid: u32) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).expect("the process runs");
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number of pages") * 4_096
}

#[test]
fn clients_that_do_not_read_cost_their_outbox_and_not_what_they_asked_for() {
    const CLIENTS: usize = 20;
    let binary = Binary::start();
    let mut client = binary.connect();
    let event = format!("{{\"type\":\"T\",\"data\":\"{}\"}}", "x".repeat(20_000));
    let body = format!("{{\"events\":[{}]}}", vec![event; 40].join(","));
    for _ in 0..20 {
        assert_eq!(client.post("/v1/append", &body).status, 200);
    }
    assert_eq!(client.get("/v1/events?limit=100").status, 200);
    let before = resident_bytes(binary.pid());
    let mut slow: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = Client::connect_with_small_window(binary.addr());
            client.send("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n");
            client.read_head();
            client
        })
        .collect();
    // 16 MB for each. What isn't held in the sockets' buffers waits in the store.
    let mut last = 0;
    wait_until("it has stopped growing", || {
        thread::sleep(Duration::from_millis(100));
        let now = resident_bytes(binary.pid());
        std::mem::replace(&mut last, now) == now
    });
    let each = last.saturating_sub(before) / CLIENTS;
    assert!(each < 2 << 20, "{each} bytes each");
    // Others are served, and those who come back to reading get everything.
    assert_eq!(client.get("/healthz").text(), "ok\n");
    let mut lines = 0;
    loop {
        let chunk = slow[0].read_chunk();
        if chunk.is_empty() {
            break;
        }
        lines += chunk.iter().filter(|&&byte| byte == b'\n').count();
    }
    assert_eq!(lines, 800);
}

#[test]
fn a_process_without_descriptors_serves_those_who_are_inside_and_recovers() {
    let binary = Binary::start_with_descriptors(64);
    let mut inside = binary.connect();
    assert_eq!(inside.get("/healthz").text(), "ok\n");
    // More than there are descriptors for; some of them are closed at once, so that they know.
    let crowd: Vec<_> = (0..80).map(|_| binary.connect()).collect();
    wait_until("all are used", || descriptors_of(binary.pid()) >= 60);
    assert_eq!(inside.get("/healthz").text(), "ok\n");
    let before = cpu_time_of(binary.pid());
    thread::sleep(Duration::from_millis(300));
    let cost = cpu_time_of(binary.pid()) - before;
    assert!(cost < Duration::from_millis(30), "{cost:?} in 300 ms");
    assert_eq!(inside.get("/healthz").text(), "ok\n");
    drop(crowd);
    let mut late = binary.connect();
    late.send_get("/healthz");
    let answer = late.try_answer().or_else(|| {
        // It came while there was nothing for it; the next one has a place.
        let mut late = binary.connect();
        late.send_get("/healthz");
        late.try_answer()
    });
    assert_eq!(answer.expect("there is room again").text(), "ok\n");
    let warnings = binary.log().matches("no descriptor").count();
    assert!(
        (1..=10).contains(&warnings),
        "{warnings} lines: {}",
        binary.log()
    );
}
