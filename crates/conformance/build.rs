//! Lists the case files and their models, so that they are part of every program that judges devices.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // In the repository `cases` is a link, which some checkouts do not have; in a package it is the folder.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let linked = here.join("cases");
    let cases = if linked.is_dir() { linked } else { here.join("../testkit/cases") }.canonicalize()?;
    let models = cases.join("models");
    let mut text = String::new();
    for (name, folder, ends, include, of) in [
        ("CASES", &cases, &["case"][..], "include_str", "&str"),
        ("MODELS", &models, &["xml", "bin"][..], "include_bytes", "&[u8]"),
    ] {
        println!("cargo::rerun-if-changed={}", folder.display());
        writeln!(text, "pub(crate) static {name}: &[(&str, {of})] = &[")?;
        for path in files(folder, ends)? {
            println!("cargo::rerun-if-changed={}", path.display());
            let file = path.file_name().unwrap_or_default();
            writeln!(text, "    ({file:?}, {include}!({path:?})),")?;
        }
        writeln!(text, "];")?;
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("embedded.rs");
    Ok(std::fs::write(out, text)?)
}

fn files(folder: &Path, ends: &[&str]) -> std::io::Result<Vec<PathBuf>> {
    let mut all = std::fs::read_dir(folder)?.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<_>>>()?;
    all.retain(|p| p.extension().is_some_and(|e| ends.iter().any(|w| e == *w)));
    all.sort();
    Ok(all)
}
