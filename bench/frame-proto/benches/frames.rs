//! An append decoded, a page and a batch of events encoded: straight, and through prost's messages.

use std::hint::black_box;

use bench_frame_proto::{append_request, decode_by_prost, encode_by_prost, events};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pumice_frame_proto::tephra::{EventsFrame, decode_request, put_sequenced};

fn decode(c: &mut Criterion) {
    for count in [1, 100] {
        let payload = append_request(&events(count));
        let mut group = c.benchmark_group(format!("decode an append of {count}"));
        group.throughput(Throughput::Elements(count));
        group.bench_function("decode_request", |b| {
            b.iter(|| decode_request(black_box(&payload)).expect("a request"))
        });
        group.bench_function("prost, then the engine's types", |b| {
            b.iter(|| decode_by_prost(black_box(&payload)))
        });
        group.finish();
    }
}

fn encode(c: &mut Criterion) {
    for count in [10, 1_024] {
        let events = events(count);
        let mut out = Vec::new();
        let mut encoded = Vec::new();
        for (position, event) in (1..).zip(&events) {
            put_sequenced(&mut encoded, position, event.as_ref());
        }
        let mut group = c.benchmark_group(format!("encode {count} events"));
        group.throughput(Throughput::Elements(count));
        group.bench_function("EventsFrame", |b| {
            b.iter(|| {
                out.clear();
                let mut frame = EventsFrame::begin(&mut out, 7);
                for (position, event) in (1..).zip(&events) {
                    frame.push(&mut out, position, black_box(event).as_ref());
                }
                frame.finish(&mut out)
            })
        });
        group.bench_function("EventsFrame of a shared batch", |b| {
            b.iter(|| {
                out.clear();
                let mut frame = EventsFrame::begin(&mut out, 7);
                frame.push_encoded(&mut out, black_box(&encoded));
                frame.finish(&mut out)
            })
        });
        group.bench_function("prost", |b| {
            b.iter(|| {
                out.clear();
                encode_by_prost(black_box(&events), &mut out);
            })
        });
        group.finish();
    }
}

criterion_group!(benches, decode, encode);
criterion_main!(benches);
