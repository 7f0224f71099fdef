//! Hostile bytes for the decoder of tephra's requests, beside prost's; the checks stand in frame-proto's
//! test harness.
#![no_main]

#[path = "../../frame-proto/tests/harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::check_request(data));
