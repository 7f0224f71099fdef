//! Rules about one file's lines: its first one, their number, white space, open ends, and paths of one machine.

use super::{Finding, source};
use crate::codegen::GENERATED;

/// More is two subjects. Tests that would make a file longer stand in a `tests.rs` beside it.
const LINES_MAX: usize = 600;

/// Files that people write as code, by their ending.
const CODE: [&str; 8] = ["rs", "toml", "proto", "sh", "js", "ts", "css", "html"];

/// Words that promise work, which an issue must hold or it is forgotten. Split here, or this line would be found.
const OPEN_ENDS: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// What says the same as those to the compiler or the test runner, where no issue number helps.
const UNFINISHED: [&str; 3] = ["todo!(", "unimplemented!(", "#[ignore"];

/// Beginnings of paths that exist on some machines only.
const MACHINE_PATHS: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/tmp/", "target"),
    concat!("/ro", "ot/"),
];

/// Applies the rules to one file.
pub(super) fn check(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let ending = ending(path);
    let is_generated = path == GENERATED;
    if ending == "rs" {
        first_line(path, text, findings);
        unfinished(path, text, findings);
    }
    if CODE.contains(&ending) && !is_generated {
        length(path, text, findings);
    }
    if CODE.contains(&ending) || ending == "md" {
        white_space(path, text, findings);
        open_ends(path, text, findings);
    }
    machine_paths(path, text, findings);
}

/// What stands behind the name's last point; a script without one is known by its folder.
fn ending(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, ending)) => ending,
        None if path.starts_with(".ci/") => "sh",
        None => "",
    }
}

fn first_line(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let says_something = text
        .strip_prefix("//! ")
        .is_some_and(|rest| !rest.starts_with('\n'));
    // A crate root whose docs are its README says it there: `#![doc = include_str!("../README.md")]`.
    if !says_something && !text.starts_with("#![doc = include_str!(") {
        findings.push(Finding::new(
            path,
            1,
            "the first line must be `//! ` and the file's subject",
        ));
    }
}

fn length(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let lines = text.lines().count();
    if lines > LINES_MAX {
        findings.push(Finding::new(
            path,
            0,
            format!("{lines} lines, {LINES_MAX} at most: look for the second subject"),
        ));
    }
}

fn white_space(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in numbered(text) {
        if line.contains('\t') {
            findings.push(Finding::new(path, number, "a tab"));
        }
        if line.ends_with([' ', '\t', '\r']) {
            findings.push(Finding::new(path, number, "white space at the end"));
        }
    }
}

fn open_ends(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in numbered(text) {
        for word in OPEN_ENDS {
            if source::has_word(line, word) && !has_issue(line) {
                findings.push(Finding::new(
                    path,
                    number,
                    format!("{word} without an issue: write `{word}(#12)`"),
                ));
            }
        }
    }
}

/// Whether an issue's number, `#12`, stands in the line.
fn has_issue(line: &str) -> bool {
    let after = line.split('#').skip(1);
    after
        .into_iter()
        .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn unfinished(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in numbered(&source::code_only(text)) {
        for word in UNFINISHED {
            if line.contains(word) {
                findings.push(Finding::new(
                    path,
                    number,
                    format!("`{word}`: finish it or leave it out"),
                ));
            }
        }
    }
}

fn machine_paths(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in numbered(text) {
        for start in MACHINE_PATHS {
            // `docs` + the same word is a path inside the project.
            let inside = |c: char| c.is_ascii_alphanumeric() || "._-*}".contains(c);
            let is_absolute = |(at, _): (usize, _)| !line[..at].ends_with(inside);
            if line.match_indices(start).any(is_absolute) {
                findings.push(Finding::new(
                    path,
                    number,
                    format!("a path of one machine, {start}"),
                ));
            }
        }
    }
}

/// Lines with their numbers from 1, carriage returns kept.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n')
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}
