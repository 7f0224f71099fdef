//! Reads over the wire protocol: what they give, how they end, and what a client that doesn't take them costs.

#![cfg(feature = "store")]

mod support;
mod wire_support;

use std::collections::BTreeMap;
use std::time::Duration;

use pumice::{Config, StoreConfig};
use pumice_frame_proto::tephra::proto::{ErrorCode, Event, Query, QueryItem, response};
use tempfile::TempDir;

use support::{Binary, TestServer, config};
use wire_support::{
    Answer, Client, Model, all, append, cancel, event, matching, read, read_of, stats, subscribe,
};

fn served() -> TestServer {
    TestServer::store(config(), StoreConfig::default())
}

/// Puts 60 events into the store: their types go round in 3, their tags in 2 and 5.
fn fill(client: &mut Client) -> Model {
    let events: Vec<Event> = (0..60)
        .map(|n| {
            let kind = ["A", "B", "C"][n % 3];
            let tags = [format!("even:{}", n % 2), format!("five:{}", n % 5)];
            event(kind, &[&tags[0], &tags[1]], format!("event {n}"))
        })
        .collect();
    let mut model = Model::default();
    for part in events.chunks(7) {
        let appended = model.append(part, None);
        assert_eq!(Ok(client.append(part.to_vec())), appended);
    }
    model
}

fn queries() -> Vec<Query> {
    let both = |one: Query, other: Query| Query {
        all: false,
        items: [one.items, other.items].concat(),
    };
    vec![
        all(),
        // No items, and no query at all: no event.
        Query::default(),
        // An item without types and tags means every event.
        matching(&[], &[]),
        matching(&["A"], &[]),
        matching(&["A", "C"], &[]),
        matching(&[], &["five:3"]),
        matching(&["B"], &["even:0", "five:4"]),
        matching(&["B"], &["even:0", "even:1"]),
        matching(&["Z"], &[]),
        both(matching(&["A"], &["even:0"]), matching(&[], &["five:1"])),
        // With `all` the items are not looked at.
        Query {
            all: true,
            items: vec![QueryItem {
                types: vec!["Z".to_owned()],
                tags: Vec::new(),
            }],
        },
    ]
}

#[test]
fn every_filter_place_limit_and_direction_gives_what_it_must() {
    let server = served();
    let mut client = Client::hello(server.addr());
    let model = fill(&mut client);
    for query in queries() {
        for after in [0, 1, 29, 59, 60, 61, u64::MAX] {
            for limit in [None, Some(0), Some(1), Some(7), Some(u64::MAX)] {
                for reverse in [false, true] {
                    client.send(&read_of(3, query.clone(), after, limit, reverse));
                    let (read, watermark) = client.take_read(3);
                    let expected = model.read(&query, after, limit, reverse);
                    assert_eq!(read, expected, "{query:?} {after} {limit:?} {reverse}");
                    assert_eq!(watermark, 60);
                }
            }
        }
    }
}

#[test]
fn pages_joined_are_the_whole_in_both_directions() {
    let server = served();
    let mut client = Client::hello(server.addr());
    let model = fill(&mut client);
    for reverse in [false, true] {
        let mut place = if reverse { u64::MAX } else { 0 };
        let mut joined = Vec::new();
        loop {
            client.send(&read_of(
                1,
                matching(&["A", "B"], &[]),
                place,
                Some(7),
                reverse,
            ));
            let (page, _) = client.take_read(1);
            let Some(&(last, _)) = page.last() else {
                break;
            };
            place = last;
            joined.extend(page);
        }
        let start = if reverse { u64::MAX } else { 0 };
        let whole = model.read(&matching(&["A", "B"], &[]), start, None, reverse);
        assert_eq!(joined, whole);
    }
}

#[test]
fn an_empty_store_has_watermark_0() {
    let server = served();
    let mut client = Client::hello(server.addr());
    for reverse in [false, true] {
        client.send(&read_of(1, all(), 0, None, reverse));
        assert_eq!(client.take_read(1), (Vec::new(), 0));
    }
}

#[test]
fn a_read_of_a_name_that_cannot_be_is_a_bad_request_and_the_connection_goes_on() {
    let server = served();
    let mut client = Client::hello(server.addr());
    for query in [
        matching(&[""], &[]),
        matching(&[], &[""]),
        matching(&[], &["a", "a"]),
    ] {
        client.send(&read_of(4, query.clone(), 0, None, false));
        let (id, code, _) = client.expect_error();
        assert_eq!((id, code), (4, ErrorCode::BadRequest));
        client.send(&subscribe(5, query, 0));
        let (id, code, _) = client.expect_error();
        assert_eq!((id, code), (5, ErrorCode::BadRequest));
    }
    client.stats();
}

#[test]
fn frames_of_a_read_keep_within_their_bounds() {
    let server = TestServer::store(
        config(),
        StoreConfig {
            frame_bytes_max: 4_096,
            read_batch_events: 10,
            read_batch_bytes: 2_000,
            ..StoreConfig::default()
        },
    );
    let mut client = Client::hello(server.addr());
    let events: Vec<Event> = (0..200_usize)
        .map(|n| event("A", &[], vec![b'x'; n * n % 3_000]))
        .collect();
    for event in &events {
        client.append(vec![event.clone()]);
    }
    client.send(&read(u64::MAX, 0));
    let mut read = Vec::new();
    loop {
        let payload = client.next_payload().expect("the read goes on").to_vec();
        assert!(payload.len() <= 4_096, "a frame of {} bytes", payload.len());
        let response = pumice_frame_proto::decode(&payload).expect("a response");
        match wire_support::answer(response) {
            (u64::MAX, Answer::Events(events)) => {
                assert!(events.len() <= 10);
                read.extend(events);
            }
            (u64::MAX, Answer::ReadEnd { watermark: 200 }) => break,
            other => panic!("not of the read: {other:?}"),
        }
    }
    assert!(read.into_iter().eq((1..).zip(events)));
}

#[test]
fn a_stored_event_that_no_frame_holds_ends_its_read_with_an_error_and_not_the_connection() {
    let dir = TempDir::new().expect("a temporary directory");
    let store_config = |frame_bytes_max| StoreConfig {
        data_dir: dir.path().to_owned(),
        frame_bytes_max,
        ..StoreConfig::default()
    };
    let server = TestServer::store(config(), store_config(1024 * 1024));
    let mut client = Client::hello(server.addr());
    client.append(vec![event("A", &[], "small")]);
    client.append(vec![event("A", &[], vec![0; 10_000])]);
    client.append(vec![event("A", &[], "small")]);
    drop((client, server));

    let server = TestServer::store(config(), store_config(4_096));
    let mut client = Client::hello(server.addr());
    client.send(&read(1, 0));
    let (id, answer) = client.expect();
    assert_eq!(id, 1);
    assert_eq!(answer, Answer::Events(vec![(1, event("A", &[], "small"))]));
    let (id, code, error) = client.expect_error();
    assert_eq!((id, code), (1, ErrorCode::TooLarge));
    assert!(error.message.contains("position 2"), "{error:?}");
    client.send(&subscribe(2, all(), 1));
    let (id, code, _) = client.expect_error();
    assert_eq!((id, code), (2, ErrorCode::TooLarge));
    // What lies behind it can be read, and nothing is left of the two that failed.
    client.send(&read(3, 2));
    assert_eq!(
        client.take_read(3),
        (vec![(3, event("A", &[], "small"))], 3)
    );
    client.wait_for(|stats| stats.active_subscriptions == 0);
}

#[test]
fn reads_of_one_connection_run_side_by_side_and_each_in_its_order() {
    let server = served();
    let mut client = Client::hello(server.addr());
    let model = fill(&mut client);
    let limit = |id: u64| Some(id % 61);
    let reads = (1..=200).map(|id| read_of(id, all(), id % 50, limit(id), id % 2 == 0));
    client.send_all(reads);
    let mut read: BTreeMap<u64, Vec<(u64, Event)>> = BTreeMap::new();
    let mut ended = 0;
    while ended < 200 {
        match client.expect() {
            (id, Answer::Events(events)) => read.entry(id).or_default().extend(events),
            (_, Answer::ReadEnd { watermark: 60 }) => ended += 1,
            other => panic!("not of a read: {other:?}"),
        }
    }
    for id in 1..=200 {
        let expected = model.read(&all(), id % 50, limit(id), id % 2 == 0);
        assert_eq!(read.remove(&id).unwrap_or_default(), expected, "read {id}");
    }
}

#[test]
fn a_read_past_both_budgets_is_refused_by_name_and_the_others_run() {
    let server = TestServer::store(
        config(),
        StoreConfig {
            inflight_per_connection_max: 3,
            ..StoreConfig::default()
        },
    );
    let mut client = Client::hello(server.addr());
    client.append(vec![event("A", &[], "")]);
    client.send_all((1..=8).map(|id| read(id, 0)));
    let mut ended = Vec::new();
    let mut refused = Vec::new();
    while ended.len() + refused.len() < 8 {
        match client.expect() {
            (_, Answer::Events(_)) => {}
            (id, Answer::ReadEnd { .. }) => ended.push(id),
            (id, Answer::Error(error)) => {
                assert_eq!(error.code(), ErrorCode::BadRequest);
                assert_eq!(error.message, "too many in-flight reads on this connection");
                refused.push(id);
            }
            other => panic!("unexpected: {other:?}"),
        }
    }
    ended.sort_unstable();
    // Three that may run and as many that may wait.
    assert_eq!((ended, refused), ((1..=6).collect(), vec![7, 8]));
    client.send(&read(9, 0));
    assert_eq!(client.take_read(9).1, 1);
}

/// Puts `count` events of 64 KiB into the store.
fn fill_bulk(client: &mut Client, count: u64) {
    for part in 0..count / 16 {
        let events = (0..16).map(|n| event("Bulk", &[], vec![(part * 16 + n) as u8; 64 * 1024]));
        client.append(events.collect());
    }
}

#[test]
fn after_a_half_close_every_read_ends_before_the_connection() {
    let server = served();
    let mut client = Client::hello(server.addr());
    fill_bulk(&mut client, 32);
    for round in 0..6 {
        let mut client = Client::hello(server.addr());
        // 2 MiB each: much of it is read from the store after the client's end was seen.
        client.send_all((1..=5).map(|id| read(id, 0)));
        if round % 2 == 0 {
            client.send(&stats(6));
        }
        client.finish();
        let mut next: BTreeMap<u64, u64> = BTreeMap::new();
        let mut ended = 0;
        while let Some(response) = client.next() {
            match wire_support::answer(response) {
                (id, Answer::Events(events)) => {
                    for (position, _) in events {
                        let before = next.entry(id).or_default();
                        assert_eq!(position, *before + 1);
                        *before = position;
                    }
                }
                (id, Answer::ReadEnd { watermark: 32 }) => {
                    assert_eq!(next[&id], 32);
                    ended += 1;
                }
                (6, Answer::Stats(_)) => {}
                other => panic!("unexpected: {other:?}"),
            }
        }
        assert_eq!(ended, 5);
    }
}

#[test]
fn a_read_gives_nothing_that_was_stored_after_it_began() {
    let server = served();
    let mut writer = Client::hello(server.addr());
    fill_bulk(&mut writer, 64);
    let mut tip = 64;
    for reverse in [false, true] {
        // 4 MiB don't fit on the way, so that the read is laid aside and taken up again.
        let mut client = Client::with_small_window(server.addr());
        let place = if reverse { u64::MAX } else { 0 };
        client.send(&read_of(1, matching(&["Bulk"], &[]), place, None, reverse));
        assert_eq!(client.expect().0, 1);
        for _ in 0..5 {
            tip = writer.append(vec![event("Bulk", &[], ""); 2]).1;
        }
        let (rest, watermark) = client.take_read(1);
        assert_eq!(watermark, tip - 10);
        // The first frame is gone; the last event is that of the whole.
        let last = rest.last().expect("more than one frame").0;
        assert_eq!(last, if reverse { 1 } else { watermark });
        assert!(rest.iter().all(|&(position, _)| position <= watermark));
        assert!(rest.is_sorted_by_key(|&(position, _)| if reverse {
            u64::MAX - position
        } else {
            position
        }));
    }
}

#[test]
fn a_small_answer_overtakes_the_bulk_of_a_read() {
    let server = served();
    let mut client = Client::with_small_window(server.addr());
    fill_bulk(&mut client, 64);
    let mut watcher = Client::hello(server.addr());
    watcher.send(&subscribe(1, all(), 64));
    let before = client.bytes_taken;
    client.send_all((1..=10).map(|id| read(id, 0)));
    client.send_all([append(90, vec![event("Small", &[], "")]), stats(91)]);
    while watcher.take_to_edge(1).1 < 65 {}
    let mut small = 0;
    while small < 2 {
        match client.expect() {
            (90, Answer::Appended { .. }) | (91, Answer::Stats(_)) => small += 1,
            (1..=10, Answer::Events(_) | Answer::ReadEnd { .. }) => {}
            other => panic!("unexpected: {other:?}"),
        }
    }
    // Of 40 MiB, only what the system had taken already came first.
    let came_first = client.bytes_taken - before;
    assert!(
        came_first < 8 * 1024 * 1024,
        "{came_first} bytes came first"
    );
}

#[test]
fn a_small_read_behind_large_ones_has_its_turn() {
    let server = served();
    let mut client = Client::with_small_window(server.addr());
    fill_bulk(&mut client, 64);
    // More of them than portions fit on the way, and all of them without an end for long.
    client.send_all((1..=8).map(|id| match id {
        1..=4 => read(id, 0),
        _ => subscribe(id, all(), 0),
    }));
    client.send(&read_of(9, all(), 7, Some(1), false));
    loop {
        match client.expect() {
            (9, Answer::Events(events)) => assert_eq!(events[0].0, 8),
            (9, Answer::ReadEnd { .. }) => break,
            (1..=8, Answer::Events(_)) => {}
            other => panic!("one of the others was done first: {other:?}"),
        }
    }
}

#[test]
fn a_cancelled_read_stops_and_leaves_the_connection_as_it_was() {
    let server = served();
    let mut client = Client::with_small_window(server.addr());
    fill_bulk(&mut client, 64);
    for round in 0..10 {
        // Before anything is read, in the middle, and for a read that has ended.
        client.send_all([read(1, 0), read(2, 63)]);
        let mut ended = 0;
        for _ in 0..round {
            ended += u32::from(matches!(client.expect(), (2, Answer::ReadEnd { .. })));
        }
        client.send_all([cancel(1), cancel(77), read(3, 63)]);
        let mut last = 0;
        // Those that go on end in any order; what comes after both could only be the cancelled one's.
        while ended < 2 {
            match client.expect() {
                (1, Answer::Events(events)) => last = events.last().expect("an event").0,
                (1, Answer::ReadEnd { .. }) => panic!("the whole read came"),
                (2 | 3, Answer::Events(_)) => {}
                (2 | 3, Answer::ReadEnd { .. }) => ended += 1,
                other => panic!("unexpected: {other:?}"),
            }
        }
        assert!(last < 64);
        client.stats();
    }
    assert_eq!(client.append(vec![event("A", &[], "")]), (65, 65));
}

#[test]
fn clients_that_do_not_read_cost_bounded_memory_and_hold_up_nobody() {
    let binary = Binary::start();
    let mut client = Client::hello(binary.addr());
    fill_bulk(&mut client, 64);
    client.send(&read(1, 0));
    client.take_read(1);
    let before = resident_kib(binary.pid());
    // 4 MiB fifty times is 200 MiB for each of four.
    let mut sleepers: Vec<Client> = (0..4)
        .map(|_| Client::with_small_window(binary.addr()))
        .collect();
    for sleeper in &mut sleepers {
        sleeper.send_all((1..=50).map(|id| read(id, 0)));
        sleeper.send(&subscribe(51, all(), 0));
    }
    // Reads and appends of others go on, more of them than there are read threads.
    for n in 0..20 {
        let (position, _) = client.append(vec![event("Other", &[], "")]);
        assert_eq!(position, 65 + n);
        client.send(&read(1, 64));
        assert_eq!(client.take_read(1).1, position);
    }
    let grown = resident_kib(binary.pid()).saturating_sub(before);
    assert!(grown < 32 * 1024, "{grown} KiB for four clients that sleep");
    // One that wakes up gets all of its read.
    let mut positions = 0;
    // It began before or after the first of those appends.
    let watermark = loop {
        match sleepers[0].expect() {
            (1, Answer::Events(events)) => positions += events.len() as u64,
            (1, Answer::ReadEnd { watermark }) => break watermark,
            (2..=51, Answer::Events(_) | Answer::ReadEnd { .. } | Answer::CaughtUp { .. }) => {}
            other => panic!("unexpected: {other:?}"),
        }
    };
    assert!(watermark >= 64);
    assert_eq!(positions, watermark);
    drop(sleepers);
    client.wait_for(|stats| stats.active_connections == 1 && stats.active_subscriptions == 0);
}

#[test]
fn a_client_that_pauses_in_the_middle_of_a_read_is_waited_for_until_it_has_finished() {
    let server = TestServer::store(
        Config {
            write_timeout: Duration::from_millis(50),
            ..config()
        },
        StoreConfig::default(),
    );
    let mut client = Client::with_small_window(server.addr());
    fill_bulk(&mut client, 128);
    client.send(&read(1, 0));
    assert_eq!(client.expect().0, 1);
    // The same again, but from one that will ask for nothing more: it is timed, and ends before the other goes on.
    let mut finished = Client::with_small_window(server.addr());
    finished.send(&read(1, 0));
    finished.finish();
    server.wait_for("cut off", |totals| totals.closed_write_timeout == 1);
    assert_eq!(client.take_read(1).1, 128);
    client.append(vec![event("A", &[], "")]);
}

/// A process's memory in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a field");
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn statistics_count_events_connections_and_subscriptions() {
    let server = served();
    let mut client = Client::hello(server.addr());
    client.append(vec![event("A", &[], ""); 3]);
    let mut subscriber = Client::hello(server.addr());
    subscriber.send_all([subscribe(1, all(), 3), subscribe(2, all(), 3)]);
    subscriber.expect();
    subscriber.expect();
    let state = client.stats();
    assert_eq!(state.event_count, 3);
    assert_eq!(
        (state.active_connections, state.active_subscriptions),
        (2, 2)
    );
    assert_eq!(state.max_connections, 1_024);
    assert!(state.segment_count >= 1);
    assert!(state.disk_bytes > 0);
    assert_eq!(state.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (state.connections_refused, state.connections_reaped),
        (0, 0)
    );
    drop(subscriber);
    client.wait_for(|stats| (stats.active_connections, stats.active_subscriptions) == (1, 0));
    // Several at once, some of which have to wait for the disk.
    client.send_all((1..=50).map(stats));
    for _ in 1..=50 {
        let response = client.next().expect("an answer");
        assert!(matches!(response.kind, Some(response::Kind::Stats(_))));
    }
}
