//! The engine as users depend on it: `core()` gives a [`Core`] with every built-in operation, format and device.
//!
//! ```no_run
//! let core = carafe::core();
//! let model = core.read_model("model.xml")?;
//! let compiled = core.compile_model(&model, "CPU", &carafe::Properties::new())?;
//! let mut request = compiled.create_request();
//! request.set_input(0, carafe::Tensor::zeros(carafe::ElementType::F32, &[1, 3, 224, 224])?)?;
//! request.infer()?;
//! println!("{:?}", request.output(0)?.shape());
//! # Ok::<(), carafe::Error>(())
//! ```
//!
//! # Sequences and optionals
//!
//! Inputs and outputs of a compiled model are tensors. One that stands for a sequence or an optional of ONNX is a packed
//! list, a u8 vector; [`Model::packed_type`] says so for a Parameter or Result, and its [`ItemType`] packs and unpacks:
//!
//! ```no_run
//! # use carafe::{Model, InferRequest, Tensor};
//! # fn run(model: &Model, request: &mut dyn InferRequest) -> carafe::Result<()> {
//! let input = model.packed_type(model.parameters()[0]).expect("a sequence");
//! request.set_input(0, input.pack(Some(&[Tensor::scalar(1f32), Tensor::scalar(2f32)]))?)?;
//! request.infer()?;
//! let output = model.packed_type(model.results()[0]).expect("a sequence");
//! let tensors: Option<Vec<Tensor>> = output.unpack(request.output(0)?)?; // None: an optional without content
//! # Ok(())
//! # }
//! ```
//!
//! A sequence output whose elements are known one by one when the model is read stays a result for each, named `name/0`,
//! `name/1` and so on; [`Model::part_of`] gives the `name`. [`pack_sequence`] and [`unpack_sequence`] are the form itself.

#![forbid(unsafe_code)]

pub mod prelude;
mod summary;

pub use carafe_abi::{Extension, Library, LoadError, report_crashes};
pub use carafe_convert as convert;
pub use carafe_device as device;
pub use carafe_device::{
    AsyncInferQueue, AsyncInferRequest, CancelFlag, CompiledModel, Device, Executors, Finished, InferRequest,
    Mutability, NodeProfile, NodeStatus, Port, Properties, PropertyInfo, PropertyKind, Query, RequestHandle, Stage,
    Unsupported, Version, async_request,
};
pub use carafe_frontend::{
    Content, Explained, Format, FormatOptions, InputShape, Item, Level, Log, Mapping, NodeCx, Outputs, Progress,
    ReadRequest, Rule,
};
pub use carafe_graph::*;
pub use carafe_ir as ir;
pub use carafe_multi as multi;
pub use carafe_ops as ops;
pub use carafe_passes as passes;
pub use carafe_preprocess as preprocess;
pub use carafe_runtime::{
    CACHE_PROPERTIES, CacheEntry, CacheStore, Core, DeviceName, EntryInfo, IntoExtensions, NodeExplained, Removed,
    parse_size,
};
pub use carafe_tensor::{
    Dim, Element, ElementType, Number, PackedSequence, PartialShape, SharedBytes, Tensor, TensorError, bf16, f16,
    files, memory, pack_sequence, unpack_sequence,
};
pub use summary::{Summary, summarize};

use std::sync::Arc;

/// A `Core` with everything that is built in, and the extensions that the environment variable `CARAFE_EXTENSIONS` lists. One
/// that cannot be loaded is a warning to whoever listens ([`log`]).
pub fn core() -> Core {
    let core = Core::empty();
    core.add_ops(carafe_ops::factories());
    core.add_format(Arc::new(carafe_ir::Ir));
    core.add_format(Arc::new(carafe_fe_onnx::Onnx));
    core.add_format(Arc::new(carafe_fe_caffe::Caffe::default()));
    core.add_device(carafe_cpu::NAME, Arc::new(carafe_cpu::CpuDevice::default()))
        .expect("built-in device names are valid and distinct");
    core.add_device(carafe_template::NAME, Arc::new(carafe_template::TemplateDevice::default()))
        .expect("built-in device names are valid and distinct");
    for (name, device) in carafe_multi::devices(Arc::new(core.downgrade())) {
        core.add_device(name, device).expect("built-in device names are valid and distinct");
    }
    for e in core.add_environment_extensions().into_iter().chain(core.add_environment_plugins()) {
        core.warn(&e.to_string());
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
