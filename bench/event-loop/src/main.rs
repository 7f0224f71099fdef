//! The event loop beside the same loop on bare mio: events of an echo server, and wake-ups through the mailbox.
//!
//! `cargo run --release` prints medians and ratios. The two sides take turns (A B A B …), so that whatever else runs
//! on the machine hits both alike, and the echo loop is measured in processor time of its own thread.

mod echo;
mod wakes;

use std::time::Duration;

/// Turns each side gets.
const ROUNDS: usize = 41;

/// The medians of two sides that take turns.
struct Medians {
    ours: f64,
    bare: f64,
    /// The median of the ratios of neighbouring turns: what is slow for a while is slow for both.
    ratio: f64,
}

/// Lets the sides take turns; each tells how long one operation took.
fn compare(mut ours: impl FnMut() -> f64, mut bare: impl FnMut() -> f64) -> Medians {
    // One for the caches.
    ours();
    bare();
    let mut times = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // Neither is always the first.
        if round % 2 == 0 {
            times.0.push(ours());
            times.1.push(bare());
        } else {
            times.1.push(bare());
            times.0.push(ours());
        }
    }
    let ratios = times.0.iter().zip(&times.1).map(|(ours, bare)| ours / bare);
    Medians {
        ratio: median(ratios.collect()),
        ours: median(times.0),
        bare: median(times.1),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Processor time of this thread so far.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn main() {
    for conns in [1, 16, 64] {
        let mut ours = echo::Ours::new(conns);
        let mut bare = echo::Bare::new(conns);
        let medians = compare(|| echo::measure(&mut ours), || echo::measure(&mut bare));
        println!(
            "echo, {conns:2} connections: {:6.0} ns an event, bare mio {:6.0} ns, ratio {:.3}; {:.0} events/s beside {:.0}",
            medians.ours,
            medians.bare,
            medians.ratio,
            1e9 / medians.ours,
            1e9 / medians.bare,
        );
    }
    let medians = compare(wakes::ours, wakes::bare);
    println!(
        "wake-up round trip: {:.0} ns, bare mio and a mutex {:.0} ns, ratio {:.3}; {:.0} round trips/s beside {:.0}",
        medians.ours,
        medians.bare,
        medians.ratio,
        1e9 / medians.ours,
        1e9 / medians.bare,
    );
    let medians = compare(wakes::ours_flood, wakes::bare_flood);
    println!(
        "messages of two threads to a busy loop: {:.0} ns each, bare mio and a mutex {:.0} ns, ratio {:.3}; {:.1} million/s beside {:.1}",
        medians.ours,
        medians.bare,
        medians.ratio,
        1e3 / medians.ours,
        1e3 / medians.bare,
    );
}
