//! Time per request, beside others. Counts of instructions, which a busy machine doesn't change,
//! come from this package's binary.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pumice_http_parse_bench::{
    BROWSER, CHROME, CURL, SHORT, State,
    peers::{bare_httparse, hyper_connection, like_http_zig},
};

/// Requests that one of hyper's connections carries in a round.
const HYPER_ROUNDS: usize = 100;

fn heads(criterion: &mut Criterion) {
    let requests = [
        ("browser", BROWSER),
        ("chrome", CHROME),
        ("curl", CURL),
        ("short", SHORT),
    ];
    for (name, request) in requests {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(1));
        let mut state = State::default();
        group.bench_function("pumice", |bencher| {
            bencher.iter(|| state.whole(black_box(request)));
        });
        group.bench_function("pumice, 16-byte pieces", |bencher| {
            bencher.iter(|| state.pieces(black_box(request), 16));
        });
        group.bench_function("bare httparse", |bencher| {
            bencher.iter(|| bare_httparse(black_box(request)));
        });
        let mut own = request.to_vec();
        group.bench_function("like http.zig", |bencher| {
            bencher.iter(|| like_http_zig(black_box(&mut own)));
        });
        group.throughput(Throughput::Elements(HYPER_ROUNDS as u64));
        group.bench_function("hyper, 100 with their answers", |bencher| {
            bencher.iter(|| hyper_connection(black_box(request), HYPER_ROUNDS));
        });
        group.finish();
    }
}

criterion_group!(benches, heads);
criterion_main!(benches);
