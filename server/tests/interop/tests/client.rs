//! The published blocking client drives the server.

use std::net::Shutdown;
use std::sync::{Barrier, mpsc};
use std::thread;

use pumice_interop::{Server, by_tags, by_types, event, plain, position_of, refusal, unless};
use tephra_client::{
    AppendCondition, Client, ErrorCode, Position, Query, QueryItem, SubEvent, Tag, Tags,
};

fn connect(server: &Server) -> Client {
    Client::connect(server.addr()).expect("a connection and a hello")
}

/// A server with so many events, the n-th of type `E`, with tags `n:N` and `parity:0` or `parity:1`.
fn server_with_events(count: u64) -> Server {
    let server = Server::start();
    let events = (1..=count).map(|n| {
        let tags = [format!("n:{n}"), format!("parity:{}", n % 2)];
        event("E", &[&tags[0], &tags[1]], &n.to_be_bytes())
    });
    connect(&server)
        .append(events, None)
        .expect("an append without a condition");
    server
}

#[test]
fn what_was_appended_comes_back_byte_for_byte() {
    let server = Server::start();
    let mut client = connect(&server);
    let payload: Vec<u8> = (0..=255).collect();
    let sent = [
        event("CourseOpened", &["student:s1", "course:c1"], &payload),
        event("Ünïcødé\n\0", &["tag with spaces", "🪨"], b""),
    ];
    let appended = client.append(sent, None).expect("an append");
    assert_eq!((appended.first.get(), appended.last.get()), (1, 2));

    let (events, watermark) = client
        .read_all(Query::all(), Position::ZERO, None)
        .expect("a read");
    assert_eq!(watermark.get(), 2);
    let expected = [
        (
            1,
            "CourseOpened",
            vec!["course:c1", "student:s1"],
            &payload[..],
        ),
        (2, "Ünïcødé\n\0", vec!["tag with spaces", "🪨"], b""),
    ];
    assert_eq!(events.iter().map(plain).collect::<Vec<_>>(), expected);
}

#[test]
fn a_boundary_conflict_names_its_position_and_is_final() {
    let server = server_with_events(3);
    let mut client = connect(&server);
    let more = || [event("More", &["n:2"], b"")];

    let refused = refusal(client.append(more(), Some(unless(&["n:2"], 1))));
    assert_eq!(refused, (ErrorCode::Conflict, Some(2), false));
    // It took it into account: no conflict. Then its own event is in the way.
    let appended = client
        .append(more(), Some(unless(&["n:2"], 2)))
        .expect("nothing in the way");
    assert_eq!(appended.first.get(), 4);
    let refused = refusal(client.append(more(), Some(unless(&["n:2"], 2))));
    assert_eq!(refused, (ErrorCode::Conflict, Some(4), false));
}

#[test]
fn an_event_that_exists_is_refused_as_such() {
    let server = server_with_events(3);
    let mut client = connect(&server);
    let once = AppendCondition::exists_only(by_tags(&["n:1"]));
    let refused = refusal(client.append([event("Again", &["n:1"], b"")], Some(once)));
    assert_eq!(refused, (ErrorCode::AlreadyExists, Some(1), false));
    // The boundary has moved on, but existence looks at the whole log.
    let once = unless(&["n:3"], 3).fail_if_exists(by_tags(&["n:3"]));
    let refused = refusal(client.append([event("Again", &["n:3"], b"")], Some(once)));
    assert_eq!(refused, (ErrorCode::AlreadyExists, Some(3), false));
    // After a refusal a good append goes through.
    let once = AppendCondition::exists_only(by_tags(&["n:4"]));
    let appended = client.append([event("New", &["n:4"], b"")], Some(once));
    assert_eq!(appended.expect("nothing in the way").first.get(), 4);
}

#[test]
fn a_condition_beyond_the_tip_is_refused() {
    let server = server_with_events(3);
    let outcome = connect(&server).append([event("E", &[], b"")], Some(unless(&["x"], 4)));
    assert_eq!(refusal(outcome), (ErrorCode::AfterBeyondTip, None, false));
}

#[test]
fn an_append_of_nothing_is_refused() {
    let server = Server::start();
    let mut client = connect(&server);
    assert_eq!(
        refusal(client.append([], None)),
        (ErrorCode::Empty, None, false)
    );
    // The connection is none the worse for it.
    client
        .append([event("E", &[], b"")], None)
        .expect("an append");
}

#[test]
fn queries_choose_by_type_and_tags() {
    let server = server_with_events(4);
    let mut client = connect(&server);
    client
        .append([event("F", &["n:9", "parity:1"], b"")], None)
        .expect("an append");
    let item = |types: &[&str], tags: &[&str]| {
        let types = types.iter().map(|it| it.parse_type()).collect();
        let tags = Tags::new(tags.iter().map(|tag| Tag::new(*tag).expect("a tag")));
        QueryItem::new(types, tags.expect("no two alike"))
    };
    for (query, expected) in [
        (by_tags(&["parity:1"]), vec![1, 3, 5]),
        (by_tags(&["parity:1", "n:3"]), vec![3]),
        (by_tags(&["parity:0", "n:3"]), vec![]),
        (by_types(&["F"]), vec![5]),
        (by_types(&["F", "E"]), vec![1, 2, 3, 4, 5]),
        (
            Query::items([item(&["F"], &[]), item(&["E"], &["n:2"])]),
            vec![2, 5],
        ),
        (Query::items([item(&["E"], &["n:9"])]), vec![]),
        (Query::items([item(&[], &[])]), vec![1, 2, 3, 4, 5]),
        (Query::items([]), vec![]),
        (Query::all(), vec![1, 2, 3, 4, 5]),
    ] {
        let (events, watermark) = client
            .read_all(query.clone(), Position::ZERO, None)
            .expect("a read");
        assert_eq!(position_of(&events), expected, "{query:?}");
        assert_eq!(watermark.get(), 5, "{query:?}");
    }
}

/// A type from its name, where only few words fit.
trait ParseType {
    fn parse_type(&self) -> tephra_client::EventType;
}

impl ParseType for &str {
    fn parse_type(&self) -> tephra_client::EventType {
        tephra_client::EventType::new(*self).expect("a type")
    }
}

#[test]
fn after_and_limit_bound_a_read() {
    let server = server_with_events(5);
    let mut client = connect(&server);
    for (after, limit, expected) in [
        (0, None, vec![1, 2, 3, 4, 5]),
        (3, None, vec![4, 5]),
        (5, None, vec![]),
        (99, None, vec![]),
        (0, Some(0), vec![]),
        (0, Some(2), vec![1, 2]),
        (3, Some(1), vec![4]),
        (3, Some(u64::MAX), vec![4, 5]),
    ] {
        let (events, watermark) = client
            .read_all(Query::all(), Position::new(after), limit)
            .expect("a read");
        assert_eq!(position_of(&events), expected, "after {after}, {limit:?}");
        assert_eq!(watermark.get(), 5, "after {after}, {limit:?}");
    }
}

#[test]
fn a_read_backwards_is_newest_first() {
    let server = server_with_events(5);
    let mut client = connect(&server);
    for (before, limit, expected) in [
        (u64::MAX, None, vec![5, 4, 3, 2, 1]),
        (u64::MAX, Some(0), vec![]),
        (u64::MAX, Some(2), vec![5, 4]),
        (4, None, vec![3, 2, 1]),
        (4, Some(1), vec![3]),
        (1, None, vec![]),
        (0, None, vec![]),
    ] {
        let (events, watermark) = client
            .read_all_back(Query::all(), Position::new(before), limit)
            .expect("a read");
        assert_eq!(position_of(&events), expected, "before {before}, {limit:?}");
        assert_eq!(watermark.get(), 5, "before {before}, {limit:?}");
    }
    let odd = client.read_all_back(by_tags(&["parity:1"]), Position::MAX, Some(2));
    assert_eq!(position_of(&odd.expect("a read").0), [5, 3]);
}

#[test]
fn pages_have_no_gap_and_no_repeat() {
    let server = server_with_events(2_500);
    let mut client = connect(&server);
    let (mut after, mut before) = (Position::ZERO, Position::MAX);
    let (mut forwards, mut backwards) = (Vec::new(), Vec::new());
    loop {
        let page = client.read_all(by_tags(&["parity:1"]), after, Some(100));
        let (page, _) = page.expect("a read");
        let Some(last) = page.last() else { break };
        after = last.position();
        forwards.extend(position_of(&page));
        let page = client.read_all_back(by_tags(&["parity:1"]), before, Some(100));
        let (page, _) = page.expect("a read");
        before = page.last().expect("as many pages").position();
        backwards.extend(position_of(&page));
    }
    let odd: Vec<u64> = (1..=2_500).step_by(2).collect();
    assert_eq!(forwards, odd);
    backwards.reverse();
    assert_eq!(backwards, odd);
}

#[test]
fn a_read_of_many_events_comes_whole_and_in_order() {
    let server = Server::start();
    let mut client = connect(&server);
    let payload = [7; 1000];
    for _ in 0..10 {
        let events = (0..1_000).map(|_| event("E", &["t"], &payload));
        client.append(events, None).expect("an append");
    }
    let mut expected = 1;
    let mut stream = client
        .read(by_tags(&["t"]), Position::ZERO, None)
        .expect("a read");
    for item in &mut stream {
        let item = item.expect("an event");
        assert_eq!(plain(&item), (expected, "E", vec!["t"], &payload[..]));
        expected += 1;
    }
    assert_eq!(expected, 10_001);
    assert_eq!(stream.watermark(), Some(Position::new(10_000)));
}

#[test]
fn a_stream_dropped_early_leaves_the_connection_usable() {
    let server = server_with_events(5_000);
    let mut client = connect(&server);
    for _ in 0..3 {
        let mut stream = client
            .read(Query::all(), Position::ZERO, None)
            .expect("a read");
        stream.next().expect("an event").expect("an event");
        drop(stream);
        assert_eq!(client.stats().expect("stats").event_count, 5_000);
    }
}

#[test]
fn a_subscription_catches_up_says_so_and_goes_live() {
    let server = server_with_events(3);
    let (send, items) = mpsc::channel();
    let mut subscriber = connect(&server);
    let subscription = thread::spawn(move || {
        let (stream, cancel) = subscriber
            .subscribe(by_tags(&["parity:1"]), Position::ZERO)
            .expect("a subscription");
        let mut cancel = Some(cancel);
        for item in stream {
            let Ok(item) = item else { break };
            let last = matches!(&item, SubEvent::Event(event) if event.position().get() == 6);
            send.send(item).expect("the test listens");
            if last {
                cancel.take().expect("the only last one").cancel();
            }
        }
    });
    let next_event = |expected: u64| loop {
        match items.recv().expect("an item") {
            SubEvent::Event(event) => return assert_eq!(event.position().get(), expected),
            // Between events the live edge may be announced, never below what was seen.
            SubEvent::CaughtUp(watermark) => assert!(watermark.get() + 1 >= expected),
        }
    };
    next_event(1);
    next_event(3);
    let SubEvent::CaughtUp(watermark) = items.recv().expect("an item") else {
        panic!("no event is left")
    };
    assert_eq!(watermark.get(), 3);

    let mut client = connect(&server);
    client
        .append([event("E", &["parity:0"], b"")], None)
        .expect("an append that isn't for it");
    let live = |n: u64| event("E", &["parity:1"], &n.to_be_bytes());
    client.append([live(5)], None).expect("an append");
    next_event(5);
    client.append([live(6)], None).expect("an append");
    next_event(6);
    subscription.join().expect("it was cancelled");
}

#[test]
fn a_subscription_starts_after_its_position() {
    let server = server_with_events(5);
    let mut client = connect(&server);
    let (mut stream, _cancel) = client
        .subscribe(Query::all(), Position::new(3))
        .expect("a subscription");
    for expected in [4, 5] {
        let Some(Ok(SubEvent::Event(event))) = stream.next() else {
            panic!("event {expected}")
        };
        assert_eq!(event.position().get(), expected);
    }
    let Some(Ok(SubEvent::CaughtUp(watermark))) = stream.next() else {
        panic!("caught up")
    };
    assert_eq!(watermark.get(), 5);
}

#[test]
fn stats_count_events_connections_and_bytes() {
    let server = server_with_events(3);
    let mut client = connect(&server);
    let stats = client.stats().expect("stats");
    assert_eq!(stats.event_count, 3);
    assert!(stats.segment_count >= 1);
    assert!(stats.disk_bytes > 0);
    assert!(stats.active_connections >= 1);
    assert_eq!(stats.active_subscriptions, 0);
    assert!(!stats.version.is_empty());
}

#[test]
fn large_events_come_back_whole() {
    let server = Server::start();
    let mut client = connect(&server);
    for (position, mebibytes) in [(1, 1), (2, 8), (3, 15)] {
        let payload: Vec<u8> = (0..mebibytes << 20).map(|n: u32| (n % 251) as u8).collect();
        client
            .append([event("Large", &["t"], &payload)], None)
            .expect("an append");
        let read = client.read_all(Query::all(), Position::new(position - 1), None);
        let (events, _) = read.expect("a read");
        assert_eq!(position_of(&events), [position]);
        assert!(events[0].event().payload() == payload);
    }
}

#[test]
fn of_appends_on_the_same_condition_one_succeeds() {
    const CLIENTS: usize = 8;
    let server = Server::start();
    let start = Barrier::new(CLIENTS);
    for round in 0..20_u64 {
        let successes = thread::scope(|scope| {
            let attempts: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    scope.spawn(|| {
                        let mut client = connect(&server);
                        start.wait();
                        let outcome =
                            client.append([event("E", &["t"], b"")], Some(unless(&["t"], round)));
                        outcome.map_err(|error| refusal::<()>(Err(error)).0)
                    })
                })
                .collect();
            attempts
                .into_iter()
                .map(|attempt| attempt.join().expect("an outcome"))
                .filter(|outcome| match outcome {
                    Ok(appended) => appended.first.get() == round + 1,
                    Err(code) => {
                        assert_eq!(*code, ErrorCode::Conflict);
                        false
                    }
                })
                .count()
        });
        assert_eq!(successes, 1, "in round {round}");
    }
}

#[test]
fn many_connections_are_served_at_once() {
    let server = Server::start();
    let mut clients: Vec<_> = (0..300).map(|_| connect(&server)).collect();
    for (expected, client) in (1..).zip(&mut clients) {
        let appended = client.append([event("E", &["t"], b"")], None);
        assert_eq!(appended.expect("an append").first.get(), expected);
    }
    let stats = clients[0].stats().expect("stats");
    assert_eq!(stats.active_connections, 300);
    for client in &mut clients {
        let (events, _) = client
            .read_all(by_tags(&["t"]), Position::new(290), None)
            .expect("a read");
        assert_eq!(events.len(), 10);
    }
}

#[test]
fn a_connection_that_comes_and_goes_harms_nobody() {
    let server = Server::start();
    for _ in 0..50 {
        let stream = std::net::TcpStream::connect(server.addr()).expect("a connection");
        // Whether the server has closed its side already is of no interest.
        let _ = stream.shutdown(Shutdown::Both);
    }
    connect(&server).stats().expect("stats");
}

#[test]
fn sigterm_ends_the_server_with_code_0_despite_idle_clients() {
    let server = server_with_events(1);
    let mut idle = connect(&server);
    let mut subscriber = connect(&server);
    let (mut stream, _cancel) = subscriber
        .subscribe(Query::all(), Position::ZERO)
        .expect("a subscription");
    stream.next().expect("an item").expect("event 1");
    assert_eq!(server.stop().code(), Some(0));
    idle.stats().expect_err("the server is gone");
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let server = server_with_events(3).restart();
    let mut client = connect(&server);
    let (events, watermark) = client
        .read_all(Query::all(), Position::ZERO, None)
        .expect("a read");
    assert_eq!(position_of(&events), [1, 2, 3]);
    assert_eq!(watermark.get(), 3);
    let appended = client.append([event("E", &[], b"")], None);
    assert_eq!(appended.expect("an append").first.get(), 4);
}
