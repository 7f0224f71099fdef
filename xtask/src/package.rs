//! The step `package`: every published crate, built from the files that crates.io would get.

use crate::{
    command::Cmd,
    failure::{Failure, Outcome},
    workspace::{MEMBERS, Member},
};

/// What each published crate brings beside its code.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Packages and builds the published members together, then looks for the documents in each.
///
/// Cargo lets them find one another though none is on crates.io yet. It refuses a tree with changes that aren't
/// committed; `cargo xtask package --allow-dirty` hands that wish on.
pub(crate) fn run(rest: &[String]) -> Outcome {
    let others = MEMBERS.iter().filter(|member| !member.is_published);
    Cmd::cargo("package")
        .arg("--workspace")
        .args(others.flat_map(|member| ["--exclude", member.package]))
        .args(rest)
        .run()?;
    let mut missing = Vec::new();
    for Member { package, .. } in MEMBERS.iter().filter(|member| member.is_published) {
        // Whether the tree may be dirty was settled above.
        let list = Cmd::cargo("package")
            .args(["--package", package, "--list", "--allow-dirty"])
            .output()?;
        missing.extend(lacking(&list).map(|name| format!("{package} has no {name}")));
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(missing.join(", ")))
    }
}

/// The documents that a list of packaged files, one a line, doesn't name.
fn lacking(list: &str) -> impl Iterator<Item = &'static str> {
    DOCUMENTS
        .into_iter()
        .filter(|name| !list.lines().any(|line| line == *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_document_is_named() {
        let list = "CHANGELOG.md\nCargo.toml\nLICENSE-MIT\nREADME.md\nsrc/README.md\nsrc/lib.rs\n";
        assert_eq!(lacking(list).collect::<Vec<_>>(), ["LICENSE-APACHE"]);
        let list = "CHANGELOG.md\nLICENSE-APACHE\nLICENSE-MIT\nsrc/README.md\n";
        assert_eq!(lacking(list).collect::<Vec<_>>(), ["README.md"]);
    }
}
