//! GPU: devices of OpenCL, a backend of plans (`backend.rs`): builders of steps (`steps/`) over kernels in OpenCL C
//! (`kernels/`), programs that are built once, memory and queues of the device, requests that run plans. VPU is the same
//! device in f16 under another name.

#![forbid(unsafe_code)]

mod backend;
mod blob;
mod bound;
mod compiled;
mod custom;
mod error;
mod launch;
mod machine;
mod memory;
mod programs;
mod properties;
mod query;
mod remote;
mod steps;
mod streams;
mod tuning;
mod weights;

pub use carafe_opencl as opencl;
pub use remote::ClContext;

use carafe_device::{ClKernel, CompiledModel, Device, Properties, PropertyInfo, Query, RemoteContext, Shared};
use carafe_graph::{Model, OpFactory, Registry, Result};
use carafe_tensor::SharedBytes;
use compiled::Compiled;
use custom::CustomKernels;
use std::sync::{Arc, RwLock};

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
    /// Kernels of extensions.
    cl_kernels: RwLock<Vec<ClKernel>>,
}

impl GpuDevice {
    fn custom(&self, properties: &Properties) -> Result<CustomKernels> {
        let kernels = self.cl_kernels.read().unwrap_or_else(|e| e.into_inner());
        CustomKernels::of(self.kind, properties, &kernels)
    }
}

/// The devices with their names.
pub fn devices() -> [(&'static str, Arc<dyn Device>); 2] {
    [Kind::Gpu, Kind::Vpu]
        .map(|kind| (kind.name(), Arc::new(GpuDevice { kind, cl_kernels: RwLock::default() }) as Arc<dyn Device>))
}

impl Device for GpuDevice {
    fn properties(&self) -> &'static [PropertyInfo] {
        properties::table(self.kind)
    }
    fn metric(&self, name: &str) -> Result<String> {
        properties::metric(self.kind, name, &*machine::by_id("0")?)
    }
    fn read_cl_kernel(&self, kernel: &ClKernel) -> Option<Result<Vec<OpFactory>>> {
        let read = CustomKernels::of(self.kind, &Properties::new(), std::slice::from_ref(kernel));
        Some(read.map(|kernels| kernels.declared_ops()))
    }
    fn set_cl_kernels(&self, kernels: &[ClKernel]) {
        let good = kernels.iter().filter(|k| self.read_cl_kernel(k).is_some_and(|read| read.is_ok()));
        *self.cl_kernels.write().unwrap_or_else(|e| e.into_inner()) = good.cloned().collect();
    }
    fn fingerprint(&self, properties: &Properties) -> String {
        // Files that cannot be read are told of when the model is compiled.
        self.custom(properties).map(|kernels| kernels.fingerprint()).unwrap_or_default()
    }
    fn declared_ops(&self, properties: &Properties) -> Result<Vec<OpFactory>> {
        Ok(CustomKernels::of(self.kind, properties, &[])?.declared_ops())
    }
    fn query(&self, model: &Model, properties: &Properties) -> Result<Query> {
        query::query(self.kind, model, properties, &self.custom(properties)?)
    }
    fn compile(&self, model: &Model, properties: &Properties) -> Result<Arc<dyn CompiledModel>> {
        Ok(Arc::new(Compiled::new(self.kind, model.clone(), properties, &self.custom(properties)?)?))
    }
    fn context(&self, properties: &Properties) -> Result<Arc<dyn RemoteContext>> {
        Ok(Arc::new(ClContext::of(self.kind, properties::device(properties)?)?))
    }
    fn share_context(&self, context: Shared, _properties: &Properties) -> Result<Arc<dyn RemoteContext>> {
        Ok(Arc::new(ClContext::shared(self.kind, context)?))
    }
    fn import(
        &self,
        blob: SharedBytes,
        registry: &Registry,
        properties: &Properties,
    ) -> Result<Arc<dyn CompiledModel>> {
        Ok(Arc::new(blob::import(self.kind, &blob, registry, properties, self.custom(properties)?)?))
    }
}
