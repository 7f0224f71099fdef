//! The loop itself: one poll per turn, events of streams and listeners, and who may accept when.
//!
//! ```text
//!              event               accept: Empty
//!   Quiet ──────────────▶ Ready ───────────────────▶ Quiet
//!                          │ ▲
//!       pause, or accept   │ │ resume, or the back-off's deadline in `poll`
//!       finds no descriptor▼ │
//!                         Muted
//! ```
//!
//! A ready listener is shown with every poll, which doesn't block then. A muted one is shown never; the first
//! newcomer that makes an event while it is muted gets the listener deregistered, so that all further ones cost
//! nothing. It is registered again when it is no longer muted, and that tells whether anybody waits.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::mailbox::Mailbox;
use crate::{Accept, Event, ListenerId, ListenerStats, Mio, Platform};

/// Listeners one loop can have at a time. Chosen: a server listens on a handful.
pub const LISTENERS_MAX: usize = 128;

/// The highest token a stream may have; the ones above are the loop's own.
pub const TOKEN_MAX: u64 = LISTENER_FIRST - 1;

/// The token of the first listener. `u64::MAX` itself is the platform's.
const LISTENER_FIRST: u64 = u64::MAX - LISTENERS_MAX as u64;

/// Newcomers closed at once, by way of the reserved descriptor, before a listener rests. Chosen: at some
/// microseconds each, a turn stays under a millisecond or two.
const SHED_MAX: u32 = 256;

/// How a loop accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopConfig {
    /// Accepts per listener and turn, so that a burst of newcomers doesn't hold up those who are connected; at
    /// least 1. Default: 16.
    pub accepts_per_turn: u32,
    /// How long a listener rests after an accept found no descriptor. Default: 100 ms, so ten tries a second.
    pub back_off: Duration,
    /// Sent, as far as it goes at once, to newcomers that are closed for want of a descriptor. Default: nothing.
    pub shed_answer: Vec<u8>,
}

impl Default for LoopConfig {
    fn default() -> Self {
        Self {
            accepts_per_turn: 16,
            back_off: Duration::from_millis(100),
            shed_answer: Vec::new(),
        }
    }
}

/// Waits for sockets, for other threads and for a deadline, all at once.
///
/// One turn is: [`poll`](Self::poll), handle the [events](Self::take_events), drain the mailboxes, handle what is
/// due at [`now`](Self::now).
#[derive(Debug)]
pub struct EventLoop<P: Platform = Mio> {
    platform: P,
    config: LoopConfig,
    listeners: Vec<Slot<P::Listener>>,
    events: Vec<Event>,
    now: Instant,
}

#[derive(Debug)]
struct Slot<L> {
    generation: u32,
    entry: Option<Entry<L>>,
}

/// One listener and how it stands.
#[derive(Debug)]
struct Entry<L> {
    listener: L,
    /// Whether the platform watches it.
    is_registered: bool,
    /// Somebody may be waiting: the last accept didn't say `WouldBlock`.
    is_ready: bool,
    is_paused: bool,
    backs_off_until: Option<Instant>,
    /// Accepts left in this turn.
    budget: u32,
    stats: ListenerStats,
}

impl<L> Entry<L> {
    fn is_muted(&self) -> bool {
        self.is_paused || self.backs_off_until.is_some()
    }

    fn back_off(&mut self, until: Option<Instant>) {
        self.backs_off_until = until;
        self.stats.back_offs += 1;
    }
}

impl EventLoop<Mio> {
    /// A loop on the operating system, with the default configuration.
    ///
    /// # Errors
    /// When the system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Self::with_platform(Mio::new()?)
    }
}

impl<P: Platform> EventLoop<P> {
    /// A loop on `platform`, with the default configuration.
    ///
    /// # Errors
    /// None today.
    pub fn with_platform(platform: P) -> io::Result<Self> {
        Self::with_config(platform, LoopConfig::default())
    }

    /// A loop on `platform`.
    ///
    /// # Errors
    /// `InvalidInput` when `config.accepts_per_turn` is 0.
    pub fn with_config(platform: P, config: LoopConfig) -> io::Result<Self> {
        if config.accepts_per_turn == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "accepts_per_turn must be at least 1",
            ));
        }
        let now = platform.now();
        Ok(Self {
            platform,
            config,
            listeners: Vec::new(),
            events: Vec::new(),
            now,
        })
    }

    /// Watches `stream` under `token`, edge-triggered, for reading and writing at once. This is done once in a
    /// stream's life; what it can do already is told by the next poll.
    ///
    /// # Errors
    /// As the system says; the stream isn't watched then.
    ///
    /// # Panics
    /// If `token` is above [`TOKEN_MAX`].
    pub fn register(&mut self, stream: &mut P::Stream, token: u64) -> io::Result<()> {
        assert!(token <= TOKEN_MAX, "the highest tokens are the loop's own");
        self.platform.register(stream, token)
    }

    /// Stops watching `stream`. Events of this turn that were collected already still come.
    ///
    /// # Errors
    /// `NotFound` if it isn't watched.
    pub fn deregister(&mut self, stream: &mut P::Stream) -> io::Result<()> {
        self.platform.deregister(stream)
    }

    /// Watches `listener`.
    ///
    /// # Errors
    /// As the system says, and `QuotaExceeded` beyond [`LISTENERS_MAX`]; the listener is dropped then.
    pub fn listen(&mut self, mut listener: P::Listener) -> io::Result<ListenerId> {
        let vacant = self.listeners.iter().position(|slot| slot.entry.is_none());
        let index = vacant.unwrap_or(self.listeners.len());
        if index >= LISTENERS_MAX {
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                "the loop has as many listeners as it can",
            ));
        }
        self.platform
            .register_listener(&mut listener, LISTENER_FIRST + index as u64)?;
        let entry = Some(Entry {
            listener,
            is_registered: true,
            is_ready: false,
            is_paused: false,
            backs_off_until: None,
            budget: self.config.accepts_per_turn,
            stats: ListenerStats::default(),
        });
        if vacant.is_some() {
            self.listeners[index].entry = entry;
        } else {
            self.listeners.push(Slot {
                generation: 0,
                entry,
            });
        }
        Ok(ListenerId {
            index: index as u32,
            generation: self.listeners[index].generation,
        })
    }

    /// Takes one newcomer. Call it after [`Event::Listener`], until it gives no stream.
    ///
    /// Newcomers that are gone already and interruptions are passed over. A paused or closed listener is
    /// [`Accept::Empty`].
    ///
    /// # Errors
    /// What the system says of the listener itself, such as that it isn't one. It backs off then too, so that an
    /// error that stays doesn't spin.
    pub fn accept(&mut self, id: ListenerId) -> io::Result<Accept<P::Stream>> {
        let Some(entry) = entry_mut(&mut self.listeners, id) else {
            return Ok(Accept::Empty);
        };
        if entry.backs_off_until.is_some() {
            return Ok(Accept::BackedOff);
        }
        if entry.is_paused {
            return Ok(Accept::Empty);
        }
        while entry.budget > 0 {
            entry.budget -= 1;
            let error = match self.platform.accept(&mut entry.listener) {
                Ok(stream) => {
                    entry.stats.accepted += 1;
                    return Ok(Accept::Stream(stream));
                }
                Err(error) => error,
            };
            match Fault::of(&error) {
                Fault::Empty => {
                    entry.is_ready = false;
                    return Ok(Accept::Empty);
                }
                Fault::Newcomer => entry.stats.aborted += 1,
                Fault::Exhausted => {
                    shed(&mut self.platform, entry, &self.config.shed_answer);
                    entry.back_off(self.platform.now().checked_add(self.config.back_off));
                    return Ok(Accept::BackedOff);
                }
                Fault::Listener => {
                    entry.back_off(self.platform.now().checked_add(self.config.back_off));
                    return Err(error);
                }
            }
        }
        // Even if the last try was for an event that is over: the next turn finds out.
        entry.is_ready = true;
        Ok(Accept::Busy)
    }

    /// Stops accepting for the time being: newcomers wait in the system's queue, and cost nothing.
    pub fn pause(&mut self, id: ListenerId) {
        if let Some(entry) = entry_mut(&mut self.listeners, id) {
            entry.is_paused = true;
        }
    }

    /// Goes on accepting: the next poll shows the listener if somebody waits.
    pub fn resume(&mut self, id: ListenerId) {
        let until = self.now.checked_add(self.config.back_off);
        if let Some(entry) = entry_mut(&mut self.listeners, id)
            && entry.is_paused
        {
            entry.is_paused = false;
            watch_again(&mut self.platform, entry, id.index, until);
        }
    }

    /// Closes the listener; newcomers that nobody has accepted are refused by the system.
    pub fn close_listener(&mut self, id: ListenerId) {
        if let Some(slot) = self.listeners.get_mut(id.index as usize)
            && slot.generation == id.generation
            && let Some(mut entry) = slot.entry.take()
        {
            slot.generation = slot.generation.wrapping_add(1);
            if entry.is_registered {
                // The drop below closes it, and that ends the watch in any case.
                let _ = self.platform.deregister_listener(&mut entry.listener);
            }
        }
    }

    /// What the listener has done so far; `None` once it is closed.
    #[must_use]
    pub fn listener_stats(&self, id: ListenerId) -> Option<ListenerStats> {
        let slot = self.listeners.get(id.index as usize)?;
        let entry = slot.entry.as_ref()?;
        (slot.generation == id.generation).then_some(entry.stats)
    }

    /// A mailbox whose first message wakes this loop. A loop can have any number.
    ///
    /// # Errors
    /// None today.
    pub fn mailbox<T: Send>(&mut self) -> io::Result<Mailbox<T>> {
        Ok(Mailbox::new(self.platform.waker()))
    }

    /// Waits until there is an event, a wake-up, `until` has come (`None`: without end) or a listener's back-off is
    /// over. It may also return early with nothing. The events of the last poll that weren't taken are gone.
    ///
    /// # Errors
    /// As the system says of the poll itself; there is nothing to go on with then. Signals are handled.
    pub fn poll(&mut self, until: Option<Instant>) -> io::Result<()> {
        self.events.clear();
        loop {
            let timeout = self.timeout(until);
            let listeners = &mut self.listeners;
            let events = &mut self.events;
            let waited = self.platform.wait(timeout, |token, ready| {
                if token <= TOKEN_MAX {
                    events.push(Event::Stream { token, ready });
                } else if let Some(slot) = listeners.get_mut((token - LISTENER_FIRST) as usize)
                    && let Some(entry) = &mut slot.entry
                {
                    entry.is_ready = true;
                }
            });
            match waited {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.now = self.platform.now();
        self.show_listeners();
        Ok(())
    }

    /// How long the platform may wait.
    fn timeout(&self, until: Option<Instant>) -> Option<Duration> {
        let mut until = until;
        for entry in self.listeners.iter().filter_map(|slot| slot.entry.as_ref()) {
            if entry.is_ready && !entry.is_muted() {
                return Some(Duration::ZERO);
            }
            if !entry.is_paused
                && let Some(deadline) = entry.backs_off_until
            {
                until = Some(until.map_or(deadline, |until| until.min(deadline)));
            }
        }
        // The clock is read again, since handling the last turn has taken time.
        until.map(|until| until.saturating_duration_since(self.platform.now()))
    }

    /// Ends the back-offs that are due, stops watching muted listeners that made an event, and shows those that
    /// may be accepted from.
    fn show_listeners(&mut self) {
        let next_try = self.now.checked_add(self.config.back_off);
        for (index, slot) in self.listeners.iter_mut().enumerate() {
            let Some(entry) = &mut slot.entry else {
                continue;
            };
            entry.budget = self.config.accepts_per_turn;
            if entry.backs_off_until.is_some_and(|until| until <= self.now) {
                entry.backs_off_until = None;
                if !entry.is_paused {
                    watch_again(&mut self.platform, entry, index as u32, next_try);
                }
            }
            if !entry.is_ready {
                continue;
            }
            if !entry.is_muted() {
                self.events.push(Event::Listener {
                    id: ListenerId {
                        index: index as u32,
                        generation: slot.generation,
                    },
                });
            } else if entry.is_registered {
                // If it fails the listener stays watched, which only costs a wake-up per newcomer.
                entry.is_registered = self
                    .platform
                    .deregister_listener(&mut entry.listener)
                    .is_err();
            }
        }
    }

    /// The events of the last poll: those of streams first, in the order the system told them, then listeners.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Swaps the events of the last poll into `out`, so that the loop can be used while they are handled. What was
    /// in `out` is gone; hand the same vector in each turn and nothing is allocated once both are warm.
    pub fn take_events(&mut self, out: &mut Vec<Event>) {
        out.clear();
        std::mem::swap(&mut self.events, out);
    }

    /// The time at the end of the last poll: taken once a turn.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Wakes this loop's poll from any thread.
    #[must_use]
    pub fn waker(&self) -> P::Waker {
        self.platform.waker()
    }

    /// The platform, for what only it can do.
    #[must_use]
    pub const fn platform(&self) -> &P {
        &self.platform
    }
}

fn entry_mut<L>(listeners: &mut [Slot<L>], id: ListenerId) -> Option<&mut Entry<L>> {
    let slot = listeners.get_mut(id.index as usize)?;
    if slot.generation != id.generation {
        return None;
    }
    slot.entry.as_mut()
}

/// Watches a listener that is no longer muted. Registering tells by itself whether somebody waits.
fn watch_again<P: Platform>(
    platform: &mut P,
    entry: &mut Entry<P::Listener>,
    index: u32,
    next_try: Option<Instant>,
) {
    if entry.is_registered || entry.is_muted() {
        return;
    }
    let token = LISTENER_FIRST + u64::from(index);
    match platform.register_listener(&mut entry.listener, token) {
        Ok(()) => entry.is_registered = true,
        // The system has no memory for a watch: the same want, the same rest.
        Err(_) => entry.back_off(next_try),
    }
}

/// Closes those who wait for a descriptor that isn't there, so that they needn't wait for a time-out to know.
fn shed<P: Platform>(platform: &mut P, entry: &mut Entry<P::Listener>, answer: &[u8]) {
    for _ in 0..SHED_MAX {
        let newcomer = platform.accept_on_reserve(&mut entry.listener);
        let is_last = match newcomer {
            Ok(mut stream) => {
                if !answer.is_empty() {
                    // A courtesy: who can't take it at once goes without.
                    let _ = stream.write(answer);
                }
                entry.stats.shed += 1;
                false
            }
            Err(error) if Fault::of(&error) == Fault::Newcomer => {
                entry.stats.aborted += 1;
                false
            }
            Err(error) => {
                if Fault::of(&error) == Fault::Empty {
                    entry.is_ready = false;
                }
                true
            }
        };
        platform.restock();
        if is_last {
            return;
        }
    }
}

/// Whose fault a failed accept is, which decides what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nobody waits.
    Empty,
    /// The newcomer's, or its network's: on to the next one.
    Newcomer,
    /// The process or the system has run out of something: rest.
    Exhausted,
    /// The listener's: told to the caller.
    Listener,
}

impl Fault {
    fn of(error: &io::Error) -> Self {
        /// The same on Linux, macOS and the BSDs; std has no stable kinds for them.
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        #[cfg(target_os = "linux")]
        const ENOBUFS: i32 = 105;
        #[cfg(not(target_os = "linux"))]
        const ENOBUFS: i32 = 55;
        /// Errors of a newcomer's network that Linux's accept passes on and std has no kind for: ENONET, EPROTO,
        /// ENOPROTOOPT, EHOSTDOWN.
        #[cfg(target_os = "linux")]
        const PASSED_ON: [i32; 4] = [64, 71, 92, 112];
        /// EPROTO on FreeBSD, EPROTO on macOS.
        #[cfg(not(target_os = "linux"))]
        const PASSED_ON: [i32; 2] = [92, 100];

        match error.raw_os_error() {
            Some(ENFILE | EMFILE | ENOBUFS) => return Self::Exhausted,
            Some(code) if PASSED_ON.contains(&code) => return Self::Newcomer,
            _ => {}
        }
        match error.kind() {
            io::ErrorKind::WouldBlock => Self::Empty,
            io::ErrorKind::OutOfMemory => Self::Exhausted,
            io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::Interrupted
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::TimedOut => Self::Newcomer,
            _ => Self::Listener,
        }
    }
}
