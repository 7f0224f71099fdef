//! Bytes of a connection, and its end.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::time::Duration;

use pumice_event_loop::{Event, Ready, Stream};

use crate::common::{Client, Echo, Rig, State};
use crate::{accept_one, pattern, read_some, run, wait_until_ready};

pub(crate) fn what_a_client_sends_comes_back_whole_and_in_order<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut server = Echo::new(event_loop, 1_000);
    let lengths = [0, 1, 999, 1_000, 1_001, 20_000];
    let mut clients: Vec<_> = lengths
        .into_iter()
        .map(|len| {
            let mut client = rig.connect();
            client.send(&pattern(len));
            client.finish();
            (client, len, Vec::new())
        })
        .collect();
    run(&mut server, |_| {
        clients
            .iter_mut()
            .all(|(client, _, echo)| client.receive(echo) == State::Ended)
    });
    for (_, len, echo) in clients {
        assert!(echo == pattern(len), "{len} bytes came back changed");
    }
    run(&mut server, |server| server.len() == 0);
    assert_eq!(server.broken, 0);
}

pub(crate) fn a_message_exactly_as_long_as_the_buffer_is_answered<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut server = Echo::new(event_loop, 4_096);
    for len in [4_095, 4_096, 4_097, 8_192] {
        let mut client = rig.connect();
        client.send(&pattern(len));
        let mut echo = Vec::new();
        run(&mut server, |_| {
            client.receive(&mut echo);
            echo.len() >= len
        });
        assert!(echo == pattern(len), "{len} bytes came back changed");
    }
}

pub(crate) fn data_and_the_end_in_one_go_are_both_seen<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut server = Echo::new(event_loop, 4_096);
    let mut client = rig.connect();
    client.send(b"short");
    client.finish();
    let mut echo = Vec::new();
    run(&mut server, |_| client.receive(&mut echo) == State::Ended);
    assert_eq!(echo, b"short");
}

pub(crate) fn a_writer_goes_on_when_a_slow_reader_makes_room<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut client = rig.connect();
    let mut stream = accept_one(&mut event_loop);
    event_loop.register(&mut stream, 7).unwrap();
    let answer = pattern(64 * 1_024);
    for _ in 0..20 {
        // Fill the buffers until the system says no more, and let the client begin to read at that very moment:
        // the edge comes between the refusal and the flag that a server keeps.
        let mut sent = Vec::new();
        let refused_at = loop {
            let from = sent.len() % answer.len();
            match stream.write(&answer[from..]) {
                Ok(len) => sent.extend_from_slice(&answer[from..from + len]),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break sent.len();
                }
            }
        };
        let mut received = Vec::new();
        client.receive(&mut received);
        let mut can_write = false;
        let mut turns = 0;
        while received.len() < sent.len() || sent.len() == refused_at {
            turns += 1;
            assert!(turns < 100_000, "{} of {}", received.len(), sent.len());
            let until = event_loop.now() + Duration::from_millis(50);
            event_loop.poll(Some(until)).unwrap();
            for event in event_loop.events() {
                if let Event::Stream { token: 7, ready } = event {
                    can_write |= ready.is_writable();
                }
            }
            if can_write && sent.len() == refused_at {
                match stream.write(b"!") {
                    Ok(len) => sent.extend_from_slice(&b"!"[..len]),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        can_write = false;
                    }
                }
            }
            client.receive(&mut received);
        }
        assert!(received == sent, "bytes were lost or came twice");
    }
}

pub(crate) fn a_reset_breaks_one_connection_only<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut server = Echo::new(event_loop, 512);
    let mut kept = rig.connect();
    let mut lost = rig.connect();
    let mut echo = Vec::new();
    kept.send(b"before");
    lost.send(b"before");
    run(&mut server, |server| {
        kept.receive(&mut echo);
        echo == b"before" && server.len() == 2
    });
    lost.reset();
    run(&mut server, |server| server.len() == 1);
    kept.send(b" and after");
    run(&mut server, |_| {
        kept.receive(&mut echo);
        echo == b"before and after"
    });
}

pub(crate) fn the_end_of_one_direction_leaves_the_other_open<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut client = rig.connect();
    let mut stream = accept_one(&mut event_loop);
    event_loop.register(&mut stream, 1).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut nothing = Vec::new();
    let mut turns = 0;
    while client.receive(&mut nothing) == State::Open {
        turns += 1;
        assert!(turns < 10_000, "the client doesn't see the end");
        let until = rig.quiet(event_loop.now());
        event_loop.poll(Some(until)).unwrap();
    }
    assert_eq!(nothing, b"");
    client.send(b"still talking");
    client.finish();
    let mut bytes = Vec::new();
    let ready = wait_until_ready(&mut event_loop, 1, Ready::READ_CLOSED);
    assert!(ready.is_readable());
    while !read_some(&mut stream, &mut bytes) {
        wait_until_ready(&mut event_loop, 1, Ready::READABLE);
    }
    assert_eq!(bytes, b"still talking");
}

pub(crate) fn small_connections_come_and_go_without_a_trace<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut server = Echo::new(event_loop, 16);
    for round in 0..60 {
        let mut client = rig.connect();
        match round % 4 {
            // A health check: connect and close.
            0 => drop(client),
            // Junk and a reset.
            1 => {
                client.send(&[0xff; 40]);
                client.reset();
            }
            // A partial message and a close with an answer unread.
            2 => {
                client.send(b"half");
                server.turn(Some(server.event_loop.now()));
                drop(client);
            }
            _ => {
                client.send(b"whole");
                client.finish();
                let mut echo = Vec::new();
                run(&mut server, |_| client.receive(&mut echo) == State::Ended);
                assert_eq!(echo, b"whole");
            }
        }
    }
    run(&mut server, |server| {
        server.accepted == 60 && server.len() == 0
    });
}
