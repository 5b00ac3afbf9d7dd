//! What a device implements, and what every device needs: property tables, ports, profiling records. It knows neither
//! `Core` nor any file format.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod around;
mod async_request;
mod blob;
mod blob_parts;
mod cancel;
mod kernel;
mod kernel_choice;
mod kernel_io;
mod kernel_layout;
mod kernel_op;
mod parallel;
mod port;
mod property;
mod remote;
mod runnable;

pub use around::Around;
pub use async_request::{
    AsyncInferQueue, AsyncInferRequest, Executor, Executors, Finished, RequestHandle, Task, async_request,
};
pub use blob::{BlobHeader, read_blob, write_blob};
pub use blob_parts::{PartsReader, PartsWriter};
pub use cancel::{CancelFlag, Leading};
pub use kernel::{Config, EpilogueOp, Function, Kernel, Operand, PortLayout, PreparedKernel, Site};
pub use kernel_choice::ChosenKernel;
pub use kernel_io::{Form, Forms, KernelIo, KernelThreads, each_chunk};
pub use kernel_layout::{Blocked, Layout};
pub use kernel_op::{KERNEL_TROUBLE, KernelOffer, KernelOp, settle_kernels, tell_kernel_troubles, use_kernels};
pub use parallel::{Parallel, parallel, with_parallel};
pub use port::{Port, PortKey};
pub use property::{Mutability, Properties, PropertyInfo, PropertyKind};
pub use remote::{RemoteContext, Shared};
pub use runnable::query_runnable;

#[doc(hidden)]
pub use carafe_graph as graph;

use carafe_graph::{Model, OpFactory, Registry, Result};
use carafe_tensor::{SharedBytes, Tensor};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// A device: turns models into something that runs.
pub trait Device: Send + Sync {
    /// Every property the device knows, once: name, kind, default, doc.
    fn properties(&self) -> &'static [PropertyInfo];

    /// Value of a read-only property, as text.
    fn metric(&self, name: &str) -> Result<String>;

    /// What made this device: its own version and a line for people.
    fn version(&self) -> Version {
        Version { build: env!("CARGO_PKG_VERSION").to_string(), description: String::new() }
    }

    /// Takes the kernels that extensions bring for the name it is registered under, all of them each time.
    fn set_kernels(&self, _kernels: &[Arc<dyn Kernel>]) {}

    /// Reads an OpenCL kernel that an extension brings for the name it is registered under: the operations that its description
    /// declares. `None` when the device takes no such kernels.
    fn read_cl_kernel(&self, _kernel: &ClKernel) -> Option<Result<Vec<OpFactory>>> {
        None
    }

    /// Takes the OpenCL kernels that extensions bring for the name it is registered under, all of them each time. Those that
    /// cannot be read are passed over.
    fn set_cl_kernels(&self, _kernels: &[ClKernel]) {}

    /// Operations that properties declare, such as those of kernel files; files that they name are read and checked.
    fn declared_ops(&self, _properties: &Properties) -> Result<Vec<OpFactory>> {
        Ok(vec![])
    }

    /// A text that differs when what the device reads for a compilation differs, beside the model and the properties themselves: kernel
    /// files that properties name, kernels that it was given. Part of the key under which the cache keeps compiled models.
    fn fingerprint(&self, _properties: &Properties) -> String {
        String::new()
    }

    /// Takes every registered operation, each time that changes; for devices that make operations by name.
    fn set_registry(&self, _registry: &Registry) {}

    /// Which nodes the device can run. HETERO asks this and errors quote it.
    fn query(&self, model: &Model, properties: &Properties) -> Result<Query>;

    /// The given model is not changed.
    fn compile(&self, model: &Model, properties: &Properties) -> Result<Arc<dyn CompiledModel>>;

    /// The memory that models compiled with these properties work in, for tensors that stay there.
    fn context(&self, _properties: &Properties) -> Result<Arc<dyn RemoteContext>> {
        Err(remote::none())
    }

    /// The same for a context that somebody else made: an object of a kind that the device knows.
    fn share_context(&self, _context: Shared, _properties: &Properties) -> Result<Arc<dyn RemoteContext>> {
        Err(remote::none())
    }

    /// Reads what `CompiledModel::export` wrote. A foreign, stale or cut blob is refused with the reason.
    fn import(&self, blob: SharedBytes, registry: &Registry, properties: &Properties)
    -> Result<Arc<dyn CompiledModel>>;
}

/// OpenCL source with the description that binds it to an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClKernel {
    /// The device: `GPU` or `VPU`.
    pub device: String,
    /// The description: `<CustomLayer>` elements, as in a kernel file.
    pub xml: String,
    /// The source; every file name of the description means it.
    pub source: String,
}

/// A model made ready for one device.
pub trait CompiledModel: Send + Sync {
    /// Inputs, in the order of the model.
    fn inputs(&self) -> &[Port];
    /// Outputs, in the order of the model.
    fn outputs(&self) -> &[Port];
    /// The graph that really runs; node runtime info holds `execOrder`, `primitiveType` and, after a profiled run, times.
    fn runtime_model(&self) -> Model;
    /// Writes what `Device::import` reads.
    fn export(&self, to: &mut dyn Write) -> Result<()>;
    /// Value of a property it was compiled with, or of one it answers itself, as text.
    fn property(&self, name: &str) -> Result<String>;
    /// The memory that its requests work in, for tensors that stay there.
    fn context(&self) -> Result<Arc<dyn RemoteContext>> {
        Err(remote::none())
    }
    /// A new request; it keeps the model alive.
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest>;
    /// Executors for asynchronous requests of this model, new ones with each call. `Core` asks once and lets all requests
    /// of the model share them; a device says more only when it wants other numbers of threads.
    fn executors(&self) -> Executors {
        let requests = self.property("OPTIMAL_NUMBER_OF_INFER_REQUESTS").ok().and_then(|n| n.trim().parse().ok());
        Executors::new(requests.unwrap_or(1))
    }
}

/// One inference at a time, with its own tensors and state.
pub trait InferRequest: Send {
    /// Binds a tensor without copying it; a wrong type or shape is refused.
    fn set_input(&mut self, index: usize, tensor: Tensor) -> Result<()>;
    /// The tensor that is bound to an input.
    fn input(&self, index: usize) -> Option<&Tensor>;
    /// Gives the memory that an output goes to; it comes back through `output`. A wrong type or shape is refused.
    fn set_output(&mut self, index: usize, tensor: Tensor) -> Result<()>;
    /// Runs once with the tensors that are bound.
    fn infer(&mut self) -> Result<()>;
    /// The steps of one inference, in order. An asynchronous request runs each on the executor it names, so that the
    /// steps of several requests overlap.
    fn stages(&self) -> Vec<Stage> {
        vec![Stage { name: "infer".into(), executor: "infer".into() }]
    }
    /// Runs one step. `infer` is all of them in order.
    fn run_stage(&mut self, stage: usize) -> Result<()> {
        debug_assert_eq!(stage, 0, "a request with several stages says how each runs");
        self.infer()
    }
    /// Output of the last inference.
    fn output(&self, index: usize) -> Result<&Tensor>;
    /// Times of the last inference; empty unless `PERF_COUNT` is on.
    fn profile(&self) -> Vec<NodeProfile>;
    /// Ids of the variables this request keeps.
    fn variables(&self) -> Vec<String>;
    /// `None` before the first assignment and after a reset.
    fn variable(&self, id: &str) -> Result<Option<Tensor>>;
    /// Sets what the next inference reads of a variable.
    fn set_variable(&mut self, id: &str, value: Tensor) -> Result<()>;
    /// Brings all variables back to where a new request begins.
    fn reset_variables(&mut self);
    /// Setting it to true stops a running inference between two nodes. `infer` clears it when it begins; whoever runs
    /// stages one by one clears it before the first.
    fn cancel_flag(&self) -> CancelFlag;
}

/// A step of an inference and the queue of the device that it runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Name for people.
    pub name: String,
    /// Stages with the same word share one executor of the compiled model.
    pub executor: String,
}

/// Who built a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Version of the build.
    pub build: String,
    /// A line for people.
    pub description: String,
}

/// What devices made of other devices ask for. `Core` answers; a device holds it weakly.
pub trait Devices: Send + Sync {
    /// A device by name (`CPU`, `GPU.1`), with the properties in force for it under those of the call.
    fn device(&self, name: &str, properties: &Properties) -> Result<(Arc<dyn Device>, Properties)>;
    /// Devices that are here and are not made of others, with their instances.
    fn available(&self) -> Vec<String>;
    /// Every operation that is registered, for reading models back.
    fn registry(&self) -> Registry;
}

/// Which nodes a device takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Names of the nodes that it takes.
    pub supported: Vec<String>,
    /// The others, with reasons.
    pub unsupported: Vec<Unsupported>,
}

/// A node a device cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Name of the node.
    pub name: String,
    /// Type of its operation.
    pub type_name: String,
    /// Why not.
    pub reason: String,
}

/// What one node did in the last inference.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeProfile {
    /// Name of the node.
    pub name: String,
    /// Type of its operation.
    pub type_name: String,
    /// Which kernel ran it; `reference` for plain evaluation.
    pub kernel: String,
    /// Whether it ran.
    pub status: NodeStatus,
    /// Time on the clock.
    pub real_time: Duration,
    /// Time of processors.
    pub cpu_time: Duration,
}

/// What became of a node in an inference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeStatus {
    /// It was not reached.
    NotRun,
    /// It is part of another node, or of none.
    OptimizedOut,
    /// It ran.
    Executed,
}
