//! Newcomers: accepted, refused, or handed to a worker that has room.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pumice_event_loop::{Accept, ListenerId, Platform, Ready, Stream};

use super::{Message, Worker};
use crate::conn::{Conn, Protocol};
use crate::proto::frames::Frames;
use crate::proto::http::Http;
use crate::shared::{Service, Speaks};

/// A connection that was just accepted, and by which listener.
#[derive(Debug)]
pub(crate) struct Newcomer<S> {
    pub(crate) stream: S,
    pub(crate) site: usize,
}

impl<P: Platform> Worker<P> {
    pub(super) fn accept(&mut self, id: ListenerId) {
        let Some(&(_, site)) = self.listeners.iter().find(|(listener, _)| *listener == id) else {
            return;
        };
        loop {
            // Before the accept: a client is better off in the system's queue than accepted and not served.
            let Some(place) = self.take_place() else {
                return self.pause();
            };
            match self.events.accept(id) {
                Ok(Accept::Stream(stream)) => {
                    let newcomer = Newcomer { stream, site };
                    if place == self.kit.index {
                        self.welcome(newcomer);
                    } else {
                        // Only a worker that has returned takes no more, and then the server stops.
                        drop(self.others[place].0.send(newcomer));
                    }
                    continue;
                }
                Ok(Accept::Empty | Accept::Busy) => {}
                Ok(Accept::BackedOff) => self.warn_of_descriptors(),
                Err(error) => tracing::error!(%error, "a listener failed"),
            }
            return self.give_back_place(place);
        }
    }

    /// The listener rests, and will find no descriptor again in a moment: one line a second says so.
    fn warn_of_descriptors(&mut self) {
        let now = self.kit.clock.now;
        let is_due = |at: Instant| now.saturating_duration_since(at) >= Duration::from_secs(1);
        if self.warned_at.is_none_or(is_due) {
            self.warned_at = Some(now);
            tracing::warn!(
                "no descriptor is left for newcomers: raise the limit on open files (ulimit -n)"
            );
        }
    }

    /// Counts a place for one more connection: at this worker, else at the one with the fewest. Returns that worker's
    /// index, or `None` when all are full.
    ///
    /// Counted before it is filled, so that a burst can't be sent to a place that only one of them finds free.
    fn take_place(&self) -> Option<usize> {
        let rooms = &self.kit.shared.rooms;
        let max = self.kit.shared.config.connections_max;
        if rooms[self.kit.index].take(max) {
            return Some(self.kit.index);
        }
        // A try that fails means that somebody else got that place.
        while let Some(roomiest) = self.roomiest() {
            if rooms[roomiest].take(max) {
                return Some(roomiest);
            }
        }
        None
    }

    /// The worker with the fewest connections, if it has room.
    fn roomiest(&self) -> Option<usize> {
        let rooms = &self.kit.shared.rooms;
        (0..rooms.len())
            .min_by_key(|&worker| rooms[worker].open())
            .filter(|&worker| rooms[worker].open() < self.kit.shared.config.connections_max)
    }

    /// A place is free again: whoever paused may accept, here or for the worker whose place it is.
    pub(super) fn give_back_place(&mut self, worker: usize) {
        self.kit.shared.rooms[worker].give_back();
        self.on_room();
    }

    /// Takes a connection in, whose place has been counted, and serves what it has sent already.
    pub(super) fn welcome(&mut self, newcomer: Newcomer<P::Stream>) {
        let counters = &self.kit.shared.counters[self.kit.index];
        if let Some(max) = self.kit.shared.connections_max()
            && self.kit.shared.open_connections() >= max
        {
            counters.connections_refused.increment();
            return self.give_back_place(self.kit.index);
        }
        let Ok(key) = self.pool.acquire() else {
            debug_assert!(false, "the pool has a slot for each place");
            counters.connections_refused.increment();
            return self.give_back_place(self.kit.index);
        };
        let Some(conn) = self.pool.get_mut(key) else {
            return;
        };
        counters.connections_accepted.increment();
        counters.connections_open.increment();
        #[cfg(feature = "store")]
        if let Some(store) = &self.kit.shared.store {
            let (idle, interval) = (store.config.keepalive_idle, store.config.keepalive_interval);
            // A connection without probes is still a connection.
            let _ = newcomer.stream.set_keepalive(idle, interval);
        }
        begin(conn, newcomer, &self.kit);
        self.serve(key);
    }

    /// Stops accepting: neither this worker nor another has room.
    fn pause(&mut self) {
        if !self.is_paused {
            self.is_paused = true;
            self.kit.shared.rooms[self.kit.index]
                .is_paused
                .store(true, Ordering::SeqCst);
            for &(id, _) in &self.listeners {
                self.events.pause(id);
            }
            // Whoever gave a place back before it could see the flag told nobody.
            if self.roomiest().is_some() {
                self.resume();
            }
        }
    }

    pub(super) fn resume(&mut self) {
        if self.is_paused {
            self.is_paused = false;
            self.kit.shared.rooms[self.kit.index]
                .is_paused
                .store(false, Ordering::SeqCst);
            for &(id, _) in &self.listeners {
                self.events.resume(id);
            }
        }
    }

    fn on_room(&mut self) {
        self.resume();
        for (worker, room) in self.kit.shared.rooms.iter().enumerate() {
            if worker != self.kit.index && room.is_paused.load(Ordering::SeqCst) {
                // A worker that has returned accepts no more anyway.
                let _ = self.others[worker].1.send(Message::Room);
            }
        }
    }
}

/// Makes a fresh slot a connection.
fn begin<S: Stream>(conn: &mut Conn<S>, newcomer: Newcomer<S>, kit: &super::Kit) {
    let now = kit.clock.now;
    conn.stream = Some(newcomer.stream);
    conn.site = newcomer.site;
    conn.since = now;
    // It may be both; trying costs less than asking to be told.
    conn.ready = Ready::READABLE.union(Ready::WRITABLE);
    let site = &kit.shared.sites[newcomer.site];
    conn.protocol = match site.speaks {
        Speaks::Auto => Protocol::Unknown,
        Speaks::Http => Protocol::Http(Http::new(now)),
        Speaks::Frames => Protocol::Frames(Box::new(frame_conn(&site.service, kit))),
    };
}

/// The frame side of a new connection.
pub(super) fn frame_conn(service: &Service, kit: &super::Kit) -> crate::conn::FrameConn {
    let frame_bytes_max = match service {
        #[cfg(feature = "store")]
        Service::Store => {
            let store = kit.shared.store.as_ref();
            store.map_or(kit.shared.config.frame_bytes_max, |store| {
                store.config.frame_bytes_max
            })
        }
        Service::Handler(_) | Service::Frames(_) => kit.shared.config.frame_bytes_max,
    };
    crate::conn::FrameConn {
        frames: Frames::new(frame_bytes_max, kit.clock.now),
        #[cfg(feature = "store")]
        session: crate::store::session::Session::default(),
    }
}
