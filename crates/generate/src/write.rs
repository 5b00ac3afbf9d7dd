//! Puts a project into a folder. A file that somebody edited stays: its checksum is not that of what was generated before, which
//! the manifest keeps.

use crate::project::{File, Project};
use carafe_graph::{Error, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The file with the answers that a project was made from, and the checksums of what was written.
pub const MANIFEST: &str = "carafe-extension.json";

/// What happened to the files.
#[derive(Debug, Default, PartialEq)]
pub struct Written {
    /// Made or brought up to date.
    pub written: Vec<String>,
    /// There already, as they should be.
    pub same: Vec<String>,
}

/// Writes the files. When one of them was edited, nothing is written and the error names it, unless `force`.
pub fn write(project: &Project, dir: &Path, force: bool) -> Result<Written> {
    let before = recorded(dir);
    let mut edited = vec![];
    let mut done = Written::default();
    let mut todo: Vec<&File> = vec![];
    for file in &project.files {
        let path = dir.join(&file.path);
        match std::fs::read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => todo.push(file),
            Err(e) => return Err(Error::io(format!("cannot read `{}`", path.display()), &e)),
            Ok(_) if file.path == MANIFEST => todo.push(file),
            Ok(bytes) if bytes == file.bytes => done.same.push(file.path.clone()),
            Ok(bytes) if before.get(&file.path) == Some(&checksum(&bytes)) => todo.push(file),
            Ok(_) => {
                edited.push(path.display().to_string());
                todo.push(file);
            }
        }
    }
    if !edited.is_empty() && !force {
        let (files, were) = if edited.len() == 1 { ("file", "was") } else { ("files", "were") };
        return Err(Error::usage(format!(
            "nothing was written: the {files} `{}` {were} edited and would be overwritten; --force does that, --output_dir \
             takes another folder",
            edited.join("`, `")
        )));
    }
    for file in todo {
        let path = dir.join(&file.path);
        let io = |e: std::io::Error| Error::io(format!("cannot write `{}`", path.display()), &e);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let bytes = if file.path == MANIFEST { with_checksums(file, &project.files) } else { file.bytes.clone() };
        carafe_tensor::files::write(&path, &bytes).map_err(io)?;
        done.written.push(file.path.clone());
    }
    Ok(done)
}

fn recorded(dir: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(dir.join(MANIFEST)).unwrap_or_default();
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    let files = value["generated"].as_object().cloned().unwrap_or_default();
    files.into_iter().filter_map(|(path, sum)| Some((path, sum.as_str()?.to_string()))).collect()
}

fn with_checksums(manifest: &File, files: &[File]) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(&manifest.bytes).unwrap_or_default();
    let sums: BTreeMap<&str, String> =
        files.iter().filter(|f| f.path != MANIFEST).map(|f| (f.path.as_str(), checksum(&f.bytes))).collect();
    value["generated"] = json!(sums);
    format!("{value:#}\n").into_bytes()
}

// FNV-1a: tells an edited file from one that was not, no more.
fn checksum(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf29ce484222325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100000001b3));
    format!("{hash:016x}")
}
