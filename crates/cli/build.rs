//! Asks the linker for what makes the command smaller, where it can do so and the result runs on this machine. Both are tried
//! with a small program first: not every linker has them, and loaders know packed relocations from glibc 2.36 on.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// Relocations in a few kB instead of one MB, and functions of the same code once. Rust promises no function an address of its
/// own, so nothing may depend on it.
const OPTIONS: [&str; 2] = ["-Wl,-z,pack-relative-relocs", "-Wl,--icf=all"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name| env::var(name).unwrap_or_default();
    // What is built for another machine, or to be looked at, is linked plainly.
    if set("HOST") != set("TARGET") || set("CARGO_CFG_TARGET_OS") != "linux" || set("PROFILE") != "release" {
        return;
    }
    for option in OPTIONS {
        if links_and_runs(option) == Some(true) {
            println!("cargo::rustc-link-arg-bins={option}");
        }
    }
}

/// Builds a program as cargo will build the command, and runs it.
fn links_and_runs(option: &str) -> Option<bool> {
    let folder = env::var_os("OUT_DIR")?;
    let (source, program) = (Path::new(&folder).join("probe.rs"), Path::new(&folder).join("probe"));
    std::fs::write(&source, "fn main() { println!(\"{:?}\", std::env::args()); }").ok()?;
    let mut rustc = Command::new(env::var_os("RUSTC")?);
    rustc.args(["--edition=2024", "--target", &env::var("TARGET").ok()?, "-C", &format!("link-arg={option}"), "-o"]);
    rustc.arg(&program).arg(&source);
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
