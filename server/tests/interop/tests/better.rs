//! What is right here and known to be wrong in tephra-server 0.4.4: against another server than pumice these
//! tests say nothing.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::Shutdown;

use protobuf::Serialize;
use pumice_interop::Server;
use pumice_interop::wire::{Wire, append, read, stats};
use tephra_proto::DEFAULT_MAX_FRAME_LEN;
use tephra_proto::tephra::response::KindOneof;

/// An append whose frame has just this length.
fn append_of_len(request_id: u64, len: usize) -> tephra_proto::tephra::Request {
    let almost = append(request_id, "Large", &vec![7; len - 100]);
    let envelope = almost.serialize().expect("a message").len() - (len - 100);
    let request = append(request_id, "Large", &vec![7; len - envelope]);
    assert_eq!(request.serialize().expect("a message").len(), len);
    request
}

#[test]
fn an_event_that_no_answer_could_carry_is_not_stored() {
    if !Server::is_pumice() {
        return;
    }
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    wire.send(&append_of_len(2, DEFAULT_MAX_FRAME_LEN as usize));
    let (request_id, code, message) = wire.receive_error();
    assert_eq!(request_id, 2, "{code:?}: {message}");
    // A little smaller it is stored, and can be read.
    wire.send(&append_of_len(3, DEFAULT_MAX_FRAME_LEN as usize - 64));
    let response = wire.receive().expect("an answer");
    assert!(matches!(response.kind(), KindOneof::Append(stored) if stored.last() == 1));
    wire.send(&read(u64::MAX, 0));
    let response = wire.receive().expect("an answer");
    assert!(matches!(response.kind(), KindOneof::ReadEvents(events) if events.events().len() == 1));
    let response = wire.receive().expect("an answer");
    assert!(matches!(response.kind(), KindOneof::ReadEnd(_)));
}

#[test]
fn every_append_before_a_half_close_is_acknowledged() {
    if !Server::is_pumice() {
        return;
    }
    let server = Server::start();
    for round in 0..20 {
        let mut wire = Wire::connect(&server);
        for id in 10..60 {
            wire.queue(&append(id, "E", b""));
        }
        wire.writer.flush().expect("an open connection");
        wire.writer
            .get_ref()
            .shutdown(Shutdown::Write)
            .expect("an open connection");
        let mut acknowledged = BTreeSet::new();
        while let Some(response) = wire.receive() {
            assert!(matches!(response.kind(), KindOneof::Append(_)));
            acknowledged.insert(response.request_id());
        }
        assert!(acknowledged.into_iter().eq(10..60), "in round {round}");
    }
    let mut wire = Wire::connect(&server);
    wire.send(&stats(2));
    let response = wire.receive().expect("an answer");
    assert!(matches!(response.kind(), KindOneof::Stats(state) if state.event_count() == 1_000));
}

#[test]
fn a_read_in_flight_at_a_half_close_comes_to_its_end() {
    if !Server::is_pumice() {
        return;
    }
    let server = Server::start();
    let mut wire = Wire::connect(&server);
    for id in 10..60 {
        wire.queue(&append(id, "E", &[7; 100_000]));
    }
    wire.writer.flush().expect("an open connection");
    for _ in 10..60 {
        wire.receive().expect("an answer");
    }
    wire.send(&read(2, 0));
    wire.writer
        .get_ref()
        .shutdown(Shutdown::Write)
        .expect("an open connection");
    let mut events = 0;
    let mut has_ended = false;
    while let Some(response) = wire.receive() {
        match response.kind() {
            KindOneof::ReadEvents(batch) => events += batch.events().len(),
            KindOneof::ReadEnd(end) => has_ended = end.watermark() == 50,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(events, 50);
    assert!(has_ended);
}
