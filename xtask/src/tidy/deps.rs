//! Rules about packages: the members, the arrows between them, what the small ones pull in, and where it comes from.

use super::{Finding, files::File};
use crate::{
    command::Cmd,
    failure::Outcome,
    workspace::{MEMBERS, Member},
};

/// What the published packages never build with: an async runtime, since there are event loops here, and whatever
/// wants protoc, since who builds pumice must not need it.
const BANNED: [&str; 9] = [
    "async-std",
    "hyper",
    "prost-build",
    "protobuf",
    "protobuf-codegen",
    "protox",
    "smol",
    "tokio",
    "tonic",
];

/// The only registry that a lock file may name; a mirror's address would bind everyone to one network.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Asks cargo for the graph and applies the rules.
pub(super) fn check(files: &[File], findings: &mut Vec<Finding>) -> Outcome {
    let tree = |args: &[&str]| {
        Cmd::cargo("tree")
            .args(args)
            .args(["--target", "all", "--format", "|{p}"])
            .output()
    };
    let direct = [
        "--workspace",
        "--all-features",
        "--prefix",
        "depth",
        "--depth",
        "1",
        "--edges",
    ];
    let built = tree(&[&direct[..], &["normal,build"]].concat())?;
    members(&built, findings);
    arrows(&built, Use::Build, findings);
    arrows(
        &tree(&[&direct[..], &["dev"]].concat())?,
        Use::Test,
        findings,
    );

    let published = [
        "--workspace",
        "--exclude",
        "xtask",
        "--all-features",
        "--prefix",
        "none",
    ];
    banned(
        &tree(&[&published[..], &["--edges", "normal,build"]].concat())?,
        findings,
    );

    std_alone(
        &tree(&["--package", "xtask", "--prefix", "depth", "--depth", "1"])?,
        findings,
    );
    for file in files {
        lock_file(file, findings);
        lints(file, findings);
    }
    Ok(())
}

/// What a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// The package's code or its build script: whoever uses the package gets it too.
    Build,
    /// The package's tests.
    Test,
}

/// The pairs of member and dependency in what `cargo tree --depth 1 --prefix depth` prints with the format `|{p}`.
fn edges(tree: &str) -> Vec<(&str, &str)> {
    let mut edges = Vec::new();
    let mut from = "";
    for line in tree.lines() {
        match line.split_once('|') {
            Some(("0", package)) => from = name(package),
            Some(("1", package)) => edges.push((from, name(package))),
            _ => {}
        }
    }
    edges
}

/// `serde` of `serde v1.0.0 (proc-macro)`.
fn name(package: &str) -> &str {
    package.split(' ').next().unwrap_or(package)
}

/// The workspace has the members that tidy knows and no others.
fn members(tree: &str, findings: &mut Vec<Finding>) {
    let roots = tree.lines().filter_map(|line| line.strip_prefix("0|"));
    let roots: Vec<&str> = roots.map(name).collect();
    for root in &roots {
        if !MEMBERS.iter().any(|member| member.package == *root) {
            let what = format!("member {root} is unknown to xtask's `MEMBERS`");
            findings.push(Finding::new("Cargo.toml", 0, what));
        }
    }
    for member in MEMBERS
        .iter()
        .filter(|member| !roots.contains(&member.package))
    {
        findings.push(Finding::new(
            "Cargo.toml",
            0,
            format!("{} is no member", member.package),
        ));
    }
}

/// Members stand only on those members, and their code only on those other crates, that their entry lists.
fn arrows(tree: &str, used: Use, findings: &mut Vec<Finding>) {
    for (from, to) in edges(tree) {
        let Some(member) = MEMBERS.iter().find(|member| member.package == from) else {
            continue;
        };
        let Member {
            inside, outside, ..
        } = member;
        let is_member = MEMBERS.iter().any(|member| member.package == to);
        let is_fine = match outside {
            // Its own tests may want other features of it.
            _ if to == from => true,
            _ if is_member => inside.contains(&to),
            Some(outside) => used == Use::Test || outside.contains(&to),
            None => true,
        };
        if !is_fine {
            let path = format!("{}/Cargo.toml", member.folder);
            findings.push(Finding::new(
                &path,
                0,
                format!("{from} may not depend on {to}"),
            ));
        }
    }
}

/// Nothing that the published packages are built with is banned.
fn banned(tree: &str, findings: &mut Vec<Finding>) {
    for word in BANNED {
        if tree
            .lines()
            .any(|line| name(line.trim_start_matches('|')) == word)
        {
            let what = format!(
                "a published package is built with {word}: see `cargo tree --invert {word}`"
            );
            findings.push(Finding::new("Cargo.lock", 0, what));
        }
    }
}

/// xtask needs nothing but std unless it generates code.
fn std_alone(tree: &str, findings: &mut Vec<Finding>) {
    for (from, to) in edges(tree) {
        let what = format!("{from} depends on {to} without the feature `codegen`");
        findings.push(Finding::new("xtask/Cargo.toml", 0, what));
    }
}

/// Packages in lock files come from crates.io or from the project itself.
fn lock_file(file: &File, findings: &mut Vec<Finding>) {
    if file.path.rsplit('/').next() != Some("Cargo.lock") {
        return;
    }
    for (index, line) in file.text.lines().enumerate() {
        if let Some(source) = line.strip_prefix("source = ")
            && source.trim_matches('"') != REGISTRY
        {
            findings.push(Finding::new(
                &file.path,
                index + 1,
                format!("{source} isn't crates.io"),
            ));
        }
    }
}

/// Each member takes the workspace's lints, or has a table of its own that its reason stands in.
fn lints(file: &File, findings: &mut Vec<Finding>) {
    let is_member = |member: &Member| file.path.strip_suffix("/Cargo.toml") == Some(member.folder);
    if MEMBERS.iter().any(is_member) && !file.text.lines().any(|line| line.starts_with("[lints")) {
        findings.push(Finding::new(
            &file.path,
            0,
            "no `[lints]`: `unsafe` would be allowed here",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rule: impl FnOnce(&mut Vec<Finding>)) -> Vec<String> {
        let mut findings = Vec::new();
        rule(&mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    const TREE: &str = "\
0|pumice v0.1.0 (/src/server)
1|pumice-conn-pool v0.1.0 (/src/conn-pool)
1|clap v4.6.0

0|pumice-conn-pool v0.1.0 (/src/conn-pool)
1|thiserror v2.0.0

0|pumice-event-loop v0.1.0 (/src/event-loop)
1|mio v1.2.0

0|pumice-frame-proto v0.1.0 (/src/frame-proto)
0|pumice-http-parse v0.1.0 (/src/http-parse)
0|xtask v0.1.0 (/src/xtask)
1|protox v0.9.1
";

    #[test]
    fn the_graph_that_is_wanted_passes() {
        assert!(told(|findings| members(TREE, findings)).is_empty());
        assert!(told(|findings| arrows(TREE, Use::Build, findings)).is_empty());
        assert!(told(|findings| banned(TREE, findings)).is_empty());
    }

    #[test]
    fn a_member_too_many_and_one_too_few_are_named() {
        let tree = TREE.replace("0|xtask v", "0|common v");
        assert_eq!(
            told(|findings| members(&tree, findings)),
            [
                "Cargo.toml: member common is unknown to xtask's `MEMBERS`",
                "Cargo.toml: xtask is no member"
            ]
        );
    }

    #[test]
    fn an_arrow_the_wrong_way_is_named() {
        let back = TREE.replace("1|thiserror v2.0.0", "1|pumice v0.1.0 (/src/server)");
        assert_eq!(
            told(|findings| arrows(&back, Use::Build, findings)),
            ["conn-pool/Cargo.toml: pumice-conn-pool may not depend on pumice"]
        );
    }

    #[test]
    fn an_arrow_between_two_of_the_four_is_named_even_for_tests() {
        let across = "0|pumice-conn-pool v0.1.0 (/src/conn-pool)\n1|pumice-http-parse v0.1.0 (/src/http-parse)\n";
        for used in [Use::Build, Use::Test] {
            assert_eq!(
                told(|findings| arrows(across, used, findings)),
                ["conn-pool/Cargo.toml: pumice-conn-pool may not depend on pumice-http-parse"]
            );
        }
    }

    #[test]
    fn a_new_dependency_of_a_small_crate_is_named_unless_only_tests_need_it() {
        let more = "0|pumice-event-loop v0.1.0 (/src/event-loop)\n1|mio v1.2.0\n1|libc v0.2.0\n";
        assert_eq!(
            told(|findings| arrows(more, Use::Build, findings)),
            ["event-loop/Cargo.toml: pumice-event-loop may not depend on libc"]
        );
        assert!(told(|findings| arrows(more, Use::Test, findings)).is_empty());
    }

    #[test]
    fn an_async_runtime_is_named() {
        let tree = "|pumice v0.1.0 (/src/server)\n|tokio v1.50.0\n|tokio-util v0.7.0\n";
        assert_eq!(
            told(|findings| banned(tree, findings)),
            [
                "Cargo.lock: a published package is built with tokio: see `cargo tree --invert tokio`"
            ]
        );
    }

    #[test]
    fn xtask_with_a_plain_dependency_is_named() {
        assert!(told(|findings| std_alone("0|xtask v0.1.0 (/src/xtask)\n", findings)).is_empty());
        assert_eq!(
            told(|findings| std_alone("0|xtask v0.1.0 (/src/xtask)\n1|anyhow v1.0.0\n", findings)),
            ["xtask/Cargo.toml: xtask depends on anyhow without the feature `codegen`"]
        );
    }

    #[test]
    fn a_mirror_in_a_lock_file_is_named() {
        let mirror = "registry+https://mirror.example/index";
        let file = File {
            path: "fuzz/Cargo.lock".to_owned(),
            text: format!("source = \"{REGISTRY}\"\nsource = \"{mirror}\"\n"),
        };
        assert_eq!(
            told(|findings| lock_file(&file, findings)),
            [format!("fuzz/Cargo.lock:2: \"{mirror}\" isn't crates.io")]
        );
    }

    #[test]
    fn a_member_without_lints_is_named() {
        let file = |text: &str| File {
            path: "server/Cargo.toml".to_owned(),
            text: text.to_owned(),
        };
        assert!(told(|findings| lints(&file("[lints]\nworkspace = true\n"), findings)).is_empty());
        assert_eq!(
            told(|findings| lints(&file("[package]\n"), findings)).len(),
            1
        );
    }
}
