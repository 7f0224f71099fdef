//! The files that the rules are about: those that git tracks or would add.

use std::{fs, io};

use crate::{
    command::Cmd,
    failure::{Failure, Outcome},
    workspace,
};

/// A text file of the project.
#[derive(Debug)]
pub(super) struct File {
    /// From the workspace's root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

/// All text files; what isn't UTF-8 is data, and no rule is about it.
pub(super) fn read() -> Outcome<Vec<File>> {
    let root = workspace::root();
    let list = Cmd::new("git")
        // CI may run as another user than the one who owns the clone, which git refuses without this.
        .args(["-c", &format!("safe.directory={}", root.display())])
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .output()?;
    let mut paths: Vec<&str> = list.split_terminator('\0').collect();
    paths.sort_unstable();
    paths.dedup();
    let mut files = Vec::new();
    for path in paths {
        match fs::read(root.join(path)) {
            Ok(bytes) => files.extend(String::from_utf8(bytes).ok().map(|text| File {
                path: path.to_owned(),
                text,
            })),
            // Deleted, but the deletion isn't staged.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A link to a folder, or a repository inside this one.
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {}
            Err(error) => return Err(Failure::new(format!("{path}: {error}"))),
        }
    }
    if files.is_empty() {
        return Err(Failure::new("git lists no files"));
    }
    Ok(files)
}
