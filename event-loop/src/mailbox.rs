//! Messages from other threads to one loop: many senders, one receiver, one wake-up per batch.
//!
//! Cost: a send is a short lock and a push; a drain is one atomic load when there is nothing, else a lock and a swap
//! of two vectors, so that nothing is allocated once both are warm.
//!
//! Invariants: only a send that finds the queue empty wakes the loop, so there is at most one wake-up per batch
//! drained. Messages of one sender are drained in the order it sent them. After the close each send gives its
//! message back.

use std::fmt;

use crate::platform::Wake;

/// The primitives under test: loom's when it explores every order, the real ones else.
pub(crate) mod sync {
    #[cfg(loom)]
    pub(crate) use loom::sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU8, Ordering},
    };
    #[cfg(not(loom))]
    pub(crate) use parking_lot::Mutex;
    #[cfg(not(loom))]
    pub(crate) use std::sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    };

    /// Locks either kind of mutex. loom's has std's signature, but no thread panics in a model that passes.
    #[cfg(loom)]
    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
        mutex.lock().expect("no holder panics")
    }

    /// Locks either kind of mutex.
    #[cfg(not(loom))]
    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
        mutex.lock()
    }
}

use sync::{Arc, AtomicBool, Mutex, Ordering, lock};

/// The mailbox is closed: its loop is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the mailbox is closed")]
pub struct Closed;

struct Queue<T> {
    messages: Vec<T>,
    is_open: bool,
}

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    /// Whether messages wait. Written under the lock, read without it: a drain that reads `false` too early is
    /// followed by the wake-up of whoever wrote `true`.
    has_mail: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// The receiving end: owned by the thread that runs the loop.
///
/// Dropping it closes it: what is still in it is dropped, and later sends get their message back.
pub struct Mailbox<T> {
    shared: Arc<Shared<T>>,
}

/// The sending end: cheap to clone, usable from any thread.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T: Send> Mailbox<T> {
    /// A mailbox that calls `waker` when its first message comes. [`EventLoop::mailbox`](crate::EventLoop::mailbox)
    /// makes one for a loop.
    pub fn new(waker: impl Wake) -> Self {
        Self {
            shared: Arc::new(Shared {
                queue: Mutex::new(Queue {
                    messages: Vec::new(),
                    is_open: true,
                }),
                has_mail: AtomicBool::new(false),
                wake: Box::new(move || waker.wake()),
            }),
        }
    }

    /// Another end to send from.
    #[must_use]
    pub fn sender(&self) -> Sender<T> {
        Sender {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Moves all messages that wait to the end of `out`.
    ///
    /// With an empty `out` the two vectors are swapped: hand the same one in each time, emptied, and nothing is
    /// allocated once both have grown to the largest batch.
    pub fn drain(&mut self, out: &mut Vec<T>) {
        if !self.shared.has_mail.load(Ordering::Acquire) {
            return;
        }
        let mut queue = lock(&self.shared.queue);
        self.shared.has_mail.store(false, Ordering::Relaxed);
        if out.is_empty() {
            std::mem::swap(&mut queue.messages, out);
        } else {
            out.append(&mut queue.messages);
        }
    }

    /// Closes the mailbox and moves what was still in it to the end of `out`. Later sends get their message back.
    pub fn close(self, out: &mut Vec<T>) {
        out.append(&mut self.shut());
    }
}

impl<T> Mailbox<T> {
    fn shut(&self) -> Vec<T> {
        let mut queue = lock(&self.shared.queue);
        queue.is_open = false;
        std::mem::take(&mut queue.messages)
    }
}

impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        // Dropped outside the lock: a message's drop may itself send to this mailbox.
        drop(self.shut());
    }
}

impl<T: Send> Sender<T> {
    /// Posts `message`, and wakes the loop if it is the first of its batch. Blocks for no longer than another
    /// send's or a drain's few instructions; may allocate when the queue grows. There is no bound on the queue:
    /// whoever sends bounds what is in flight.
    ///
    /// # Errors
    /// Gives the message back when the mailbox is closed.
    pub fn send(&self, message: T) -> Result<(), T> {
        let mut queue = lock(&self.shared.queue);
        if !queue.is_open {
            return Err(message);
        }
        let is_first = queue.messages.is_empty();
        queue.messages.push(message);
        if is_first {
            self.shared.has_mail.store(true, Ordering::Release);
        }
        drop(queue);
        if is_first {
            (self.shared.wake)();
        }
        Ok(())
    }

    /// Posts all of `messages` in order, under one lock and with at most one wake-up; `messages` is empty then and
    /// keeps its capacity.
    ///
    /// # Errors
    /// When the mailbox is closed; `messages` is untouched then.
    pub fn send_all(&self, messages: &mut Vec<T>) -> Result<(), Closed> {
        let mut queue = lock(&self.shared.queue);
        if !queue.is_open {
            return Err(Closed);
        }
        let is_first = queue.messages.is_empty() && !messages.is_empty();
        queue.messages.append(messages);
        if is_first {
            self.shared.has_mail.store(true, Ordering::Release);
        }
        drop(queue);
        if is_first {
            (self.shared.wake)();
        }
        Ok(())
    }

    /// Whether the mailbox is closed. It stays so.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        !lock(&self.shared.queue).is_open
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
