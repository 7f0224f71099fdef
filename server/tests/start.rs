//! What the binary says when it can't start, and that it does no harm then.
#![cfg(feature = "store")]

use std::process::Stdio;

use support::{Binary, command};

mod support;

/// Runs the binary with these flags as well; it must end by itself. Returns its exit code and what it said.
#[track_caller]
fn run(dir: &std::path::Path, flags: &[&str]) -> (Option<i32>, String) {
    let output = command(dir)
        .args(flags)
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts");
    assert_eq!(output.stdout, b"", "it doesn't say that it listens");
    let text = String::from_utf8(output.stderr).expect("text");
    (output.status.code(), text)
}

#[test]
fn a_second_server_on_one_data_directory_is_refused_and_the_first_goes_on() {
    let binary = Binary::start();
    let mut client = binary.connect();
    let append = r#"{"events":[{"type":"T"}]}"#;
    assert_eq!(client.post("/v1/append", append).status, 200);
    let data_dir = binary.data_dir();
    let (code, text) = run(data_dir.parent().expect("it lies in a directory"), &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&data_dir.display().to_string()), "{text}");
    assert!(text.contains("--data-dir"), "{text}");
    assert_eq!(
        client.post("/v1/append", append).text(),
        "{\"first\":2,\"last\":2}\n"
    );
}

#[test]
fn a_taken_port_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = taken.local_addr().expect("it is bound").to_string();
    let dir = tempfile::tempdir().expect("a temporary directory");
    for workers in ["1", "2"] {
        let (code, text) = run(dir.path(), &["--listen", &addr, "--workers", workers]);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(&addr), "{text}");
    }
}

#[test]
fn flags_that_cannot_be_read_are_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (flags, name) in [
        (&["--listen", "nowhere"][..], "nowhere"),
        (&["--workers", "-1"], "-1"),
        (&["--workers", "100000"], "workers"),
        (&["--lissten", "127.0.0.1:0"], "--lissten"),
        (&["--log", "pumice=loudly"], "log filter"),
    ] {
        let (code, text) = run(dir.path(), flags);
        assert_ne!(code, Some(0), "{flags:?}");
        assert!(code.is_some(), "{flags:?} ended it by a signal");
        assert!(text.contains(name), "{name} in {text}");
    }
}

#[test]
fn all_addresses_serve_and_are_told_in_order() {
    use std::io::{BufRead, BufReader};
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut child = command(dir.path())
        .args([
            "--listen",
            "http://127.0.0.1:0",
            "--listen",
            "frames://127.0.0.1:0",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let addrs: Vec<std::net::SocketAddr> = lines
        .take(3)
        .map(|line| {
            let line = line.expect("a line of text");
            let addr = line.strip_prefix("listening on ").expect("an address");
            addr.parse().expect("an address")
        })
        .collect();
    for &addr in &addrs[..2] {
        assert_eq!(
            support::Client::connect(addr).get("/healthz").text(),
            "ok\n"
        );
    }
    // What isn't a frame is none, though it is a request elsewhere: its first bytes are a length, and too long a one.
    let mut client = support::Client::connect(addrs[2]);
    client.send(support::get("/healthz"));
    let answer = client.read_to_end();
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    child.kill().expect("it is there");
    child.wait().expect("it is ours");
}

#[test]
fn the_soft_limit_on_descriptors_is_raised_to_the_hard_one() {
    let binary = Binary::start_limited("-S -n 256");
    let limits =
        std::fs::read_to_string(format!("/proc/{}/limits", binary.pid())).expect("it runs");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .expect("a line for each limit");
    let limits: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(limits[0], limits[1], "{line}");
    assert_ne!(limits[0], "256");
}
