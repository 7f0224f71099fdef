//! Hostile bytes for the frame decoder; the checks stand in frame-proto's test harness.
#![no_main]

#[path = "../../frame-proto/tests/harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::check_frames(data));
