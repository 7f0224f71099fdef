//! What only real sockets have: options, addresses, and the system's own ways to connect.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use pumice_event_loop::{
    Accept, Event, EventLoop, ListenConfig, Mio, MioStream, Peer, Platform, Ready, Stream, bind,
    bind_workers,
};
use socket2::SockRef;

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

fn is_close_on_exec(socket: impl std::os::fd::AsFd) -> bool {
    let flags = rustix::io::fcntl_getfd(socket).unwrap();
    flags.contains(rustix::io::FdFlags::CLOEXEC)
}

#[test]
fn an_accepted_stream_has_the_options_that_were_asked_for() {
    let config = ListenConfig {
        keepalive: Some((Duration::from_secs(77), Duration::from_secs(11))),
        ..ListenConfig::default()
    };
    let listener = bind(local(0), &config).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut event_loop = EventLoop::new().unwrap();
    event_loop.listen(Mio::listener(listener).unwrap()).unwrap();
    let client = TcpStream::connect(addr).unwrap();
    let stream = accept(&mut event_loop);

    let socket = SockRef::from(&stream);
    assert!(socket.nonblocking().unwrap());
    assert!(is_close_on_exec(&stream));
    assert!(socket.tcp_nodelay().unwrap());
    assert!(socket.keepalive().unwrap());
    assert_eq!(socket.tcp_keepalive_time().unwrap().as_secs(), 77);
    assert_eq!(socket.tcp_keepalive_interval().unwrap().as_secs(), 11);
    assert_eq!(stream.peer(), Peer::Tcp(client.local_addr().unwrap()));
    assert_eq!(stream.local_addr(), Some(addr));

    stream.set_nodelay(false).unwrap();
    stream
        .set_keepalive(Duration::from_secs(33), Duration::from_secs(3))
        .unwrap();
    assert!(!socket.tcp_nodelay().unwrap());
    assert_eq!(socket.tcp_keepalive_time().unwrap().as_secs(), 33);
    assert_eq!(socket.tcp_keepalive_interval().unwrap().as_secs(), 3);
}

#[test]
fn an_inherited_listener_is_made_fit_for_the_loop() {
    // As from an inetd or systemd that has set nothing: blocking, kept over exec, small writes held back.
    let listener = TcpListener::bind(local(0)).unwrap();
    SockRef::from(&listener).set_cloexec(false).unwrap();
    let addr = listener.local_addr().unwrap();
    let listener = Mio::listener(listener).unwrap();
    assert!(SockRef::from(&listener).nonblocking().unwrap());
    assert!(is_close_on_exec(&listener));
    assert_eq!(listener.local_addr(), Some(addr));

    let mut event_loop = EventLoop::new().unwrap();
    event_loop.listen(listener).unwrap();
    let _client = TcpStream::connect(addr).unwrap();
    let stream = accept(&mut event_loop);
    assert!(SockRef::from(&stream).nonblocking().unwrap());
    assert!(is_close_on_exec(&stream));
    assert!(SockRef::from(&stream).tcp_nodelay().unwrap());
}

#[test]
fn an_inherited_listener_takes_the_configuration_too() {
    let listener = TcpListener::bind(local(0)).unwrap();
    let addr = listener.local_addr().unwrap();
    let config = ListenConfig {
        nodelay: false,
        keepalive: Some((Duration::from_secs(50), Duration::from_secs(5))),
        ..ListenConfig::default()
    };
    let mut event_loop = EventLoop::new().unwrap();
    event_loop
        .listen(Mio::listener_with(listener, &config).unwrap())
        .unwrap();
    let _client = TcpStream::connect(addr).unwrap();
    let stream = accept(&mut event_loop);
    let socket = SockRef::from(&stream);
    assert!(!socket.tcp_nodelay().unwrap());
    assert_eq!(socket.tcp_keepalive_time().unwrap().as_secs(), 50);
}

#[test]
fn both_families_come_in_by_one_listener_unless_it_is_told_otherwise() {
    let Ok(listener) = bind("[::]:0".parse().unwrap(), &ListenConfig::default()) else {
        // A host without IPv6: what it says is tested beside `bind`.
        return;
    };
    assert!(!SockRef::from(&listener).only_v6().unwrap());
    let port = listener.local_addr().unwrap().port();
    let mut event_loop = EventLoop::new().unwrap();
    event_loop.listen(Mio::listener(listener).unwrap()).unwrap();
    let v4 = TcpStream::connect(local(port)).unwrap();
    let stream = accept(&mut event_loop);
    assert_eq!(stream.peer(), Peer::Tcp(v4.local_addr().unwrap()));
    assert!(stream.peer().addr().unwrap().is_ipv4());
    let v6 = TcpStream::connect(("::1", port)).unwrap();
    let stream = accept(&mut event_loop);
    assert_eq!(stream.peer(), Peer::Tcp(v6.local_addr().unwrap()));
}

#[test]
fn one_family_each_can_share_a_port_and_both_in_one_cannot() {
    let alone = ListenConfig {
        only_v6: Some(true),
        ..ListenConfig::default()
    };
    let Ok(v6) = bind("[::]:0".parse().unwrap(), &alone) else {
        return;
    };
    assert!(SockRef::from(&v6).only_v6().unwrap());
    let port = v6.local_addr().unwrap().port();
    assert!(TcpStream::connect(local(port)).is_err());
    let v4 = bind(SocketAddr::from(([0, 0, 0, 0], port)), &alone).unwrap();
    drop(v6);

    let any = SocketAddr::new("::".parse().unwrap(), port);
    let error = bind(any, &ListenConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot listen on [::]:{port}: ")),
        "{text}"
    );
    drop(v4);
}

#[test]
fn an_address_in_use_is_named() {
    let taken = bind(local(0), &ListenConfig::default()).unwrap();
    let addr = taken.local_addr().unwrap();
    for error in [
        bind(addr, &ListenConfig::default()).unwrap_err(),
        bind_workers(addr, &ListenConfig::default(), 3).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&addr.to_string()), "{error}");
    }
}

#[test]
fn a_restart_is_not_held_up_by_old_connections() {
    let listener = bind(local(0), &ListenConfig::default()).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut client = TcpStream::connect(addr).unwrap();
    let (stream, _) = loop {
        match listener.accept() {
            Ok(accepted) => break accepted,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    };
    // Whoever closes first keeps the address for minutes: here the server.
    drop(stream);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    drop(client);
    drop(listener);
    bind(addr, &ListenConfig::default()).unwrap();
}

#[test]
fn newcomers_are_shared_out_evenly_among_workers() {
    const WORKERS: usize = 4;
    let listeners = bind_workers(local(0), &ListenConfig::default(), WORKERS).unwrap();
    assert_eq!(listeners.len(), WORKERS);
    let addr = listeners[0].local_addr().unwrap();
    let mut counts = [0; WORKERS];
    let mut loops: Vec<_> = listeners
        .into_iter()
        .map(|listener| {
            assert!(SockRef::from(&listener).reuse_port().unwrap());
            assert_eq!(listener.local_addr().unwrap(), addr);
            let mut event_loop = EventLoop::new().unwrap();
            let id = event_loop.listen(Mio::listener(listener).unwrap()).unwrap();
            (event_loop, id)
        })
        .collect();
    for _ in 0..20 {
        let clients: Vec<_> = (0..50).map(|_| TcpStream::connect(addr).unwrap()).collect();
        let before: usize = counts.iter().sum();
        while counts.iter().sum::<usize>() < before + clients.len() {
            for ((event_loop, id), count) in loops.iter_mut().zip(&mut counts) {
                event_loop.poll(Some(event_loop.now())).unwrap();
                while let Accept::Stream(_) = event_loop.accept(*id).unwrap() {
                    *count += 1;
                }
            }
        }
    }
    let most = counts.iter().max().unwrap();
    let least = counts.iter().min().unwrap();
    assert!(*most < 2 * least, "{counts:?}");
}

#[test]
fn one_worker_has_its_port_for_itself() {
    let listeners = bind_workers(local(0), &ListenConfig::default(), 1).unwrap();
    assert!(!SockRef::from(&listeners[0]).reuse_port().unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn a_deferred_newcomer_comes_with_what_it_has_to_say() {
    let config = ListenConfig {
        defer_accept: Some(Duration::from_millis(2_500)),
        ..ListenConfig::default()
    };
    let listener = bind(local(0), &config).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut event_loop = EventLoop::new().unwrap();
    let id = event_loop.listen(Mio::listener(listener).unwrap()).unwrap();
    let mut client = TcpStream::connect(addr).unwrap();
    // Connected for the client, and nothing the worker has to know of yet.
    event_loop
        .poll(Some(event_loop.now() + Duration::from_millis(20)))
        .unwrap();
    assert_eq!(event_loop.events(), []);
    assert!(matches!(event_loop.accept(id).unwrap(), Accept::Empty));

    client.write_all(b"request").unwrap();
    let mut stream = accept(&mut event_loop);
    let mut buf = [0; 16];
    assert_eq!(stream.read(&mut buf).unwrap(), 7);
    // An answer and a close, and the stream was never registered.
    assert_eq!(stream.write(b"answer").unwrap(), 6);
    drop(stream);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
}

#[test]
fn a_connect_is_told_by_an_event_whether_it_worked_or_not() {
    let listener = bind(local(0), &ListenConfig::default()).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut event_loop = EventLoop::new().unwrap();
    let mut stream = Mio::connect(addr).unwrap();
    event_loop.register(&mut stream, 1).unwrap();
    let ready = ready_of(&mut event_loop, 1, Ready::WRITABLE);
    assert!(!ready.is_error());
    assert_eq!(stream.write(b"hello").unwrap(), 5);

    drop(listener);
    let mut refused = Mio::connect(addr).unwrap();
    event_loop.register(&mut refused, 2).unwrap();
    ready_of(&mut event_loop, 2, Ready::READABLE);
    let error = refused.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

fn ready_of(event_loop: &mut EventLoop<Mio>, token: u64, wanted: Ready) -> Ready {
    let mut sum = Ready::EMPTY;
    while !sum.contains(wanted) {
        event_loop.poll(None).unwrap();
        for event in event_loop.events() {
            if let Event::Stream { token: this, ready } = event
                && *this == token
            {
                sum.insert(*ready);
            }
        }
    }
    sum
}

#[test]
fn taken_over_streams_and_other_sources_are_watched_too() {
    let mut event_loop = EventLoop::new().unwrap();
    let listener = TcpListener::bind(local(0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let mut stream = Mio::stream(client).unwrap();
    assert!(SockRef::from(&stream).nonblocking().unwrap());
    event_loop.register(&mut stream, 1).unwrap();
    server.write_all(b"x").unwrap();
    ready_of(&mut event_loop, 1, Ready::READABLE);

    let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut stream = Mio::unix_stream(near).unwrap();
    assert_eq!(stream.peer(), Peer::Unix);
    event_loop.register(&mut stream, 2).unwrap();
    far.write_all(b"x").unwrap();
    ready_of(&mut event_loop, 2, Ready::READABLE);
    stream.shutdown(Shutdown::Both).unwrap();
    assert_eq!(far.read(&mut [0]).unwrap(), 0);

    let (mut near, mut far) = mio::net::UnixDatagram::pair().unwrap();
    event_loop.register_source(&mut near, 3).unwrap();
    far.send(b"x").unwrap();
    ready_of(&mut event_loop, 3, Ready::READABLE);
    event_loop.deregister_source(&mut near).unwrap();
    event_loop.register_source(&mut far, 4).unwrap();
    ready_of(&mut event_loop, 4, Ready::WRITABLE);
}

#[test]
fn a_stream_set_to_reset_is_not_finished_in_order() {
    let listener = bind(local(0), &ListenConfig::default()).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut event_loop = EventLoop::new().unwrap();
    event_loop.listen(Mio::listener(listener).unwrap()).unwrap();
    let mut client = TcpStream::connect(addr).unwrap();
    let stream = accept(&mut event_loop);
    stream.set_reset_on_drop().unwrap();
    drop(stream);
    let error = client.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn more_listeners_than_a_loop_can_have_are_refused() {
    let mut event_loop = EventLoop::new().unwrap();
    let listener = TcpListener::bind(local(0)).unwrap();
    let another = || Mio::listener(listener.try_clone().unwrap()).unwrap();
    let ids: Vec<_> = (0..pumice_event_loop::LISTENERS_MAX)
        .map(|_| event_loop.listen(another()).unwrap())
        .collect();
    let error = event_loop.listen(another()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    event_loop.close_listener(ids[5]);
    let next = event_loop.listen(another()).unwrap();
    assert!(!ids.contains(&next));
}

#[test]
fn a_loop_can_be_moved_to_its_thread_and_its_waker_outlives_it() {
    fn assert_send<T: Send>(value: T) -> T {
        value
    }
    let event_loop = assert_send(EventLoop::new().unwrap());
    let waker = event_loop.platform().waker();
    drop(event_loop);
    pumice_event_loop::Wake::wake(&waker);
}
