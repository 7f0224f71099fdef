//! Subscriptions over the wire protocol: what they give, how they end, and how many there may be.

#![cfg(feature = "store")]

mod support;
mod wire_support;

use std::collections::{BTreeMap, BTreeSet};

use pumice::{Config, StoreConfig};
use pumice_frame_proto::tephra::proto::{ErrorCode, Event, Query};

use support::{Binary, TestServer, config};
use wire_support::{
    Answer, Client, all, append, cancel, event, matching, read_of, stats, subscribe,
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

#[test]
fn a_subscription_gives_what_is_stored_says_so_once_and_gives_what_comes() {
    let server = served();
    let mut writer = Client::hello(server.addr());
    let mut client = Client::hello(server.addr());
    writer.append(plain(3));
    client.send(&subscribe(8, all(), 0));
    let (events, watermark) = client.take_to_edge(8);
    assert_eq!((positions(&events), watermark), (vec![1, 2, 3], 3));
    for round in 4..20 {
        let sent = event("B", &["n:1"], format!("{round}"));
        writer.append(vec![sent.clone()]);
        assert_eq!(client.expect(), (8, Answer::Events(vec![(round, sent)])));
        assert_eq!(client.expect(), (8, Answer::CaughtUp { watermark: round }));
    }
}

#[test]
fn a_subscription_to_an_empty_store_is_at_its_edge_at_once() {
    let server = served();
    let mut client = Client::hello(server.addr());
    client.send(&subscribe(1, all(), 0));
    assert_eq!(client.take_to_edge(1), (Vec::new(), 0));
    // Its own connection's appends come as well.
    client.send(&append(2, plain(2)));
    let mut answers: BTreeMap<u64, Vec<Answer>> = BTreeMap::new();
    for _ in 0..3 {
        let (id, answer) = client.expect();
        answers.entry(id).or_default().push(answer);
    }
    assert_eq!(answers[&2], [Answer::Appended { first: 1, last: 2 }]);
    let [Answer::Events(events), Answer::CaughtUp { watermark: 2 }] = &answers[&1][..] else {
        panic!("{answers:?}");
    };
    assert_eq!(positions(events), [1, 2]);
}

#[test]
fn commits_that_do_not_concern_a_subscription_are_not_told() {
    let server = served();
    let mut writer = Client::hello(server.addr());
    let mut client = Client::hello(server.addr());
    writer.append(vec![event("A", &["k:1"], ""), event("B", &["k:1"], "")]);
    client.send_all([
        subscribe(1, matching(&["A"], &["k:1"]), 0),
        subscribe(2, Query::default(), 0),
    ]);
    let mut edges = 0;
    while edges < 2 {
        match client.expect() {
            (1, Answer::Events(events)) => assert_eq!(positions(&events), [1]),
            (_, Answer::CaughtUp { watermark: 2 }) => edges += 1,
            other => panic!("unexpected: {other:?}"),
        }
    }
    for _ in 0..5 {
        writer.append(vec![event("B", &["k:1"], ""), event("A", &["k:2"], "")]);
    }
    let (_, last) = writer.append(vec![event("B", &[], ""), event("A", &["k:1", "z"], "")]);
    // Nothing came before the one that matches, and nothing comes to the other subscription.
    let (id, answer) = client.expect();
    let Answer::Events(events) = answer else {
        panic!("not events: {answer:?}");
    };
    assert_eq!((id, positions(&events)), (1, vec![last]));
    assert_eq!(client.expect(), (1, Answer::CaughtUp { watermark: last }));
    client.send(&barrier(9));
    assert_eq!(client.take_read(9), (Vec::new(), last));
}

#[test]
fn a_subscription_starts_right_after_the_place_it_names() {
    let server = served();
    let mut client = Client::hello(server.addr());
    client.append(plain(5));
    for after in 0..=5 {
        client.send_all([subscribe(1, all(), after)]);
        let (events, watermark) = client.take_to_edge(1);
        assert_eq!(positions(&events), (after + 1..=5).collect::<Vec<_>>());
        assert_eq!(watermark, 5);
        client.send(&cancel(1));
    }
}

#[test]
fn a_subscription_from_beyond_the_tip_waits_until_the_log_has_passed_its_place() {
    let server = served();
    let mut writer = Client::hello(server.addr());
    let mut client = Client::hello(server.addr());
    writer.append(plain(2));
    client.send(&subscribe(1, all(), 5));
    // Never less than it was asked to start after: a client may keep this as its place.
    assert_eq!(client.take_to_edge(1), (Vec::new(), 5));
    for _ in 3..=5 {
        writer.append(plain(1));
    }
    writer.append(plain(2));
    let mut given = Vec::new();
    while given.len() < 2 {
        match client.expect() {
            (1, Answer::Events(events)) => given.extend(positions(&events)),
            (1, Answer::CaughtUp { watermark }) => assert!(watermark >= 5),
            other => panic!("unexpected: {other:?}"),
        }
    }
    assert_eq!(given, [6, 7]);
    client.send(&subscribe(2, all(), u64::MAX));
    assert_eq!(client.take_to_edge(1), (Vec::new(), 7));
    assert_eq!(client.take_to_edge(2), (Vec::new(), u64::MAX));
    writer.append(plain(1));
    assert_eq!(positions(&client.take_to_edge(1).0), [8]);
}

#[test]
fn a_cancelled_subscription_is_silent_in_each_of_its_phases() {
    let server = served();
    let mut writer = Client::hello(server.addr());
    for _ in 0..8 {
        writer.append(vec![event("A", &[], vec![0; 64 * 1024]); 8]);
    }
    let mut client = Client::with_small_window(server.addr());
    for taken in 0..6 {
        // An unknown id, a cancel in the middle of the catch-up, and the same again.
        client.send_all([cancel(99), subscribe(1, all(), 0)]);
        for _ in 0..taken {
            assert_eq!(client.expect().0, 1);
        }
        client.send_all([cancel(1), cancel(1), barrier(2)]);
        while client.expect().0 != 2 {}
        writer.append(plain(1));
        client.stats();
    }
    // At the live edge, with something on its way.
    for _ in 0..20 {
        let tip = writer.stats().event_count;
        client.send(&subscribe(1, all(), tip));
        assert_eq!(client.take_to_edge(1), (Vec::new(), tip));
        writer.append(plain(1));
        client.send_all([cancel(1), barrier(2)]);
        while client.expect().0 != 2 {}
        writer.append(plain(1));
        client.stats();
    }
    writer.wait_for(|stats| stats.active_subscriptions == 0);
}

#[test]
fn an_id_is_free_again_after_its_cancel() {
    let server = served();
    let mut client = Client::hello(server.addr());
    client.append(plain(3));
    for after in [0, 1, 2, 3, 0] {
        client.send(&subscribe(1, all(), after));
        let (events, _) = client.take_to_edge(1);
        assert_eq!(events.len() as u64, 3 - after);
        client.send(&cancel(1));
    }
}

#[test]
fn one_connection_carries_its_budget_of_subscriptions_and_no_more() {
    let server = served();
    let mut writer = Client::hello(server.addr());
    let mut client = Client::hello(server.addr());
    let query = |id: u64| matching(&[], &[&format!("id:{id}")]);
    client.send_all((1..=64).map(|id| subscribe(id, query(id), 0)));
    for _ in 1..=64 {
        assert_eq!(client.expect().1, Answer::CaughtUp { watermark: 0 });
    }
    client.send(&subscribe(65, all(), 0));
    let (id, code, error) = client.expect_error();
    assert_eq!((id, code), (65, ErrorCode::BadRequest));
    assert_eq!(
        error.message,
        "too many concurrent subscriptions on this connection"
    );
    // Each gets its own and nothing else.
    for id in (1..=64).rev() {
        writer.append(vec![event("A", &[&format!("id:{id}")], "")]);
    }
    let (mut given, mut told) = (BTreeSet::new(), BTreeSet::new());
    while told.len() < 64 {
        match client.expect() {
            (id, Answer::Events(events)) => {
                assert_eq!(positions(&events), [65 - id]);
                assert!(given.insert(id));
            }
            (id, Answer::CaughtUp { watermark }) => {
                assert!(given.contains(&id) && watermark > 64 - id);
                assert!(told.insert(id));
            }
            other => panic!("unexpected: {other:?}"),
        }
    }
    // A cancelled one makes room, on this connection as on any other.
    client.send_all([cancel(7), subscribe(66, query(7), 0)]);
    assert_eq!(positions(&client.take_to_edge(66).0), [58]);
    let mut other = Client::hello(server.addr());
    other.send(&subscribe(1, query(1), 0));
    assert_eq!(positions(&other.take_to_edge(1).0), [64]);
}

#[test]
fn a_subscription_ends_with_its_clients_half_close() {
    let server = served();
    let mut writer = Client::hello(server.addr());
    let mut client = Client::hello(server.addr());
    client.send(&subscribe(1, all(), 0));
    client.take_to_edge(1);
    client.finish();
    client.expect_end();
    writer.wait_for(|stats| stats.active_subscriptions == 0);
}

#[test]
fn a_request_that_came_while_the_outbox_was_full_is_answered_when_it_is_empty() {
    // With the least outbox one event fills it, and nothing but the socket will ever wake the connection again.
    let server = TestServer::store(
        Config {
            outbox_bytes_max: 4_096,
            ..config()
        },
        StoreConfig::default(),
    );
    let mut writer = Client::hello(server.addr());
    let mut client = Client::with_small_window(server.addr());
    client.send(&subscribe(1, all(), 0));
    client.take_to_edge(1);
    let mut watcher = Client::hello(server.addr());
    watcher.send(&subscribe(1, all(), 0));
    watcher.take_to_edge(1);
    for position in 1..=2 {
        // More than the system takes at once, and little enough for one more time.
        writer.append(vec![event("A", &[], vec![0; 5 * 1024 * 1024])]);
        // The one worker has fed both by then.
        watcher.take_to_edge(1);
        client.send(&stats(2));
        writer.stats();
        let mut is_answered = false;
        let mut is_given = false;
        while !(is_answered && is_given) {
            match client.expect() {
                (1, Answer::Events(_)) => {}
                (1, Answer::CaughtUp { watermark }) => {
                    assert_eq!(watermark, position);
                    is_given = true;
                }
                (2, Answer::Stats(_)) => is_answered = true,
                other => panic!("unexpected: {other:?}"),
            }
        }
    }
}

#[test]
fn at_sigterm_subscriptions_end_with_an_error_and_idle_clients_with_their_connection() {
    let mut binary = Binary::start();
    let mut writer = Client::hello(binary.addr());
    for _ in 0..8 {
        writer.append(vec![event("A", &[], vec![0; 64 * 1024]); 16]);
    }
    let mut live = Client::hello(binary.addr());
    live.send_all([subscribe(1, all(), 128), subscribe(2, all(), 128)]);
    for _ in 0..2 {
        assert_eq!(live.expect().1, Answer::CaughtUp { watermark: 128 });
    }
    // One that is still far from the edge.
    let mut late = Client::with_small_window(binary.addr());
    late.send(&subscribe(1, all(), 0));
    assert_eq!(late.expect().0, 1);
    binary.terminate();
    let mut ended = Vec::new();
    for _ in 0..2 {
        let (id, code, error) = live.expect_error();
        assert_eq!((code, error.retryable), (ErrorCode::Shutdown, true));
        ended.push(id);
    }
    ended.sort_unstable();
    assert_eq!(ended, [1, 2]);
    live.expect_end();
    writer.expect_end();
    let error = loop {
        match late.expect() {
            (1, Answer::Events(_)) => {}
            (1, Answer::Error(error)) => break error,
            other => panic!("unexpected: {other:?}"),
        }
    };
    assert_eq!(error.code(), ErrorCode::Shutdown);
    late.expect_end();
    assert!(binary.wait().success());
}
