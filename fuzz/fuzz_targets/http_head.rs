//! Hostile bytes for the parser of request heads; the checks stand in http-parse's test harness.
#![no_main]

#[path = "../../http-parse/tests/harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::check_head(data));
