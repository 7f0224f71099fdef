//! What the workspace consists of: its members, the workspaces beside it, and where builds go.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use crate::{
    command::Cmd,
    failure::{Failure, Outcome},
};

/// A package of the workspace, and what it may stand on.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) folder: &'static str,
    pub(crate) package: &'static str,
    /// Goes to crates.io, so it needs a README, a CHANGELOG and both licences.
    pub(crate) is_published: bool,
    /// The other members that it may depend on, for its tests as well.
    pub(crate) inside: &'static [&'static str],
    /// The crates from elsewhere that its library may depend on; `None` leaves it free.
    /// The four crates are taken one by one for being small, so what they pull in is chosen by name.
    pub(crate) outside: Option<&'static [&'static str]>,
}

/// All members. A new one stands here and in the root's `Cargo.toml`.
pub(crate) const MEMBERS: [Member; 6] = [
    Member {
        folder: "conn-pool",
        package: "pumice-conn-pool",
        is_published: true,
        inside: &[],
        outside: Some(&["thiserror"]),
    },
    Member {
        folder: "event-loop",
        package: "pumice-event-loop",
        is_published: true,
        inside: &[],
        outside: Some(&["loom", "mio", "parking_lot", "socket2", "thiserror"]),
    },
    Member {
        folder: "http-parse",
        package: "pumice-http-parse",
        is_published: true,
        inside: &[],
        outside: Some(&["httparse", "memchr", "thiserror"]),
    },
    Member {
        folder: "frame-proto",
        package: "pumice-frame-proto",
        is_published: true,
        inside: &[],
        outside: Some(&["bytes", "prost", "tephra", "thiserror"]),
    },
    Member {
        folder: "server",
        package: "pumice",
        is_published: true,
        inside: &[
            "pumice-conn-pool",
            "pumice-event-loop",
            "pumice-http-parse",
            "pumice-frame-proto",
        ],
        outside: None,
    },
    Member {
        folder: "xtask",
        package: "xtask",
        is_published: false,
        inside: &[],
        outside: Some(&["prost-build", "protox"]),
    },
];

/// Folders that may be workspaces of their own; `*` stands for each folder inside.
const SEPARATE: [&str; 4] = ["fuzz", "bench", "bench/*", "server/tests/interop"];

/// The folder of the root's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        // At run time, since a target folder that several clones share may hold a binary made in another one.
        let manifest =
            env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let mut folder = PathBuf::from(manifest);
        folder.pop();
        folder
    })
}

/// The workspaces beside the main one that exist, from the root.
pub(crate) fn separate() -> Vec<String> {
    let mut found = Vec::new();
    for pattern in SEPARATE {
        match pattern.strip_suffix("/*") {
            None => found.push(pattern.to_owned()),
            Some(parent) => {
                let entries = fs::read_dir(root().join(parent))
                    .into_iter()
                    .flatten()
                    .flatten();
                let names = entries
                    .map(|entry| format!("{parent}/{}", entry.file_name().to_string_lossy()));
                found.extend(names);
            }
        }
    }
    found.retain(|folder| root().join(folder).join("Cargo.toml").is_file());
    found.sort();
    found
}

/// The folder that cargo builds into: `target`, or what `CARGO_TARGET_DIR` or a configuration file says.
///
/// # Errors
/// `cargo metadata` fails or doesn't say it.
pub(crate) fn target_dir() -> Outcome<PathBuf> {
    let metadata = Cmd::cargo("metadata")
        .args(["--no-deps", "--format-version", "1"])
        .output()?;
    text_field(&metadata, "target_directory")
        .map(PathBuf::from)
        .ok_or_else(|| Failure::new("`cargo metadata` names no target directory"))
}

/// The string that stands last under `name` in `json`. Enough for the one field that is needed of cargo's metadata.
fn text_field(json: &str, name: &str) -> Option<String> {
    let (_, rest) = json.rsplit_once(&format!("\"{name}\":\""))?;
    let mut text = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return Some(text),
            '\\' => text.push(chars.next()?),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_behind_others_and_its_escapes_are_undone() {
        let json = r#"{"packages":[],"target_directory":"/a \"b\"/target","version":1}"#;
        assert_eq!(
            text_field(json, "target_directory").as_deref(),
            Some("/a \"b\"/target")
        );
        assert_eq!(text_field(json, "workspace_root"), None);
        assert_eq!(
            text_field(r#"{"target_directory":"/cut"#, "target_directory"),
            None
        );
    }

    #[test]
    fn every_member_has_its_folder() {
        for member in &MEMBERS {
            let manifest = root().join(member.folder).join("Cargo.toml");
            assert!(manifest.is_file(), "{}", manifest.display());
        }
    }
}
