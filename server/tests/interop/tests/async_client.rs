//! The published asynchronous client, which multiplexes many requests over few connections, drives
//! the server.

use std::sync::Arc;

use pumice_interop::{Server, by_tags, event, position_of, refusal, unless};
use tephra_client::{
    AsyncClient, AsyncClientConfig, AsyncSubscribeStream, ErrorCode, Event, Position, Query,
    SubEvent,
};
use tokio_stream::StreamExt;

/// All on one socket, so that answers to many requests interleave there.
fn one_socket() -> AsyncClientConfig {
    AsyncClientConfig {
        bulk_connections: 0,
        ..AsyncClientConfig::default()
    }
}

async fn connect(server: &Server) -> AsyncClient {
    AsyncClient::connect(server.addr())
        .await
        .expect("connections and hellos")
}

async fn connect_with(server: &Server, config: AsyncClientConfig) -> AsyncClient {
    AsyncClient::connect_with(server.addr(), config)
        .await
        .expect("connections and hellos")
}

fn numbered(n: u64) -> Event {
    event("E", &["t", &format!("n:{n}")], &n.to_be_bytes())
}

/// The next event's position; live edges in between are passed over.
async fn next_position(stream: &mut AsyncSubscribeStream) -> u64 {
    loop {
        match stream.next().await.expect("an item").expect("an item") {
            SubEvent::Event(event) => return event.position().get(),
            SubEvent::CaughtUp(_) => {}
        }
    }
}

/// Waits until the server counts so many subscriptions, one round trip after the other.
async fn until_subscriptions(client: &AsyncClient, expected: u64) {
    for _ in 0..100_000 {
        if client.stats().await.expect("stats").active_subscriptions == expected {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the server never counts {expected} subscriptions");
}

#[tokio::test]
async fn appends_reads_and_conflicts_are_as_with_the_blocking_client() {
    let server = Server::start();
    let client = connect(&server).await;
    let appended = client.append((1..=5).map(numbered), None).await;
    let appended = appended.expect("an append");
    assert_eq!((appended.first.get(), appended.last.get()), (1, 5));

    let refused = client
        .append([numbered(2)], Some(unless(&["n:2"], 1)))
        .await;
    assert_eq!(refusal(refused), (ErrorCode::Conflict, Some(2), false));
    let refused = client
        .append([numbered(2)], Some(unless(&["n:2"], 6)))
        .await;
    assert_eq!(refusal(refused), (ErrorCode::AfterBeyondTip, None, false));
    let refused = client.append([], None).await;
    assert_eq!(refusal(refused), (ErrorCode::Empty, None, false));

    for (after, limit, expected) in [
        (0, None, vec![1, 2, 3, 4, 5]),
        (2, Some(2), vec![3, 4]),
        (0, Some(0), vec![]),
    ] {
        let read = client
            .read_all(Query::all(), Position::new(after), limit)
            .await;
        let (events, watermark) = read.expect("a read");
        assert_eq!(position_of(&events), expected);
        assert_eq!(watermark.get(), 5);
    }
    let read = client
        .read_all_back(by_tags(&["t"]), Position::MAX, Some(2))
        .await;
    assert_eq!(position_of(&read.expect("a read").0), [5, 4]);
    assert_eq!(client.stats().await.expect("stats").event_count, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_appends_are_each_acknowledged_once() {
    const APPENDS: u64 = 3_000;
    let server = Server::start();
    let client = Arc::new(connect_with(&server, one_socket()).await);
    let tasks: Vec<_> = (0..APPENDS)
        .map(|n| {
            let client = Arc::clone(&client);
            tokio::spawn(async move {
                let appended = client.append([numbered(n)], None).await;
                appended.expect("an append").first.get()
            })
        })
        .collect();
    let mut positions = Vec::new();
    for task in tasks {
        positions.push(task.await.expect("a position"));
    }
    positions.sort_unstable();
    assert!(
        positions.iter().copied().eq(1..=APPENDS),
        "dense and once each"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_reads_at_once_on_one_socket_do_not_mix() {
    let server = Server::start();
    let client = Arc::new(connect_with(&server, one_socket()).await);
    client
        .append((1..=2_000).map(numbered), None)
        .await
        .expect("an append");
    let tasks: Vec<_> = (0..100_u64)
        .map(|n| {
            let client = Arc::clone(&client);
            tokio::spawn(async move {
                let after = Position::new(n * 10);
                let read = client.read_all(Query::all(), after, Some(500)).await;
                let (events, _) = read.expect("a read");
                assert!(
                    position_of(&events)
                        .into_iter()
                        .eq(n * 10 + 1..=n * 10 + 500)
                );
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a read");
    }
}

#[tokio::test]
async fn a_subscription_goes_live_beside_appends_on_the_same_socket() {
    let server = Server::start();
    let client = connect_with(&server, one_socket()).await;
    client.append([numbered(1)], None).await.expect("an append");
    let mut stream = client.subscribe(by_tags(&["t"]), Position::ZERO).await;
    assert_eq!(next_position(&mut stream).await, 1);
    let Some(Ok(SubEvent::CaughtUp(watermark))) = stream.next().await else {
        panic!("caught up")
    };
    assert_eq!(watermark.get(), 1);
    for n in 2..=200 {
        client.append([numbered(n)], None).await.expect("an append");
        assert_eq!(next_position(&mut stream).await, n);
    }
}

#[tokio::test]
async fn a_subscription_misses_nothing_while_it_catches_up() {
    const EVENTS: u64 = 5_000;
    let server = Server::start();
    let client = connect(&server).await;
    let batch = |first: u64| (first..first + 50).map(numbered);
    for first in (1..EVENTS / 2).step_by(50) {
        client.append(batch(first), None).await.expect("an append");
    }
    let mut stream = client.subscribe(Query::all(), Position::ZERO).await;
    for first in (EVENTS / 2 + 1..EVENTS).step_by(50) {
        client.append(batch(first), None).await.expect("an append");
    }
    for expected in 1..=EVENTS {
        assert_eq!(next_position(&mut stream).await, expected);
    }
}

#[tokio::test]
async fn each_of_many_subscriptions_gets_its_own_events() {
    const SUBSCRIPTIONS: u64 = 60;
    let server = Server::start();
    let client = connect_with(&server, one_socket()).await;
    let mut streams = Vec::new();
    for n in 0..SUBSCRIPTIONS {
        let query = by_tags(&[&format!("n:{n}")]);
        streams.push(client.subscribe(query, Position::ZERO).await);
    }
    until_subscriptions(&client, SUBSCRIPTIONS).await;
    client
        .append((0..SUBSCRIPTIONS).map(numbered), None)
        .await
        .expect("an append");
    for (position, stream) in (1..).zip(&mut streams) {
        assert_eq!(next_position(stream).await, position);
    }
}

#[tokio::test]
async fn a_dropped_subscription_ends_on_the_server() {
    let server = Server::start();
    let client = connect_with(&server, one_socket()).await;
    for _ in 0..3 {
        let mut stream = client.subscribe(Query::all(), Position::ZERO).await;
        stream.next().await.expect("an item").expect("caught up");
        assert_eq!(client.stats().await.expect("stats").active_subscriptions, 1);
        drop(stream);
        until_subscriptions(&client, 0).await;
    }
}

#[tokio::test]
async fn a_dropped_read_does_not_disturb_the_others() {
    let server = Server::start();
    let client = connect_with(&server, one_socket()).await;
    let payload = [7; 1_000];
    for _ in 0..10 {
        let events = (0..1_000).map(|_| event("E", &["t"], &payload));
        client.append(events, None).await.expect("an append");
    }
    for _ in 0..10 {
        let mut dropped = client.read(Query::all(), Position::ZERO, None).await;
        dropped.next().await.expect("an item").expect("an event");
        drop(dropped);
        let read = client
            .read_all(Query::all(), Position::new(9_990), None)
            .await;
        assert_eq!(position_of(&read.expect("a read").0).len(), 10);
    }
}

#[tokio::test]
async fn an_append_is_not_held_up_by_a_read_that_nobody_takes() {
    let server = Server::start();
    // The client takes whatever comes and keeps it: it's the frames of the read that lie in the way.
    let client = connect_with(&server, one_socket()).await;
    let payload = [7; 1_000];
    for _ in 0..10 {
        let events = (0..1_000).map(|_| event("E", &["t"], &payload));
        client.append(events, None).await.expect("an append");
    }
    let mut reads = Vec::new();
    for _ in 0..4 {
        reads.push(client.read(Query::all(), Position::ZERO, None).await);
    }
    for n in 1..=100 {
        let appended = client.append([numbered(n)], None).await;
        assert_eq!(appended.expect("an append").first.get(), 10_000 + n);
    }
    for mut read in reads {
        let mut count = 0;
        while let Some(item) = read.next().await {
            item.expect("an event");
            count += 1;
        }
        assert!(count >= 10_000, "{count}");
    }
}

#[tokio::test]
async fn many_clients_with_five_sockets_each_are_served() {
    let server = Server::start();
    let mut clients = Vec::new();
    for _ in 0..40 {
        clients.push(connect(&server).await);
    }
    let stats = clients[0].stats().await.expect("stats");
    assert_eq!(stats.active_connections, 200);
    for (expected, client) in (1..).zip(&clients) {
        let appended = client.append([numbered(expected)], None).await;
        assert_eq!(appended.expect("an append").first.get(), expected);
    }
}

#[tokio::test]
async fn the_end_of_the_server_ends_a_subscription() {
    let server = Server::start();
    let client = connect(&server).await;
    let mut stream = client.subscribe(Query::all(), Position::ZERO).await;
    stream.next().await.expect("an item").expect("caught up");
    let stopped = tokio::task::spawn_blocking(|| server.stop());
    // With an error or without: it ends.
    while let Some(Ok(_)) = stream.next().await {}
    assert_eq!(stopped.await.expect("its end").code(), Some(0));
}
