//! Every check that CI runs.
fn main() {}
