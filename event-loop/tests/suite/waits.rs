//! What ends a poll: deadlines and messages.

use std::thread;
use std::time::Duration;

use pumice_event_loop::{Accept, Ready};

use crate::common::{Client, Rig};
use crate::{accept_one, read_some, wait_until_ready};

pub(crate) fn an_idle_loop_waits_for_its_deadline<R: Rig>(rig: &mut R) {
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

pub(crate) fn a_deadline_in_the_past_is_no_wait<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    let past = event_loop.now();
    for _ in 0..100 {
        event_loop.poll(Some(past)).unwrap();
    }
    assert!(event_loop.now() < past + Duration::from_secs(5));
}

pub(crate) fn a_message_wakes_a_loop_that_waits_without_a_deadline<R: Rig>(rig: &mut R) {
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

pub(crate) fn a_message_sent_by_the_loop_itself_is_not_slept_over<R: Rig>(rig: &mut R) {
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

pub(crate) fn a_deadline_ages_away_overflows_nothing<R: Rig>(rig: &mut R) {
    let mut event_loop = rig.event_loop();
    let mut mailbox = event_loop.mailbox().unwrap();
    let sender = mailbox.sender();
    // More milliseconds than an `int` holds, many times over.
    let ages = event_loop.now() + Duration::from_secs(10_000_000_000);
    let mut received = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || sender.send(1).unwrap());
        while received.is_empty() {
            event_loop.poll(Some(ages)).unwrap();
            mailbox.drain(&mut received);
        }
    });
    assert_eq!(received, [1]);
}

pub(crate) fn a_stream_can_be_handed_to_another_loop<R: Rig>(rig: &mut R) {
    let mut first = rig.event_loop();
    first.listen(rig.listener()).unwrap();
    let mut second = rig.event_loop();
    let mut mailbox = second.mailbox().unwrap();
    let sender = mailbox.sender();
    let mut client = rig.connect();
    client.send(b"hello");
    let stream = accept_one(&mut first);
    assert!(sender.send(stream).is_ok());

    let mut streams = Vec::new();
    while streams.is_empty() {
        second.poll(None).unwrap();
        mailbox.drain(&mut streams);
    }
    second.register(&mut streams[0], 5).unwrap();
    let mut bytes = Vec::new();
    while bytes.len() < 5 {
        wait_until_ready(&mut second, 5, Ready::READABLE);
        read_some(&mut streams[0], &mut bytes);
    }
    assert_eq!(bytes, b"hello");
}
