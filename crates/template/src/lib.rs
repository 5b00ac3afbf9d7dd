//! TEMPLATE: the reference device. It runs `Op::eval` node by node and is the example a plugin author copies; it is made
//! to be right and readable, not fast.

#![forbid(unsafe_code)]

mod compiled;
mod properties;
mod request;

use carafe_device::{CompiledModel, Device, Kernel, Layout, Properties, PropertyInfo, Query, query_runnable};
use carafe_graph::{Model, Registry, Result};
use carafe_tensor::SharedBytes;
use compiled::Compiled;
use std::sync::{Arc, RwLock};

/// Name of the device, and the name its exported models carry.
pub const NAME: &str = "TEMPLATE";

/// How values lie: as the model says. What a kernel of an extension wants otherwise is copied around it.
pub(crate) const LAYOUTS: &[Layout] = &[Layout::Plain];

/// The reference device.
#[derive(Default)]
pub struct TemplateDevice {
    kernels: RwLock<Vec<Arc<dyn Kernel>>>,
}

impl std::fmt::Debug for TemplateDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(NAME)
    }
}

impl TemplateDevice {
    fn kernels(&self) -> Vec<Arc<dyn Kernel>> {
        self.kernels.read().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

impl Device for TemplateDevice {
    fn properties(&self) -> &'static [PropertyInfo] {
        properties::TABLE
    }
    fn metric(&self, name: &str) -> Result<String> {
        properties::metric(name)
    }
    fn set_kernels(&self, kernels: &[Arc<dyn Kernel>]) {
        *self.kernels.write().unwrap_or_else(|e| e.into_inner()) = kernels.to_vec();
    }
    fn query(&self, model: &Model, properties: &Properties) -> Result<Query> {
        properties::check(properties)?;
        Ok(query_runnable(model, NAME, LAYOUTS, &self.kernels()))
    }
    fn compile(&self, model: &Model, properties: &Properties) -> Result<Arc<dyn CompiledModel>> {
        Ok(Arc::new(Compiled::new(model.clone(), &self.kernels(), properties)?))
    }
    fn import(
        &self,
        blob: SharedBytes,
        registry: &Registry,
        properties: &Properties,
    ) -> Result<Arc<dyn CompiledModel>> {
        Ok(Arc::new(Compiled::import(&blob, registry, &self.kernels(), properties)?))
    }
}
