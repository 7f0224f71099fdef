//! The step `tidy`: the rules of this project that no compiler checks.
//!
//! A rule about files is a function from a path and a text to findings, so its tests plant a violation in a string.
//! All findings are collected before the step fails: one run shows everything there is to do.

mod deps;
mod files;
mod layers;
mod licences;
mod source;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use crate::{
    codegen,
    failure::{Failure, Outcome},
    no_arguments,
};

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1; 0 where the breach isn't in one line.
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// Applies every rule, prints the findings, and fails if there are any.
pub(crate) fn run(rest: &[String]) -> Outcome {
    no_arguments(rest)?;
    let files = files::read()?;
    let mut findings = Vec::new();
    for file in &files {
        text::check(&file.path, &file.text, &mut findings);
    }
    layers::check(&files, &mut findings);
    deps::check(&files, &mut findings)?;
    licences::check(&mut findings)?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    // Last, since it builds a compiler of .proto files when it runs for the first time.
    let generated = codegen::run(&["--check".to_owned()]);
    if findings.is_empty() {
        return generated;
    }
    if let Err(failure) = generated {
        eprintln!("{failure}");
    }
    Err(Failure::new(format!("{} findings", findings.len())))
}
