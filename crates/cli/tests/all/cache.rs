//! The cache as a user meets it: several processes, and the `cache` command.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const MODEL: &str = "demo/digits/digits.xml";

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_carafe"));
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.env_remove("CARAFE_CACHE_DIR").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(done: Output) -> (String, String) {
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
}

// What the command only informs of is no warning: it filled an input by itself.
fn no_warnings(said: &str) {
    let warnings: Vec<&str> = said.lines().filter(|line| !line.starts_with("[ INFO ]")).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
}

fn ok(args: &[&str]) -> String {
    let (out, said) = text(command(args).output().unwrap());
    no_warnings(&said);
    out
}

fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

fn run(dir: &str) -> serde_json::Value {
    serde_json::from_str(&ok(&["run", MODEL, "--fill", "random", "--json", "--cache_dir", dir])).unwrap()
}

#[test]
fn the_second_run_is_loaded_and_gives_the_same() {
    let dir = folder("cache_second");
    let dir = dir.to_str().unwrap();
    let (first, second) = (run(dir), run(dir));
    assert_eq!([&first["loaded_from_cache"], &second["loaded_from_cache"]], [false, true]);
    assert_eq!(first["outputs"], second["outputs"]);
}

#[test]
fn entries_are_listed_pruned_and_cleared() {
    let dir = folder("cache_list");
    let dir = dir.to_str().unwrap();
    run(dir);
    let list = ok(&["cache", "list", "--dir", dir]);
    assert!(list.contains("for CPU") && list.contains("1 file"), "{list}");
    let json: serde_json::Value = serde_json::from_str(&ok(&["cache", "--dir", dir, "list", "--json"])).unwrap();
    assert_eq!((json["entries"].as_array().unwrap().len(), &json["entries"][0]["stale"]), (1, &false.into()));
    assert_eq!(ok(&["cache", "prune", "--dir", dir, "--max_size", "1G"]), "removed 0 files (0 B)\n");
    assert!(ok(&["cache", "prune", "--dir", dir, "--max_size", "1K"]).starts_with("removed 1 file ("));
    run(dir);
    assert!(ok(&["cache", "clear", "--dir", dir]).starts_with("removed 1 file ("));
    assert!(ok(&["cache", "list", "--dir", dir]).starts_with("0 files, 0 B"));
}

#[test]
fn the_folder_may_come_from_the_environment() {
    let dir = folder("cache_env");
    let with = |args: &[&str]| text(command(args).env("CARAFE_CACHE_DIR", &dir).output().unwrap());
    with(&["run", MODEL]);
    assert!(with(&["cache", "list"]).0.contains("1 file"));
    let none = command(&["cache", "list"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn a_cache_that_cannot_be_written_is_a_warning() {
    let (out, warnings) = text(command(&["run", MODEL, "--cache_dir", MODEL]).output().unwrap());
    assert!(!out.is_empty() && warnings.contains("[ WARNING ] "), "{warnings}");
}

#[test]
fn several_processes_share_a_folder() {
    let dir = folder("cache_processes");
    let args = ["run", MODEL, "--cache_dir", dir.to_str().unwrap()];
    let all: Vec<_> = (0..6).map(|_| command(&args).spawn().unwrap()).collect();
    for child in all {
        no_warnings(&text(child.wait_with_output().unwrap()).1);
    }
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
    assert!(run(dir.to_str().unwrap())["loaded_from_cache"].is_boolean());
}
