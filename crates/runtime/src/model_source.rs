//! What can be compiled: a model, or the file of one.

use crate::core::Core;
use carafe_graph::{Model, Result};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// What [`Core::compile_model`] takes: a `&Model`, or the path of a file of any format.
pub trait ModelSource {
    /// The model, read where it is a path.
    fn model(&self, core: &Core) -> Result<Cow<'_, Model>>;
}

impl ModelSource for &Model {
    fn model(&self, _: &Core) -> Result<Cow<'_, Model>> {
        Ok(Cow::Borrowed(self))
    }
}
impl ModelSource for &Path {
    fn model(&self, core: &Core) -> Result<Cow<'_, Model>> {
        core.read_model(self).map(Cow::Owned)
    }
}
impl ModelSource for &PathBuf {
    fn model(&self, core: &Core) -> Result<Cow<'_, Model>> {
        core.read_model(self).map(Cow::Owned)
    }
}
impl ModelSource for PathBuf {
    fn model(&self, core: &Core) -> Result<Cow<'_, Model>> {
        core.read_model(self).map(Cow::Owned)
    }
}
impl ModelSource for &str {
    fn model(&self, core: &Core) -> Result<Cow<'_, Model>> {
        core.read_model(self).map(Cow::Owned)
    }
}
impl ModelSource for &String {
    fn model(&self, core: &Core) -> Result<Cow<'_, Model>> {
        core.read_model(self.as_str()).map(Cow::Owned)
    }
}
impl ModelSource for String {
    fn model(&self, core: &Core) -> Result<Cow<'_, Model>> {
        core.read_model(self.as_str()).map(Cow::Owned)
    }
}
