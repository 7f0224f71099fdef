//! What only the simulation can show: faults of the system at will, and that it has teeth.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use pumice_event_loop::sim::{Clock, Faults, Flow, Rng, Sim, World, seeds};
use pumice_event_loop::{Accept, Event, EventLoop, ListenerId, LoopConfig, Stream, Wake};

use common::Echo;

const SEEDS: u64 = 60;

fn addr() -> SocketAddr {
    "10.0.0.1:80".parse().unwrap()
}

/// A loop with one listener.
fn listening(world: &World, config: LoopConfig) -> (EventLoop<Sim>, ListenerId) {
    let mut event_loop = EventLoop::with_config(world.platform(), config).unwrap();
    let id = event_loop.listen(world.listener(addr())).unwrap();
    (event_loop, id)
}

/// Some clients that send some bytes and end, one way or another; returns what they got and the trace.
fn scenario(seed: u64) -> (Vec<Vec<u8>>, u64, Duration) {
    let world = World::new(seed);
    let (event_loop, _) = listening(&world, LoopConfig::default());
    let mut server = Echo::new(event_loop, 100);
    let mut rng = Rng::new(!seed);
    let mut clients: Vec<_> = (0..5)
        .map(|_| (world.connect(addr()).unwrap(), Vec::new()))
        .collect();
    for _ in 0..200 {
        let at = rng.below(clients.len());
        let (client, echo) = &mut clients[at];
        match rng.below(4) {
            0 => drop(client.send(&vec![rng.below(256) as u8; rng.below(2_000)])),
            1 if rng.chance(50) => client.finish(),
            2 => drop(client.receive(echo)),
            _ => server.turn(Some(server.event_loop.now() + Duration::from_millis(1))),
        }
    }
    let echoes = clients.into_iter().map(|(_, echo)| echo).collect();
    drop(server);
    (echoes, world.trace(), world.elapsed())
}

#[test]
fn a_seed_is_replayed_to_the_byte_and_another_is_another_world() {
    let mut traces = Vec::new();
    for seed in seeds(SEEDS) {
        let first = scenario(seed);
        assert!(first == scenario(seed), "seed {seed} differs from itself");
        traces.push(first.1);
    }
    let count = traces.len();
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), count);
}

#[test]
fn every_fault_really_happens() {
    let mut short_reads = 0;
    let mut short_writes = 0;
    let mut refused_reads = 0;
    let mut refused_writes = 0;
    let mut strays = 0;
    let mut twice_in_turn = 0;
    for seed in seeds(SEEDS) {
        let world = World::new(seed);
        let (mut event_loop, id) = listening(&world, LoopConfig::default());
        let mut client = world.connect(addr()).unwrap();
        client.send(&[7; 4_000]).unwrap();
        let mut stream = loop {
            event_loop.poll(None).unwrap();
            if let Accept::Stream(stream) = event_loop.accept(id).unwrap() {
                break stream;
            }
        };
        event_loop.register(&mut stream, 1).unwrap();
        let mut buf = [0; 256];
        let mut left: usize = 4_000;
        while left > 0 {
            let until = event_loop.now() + Duration::from_millis(1);
            event_loop.poll(Some(until)).unwrap();
            let streams = event_loop.events().iter().map(|event| match event {
                Event::Stream { token, .. } => *token,
                _ => u64::MAX,
            });
            let streams: Vec<_> = streams.collect();
            strays += streams.iter().filter(|token| **token == 2).count();
            twice_in_turn += usize::from(streams.iter().filter(|token| **token == 1).count() > 1);
            match stream.read(&mut buf) {
                Ok(len) => {
                    short_reads += usize::from(len < buf.len().min(left));
                    left -= len;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    refused_reads += 1;
                }
            }
            match stream.write(&[8; 10]) {
                Ok(len) => short_writes += usize::from(len < 10),
                Err(_) => refused_writes += 1,
            }
            // A tenant that comes and goes, for stale events.
            event_loop.deregister(&mut stream).unwrap();
            event_loop.register(&mut stream, 2).unwrap();
            event_loop.deregister(&mut stream).unwrap();
            event_loop.register(&mut stream, 1).unwrap();
        }
    }
    for (count, fault) in [
        (short_reads, "short read"),
        (short_writes, "short write"),
        (refused_reads, "refused read"),
        (refused_writes, "refused write"),
        (strays, "stale event"),
        (twice_in_turn, "split event"),
    ] {
        assert!(count > 0, "no {fault} in {SEEDS} worlds");
    }
}

#[test]
fn a_poll_may_return_for_nothing_but_time_goes_on() {
    let mut early = 0;
    for seed in seeds(SEEDS) {
        let world = World::new(seed);
        let (mut event_loop, _) = listening(&world, LoopConfig::default());
        let until = event_loop.now() + Duration::from_secs(1);
        let mut turns = 0;
        while event_loop.now() < until {
            event_loop.poll(Some(until)).unwrap();
            assert_eq!(event_loop.events(), []);
            turns += 1;
        }
        early += turns - 1;
    }
    assert!(early > 0);
}

#[test]
fn without_descriptors_the_others_are_served_and_newcomers_are_told() {
    for seed in seeds(SEEDS) {
        let world = World::new(seed);
        let config = LoopConfig {
            shed_answer: b"full".to_vec(),
            ..LoopConfig::default()
        };
        let back_off = config.back_off;
        let (event_loop, id) = listening(&world, config);
        let mut server = Echo::new(event_loop, 64);
        let mut old = world.connect(addr()).unwrap();
        while server.accepted < 1 {
            server.turn(None);
        }
        // The stream and the reserve: none is left for another.
        world.set_descriptors_max(world.descriptors());
        let mut refused: Vec<_> = (0..5).map(|_| world.connect(addr()).unwrap()).collect();
        let begin = world.now();
        let mut echo = Vec::new();
        let mut turns = 0;
        while server.event_loop.now() < begin + 20 * back_off {
            if echo.len() >= 4 {
                echo.clear();
            }
            if echo.is_empty() {
                old.send(b"ping").unwrap();
            }
            server.turn(Some(begin + 20 * back_off));
            old.receive(&mut echo).unwrap();
            turns += 1;
        }
        assert!(turns < 500_000, "{turns}");
        for client in &mut refused {
            // By the answer and the end, or by a reset if the world has cut the answer off. A client's buffer may be
            // as small as a byte.
            let mut text = Vec::new();
            let is_told = (0..8).any(|_| {
                world.settle();
                !matches!(client.receive(&mut text), Ok(Flow::Open))
            });
            assert!(is_told, "still waiting");
            assert!(b"full".starts_with(&text));
        }
        let stats = server.event_loop.listener_stats(id).unwrap();
        assert_eq!((stats.accepted, stats.shed), (1, 5));

        world.set_descriptors_max(usize::MAX);
        let _next = world.connect(addr()).unwrap();
        let freed = world.now();
        while server.accepted < 2 {
            server.turn(None);
        }
        assert!(server.event_loop.now() <= freed + 2 * back_off);
    }
}

#[test]
fn an_accept_error_that_stays_does_not_keep_the_loop_awake() {
    /// EPERM, as a security module would have it: it looks like a newcomer's fault.
    const EPERM: i32 = 1;
    /// EMFILE.
    const EMFILE: i32 = 24;
    /// EINVAL: the listener isn't one.
    const EINVAL: i32 = 22;
    for code in [EPERM, EMFILE, EINVAL] {
        let world = World::with_faults(1, Faults::calm());
        let (mut event_loop, id) = listening(&world, LoopConfig::default());
        let _client = world.connect(addr()).unwrap();
        world.fail_accepts(u32::MAX, code);
        let begin = event_loop.now();
        let mut turns = 0;
        let mut errors = 0;
        while event_loop.now() < begin + Duration::from_secs(10) {
            let until = begin + Duration::from_secs(10);
            event_loop.poll(Some(until)).unwrap();
            turns += 1;
            if !event_loop.events().is_empty() {
                match event_loop.accept(id) {
                    Ok(Accept::BackedOff) => {}
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(EINVAL));
                        errors += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        // Ten tries a second.
        assert!((95..=110).contains(&turns), "{turns} turns for {code}");
        assert_eq!(errors > 0, code == EINVAL);
        world.fail_accepts(0, 0);
        loop {
            event_loop.poll(None).unwrap();
            if let Accept::Stream(_) = event_loop.accept(id).unwrap() {
                break;
            }
        }
    }
}

#[test]
fn newcomers_that_are_gone_are_passed_over() {
    for seed in seeds(SEEDS) {
        let world = World::with_faults(
            seed,
            Faults {
                abort: 500,
                ..Faults::rough()
            },
        );
        let (event_loop, id) = listening(&world, LoopConfig::default());
        let mut server = Echo::new(event_loop, 64);
        let mut clients: Vec<_> = (0..50).map(|_| world.connect(addr()).unwrap()).collect();
        let stats = loop {
            server.turn(Some(server.event_loop.now() + Duration::from_millis(50)));
            let stats = server.event_loop.listener_stats(id).unwrap();
            if server.accepted as u64 + stats.aborted >= 50 && world.connections() <= 50 {
                break stats;
            }
        };
        assert!(stats.aborted > 0);
        assert!(stats.accepted > 0);
        world.settle();
        let is_reset =
            |client: &mut pumice_event_loop::sim::Client| client.receive(&mut Vec::new()).is_err();
        let reset = clients
            .iter_mut()
            .filter_map(|client| is_reset(client).then_some(()));
        assert_eq!(reset.count(), 50 - server.accepted);
    }
}

#[test]
fn a_registration_that_fails_leaves_nothing_behind() {
    let world = World::with_faults(1, Faults::calm());
    let (mut event_loop, id) = listening(&world, LoopConfig::default());
    let mut client = world.connect(addr()).unwrap();
    event_loop.poll(None).unwrap();
    let Accept::Stream(mut stream) = event_loop.accept(id).unwrap() else {
        panic!("somebody waits");
    };
    world.fail_registrations(1);
    assert!(event_loop.register(&mut stream, 1).is_err());
    assert_eq!(
        event_loop.deregister(&mut stream).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    event_loop.register(&mut stream, 2).unwrap();
    let error = event_loop.register(&mut stream, 3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    client.send(b"x").unwrap();
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::Empty));
    event_loop.poll(None).unwrap();
    let [Event::Stream { token: 2, ready }] = *event_loop.events() else {
        panic!("{:?}", event_loop.events());
    };
    assert!(ready.is_readable());
}

#[test]
fn a_listener_that_cannot_be_watched_again_is_tried_again_later() {
    let world = World::with_faults(1, Faults::calm());
    let (mut event_loop, id) = listening(&world, LoopConfig::default());
    event_loop.pause(id);
    let _client = world.connect(addr()).unwrap();
    event_loop.poll(None).unwrap();
    assert_eq!(event_loop.events(), []);
    world.fail_registrations(2);
    event_loop.resume(id);
    let begin = event_loop.now();
    while event_loop.events().is_empty() {
        event_loop.poll(None).unwrap();
    }
    let rests = 2 * LoopConfig::default().back_off;
    assert!(event_loop.now() >= begin + rests);
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::Stream(_)));
}

#[test]
fn a_listener_paused_while_it_rests_stays_silent_after_its_rest() {
    let world = World::with_faults(1, Faults::calm());
    let (mut event_loop, id) = listening(&world, LoopConfig::default());
    let _client = world.connect(addr()).unwrap();
    world.fail_accepts(1, 24);
    event_loop.poll(None).unwrap();
    // What it sheds, it sheds: here nobody is left after it.
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::BackedOff));
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::BackedOff));
    event_loop.pause(id);
    let _next = world.connect(addr()).unwrap();
    let until = event_loop.now() + Duration::from_secs(1);
    while event_loop.now() < until {
        event_loop.poll(Some(until)).unwrap();
        assert_eq!(event_loop.events(), []);
    }
    event_loop.resume(id);
    event_loop
        .poll(Some(event_loop.now() + Duration::from_secs(1)))
        .unwrap();
    assert_eq!(event_loop.events(), [Event::Listener { id }]);
}

#[test]
fn what_was_not_read_turns_a_close_into_a_reset() {
    let world = World::with_faults(1, Faults::calm());
    let (mut event_loop, id) = listening(&world, LoopConfig::default());
    for is_read in [true, false] {
        let mut client = world.connect(addr()).unwrap();
        client.send(b"request").unwrap();
        event_loop.poll(None).unwrap();
        let Accept::Stream(mut stream) = event_loop.accept(id).unwrap() else {
            panic!("somebody waits");
        };
        world.settle();
        if is_read {
            assert_eq!(stream.read(&mut [0; 64]).unwrap(), 7);
        }
        drop(stream);
        world.settle();
        let end = client.receive(&mut Vec::new());
        assert_eq!(end.is_ok(), is_read, "{end:?}");
    }
}

#[test]
fn an_answer_to_a_client_that_is_gone_is_answered_by_a_reset() {
    let world = World::with_faults(1, Faults::calm());
    let (mut event_loop, id) = listening(&world, LoopConfig::default());
    let client = world.connect(addr()).unwrap();
    event_loop.poll(None).unwrap();
    let Accept::Stream(mut stream) = event_loop.accept(id).unwrap() else {
        panic!("somebody waits");
    };
    client.close();
    world.settle();
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(stream.write(b"answer").unwrap(), 6);
    world.settle();
    let error = stream.write(b"more").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let error = stream.write(b"more").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    assert!(stream.shutdown(std::net::Shutdown::Write).is_err());
    drop(stream);
    assert_eq!(world.connections(), 0);
}

#[test]
fn loops_of_one_world_take_turns_under_a_clock_that_stands_still() {
    let world = World::with_faults(3, Faults::calm());
    world.set_clock(Clock::Manual);
    let mut servers: Vec<_> = (0..3)
        .map(|_| Echo::new(listening(&world, LoopConfig::default()).0, 64))
        .collect();
    let mut clients: Vec<_> = (0..30).map(|_| world.connect(addr()).unwrap()).collect();
    for client in &mut clients {
        client.send(b"hello").unwrap();
    }
    let begin = world.now();
    let mut done = 0;
    let mut echoes = vec![Vec::new(); clients.len()];
    while done < clients.len() {
        for server in &mut servers {
            server.turn(Some(begin + Duration::from_secs(60)));
        }
        for (client, echo) in clients.iter_mut().zip(&mut echoes) {
            client.receive(echo).unwrap();
        }
        done = echoes.iter().filter(|echo| **echo == b"hello").count();
    }
    assert!(servers.iter().all(|server| server.accepted > 0));
    assert_eq!(world.now(), begin);
    world.advance(Duration::from_secs(60));
    servers[0].turn(Some(begin));
    assert_eq!(servers[0].event_loop.now(), begin + Duration::from_secs(60));
}

#[test]
fn both_ends_of_a_connection_can_be_watched() {
    for seed in seeds(SEEDS) {
        let world = World::new(seed);
        let (event_loop, _) = listening(&world, LoopConfig::default());
        let mut server = Echo::new(event_loop, 64);
        let mut near = EventLoop::with_platform(world.platform()).unwrap();
        let mut stream = world.connect(addr()).unwrap().into_stream();
        near.register(&mut stream, 9).unwrap();
        let mut sent = 0;
        let mut echo = Vec::new();
        let message = [0x5a; 3_000];
        while echo.len() < message.len() {
            server.turn(Some(world.now()));
            near.poll(Some(world.now())).unwrap();
            if let Ok(len) = stream.write(&message[sent..]) {
                sent += len;
            }
            let mut buf = [0; 512];
            if let Ok(len) = stream.read(&mut buf) {
                echo.extend_from_slice(&buf[..len]);
            }
        }
        assert_eq!(echo, message);
    }
}

#[test]
fn a_world_in_which_nothing_can_happen_is_woken_by_another_thread() {
    let world = World::new(4);
    let (mut event_loop, _) = listening(&world, LoopConfig::default());
    let mut mailbox = event_loop.mailbox().unwrap();
    let sender = mailbox.sender();
    let mut out = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(move || sender.send(5).unwrap());
        while out.is_empty() {
            event_loop.poll(None).unwrap();
            mailbox.drain(&mut out);
        }
    });
    assert_eq!(out, [5]);
    event_loop.waker().wake();
    event_loop.poll(None).unwrap();
}

#[test]
fn a_configuration_that_makes_no_sense_is_refused() {
    let world = World::new(6);
    let with = |accepts_per_turn, back_off| {
        let config = LoopConfig {
            accepts_per_turn,
            back_off,
            ..LoopConfig::default()
        };
        EventLoop::with_config(world.platform(), config).map_err(|error| error.kind())
    };
    let hour = Duration::from_secs(3_600);
    let nano = Duration::from_nanos(1);
    assert!(with(1, nano).is_ok());
    assert!(with(1, hour).is_ok());
    assert_eq!(with(0, nano).err(), Some(ErrorKind::InvalidInput));
    assert_eq!(with(1, Duration::ZERO).err(), Some(ErrorKind::InvalidInput));
    assert_eq!(with(1, hour + nano).err(), Some(ErrorKind::InvalidInput));
}

#[test]
#[should_panic(expected = "the highest tokens are the loop's own")]
fn a_token_of_the_loops_own_is_refused() {
    let world = World::with_faults(7, Faults::calm());
    let (mut event_loop, _) = listening(&world, LoopConfig::default());
    let mut stream = world.connect(addr()).unwrap().into_stream();
    let _ = event_loop.register(&mut stream, pumice_event_loop::TOKEN_MAX + 1);
}

#[test]
fn nobody_answers_where_nobody_listens() {
    let world = World::new(5);
    let error = world.connect(addr()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let listener = world.listener(addr());
    assert_eq!(listener.local_addr(), addr());
    let mut client = world.connect(addr()).unwrap();
    assert!(client.local_addr().ip().is_ipv4());
    drop(listener);
    world.settle();
    assert!(client.receive(&mut Vec::new()).is_err());
}

#[test]
fn nobody_gets_the_answer_of_another_however_fast_slots_change_hands() {
    let mut strays = 0;
    for seed in seeds(SEEDS) {
        let world = World::new(seed);
        let (event_loop, _) = listening(&world, LoopConfig::default());
        let mut server = Echo::new(event_loop, 8);
        let mut rng = Rng::new(seed ^ 0x5eed);
        // Each client says who it is, in one piece or two, and goes when it has its answer, or before, or rudely.
        let mut clients: Vec<(pumice_event_loop::sim::Client, u64, Vec<u8>)> = Vec::new();
        let mut served = 0;
        for number in 0..120 {
            if clients.len() < 6 {
                let mut client = world.connect(addr()).unwrap();
                let name = rng.next_u64();
                let cut = rng.below(9);
                client.send(&name.to_le_bytes()[..cut]).unwrap();
                client.send(&name.to_le_bytes()[cut..]).unwrap();
                clients.push((client, name, Vec::new()));
            }
            server.turn(Some(world.now() + Duration::from_millis(1)));
            for (client, name, answer) in &mut clients {
                client.receive(answer).unwrap();
                assert!(name.to_le_bytes().starts_with(answer), "turn {number}");
            }
            let at = rng.below(clients.len());
            match rng.below(6) {
                0 => clients.swap_remove(at).0.reset(),
                1 => clients.swap_remove(at).0.close(),
                _ if clients[at].2.len() == 8 => {
                    served += 1;
                    clients.swap_remove(at).0.close();
                }
                _ => {}
            }
        }
        assert!(served > 0);
        strays += server.strays;
    }
    assert!(strays > 0, "no stale event in {SEEDS} worlds");
}
