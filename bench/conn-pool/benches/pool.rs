//! A connection at random gets a later deadline; one goes and another one comes.

use std::time::{Duration, Instant};

use bench_conn_pool::{Clock, Conns, Random, SIZES, boxes, checked, intrusive, ours, slab_deque};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main};

/// Calls `step` with each table and each number of connections.
fn measure(criterion: &mut Criterion, name: &str, step: Step) {
    let mut group = criterion.benchmark_group(name);
    measure_one::<ours::Conns>(&mut group, "Pool", step);
    measure_one::<slab_deque::Conns>(&mut group, "slab + VecDeque", step);
    measure_one::<intrusive::Conns>(&mut group, "intrusive-collections", step);
    measure_one::<boxes::Conns>(&mut group, "Box pointers", step);
    measure_one::<checked::Conns>(&mut group, "Box pointers, checked keys", step);
}

#[derive(Clone, Copy)]
enum Step {
    /// As for each request: one list to the other, which is one move.
    Touch,
    /// As for each connection: acquire, move to the first list, to the second, release.
    Stay,
}

fn measure_one<T: Conns>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, step: Step) {
    for len in SIZES {
        let start = Instant::now();
        let mut conns = T::new(len, start);
        let mut clock = Clock(start);
        let mut random = Random::new();
        for _ in 0..4 * len {
            conns.touch(random.below(len), random.below(2), clock.tick());
        }
        group.bench_function(BenchmarkId::new(name, len), |bencher| match step {
            Step::Touch => {
                let mut list = 0;
                bencher.iter(|| {
                    list ^= 1;
                    conns.touch(random.below(len), list, clock.tick());
                });
            }
            Step::Stay => bencher.iter(|| {
                let conn = random.below(len);
                conns.replace(conn, clock.tick());
                conns.touch(conn, 1, clock.tick());
            }),
        });
    }
}

fn touch(criterion: &mut Criterion) {
    measure(criterion, "touch", Step::Touch);
}

fn stay(criterion: &mut Criterion) {
    measure(criterion, "release, acquire, move, move", Step::Stay);
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .sample_size(30)
        .without_plots();
    targets = touch, stay
}
criterion_main!(benches);
