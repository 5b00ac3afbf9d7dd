//! What a file format brings to `Core`.

use carafe_frontend::{FormatOptions, Log, Progress, Rule};
use carafe_graph::{Model, Pass, Registry, Result};
use carafe_tensor::PartialShape;
use std::path::Path;
use std::sync::Arc;

/// A file to read, and how.
#[derive(Clone, Copy)]
pub struct ReadRequest<'a> {
    pub path: &'a Path,
    /// Weights in another place than beside the model.
    pub weights: Option<&'a Path>,
    /// Keep operations nobody knows as opaque nodes, for looking at a model that cannot run.
    pub keep_unknown: bool,
    /// Attach to every node which rule made it, for `Core::explain`.
    pub explain: bool,
    /// Told how far the reading has come.
    pub progress: Progress<'a>,
    /// What only some formats understand.
    pub options: Option<&'a FormatOptions>,
    /// Hears what is noticed on the way.
    pub log: Log<'a>,
    /// Rewrites that come before those of extensions: of the graph as decoded, or of the model where the format has no
    /// such form.
    pub rewrites: &'a [Arc<dyn Pass>],
    /// What the caller will keep of the model, by names of nodes or tensors: a reader may leave out what none of it needs.
    /// Empty for everything.
    pub wanted: &'a [String],
    /// Shapes that inputs are going to have. A reader whose layers compute with sizes reads the model as if the file had
    /// them; others need not look.
    pub input_shapes: &'a [InputShape],
}

/// A shape that an input shall have in place of that in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct InputShape {
    /// The input, or a place inside of the graph; without a name the shapes of a list are those of the inputs in order.
    pub name: Option<String>,
    pub shape: PartialShape,
}

impl std::fmt::Debug for ReadRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReadRequest({}, weights: {:?}, options: {:?})", self.path.display(), self.weights, self.options)
    }
}

impl<'a> ReadRequest<'a> {
    /// The file as it is.
    pub fn new(path: &'a Path) -> ReadRequest<'a> {
        ReadRequest {
            path,
            weights: None,
            keep_unknown: false,
            explain: false,
            progress: Progress::default(),
            options: None,
            log: Log::default(),
            rewrites: &[],
            wanted: &[],
            input_shapes: &[],
        }
    }
}

/// One file format.
pub trait Reader: Send + Sync {
    /// Name for messages, e.g. `OpenVINO IR`.
    fn format(&self) -> &'static str;
    /// Decides by content; `head` is the first part of the file.
    fn recognizes(&self, head: &[u8]) -> bool;
    fn read(&self, request: &ReadRequest<'_>, cx: &ReadContext<'_>) -> Result<Model>;
    /// Endings of file names that no other format has, in small letters: such a file is of this format even when its content
    /// is not recognised.
    fn endings(&self) -> &'static [&'static str] {
        &[]
    }
    /// Names of the options of `ReadRequest::options` that it understands.
    fn options(&self) -> &'static [&'static str] {
        &[]
    }
    /// Whether rewrites reach the graph before it is translated (`ReadContext::decoded`).
    fn has_decoded_form(&self) -> bool {
        false
    }
    /// The graph as decoded, for looking at it; `None` when the format has no such form.
    fn decoded(&self, _request: &ReadRequest<'_>) -> Result<Option<Model>> {
        Ok(None)
    }
}

/// What extensions bring to the reading of a file; a snapshot, so that later registrations do not reach into it.
#[derive(Clone, Copy)]
pub struct ReadContext<'a> {
    /// Every operation.
    pub registry: &'a Registry,
    /// Rules of users; those for other formats included.
    pub rules: &'a [Rule],
    /// Rules for operations that were registered without one: they map by equal type name, behind all other rules.
    pub fallback: &'a [Rule],
    /// Names of the extensions that were added.
    pub extensions: &'a [String],
    /// Rewrites of the graph as decoded, in order.
    pub decoded: &'a [Arc<dyn Pass>],
    /// Hears of events: kind, category, action, label, value.
    pub telemetry: &'a dyn Fn(&str, &str, &str, &str, i64),
}

impl std::fmt::Debug for ReadContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReadContext({} rules)", self.rules.len())
    }
}
