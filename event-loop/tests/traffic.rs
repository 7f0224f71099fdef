//! Edges of real sockets under traffic: bursts, buffers that are full, and batches whose tenants change.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use pumice_event_loop::{
    Accept, BACKLOG_MIN, Event, EventLoop, ListenConfig, Mio, MioStream, bind,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::SockRef;

use common::{Client, Echo, MioRig, Rig, token_of};

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Accepts one newcomer of a loop that has one listener.
fn accept(event_loop: &mut EventLoop<Mio>) -> MioStream {
    loop {
        event_loop.poll(None).unwrap();
        for event in event_loop.events().to_vec() {
            if let Event::Listener { id } = event
                && let Accept::Stream(stream) = event_loop.accept(id).unwrap()
            {
                return stream;
            }
        }
    }
}

/// Lets this process have as many descriptors as it may, and tells how many that are.
fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    limit.maximum.unwrap_or(u64::MAX)
}

#[test]
fn five_hundred_and_twelve_at_once_are_served_by_a_budget_of_sixteen() {
    assert!(raise_descriptors() > 1_200, "too few descriptors to try");
    let mut rig = MioRig::new();
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut server = Echo::new(event_loop, 64);
    // All of them connect before the loop runs for the first time: for the edge-triggered listener one event.
    let mut clients: Vec<_> = (0..512u32)
        .map(|number| {
            let mut client = rig.connect();
            client.send(&number.to_le_bytes());
            (client, Vec::new())
        })
        .collect();
    let mut turns = 0;
    while !clients.iter().all(|(_, echo)| echo.len() == 4) {
        turns += 1;
        assert!(turns < 10_000, "{} of 512 accepted", server.accepted);
        server.turn(Some(server.event_loop.now() + Duration::from_millis(50)));
        for (client, echo) in &mut clients {
            if echo.len() < 4 {
                client.receive(echo);
            }
        }
    }
    for (number, (_, echo)) in (0u32..).zip(&clients) {
        assert_eq!(*echo, number.to_le_bytes());
    }
    assert!(server.accepts_in_turn <= 16);
}

#[test]
fn a_burst_waits_in_the_queue_until_it_is_accepted() {
    let system_max = std::fs::read_to_string("/proc/sys/net/core/somaxconn")
        .map_or(BACKLOG_MIN, |text| text.trim().parse().unwrap());
    let burst = system_max.min(300);
    let config = ListenConfig {
        backlog: 1,
        ..ListenConfig::default()
    };
    let listener = bind(local(0), &config).unwrap();
    let addr = listener.local_addr().unwrap();
    // Each of these has been answered by the system, though nobody accepts: 128 is what std would allow.
    let clients: Vec<_> = (0..burst)
        .map(|_| TcpStream::connect_timeout(&addr, Duration::from_millis(900)).unwrap())
        .collect();
    assert_eq!(clients.len(), burst as usize);
}

#[test]
fn an_event_of_the_same_batch_does_not_reach_the_slots_next_tenant() {
    let listener = bind(local(0), &ListenConfig::default()).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut event_loop = EventLoop::new().unwrap();
    event_loop.listen(Mio::listener(listener).unwrap()).unwrap();

    let mut clients = Vec::new();
    let mut slots = Vec::new();
    for index in 0..2 {
        clients.push(TcpStream::connect(addr).unwrap());
        let mut stream = accept(&mut event_loop);
        event_loop
            .register(&mut stream, token_of(index, 1))
            .unwrap();
        slots.push(stream);
    }
    let _newcomer = TcpStream::connect(addr).unwrap();
    let mut fresh = Some(accept(&mut event_loop));
    for client in &mut clients {
        client.write_all(b"hello").unwrap();
    }
    // One batch says that both are readable.
    let mut batch = Vec::new();
    while batch.len() < 2 {
        event_loop
            .poll(Some(event_loop.now() + Duration::from_millis(5)))
            .unwrap();
        batch = event_loop.events().to_vec();
        batch.retain(|event| matches!(event, Event::Stream { ready, .. } if ready.is_readable()));
        if batch.len() == 1 {
            // Not yet one batch: once more.
            for client in &mut clients {
                client.write_all(b"hello").unwrap();
            }
        }
    }
    // The first event's consequence is that the other connection goes, and a newcomer gets its slot.
    let Event::Stream { token: first, .. } = batch[0] else {
        unreachable!("only streams are in the batch");
    };
    let victim = if first == token_of(0, 1) { 1 } else { 0 };
    let mut stream = fresh.take().unwrap();
    event_loop
        .register(&mut stream, token_of(victim, 2))
        .unwrap();
    let mut old = std::mem::replace(&mut slots[victim], stream);
    event_loop.deregister(&mut old).unwrap();
    drop(old);
    let Event::Stream { token: second, .. } = batch[1] else {
        unreachable!("only streams are in the batch");
    };
    assert_eq!(second, token_of(victim, 1), "the event says whom it is for");
    assert_ne!(second, token_of(victim, 2), "and not who is there now");
    // Neither does a later batch tell of what the old tenant got.
    event_loop
        .poll(Some(event_loop.now() + Duration::from_millis(5)))
        .unwrap();
    for event in event_loop.events() {
        if let Event::Stream { token, ready } = event {
            assert_ne!(*token, token_of(victim, 1));
            assert!(*token != token_of(victim, 2) || !ready.is_readable());
        }
    }
}

#[test]
fn a_mebibyte_in_one_go_is_read_by_four_kibibytes() {
    let mut rig = MioRig::new();
    let mut event_loop = rig.event_loop();
    event_loop.listen(rig.listener()).unwrap();
    let mut server = Echo::new(event_loop, 4_096);
    let bytes: Vec<u8> = (0..1_048_576u32).map(|at| (at / 7) as u8).collect();
    let mut client = rig.connect();
    client.send(&bytes);
    let mut echo = Vec::new();
    let mut turns = 0;
    while echo.len() < bytes.len() {
        turns += 1;
        assert!(turns < 100_000, "{} bytes came back", echo.len());
        server.turn(Some(server.event_loop.now() + Duration::from_millis(50)));
        client.receive(&mut echo);
    }
    assert!(echo == bytes);
}

#[test]
fn two_thousand_times_a_reader_starts_at_the_moment_the_buffer_is_full() {
    // A Unix socket with a small buffer: TCP's would be full as often, but wait for delayed acknowledgements.
    let (near, mut client) = UnixStream::pair().unwrap();
    SockRef::from(&near).set_send_buffer_size(16_384).unwrap();
    client.set_nonblocking(true).unwrap();
    let mut event_loop = EventLoop::new().unwrap();
    let mut stream = Mio::unix_stream(near).unwrap();
    event_loop.register(&mut stream, 3).unwrap();
    let answer = [b'a'; 65_536];
    let mut buf = [0; 65_536];
    let mut owed = 0;
    for run in 0..2_000 {
        let begin = Instant::now();
        loop {
            match stream.write(&answer) {
                Ok(len) => owed += len,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        // The client makes room between the refusal and the poll: the edge must not be lost.
        let mut is_writable = false;
        while !is_writable {
            while let Ok(len) = client.read(&mut buf) {
                owed -= len;
            }
            assert!(begin.elapsed() < Duration::from_secs(5), "run {run} hangs");
            let until = event_loop.now() + Duration::from_millis(5);
            event_loop.poll(Some(until)).unwrap();
            is_writable = event_loop.events().iter().any(
                |event| matches!(event, Event::Stream { token: 3, ready } if ready.is_writable()),
            );
        }
    }
    client.set_nonblocking(false).unwrap();
    client.read_exact(&mut vec![0; owed]).unwrap();
}
