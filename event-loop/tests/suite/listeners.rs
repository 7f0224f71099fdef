//! Who may be accepted, and when.

use std::time::Duration;

use pumice_event_loop::{Accept, Event, LoopConfig};

use crate::common::{Client, Echo, Rig, State};
use crate::{accept_one, run, wait_for};

pub(crate) fn a_burst_of_clients_is_served_by_a_budget_of_sixteen<R: Rig>(rig: &mut R) {
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

pub(crate) fn a_paused_listener_is_silent_and_shows_who_waits_when_resumed<R: Rig>(rig: &mut R) {
    rig.calm();
    let mut event_loop = rig.event_loop();
    let id = event_loop.listen(rig.listener()).unwrap();
    event_loop.pause(id);
    let mut clients = Vec::new();
    let mut wakes = 0;
    for _ in 0..20 {
        clients.push(rig.connect());
        let until = rig.quiet(event_loop.now()) - Duration::from_millis(15);
        while event_loop.now() < until {
            event_loop.poll(Some(until)).unwrap();
            assert_eq!(event_loop.events(), []);
            assert!(matches!(event_loop.accept(id).unwrap(), Accept::Empty));
            wakes += usize::from(event_loop.now() < until);
        }
    }
    // The first newcomer may wake it, and no other.
    assert!(wakes <= 2, "{wakes} wake-ups while paused");
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

pub(crate) fn a_closed_listener_is_gone_and_its_id_finds_nobody<R: Rig>(rig: &mut R) {
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

pub(crate) fn two_listeners_are_told_apart<R: Rig>(rig: &mut R) {
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

pub(crate) fn a_listener_is_shown_until_it_was_empty_once<R: Rig>(rig: &mut R) {
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
