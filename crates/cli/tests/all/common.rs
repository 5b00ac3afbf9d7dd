//! The command and the demo model, as several tests need them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The demo model, from the root of the repository.
pub(crate) const MODEL: &str = "demo/digits/digits.xml";

pub(crate) fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the command in the root of the repository.
pub(crate) fn carafe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_carafe")).args(args).current_dir(repo()).output().unwrap()
}

/// What a command that must succeed printed.
pub(crate) fn ok(args: &[&str]) -> String {
    let done = carafe(args);
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// An empty folder of that name.
pub(crate) fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}
