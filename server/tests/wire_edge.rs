//! Where a subscription over the wire protocol passes from the store to the live edge and back: beside a writer, a slow
//! client, a worker that is busy.

#![cfg(feature = "store")]

mod support;
mod wire_support;

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use pumice::{Config, StoreConfig};
use pumice_frame_proto::tephra::proto::{ErrorCode, Event};

use support::{TestServer, config};
use wire_support::{
    Answer, Client, all, append, cancel, event, frame, matching, read_of, subscribe,
};

fn served() -> TestServer {
    TestServer::store(config(), StoreConfig::default())
}

fn plain(count: usize) -> Vec<Event> {
    vec![event("A", &[], ""); count]
}

fn positions(events: &[(u64, Event)]) -> Vec<u64> {
    events.iter().map(|&(position, _)| position).collect()
}

/// A read of nothing: its end waits behind everything that streams of this connection were given before.
fn barrier(request_id: u64) -> pumice_frame_proto::tephra::proto::Request {
    read_of(request_id, all(), 0, Some(0), false)
}

/// A thread that appends until it is told to stop. The event at position n has the tag `m:(n % 3)`.
struct Writer {
    shared: Arc<(Mutex<Written>, Condvar)>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Written {
    tip: u64,
    is_stopped: bool,
}

impl Writer {
    /// `together` is how many appends it has on their way at a time.
    fn start(addr: SocketAddr, together: u64) -> Self {
        let shared = Arc::<(Mutex<Written>, Condvar)>::default();
        let told = Arc::clone(&shared);
        let mut client = Client::hello(addr);
        let mut sent = 0;
        let thread = thread::spawn(move || {
            for id in 1.. {
                while sent < id + together - 1 {
                    sent += 1;
                    client.send(&append(
                        sent,
                        vec![event("W", &[&format!("m:{}", sent % 3)], "")],
                    ));
                }
                let appended = Answer::Appended {
                    first: id,
                    last: id,
                };
                assert_eq!(client.expect(), (id, appended), "the order of its appends");
                let mut written = told.0.lock().expect("no test panics with it");
                written.tip = id;
                told.1.notify_all();
                if written.is_stopped {
                    return;
                }
            }
        });
        Self { shared, thread }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.shared.0.lock().expect("the writer did not panic")
    }

    fn tip(&self) -> u64 {
        self.written().tip
    }

    /// Waits for some commits.
    fn wait_for(&self, commits: u64) {
        let mut written = self.written();
        let tip = written.tip + commits;
        while written.tip < tip {
            written = self
                .shared
                .1
                .wait(written)
                .expect("the writer did not panic");
        }
    }

    fn stop(self) {
        self.written().is_stopped = true;
        self.thread.join().expect("the writer did not panic");
    }
}

#[test]
fn between_the_store_and_the_live_edge_nothing_is_missed_and_nothing_comes_twice() {
    const ROUNDS: u64 = 60;
    let server = TestServer::store(
        Config {
            workers: 2,
            ..config()
        },
        StoreConfig::default(),
    );
    let writer = Writer::start(server.addr(), 4);
    let mut client = Client::hello(server.addr());
    for round in 0..ROUNDS {
        if round % 7 == 0 {
            client = Client::hello(server.addr());
        }
        // From nothing to some hundred events behind the edge, and a little beyond it.
        let after = match round % 5 {
            4 => writer.tip() + 3,
            back => writer.tip().saturating_sub(back * back * 20),
        };
        let query = |id| match id {
            0 => all(),
            id => matching(&["W"], &[&format!("m:{}", id % 3)]),
        };
        client.send_all((0..4).map(|id| subscribe(id, query(id), after)));
        let mut next = [after + 1; 4];
        let mut edges = [0; 4];
        // Until each has been at the edge three times, or has come a good way beyond it.
        while (0..4).any(|id| edges[id] < 3 && next[id] < after + 1_000) {
            let (id, answer) = client.expect();
            let index = usize::try_from(id).expect("an id of this test");
            match answer {
                Answer::Events(events) => {
                    for (position, event) in events {
                        assert_eq!(event.tags, [format!("m:{}", position % 3)]);
                        let mut expected = next[index];
                        while id > 0 && expected % 3 != id % 3 {
                            expected += 1;
                        }
                        assert_eq!(position, expected, "subscription {id} of round {round}");
                        next[index] = position + 1;
                    }
                }
                Answer::CaughtUp { watermark } => {
                    assert!(watermark + 1 >= next[index]);
                    edges[index] += 1;
                }
                other => panic!("unexpected: {other:?}"),
            }
        }
        client.send_all((0..4).map(cancel).chain([barrier(9)]));
        while client.expect().0 != 9 {}
    }
    writer.stop();
}

#[test]
fn the_only_subscription_misses_nothing_wherever_the_tail_starts() {
    // The tail rests while nobody subscribes. Each round wakes it between a read and the commits after it.
    const ROUNDS: u64 = 200;
    let server = served();
    let writer = Writer::start(server.addr(), 1);
    let mut client = Client::hello(server.addr());
    for round in 0..ROUNDS {
        let after = writer.tip();
        client.send(&subscribe(round, all(), after));
        let mut next = after + 1;
        while next <= after + 5 {
            match client.expect() {
                (id, Answer::Events(events)) if id == round => {
                    for (position, _) in events {
                        assert_eq!(position, next, "round {round}");
                        next += 1;
                    }
                }
                (id, Answer::CaughtUp { .. }) if id == round => {}
                other => panic!("unexpected: {other:?}"),
            }
        }
        client.send_all([cancel(round), barrier(u64::MAX)]);
        while client.expect().0 != u64::MAX {}
        // The next commit shows the tail that nobody wants it.
        writer.wait_for(2);
    }
    writer.stop();
}

#[test]
fn what_is_committed_during_a_catch_up_follows_it_though_no_other_commit_does() {
    let server = served();
    let mut writer = Client::hello(server.addr());
    for _ in 0..8 {
        writer.append(vec![event("A", &[], vec![0; 64 * 1024]); 8]);
    }
    let mut watcher = Client::hello(server.addr());
    watcher.send(&subscribe(1, all(), 64));
    watcher.take_to_edge(1);
    for tip in 64..70 {
        let mut client = Client::with_small_window(server.addr());
        client.send(&subscribe(1, all(), 0));
        assert_eq!(client.expect().0, 1);
        // It reads up to the old tip, and is not live yet when the tail brings the new one.
        writer.append(plain(1));
        assert_eq!(watcher.take_to_edge(1).1, tip + 1);
        let mut last = 0;
        while last < tip + 1 {
            if let (1, Answer::Events(events)) = client.expect() {
                last = events.last().expect("an event").0;
            }
        }
    }
}

#[test]
fn commits_that_a_busy_worker_was_not_told_of_are_read_from_the_store() {
    const APPENDS: u64 = 60;
    // Each append is a commit of its own, and the tail hands each to the worker alone.
    let server = TestServer::store(
        config(),
        StoreConfig {
            batch_appends_max: 1,
            ..StoreConfig::default()
        },
    );
    let mut client = Client::hello(server.addr());
    client.send(&subscribe(1, all(), 0));
    client.take_to_edge(1);
    let mut writer = Client::hello(server.addr());
    // Its decoding keeps the worker from taking anything else; it is refused for its last event.
    let mut events = vec![event("A", &["a:1", "b:2", "c:3"], "x"); 40_000];
    events.push(event("", &[], ""));
    let heavy = frame(&append(1, events));
    let (most, last) = heavy.split_at(heavy.len() - 1);
    let mut given = 0;
    for round in 1..=2 {
        let mut busy = Client::hello(server.addr());
        busy.send_bytes(most);
        // The worker has what it needs but for one byte.
        writer.stats();
        writer.send_all((1..=APPENDS).map(|id| append(id, plain(1))));
        busy.send_bytes(last);
        while given < round * APPENDS {
            for (position, _) in client.take_to_edge(1).0 {
                given += 1;
                assert_eq!(position, given);
            }
        }
        for _ in 1..=APPENDS {
            assert!(matches!(writer.expect().1, Answer::Appended { .. }));
        }
        assert_eq!(busy.expect_error().1, ErrorCode::BadRequest);
    }
}

#[test]
fn a_slow_subscriber_falls_back_to_the_store_and_holds_up_nobody() {
    let server = TestServer::store(
        Config {
            outbox_bytes_max: 64 * 1024,
            ..config()
        },
        StoreConfig::default(),
    );
    let mut writer = Client::hello(server.addr());
    let mut fast = Client::hello(server.addr());
    let mut slow: Vec<Client> = (0..3)
        .map(|_| Client::with_small_window(server.addr()))
        .collect();
    fast.send(&subscribe(1, all(), 0));
    fast.take_to_edge(1);
    for client in &mut slow {
        client.send(&subscribe(1, all(), 0));
        client.take_to_edge(1);
    }
    // 9 MiB, more than an outbox and the buffers of both sockets hold.
    let mut last = 0;
    for _ in 0..36 {
        last = writer.append(vec![event("A", &[], vec![1; 4_096]); 64]).1;
        while fast.take_to_edge(1).1 < last {}
    }
    for client in &mut slow {
        let mut given = 0;
        loop {
            let (events, watermark) = client.take_to_edge(1);
            for (position, _) in events {
                given += 1;
                assert_eq!(position, given);
            }
            assert!(watermark >= given);
            if given == last {
                break;
            }
        }
    }
    // And they are live again.
    let (position, _) = writer.append(plain(1));
    for client in slow.iter_mut().chain([&mut fast]) {
        let (events, watermark) = client.take_to_edge(1);
        assert_eq!((positions(&events), watermark), (vec![position], position));
    }
}
