//! Replays the fuzzers' corpora through the checks that they were found with.

use std::{fs, path::Path};

mod harness;

fn replay(folder: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(folder);
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        check(&fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "the corpus is empty");
}

#[test]
fn the_corpus_of_heads_passes() {
    replay("head", harness::check_head);
}

#[test]
fn the_corpus_of_bodies_passes() {
    replay("body", harness::check_body);
}

#[test]
fn the_corpus_of_connections_passes() {
    replay("stream", harness::check_stream);
}

/// The vectors are seeds too: each is checked with roomy and with tight limits.
#[test]
fn the_vectors_pass_the_fuzzers_checks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "http")
        {
            let bytes = fs::read(path).unwrap();
            for control in [0x05, 0x85] {
                harness::check_stream(&[&[control][..], &bytes].concat());
                harness::check_head(&[&[control][..], &bytes].concat());
            }
        }
    }
}
