//! Asks the linker for what makes the command smaller, where it can do so and the result runs on this machine. Each is tried
//! with a small program first: not every linker has them, and loaders know packed relocations from glibc 2.36 on.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// Relocations in a few kB instead of one MB, and functions of the same code once. Rust promises no function an address of its
/// own, so nothing may depend on it.
const OPTIONS: [&[&str]; 2] = [&["-Wl,-z,pack-relative-relocs"], &["-Wl,--icf=all"]];

/// Leaves out the tables by which a panic finds its way back through the callers: nobody reads them in a program that stops there.
/// Libraries that are loaded have tables of their own.
const WITHOUT_TABLES: &str =
    "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.gcc_except_table .gcc_except_table.*) } } INSERT AFTER .text;";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name| env::var(name).unwrap_or_default();
    // What is built for another machine, or to be looked at, is linked plainly.
    if set("HOST") != set("TARGET") || set("CARGO_CFG_TARGET_OS") != "linux" || set("PROFILE") != "release" {
        return;
    }
    for options in OPTIONS {
        ask(options);
    }
    if stops_at_panics() {
        let script = Path::new(&set("OUT_DIR")).join("without_tables.ld");
        if std::fs::write(&script, WITHOUT_TABLES).is_ok() {
            ask(&["-Wl,--no-eh-frame-hdr", &format!("-Wl,-T,{}", script.display())]);
        }
    }
}

/// Whether this is the profile `release` as the workspace has it. Cargo does not say how a profile treats panics.
fn stops_at_panics() -> bool {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    println!("cargo::rerun-if-changed={}", workspace.display());
    println!("cargo::rerun-if-env-changed=CARGO_PROFILE_RELEASE_PANIC");
    // OUT_DIR is `release/build/NAME/out`.
    let folder = env::var_os("OUT_DIR").map(std::path::PathBuf::from);
    let release = folder.and_then(|f| f.ancestors().nth(3).map(|f| f.ends_with("release"))) == Some(true);
    let text = std::fs::read_to_string(workspace).unwrap_or_default();
    let profile = text.split("[profile.release]").nth(1).and_then(|rest| rest.split("\n[").next());
    release
        && env::var_os("CARGO_PROFILE_RELEASE_PANIC").is_none()
        && profile.is_some_and(|p| p.lines().any(|line| line == "panic = \"abort\""))
}

fn ask(options: &[&str]) {
    if links_and_runs(options) == Some(true) {
        for option in options {
            println!("cargo::rustc-link-arg-bins={option}");
        }
    }
}

/// Builds a program as cargo will build the command, and runs it.
fn links_and_runs(options: &[&str]) -> Option<bool> {
    let folder = env::var_os("OUT_DIR")?;
    let (source, program) = (Path::new(&folder).join("probe.rs"), Path::new(&folder).join("probe"));
    std::fs::write(&source, "fn main() { println!(\"{:?}\", std::env::args()); }").ok()?;
    let mut rustc = Command::new(env::var_os("RUSTC")?);
    rustc
        .args(["--edition=2024", "-C", "panic=abort", "--target", &env::var("TARGET").ok()?, "-o"])
        .arg(&program)
        .arg(&source);
    rustc.args(options.iter().map(|option| format!("-Clink-arg={option}")));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    if let Ok(flags) = env::var("CARGO_ENCODED_RUSTFLAGS") {
        rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    }
    let done = |command: &mut Command| {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    Some(done(&mut rustc) && done(&mut Command::new(&program)))
}
