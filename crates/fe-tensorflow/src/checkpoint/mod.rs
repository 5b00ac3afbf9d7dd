//! Checkpoints: the values of variables, by key. Version 2 is an index and shards (`bundle`), version 1 a table or several
//! (`old`); both name the parts of a variable in the same way (`slice`).

mod bundle;
mod crc32c;
mod old;
mod slice;
mod snappy;
mod table;
mod wire;

pub(crate) use slice::Slice;
pub(crate) use table::is_table;

use bundle::{Bundle, with_ending};
use carafe_graph::{Error, Result};
use carafe_tensor::Tensor;
use old::Tables;
use std::path::{Path, PathBuf};

/// The values of variables.
#[derive(Debug)]
pub(crate) enum Checkpoint {
    /// Version 2.
    Bundle(Bundle),
    /// Version 1.
    Tables(Tables),
}

impl Checkpoint {
    /// Opens a checkpoint by its prefix, by its index, by one of its shards, by a file of version 1, or by the folder that says in
    /// `checkpoint` which is the latest.
    pub(crate) fn open(path: &Path) -> Result<Checkpoint> {
        if path.is_dir() {
            return Checkpoint::open(&latest(path)?);
        }
        let text = path.to_string_lossy();
        let prefix = text.strip_suffix(".index").or(text.split_once(".data-").map(|(prefix, _)| prefix));
        let prefix = PathBuf::from(prefix.unwrap_or(&text));
        if with_ending(&prefix, ".index").is_file() {
            return Bundle::open(&prefix).map(Checkpoint::Bundle);
        }
        let files = if path.is_file() { vec![path.to_path_buf()] } else { shards(path) };
        match files.is_empty() {
            false => Tables::open(path, &files).map(Checkpoint::Tables),
            true => Err(Error::not_found(format!(
                "there is no checkpoint `{}`: neither `{}` nor a file of that name",
                path.display(),
                with_ending(&prefix, ".index").display()
            ))),
        }
    }

    /// Whether there is a checkpoint of this prefix.
    pub(crate) fn is_there(prefix: &Path) -> bool {
        with_ending(prefix, ".index").is_file() || prefix.is_file() || !shards(prefix).is_empty()
    }
    /// Whether there is a tensor of this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        match self {
            Checkpoint::Bundle(b) => b.has(key),
            Checkpoint::Tables(t) => t.has(key),
        }
    }
    /// The key of the variable of this name, where the checkpoint says so.
    pub(crate) fn key_of(&self, name: &str) -> Option<&str> {
        match self {
            Checkpoint::Bundle(b) => b.key_of(name),
            Checkpoint::Tables(_) => None,
        }
    }
    /// The tensor of a key, or a part of it.
    pub(crate) fn tensor(&self, key: &str, part: Option<&Slice>) -> Result<Tensor> {
        match self {
            Checkpoint::Bundle(b) => b.tensor(key, part),
            Checkpoint::Tables(t) => t.tensor(key, part),
        }
    }
}

// `model.ckpt-00000-of-00002` and so on.
fn shards(prefix: &Path) -> Vec<PathBuf> {
    let Some(name) = prefix.file_name().map(|n| format!("{}-", n.to_string_lossy())) else { return vec![] };
    let folder = prefix.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|f| f.path());
    let is_shard = |path: &PathBuf| {
        let file = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let number = |n: &str| n.len() == 5 && n.bytes().all(|b| b.is_ascii_digit());
        let parts = file.strip_prefix(&name).and_then(|rest| rest.split_once("-of-"));
        parts.is_some_and(|(a, b)| number(a) && number(b))
    };
    let mut found: Vec<PathBuf> = files.filter(is_shard).collect();
    found.sort_unstable();
    found
}

// What the file `checkpoint` of a folder names.
fn latest(folder: &Path) -> Result<PathBuf> {
    let file = folder.join("checkpoint");
    let text = carafe_tensor::files::read_text(&file)
        .map_err(|e| Error::io(format!("cannot read `{}`", file.display()), &e))?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("model_checkpoint_path:"));
    let name = line.map(|l| l.trim().trim_matches('"')).filter(|n| !n.is_empty());
    let name = name.ok_or_else(|| Error::invalid(format!("`{}` names no checkpoint", file.display())))?;
    // A checkpoint that was moved lies beside its folder's list.
    let inside = Path::new(name).file_name().map(|n| folder.join(n));
    Ok(inside.filter(|p| Checkpoint::is_there(p)).unwrap_or_else(|| folder.join(name)))
}
