//! What is read, and how: the one request that every format takes. The user fills the first part, `Core` the second.

use crate::options::{FormatOptions, Log, Progress};
use crate::rule::Rule;
use carafe_graph::{Error, Pass, Registry, Result};
use carafe_tensor::{PartialShape, SharedBytes, files};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Where a model or its weights lie.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A file, which is mapped.
    File(&'a Path),
    /// Bytes in memory.
    Bytes(&'a SharedBytes),
}

impl<'a> Content<'a> {
    /// All bytes; those of a file are mapped, not loaded.
    pub fn map(self) -> Result<SharedBytes> {
        match self {
            Content::Bytes(bytes) => Ok(bytes.clone()),
            Content::File(path) => {
                files::map(path).map_err(|e| Error::io(format!("cannot open `{}`", path.display()), &e))
            }
        }
    }
    /// The first bytes, at most `n`.
    pub fn head(self, n: usize) -> Result<Vec<u8>> {
        match self {
            Content::Bytes(bytes) => Ok(bytes.as_slice()[..bytes.len().min(n)].to_vec()),
            Content::File(path) => {
                let failed = |what: &str, e: &std::io::Error| Error::io(format!("cannot {what}"), e);
                let mut head = vec![];
                let file = files::open(path).map_err(|e| failed("open", &e))?;
                file.take(n as u64).read_to_end(&mut head).map_err(|e| failed("read", &e))?;
                Ok(head)
            }
        }
    }
    /// The path of a file.
    pub fn path(self) -> Option<&'a Path> {
        match self {
            Content::File(path) => Some(path),
            Content::Bytes(_) => None,
        }
    }
}

impl<'a> From<&'a Path> for Content<'a> {
    fn from(path: &'a Path) -> Content<'a> {
        Content::File(path)
    }
}

/// The way errors speak of it.
impl std::fmt::Display for Content<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Content::File(path) => write!(f, "`{}`", path.display()),
            Content::Bytes(_) => write!(f, "in memory"),
        }
    }
}

/// A shape that an input shall have in place of that in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct InputShape {
    /// The input, or a value inside of the graph; without a name the shapes of a list are those of the inputs in order.
    pub name: Option<String>,
    /// The shape.
    pub shape: PartialShape,
}

/// A model to read, and how.
#[derive(Clone, Copy)]
pub struct ReadRequest<'a> {
    /// The model.
    pub model: Content<'a>,
    /// Weights that do not lie beside the model.
    pub weights: Option<Content<'a>>,
    /// Keep operations without a rule as opaque nodes, for looking at a model that cannot run.
    pub keep_unknown: bool,
    /// Attach to every node which rule made it out of what, see [`Explained`](crate::Explained).
    pub explain: bool,
    /// Hears how far the reading has come.
    pub progress: Progress<'a>,
    /// What only some formats understand.
    pub options: Option<&'a FormatOptions>,
    /// Hears what is noticed on the way.
    pub log: Log<'a>,
    /// Rewrites that come before those of extensions: of the graph as decoded, or of the model where the format has no
    /// such form.
    pub rewrites: &'a [Arc<dyn Pass>],
    /// What the caller will keep of the model, by names of nodes or tensors; what none of it needs may be left out. Empty for
    /// everything.
    pub wanted: &'a [String],
    /// Shapes that inputs are going to have. A format whose nodes compute with sizes reads the model as if the file had
    /// them; others need not look.
    pub input_shapes: &'a [InputShape],

    /// Every operation, those of extensions included; rules may emit them by name.
    pub registry: Option<&'a Registry>,
    /// Rules of users; those for other formats included.
    pub rules: &'a [Rule],
    /// Rules for operations that were registered without one: they map by equal type name, behind all other rules.
    pub fallback: &'a [Rule],
    /// Names of the extensions that were added.
    pub extensions: &'a [String],
    /// Rewrites of extensions of the graph as decoded, in order.
    pub decoded: &'a [Arc<dyn Pass>],
    /// Hears of events: kind, category, action, label, value.
    pub telemetry: Option<&'a dyn Fn(&str, &str, &str, &str, i64)>,
}

impl std::fmt::Debug for ReadRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReadRequest({}, weights: {:?}, options: {:?})", self.model, self.weights, self.options)
    }
}

impl<'a> ReadRequest<'a> {
    /// The file as it is.
    pub fn new(path: &'a Path) -> ReadRequest<'a> {
        ReadRequest::of(Content::File(path))
    }
    /// The model in these bytes as it is.
    pub fn from_bytes(bytes: &'a SharedBytes) -> ReadRequest<'a> {
        ReadRequest::of(Content::Bytes(bytes))
    }
    fn of(model: Content<'a>) -> ReadRequest<'a> {
        ReadRequest {
            model,
            weights: None,
            keep_unknown: false,
            explain: false,
            progress: Progress::default(),
            options: None,
            log: Log::default(),
            rewrites: &[],
            wanted: &[],
            input_shapes: &[],
            registry: None,
            rules: &[],
            fallback: &[],
            extensions: &[],
            decoded: &[],
            telemetry: None,
        }
    }
    /// An option that only some formats understand.
    pub fn option(&self, name: &str) -> Option<&'a str> {
        self.options.and_then(|o| o.get(name))
    }
    /// A switch among those options: absent is off.
    pub fn flag(&self, name: &str) -> Result<bool> {
        self.options.map_or(Ok(false), |o| o.flag(name))
    }
}
