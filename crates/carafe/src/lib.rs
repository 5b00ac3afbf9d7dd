//! The engine as users depend on it: `core()` gives a [`Core`] with every built-in operation, format and device.
//!
//! ```no_run
//! let core = carafe::core();
//! let model = core.read_model("model.xml")?;
//! let compiled = core.compile_model(&model, "TEMPLATE", &carafe::Properties::new())?;
//! let mut request = compiled.create_request();
//! request.set_input(0, carafe::Tensor::zeros(carafe::ElementType::F32, &[1, 3, 224, 224])?)?;
//! request.infer()?;
//! println!("{:?}", request.output(0)?.shape());
//! # Ok::<(), carafe::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod conversion;
mod ir_format;
mod onnx_format;
pub mod prelude;
mod summary;

pub use carafe_abi::{Extension, Library, LoadError};
pub use carafe_device::{
    AsyncInferQueue, AsyncInferRequest, CompiledModel, Device, Executors, Finished, InferRequest, Mutability,
    NodeProfile, NodeStatus, Port, Properties, PropertyInfo, PropertyKind, Query, RequestHandle, Stage, Unsupported,
    Version, async_request,
};
pub use carafe_frontend::Progress;
pub use carafe_frontend::{Item, Mapping, NodeCx, Outputs, Rule};
pub use carafe_graph::*;
pub use carafe_ir as ir;
pub use carafe_multi as multi;
pub use carafe_ops as ops;
pub use carafe_passes as passes;
pub use carafe_runtime::{
    CACHE_PROPERTIES, CacheEntry, CacheStore, Core, DeviceName, EntryInfo, IntoExtensions, ReadContext, ReadRequest,
    Reader, Removed, parse_size,
};
pub use carafe_tensor::{Dim, Element, ElementType, Number, PartialShape, SharedBytes, Tensor, TensorError, bf16, f16};
pub use summary::{Summary, summarize};

use std::sync::Arc;

/// A `Core` with everything that is built in, and the extensions that the environment variable `CARAFE_EXTENSIONS` lists.
pub fn core() -> Core {
    let core = Core::empty();
    core.add_ops(carafe_ops::factories());
    core.add_reader(Arc::new(ir_format::IrFormat));
    core.add_reader(Arc::new(onnx_format::OnnxFormat::new()));
    core.add_device(carafe_template::NAME, Arc::new(carafe_template::TemplateDevice))
        .expect("built-in device names are valid and distinct");
    for (name, device) in carafe_multi::devices(Arc::new(core.downgrade())) {
        core.add_device(name, device).expect("built-in device names are valid and distinct");
    }
    for e in core.add_environment_extensions() {
        eprintln!("[ WARNING ] {e}");
    }
    core
}

/// How `HETERO:A,B` would split a model, without compiling it.
pub fn partition(core: &Core, model: &Model, device: &str, properties: &Properties) -> Result<multi::Report> {
    let list = DeviceName::parse(device)?.priorities;
    let list = list.map_or_else(|| core.get_property("HETERO", multi::PRIORITIES), Ok)?;
    let properties = properties.clone().with(multi::PRIORITIES, list);
    multi::HeteroDevice::new(Arc::new(core.downgrade())).explain(model, &properties)
}

/// Version of the engine.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
