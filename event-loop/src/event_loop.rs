//! The loop itself: one poll per turn, then the events of streams and listeners.
//!
//! Cost of a turn: one wait, and the clock once, or twice when there is a deadline. A stream costs two system calls
//! in its life (watch and close); a listener none per turn but its accepts.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crate::listeners::Listeners;
use crate::mailbox::Mailbox;
use crate::{Accept, Event, ListenerId, ListenerStats, Mio, Platform};

/// Listeners one loop can have at a time. Chosen: a server listens on a handful.
pub const LISTENERS_MAX: usize = 128;

/// The highest token a stream may have; the ones above are the loop's own.
pub const TOKEN_MAX: u64 = LISTENER_FIRST - 1;

/// The token of the first listener. `u64::MAX` itself is the platform's.
pub(crate) const LISTENER_FIRST: u64 = u64::MAX - LISTENERS_MAX as u64;

/// The longest rest of a listener. Chosen: beyond it the setting is rather a slip, and it can't overflow the clock.
const BACK_OFF_MAX: Duration = Duration::from_secs(3_600);

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
    listeners: Listeners<P>,
    events: Vec<Event>,
    now: Instant,
}

impl EventLoop<Mio> {
    /// A loop on the operating system, with the default configuration.
    ///
    /// # Errors
    /// When the system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Self::with_platform(Mio::new()?)
    }

    /// Watches any other source of mio's, such as a pipe, under `token`: edge-triggered, for reading and writing.
    ///
    /// # Errors
    /// As the system says; the source isn't watched then.
    ///
    /// # Panics
    /// If `token` is above [`TOKEN_MAX`].
    pub fn register_source(
        &mut self,
        source: &mut (impl mio::event::Source + AsFd),
        token: u64,
    ) -> io::Result<()> {
        assert!(token <= TOKEN_MAX, "the highest tokens are the loop's own");
        self.platform.register_source(source, token)
    }

    /// Stops watching such a source.
    ///
    /// # Errors
    /// `NotFound` if it isn't watched.
    pub fn deregister_source(
        &mut self,
        source: &mut (impl mio::event::Source + AsFd),
    ) -> io::Result<()> {
        self.platform.deregister_source(source)
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
    /// `InvalidInput` when `accepts_per_turn` is 0, or `back_off` is 0 or above an hour.
    pub fn with_config(platform: P, config: LoopConfig) -> io::Result<Self> {
        let invalid = |text| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if config.accepts_per_turn == 0 {
            return invalid("accepts_per_turn must be at least 1");
        }
        if config.back_off.is_zero() || config.back_off > BACK_OFF_MAX {
            return invalid("back_off must be above zero and at most an hour");
        }
        let now = platform.now();
        Ok(Self {
            platform,
            config,
            listeners: Listeners::new(),
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
    pub fn listen(&mut self, listener: P::Listener) -> io::Result<ListenerId> {
        self.listeners
            .add(&mut self.platform, listener, &self.config)
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
        self.listeners.accept(&mut self.platform, id, &self.config)
    }

    /// Stops accepting for the time being: newcomers wait in the system's queue, and cost nothing.
    pub fn pause(&mut self, id: ListenerId) {
        self.listeners.pause(id);
    }

    /// Goes on accepting: the next poll shows the listener if somebody waits.
    pub fn resume(&mut self, id: ListenerId) {
        self.listeners
            .resume(&mut self.platform, id, self.config.back_off);
    }

    /// Closes the listener; newcomers that nobody has accepted are refused by the system.
    pub fn close_listener(&mut self, id: ListenerId) {
        self.listeners.close(&mut self.platform, id);
    }

    /// What the listener has done so far; `None` once it is closed.
    #[must_use]
    pub fn listener_stats(&self, id: ListenerId) -> Option<ListenerStats> {
        self.listeners.stats(id)
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
                } else {
                    listeners.on_ready(token);
                }
            });
            match waited {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.now = self.platform.now();
        self.listeners
            .show(&mut self.platform, self.now, &self.config, &mut self.events);
        Ok(())
    }

    /// How long the platform may wait.
    fn timeout(&self, until: Option<Instant>) -> Option<Duration> {
        if self.listeners.has_ready() {
            return Some(Duration::ZERO);
        }
        let until = match (until, self.listeners.next_deadline()) {
            (Some(until), Some(deadline)) => Some(until.min(deadline)),
            (until, deadline) => until.or(deadline),
        };
        // The clock is read again, since handling the last turn has taken time.
        until.map(|until| until.saturating_duration_since(self.platform.now()))
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
