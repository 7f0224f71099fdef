//! A server under test: pumice's binary, or any other that speaks tephra's wire protocol.
//!
//! Two environment variables choose it:
//!
//! - `PUMICE_BIN`: the path of pumice's binary. It is started with `--listen 127.0.0.1:0 --data-dir DIR`.
//! - `INTEROP_SERVER`: a command line for another server, words parted by spaces, `{dir}` standing for
//!   a fresh data directory: `tephra-server --bind 127.0.0.1:0 --data-dir {dir}`. It is asked first.
//!
//! Either way the server says on its standard output where it listens. The same tests with both
//! servers, and the same results: that is the point.

mod values;
pub mod wire;

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub use values::{by_tags, by_types, event, plain, position_of, refusal, unless};

/// A running server with a data directory of its own. Dropped, it is killed.
#[derive(Debug)]
pub struct Server {
    child: Child,
    addr: SocketAddr,
    dir: TempDir,
}

impl Server {
    /// Starts the server and waits until it listens.
    ///
    /// # Panics
    /// If no server is configured, or it doesn't start.
    #[must_use]
    pub fn start() -> Self {
        Self::start_in(TempDir::new().expect("a temporary directory"))
    }

    /// Whether it is pumice, and not another server to compare with.
    #[must_use]
    pub fn is_pumice() -> bool {
        env::var_os("INTEROP_SERVER").is_none()
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops it by SIGTERM and waits for its end.
    ///
    /// # Panics
    /// If it can't be signalled or waited for.
    pub fn stop(mut self) -> ExitStatus {
        self.terminate()
    }

    /// Stops it by SIGTERM and starts it again on the same data.
    ///
    /// # Panics
    /// As `stop` and `start`.
    #[must_use]
    pub fn restart(mut self) -> Self {
        self.terminate();
        let dir = std::mem::replace(&mut self.dir, TempDir::new().expect("a directory"));
        Self::start_in(dir)
    }

    fn start_in(dir: TempDir) -> Self {
        let mut child = command(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        let addr = loop {
            line.clear();
            let read = stdout.read_line(&mut line).expect("text");
            assert!(read > 0, "the server ended before it listened");
            if let Some(addr) = listening(&line) {
                break addr;
            }
        };
        // Nobody reads on, but a full pipe must not stop the server.
        thread::spawn(move || stdout.read_to_end(&mut Vec::new()));
        Self { child, addr, dir }
    }

    fn terminate(&mut self) -> ExitStatus {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), Signal::TERM).expect("the server still runs");
        self.child.wait().expect("the server is a child")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, or it must.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(dir: &Path) -> Command {
    if let Ok(line) = env::var("INTEROP_SERVER") {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().expect("INTEROP_SERVER names a program"));
        for word in words {
            match word {
                "{dir}" => command.arg(dir),
                word => command.arg(word),
            };
        }
        return command;
    }
    let binary = env::var_os("PUMICE_BIN")
        .expect("PUMICE_BIN (or INTEROP_SERVER) names the server: run `cargo xtask interop`");
    let mut command = Command::new(binary);
    command
        .args(["--listen", "127.0.0.1:0", "--data-dir"])
        .arg(dir);
    command
}

/// The address in a line that says where the server listens: `listening on 127.0.0.1:PORT`, with or
/// without a scheme, or tephra-server's coloured log line.
fn listening(line: &str) -> Option<SocketAddr> {
    const HOST: &str = "127.0.0.1:";
    line.find("listening")?;
    let addr = &line[line.find(HOST)?..];
    let digits = addr[HOST.len()..].bytes().take_while(u8::is_ascii_digit);
    addr[..HOST.len() + digits.count()].parse().ok()
}
