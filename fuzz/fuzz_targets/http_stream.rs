//! Hostile bytes for the parsers of whole connections; the checks stand in http-parse's test harness.
#![no_main]

#[path = "../../http-parse/tests/harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::check_stream(data));
