//! Every check that CI runs, each as a command: `cargo xtask help` lists them.
//!
//! A command prints each command line that it runs after `$ `, so that it can be repeated by hand, and stops at the first
//! failure with a code that isn't zero. What cargo prints goes to the caller untouched; xtask's own lines go to stderr.

mod codegen;
mod command;
mod failure;
mod interop;
mod package;
mod steps;
mod tidy;
mod workspace;

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use failure::{Failure, Outcome};
use steps::STEPS;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let (name, rest) = match args.split_first() {
        Some((name, rest)) => (name.as_str(), rest),
        None => ("help", &[][..]),
    };
    match dispatch(name, rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {name} failed: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command called `name` with the arguments behind it.
fn dispatch(name: &str, rest: &[String]) -> Outcome {
    match name {
        "ci" => steps::ci(rest),
        "codegen" => codegen::run(rest),
        "help" | "-h" | "--help" => help(),
        _ => match STEPS.iter().find(|step| step.name == name) {
            Some(step) => (step.run)(rest),
            None => Err(Failure::new(
                "no such command: `cargo xtask help` lists them",
            )),
        },
    }
}

/// Writes the list of commands to stdout.
fn help() -> Outcome {
    let mut text = String::from(
        "cargo xtask COMMAND [ARGUMENTS]\n\n  ci        every step below, in this order\n",
    );
    for step in STEPS {
        text.push_str(&format!("  {:<9} {}\n", step.name, step.about));
    }
    text.push_str(
        "  codegen   makes the Rust code of frame-proto's .proto file (`--check`: only compares)\n  \
           help      this text\n\n\
         Arguments are handed on to cargo: `cargo xtask test --package pumice-conn-pool -- stale`.\n",
    );
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::new(format!("stdout: {error}")))
}

/// Refuses arguments for a command that has no use for them, so that a typing error isn't taken for a check that passed.
fn no_arguments(rest: &[String]) -> Outcome {
    match rest.first() {
        None => Ok(()),
        Some(arg) => Err(Failure::new(format!("takes no arguments, but got `{arg}`"))),
    }
}
