//! Reads OpenVINO IR v10 and v11 and writes v11. Knows no operation by name but the three that make a graph: every other
//! one is made by the registry it is handed, and written through its own attributes.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod detect;
mod format;
mod names;
mod read;
mod write;
mod xml;

pub use detect::is_ir;
pub use format::Ir;
pub use read::{Problem, problems, read, read_file, read_parts};
use std::path::PathBuf;
pub use write::{WeightPart, types_only_read_here, write_file, write_parts, write_to};

/// How a model is read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Layers of unknown type become `FrameworkNode` instead of an error; the model can be looked at and written back.
    pub keep_unknown: bool,
    /// Inputs and outputs of v10 models are adjusted to what the API of their time showed.
    pub old_api: bool,
    /// Weights file, where it is not the model's path with the extension `.bin`.
    pub weights: Option<PathBuf>,
    /// Names of the extensions that are loaded, for advice about layers that nobody knows.
    pub loaded: Vec<String>,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { keep_unknown: false, old_api: true, weights: None, loaded: vec![] }
    }
}

/// How a model is written.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Stored in the model's runtime information as `Runtime_version`.
    pub runtime_version: Option<String>,
    /// Attributes that are marked internal are written too. For a model that goes on running elsewhere (exported models,
    /// plugins), not for the files of a user.
    pub keep_internal: bool,
    /// Versions of operations.
    pub versions: Versions,
}

/// Which versions of operations are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// Of every operation the oldest one that says the same, for older readers.
    #[default]
    Oldest,
    /// As `Oldest`; nodes that need a newer opset than this one are an error that lists them.
    UpTo(u32),
    /// As the model has them.
    Current,
}

impl WriteOptions {
    /// A model on its way to another device or process of ours: everything that running it needs.
    pub fn transfer() -> WriteOptions {
        WriteOptions { keep_internal: true, versions: Versions::Current, ..WriteOptions::default() }
    }
}
