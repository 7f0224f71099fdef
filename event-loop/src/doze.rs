//! Whether a loop sleeps, so that a wake-up costs a system call only when it has to.
//!
//! ```text
//!            doze                    wake (system call)
//!   Awake ──────────▶ Dozing ──────────────────────────▶ Called
//!     ▲ │                │ rouse                            │
//!     │ └────────────────┼──────────── wake ──────────────▶ │
//!     └──────────────────┴──────────── rouse ───────────────┘
//! ```
//!
//! Invariant: whoever makes work visible and then calls `wake` is seen by the loop, which looks for work after each
//! `rouse`. Either `wake` came before `rouse`, then the loop's look comes after the work was made visible; or it came
//! after, then the state is `Called` at the next `doze`, which refuses; or it came after that `doze`, then `wake` has
//! found `Dozing` and makes the system call. All three are read-modify-writes of one atomic, so there is no fourth
//! order.

use crate::mailbox::sync::{AtomicU8, Ordering};

/// The loop runs, and will look for work before it sleeps.
const AWAKE: u8 = 0;
/// The loop sleeps, or is about to: it takes a system call to wake it.
const DOZING: u8 = 1;
/// Somebody has called; the loop won't sleep before it has looked for work.
const CALLED: u8 = 2;

/// The state between one loop and all who wake it.
#[derive(Debug)]
pub(crate) struct Doze(AtomicU8);

impl Doze {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(AWAKE))
    }

    /// The loop is about to sleep. `false`: it was called in the meantime and must not.
    pub(crate) fn doze(&self) -> bool {
        self.0
            .compare_exchange(AWAKE, DOZING, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The loop is awake, and will look for work after this.
    pub(crate) fn rouse(&self) {
        // A swap, not a store: it must also acquire what the one who called has made visible.
        self.0.swap(AWAKE, Ordering::AcqRel);
    }

    /// Somebody calls. `true`: the loop sleeps, and the caller has to wake it by the system.
    pub(crate) fn call(&self) -> bool {
        self.0.swap(CALLED, Ordering::AcqRel) == DOZING
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_call_before_sleep_keeps_the_loop_awake_without_a_system_call() {
        let doze = Doze::new();
        assert!(!doze.call());
        assert!(!doze.doze());
        doze.rouse();
        assert!(doze.doze());
    }

    #[test]
    fn only_the_first_call_wakes_a_sleeper() {
        let doze = Doze::new();
        assert!(doze.doze());
        assert!(doze.call());
        assert!(!doze.call());
        doze.rouse();
        assert!(!doze.call());
    }
}
