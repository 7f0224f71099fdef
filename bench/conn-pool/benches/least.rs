//! The same measurements for a machine that has other things to do: many batches of 1 000 operations of
//! each candidate, and the time that only one batch in fifty was faster than.
//!
//! `cargo bench --bench least` prints nanoseconds per operation, one line for each job and size.

use std::hint::black_box;
use std::time::Instant;

use bench_conn_pool::{
    Clock, Conns, Order, Random, SIZES, boxes, checked, intrusive, ours, slab_deque,
};

const BATCH: usize = 1000;
/// Batches of one candidate after the other, so that what it needs is in the caches.
const BATCHES: usize = 200;
/// Turns of all candidates, so that a bad time doesn't hit one of them alone.
const TURNS: usize = 5;

type Job = (&'static str, Box<dyn FnMut()>);

fn main() {
    for len in SIZES {
        run(
            "move_to_back",
            len,
            vec![
                order::<ours::Order>("List", len),
                order::<ours::OrderApart>("List, links apart", len),
                order::<slab_deque::Order>("slab + VecDeque", len),
                order::<intrusive::Order>("intrusive-collections", len),
                order::<boxes::Order>("Box pointers", len),
            ],
        );
        for (name, stays) in [("touch", false), ("release, acquire, move, move", true)] {
            run(
                name,
                len,
                vec![
                    conns::<ours::Conns>("Pool", len, stays),
                    conns::<slab_deque::Conns>("slab + VecDeque", len, stays),
                    conns::<intrusive::Conns>("intrusive-collections", len, stays),
                    conns::<boxes::Conns>("Box pointers", len, stays),
                    conns::<checked::Conns>("Box pointers, checked keys", len, stays),
                ],
            );
        }
    }
}

fn order<T: Order + 'static>(name: &'static str, len: usize) -> Job {
    let mut order = T::new(len);
    let mut random = Random::new();
    for _ in 0..4 * len {
        order.move_to_back(random.below(len));
    }
    let batch = move || {
        for _ in 0..BATCH {
            black_box(&mut order).move_to_back(random.below(len));
        }
    };
    (name, Box::new(batch))
}

fn conns<T: Conns + 'static>(name: &'static str, len: usize, stays: bool) -> Job {
    let start = Instant::now();
    let mut conns = T::new(len, start);
    let mut clock = Clock(start);
    let mut random = Random::new();
    for _ in 0..4 * len {
        conns.touch(random.below(len), random.below(2), clock.tick());
    }
    let batch = move || {
        for nth in 0..BATCH {
            let conn = random.below(len);
            if stays {
                black_box(&mut conns).replace(conn, clock.tick());
                conns.touch(conn, 1, clock.tick());
            } else {
                black_box(&mut conns).touch(conn, nth % 2, clock.tick());
            }
        }
    };
    (name, Box::new(batch))
}

fn run(job: &str, len: usize, mut candidates: Vec<Job>) {
    let mut times = vec![Vec::new(); candidates.len()];
    for _ in 0..TURNS {
        for ((_, batch), times) in candidates.iter_mut().zip(&mut times) {
            for _ in 0..BATCHES {
                let start = Instant::now();
                batch();
                times.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
            }
        }
    }
    print!("{job}, {len}:");
    for ((name, _), times) in candidates.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        print!("  {name} {:.1}", times[times.len() / 50]);
    }
    println!();
}
