//! A batch of one: the device's own model, which still answers for the properties of BATCH.

use super::TABLE;
use carafe_device::{CompiledModel, Executors, InferRequest, Mutability, Port, Properties};
use carafe_graph::{Model, Result};
use std::io::Write;
use std::sync::Arc;

pub(super) struct Alone {
    pub(super) inner: Arc<dyn CompiledModel>,
    pub(super) properties: Properties,
}

impl CompiledModel for Alone {
    fn inputs(&self) -> &[Port] {
        self.inner.inputs()
    }
    fn outputs(&self) -> &[Port] {
        self.inner.outputs()
    }
    fn runtime_model(&self) -> Model {
        self.inner.runtime_model()
    }
    fn export(&self, _: &mut dyn Write) -> Result<()> {
        Err(super::no_export())
    }
    fn property(&self, name: &str) -> Result<String> {
        let own = TABLE.iter().find(|p| p.name == name && p.mutability == Mutability::ReadWrite);
        match own {
            Some(p) => Ok(self.properties.get(name).unwrap_or(p.default).to_string()),
            None => self.inner.property(name),
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        self.inner.clone().create_request()
    }
    fn executors(&self) -> Executors {
        self.inner.executors()
    }
}
