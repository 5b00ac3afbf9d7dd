//! A file format as `Core` knows it. What a format costs: recognising its files, decoding them into a `SourceGraph`, and a
//! table of rules; `tests/all/toy.rs` is one on a page.

use crate::decoded::Decoded;
use crate::dialect::Dialect;
use crate::request::ReadRequest;
use crate::rule::RuleSet;
use crate::source::SourceGraph;
use crate::telemetry::send_error;
use crate::translate::translate;
use carafe_graph::{Model, Notes, Pass, Registry, Result, run_passes};
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// One file format.
pub trait Format: Send + Sync {
    /// Name for messages, such as `OpenVINO IR`.
    fn name(&self) -> &'static str;
    /// Decides by content; `head` is the first part of the file.
    fn recognizes(&self, head: &[u8]) -> bool;
    /// Whether a folder is a model of this format; most are files.
    fn recognizes_folder(&self, _folder: &Path) -> bool {
        false
    }
    /// Decodes a model.
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source>;
    /// Name by which rules speak of the format, in small letters.
    fn framework(&self) -> &'static str {
        ""
    }
    /// The built-in rules; none where nothing is to be translated.
    fn rules(&self) -> &RuleSet {
        static NONE: LazyLock<RuleSet> = LazyLock::new(RuleSet::default);
        &NONE
    }
    /// Endings of file names that no other format has, in small letters: such a file is of this format even when its content
    /// is not recognised.
    fn endings(&self) -> &'static [&'static str] {
        &[]
    }
    /// Names of the options of [`ReadRequest::options`] that it understands.
    fn options(&self) -> &'static [&'static str] {
        &[]
    }
}

/// What a file holds.
pub enum Source {
    /// Nodes of the format, to be translated by rules, and what only the format knows about them.
    Graph(Box<SourceGraph>, Box<dyn Dialect>),
    /// Operations of ours.
    Model(Model),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Graph(graph, _) => f.debug_tuple("Graph").field(graph).finish(),
            Source::Model(model) => f.debug_tuple("Model").field(model).finish(),
        }
    }
}

/// Reads a model of a format. Options that the format does not understand are an error.
pub fn read(format: &dyn Format, request: &ReadRequest<'_>) -> Result<Model> {
    if let Some(options) = request.options {
        options.check(format.name(), format.options())?;
    }
    request.log.debug(|| format!("stage load: {}", format.name()));
    let done = format.decode(request).and_then(|source| match source {
        Source::Model(model) => rewritten(model, request),
        Source::Graph(graph, dialect) => {
            let framework = format.framework();
            let rules = format.rules().with_user(framework, request.rules, request.fallback);
            translate(*graph, &*dialect, framework, &rules, request)
        }
    });
    done.inspect_err(|e| send_error(request, e))
}

// A model that was never a graph of another format gets the user's rewrites as it is.
fn rewritten(mut model: Model, request: &ReadRequest<'_>) -> Result<Model> {
    let list: Vec<&dyn Pass> = request.rewrites.iter().map(|p| &**p).collect();
    if !list.is_empty() {
        let registry = Arc::new(request.registry.cloned().unwrap_or_else(Registry::new));
        let mut notes = Notes::default().kept(request.log.is_debug()).with_registry(registry);
        let done = run_passes(&mut model, &list, &mut notes);
        notes.lines.iter().for_each(|line| request.log.debug(|| line.clone()));
        done?;
    }
    Ok(model)
}

/// The graph of a model as it was decoded, before anything is translated; `None` when its format has no such form.
pub fn read_decoded(format: &dyn Format, request: &ReadRequest<'_>) -> Result<Option<Model>> {
    match format.decode(request)? {
        Source::Model(_) => Ok(None),
        Source::Graph(mut graph, dialect) => Ok(Some(Decoded::of(&mut graph, &*dialect, format.framework())?.model)),
    }
}
