//! The listeners of one loop: who may accept now, who rests until when, who is paused.
//!
//! ```text
//!              event                  accept: Empty
//!   Quiet ──────────────────▶ Ready ───────────────▶ Quiet
//!                              │ ▲
//!      pause, or accept finds  │ │  resume, or the back-off's deadline (`show`)
//!      no descriptor           ▼ │
//!                             Muted
//! ```
//!
//! A ready listener is shown with every poll, which doesn't block then. A muted one is never shown. The first
//! newcomer that makes an event while it is muted gets the listener deregistered, so that all further ones cost
//! nothing. It is registered again when it is no longer muted, and that tells by itself whether anybody waits.
//!
//! Invariant: a listener that isn't muted is registered, and somebody who waits at it has either made an event that
//! is still to come or the listener is ready.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::event_loop::{LISTENER_FIRST, LISTENERS_MAX};
use crate::fault::Fault;
use crate::{Accept, Event, ListenerId, ListenerStats, LoopConfig, Platform};

/// Newcomers closed at once, by way of the reserved descriptor, before a listener rests. Chosen: at some
/// microseconds each, a turn stays under a millisecond or two.
const SHED_MAX: u32 = 256;

/// All listeners of one loop.
#[derive(Debug)]
pub(crate) struct Listeners<P: Platform> {
    slots: Vec<Slot<P>>,
}

/// A place for a listener. Its generation grows with each close, so that an old id finds nothing.
#[derive(Debug)]
struct Slot<P: Platform> {
    generation: u32,
    entry: Option<Entry<P>>,
}

/// One listener and how it stands.
#[derive(Debug)]
struct Entry<P: Platform> {
    listener: P::Listener,
    token: u64,
    /// Whether the platform watches it.
    is_registered: bool,
    /// Somebody may be waiting: the last accept didn't say `WouldBlock`.
    is_ready: bool,
    is_paused: bool,
    backs_off_until: Option<Instant>,
    /// Accepts left in this turn.
    budget: u32,
    /// Whether any accept of this turn gave a stream.
    has_taken: bool,
    stats: ListenerStats,
}

impl<P: Platform> Listeners<P> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new() }
    }

    /// Watches `listener`.
    pub(crate) fn add(
        &mut self,
        platform: &mut P,
        mut listener: P::Listener,
        config: &LoopConfig,
    ) -> io::Result<ListenerId> {
        let vacant = self.slots.iter().position(|slot| slot.entry.is_none());
        let index = vacant.unwrap_or(self.slots.len());
        if index >= LISTENERS_MAX {
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                "the loop has as many listeners as it can",
            ));
        }
        let token = LISTENER_FIRST + index as u64;
        platform.register_listener(&mut listener, token)?;
        if vacant.is_none() {
            self.slots.push(Slot {
                generation: 0,
                entry: None,
            });
        }
        let slot = &mut self.slots[index];
        slot.entry = Some(Entry {
            listener,
            token,
            is_registered: true,
            is_ready: false,
            is_paused: false,
            backs_off_until: None,
            budget: config.accepts_per_turn,
            has_taken: false,
            stats: ListenerStats::default(),
        });
        Ok(ListenerId {
            index: index as u32,
            generation: slot.generation,
        })
    }

    /// Stops watching the listener and drops it.
    pub(crate) fn close(&mut self, platform: &mut P, id: ListenerId) {
        let Some(slot) = self.slots.get_mut(id.index as usize) else {
            return;
        };
        if slot.generation == id.generation
            && let Some(mut entry) = slot.entry.take()
        {
            slot.generation = slot.generation.wrapping_add(1);
            if entry.is_registered {
                // The drop closes it, and that ends the watch in any case.
                let _ = platform.deregister_listener(&mut entry.listener);
            }
        }
    }

    /// Takes one newcomer.
    pub(crate) fn accept(
        &mut self,
        platform: &mut P,
        id: ListenerId,
        config: &LoopConfig,
    ) -> io::Result<Accept<P::Stream>> {
        let Some(entry) = self.entry_mut(id) else {
            return Ok(Accept::Empty);
        };
        if entry.is_paused {
            return Ok(Accept::Empty);
        }
        if entry.backs_off_until.is_some() {
            return Ok(Accept::BackedOff);
        }
        if entry.budget == 0 {
            return Ok(Accept::Busy);
        }
        while entry.budget > 0 {
            entry.budget -= 1;
            let error = match platform.accept(&mut entry.listener) {
                Ok(stream) => {
                    entry.has_taken = true;
                    entry.stats.accepted += 1;
                    // Also when the listener wasn't shown: it must not rest on an accept that found somebody.
                    entry.is_ready = true;
                    return Ok(Accept::Stream(stream));
                }
                Err(error) => error,
            };
            match Fault::of(&error) {
                Fault::Empty => {
                    entry.is_ready = false;
                    return Ok(Accept::Empty);
                }
                Fault::Signal => {}
                Fault::Newcomer => entry.stats.aborted += 1,
                Fault::Exhausted => {
                    entry.shed(platform, &config.shed_answer);
                    entry.back_off(platform.now(), config.back_off);
                    return Ok(Accept::BackedOff);
                }
                Fault::Listener => {
                    entry.back_off(platform.now(), config.back_off);
                    return Err(error);
                }
            }
        }
        entry.is_ready = true;
        if !entry.has_taken {
            // A fault that looks like a newcomer's but comes each time doesn't empty the queue: a security module
            // that forbids to accept, for instance. Without a rest this would go round for ever.
            entry.back_off(platform.now(), config.back_off);
            return Ok(Accept::BackedOff);
        }
        Ok(Accept::Busy)
    }

    /// Mutes the listener.
    pub(crate) fn pause(&mut self, id: ListenerId) {
        if let Some(entry) = self.entry_mut(id) {
            entry.is_paused = true;
        }
    }

    /// Ends a pause.
    pub(crate) fn resume(&mut self, platform: &mut P, id: ListenerId, back_off: Duration) {
        if let Some(entry) = self.entry_mut(id)
            && entry.is_paused
        {
            entry.is_paused = false;
            entry.watch_again(platform, back_off);
        }
    }

    /// What the listener has done so far.
    pub(crate) fn stats(&self, id: ListenerId) -> Option<ListenerStats> {
        let slot = self.slots.get(id.index as usize)?;
        let entry = slot.entry.as_ref()?;
        (slot.generation == id.generation).then_some(entry.stats)
    }

    /// The platform has an event for the listener with `token`.
    pub(crate) fn on_ready(&mut self, token: u64) {
        if let Ok(index) = usize::try_from(token - LISTENER_FIRST)
            && let Some(slot) = self.slots.get_mut(index)
            && let Some(entry) = &mut slot.entry
        {
            entry.is_ready = true;
        }
    }

    /// Whether a poll must not wait, since somebody can be accepted.
    pub(crate) fn has_ready(&self) -> bool {
        self.entries()
            .any(|entry| entry.is_ready && !entry.is_muted())
    }

    /// When the first back-off is over.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.entries()
            .filter(|entry| !entry.is_paused)
            .filter_map(|entry| entry.backs_off_until)
            .min()
    }

    /// Begins a turn at `now`: ends the back-offs that are due, stops watching muted listeners that made an event,
    /// and shows those that may be accepted from.
    pub(crate) fn show(
        &mut self,
        platform: &mut P,
        now: Instant,
        config: &LoopConfig,
        events: &mut Vec<Event>,
    ) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let Some(entry) = &mut slot.entry else {
                continue;
            };
            entry.budget = config.accepts_per_turn;
            entry.has_taken = false;
            if entry.backs_off_until.is_some_and(|until| until <= now) {
                entry.backs_off_until = None;
                entry.watch_again(platform, config.back_off);
            }
            if !entry.is_ready {
                continue;
            }
            if !entry.is_muted() {
                events.push(Event::Listener {
                    id: ListenerId {
                        index: index as u32,
                        generation: slot.generation,
                    },
                });
            } else if entry.is_registered {
                // If it fails the listener stays watched, which only costs a wake-up per newcomer.
                entry.is_registered = platform.deregister_listener(&mut entry.listener).is_err();
            }
        }
    }

    fn entries(&self) -> impl Iterator<Item = &Entry<P>> {
        self.slots.iter().filter_map(|slot| slot.entry.as_ref())
    }

    fn entry_mut(&mut self, id: ListenerId) -> Option<&mut Entry<P>> {
        let slot = self.slots.get_mut(id.index as usize)?;
        if slot.generation != id.generation {
            return None;
        }
        slot.entry.as_mut()
    }
}

impl<P: Platform> Entry<P> {
    fn is_muted(&self) -> bool {
        self.is_paused || self.backs_off_until.is_some()
    }

    fn back_off(&mut self, now: Instant, back_off: Duration) {
        self.backs_off_until = Some(now + back_off);
        self.stats.back_offs += 1;
    }

    /// Watches a listener that is no longer muted. Registering tells by itself whether somebody waits.
    fn watch_again(&mut self, platform: &mut P, back_off: Duration) {
        if self.is_registered || self.is_muted() {
            return;
        }
        match platform.register_listener(&mut self.listener, self.token) {
            Ok(()) => self.is_registered = true,
            // The system has no memory for a watch: the same want, the same rest.
            Err(_) => self.back_off(platform.now(), back_off),
        }
    }

    /// Closes those who wait for a descriptor that isn't there, so that they needn't wait for a time-out to know.
    fn shed(&mut self, platform: &mut P, answer: &[u8]) {
        for _ in 0..SHED_MAX {
            let newcomer = platform.accept_on_reserve(&mut self.listener);
            let is_last = match newcomer {
                Ok(mut stream) => {
                    if !answer.is_empty() {
                        // A courtesy: who can't take it at once goes without.
                        let _ = stream.write(answer);
                    }
                    self.stats.shed += 1;
                    false
                }
                Err(error) => match Fault::of(&error) {
                    Fault::Signal => false,
                    Fault::Newcomer => {
                        self.stats.aborted += 1;
                        false
                    }
                    Fault::Empty => {
                        self.is_ready = false;
                        true
                    }
                    Fault::Exhausted | Fault::Listener => true,
                },
            };
            platform.restock();
            if is_last {
                return;
            }
        }
    }
}
