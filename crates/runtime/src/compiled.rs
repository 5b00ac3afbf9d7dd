//! A model made ready for a device, as users hold it: the device's own, the executors that its requests share, and the
//! answers that only `Core` knows.

use crate::inputs::{IntoInputs, Outputs};
use crate::request::InferRequest;
use carafe_device::{CompiledModel as Compiled, Executors, Port, PortKey, RemoteContext};
use carafe_graph::{Model, Result};
use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// A model made ready for one device. Cheap to clone; clones are the same compiled model. It keeps its device alive, so
/// `Core` may go first.
///
/// Made by [`Core::compile_model`](crate::Core::compile_model) and [`Core::import_model`](crate::Core::import_model).
#[derive(Clone)]
pub struct CompiledModel {
    inner: Arc<Inner>,
}

struct Inner {
    model: Arc<dyn Compiled>,
    executors: Executors,
    from_cache: bool,
    cache_dir: String,
}

impl CompiledModel {
    pub(crate) fn new(model: Arc<dyn Compiled>, from_cache: bool, cache_dir: &str) -> CompiledModel {
        let executors = model.executors();
        let inner = Inner { model, executors, from_cache, cache_dir: cache_dir.to_string() };
        CompiledModel { inner: Arc::new(inner) }
    }

    /// Inputs, in the order of the model.
    pub fn inputs(&self) -> &[Port] {
        self.inner.model.inputs()
    }

    /// Outputs, in the order of the model.
    pub fn outputs(&self) -> &[Port] {
        self.inner.model.outputs()
    }

    /// An input by name, index or port.
    pub fn input<'k>(&self, key: impl Into<PortKey<'k>>) -> Result<&Port> {
        Ok(&self.inputs()[key.into().find(self.inputs(), "input")?])
    }

    /// An output by name, index or port.
    pub fn output<'k>(&self, key: impl Into<PortKey<'k>>) -> Result<&Port> {
        Ok(&self.outputs()[key.into().find(self.outputs(), "output")?])
    }

    /// A new request: it has tensors, state and profile of its own, and runs beside the other requests of the model.
    pub fn create_infer_request(&self) -> InferRequest {
        InferRequest::new(self.inner.model.clone(), &self.inner.executors)
    }

    /// One inference with a request of its own. Who infers more than once keeps a request instead: making one costs memory
    /// and, on some devices, time.
    pub fn infer(&self, inputs: impl IntoInputs) -> Result<Outputs> {
        self.create_infer_request().infer(inputs)
    }

    /// The graph that really runs; runtime info of its nodes holds `execOrder`, `primitiveType` and, after a profiled run,
    /// times.
    pub fn runtime_model(&self) -> Model {
        self.inner.model.runtime_model()
    }

    /// Writes what [`Core::import_model`](crate::Core::import_model) reads. Not every device can; the error says so.
    pub fn export(&self, to: &mut dyn Write) -> Result<()> {
        self.inner.model.export(to)
    }

    /// Value of a property it was compiled with, or of one it answers itself, as text.
    pub fn property(&self, name: &str) -> Result<String> {
        match name {
            "LOADED_FROM_CACHE" => Ok(self.inner.from_cache.to_string()),
            crate::cache::DIR => Ok(self.inner.cache_dir.clone()),
            _ => self.inner.model.property(name),
        }
    }

    /// The memory that its requests work in, for tensors that lie there from one inference to the next. A device that has none of
    /// its own says so.
    pub fn context(&self) -> Result<Arc<dyn RemoteContext>> {
        self.inner.model.context()
    }

    /// What the device made, for tools that work below requests.
    pub fn device_model(&self) -> &Arc<dyn Compiled> {
        &self.inner.model
    }

    pub(crate) fn executors(&self) -> &Executors {
        &self.inner.executors
    }
}

impl fmt::Debug for CompiledModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |ports: &[Port]| ports.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        write!(f, "CompiledModel({:?} -> {:?})", names(self.inputs()), names(self.outputs()))
    }
}
