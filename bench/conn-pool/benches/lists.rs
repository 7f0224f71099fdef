//! One node at random becomes the last of its list.

use std::time::Duration;

use bench_conn_pool::{Order, Random, SIZES, boxes, intrusive, ours, slab_deque};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main};

fn order<T: Order>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str) {
    for len in SIZES {
        let mut order = T::new(len);
        let mut random = Random::new();
        // Out of the order of addresses that they were made in.
        for _ in 0..4 * len {
            order.move_to_back(random.below(len));
        }
        group.bench_function(BenchmarkId::new(name, len), |bencher| {
            bencher.iter(|| order.move_to_back(random.below(len)));
        });
    }
}

fn move_to_back(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("move_to_back");
    order::<ours::Order>(&mut group, "List");
    order::<ours::OrderApart>(&mut group, "List, links apart");
    order::<slab_deque::Order>(&mut group, "slab + VecDeque");
    order::<intrusive::Order>(&mut group, "intrusive-collections");
    order::<boxes::Order>(&mut group, "Box pointers");
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .sample_size(30)
        .without_plots();
    targets = move_to_back
}
criterion_main!(benches);
