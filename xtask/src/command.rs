//! Other programs: the line that is printed for one, and three ways to run it.

use std::{
    env,
    ffi::OsStr,
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use crate::failure::{Failure, Outcome};

/// A program to run, and the shell line that would do the same.
#[derive(Debug)]
pub(crate) struct Cmd {
    command: Command,
    /// `NAME=value` and `cd` parts, which stand before the program in `line`.
    before: String,
    line: String,
}

impl Cmd {
    /// The program called `program`, in the workspace's root.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref();
        Self::shown_as(program, &program.to_string_lossy())
    }

    /// The same cargo that runs xtask, so that a toolchain chosen with `+name` holds for every step.
    pub(crate) fn cargo(subcommand: &str) -> Self {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Self::shown_as(&cargo, "cargo").arg(subcommand)
    }

    fn shown_as(program: &OsStr, shown: &str) -> Self {
        let mut command = Command::new(program);
        command.current_dir(crate::workspace::root());
        // `cargo run` describes xtask to xtask in these. Build scripts that watch them would run again at each
        // change between `cargo xtask test` and a plain `cargo test`, and rebuild what depends on them.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        Self {
            command,
            before: String::new(),
            line: quoted(shown),
        }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.line.push(' ');
        self.line.push_str(&quoted(&arg.as_ref().to_string_lossy()));
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<T: AsRef<OsStr>>(self, args: impl IntoIterator<Item = T>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let shown = quoted(&value.as_ref().to_string_lossy());
        self.before.push_str(&format!("{name}={shown} "));
        self.command.env(name, value);
        self
    }

    /// Runs in `folder`, given from the workspace's root, instead of that root. To be called before `env`.
    pub(crate) fn dir(mut self, folder: &str) -> Self {
        self.before.push_str(&format!("cd {} && ", quoted(folder)));
        self.command
            .current_dir(crate::workspace::root().join(folder));
        self
    }

    /// Runs it to its end; its output goes to the caller.
    ///
    /// # Errors
    /// It can't be started, or ends with a code other than zero.
    pub(crate) fn run(mut self) -> Outcome {
        self.print();
        let status = self.command.status();
        self.judge(status)
    }

    /// Runs it to its end and gives back what it wrote to stdout.
    ///
    /// # Errors
    /// As [`Cmd::run`], or its output isn't UTF-8.
    pub(crate) fn output(mut self) -> Outcome<String> {
        self.print();
        let output = self.command.stderr(Stdio::inherit()).output();
        let output = match output {
            Ok(output) => output,
            Err(error) => return Err(self.not_started(&error)),
        };
        self.judge(Ok(output.status))?;
        String::from_utf8(output.stdout)
            .map_err(|_| Failure::new(format!("`{}` wrote no UTF-8", self.line)))
    }

    /// Runs a test command, handing its output on line by line, and gives back how many tests passed.
    ///
    /// A filter that matches nothing makes cargo say "ok"; the count lets a step refuse that.
    ///
    /// # Errors
    /// As [`Cmd::run`].
    pub(crate) fn run_tests(mut self) -> Outcome<u64> {
        self.print();
        let mut child = match self.command.stdout(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) => return Err(self.not_started(&error)),
        };
        let stdout = child.stdout.take().expect("stdout was piped above");
        let mut passed = 0;
        for line in BufReader::new(stdout).split(b'\n') {
            let Ok(line) = line else { break };
            passed += tests_passed(&String::from_utf8_lossy(&line));
            let mut out = io::stdout().lock();
            // A caller that closed our stdout still wants to know how the tests end.
            let _ = out.write_all(&line).and_then(|()| out.write_all(b"\n"));
        }
        let status = child.wait();
        self.judge(status)?;
        Ok(passed)
    }

    fn print(&self) {
        eprintln!("$ {}{}", self.before, self.line);
    }

    fn judge(&self, status: io::Result<std::process::ExitStatus>) -> Outcome {
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::new(format!("`{}` ended with {status}", self.line))),
            Err(error) => Err(self.not_started(&error)),
        }
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        Failure::new(format!("`{}` can't be started: {error}", self.line))
    }
}

/// What `program ARGS` writes to stdout, or `None` when it can't be run or fails. Prints nothing: it only asks.
pub(crate) fn ask(program: impl AsRef<OsStr>, args: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(args)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}

/// `path` as a command line names it: from the workspace's root where it lies inside.
pub(crate) fn shown(path: &Path) -> String {
    let path = path.strip_prefix(crate::workspace::root()).unwrap_or(path);
    path.display().to_string()
}

/// The number in a line `test result: ok. 12 passed; …`, and zero for any other line.
fn tests_passed(line: &str) -> u64 {
    let Some((_, rest)) = line.split_once("test result: ") else {
        return 0;
    };
    rest.split_once(" passed;")
        .and_then(|(before, _)| before.rsplit(' ').next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// `word` as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_line_can_be_pasted_into_a_shell() {
        assert_eq!(quoted("--all-features"), "--all-features");
        assert_eq!(quoted("--cfg loom"), "'--cfg loom'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        let cmd = Cmd::new("cc")
            .dir("fuzz")
            .env("RUSTFLAGS", "-D warnings")
            .arg("-v");
        assert_eq!(
            format!("{}{}", cmd.before, cmd.line),
            "cd fuzz && RUSTFLAGS='-D warnings' cc -v"
        );
    }

    #[test]
    fn the_tests_that_passed_are_counted_from_the_closing_line() {
        let line = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s";
        assert_eq!(tests_passed(line), 12);
        assert_eq!(
            tests_passed("test result: FAILED. 1 passed; 2 failed; 0 ignored"),
            1
        );
        assert_eq!(tests_passed("test loom::two_senders ... ok"), 0);
        assert_eq!(tests_passed("running 12 tests"), 0);
    }

    #[test]
    fn a_failing_program_is_named_with_its_code() {
        let failure = Cmd::new("sh").args(["-c", "exit 3"]).run().unwrap_err();
        assert_eq!(
            failure.to_string(),
            "`sh -c 'exit 3'` ended with exit status: 3"
        );
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let failure = Cmd::new("./no/such/program").run().unwrap_err();
        assert!(
            failure
                .to_string()
                .starts_with("`./no/such/program` can't be started: ")
        );
    }
}
