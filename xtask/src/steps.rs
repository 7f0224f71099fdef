//! The steps of `ci` that are plain cargo commands, their order, and `ci` itself.

use std::time::Instant;

use crate::{
    command::{Cmd, shown},
    failure::{Failure, Outcome},
    interop, no_arguments, package, tidy, workspace,
};

/// One step of `ci`, and a command of the same name.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn(&[String]) -> Outcome,
}

/// The steps in the order in which `ci` runs them: what fails soonest and most often comes first.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        about: "all code is formatted (`--write`: formats it)",
        run: fmt,
    },
    Step {
        name: "clippy",
        about: "no warnings, whatever the features",
        run: clippy,
    },
    Step {
        name: "test",
        about: "all tests of the workspace",
        run: test,
    },
    Step {
        name: "doc",
        about: "the documentation builds without warnings",
        run: doc,
    },
    Step {
        name: "tidy",
        about: "what compilers don't check: files, layers, dependencies, licences, generated code",
        run: tidy::run,
    },
    Step {
        name: "loom",
        about: "the mailbox under every order of its threads",
        run: loom,
    },
    Step {
        name: "package",
        about: "each crate builds from what would be published (wants a clean tree)",
        run: package::run,
    },
    Step {
        name: "interop",
        about: "the published tephra clients against the server's binary (needs protoc 36.2, or fetches it)",
        run: interop::run,
    },
];

/// Runs every step, in order, and stops at the first that fails.
pub(crate) fn ci(rest: &[String]) -> Outcome {
    no_arguments(rest)?;
    let mut summary = String::new();
    for step in STEPS {
        eprintln!("\n=== {}: {}", step.name, step.about);
        let start = Instant::now();
        let outcome = (step.run)(&[]);
        let took = start.elapsed().as_secs_f64();
        if let Err(failure) = outcome {
            return Err(Failure::new(format!(
                "step {} after {took:.1} s: {failure}",
                step.name
            )));
        }
        eprintln!("=== {}: passed in {took:.1} s", step.name);
        summary.push_str(&format!("  {:<8} {took:7.1} s\n", step.name));
    }
    eprintln!("\nxtask: ci passed\n{summary}");
    Ok(())
}

fn fmt(rest: &[String]) -> Outcome {
    let check: &[&str] = match rest {
        [] => &["--check"],
        [arg] if arg == "--write" => &[],
        _ => return Err(Failure::new("takes nothing but `--write`")),
    };
    Cmd::cargo("fmt").arg("--all").args(check).run()?;
    for folder in workspace::separate() {
        Cmd::cargo("fmt")
            .dir(&folder)
            .arg("--all")
            .args(check)
            .run()?;
    }
    Ok(())
}

fn clippy(rest: &[String]) -> Outcome {
    let deny = ["--", "-D", "warnings"];
    let everywhere = ["--all-targets"];
    Cmd::cargo("clippy")
        .args(scope(rest))
        .args(everywhere)
        .args(rest)
        .args(deny)
        .run()?;
    if !rest.is_empty() {
        return Ok(());
    }
    // `pumice` without its store, TLS and WebSocket is a product too; with all features, so are the others' options.
    Cmd::cargo("clippy")
        .args(["--package", "pumice", "--no-default-features"])
        .args(everywhere)
        .args(deny)
        .run()?;
    Cmd::cargo("clippy")
        .args(["--workspace", "--all-features"])
        .args(everywhere)
        .args(deny)
        .run()
}

fn test(rest: &[String]) -> Outcome {
    if scope(rest).is_empty() {
        return Cmd::cargo("test").arg("--all-features").args(rest).run();
    }
    // Apart, since all features of xtask are a compiler of .proto files, which no test of it looks at.
    Cmd::cargo("test")
        .args(["--workspace", "--exclude", "xtask", "--all-features"])
        .args(rest)
        .run()?;
    Cmd::cargo("test")
        .args(["--package", "xtask"])
        .args(rest)
        .run()
}

fn doc(rest: &[String]) -> Outcome {
    Cmd::cargo("doc")
        .env("RUSTDOCFLAGS", "-D warnings")
        .args(scope(rest))
        .args(["--all-features", "--no-deps"])
        .args(rest)
        .run()
}

fn loom(rest: &[String]) -> Outcome {
    // Flags for the compiler make other artefacts of everything, so they get a folder of their own.
    let target = workspace::target_dir()?.join("loom");
    let passed = Cmd::cargo("test")
        .env("RUSTFLAGS", "--cfg loom")
        .args(["--package", "pumice-event-loop", "--release", "--lib"])
        .args(["--target-dir", &shown(&target)])
        .arg("loom")
        .args(rest)
        .run_tests()?;
    if passed == 0 {
        return Err(Failure::new(
            "no test of pumice-event-loop has `loom` in its path",
        ));
    }
    Ok(())
}

/// The whole workspace, unless the arguments choose a package.
fn scope(rest: &[String]) -> &'static [&'static str] {
    let before_dashes = rest.iter().take_while(|arg| *arg != "--");
    let chooses =
        |arg: &String| arg == "--package" || arg.starts_with("-p") || arg.starts_with("--package=");
    if before_dashes.into_iter().any(chooses) {
        &[]
    } else {
        &["--workspace"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_workspace_is_the_scope_unless_a_package_is_chosen() {
        assert_eq!(scope(&[]), ["--workspace"]);
        assert_eq!(scope(&args("--release -- -p")), ["--workspace"]);
        for chosen in [
            "-p pumice",
            "-ppumice",
            "--package pumice",
            "--package=pumice -- x",
        ] {
            assert!(scope(&args(chosen)).is_empty(), "{chosen}");
        }
    }

    #[test]
    fn ci_refuses_arguments() {
        let failure = ci(&args("--fast")).unwrap_err();
        assert_eq!(failure.to_string(), "takes no arguments, but got `--fast`");
    }
}
