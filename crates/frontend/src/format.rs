//! A file format as `Core` knows it.

use crate::request::ReadRequest;
use carafe_graph::{Model, Notes, Pass, Registry, Result, run_passes};
use std::sync::Arc;

/// One file format.
pub trait Format: Send + Sync {
    /// Name for messages, such as `OpenVINO IR`.
    fn name(&self) -> &'static str;
    /// Decides by content; `head` is the first part of the file.
    fn recognizes(&self, head: &[u8]) -> bool;
    /// Reads a model.
    fn read(&self, request: &ReadRequest<'_>) -> Result<Model>;
    /// Endings of file names that no other format has, in small letters: such a file is of this format even when its content
    /// is not recognised.
    fn endings(&self) -> &'static [&'static str] {
        &[]
    }
    /// Names of the options of [`ReadRequest::options`] that it understands.
    fn options(&self) -> &'static [&'static str] {
        &[]
    }
    /// Whether rewrites reach the graph before it is translated.
    fn has_decoded_form(&self) -> bool {
        false
    }
    /// The graph as decoded, for looking at it; `None` when the format has no such form.
    fn decoded(&self, _request: &ReadRequest<'_>) -> Result<Option<Model>> {
        Ok(None)
    }
}

/// Reads a model of a format. Options that the format does not understand are an error.
pub fn read(format: &dyn Format, request: &ReadRequest<'_>) -> Result<Model> {
    if let Some(options) = request.options {
        options.check(format.name(), format.options())?;
    }
    request.log.debug(|| format!("stage load: {}", format.name()));
    if format.has_decoded_form() {
        let all: Vec<Arc<dyn Pass>> = request.rewrites.iter().chain(request.decoded).cloned().collect();
        return format.read(&ReadRequest { decoded: &all, ..*request });
    }
    let mut model = format.read(request)?;
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
    format.decoded(request)
}
