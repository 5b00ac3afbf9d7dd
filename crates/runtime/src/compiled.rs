//! What `Core` gives out for a compiled model: the device's own, with the executors that its asynchronous requests share
//! and with the answers that only `Core` knows.

use carafe_device::{CompiledModel, Executors, InferRequest, Port};
use carafe_graph::{Model, Result};
use std::io::Write;
use std::sync::Arc;

pub(crate) struct Compiled {
    inner: Arc<dyn CompiledModel>,
    executors: Executors,
    from_cache: bool,
    cache_dir: String,
}

impl Compiled {
    pub(crate) fn wrap(inner: Arc<dyn CompiledModel>, from_cache: bool, cache_dir: &str) -> Arc<dyn CompiledModel> {
        let executors = inner.executors();
        Arc::new(Compiled { inner, executors, from_cache, cache_dir: cache_dir.to_string() })
    }
}

impl CompiledModel for Compiled {
    fn inputs(&self) -> &[Port] {
        self.inner.inputs()
    }
    fn outputs(&self) -> &[Port] {
        self.inner.outputs()
    }
    fn runtime_model(&self) -> Model {
        self.inner.runtime_model()
    }
    fn export(&self, to: &mut dyn Write) -> Result<()> {
        self.inner.export(to)
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "LOADED_FROM_CACHE" => Ok(self.from_cache.to_string()),
            crate::cache::DIR => Ok(self.cache_dir.clone()),
            _ => self.inner.property(name),
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        self.inner.clone().create_request()
    }
    fn executors(&self) -> Executors {
        self.executors.clone()
    }
}
