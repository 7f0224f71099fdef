//! A buffer is lent, used for some bytes, and given back.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use pumice_conn_pool::BufferPool;

fn lend(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lend, fill, give back");
    let bytes = vec![1; 65_536];
    let mut pool = BufferPool::default();
    for (name, len) in [("100 B", 100), ("4 KiB", 4096), ("64 KiB", 65_536)] {
        group.bench_function(format!("BufferPool, {name}"), |bencher| {
            bencher.iter(|| {
                let mut buffer = pool.lend(len);
                buffer.extend_from_slice(&bytes[..len]);
                pool.give_back(buffer);
            });
        });
        group.bench_function(format!("BufferPool by spare, {name}"), |bencher| {
            bencher.iter(|| {
                let mut buffer = pool.lend(len);
                buffer.spare()[..len].copy_from_slice(&bytes[..len]);
                buffer.fill(len);
                pool.give_back(buffer);
            });
        });
        group.bench_function(format!("Vec, {name}"), |bencher| {
            bencher.iter(|| {
                let mut buffer = Vec::with_capacity(len);
                buffer.extend_from_slice(&bytes[..len]);
                buffer
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .sample_size(30)
        .without_plots();
    targets = lend
}
criterion_main!(benches);
