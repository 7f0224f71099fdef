//! The platform as a 32-bit target has it, and as this one.

use std::net::TcpListener as StdListener;

use super::*;
use crate::{Accept, Event, EventLoop, TOKEN_MAX};

/// What [`Names::for_target`] chooses where mio's tokens have 32 bits.
fn narrow() -> Mio {
    let mut platform = Mio::new().unwrap();
    platform.names = Names::ByDescriptor(Vec::new());
    platform
}

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

/// The tokens of the next batch that has any.
fn tokens(event_loop: &mut EventLoop<Mio>) -> Vec<u64> {
    loop {
        event_loop.poll(None).unwrap();
        let tokens: Vec<_> = event_loop
            .events()
            .iter()
            .filter_map(|event| match event {
                Event::Stream { token, .. } => Some(*token),
                Event::Listener { .. } => None,
            })
            .collect();
        if !tokens.is_empty() {
            return tokens;
        }
    }
}

#[test]
fn where_tokens_are_narrow_connections_and_listeners_are_still_told_apart() {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let mut event_loop = EventLoop::with_platform(narrow()).unwrap();
    event_loop.listen(Mio::listener(listener).unwrap()).unwrap();
    let mut mailbox = event_loop.mailbox().unwrap();

    // They differ in their upper halves alone, which a cut would lose.
    for token in [7, 1 << 32 | 7, 2 << 32 | 7, TOKEN_MAX] {
        let mut client = std::net::TcpStream::connect(addr).unwrap();
        let mut stream = accept(&mut event_loop);
        event_loop.register(&mut stream, token).unwrap();
        assert_eq!(tokens(&mut event_loop), [token]);
        client.write_all(b"x").unwrap();
        assert_eq!(tokens(&mut event_loop), [token]);
        // Every second one is dropped without being deregistered: the next one gets its descriptor's number.
        if token.is_multiple_of(2) {
            event_loop.deregister(&mut stream).unwrap();
        }
    }
    mailbox.sender().send(1).unwrap();
    let mut out = Vec::new();
    while out.is_empty() {
        event_loop.poll(None).unwrap();
        mailbox.drain(&mut out);
    }
}

#[test]
fn where_tokens_are_narrow_an_event_keeps_the_token_of_its_time() {
    let mut event_loop = EventLoop::with_platform(narrow()).unwrap();
    let (near, mut far) = unix::UnixStream::pair().unwrap();
    let mut stream = Mio::unix_stream(near).unwrap();
    event_loop.register(&mut stream, 1 << 32).unwrap();
    far.write_all(b"x").unwrap();
    event_loop.poll(None).unwrap();
    // The same descriptor under another token, before the batch is handled.
    event_loop.deregister(&mut stream).unwrap();
    event_loop.register(&mut stream, 2 << 32).unwrap();
    let [Event::Stream { token, .. }] = *event_loop.events() else {
        panic!("{:?}", event_loop.events());
    };
    assert_eq!(token, 1 << 32);
    assert_eq!(tokens(&mut event_loop), [2 << 32]);
}

#[test]
fn this_target_hands_tokens_over_whole_if_it_can() {
    let is_whole = matches!(Names::for_target(), Names::Whole);
    assert_eq!(is_whole, cfg!(target_pointer_width = "64"));
}

#[test]
fn a_stream_costs_an_idle_connection_little() {
    // mio adds eight bytes in debug builds.
    let bytes = 40 + 8 * usize::from(cfg!(debug_assertions));
    assert!(
        size_of::<MioStream>() <= bytes,
        "{}",
        size_of::<MioStream>()
    );
}
