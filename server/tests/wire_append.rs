//! Appends over the wire protocol: conditions, refusals, pipelining, and every acknowledgement that is owed.

#![cfg(feature = "store")]

mod support;
mod wire_support;

use std::collections::BTreeMap;
use std::time::Instant;

use pumice::{Config, StoreConfig};
use pumice_frame_proto::tephra::proto::{AppendCondition, ErrorCode, Event};

use support::{TestServer, config};
use wire_support::{
    Answer, Client, PATIENCE, all, append, append_if, event, frame, matching, read, stats,
    subscribe, unless,
};

fn served() -> TestServer {
    TestServer::store(config(), StoreConfig::default())
}

fn served_with(store_config: StoreConfig) -> TestServer {
    TestServer::store(config(), store_config)
}

fn tagged(tag: &str) -> Vec<Event> {
    vec![event("T", &[tag], "x")]
}

/// The condition that nothing at all matches `query`.
fn if_absent(query: pumice_frame_proto::tephra::proto::Query) -> AppendCondition {
    AppendCondition {
        fail_if_events_match: None,
        after: 0,
        fail_if_exists: Some(query),
    }
}

#[test]
fn appended_events_get_the_next_positions_and_come_back_as_they_were() {
    let server = served();
    let mut client = Client::hello(server.addr());
    let events = vec![
        event("A", &[], ""),
        event("B", &["b:2", "a:1"], [0, 1, 255]),
        event("ü", &["käse"], "text"),
    ];
    assert_eq!(client.append(events[..1].to_vec()), (1, 1));
    assert_eq!(client.append(events[1..].to_vec()), (2, 3));
    client.send(&read(1, 0));
    let (read, watermark) = client.take_read(1);
    assert_eq!(watermark, 3);
    let mut expected = events;
    // Tags are a set: the store keeps them in order.
    expected[1].tags.sort();
    let expected: Vec<(u64, Event)> = (1..).zip(expected).collect();
    assert_eq!(read, expected);
}

#[test]
fn a_condition_that_holds_lets_the_append_through() {
    let server = served();
    let mut client = Client::hello(server.addr());
    client.append(tagged("a:1"));
    let conditions = [
        unless(matching(&[], &["a:1"]), 1),
        unless(matching(&[], &["a:2"]), 0),
        unless(matching(&["T"], &["a:1"]), 2),
        // No query means no event, and so does one without items.
        AppendCondition::default(),
        unless(Default::default(), 0),
        if_absent(matching(&["U"], &["a:1"])),
    ];
    for (condition, position) in conditions.into_iter().zip(2..) {
        client.send(&append_if(position, vec![event("Z", &[], "")], condition));
        let appended = Answer::Appended {
            first: position,
            last: position,
        };
        assert_eq!(client.expect(), (position, appended));
    }
}

#[test]
fn a_conflict_names_the_first_position_in_the_way_and_is_not_retryable() {
    let server = served();
    let mut client = Client::hello(server.addr());
    for tag in ["a:1", "a:2", "a:1", "a:1"] {
        client.append(tagged(tag));
    }
    let cases = [
        (unless(matching(&[], &["a:1"]), 0), 1),
        (unless(matching(&[], &["a:1"]), 1), 3),
        (unless(matching(&["T"], &["a:2"]), 1), 2),
        (unless(all(), 3), 4),
    ];
    for (condition, position) in cases {
        client.send(&append_if(9, tagged("a:1"), condition));
        let (id, code, error) = client.expect_error();
        assert_eq!((id, code), (9, ErrorCode::Conflict));
        assert_eq!(error.conflict_position, Some(position));
        assert!(!error.retryable);
    }
    assert_eq!(client.stats().event_count, 4);
}

#[test]
fn an_event_that_must_not_exist_is_looked_for_in_the_whole_log() {
    let server = served();
    let mut client = Client::hello(server.addr());
    client.append(tagged("request:1"));
    client.append(tagged("other"));
    let absent = if_absent(matching(&[], &["request:1"]));
    client.send(&append_if(2, tagged("request:1"), absent.clone()));
    let (id, code, error) = client.expect_error();
    assert_eq!((id, code), (2, ErrorCode::AlreadyExists));
    assert_eq!((error.conflict_position, error.retryable), (Some(1), false));
    // With both clauses broken, the one with a position counts first.
    let both = AppendCondition {
        fail_if_events_match: Some(matching(&[], &["other"])),
        ..absent
    };
    client.send(&append_if(3, tagged("z"), both));
    let (id, code, error) = client.expect_error();
    assert_eq!((id, code), (3, ErrorCode::Conflict));
    assert_eq!(error.conflict_position, Some(2));
}

#[test]
fn a_condition_beyond_the_tip_is_refused() {
    let server = served();
    let mut client = Client::hello(server.addr());
    client.append(tagged("a:1"));
    for after in [2, u64::MAX] {
        client.send(&append_if(4, tagged("a:1"), unless(all(), after)));
        let (id, code, error) = client.expect_error();
        assert_eq!((id, code), (4, ErrorCode::AfterBeyondTip));
        assert_eq!((error.conflict_position, error.retryable), (None, false));
    }
    client.send(&append_if(5, tagged("a:1"), unless(all(), 1)));
    assert_eq!(client.expect().1, Answer::Appended { first: 2, last: 2 });
}

#[test]
fn an_append_of_nothing_is_refused() {
    let server = served();
    let mut client = Client::hello(server.addr());
    for condition in [None, Some(unless(all(), 0))] {
        client.send(&append_if(6, Vec::new(), condition));
        let (id, code, _) = client.expect_error();
        assert_eq!((id, code), (6, ErrorCode::Empty));
    }
    assert_eq!(client.append(tagged("a:1")), (1, 1));
}

#[test]
fn events_that_break_the_stores_rules_are_bad_requests_and_the_connection_goes_on() {
    let server = served();
    let mut client = Client::hello(server.addr());
    let long = "x".repeat(65_536);
    let cases = [
        append(7, vec![event("", &[], "")]),
        append(7, vec![event(&long, &[], "")]),
        append(7, vec![event("A", &[""], "")]),
        append(7, vec![event("A", &[&long], "")]),
        append(7, vec![event("A", &["a:1", "a:1"], "")]),
        // One bad event spoils the append.
        append(7, vec![event("A", &[], ""), event("", &[], "")]),
        append_if(7, tagged("a:1"), unless(matching(&[""], &[]), 0)),
        append_if(7, tagged("a:1"), unless(matching(&[], &["a", "a"]), 0)),
        append_if(7, tagged("a:1"), if_absent(matching(&[], &[""]))),
    ];
    for request in cases {
        client.send(&request);
        let (id, code, error) = client.expect_error();
        assert_eq!((id, code), (7, ErrorCode::BadRequest), "{error:?}");
        assert!(!error.message.is_empty());
    }
    assert_eq!(client.stats().event_count, 0);
}

#[test]
fn names_of_the_greatest_length_are_taken() {
    let server = served();
    let mut client = Client::hello(server.addr());
    let long = "x".repeat(65_535);
    let longest = event(&long, &[&long], "");
    client.append(vec![longest.clone()]);
    client.send(&read(1, 0));
    assert_eq!(client.take_read(1).0, [(1, longest)]);
}

#[test]
fn a_conflict_within_one_commit_is_retryable_and_has_no_position() {
    let server = served();
    let mut client = Client::hello(server.addr());
    let mut has_met = false;
    // Which appends share a commit is the writer's choice; while it waits for the disk, what follows gathers.
    for round in 0..200 {
        let tag = format!("round:{round}");
        let unless_there = |id| append_if(id, tagged(&tag), unless(matching(&[], &[&tag]), 0));
        client.send_all([append(1, tagged("first")), unless_there(2), unless_there(3)]);
        let answers: BTreeMap<u64, Answer> = (0..3).map(|_| client.expect()).collect();
        let Answer::Appended { first, .. } = answers[&2] else {
            panic!("nothing is in its way: {answers:?}");
        };
        let Answer::Error(error) = &answers[&3] else {
            panic!("the second must fail: {answers:?}");
        };
        assert_eq!(error.code(), ErrorCode::Conflict);
        if error.retryable {
            assert_eq!(error.conflict_position, None);
            has_met = true;
            break;
        }
        assert_eq!(error.conflict_position, Some(first));
    }
    assert!(has_met, "two appends never shared a commit");
}

#[test]
fn appends_far_beyond_the_budget_in_flight_are_all_answered_without_delay() {
    let started = Instant::now();
    for (budget, count) in [(1, 200), (7, 1_000), (256, 1_000)] {
        let server = served_with(StoreConfig {
            inflight_per_connection_max: budget,
            ..StoreConfig::default()
        });
        let mut client = Client::hello(server.addr());
        client.send_all((1..=count).map(|id| append(id, tagged("a:1"))));
        expect_positions(&mut client, count);
    }
    // An append that waited for room must not wait for more: a second each would be three minutes.
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn appends_far_beyond_the_workers_share_of_the_queue_are_all_answered_after_a_half_close_too() {
    let server = served_with(StoreConfig {
        queue_capacity: 3,
        ..StoreConfig::default()
    });
    let mut clients: Vec<Client> = (0..8).map(|_| Client::hello(server.addr())).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        client.send_all((1..=100).map(|id| append(id, tagged("a:1"))));
        if index % 2 == 0 {
            client.finish();
        }
    }
    let mut positions = Vec::new();
    for (index, client) in clients.iter_mut().enumerate() {
        positions.extend(take_positions(client, 100).into_values());
        if index % 2 == 0 {
            client.expect_end();
        }
    }
    positions.sort_unstable();
    assert!(positions.into_iter().eq(1..=800));
}

#[test]
fn a_newcomer_is_served_in_its_turn_while_others_fill_the_queue_all_the_time() {
    const MANY: u64 = 400;
    let server = served_with(StoreConfig {
        queue_capacity: 2,
        ..StoreConfig::default()
    });
    let mut greedy: Vec<Client> = (0..4).map(|_| Client::hello(server.addr())).collect();
    let mut newcomer = Client::hello(server.addr());
    for client in &mut greedy {
        client.send_all((1..=MANY).map(|id| append(id, tagged("a:1"))));
        client.expect();
    }
    newcomer.send_all([stats(1), append(2, tagged("a:1"))]);
    let (mut tip, mut position) = (None, None);
    while tip.is_none() || position.is_none() {
        match newcomer.expect() {
            (1, Answer::Stats(stats)) => tip = Some(stats.event_count),
            (2, Answer::Appended { first, .. }) => position = Some(first),
            other => panic!("unexpected: {other:?}"),
        }
    }
    let (tip, position) = tip.zip(position).expect("both are there");
    assert!(position < tip + 50, "{} were before it", position - tip);
}

/// Takes `count` acknowledgements; the position of each request's event.
#[track_caller]
fn take_positions(client: &mut Client, count: usize) -> BTreeMap<u64, u64> {
    let mut positions = BTreeMap::new();
    for _ in 0..count {
        match client.expect() {
            (id, Answer::Appended { first, last }) if first == last => {
                assert_eq!(positions.insert(id, first), None, "{id} was answered twice");
            }
            other => panic!("not an acknowledgement: {other:?}"),
        }
    }
    positions
}

/// Takes the acknowledgements of the requests 1 to `count`, the only ones of the store.
#[track_caller]
fn expect_positions(client: &mut Client, count: u64) {
    let positions = take_positions(client, count as usize);
    // One connection's appends are carried out in order.
    assert!(positions.into_iter().eq((1..=count).zip(1..=count)));
}

#[test]
fn after_a_half_close_every_append_is_acknowledged_before_the_end() {
    let server = served();
    for _ in 0..40 {
        let mut client = Client::hello(server.addr());
        client.send_all((1..=50).map(|id| append(id, tagged("a:1"))));
        client.finish();
        take_positions(&mut client, 50);
        client.expect_end();
    }
    // The same with appends that wait for room when the end comes.
    let server = served_with(StoreConfig {
        inflight_per_connection_max: 2,
        ..StoreConfig::default()
    });
    for _ in 0..10 {
        let mut client = Client::hello(server.addr());
        client.send_all((1..=50).map(|id| append(id, tagged("a:1"))));
        client.finish();
        take_positions(&mut client, 50);
        client.expect_end();
    }
}

#[test]
fn whole_appends_of_a_client_that_went_away_at_once_are_carried_out() {
    let server = served();
    let mut watcher = Client::hello(server.addr());
    watcher.send(&subscribe(1, all(), 0));
    for _ in 0..40 {
        let mut client = Client::hello(server.addr());
        let cut_short = frame(&append(99, tagged("a:1")));
        let mut bytes = frame(&append(1, tagged("a:1"))).repeat(5);
        bytes.extend_from_slice(&cut_short[..cut_short.len() - 1]);
        client.send_bytes(&bytes);
    }
    let mut seen = 0;
    while seen < 200 {
        match watcher.expect() {
            (1, Answer::Events(events)) => {
                for (position, _) in events {
                    seen += 1;
                    assert_eq!(position, seen);
                }
            }
            (1, Answer::CaughtUp { .. }) => {}
            other => panic!("not of the subscription: {other:?}"),
        }
    }
    watcher.send(&read(2, 0));
    let watermark = loop {
        match watcher.expect() {
            (2, Answer::ReadEnd { watermark }) => break watermark,
            (2, Answer::Events(_)) | (1, Answer::CaughtUp { .. }) => {}
            other => panic!("more than whole appends was carried out: {other:?}"),
        }
    };
    assert_eq!(watermark, 200);
}

#[test]
fn an_event_that_could_not_be_framed_in_an_answer_is_refused_and_every_other_can_be_read() {
    const MAX: u32 = 4_096;
    let server = served_with(StoreConfig {
        frame_bytes_max: MAX,
        ..StoreConfig::default()
    });
    let mut client = Client::hello(server.addr());
    let (mut taken, mut refused) = (Vec::new(), 0);
    for len in MAX - 100..MAX {
        let appended = event("A", &["a:1"], vec![7; len as usize]);
        let bytes = frame(&append(u64::from(len), vec![appended.clone()]));
        if bytes.len() - 4 > MAX as usize {
            break;
        }
        client.send_bytes(&bytes);
        match client.expect() {
            (id, Answer::Appended { .. }) if id == u64::from(len) => {
                assert_eq!(
                    refused, 0,
                    "a longer event is taken after a shorter one was not"
                );
                taken.push(appended);
            }
            (id, Answer::Error(error)) if id == u64::from(len) => {
                assert_eq!(error.code(), ErrorCode::TooLarge);
                refused += 1;
            }
            other => panic!("{len} bytes: {other:?}"),
        }
    }
    assert!(!taken.is_empty());
    assert!(refused > 0, "no event fits a request and not an answer");
    // Among others it is refused as well, and the others with it.
    client.send(&append(
        u64::MAX,
        vec![event("A", &[], ""), event("A", &[], vec![7; 4_060])],
    ));
    assert_eq!(client.expect_error().1, ErrorCode::TooLarge);
    // By the longest request id, which takes ten bytes.
    client.send(&read(u64::MAX, 0));
    let (read, _) = client.take_read(u64::MAX);
    let read: Vec<Event> = read.into_iter().map(|(_, event)| event).collect();
    assert_eq!(read, taken);
}

#[test]
fn an_append_that_no_segment_holds_is_too_large_and_the_connection_goes_on() {
    let server = served_with(StoreConfig {
        segment_bytes: 64 * 1024,
        ..StoreConfig::default()
    });
    let mut client = Client::hello(server.addr());
    client.send(&append(3, vec![event("A", &[], vec![0; 100_000])]));
    let (id, code, error) = client.expect_error();
    assert_eq!((id, code, error.retryable), (3, ErrorCode::TooLarge, false));
    assert_eq!(client.append(tagged("a:1")), (1, 1));
}

#[test]
fn appends_of_several_connections_get_dense_positions_each_once() {
    let server = TestServer::store(
        Config {
            workers: 2,
            ..config()
        },
        StoreConfig::default(),
    );
    let mut clients: Vec<Client> = (0..6).map(|_| Client::hello(server.addr())).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        // Appends of different lengths; an append's events stay together.
        let events = vec![event("A", &[&format!("by:{index}")], ""); index + 1];
        client.send_all((1..=30).map(|id| append(id, events.clone())));
    }
    let mut owners = BTreeMap::new();
    for (index, client) in clients.iter_mut().enumerate() {
        for _ in 0..30 {
            let (_, Answer::Appended { first, last }) = client.expect() else {
                panic!("an append failed");
            };
            assert_eq!(last - first, index as u64);
            for position in first..=last {
                assert_eq!(
                    owners.insert(position, index),
                    None,
                    "{position} was given twice"
                );
            }
        }
    }
    assert!(owners.keys().copied().eq(1..=30 * 21));
    clients[0].send(&read(1, 0));
    for (position, event) in clients[0].take_read(1).0 {
        assert_eq!(event.tags, [format!("by:{}", owners[&position])]);
    }
}

#[test]
fn a_stop_answers_the_appends_that_wait_for_room() {
    let mut server = TestServer::store(
        Config {
            stop_timeout: PATIENCE,
            ..config()
        },
        StoreConfig {
            queue_capacity: 1,
            ..StoreConfig::default()
        },
    );
    let mut clients: Vec<Client> = (0..6).map(|_| Client::hello(server.addr())).collect();
    for client in &mut clients {
        client.send_all((1..=20).map(|id| append(id, vec![event("A", &[], "")])));
    }
    clients[0].expect();
    server.handle().stop();
    for (index, client) in clients.iter_mut().enumerate() {
        for _ in usize::from(index == 0)..20 {
            let (_, answer) = client.expect();
            assert!(matches!(answer, Answer::Appended { .. }), "{answer:?}");
        }
        client.expect_end();
    }
    server.join();
}
