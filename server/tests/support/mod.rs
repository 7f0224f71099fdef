//! What the end-to-end tests share: servers in this process and as a process of their own, and a client that sends
//! exact bytes and takes answers apart itself.
//!
//! Everything waits for at most [`PATIENCE`], far longer than anything takes, and then fails: a test never hangs, and a
//! busy machine makes none fail.

#![allow(dead_code, reason = "each file of tests uses a part of this")]
#![allow(unused_imports, reason = "each file of tests uses a part of this")]

use std::thread;
use std::time::{Duration, Instant};

mod app;
mod client;
#[cfg(feature = "store")]
mod process;
mod serve;
#[cfg(feature = "store")]
mod sse;
#[cfg(feature = "store")]
pub(crate) mod store;

pub(crate) use app::{Gate, app, both};
pub(crate) use client::{Answer, Client, get, post};
#[cfg(feature = "store")]
pub(crate) use process::{Binary, command};
pub(crate) use serve::{TestServer, any_port, config};
#[cfg(feature = "store")]
pub(crate) use sse::{EventStream, Sse};

/// How long anything may take before its test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Asks `holds` again and again until it says yes: for what a server tells only by its counters.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut yields = 100;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        if yields > 0 {
            yields -= 1;
            thread::yield_now();
        } else {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The threads of a process, by their ids in `/proc`.
pub(crate) fn threads_of(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .expect("the process runs")
        .count()
}

/// The open descriptors of a process.
pub(crate) fn descriptors_of(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("the process runs")
        .count()
}

/// The time that a thread has spent on a processor; `task` is what `/proc/thread-self` points at in that thread.
pub(crate) fn cpu_time(task: &str) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{task}/schedstat")).expect("the thread runs");
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("a number of nanoseconds"))
}

/// Bytes that look like no others, so that a shift or a mix-up shows: noise, with a number every so often.
pub(crate) fn pattern(len: usize, seed: u32) -> Vec<u8> {
    let noise = noise(len.min(4_096), seed);
    let mut bytes = Vec::with_capacity(len + noise.len() + 8);
    let mut block = 0_u64;
    while bytes.len() < len {
        bytes.extend_from_slice(&noise);
        bytes.extend_from_slice(&block.to_le_bytes());
        block += 1;
    }
    bytes.truncate(len);
    bytes
}

fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    (0..len).map(|_| next() as u8).collect()
}
