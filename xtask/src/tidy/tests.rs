//! Each rule about files is shown a violation, and something that only looks like one.

use super::{Finding, files::File, layers, source, text};

fn in_text(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    text::check(path, text, &mut findings);
    findings.iter().map(ToString::to_string).collect()
}

fn in_layers(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<File> = files
        .iter()
        .map(|(path, text)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        })
        .collect();
    let mut findings: Vec<Finding> = Vec::new();
    layers::check(&files, &mut findings);
    findings
        .iter()
        .map(|finding| format!("{}:{}", finding.path, finding.line))
        .collect()
}

#[test]
fn a_file_without_its_subject_on_top_is_found() {
    for bad in [
        "",
        "use std::io;\n",
        "// A list.\n",
        "//!\n//! A list.\n",
        "\n//! A list.\n",
        "//! \n",
    ] {
        let told = in_text("conn-pool/src/list.rs", bad);
        assert!(
            told[0].starts_with("conn-pool/src/list.rs:1: "),
            "{bad:?}: {told:?}"
        );
    }
    for good in [
        "//! A list.\n",
        "#![doc = include_str!(\"../README.md\")]\n",
    ] {
        assert!(
            in_text("conn-pool/src/list.rs", good).is_empty(),
            "{good:?}"
        );
    }
    assert!(in_text("README.md", "# pumice\n").is_empty());
}

#[test]
fn a_file_of_601_lines_is_found_and_one_of_600_is_not() {
    let lines = |count: usize| format!("//! Much.\n{}", "\n".repeat(count - 1));
    assert!(in_text("server/src/a.rs", &lines(600)).is_empty());
    assert_eq!(
        in_text("server/src/a.rs", &lines(601)),
        ["server/src/a.rs: 601 lines, 600 at most: look for the second subject"]
    );
    assert!(in_text(crate::codegen::GENERATED, &lines(601)).is_empty());
    assert!(in_text("server/tests/vectors/long.http", &lines(601)).is_empty());
}

#[test]
fn tabs_and_spaces_at_the_end_are_found() {
    assert_eq!(in_text("a.md", "one\ttwo\n"), ["a.md:1: a tab"]);
    assert_eq!(
        in_text("a.toml", "a = 1\nb = 2 \n"),
        ["a.toml:2: white space at the end"]
    );
    assert_eq!(in_text("a.md", "a\r\n"), ["a.md:1: white space at the end"]);
    assert!(in_text("tests/vectors/a.http", "GET / HTTP/1.1\r\nx:\ty \r\n").is_empty());
}

#[test]
fn an_open_end_needs_an_issue() {
    for word in [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ] {
        let alone = format!("//! A list.\n// {word}: make it shorter.\n");
        assert_eq!(in_text("a.rs", &alone).len(), 1, "{alone}");
        let hash = format!("//! A list.\n// {word}: no # at all.\n");
        assert_eq!(in_text("a.rs", &hash).len(), 1, "{hash}");
        let with_issue = format!("//! A list.\n// {word}(#12): make it shorter.\n");
        assert!(in_text("a.rs", &with_issue).is_empty(), "{with_issue}");
        let longer = format!("//! A list.\nconst {word}S: u32 = 1;\n");
        assert!(in_text("a.rs", &longer).is_empty(), "{longer}");
    }
}

#[test]
fn unfinished_code_is_found() {
    for bad in [
        "fn f() { todo!() }",
        "fn f() { unimplemented!(\"x\") }",
        "#[ignore = \"slow\"]\nfn f() {}",
    ] {
        assert_eq!(
            in_text("a.rs", &format!("//! A list.\n{bad}\n")).len(),
            1,
            "{bad}"
        );
    }
    assert!(
        in_text(
            "a.rs",
            "//! No `todo!()` here.\nconst A: &str = \"#[ignore]\";\n"
        )
        .is_empty()
    );
}

#[test]
fn a_path_of_one_machine_is_found() {
    let folder = concat!("/wo", "rk/");
    assert_eq!(in_text("a.md", &format!("see {folder}main\n")).len(), 1);
    assert_eq!(
        in_text(".ci/run", &format!("cd {}\n", concat!("/tmp/", "target-x"))).len(),
        1
    );
    assert!(in_text("a.md", &format!("see docs{folder}main\n")).is_empty());
}

#[test]
fn what_touches_the_world_is_found_in_code_that_must_not() {
    for bad in [
        "use std::net::IpAddr;",
        "use std::{io, net::{IpAddr, TcpStream}};",
        "use std::{\n    io,\n    thread,\n};",
        "fn f() { std::thread::yield_now() }",
        "fn f() -> Instant { Instant::now() }",
        "fn f(a: Instant) -> Duration { a.elapsed() }",
        "use std::time::SystemTime;",
        "fn f() { let _ = std::env::var(\"A\"); }",
        "use mio::Token;",
        "static mut A: u32 = 0;",
    ] {
        for path in [
            "conn-pool/src/pool.rs",
            "http-parse/src/head.rs",
            "frame-proto/src/lib.rs",
            "server/src/proto/http.rs",
        ] {
            assert_eq!(
                in_layers(&[(path, &format!("//! A.\n{bad}\n"))]).len(),
                1,
                "{path}: {bad}"
            );
        }
        assert!(
            in_layers(&[("event-loop/src/lib.rs", bad)]).is_empty(),
            "{bad}"
        );
    }
}

#[test]
fn what_only_looks_like_touching_the_world_is_let_through() {
    let good = r##"
        //! Takes what `Instant::now()` gave. /* std::net */
        use std::{io, time::Instant};
        /* std::thread /* nested */ std::env */
        const A: &str = "std::net::TcpStream \" Instant::now()";
        const B: &str = r#"a " std::net "#;
        const C: [char; 3] = ['"', '\'', '\\'];
        fn f<'a>(a: &'a str, now: Instant) -> &'a str { a }
        mod my_std { pub(crate) mod network {} }
    "##;
    assert!(in_layers(&[("http-parse/src/lib.rs", good)]).is_empty());
}

#[test]
fn a_violation_behind_strings_and_tests_is_found_on_its_line() {
    let bad = "//! A.\nconst A: char = '\"';\n#[cfg(test)]\nmod tests {\n    fn f() {}\n}\nuse std::net;\n";
    assert_eq!(
        in_layers(&[("conn-pool/src/a.rs", bad)]),
        ["conn-pool/src/a.rs:7"]
    );
}

#[test]
fn tests_of_such_code_may_look_at_the_clock() {
    let inline = "//! A.\n#[cfg(test)]\nmod tests {\n    fn f(_: [u8; 3]) { Instant::now(); }\n}\n";
    assert!(in_layers(&[("conn-pool/src/pool.rs", inline)]).is_empty());
    let clock = "fn f() { Instant::now(); }\n";
    assert!(in_layers(&[("conn-pool/src/pool/tests.rs", clock)]).is_empty());
    let declared = "//! A.\n#[cfg(test)]\nmod laws;\nmod pool;\n";
    let found = in_layers(&[
        ("conn-pool/src/lib.rs", declared),
        ("conn-pool/src/laws.rs", clock),
        ("conn-pool/src/laws/model.rs", clock),
        ("conn-pool/src/pool.rs", clock),
    ]);
    assert_eq!(found, ["conn-pool/src/pool.rs:1"]);
}

#[test]
fn sockets_are_found_outside_the_files_that_hold_them() {
    let bad = "//! A.\nuse std::net::TcpStream;\n";
    for holder in [
        "server/src/worker.rs",
        "server/src/worker/accept.rs",
        "server/src/conn.rs",
    ] {
        assert!(in_layers(&[(holder, bad)]).is_empty(), "{holder}");
    }
    for other in [
        "server/src/outbox.rs",
        "server/src/store/local.rs",
        "server/src/connect.rs",
    ] {
        assert_eq!(in_layers(&[(other, bad)]), [format!("{other}:2")]);
    }
    assert!(
        in_layers(&[(
            "server/src/config.rs",
            "//! A.\nuse std::net::SocketAddr;\n"
        )])
        .is_empty()
    );
}

#[test]
fn imports_in_braces_are_written_out() {
    let code = "use a::{b, c::{self, d as e}};\npub use f;\nfn reuse (x: u8) {}\n";
    let paths: Vec<String> = source::imports(code)
        .into_iter()
        .map(|(_, path)| path)
        .collect();
    assert_eq!(paths, ["a::b", "a::c::self", "a::c::dase", "f"]);
}
