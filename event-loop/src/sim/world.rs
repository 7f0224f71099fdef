//! The handle of a simulated world: makes platforms, listeners and clients, and turns the screws.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::client::Client;
use super::faults::Faults;
use super::network::{Listening, Poller, State};
use super::platform::{Sim, SimListener, SimStream};

/// The environment's variable that picks one seed: see [`seeds`].
pub const SEED_VARIABLE: &str = "PUMICE_SIM_SEED";

/// The seeds from 0 to `count - 1`; only the one in the environment's `PUMICE_SIM_SEED`, if it is set.
///
/// A world that is dropped by a panic prints its seed, so that a failure is replayed by
/// `PUMICE_SIM_SEED=17 cargo test name_of_the_test`.
///
/// # Panics
/// If the variable is set to something other than a number.
pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let only = std::env::var(SEED_VARIABLE)
        .ok()
        .map(|text| text.parse().expect("PUMICE_SIM_SEED is a number"));
    match only {
        Some(seed) => seed..seed + 1,
        None => 0..count,
    }
}

/// How the simulated clock moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// By itself: a poll that has nothing to tell moves it to its deadline at once. For one loop.
    #[default]
    Leaping,
    /// Only by [`World::advance`]: a poll that has nothing to tell returns with nothing. For several loops that take
    /// turns on one thread.
    Manual,
}

/// What all handles of one world share.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Rung by a wake-up, for a loop that waits without a deadline while other threads work.
    pub(super) bell: Condvar,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.state.get_mut().seed;
            eprintln!("simulated world: replay with {SEED_VARIABLE}={seed}");
        }
    }
}

/// A simulated world: a network, a clock and chance, all from one seed.
///
/// Whatever happens in it is decided by the seed and by the calls made, in their order: two runs of the same code
/// on one thread are the same to the byte. The handle is cheap to clone.
#[derive(Clone)]
pub struct World {
    pub(super) shared: Arc<Shared>,
}

impl World {
    /// A [rough](Faults::rough) world. Those of even seeds have no [spurious](Faults::spurious) events: they would
    /// come to the rescue of code that misses an edge.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut faults = Faults::rough();
        if seed.is_multiple_of(2) {
            faults.spurious = 0;
        }
        Self::with_faults(seed, faults)
    }

    /// A world that is as rough as `faults` says.
    #[must_use]
    pub fn with_faults(seed: u64, faults: Faults) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State::new(seed, faults)),
                bell: Condvar::new(),
            }),
        }
    }

    /// The seed it was made from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.shared.lock().seed
    }

    /// A platform for one event loop of this world.
    #[must_use]
    pub fn platform(&self) -> Sim {
        let mut state = self.shared.lock();
        let has_reserve = state.has_room_for_descriptor();
        state.descriptors += usize::from(has_reserve);
        state.pollers.push(Poller {
            has_reserve,
            ..Poller::default()
        });
        Sim::new(self.clone(), (state.pollers.len() - 1) as u32)
    }

    /// A listener at `addr`. Several may have the same address; each newcomer goes to one of them.
    #[must_use]
    pub fn listener(&self, addr: SocketAddr) -> SimListener {
        let mut state = self.shared.lock();
        state.listeners.push(Some(Listening {
            addr,
            queue: Vec::new(),
            watch: None,
            is_queued: false,
        }));
        SimListener::new(self.clone(), (state.listeners.len() - 1) as u32)
    }

    /// A client that is on its way to `addr`. It can send at once.
    ///
    /// # Errors
    /// `ConnectionRefused` when nobody listens there.
    pub fn connect(&self, addr: SocketAddr) -> io::Result<Client> {
        let id = self.shared.lock().connect(addr)?;
        Ok(Client::new(SimStream::new(self.clone(), id)))
    }

    /// Makes the world rougher or calmer from now on. Buffers of connections that exist keep their size.
    pub fn set_faults(&self, faults: Faults) {
        self.shared.lock().faults = faults;
    }

    /// How the clock moves from now on. Default: [`Clock::Leaping`].
    pub fn set_clock(&self, clock: Clock) {
        self.shared.lock().is_clock_manual = clock == Clock::Manual;
    }

    /// Lets `time` pass.
    pub fn advance(&self, time: Duration) {
        self.shared.lock().elapsed += time;
    }

    /// The simulated time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.lock().now()
    }

    /// The simulated time since the world was made.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.shared.lock().elapsed
    }

    /// One round of the network.
    pub fn step(&self) {
        self.shared.lock().step(false);
    }

    /// Rounds of the network until everything that can arrive has arrived.
    pub fn settle(&self) {
        let mut state = self.shared.lock();
        while state.can_move() {
            state.step(true);
        }
    }

    /// How many descriptors there are for streams and reserves; accepts beyond fail with `EMFILE`. Default: no
    /// bound.
    pub fn set_descriptors_max(&self, descriptors_max: usize) {
        self.shared.lock().descriptors_max = descriptors_max;
    }

    /// Descriptors in use: streams of loops, and each platform's reserve.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        self.shared.lock().descriptors
    }

    /// Lets the next `count` accepts fail with the system's error `code`, without taking a newcomer.
    pub fn fail_accepts(&self, count: u32, code: i32) {
        self.shared.lock().accepts_to_fail = (count, code);
    }

    /// Lets the next `count` registrations of streams or listeners fail.
    pub fn fail_registrations(&self, count: u32) {
        self.shared.lock().registrations_to_fail = count;
    }

    /// Connections of which at least one side is open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().links.iter().flatten().count()
    }

    /// A number that stands for everything that has happened so far: equal in two runs only if they were the same.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.shared.lock().trace
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("seed", &self.seed())
            .finish_non_exhaustive()
    }
}
