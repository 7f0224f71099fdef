//! The simulation has teeth: each mistake that servers on edge-triggered sockets make is found out in some world.

mod common;

use std::io::{Read, Write};
use std::time::Duration;

use pumice_event_loop::sim::seeds;
use pumice_event_loop::{Accept, Event, Ready};

use common::{Client, Rig, SimRig, State, token_of};

const SEEDS: u64 = 60;

/// How a server treats what it is told.
#[derive(Clone, Copy, Debug)]
enum Care {
    /// As it should be.
    Full,
    /// Stops at a short read, though the end was told along with the data.
    ForgetsTheEnd,
    /// Reads once per event.
    ReadsOnce,
    /// Believes that a write takes all.
    IgnoresShortWrites,
    /// Drops what couldn't be written, and doesn't try again when it could.
    IgnoresWritable,
    /// Looks a connection up by its slot alone.
    IgnoresGenerations,
}

/// Whether a server that is careless so gives every client of this world its due.
fn serves_well(seed: u64, care: Care) -> bool {
    let rig = &mut SimRig::new(seed);
    let (mut event_loop, id) = (rig.event_loop(), rig.listener());
    let id = event_loop.listen(id).unwrap();
    let message: Vec<u8> = (0..600).map(|at| (at % 251) as u8).collect();
    for generation in 1..4 {
        let mut client = rig.connect();
        Client::send(&mut client, &message);
        Client::finish(&mut client);
        let mut conn = None;
        let mut echo = Vec::new();
        let mut pending = Vec::new();
        let mut has_ended = false;
        let token = token_of(0, generation);
        let mut turns = 0;
        while Client::receive(&mut client, &mut echo) == State::Open {
            turns += 1;
            if turns > 3_000 {
                return false;
            }
            let until = event_loop.now() + Duration::from_millis(20);
            event_loop.poll(Some(until)).unwrap();
            for event in event_loop.events().to_vec() {
                match event {
                    Event::Listener { .. } if conn.is_none() => {
                        if let Accept::Stream(mut stream) = event_loop.accept(id).unwrap() {
                            event_loop.register(&mut stream, token).unwrap();
                            conn = Some(stream);
                        }
                    }
                    Event::Stream { token: this, ready } => {
                        let Some(stream) = &mut conn else { continue };
                        if this != token {
                            if matches!(care, Care::IgnoresGenerations) {
                                return false;
                            }
                            continue;
                        }
                        let mut buf = [0; 128];
                        while ready.is_readable() {
                            let Ok(len) = stream.read(&mut buf) else {
                                break;
                            };
                            has_ended |= len == 0;
                            pending.extend_from_slice(&buf[..len]);
                            let is_short = len < buf.len();
                            match care {
                                Care::ForgetsTheEnd if is_short => break,
                                Care::ReadsOnce => break,
                                _ if len == 0 => break,
                                _ if is_short && !ready.contains(Ready::READ_CLOSED) => break,
                                _ => {}
                            }
                        }
                        if let Ok(len) = stream.write(&pending) {
                            match care {
                                Care::IgnoresShortWrites => pending.clear(),
                                _ => drop(pending.drain(..len)),
                            }
                        } else if matches!(care, Care::IgnoresWritable) {
                            pending.clear();
                        }
                    }
                    _ => {}
                }
            }
            if has_ended && pending.is_empty() {
                conn = None;
            }
        }
        if echo != message {
            return false;
        }
    }
    true
}

#[test]
fn a_careful_server_serves_well_in_every_world() {
    for seed in seeds(SEEDS) {
        assert!(serves_well(seed, Care::Full), "seed {seed}");
    }
}

#[test]
fn each_kind_of_careless_server_is_found_out() {
    for care in [
        Care::ForgetsTheEnd,
        Care::ReadsOnce,
        Care::IgnoresShortWrites,
        Care::IgnoresWritable,
        Care::IgnoresGenerations,
    ] {
        let found = (0..SEEDS).filter(|seed| !serves_well(*seed, care)).count();
        assert!(found > 0, "{care:?} goes unnoticed");
    }
}
