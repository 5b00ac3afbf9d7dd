//! What a file format brings to `Core`.

use carafe_frontend::Progress;
use carafe_graph::{Model, Registry, Result};
use std::path::Path;

/// A file to read, and how.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest<'a> {
    pub path: &'a Path,
    /// Weights in another place than beside the model.
    pub weights: Option<&'a Path>,
    /// Keep operations nobody knows as opaque nodes, for looking at a model that cannot run.
    pub keep_unknown: bool,
    /// Told how far the reading has come.
    pub progress: Progress<'a>,
}

impl<'a> ReadRequest<'a> {
    /// The file as it is.
    pub fn new(path: &'a Path) -> ReadRequest<'a> {
        ReadRequest { path, weights: None, keep_unknown: false, progress: Progress::default() }
    }
}

/// One file format.
pub trait Reader: Send + Sync {
    /// Name for messages, e.g. `OpenVINO IR`.
    fn format(&self) -> &'static str;
    /// Decides by content; `head` is the first part of the file.
    fn recognizes(&self, head: &[u8]) -> bool;
    fn read(&self, request: &ReadRequest<'_>, registry: &Registry) -> Result<Model>;
}
