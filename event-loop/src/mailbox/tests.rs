//! What a mailbox promises, on real threads.

use std::sync::atomic::AtomicUsize;
use std::thread;

use super::sync::{Arc, Ordering};
use super::*;
use crate::doze::Doze;

/// Counts wake-ups instead of making them.
#[derive(Clone, Debug, Default)]
struct Count(Arc<AtomicUsize>);

impl Wake for Count {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn wakes(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A loop without sockets: sleeps by the rules of [`Doze`], and parks its thread for it.
#[derive(Clone, Debug)]
struct Parked(Arc<(Doze, thread::Thread)>);

impl Wake for Parked {
    fn wake(&self) {
        if self.0.0.call() {
            self.0.1.unpark();
        }
    }
}

impl Parked {
    fn here() -> Self {
        Self(Arc::new((Doze::new(), thread::current())))
    }

    fn sleep(&self) {
        if self.0.0.doze() {
            thread::park();
        }
        self.0.0.rouse();
    }
}

#[test]
fn a_batch_wakes_once_however_many_send() {
    let count = Count::default();
    let mut mailbox = Mailbox::new(count.clone());
    let mut out = Vec::new();
    for batch in 1..=3 {
        thread::scope(|scope| {
            for sender in 0..8 {
                let end = mailbox.sender();
                scope.spawn(move || {
                    for number in 0..100 {
                        end.send((sender, number)).unwrap();
                    }
                });
            }
        });
        assert_eq!(count.wakes(), batch);
        out.clear();
        mailbox.drain(&mut out);
        assert_eq!(out.len(), 800);
    }
}

#[test]
fn a_million_messages_of_four_threads_come_in_each_threads_order() {
    const SENDERS: usize = 4;
    const EACH: usize = 250_000;
    let sleeper = Parked::here();
    let mut mailbox = Mailbox::new(sleeper.clone());
    let mut next = [0; SENDERS];
    let mut out = Vec::new();
    let mut total = 0;
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let end = mailbox.sender();
            scope.spawn(move || {
                let mut pack = Vec::new();
                for number in 0..EACH {
                    // Half of them by the pack.
                    if number % 64 < 32 {
                        pack.push((sender, number));
                    } else {
                        end.send_all(&mut pack).unwrap();
                        end.send((sender, number)).unwrap();
                    }
                }
                end.send_all(&mut pack).unwrap();
            });
        }
        while total < SENDERS * EACH {
            sleeper.sleep();
            mailbox.drain(&mut out);
            total += out.len();
            for (sender, number) in out.drain(..) {
                assert_eq!(number, next[sender], "of sender {sender}");
                next[sender] += 1;
            }
        }
    });
    assert_eq!(next, [EACH; SENDERS]);
}

#[test]
fn a_closed_mailbox_gives_the_message_back() {
    let count = Count::default();
    let mailbox = Mailbox::new(count.clone());
    let sender = mailbox.sender();
    sender.send("kept").unwrap();
    assert!(!sender.is_closed());
    let mut left = vec!["before"];
    mailbox.close(&mut left);
    assert_eq!(left, ["before", "kept"]);
    assert!(sender.is_closed());
    assert_eq!(sender.send("late"), Err("late"));
    let mut pack = vec!["later", "still"];
    assert_eq!(sender.clone().send_all(&mut pack), Err(Closed));
    assert_eq!(pack, ["later", "still"]);
    assert_eq!(count.wakes(), 1);
}

#[test]
fn nothing_sent_is_no_wake_and_nothing_drained() {
    let count = Count::default();
    let mut mailbox = Mailbox::<u8>::new(count.clone());
    mailbox.sender().send_all(&mut Vec::new()).unwrap();
    let mut out = vec![9];
    mailbox.drain(&mut out);
    assert_eq!(out, [9]);
    assert_eq!(count.wakes(), 0);
}

#[test]
fn a_drain_into_a_vector_in_use_appends() {
    let mut mailbox = Mailbox::new(Count::default());
    mailbox.sender().send(2).unwrap();
    let mut out = vec![1];
    mailbox.drain(&mut out);
    assert_eq!(out, [1, 2]);
}

#[test]
fn warm_vectors_are_swapped_and_none_is_allocated() {
    let mut mailbox = Mailbox::new(Count::default());
    let sender = mailbox.sender();
    let mut out = Vec::new();
    let mut seen = Vec::new();
    for _ in 0..6 {
        for number in 0..100 {
            sender.send(number).unwrap();
        }
        out.clear();
        mailbox.drain(&mut out);
        seen.push(out.as_ptr());
    }
    assert_eq!(seen[2..4], seen[4..6], "the two vectors take turns");
}

#[test]
fn a_message_that_sends_when_dropped_does_not_lock_itself_out() {
    struct Echo(Sender<Self>);
    impl Drop for Echo {
        fn drop(&mut self) {
            assert!(self.0.is_closed());
        }
    }
    let mailbox = Mailbox::new(Count::default());
    let sender = mailbox.sender();
    assert!(sender.send(Echo(sender.clone())).is_ok());
    drop(mailbox);
}
