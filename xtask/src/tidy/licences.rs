//! The rule about licences: whatever is built or tested with must be free to use under one of a few short texts.

use super::Finding;
use crate::{command::Cmd, failure::Outcome};

/// Licences that ask for no more than a notice. Copyleft, MPL-2.0 included, is a decision of its own and isn't needed yet.
const ALLOWED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    // The root certificates of webpki-roots.
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Looks at every package that any feature, target or test of the workspace needs.
pub(super) fn check(findings: &mut Vec<Finding>) -> Outcome {
    let tree = Cmd::cargo("tree")
        .args([
            "--workspace",
            "--all-features",
            "--target",
            "all",
            "--prefix",
            "none",
            "--no-dedupe",
        ])
        .args(["--format", "{p}|{l}"])
        .output()?;
    refused(&tree, findings);
    Ok(())
}

/// Reports each package of a list of `PACKAGE|LICENCE` lines, once, whose licence isn't allowed.
pub(super) fn refused(tree: &str, findings: &mut Vec<Finding>) {
    let mut lines: Vec<&str> = tree.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    for (package, licence) in lines.iter().filter_map(|line| line.split_once('|')) {
        // Cargo's mark on what it has shown before, which it also puts on a package whose tests depend on itself.
        let licence = licence.trim_end_matches(" (*)");
        if !allows(licence) {
            let licence = if licence.is_empty() { "none" } else { licence };
            findings.push(Finding::new(
                package,
                0,
                format!("licence {licence} isn't on tidy's list"),
            ));
        }
    }
}

/// Whether an SPDX expression can be met with licences of the list alone. `/` is `OR`, as old manifests write it.
fn allows(expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words) == Some(true) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// `A OR B OR …`, which binds weakest; `None`, here and below, where the expression is broken.
fn any(words: &mut Words<'_>) -> Option<bool> {
    let mut verdict = all(words)?;
    while words.next_if_eq(&"OR").is_some() {
        verdict |= all(words)?;
    }
    Some(verdict)
}

/// `A AND B AND …`
fn all(words: &mut Words<'_>) -> Option<bool> {
    let mut verdict = one(words)?;
    while words.next_if_eq(&"AND").is_some() {
        verdict &= one(words)?;
    }
    Some(verdict)
}

/// A licence, perhaps `WITH` an exception, or an expression in brackets.
fn one(words: &mut Words<'_>) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let verdict = any(words)?;
        return words.next_if_eq(&")").map(|_| verdict);
    }
    let mut licence = word.to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        licence = format!("{word} WITH {}", words.next()?);
    }
    Some(ALLOWED.contains(&licence.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_allowed_when_the_list_can_meet_it() {
        for yes in [
            "MIT",
            "MIT OR Apache-2.0",
            "Apache-2.0/MIT",
            "GPL-3.0 OR MIT",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "(MIT OR GPL-2.0) AND Unicode-3.0",
            "Apache-2.0 AND ISC",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(allows(yes), "{yes}");
        }
        for no in [
            "",
            "GPL-3.0-only",
            "MPL-2.0",
            "MIT AND GPL-2.0",
            "GPL-2.0 OR MIT AND SSPL-1.0",
            "(MIT AND GPL-2.0) OR AGPL-3.0",
            "GPL-2.0 WITH Classpath-exception-2.0",
            "MIT Apache-2.0",
            "MIT OR",
            "(MIT",
        ] {
            assert!(!allows(no), "{no}");
        }
    }

    #[test]
    fn a_package_with_a_refused_licence_is_named_once() {
        let tree = "good v1.0.0|MIT\nbad v2.0.0|AGPL-3.0\nbad v2.0.0|AGPL-3.0\nbare v1.0.0|\ngood v1.0.0|MIT (*)\n";
        let mut findings = Vec::new();
        refused(tree, &mut findings);
        let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "bad v2.0.0: licence AGPL-3.0 isn't on tidy's list",
                "bare v1.0.0: licence none isn't on tidy's list"
            ]
        );
    }
}
