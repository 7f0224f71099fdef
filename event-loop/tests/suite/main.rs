//! The behaviour of `EventLoop`, the same tests on real sockets and in the simulation.

#[path = "../common/mod.rs"]
mod common;
mod listeners;
mod streams;
mod tokens;
mod waits;

use std::io::{ErrorKind, Read};
use std::time::Duration;

use pumice_event_loop::sim::seeds;
use pumice_event_loop::{Accept, Event, EventLoop, Platform, Ready};

use common::{Echo, MioRig, SimRig, UnixRig};

/// Seeds that each test runs through on the simulation.
const SEEDS: u64 = 60;

macro_rules! on_every_platform {
    ($($module:ident { $($test:ident)* })*) => {
        mod tcp {
            $($(#[test] fn $test() { crate::$module::$test(&mut super::MioRig::new()); })*)*
        }
        mod unix {
            $($(#[test] fn $test() { crate::$module::$test(&mut super::UnixRig::new()); })*)*
        }
        mod simulated {
            $($(#[test] fn $test() {
                for seed in super::seeds(super::SEEDS) {
                    crate::$module::$test(&mut super::SimRig::new(seed));
                }
            })*)*
        }
    };
}

on_every_platform! {
    streams {
        what_a_client_sends_comes_back_whole_and_in_order
        a_message_exactly_as_long_as_the_buffer_is_answered
        data_and_the_end_in_one_go_are_both_seen
        a_writer_goes_on_when_a_slow_reader_makes_room
        a_reset_breaks_one_connection_only
        the_end_of_one_direction_leaves_the_other_open
        small_connections_come_and_go_without_a_trace
    }
    tokens {
        a_stale_event_finds_nobody_when_its_slot_has_a_new_tenant
        a_stream_registered_late_is_told_what_it_can_do
        a_stream_can_be_read_before_it_is_registered
        a_deregistered_stream_says_no_more
        the_highest_token_comes_back_whole
    }
    listeners {
        a_burst_of_clients_is_served_by_a_budget_of_sixteen
        a_paused_listener_is_silent_and_shows_who_waits_when_resumed
        a_closed_listener_is_gone_and_its_id_finds_nobody
        two_listeners_are_told_apart
        a_listener_is_shown_until_it_was_empty_once
    }
    waits {
        an_idle_loop_waits_for_its_deadline
        a_deadline_in_the_past_is_no_wait
        a_message_wakes_a_loop_that_waits_without_a_deadline
        a_message_sent_by_the_loop_itself_is_not_slept_over
        a_deadline_ages_away_overflows_nothing
        a_stream_can_be_handed_to_another_loop
    }
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
