//! The wire protocol's frames and its opening: what is answered, with which code and id, and what is closed.

#![cfg(feature = "store")]

mod support;
mod wire_support;

use std::time::{Duration, Instant};

use pumice::{Config, StoreConfig};
use pumice_frame_proto::tephra::proto::{ErrorCode, response};
use tempfile::TempDir;

use support::{Binary, TestServer, config};
use wire_support::{
    Answer, Client, append, event, frame, hello, hello_of_version, read, stats, subscribe,
};

fn served() -> TestServer {
    TestServer::store(config(), StoreConfig::default())
}

fn served_with(store_config: StoreConfig) -> TestServer {
    TestServer::store(config(), store_config)
}

/// A frame of these bytes, whatever they are.
fn raw_frame(payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("a short payload");
    [&len.to_be_bytes(), payload].concat()
}

/// A request for the server's state that is `len` bytes long: it bears a field that nobody knows.
fn padded_stats(request_id: u8, len: usize) -> Vec<u8> {
    let head = [0x08, request_id, 0x32, 0x00];
    // Field 100, its length written in five bytes so that the head's own length is always the same.
    let padding = len - head.len() - 7;
    let mut payload = [&head[..], &[0xa2, 0x06]].concat();
    payload.extend(
        (0..5).map(|at| (padding >> (7 * at)) as u8 & 0x7f | if at < 4 { 0x80 } else { 0 }),
    );
    payload.resize(len, b'x');
    payload
}

#[track_caller]
fn expect_stats(client: &mut Client, request_id: u64) {
    let (id, answer) = client.expect();
    assert_eq!(id, request_id);
    assert!(matches!(answer, Answer::Stats(_)), "{answer:?}");
}

#[test]
fn a_hello_is_acknowledged_with_the_protocols_and_the_servers_version() {
    let server = served();
    let mut client = Client::connect(server.addr());
    client.send(&hello(7));
    let response = client.next().expect("an answer");
    assert_eq!(response.request_id, 7);
    let Some(response::Kind::HelloAck(ack)) = response.kind else {
        panic!("not acknowledged: {response:?}");
    };
    assert_eq!(ack.protocol_version, 1);
    assert_eq!(ack.server_version, env!("CARGO_PKG_VERSION"));
}

#[test]
fn another_version_is_refused_by_name_and_the_connection_closed() {
    let server = served();
    for version in [0, 2, u32::MAX] {
        let mut client = Client::connect(server.addr());
        client.send(&hello_of_version(3, version));
        let (id, code, error) = client.expect_error();
        assert_eq!((id, code), (3, ErrorCode::BadRequest));
        assert_eq!(
            error.message,
            format!("unsupported protocol version {version}: this server speaks 1")
        );
        client.expect_end();
    }
}

#[test]
fn a_first_frame_that_is_no_hello_is_refused_and_nothing_of_it_done() {
    let server = served();
    let first_frames = [
        (5, frame(&append(5, vec![event("A", &[], "")]))),
        // An event without a type would be a bad request later on; here it is not even looked at.
        (6, frame(&append(6, vec![event("", &[], "")]))),
        (7, frame(&read(7, 0))),
        (8, frame(&subscribe(8, wire_support::all(), 0))),
        (9, frame(&stats(9))),
        (0, raw_frame(b"")),
        // Only a request id, then only a kind that nobody knows.
        (10, raw_frame(&[0x08, 10])),
        (11, raw_frame(&[0x08, 11, 0x7a, 0x00])),
    ];
    for (request_id, first) in first_frames {
        let mut client = Client::connect(server.addr());
        // What comes behind it is not carried out either, and doesn't cost the client its answer.
        let behind = frame(&hello(1)).repeat(100);
        client.send_bytes(&[first, behind].concat());
        let (id, code, error) = client.expect_error();
        assert_eq!((id, code), (request_id, ErrorCode::Unauthenticated));
        assert_eq!(error.message, "first frame must be a hello");
        client.expect_end();
    }
    assert_eq!(Client::hello(server.addr()).stats().event_count, 0);
}

#[test]
fn a_second_hello_is_a_bad_request_and_the_connection_goes_on() {
    let server = served();
    let mut client = Client::hello(server.addr());
    client.send_all([hello(4), stats(5)]);
    let (id, code, _) = client.expect_error();
    assert_eq!((id, code), (4, ErrorCode::BadRequest));
    expect_stats(&mut client, 5);
}

#[test]
fn a_request_without_a_known_kind_is_a_bad_request_and_the_connection_goes_on() {
    let server = served();
    let mut client = Client::hello(server.addr());
    let requests = [
        (0, raw_frame(b"")),
        (12, raw_frame(&[0x08, 12])),
        // Field 15 with an empty message.
        (13, raw_frame(&[0x08, 13, 0x7a, 0x00])),
        // Fields 15 with a varint, a fixed 64 and a fixed 32.
        (14, raw_frame(&[0x08, 14, 0x78, 1])),
        (15, raw_frame(&[0x08, 15, 0x79, 1, 2, 3, 4, 5, 6, 7, 8])),
        (16, raw_frame(&[0x08, 16, 0x7d, 1, 2, 3, 4])),
    ];
    for (request_id, bytes) in requests {
        client.send_bytes(&bytes);
        let (id, code, error) = client.expect_error();
        assert_eq!((id, code), (request_id, ErrorCode::BadRequest));
        assert_eq!(
            error.message,
            "request has no append, read, subscribe, or cancel set"
        );
    }
    client.stats();
}

#[test]
fn bytes_that_do_not_decode_are_answered_with_id_0_and_closed_before_and_after_hello() {
    let server = served();
    let payloads: [&[u8]; 6] = [
        // A field that runs past the end.
        &[0x08, 9, 0x12, 0x20, 0x00],
        // A varint without an end.
        &[0x08, 0xff],
        // A varint of more than 64 bits.
        &[
            0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ],
        // Field 0.
        &[0x00, 0x00],
        // A wire type that doesn't exist.
        &[0x0f],
        // An event's type that isn't UTF-8.
        &[0x08, 9, 0x12, 5, 0x0a, 3, 0x0a, 1, 0xff],
    ];
    for payload in payloads {
        for says_hello in [false, true] {
            let mut client = Client::connect(server.addr());
            if says_hello {
                client = Client::hello(server.addr());
            }
            client.send_bytes(&[raw_frame(payload), frame(&stats(2))].concat());
            let (id, code, error) = client.expect_error();
            assert_eq!((id, code), (0, ErrorCode::BadRequest), "{payload:x?}");
            assert!(
                error.message.starts_with("frame decode error: "),
                "{error:?}"
            );
            client.expect_end();
        }
    }
}

#[test]
fn what_came_before_bytes_that_do_not_decode_is_still_answered() {
    let server = served();
    let mut client = Client::hello(server.addr());
    let mut bytes = Vec::new();
    for id in 1..=20 {
        bytes.extend(frame(&append(id, vec![event("A", &[], "")])));
    }
    bytes.extend(frame(&read(21, 0)));
    bytes.extend(raw_frame(&[0xff]));
    client.send_bytes(&bytes);
    let mut appended = 0;
    let mut has_ended = false;
    let mut is_refused = false;
    while let Some(response) = client.next() {
        match wire_support::answer(response) {
            (1..=20, Answer::Appended { .. }) => appended += 1,
            (21, Answer::Events(_)) => {}
            (21, Answer::ReadEnd { .. }) => has_ended = true,
            (0, Answer::Error(error)) if error.code() == ErrorCode::BadRequest => is_refused = true,
            other => panic!("unexpected: {other:?}"),
        }
    }
    assert_eq!((appended, has_ended, is_refused), (20, true, true));
}

#[test]
fn a_length_over_the_limit_is_refused_with_both_numbers_and_closed() {
    let server = served_with(StoreConfig {
        frame_bytes_max: 10_000,
        ..StoreConfig::default()
    });
    for says_hello in [false, true] {
        // Above 0x20 in the first byte a letter would stand there, and that is HTTP.
        for len in [10_001, 0x00ff_ffff, 0xffff_ffff_u32] {
            let mut client = Client::connect(server.addr());
            if says_hello {
                client = Client::hello(server.addr());
            }
            client.send_bytes(&len.to_be_bytes());
            let (id, code, error) = client.expect_error();
            assert_eq!((id, code), (0, ErrorCode::TooLarge));
            assert_eq!(
                error.message,
                format!("frame length {len} exceeds the maximum of 10000")
            );
            client.expect_end();
        }
    }
}

#[test]
fn a_client_that_sends_a_frame_over_the_limit_whole_can_read_why_it_is_refused() {
    let server = served_with(StoreConfig {
        frame_bytes_max: 10_000,
        ..StoreConfig::default()
    });
    let mut client = Client::hello(server.addr());
    client.send(&append(3, vec![event("A", &[], vec![0; 8 * 1024 * 1024])]));
    let (id, code, _) = client.expect_error();
    assert_eq!((id, code), (0, ErrorCode::TooLarge));
    client.expect_end();
}

#[test]
fn a_frame_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() {
    for max in [1_024, 100_000, 16 * 1024 * 1024] {
        let server = served_with(StoreConfig {
            frame_bytes_max: max,
            ..StoreConfig::default()
        });
        let mut client = Client::hello(server.addr());
        client.send_bytes(&raw_frame(&padded_stats(6, max as usize)));
        expect_stats(&mut client, 6);
        client.send_bytes(&raw_frame(&padded_stats(7, max as usize + 1)));
        assert_eq!(client.expect_error().1, ErrorCode::TooLarge);
        client.expect_end();
    }
}

#[test]
fn frames_that_come_in_one_segment_are_all_answered() {
    let server = served();
    let mut client = Client::connect(server.addr());
    client.send_all([hello(1), stats(2), append(3, vec![event("A", &[], "")])]);
    let mut ids: Vec<u64> = (0..3).map(|_| client.expect().0).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
}

#[test]
fn a_frame_cut_anywhere_is_the_same_frame() {
    let server = served();
    // The one worker has seen the first part when it answers what was asked after that.
    let mut other = Client::hello(server.addr());
    let bytes = [
        frame(&hello(1)),
        frame(&append(2, vec![event("Cut", &["a:1", "b:2"], "anywhere")])),
    ]
    .concat();
    for cut in 0..=bytes.len() {
        let mut client = Client::connect(server.addr());
        client.send_bytes(&bytes[..cut]);
        other.stats();
        client.send_bytes(&bytes[cut..]);
        assert_eq!(client.expect().0, 1, "cut after {cut} bytes");
        let position = cut as u64 + 1;
        let appended = Answer::Appended {
            first: position,
            last: position,
        };
        assert_eq!(client.expect(), (2, appended), "cut after {cut} bytes");
    }
}

#[test]
fn frames_that_come_byte_by_byte_are_the_same_frames() {
    let server = served();
    let mut other = Client::hello(server.addr());
    let mut client = Client::connect(server.addr());
    for byte in [frame(&hello(1)), frame(&stats(2))].concat() {
        client.send_bytes(&[byte]);
        other.stats();
    }
    assert_eq!(client.expect().0, 1);
    expect_stats(&mut client, 2);
}

#[test]
fn a_request_whose_client_finished_at_once_is_answered_and_then_closed() {
    let server = served();
    let mut client = Client::connect(server.addr());
    client.send_all([hello(1), append(2, vec![event("A", &[], "")]), stats(3)]);
    client.finish();
    let mut ids: Vec<u64> = (0..3).map(|_| client.expect().0).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    client.expect_end();
}

#[test]
fn a_client_that_ends_within_a_frame_is_closed_without_a_word() {
    let server = served();
    for cut in [1, 3, 4, 7] {
        let mut client = Client::hello(server.addr());
        client.send_bytes(&frame(&append(2, vec![event("A", &[], "")]))[..cut]);
        client.finish();
        client.expect_end();
    }
    let mut client = Client::hello(server.addr());
    client.wait_for(|stats| stats.active_connections == 1 && stats.event_count == 0);
}

#[test]
fn a_frame_that_stays_incomplete_is_closed_and_counted() {
    let timeout = Duration::from_millis(100);
    let server = served_with(StoreConfig {
        incomplete_frame_timeout: timeout,
        ..StoreConfig::default()
    });
    let started = Instant::now();
    let mut client = Client::hello(server.addr());
    let mut idle = Client::hello(server.addr());
    // A trickle doesn't help: the time counts from the first byte.
    for byte in &frame(&stats(2))[..5] {
        client.send_bytes(&[*byte]);
    }
    client.expect_end();
    assert!(started.elapsed() >= timeout);
    assert_eq!(idle.stats().connections_reaped, 1);
}

/// A process's memory in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let digits: String = line
        .expect("a field")
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().expect("a number")
}

#[test]
fn a_frame_costs_memory_as_its_bytes_come_and_none_when_it_has_been_answered() {
    const MAX: usize = 16 * 1024 * 1024;
    let dir = TempDir::new().expect("a temporary directory");
    let binary = Binary::start_in(dir, &["--workers", "1"]);
    let mut other = Client::hello(binary.addr());
    other.stats();
    let before = resident_kib(binary.pid());
    // 100 connections announce 16 MiB each.
    let mut clients: Vec<Client> = (0..100).map(|_| Client::hello(binary.addr())).collect();
    for client in &mut clients {
        client.send_bytes(&[&(MAX as u32).to_be_bytes()[..], &[0x08, 0x01]].concat());
    }
    other.stats();
    let grown = resident_kib(binary.pid()).saturating_sub(before);
    assert!(
        grown < 100 * 64,
        "{grown} KiB for frames of which nothing has come"
    );
    // Six of them send it but for a byte, all at a time.
    let whole = padded_stats(1, MAX);
    let (most, last) = whole.split_at(MAX - 1);
    for client in &mut clients[..6] {
        client.send_bytes(&most[2..]);
    }
    other.stats();
    let held = resident_kib(binary.pid()).saturating_sub(before);
    for client in &mut clients[..6] {
        client.send_bytes(last);
        expect_stats(client, 1);
    }
    other.stats();
    let grown = resident_kib(binary.pid()).saturating_sub(before);
    assert!(held > 100 * 1024);
    // An allocator keeps some of it, for each worker at most four times the largest piece.
    assert!(
        grown < 128 * 1024,
        "{grown} KiB for connections that are idle, of {held}"
    );
}

#[test]
fn a_hello_that_does_not_come_in_time_closes_the_connection() {
    let timeout = Duration::from_millis(100);
    let server = served_with(StoreConfig {
        handshake_timeout: timeout,
        ..StoreConfig::default()
    });
    let started = Instant::now();
    let mut client = Client::connect(server.addr());
    client.send_bytes(&frame(&hello(1))[..4]);
    client.expect_end();
    assert!(started.elapsed() >= timeout);
}

#[test]
fn on_a_shared_port_a_client_that_never_speaks_meets_the_head_timer() {
    let timeout = Duration::from_millis(100);
    let config = Config {
        head_timeout: timeout,
        ..config()
    };
    let server = TestServer::store(config, StoreConfig::default());
    let started = Instant::now();
    Client::connect(server.addr()).expect_end();
    let mut client = Client::connect(server.addr());
    client.send_bytes(&frame(&hello(1))[..4]);
    client.expect_end();
    assert!(started.elapsed() >= 2 * timeout);
}

#[test]
fn only_a_connection_without_requests_and_subscriptions_is_idle() {
    let timeout = Duration::from_millis(100);
    let server = served_with(StoreConfig {
        idle_timeout: timeout,
        ..StoreConfig::default()
    });
    let mut subscriber = Client::hello(server.addr());
    subscriber.send(&subscribe(1, wire_support::all(), 0));
    assert_eq!(subscriber.take_to_edge(1), (Vec::new(), 0));
    let started = Instant::now();
    let mut idle = Client::hello(server.addr());
    idle.expect_end();
    assert!(started.elapsed() >= timeout);
    // The subscriber has been silent for longer than the one that was closed.
    Client::hello(server.addr()).append(vec![event("A", &[], "")]);
    assert_eq!(subscriber.take_to_edge(1).1, 1);
}

#[test]
fn a_connection_past_the_bound_is_closed_at_once_and_counted() {
    let server = served_with(StoreConfig {
        connections_max: 2,
        ..StoreConfig::default()
    });
    let mut first = Client::hello(server.addr());
    let second = Client::hello(server.addr());
    Client::connect(server.addr()).expect_end();
    let stats = first.stats();
    assert_eq!((stats.active_connections, stats.max_connections), (2, 2));
    assert_eq!(stats.connections_refused, 1);
    // Room is made by a close.
    drop(second);
    first.wait_for(|stats| stats.active_connections == 1);
    Client::hello(server.addr()).stats();
}
