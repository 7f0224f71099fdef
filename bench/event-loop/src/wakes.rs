//! Messages between threads that wait in a poll: through the mailbox, and through a mutex and mio's waker.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;
use pumice_event_loop::EventLoop;

const TRIPS: usize = 3_000;
const FLOOD: usize = 100_000;

/// Nanoseconds of a round trip between two loops on two threads.
pub fn ours() -> f64 {
    let mut near = EventLoop::new().unwrap();
    let mut far = EventLoop::new().unwrap();
    let mut near_mail = near.mailbox::<usize>().unwrap();
    let mut far_mail = far.mailbox::<usize>().unwrap();
    let to_near = near_mail.sender();
    let to_far = far_mail.sender();
    let mate = thread::spawn(move || {
        let mut out = Vec::new();
        let mut count = 0;
        while count < TRIPS {
            far.poll(None).unwrap();
            far_mail.drain(&mut out);
            for message in out.drain(..) {
                to_near.send(message).unwrap();
                count += 1;
            }
        }
    });
    let begin = Instant::now();
    let mut out = Vec::new();
    for trip in 0..TRIPS {
        to_far.send(trip).unwrap();
        while out.is_empty() {
            near.poll(None).unwrap();
            near_mail.drain(&mut out);
        }
        assert_eq!(out, [trip]);
        out.clear();
    }
    let nanos = begin.elapsed().as_nanos() as f64;
    mate.join().unwrap();
    nanos / TRIPS as f64
}

/// What one would write at first: each send wakes.
struct Bare {
    poll: mio::Poll,
    events: mio::Events,
    line: Line,
}

#[derive(Clone)]
struct Line {
    queue: Arc<Mutex<Vec<usize>>>,
    waker: Arc<mio::Waker>,
}

impl Bare {
    fn new() -> Self {
        let poll = mio::Poll::new().unwrap();
        let waker = mio::Waker::new(poll.registry(), mio::Token(0)).unwrap();
        Self {
            events: mio::Events::with_capacity(1_024),
            line: Line {
                queue: Arc::default(),
                waker: Arc::new(waker),
            },
            poll,
        }
    }

    fn wait(&mut self, out: &mut Vec<usize>) {
        self.poll.poll(&mut self.events, None).unwrap();
        out.append(&mut self.line.queue.lock());
    }
}

impl Line {
    fn send(&self, message: usize) {
        self.queue.lock().push(message);
        self.waker.wake().unwrap();
    }
}

/// The same on bare mio.
pub fn bare() -> f64 {
    let mut near = Bare::new();
    let mut far = Bare::new();
    let to_near = near.line.clone();
    let to_far = far.line.clone();
    let mate = thread::spawn(move || {
        let mut out = Vec::new();
        let mut count = 0;
        while count < TRIPS {
            far.wait(&mut out);
            for message in out.drain(..) {
                to_near.send(message);
                count += 1;
            }
        }
    });
    let begin = Instant::now();
    let mut out = Vec::new();
    for trip in 0..TRIPS {
        to_far.send(trip);
        while out.is_empty() {
            near.wait(&mut out);
        }
        assert_eq!(out, [trip]);
        out.clear();
    }
    let nanos = begin.elapsed().as_nanos() as f64;
    mate.join().unwrap();
    nanos / TRIPS as f64
}

/// Nanoseconds per message when two threads send as fast as they can.
pub fn ours_flood() -> f64 {
    let mut event_loop = EventLoop::new().unwrap();
    let mut mail = event_loop.mailbox::<usize>().unwrap();
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..2 {
            let sender = mail.sender();
            scope.spawn(move || {
                for message in 0..FLOOD {
                    sender.send(message).unwrap();
                }
            });
        }
        let mut out = Vec::new();
        let mut count = 0;
        while count < 2 * FLOOD {
            event_loop.poll(None).unwrap();
            mail.drain(&mut out);
            count += out.len();
            out.clear();
        }
    });
    begin.elapsed().as_nanos() as f64 / (2 * FLOOD) as f64
}

/// The same on bare mio.
pub fn bare_flood() -> f64 {
    let mut bare = Bare::new();
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..2 {
            let line = bare.line.clone();
            scope.spawn(move || {
                for message in 0..FLOOD {
                    line.send(message);
                }
            });
        }
        let mut out = Vec::new();
        let mut count = 0;
        while count < 2 * FLOOD {
            bare.wait(&mut out);
            count += out.len();
            out.clear();
        }
    });
    begin.elapsed().as_nanos() as f64 / (2 * FLOOD) as f64
}
