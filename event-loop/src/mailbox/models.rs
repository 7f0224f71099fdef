//! Every order of two or three threads at one mailbox, as loom explores them.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p pumice-event-loop --release --lib loom`

use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::sync::Arc;
use super::*;
use crate::doze::Doze;

/// A sleeper in place of epoll: it sleeps until somebody has made the "system call".
struct Sleeper {
    doze: Doze,
    calls: Mutex<usize>,
    bell: Condvar,
}

#[derive(Clone)]
struct Waker(Arc<Sleeper>);

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

impl Wake for Waker {
    fn wake(&self) {
        if self.0.doze.call() {
            *self.0.calls.lock().unwrap() += 1;
            self.0.bell.notify_one();
        }
    }
}

impl Waker {
    fn new() -> Self {
        Self(Arc::new(Sleeper {
            doze: Doze::new(),
            calls: Mutex::new(0),
            bell: Condvar::new(),
        }))
    }

    /// A poll without events: if a wake-up were lost, loom would see that it sleeps for ever.
    fn sleep(&self) {
        if self.0.doze.doze() {
            let mut calls = self.0.calls.lock().unwrap();
            while *calls == 0 {
                calls = self.0.bell.wait(calls).unwrap();
            }
            *calls -= 1;
        }
        self.0.doze.rouse();
    }
}

/// Explores every order with up to three preemptions: bugs that need more are not known to exist, and two senders
/// without that bound take minutes.
fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

fn receive(waker: &Waker, mailbox: &mut Mailbox<u32>, count: usize) -> Vec<u32> {
    let mut all = Vec::new();
    while all.len() < count {
        waker.sleep();
        mailbox.drain(&mut all);
    }
    all
}

#[test]
fn loom_two_senders_are_both_heard_by_a_loop_that_sleeps() {
    model(|| {
        let waker = Waker::new();
        let mut mailbox = Mailbox::new(waker.clone());
        let threads = [1, 2].map(|number| {
            let sender = mailbox.sender();
            thread::spawn(move || sender.send(number).unwrap())
        });
        let mut all = receive(&waker, &mut mailbox, 2);
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn loom_one_sender_is_heard_in_its_order() {
    model(|| {
        let waker = Waker::new();
        let mut mailbox = Mailbox::new(waker.clone());
        let sender = mailbox.sender();
        let thread = thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send_all(&mut vec![2, 3]).unwrap();
        });
        assert_eq!(receive(&waker, &mut mailbox, 3), [1, 2, 3]);
        thread.join().unwrap();
    });
}

#[test]
fn loom_a_close_keeps_or_gives_back_each_message() {
    model(|| {
        let waker = Waker::new();
        let mut mailbox = Mailbox::new(waker);
        let threads = [1, 2].map(|number| {
            let sender = mailbox.sender();
            thread::spawn(move || sender.send(number))
        });
        let mut kept = Vec::new();
        mailbox.drain(&mut kept);
        mailbox.close(&mut kept);
        for thread in threads {
            if let Err(message) = thread.join().unwrap() {
                kept.push(message);
            }
        }
        kept.sort_unstable();
        assert_eq!(kept, [1, 2]);
    });
}

#[test]
fn loom_two_mailboxes_share_one_sleeper() {
    model(|| {
        let waker = Waker::new();
        let mut first = Mailbox::new(waker.clone());
        let mut second = Mailbox::new(waker.clone());
        let threads = [(first.sender(), 1), (second.sender(), 2)]
            .map(|(sender, number)| thread::spawn(move || sender.send(number).unwrap()));
        let mut all: Vec<u32> = Vec::new();
        while all.len() < 2 {
            waker.sleep();
            first.drain(&mut all);
            second.drain(&mut all);
        }
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
