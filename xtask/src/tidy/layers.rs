//! Rules about who touches the world: code that takes bytes and `now` from its caller, and code that holds the sockets.

use super::{Finding, files::File, source};

/// Code that never touches a socket, a clock, a thread, a global or the environment, so that its tests need none.
const SANS_IO: [&str; 5] = [
    "conn-pool/src/",
    "http-parse/src/",
    "frame-proto/src/",
    "server/src/proto/",
    "server/src/proto.rs",
];

/// What such code may not name. `core::net` holds the address types alone, and stays open to it.
const OUTSIDE: [&str; 16] = [
    "std::net",
    "std::os",
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "mio",
    "socket2",
    "Instant::now",
    ".elapsed()",
    "SystemTime",
    "thread_local!",
    "LazyLock",
    "OnceLock",
    "static mut",
    "println!",
];

/// Code of the server that may hold sockets: `NAME.rs` and the folder `NAME/` in `server/src`. Everything else works on
/// bytes and keys, or a connection could be written to behind its worker's back.
const SOCKET_HOLDERS: [&str; 3] = [
    // Binds the listeners and hands them to the workers.
    "server", // Accepts, registers and closes.
    "worker", // Reads and writes.
    "conn",
];

/// What holding a socket looks like.
const SOCKETS: [&str; 7] = [
    "mio",
    "socket2",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "UnixListener",
];

/// Applies the rules to all files; tests are free of them.
pub(super) fn check(files: &[File], findings: &mut Vec<Finding>) {
    let sources: Vec<Source<'_>> = files.iter().filter_map(Source::new).collect();
    let tests: Vec<String> = sources.iter().flat_map(Source::test_files).collect();
    for source in &sources {
        let is_test = source.path.ends_with("/tests.rs")
            || tests.iter().any(|test| {
                let rest = source.path.strip_prefix(test.as_str());
                rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            });
        if is_test {
            continue;
        }
        if SANS_IO.iter().any(|start| source.path.starts_with(start)) {
            let why = "here bytes and `now` come in as arguments";
            source.refuse(&OUTSIDE, why, findings);
        } else if let Some(rest) = source.path.strip_prefix("server/src/")
            && !SOCKET_HOLDERS.contains(&rest.split(['/', '.']).next().unwrap_or_default())
        {
            let why = "sockets belong to the files that xtask's `SOCKET_HOLDERS` lists";
            source.refuse(&SOCKETS, why, findings);
        }
    }
}

/// A Rust file, looked at as code.
struct Source<'a> {
    path: &'a str,
    /// Without comments, strings and tests.
    code: String,
    /// The modules that exist for tests only and have files of their own.
    test_modules: Vec<String>,
}

impl<'a> Source<'a> {
    fn new(file: &'a File) -> Option<Self> {
        if !file.path.ends_with(".rs") {
            return None;
        }
        let (code, test_modules) = source::without_tests(&source::code_only(&file.text));
        Some(Self {
            path: &file.path,
            code,
            test_modules,
        })
    }

    /// The paths of its test modules, without `.rs` or what follows in a folder.
    fn test_files(&self) -> impl Iterator<Item = String> {
        let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", self.path));
        let folder = match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
            _ => self.path.trim_end_matches(".rs").to_owned(),
        };
        let paths = self
            .test_modules
            .iter()
            .map(|module| format!("{folder}/{module}"));
        paths.collect::<Vec<_>>().into_iter()
    }

    /// Reports each line that names one of `words`, also by an import in braces.
    fn refuse(&self, words: &[&str], why: &str, findings: &mut Vec<Finding>) {
        let mut seen = Vec::new();
        let lines = self.code.lines().enumerate();
        let lines = lines.map(|(index, line)| (index + 1, line.to_owned()));
        for (number, text) in lines.chain(source::imports(&self.code)) {
            for word in words {
                // A crate's name alone is a word of any text; with `::` behind it, it is that crate.
                let is_crate = matches!(*word, "mio" | "socket2");
                let needle = if is_crate {
                    format!("{word}::")
                } else {
                    (*word).to_owned()
                };
                if source::has_word(&text, &needle) && !seen.contains(&(number, word)) {
                    seen.push((number, word));
                    findings.push(Finding::new(self.path, number, format!("`{word}`: {why}")));
                }
            }
        }
    }
}
