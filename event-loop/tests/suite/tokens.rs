//! Who is told, and under which token.

use std::io::Write;

use pumice_event_loop::{Accept, Event, Ready};

use crate::common::{Client, Rig, State, token_of};
use crate::{accept_one, read_some, wait_until_ready};

pub(crate) fn a_stale_event_finds_nobody_when_its_slot_has_a_new_tenant<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut first = rig.connect();
    let mut second = rig.connect();
    let mut old = accept_one(&mut event_loop);
    let mut other = accept_one(&mut event_loop);
    event_loop.register(&mut old, token_of(0, 1)).unwrap();
    event_loop.register(&mut other, token_of(1, 1)).unwrap();
    first.send(b"for the old tenant");
    second.send(b"for its neighbour");
    let mut third = rig.connect();

    // Slot 0 is released and taken again in the middle of a batch; whatever the batch still says of it, or a later
    // one, carries the old generation.
    let mut fresh = accept_one(&mut event_loop);
    let batch = event_loop.events().to_vec();
    event_loop.deregister(&mut old).unwrap();
    drop(old);
    event_loop.register(&mut fresh, token_of(0, 2)).unwrap();
    for event in batch {
        if let Event::Stream { token, .. } = event {
            assert_ne!(token, token_of(0, 2), "an event from before it was there");
        }
    }
    third.send(b"for the new tenant");
    let mut bytes = Vec::new();
    while bytes.len() < 18 {
        wait_until_ready(&mut event_loop, token_of(0, 2), Ready::READABLE);
        read_some(&mut fresh, &mut bytes);
    }
    assert_eq!(bytes, b"for the new tenant");
}

pub(crate) fn a_stream_registered_late_is_told_what_it_can_do<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut client = rig.connect();
    client.send(b"early");
    let mut stream = accept_one(&mut event_loop);
    let until = rig.quiet(event_loop.now());
    event_loop.poll(Some(until)).unwrap();
    event_loop.register(&mut stream, 1).unwrap();
    wait_until_ready(&mut event_loop, 1, Ready::READABLE | Ready::WRITABLE);
    let mut bytes = Vec::new();
    while bytes.len() < 5 {
        if !read_some(&mut stream, &mut bytes) && bytes.len() < 5 {
            wait_until_ready(&mut event_loop, 1, Ready::READABLE);
        }
    }
    assert_eq!(bytes, b"early");
}

pub(crate) fn a_stream_can_be_read_before_it_is_registered<R: Rig>(rig: &mut R) {
    rig.calm();
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut client = rig.connect();
    client.send(b"early");
    let mut stream = accept_one(&mut event_loop);
    // Never registered: whether it has come can only be found out by reading.
    let mut bytes = Vec::new();
    while bytes.len() < 5 {
        let until = rig.quiet(event_loop.now());
        event_loop.poll(Some(until)).unwrap();
        assert!(!read_some(&mut stream, &mut bytes));
    }
    assert_eq!(stream.write(b"answer").unwrap(), 6);
    drop(stream);
    let mut answer = Vec::new();
    while client.receive(&mut answer) == State::Open {
        let until = rig.quiet(event_loop.now());
        event_loop.poll(Some(until)).unwrap();
    }
    assert_eq!(answer, b"answer");
}

pub(crate) fn a_deregistered_stream_says_no_more<R: Rig>(rig: &mut R) {
    rig.calm();
    let mut event_loop = rig.event_loop();
    let id = event_loop.listen(rig.listener()).unwrap();
    let mut client = rig.connect();
    let mut stream = accept_one(&mut event_loop);
    // Or else the listener is shown again and again.
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::Empty));
    event_loop.register(&mut stream, 1).unwrap();
    wait_until_ready(&mut event_loop, 1, Ready::WRITABLE);
    event_loop.deregister(&mut stream).unwrap();
    assert!(event_loop.deregister(&mut stream).is_err());
    client.send(b"unheard");
    let until = rig.quiet(event_loop.now());
    event_loop.poll(Some(until)).unwrap();
    assert_eq!(event_loop.events(), []);
    event_loop.register(&mut stream, 2).unwrap();
    wait_until_ready(&mut event_loop, 2, Ready::READABLE);
}

pub(crate) fn the_highest_token_comes_back_whole<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let _client = rig.connect();
    let mut stream = accept_one(&mut event_loop);
    let token = pumice_event_loop::TOKEN_MAX;
    event_loop.register(&mut stream, token).unwrap();
    wait_until_ready(&mut event_loop, token, Ready::WRITABLE);
}
