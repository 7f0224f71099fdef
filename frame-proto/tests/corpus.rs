//! Replays the fuzzers' corpora through the checks that they were found with.

use std::fs;
use std::path::Path;

mod harness;

fn replay(folder: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder);
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|extension| extension == "bin") {
            check(&fs::read(path).expect("bytes"));
            count += 1;
        }
    }
    assert!(count > 0, "the corpus is empty");
}

#[test]
fn the_corpus_of_frames_passes() {
    replay("corpus/frames", harness::check_frames);
}

#[test]
fn the_corpus_of_requests_passes() {
    replay("corpus/tephra_request", harness::check_request);
}

/// The vectors are seeds too.
#[test]
fn the_vectors_pass_the_fuzzers_checks() {
    replay("vectors", harness::check_request);
    replay("vectors", harness::check_frames);
}
