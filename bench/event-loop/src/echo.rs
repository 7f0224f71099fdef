//! An echo server as small as it gets, on the event loop and on bare mio: registered once, both interests, and reads
//! that stop when they are short.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use mio::{Interest, Token};
use pumice_event_loop::{Event, EventLoop, Mio, MioStream};

/// Requests per connection and measurement.
const TURNS: usize = 400;
const MESSAGE: [u8; 64] = [b'm'; 64];

pub trait Server {
    /// Waits once and echoes what has come; tells how many bytes.
    fn turn(&mut self) -> usize;
    fn clients(&mut self) -> &mut [TcpStream];
}

/// Nanoseconds of processor time that an event costs the server.
pub fn measure(server: &mut impl Server) -> f64 {
    let mut nanos = 0.0;
    let mut buf = [0; MESSAGE.len()];
    let conns = server.clients().len();
    for _ in 0..TURNS {
        for client in server.clients() {
            client.write_all(&MESSAGE).unwrap();
        }
        let begin = crate::processor_time();
        let mut left = conns * MESSAGE.len();
        while left > 0 {
            left -= server.turn();
        }
        nanos += (crate::processor_time() - begin).as_nanos() as f64;
        for client in server.clients() {
            client.read_exact(&mut buf).unwrap();
        }
    }
    nanos / (TURNS * conns) as f64
}

fn pairs(conns: usize) -> Vec<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let pair = |_| {
        let client = TcpStream::connect(addr).unwrap();
        client.set_nodelay(true).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_nodelay(true).unwrap();
        server.set_nonblocking(true).unwrap();
        (client, server)
    };
    (0..conns).map(pair).collect()
}

/// Reads until a read is short, and sends each piece back.
fn echo(stream: &mut (impl Read + Write), buf: &mut [u8]) -> usize {
    let mut total = 0;
    loop {
        match stream.read(buf) {
            Ok(len) => {
                total += len;
                assert_eq!(stream.write(&buf[..len]).unwrap(), len);
                if len < buf.len() {
                    return total;
                }
            }
            Err(_) => return total,
        }
    }
}

pub struct Ours {
    event_loop: EventLoop,
    events: Vec<Event>,
    streams: Vec<MioStream>,
    clients: Vec<TcpStream>,
    buf: [u8; 4_096],
}

impl Ours {
    pub fn new(conns: usize) -> Self {
        let mut event_loop = EventLoop::new().unwrap();
        let (clients, servers): (Vec<_>, Vec<_>) = pairs(conns).into_iter().unzip();
        let streams = servers.into_iter().enumerate().map(|(token, stream)| {
            let mut stream = Mio::stream(stream).unwrap();
            event_loop.register(&mut stream, token as u64).unwrap();
            stream
        });
        Self {
            streams: streams.collect(),
            event_loop,
            events: Vec::new(),
            clients,
            buf: [0; 4_096],
        }
    }
}

impl Server for Ours {
    fn turn(&mut self) -> usize {
        self.event_loop.poll(None).unwrap();
        self.event_loop.take_events(&mut self.events);
        let mut total = 0;
        for event in &self.events {
            if let Event::Stream { token, ready } = *event
                && ready.is_readable()
                && let Some(stream) = self.streams.get_mut(token as usize)
            {
                total += echo(stream, &mut self.buf);
            }
        }
        total
    }

    fn clients(&mut self) -> &mut [TcpStream] {
        &mut self.clients
    }
}

pub struct Bare {
    poll: mio::Poll,
    events: mio::Events,
    streams: Vec<mio::net::TcpStream>,
    clients: Vec<TcpStream>,
    buf: [u8; 4_096],
}

impl Bare {
    pub fn new(conns: usize) -> Self {
        let poll = mio::Poll::new().unwrap();
        let (clients, servers): (Vec<_>, Vec<_>) = pairs(conns).into_iter().unzip();
        let streams = servers.into_iter().enumerate().map(|(token, stream)| {
            let mut stream = mio::net::TcpStream::from_std(stream);
            let both = Interest::READABLE | Interest::WRITABLE;
            poll.registry()
                .register(&mut stream, Token(token), both)
                .unwrap();
            stream
        });
        Self {
            streams: streams.collect(),
            poll,
            events: mio::Events::with_capacity(1_024),
            clients,
            buf: [0; 4_096],
        }
    }
}

impl Server for Bare {
    fn turn(&mut self) -> usize {
        self.poll.poll(&mut self.events, None).unwrap();
        let mut total = 0;
        for event in &self.events {
            if event.is_readable()
                && let Some(stream) = self.streams.get_mut(event.token().0)
            {
                total += echo(stream, &mut self.buf);
            }
        }
        total
    }

    fn clients(&mut self) -> &mut [TcpStream] {
        &mut self.clients
    }
}
