//! CPU: the embedded default device, a backend of plans (`backend.rs`): builders of steps (`steps/`), packed weights, threads,
//! and requests that run plans.

#![forbid(unsafe_code)]

mod backend;
mod blob;
mod compiled;
#[cfg(test)]
mod faults;
mod memory;
mod properties;
mod steps;
mod threads;
mod weights;

use carafe_device::{CompiledModel, Device, Kernel, Layout, Properties, PropertyInfo, Query, query_runnable};
use carafe_graph::{Model, Registry, Result};
use carafe_tensor::SharedBytes;
use compiled::Compiled;
use std::sync::{Arc, RwLock};

/// Name of the device, and the name its exported models carry.
pub const NAME: &str = "CPU";

/// How values lie between steps, as kernels of extensions hear it. Blocks of other sizes cost as little.
pub(crate) const LAYOUTS: &[Layout] =
    &[Layout::Plain, Layout::ChannelsLast, Layout::BlockedBy(4), Layout::BlockedBy(8), Layout::BlockedBy(16)];

/// The CPU device.
#[derive(Default)]
pub struct CpuDevice {
    kernels: RwLock<Vec<Arc<dyn Kernel>>>,
}

impl std::fmt::Debug for CpuDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(NAME)
    }
}

impl CpuDevice {
    fn kernels(&self) -> Vec<Arc<dyn Kernel>> {
        self.kernels.read().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

impl Device for CpuDevice {
    fn properties(&self) -> &'static [PropertyInfo] {
        &properties::TABLE
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
        Ok(Arc::new(blob::import(&blob, registry, &self.kernels(), properties)?))
    }
}
