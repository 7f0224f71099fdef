//! The real binary, as a process of its own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{Client, PATIENCE};

/// The running binary, with a data directory of its own. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Binary {
    child: Child,
    addr: SocketAddr,
    /// Kept open, so that the binary never writes to a closed pipe.
    _stdout: BufReader<ChildStdout>,
    dir: TempDir,
}

impl Binary {
    /// Starts it in a new data directory.
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::start_in(TempDir::new().expect("a temporary directory"), &[])
    }

    /// Starts it where no process may have more than `count` descriptors open.
    #[track_caller]
    pub(crate) fn start_with_descriptors(count: usize) -> Self {
        Self::start_limited(&format!("-n {count}"))
    }

    /// Starts it under what the shell's `ulimit` makes of `limit`.
    #[track_caller]
    pub(crate) fn start_limited(limit: &str) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let plain = command(dir.path());
        let mut limited = Command::new("sh");
        limited
            .args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")])
            .arg(plain.get_program())
            .args(plain.get_args());
        Self::spawn(dir, limited)
    }

    /// Starts it on the data in `dir`, with further flags, and waits until it listens.
    #[track_caller]
    pub(crate) fn start_in(dir: TempDir, flags: &[&str]) -> Self {
        let mut command = command(dir.path());
        command.args(flags);
        Self::spawn(dir, command)
    }

    #[track_caller]
    fn spawn(dir: TempDir, mut command: Command) -> Self {
        let log = File::create(dir.path().join("stderr")).expect("a file for the log");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line of text");
        let addr = line
            .trim_end()
            .strip_prefix("listening on ")
            .and_then(|addr| addr.parse().ok());
        let Some(addr) = addr else {
            panic!("{line:?} instead of an address; {}", log_of(dir.path()));
        };
        Self {
            child,
            addr,
            _stdout: stdout,
            dir,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.addr)
    }

    /// Where its store lies.
    pub(crate) fn data_dir(&self) -> std::path::PathBuf {
        self.dir.path().join("data")
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        log_of(self.dir.path())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the process is there");
    }

    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("the process is ours") {
                return status;
            }
            assert!(Instant::now() < deadline, "it never ended: {}", self.log());
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends it as a loss of power would, as far as a process can, and gives the directory for the next start.
    pub(crate) fn kill(mut self) -> TempDir {
        self.child.kill().expect("the process is there");
        self.child.wait().expect("the process is ours");
        std::mem::replace(
            &mut self.dir,
            TempDir::new().expect("a temporary directory"),
        )
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command that starts the binary on a free port with its store under `dir`.
pub(crate) fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pumice"));
    command
        .args(["--listen", "127.0.0.1:0", "--data-dir"])
        .arg(dir.join("data"));
    command
}

fn log_of(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("stderr")).unwrap_or_default()
}
