//! GPU: devices of OpenCL, a backend of plans (`backend.rs`): builders of steps (`steps/`) over kernels in OpenCL C
//! (`kernels/`), programs that are built once, memory and queues of the device, requests that run plans. VPU is the same
//! device in f16 under another name.

#![forbid(unsafe_code)]

mod backend;
mod blob;
mod compiled;
mod error;
mod launch;
mod machine;
mod memory;
mod programs;
mod properties;
mod query;
mod request;
mod steps;
mod streams;
mod tuning;
mod weights;

use carafe_device::{CompiledModel, Device, Properties, PropertyInfo, Query};
use carafe_graph::{Model, Registry, Result};
use carafe_tensor::SharedBytes;
use compiled::Compiled;
use std::sync::Arc;

/// Name of the device, and the name its exported models carry.
pub const GPU: &str = "GPU";
/// The same with floats as halves and the limits of a vision processor.
pub const VPU: &str = "VPU";

/// What the VPU was called.
pub const MYRIAD: &str = "MYRIAD";

/// Which of the two devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Gpu,
    Vpu,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Gpu => GPU,
            Kind::Vpu => VPU,
        }
    }
}

/// The devices that OpenCL finds. Without the library or a device it is there and has no instance; whoever uses it hears why.
#[derive(Debug)]
pub struct GpuDevice {
    kind: Kind,
}

/// The devices with their names.
pub fn devices() -> [(&'static str, Arc<dyn Device>); 2] {
    [Kind::Gpu, Kind::Vpu].map(|kind| (kind.name(), Arc::new(GpuDevice { kind }) as Arc<dyn Device>))
}

impl Device for GpuDevice {
    fn properties(&self) -> &'static [PropertyInfo] {
        &properties::TABLE
    }
    fn metric(&self, name: &str) -> Result<String> {
        properties::metric(self.kind, name, machine::by_id("0")?)
    }
    fn query(&self, model: &Model, properties: &Properties) -> Result<Query> {
        query::query(self.kind, model, properties)
    }
    fn compile(&self, model: &Model, properties: &Properties) -> Result<Arc<dyn CompiledModel>> {
        Ok(Arc::new(Compiled::new(self.kind, model.clone(), properties)?))
    }
    fn import(
        &self,
        blob: SharedBytes,
        registry: &Registry,
        properties: &Properties,
    ) -> Result<Arc<dyn CompiledModel>> {
        Ok(Arc::new(blob::import(self.kind, &blob, registry, properties)?))
    }
}
