//! A process that has no descriptor left. Alone in its binary, since the limit is the whole process's.

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use pumice_event_loop::{EventLoop, ListenConfig, LoopConfig, Mio, bind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use common::Echo;

/// Time this process has been on a processor.
fn processor_time() -> Duration {
    let schedule = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = schedule
        .split(' ')
        .next()
        .and_then(|text| text.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[test]
fn without_descriptors_the_loop_rests_newcomers_are_told_and_the_others_are_served() {
    let back_off = Duration::from_millis(50);
    let config = LoopConfig {
        back_off,
        shed_answer: b"full".to_vec(),
        ..LoopConfig::default()
    };
    let listener = bind("127.0.0.1:0".parse().unwrap(), &ListenConfig::default()).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut event_loop = EventLoop::with_config(Mio::new().unwrap(), config).unwrap();
    let id = event_loop.listen(Mio::listener(listener).unwrap()).unwrap();
    let mut server = Echo::new(event_loop, 64);
    let mut old = TcpStream::connect(addr).unwrap();
    while server.accepted < 1 {
        server.turn(None);
    }

    // Clients that are to find nothing: they have their descriptors before the limit falls.
    let mut clients: Vec<_> = (0..40).map(|_| TcpStream::connect(addr).unwrap()).collect();
    let limit = getrlimit(Resource::Nofile);
    let low = Rlimit {
        current: Some(64),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, low).unwrap();
    let mut hoard = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        hoard.push(file);
    }

    // One turn is enough to send all of them away, at the price of one descriptor.
    server.turn(Some(server.event_loop.now() + Duration::from_secs(5)));
    for client in &mut clients {
        client
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "full");
    }
    let stats = server.event_loop.listener_stats(id).unwrap();
    assert_eq!(stats.shed, 40);
    assert_eq!(server.accepted, 1);

    // It holds, and newcomers keep coming: no spin, no flood, and who was connected is answered.
    drop(clients);
    while let Ok(file) = File::open("/dev/null") {
        hoard.push(file);
    }
    hoard.pop();
    let turns_before = server.turns;
    let on_processor = processor_time();
    let begin = Instant::now();
    let mut waits = Vec::new();
    old.set_nonblocking(true).unwrap();
    let mut rounds = 0;
    while begin.elapsed() < Duration::from_millis(600) {
        // Takes the last descriptor, so that the accept finds none.
        let newcomer = TcpStream::connect(addr);
        assert!(newcomer.is_ok(), "the client's own descriptor");
        rounds += 1;
        let sent = Instant::now();
        old.write_all(b"ping").unwrap();
        let mut echo = [0; 4];
        while old.read(&mut echo).is_err() {
            server.turn(Some(server.event_loop.now() + Duration::from_millis(10)));
        }
        waits.push(sent.elapsed());
        // Rests until its own deadline, whatever the newcomer does.
        let until = server.event_loop.now() + Duration::from_millis(20);
        while server.event_loop.now() < until {
            server.turn(Some(until));
        }
        drop(newcomer);
    }
    let turns = server.turns - turns_before;
    assert!(turns < rounds * 8 + 40, "{turns} turns in {rounds} rounds");
    waits.sort_unstable();
    let median = waits[waits.len() / 2];
    assert!(median < back_off, "connected clients wait {median:?}");
    let on_processor = processor_time() - on_processor;
    assert!(
        on_processor < begin.elapsed() / 2,
        "{on_processor:?} on the processor"
    );
    let stats = server.event_loop.listener_stats(id).unwrap();
    assert!(stats.back_offs >= 2, "{stats:?}");
    assert_eq!(server.accepted, 1);

    // Descriptors again: whoever comes is served within one back-off.
    drop(hoard);
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut next = TcpStream::connect(addr).unwrap();
    next.write_all(b"ping").unwrap();
    next.set_nonblocking(true).unwrap();
    let freed = Instant::now();
    let mut echo = [0; 4];
    while next.read(&mut echo).is_err() {
        server.turn(Some(server.event_loop.now() + Duration::from_millis(10)));
        assert!(freed.elapsed() < Duration::from_secs(5), "not served again");
    }
    assert_eq!(&echo, b"ping");
}
