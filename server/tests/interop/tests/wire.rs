//! Frames that no published client sends, or that it hides: made and read by tephra-proto.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::Shutdown;

use pumice_interop::Server;
use pumice_interop::wire::{Wire, append, cancel, read, request, stats, subscribe};
use tephra_proto::tephra::{self as pb, response::KindOneof};
use tephra_proto::{DEFAULT_MAX_FRAME_LEN, PROTOCOL_VERSION, hello_request, write_frame};

/// The ids of the next `count` answers, in ascending order: requests of one connection are answered as they are done.
fn answered(wire: &mut Wire, count: usize) -> Vec<u64> {
    let mut next = || wire.receive().expect("an answer").request_id();
    let mut ids: Vec<_> = (0..count).map(|_| next()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn the_first_frame_must_be_a_hello() {
    let server = Server::start();
    let mut wire = Wire::open(&server);
    wire.send(&stats(7));
    let (request_id, code, _) = wire.receive_error();
    assert_eq!((request_id, code), (7, pb::ErrorCode::Unauthenticated));
    assert!(wire.receive().is_none(), "then it closes");
}

#[test]
fn another_version_is_refused() {
    let server = Server::start();
    let mut wire = Wire::open(&server);
    let mut hello = pb::Hello::new();
    hello.set_protocol_version(PROTOCOL_VERSION + 1);
    let mut request = request(7);
    request.set_hello(hello);
    wire.send(&request);
    let (request_id, code, message) = wire.receive_error();
    assert_eq!((request_id, code), (7, pb::ErrorCode::BadRequest));
    assert!(message.contains('2'), "{message}");
    assert!(wire.receive().is_none(), "then it closes");
}

#[test]
fn a_token_does_no_harm_where_none_is_asked_for() {
    let server = Server::start();
    let mut wire = Wire::open(&server);
    wire.send(&hello_request(1, Some("secret")));
    let ack = wire.receive().expect("an answer");
    assert!(matches!(ack.kind(), KindOneof::HelloAck(_)));
}

#[test]
fn a_second_hello_is_refused_and_the_connection_goes_on() {
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    wire.send(&hello_request(2, None));
    let (request_id, code, _) = wire.receive_error();
    assert_eq!((request_id, code), (2, pb::ErrorCode::BadRequest));
    wire.send(&stats(3));
    assert_eq!(wire.receive().expect("an answer").request_id(), 3);
}

#[test]
fn a_request_without_a_kind_is_refused_and_the_connection_goes_on() {
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    wire.send(&request(2));
    // An empty frame is such a request, with the id 0.
    wire.send_bytes(&[0; 4]);
    for expected in [2, 0] {
        let (request_id, code, _) = wire.receive_error();
        assert_eq!((request_id, code), (expected, pb::ErrorCode::BadRequest));
    }
    wire.send(&stats(3));
    assert_eq!(wire.receive().expect("an answer").request_id(), 3);
}

#[test]
fn an_event_without_a_type_is_refused_and_the_connection_goes_on() {
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    wire.send(&append(2, "", b""));
    let (request_id, code, message) = wire.receive_error();
    assert_eq!((request_id, code), (2, pb::ErrorCode::BadRequest));
    assert!(
        message.contains("event type must not be empty"),
        "{message}"
    );
    wire.send(&append(3, "E", b""));
    let response = wire.receive().expect("an answer");
    assert!(matches!(response.kind(), KindOneof::Append(_)));
}

#[test]
fn bytes_that_are_no_request_are_refused_and_end_the_connection() {
    let server = Server::start();
    for bytes in [
        // A length beyond the end, field 0, a string that isn't UTF-8.
        &[0x12, 5, 0][..],
        &[0x00, 1],
        &[0x08, 7, 0x3A, 3, 0x12, 1, 0xFF],
    ] {
        let mut wire = Wire::connect(&server);
        wire.send_bytes(&(bytes.len() as u32).to_be_bytes());
        wire.send_bytes(bytes);
        let (request_id, code, _) = wire.receive_error();
        assert_eq!((request_id, code), (0, pb::ErrorCode::BadRequest));
        assert!(wire.receive().is_none(), "then it closes");
    }
    drop(Wire::connect(&server));
}

#[test]
fn nested_groups_end_a_connection_and_not_the_server() {
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    let bytes = [0x4B].repeat(200_000);
    wire.send_bytes(&(bytes.len() as u32).to_be_bytes());
    wire.send_bytes(&bytes);
    let (request_id, code, _) = wire.receive_error();
    assert_eq!((request_id, code), (0, pb::ErrorCode::BadRequest));
    assert!(wire.receive().is_none(), "then it closes");
    drop(Wire::connect(&server));
}

#[test]
fn a_frame_over_the_limit_is_refused_by_its_prefix_alone() {
    let server = Server::start();
    for len in [DEFAULT_MAX_FRAME_LEN + 1, u32::MAX] {
        let mut wire = Wire::connect(&server);
        wire.send_bytes(&len.to_be_bytes());
        let (request_id, code, message) = wire.receive_error();
        assert_eq!((request_id, code), (0, pb::ErrorCode::TooLarge));
        assert!(message.contains(&len.to_string()), "{message}");
        assert!(message.contains("16777216"), "{message}");
        assert!(wire.receive().is_none(), "then it closes");
    }
}

#[test]
fn pipelined_appends_get_dense_positions_in_order() {
    const APPENDS: u64 = 2_000;
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    for n in 0..APPENDS {
        wire.queue(&append(10 + n, "E", &n.to_be_bytes()));
    }
    wire.writer.flush().expect("an open connection");
    let mut positions = BTreeMap::new();
    for _ in 0..APPENDS {
        let response = wire.receive().expect("an answer");
        let KindOneof::Append(stored) = response.kind() else {
            panic!("{response:?}")
        };
        assert_eq!(stored.first(), stored.last());
        let before = positions.insert(response.request_id(), stored.first());
        assert_eq!(before, None, "answered once");
    }
    assert!(
        positions
            .into_iter()
            .eq((0..APPENDS).map(|n| (10 + n, n + 1)))
    );
}

#[test]
fn a_frame_in_pieces_is_the_same_frame() {
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    let mut frames = Vec::new();
    write_frame(&mut frames, &stats(2), DEFAULT_MAX_FRAME_LEN).expect("a frame");
    write_frame(&mut frames, &append(3, "E", b"x"), DEFAULT_MAX_FRAME_LEN).expect("a frame");
    for byte in frames {
        wire.send_bytes(&[byte]);
    }
    assert_eq!(answered(&mut wire, 2), [2, 3]);
}

#[test]
fn hello_and_requests_may_come_in_one_segment() {
    let server = Server::start();
    let mut wire = Wire::open(&server);
    wire.queue(&hello_request(1, None));
    wire.queue(&stats(2));
    wire.queue(&stats(3));
    wire.writer.flush().expect("an open connection");
    assert_eq!(answered(&mut wire, 1), [1]);
    assert_eq!(answered(&mut wire, 2), [2, 3]);
}

#[test]
fn a_cancelled_subscription_is_silent_and_its_id_is_free_again() {
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    wire.send(&subscribe(2, 0));
    let response = wire.receive().expect("an answer");
    assert!(matches!(response.kind(), KindOneof::CaughtUp(_)));
    // Cancelled twice, and an id that nobody has: neither is answered.
    wire.queue(&cancel(2));
    wire.queue(&cancel(2));
    wire.queue(&cancel(77));
    wire.queue(&stats(3));
    wire.writer.flush().expect("an open connection");
    assert_eq!(wire.receive().expect("an answer").request_id(), 3);

    // It is gone when the server says so.
    loop {
        wire.send(&stats(3));
        let response = wire.receive().expect("an answer");
        let KindOneof::Stats(state) = response.kind() else {
            panic!("{response:?}")
        };
        if state.active_subscriptions() == 0 {
            break;
        }
    }
    wire.send(&append(4, "E", b""));
    assert_eq!(wire.receive().expect("an answer").request_id(), 4);
    wire.send(&read(2, 0));
    let response = wire.receive().expect("an answer");
    assert!(matches!(response.kind(), KindOneof::ReadEvents(events) if events.events().len() == 1));
    let response = wire.receive().expect("an answer");
    assert!(matches!(response.kind(), KindOneof::ReadEnd(end) if end.watermark() == 1));
}

#[test]
fn a_subscription_says_once_per_edge_that_it_has_caught_up() {
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    wire.send(&subscribe(2, 0));
    let response = wire.receive().expect("an answer");
    assert!(matches!(response.kind(), KindOneof::CaughtUp(edge) if edge.watermark() == 0));
    for position in 1..=3 {
        wire.send(&append(10 + position, "E", b""));
        // The append's answer comes when it likes; of the subscription, the event before the edge.
        let (mut is_appended, mut has_event, mut is_caught_up) = (false, false, false);
        while !(is_appended && is_caught_up) {
            let response = wire.receive().expect("an answer");
            match response.kind() {
                KindOneof::Append(_) => is_appended = true,
                KindOneof::ReadEvents(events) => {
                    assert_eq!(response.request_id(), 2);
                    let positions = events.events().iter().map(|event| event.position());
                    assert!(positions.eq([position]));
                    has_event = true;
                }
                KindOneof::CaughtUp(edge) => {
                    assert!(has_event && !is_caught_up);
                    assert_eq!(edge.watermark(), position);
                    is_caught_up = true;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn what_was_sent_before_a_half_close_is_answered() {
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    wire.send(&stats(2));
    assert_eq!(wire.receive().expect("an answer").request_id(), 2);
    wire.send(&stats(3));
    wire.writer
        .get_ref()
        .shutdown(Shutdown::Write)
        .expect("an open connection");
    assert_eq!(wire.receive().expect("an answer").request_id(), 3);
    let mut rest = Vec::new();
    wire.reader.read_to_end(&mut rest).expect("the end");
    assert_eq!(rest, []);
}
