//! Packs the case files and their models into one file, so that they are part of every program that judges devices.

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // In the repository `cases` is a link, which some checkouts do not have; in a package it is the folder.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let linked = here.join("cases");
    let cases = if linked.is_dir() { linked } else { here.join("../testkit/cases") }.canonicalize()?;
    let models = cases.join("models");
    // A line with name and length before each file; `src/embedded.rs` reads it.
    let mut all = Vec::new();
    for (folder, ends) in [(&cases, &["case"][..]), (&models, &["xml", "bin"][..])] {
        println!("cargo::rerun-if-changed={}", folder.display());
        for path in files(folder, ends)? {
            println!("cargo::rerun-if-changed={}", path.display());
            let name = path.file_name().and_then(|n| n.to_str()).ok_or("a case file whose name is not text")?;
            let bytes = std::fs::read(&path)?;
            if name.ends_with(".case") {
                std::str::from_utf8(&bytes).map_err(|e| format!("{name}: {e}"))?;
            }
            all.extend_from_slice(format!("{name}\t{}\n", bytes.len()).as_bytes());
            all.extend_from_slice(&bytes);
        }
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("cases.deflate");
    Ok(std::fs::write(out, miniz_oxide::deflate::compress_to_vec(&all, 9))?)
}

fn files(folder: &Path, ends: &[&str]) -> std::io::Result<Vec<PathBuf>> {
    let mut all = std::fs::read_dir(folder)?.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<_>>>()?;
    all.retain(|p| p.extension().is_some_and(|e| ends.iter().any(|w| e == *w)));
    all.sort();
    Ok(all)
}
