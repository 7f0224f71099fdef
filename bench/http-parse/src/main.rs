//! Counts instructions per request: `counts` runs itself under valgrind once a case.
//!
//! Each case is run for two numbers of rounds; the difference, over the difference of rounds, is
//! what one round costs. Unlike times, these counts are the same on a busy machine.

use std::{
    env,
    hint::black_box,
    process::{Command, ExitCode},
};

use pumice_http_parse_bench::{
    BROWSER, CHROME, CURL, SHORT, State,
    peers::{bare_httparse, bare_httparse_uninit, hyper_connection, like_http_zig},
};

const FEW: u64 = 100;
const MANY: u64 = 1_100;

type Case = fn(&mut State, &mut Inputs) -> usize;

const CASES: &[(&str, Case)] = &[
    ("browser: bare httparse", |_, _| {
        bare_httparse(black_box(BROWSER))
    }),
    ("browser: bare httparse, uninit", |_, _| {
        bare_httparse_uninit(black_box(BROWSER))
    }),
    ("browser: like http.zig", |_, inputs| {
        like_http_zig(black_box(&mut inputs.browser))
    }),
    ("browser: hyper, with its answer", |_, _| hyper(BROWSER)),
    ("browser: pumice", |state, _| {
        state.whole(black_box(BROWSER))
    }),
    ("browser: pumice, 64-byte pieces", |state, _| {
        state.pieces(black_box(BROWSER), 64)
    }),
    ("browser: pumice, 16-byte pieces", |state, _| {
        state.pieces(black_box(BROWSER), 16)
    }),
    ("browser: pumice, byte by byte", |state, _| {
        state.pieces(black_box(BROWSER), 1)
    }),
    ("chrome: bare httparse", |_, _| {
        bare_httparse(black_box(CHROME))
    }),
    ("chrome: pumice", |state, _| state.whole(black_box(CHROME))),
    ("chrome: pumice, 16-byte pieces", |state, _| {
        state.pieces(black_box(CHROME), 16)
    }),
    ("curl: bare httparse", |_, _| bare_httparse(black_box(CURL))),
    ("curl: pumice", |state, _| state.whole(black_box(CURL))),
    ("short: bare httparse", |_, _| {
        bare_httparse(black_box(SHORT))
    }),
    ("short: hyper, with its answer", |_, _| hyper(SHORT)),
    ("short: pumice", |state, _| state.whole(black_box(SHORT))),
    ("chunks: 1 000 of 1 byte", |state, inputs| {
        state.body(black_box(&inputs.small_chunks))
    }),
    ("chunks: 2 000 of 1 byte", |state, inputs| {
        state.body(black_box(&inputs.more_chunks))
    }),
    ("chunks: 10 of 4 096 bytes", |state, inputs| {
        state.body(black_box(&inputs.large_chunks))
    }),
];

struct Inputs {
    browser: Vec<u8>,
    small_chunks: Vec<u8>,
    more_chunks: Vec<u8>,
    large_chunks: Vec<u8>,
}

/// Requests that one connection carries, so that what it costs to open doesn't count.
const HYPER_ROUNDS: usize = 100;

fn hyper(request: &[u8]) -> usize {
    hyper_connection(black_box(request), HYPER_ROUNDS);
    0
}

fn chunked(count: usize, size: usize) -> Vec<u8> {
    let mut request = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..count {
        request.extend_from_slice(format!("{size:x}\r\n{}\r\n", "x".repeat(size)).as_bytes());
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().collect();
    if let [_, index, rounds] = &args[..] {
        run(
            index.parse().expect("a case"),
            rounds.parse().expect("a number"),
        );
        return ExitCode::SUCCESS;
    }
    for (index, (name, _)) in CASES.iter().enumerate() {
        if args
            .get(1)
            .is_some_and(|word| !name.contains(word.as_str()))
        {
            continue;
        }
        let (Some(few), Some(many)) = (count(index, FEW), count(index, MANY)) else {
            eprintln!("valgrind doesn't run here: install it to count instructions");
            return ExitCode::FAILURE;
        };
        let mut rounds = MANY - FEW;
        if name.contains("hyper") {
            rounds *= HYPER_ROUNDS as u64;
        }
        println!("{name:36} {:>8}", (many - few) / rounds);
    }
    ExitCode::SUCCESS
}

fn run(index: usize, rounds: u64) {
    let mut state = State::default();
    let mut inputs = Inputs {
        browser: BROWSER.to_vec(),
        small_chunks: chunked(1_000, 1),
        more_chunks: chunked(2_000, 1),
        large_chunks: chunked(10, 4_096),
    };
    for _ in 0..rounds {
        black_box((CASES[index].1)(&mut state, &mut inputs));
    }
}

/// Instructions that the case takes in all, as callgrind counts them.
fn count(index: usize, rounds: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe().ok()?)
        .args([index.to_string(), rounds.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let (_, rest) = text.split_once("Collected : ")?;
    rest.split_whitespace().next()?.parse().ok()
}
