//! The behaviour of `EventLoop`, the same tests on real sockets and in the simulation.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use pumice_event_loop::sim::seeds;
use pumice_event_loop::{Accept, Event, EventLoop, LoopConfig, Platform, Ready, Stream};

use common::{Client, Echo, MioRig, Rig, SimRig, State, UnixRig, token_of};

/// Seeds that each test runs through on the simulation.
const SEEDS: u64 = 60;

macro_rules! on_every_platform {
    ($($test:ident)*) => {
        mod tcp {
            $(#[test] fn $test() { super::$test(&mut super::MioRig::new()); })*
        }
        mod unix {
            $(#[test] fn $test() { super::$test(&mut super::UnixRig::new()); })*
        }
        mod simulated {
            $(#[test] fn $test() {
                for seed in super::seeds(super::SEEDS) {
                    super::$test(&mut super::SimRig::new(seed));
                }
            })*
        }
    };
}

on_every_platform! {
    what_a_client_sends_comes_back_whole_and_in_order
    a_burst_of_clients_is_served_by_a_budget_of_sixteen
    a_message_exactly_as_long_as_the_buffer_is_answered
    data_and_the_end_in_one_go_are_both_seen
    a_writer_goes_on_when_a_slow_reader_makes_room
    a_stale_event_finds_nobody_when_its_slot_has_a_new_tenant
    a_stream_registered_late_is_told_what_it_can_do
    a_stream_can_be_read_before_it_is_registered
    a_deregistered_stream_says_no_more
    a_reset_breaks_one_connection_only
    the_end_of_one_direction_leaves_the_other_open
    a_paused_listener_is_silent_and_shows_who_waits_when_resumed
    a_closed_listener_is_gone_and_its_id_finds_nobody
    two_listeners_are_told_apart
    a_listener_is_shown_until_it_was_empty_once
    an_idle_loop_waits_for_its_deadline
    a_deadline_in_the_past_is_no_wait
    a_message_wakes_a_loop_that_waits_without_a_deadline
    a_message_sent_by_the_loop_itself_is_not_slept_over
    the_highest_token_comes_back_whole
    small_connections_come_and_go_without_a_trace
}

/// Turns the server until `is_done`, at most some thousand times.
fn run<P: Platform>(server: &mut Echo<P>, mut is_done: impl FnMut(&mut Echo<P>) -> bool) {
    for _ in 0..100_000 {
        if is_done(server) {
            return;
        }
        // A deadline, so that a lost edge is a failed test and not one that hangs.
        let until = server.event_loop.now() + Duration::from_millis(50);
        server.turn(Some(until));
    }
    panic!("not done after 100 000 turns");
}

/// Turns a bare loop until one of its events is taken by `pick`.
fn wait_for<P: Platform, T>(
    event_loop: &mut EventLoop<P>,
    mut pick: impl FnMut(Event) -> Option<T>,
) -> T {
    for _ in 0..1_000 {
        let until = event_loop.now() + Duration::from_millis(50);
        event_loop.poll(Some(until)).unwrap();
        if let Some(found) = event_loop.events().iter().copied().find_map(&mut pick) {
            return found;
        }
    }
    panic!("no such event in 1 000 turns");
}

/// Accepts the next newcomer.
fn accept_one<P: Platform>(event_loop: &mut EventLoop<P>) -> P::Stream {
    loop {
        let id = wait_for(event_loop, |event| match event {
            Event::Listener { id } => Some(id),
            _ => None,
        });
        if let Accept::Stream(stream) = event_loop.accept(id).unwrap() {
            return stream;
        }
    }
}

/// Waits until the stream with `token` has been told all of `ready`, in one event or several.
fn wait_until_ready<P: Platform>(event_loop: &mut EventLoop<P>, token: u64, ready: Ready) -> Ready {
    let mut sum = Ready::EMPTY;
    wait_for(event_loop, |event| {
        match event {
            Event::Stream { token: this, ready } if this == token => sum.insert(ready),
            _ => {}
        }
        sum.contains(ready).then_some(sum)
    })
}

/// Reads until it would block or is over, whatever was told.
fn read_some(stream: &mut impl Read, out: &mut Vec<u8>) -> bool {
    let mut buf = [0; 512];
    loop {
        match stream.read(&mut buf) {
            Ok(0) => return true,
            Ok(len) => out.extend_from_slice(&buf[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Bytes that are nowhere the same for long.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

fn what_a_client_sends_comes_back_whole_and_in_order<R: Rig>(rig: &mut R) {
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

fn a_burst_of_clients_is_served_by_a_budget_of_sixteen<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut server = Echo::new(event_loop, 64);
    let mut clients: Vec<_> = (0..200u32)
        .map(|number| {
            let mut client = rig.connect();
            client.send(&number.to_le_bytes());
            (client, Vec::new())
        })
        .collect();
    run(&mut server, |_| {
        clients.iter_mut().all(|(client, echo)| {
            client.receive(echo);
            echo.len() == 4
        })
    });
    for (number, (_, echo)) in (0u32..).zip(&clients) {
        assert_eq!(*echo, number.to_le_bytes());
    }
    assert_eq!(server.accepted, 200);
    assert!(server.accepts_in_turn <= 16, "{}", server.accepts_in_turn);
}

fn a_message_exactly_as_long_as_the_buffer_is_answered<R: Rig>(rig: &mut R) {
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

fn data_and_the_end_in_one_go_are_both_seen<R: Rig>(rig: &mut R) {
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

fn a_writer_goes_on_when_a_slow_reader_makes_room<R: Rig>(rig: &mut R) {
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

fn a_stale_event_finds_nobody_when_its_slot_has_a_new_tenant<R: Rig>(rig: &mut R) {
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

fn a_stream_registered_late_is_told_what_it_can_do<R: Rig>(rig: &mut R) {
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

fn a_stream_can_be_read_before_it_is_registered<R: Rig>(rig: &mut R) {
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

fn a_deregistered_stream_says_no_more<R: Rig>(rig: &mut R) {
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

fn a_reset_breaks_one_connection_only<R: Rig>(rig: &mut R) {
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

fn the_end_of_one_direction_leaves_the_other_open<R: Rig>(rig: &mut R) {
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

fn a_paused_listener_is_silent_and_shows_who_waits_when_resumed<R: Rig>(rig: &mut R) {
    rig.calm();
    let mut event_loop = rig.event_loop();
    let id = event_loop.listen(rig.listener()).unwrap();
    event_loop.pause(id);
    let _clients: Vec<_> = (0..20).map(|_| rig.connect()).collect();
    let mut turns = 0;
    let until = rig.quiet(event_loop.now());
    while event_loop.now() < until {
        turns += 1;
        event_loop.poll(Some(until)).unwrap();
        assert_eq!(event_loop.events(), []);
        assert!(matches!(event_loop.accept(id).unwrap(), Accept::Empty));
    }
    // The first newcomer may wake it, and no other.
    assert!(turns <= 3, "{turns} turns while paused");
    event_loop.resume(id);
    event_loop.resume(id);
    let shown = wait_for(&mut event_loop, |event| match event {
        Event::Listener { id } => Some(id),
        _ => None,
    });
    assert_eq!(shown, id);
    let mut count = 0;
    while count < 20 {
        match event_loop.accept(id).unwrap() {
            Accept::Stream(_) => count += 1,
            Accept::Busy => event_loop.poll(Some(event_loop.now())).unwrap(),
            other => panic!("{other:?} after {count}"),
        }
    }
    assert_eq!(event_loop.listener_stats(id).unwrap().accepted, 20);
}

fn a_closed_listener_is_gone_and_its_id_finds_nobody<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    let id = event_loop.listen(rig.listener()).unwrap();
    let mut waiting = rig.connect();
    event_loop.close_listener(id);
    event_loop.close_listener(id);
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::Empty));
    assert!(event_loop.listener_stats(id).is_none());
    let mut turns = 0;
    while waiting.receive(&mut Vec::new()) == State::Open {
        turns += 1;
        assert!(turns < 10_000, "nobody tells the client");
        let until = rig.quiet(event_loop.now());
        event_loop.poll(Some(until)).unwrap();
    }
    drop(waiting);
    let next = event_loop.listen(rig.listener()).unwrap();
    assert_ne!(id, next);
    event_loop.pause(id);
    let _client = rig.connect();
    accept_one(&mut event_loop);
}

fn two_listeners_are_told_apart<R: Rig>(rig: &mut R) {
    rig.calm();
    let mut event_loop = rig.event_loop();
    let first = event_loop.listen(rig.listener()).unwrap();
    let _to_first = rig.connect();
    let id = wait_for(&mut event_loop, |event| match event {
        Event::Listener { id } => Some(id),
        _ => None,
    });
    assert_eq!(id, first);
    assert!(matches!(
        event_loop.accept(first).unwrap(),
        Accept::Stream(_)
    ));
    assert!(matches!(event_loop.accept(first).unwrap(), Accept::Empty));
    event_loop.pause(first);
    let second = event_loop.listen(rig.listener()).unwrap();
    let _to_second = rig.connect();
    let id = wait_for(&mut event_loop, |event| match event {
        Event::Listener { id } => Some(id),
        _ => None,
    });
    assert_eq!(id, second);
}

fn a_listener_is_shown_until_it_was_empty_once<R: Rig>(rig: &mut R) {
    rig.calm();
    let mut event_loop = rig.event_loop_with(LoopConfig {
        accepts_per_turn: 2,
        ..LoopConfig::default()
    });
    let id = event_loop.listen(rig.listener()).unwrap();
    let _clients: Vec<_> = (0..3).map(|_| rig.connect()).collect();
    let until = rig.quiet(event_loop.now());
    event_loop.poll(Some(until)).unwrap();
    for _ in 0..3 {
        // Nobody accepts, and it is shown again.
        assert_eq!(event_loop.events(), [Event::Listener { id }]);
        event_loop.poll(None).unwrap();
    }
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::Stream(_)));
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::Stream(_)));
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::Busy));
    event_loop.poll(None).unwrap();
    assert_eq!(event_loop.events(), [Event::Listener { id }]);
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::Stream(_)));
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::Empty));
    let until = rig.quiet(event_loop.now());
    event_loop.poll(Some(until)).unwrap();
    assert_eq!(event_loop.events(), []);
}

fn an_idle_loop_waits_for_its_deadline<R: Rig>(rig: &mut R) {
    rig.calm();
    let mut event_loop = rig.event_loop();
    let id = event_loop.listen(rig.listener()).unwrap();
    let mut client = rig.connect();
    let mut stream = accept_one(&mut event_loop);
    // Or else the listener is shown again and again.
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::Empty));
    event_loop.register(&mut stream, 1).unwrap();
    client.send(b"x");
    wait_until_ready(&mut event_loop, 1, Ready::READABLE);
    // Data that nobody reads makes no further event: the loop sleeps.
    let begin = event_loop.now();
    let until = begin + Duration::from_millis(60);
    let mut turns = 0;
    while event_loop.now() < until {
        event_loop.poll(Some(until)).unwrap();
        turns += 1;
    }
    assert!(turns <= 3, "{turns} turns for one deadline");
    assert!(event_loop.now() < until + Duration::from_secs(5));
}

fn a_deadline_in_the_past_is_no_wait<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    let past = event_loop.now();
    for _ in 0..100 {
        event_loop.poll(Some(past)).unwrap();
    }
    assert!(event_loop.now() < past + Duration::from_secs(5));
}

fn a_message_wakes_a_loop_that_waits_without_a_deadline<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    let mut mailbox = event_loop.mailbox().unwrap();
    let sender = mailbox.sender();
    let far = event_loop.waker();
    let mut received = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || {
            pumice_event_loop::Wake::wake(&far);
            sender.send(1).unwrap();
            sender.send_all(&mut vec![2, 3]).unwrap();
        });
        while received.len() < 3 {
            event_loop.poll(None).unwrap();
            mailbox.drain(&mut received);
        }
    });
    assert_eq!(received, [1, 2, 3]);
}

fn a_message_sent_by_the_loop_itself_is_not_slept_over<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    let mut mailbox = event_loop.mailbox().unwrap();
    let sender = mailbox.sender();
    for number in 0..50 {
        sender.send(number).unwrap();
        let mut received = Vec::new();
        while received.is_empty() {
            event_loop.poll(None).unwrap();
            mailbox.drain(&mut received);
        }
        assert_eq!(received, [number]);
    }
}

fn the_highest_token_comes_back_whole<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let _client = rig.connect();
    let mut stream = accept_one(&mut event_loop);
    let token = pumice_event_loop::TOKEN_MAX;
    event_loop.register(&mut stream, token).unwrap();
    wait_until_ready(&mut event_loop, token, Ready::WRITABLE);
}

fn small_connections_come_and_go_without_a_trace<R: Rig>(rig: &mut R) {
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
