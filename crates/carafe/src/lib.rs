//! Carafe runs trained models: it reads a file of any format, makes it ready for a device and infers. Operations, file
//! format, device names and properties are those of OpenVINO; `docs/from-openvino.md` maps its C++ API to this one.
//!
//! ```
//! # use carafe::{ElementType, Tensor};
//! let core = carafe::core();
//! # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/digits/digits.xml");
//! let compiled = core.compile_model(file, "CPU", &carafe::Properties::new())?;
//! let request = compiled.create_infer_request();
//! let outputs = request.infer(&[("image", Tensor::zeros(ElementType::F32, &[1, 1, 8, 8])?)])?;
//! assert_eq!(outputs["probabilities"].shape(), [1, 10]);
//! # Ok::<(), carafe::Error>(())
//! ```
//!
//! # What is where
//!
//! | for | use |
//! |---|---|
//! | reading, compiling, devices, properties, extensions | [`Core`] |
//! | inference, in the background too, and its state | [`CompiledModel`], [`InferRequest`], [`AsyncInferQueue`] |
//! | tensors and shapes | [`Tensor`], [`ElementType`], [`PartialShape`] |
//! | pictures, layouts, mean and scale in front of a model | [`preprocess`] |
//! | conversion to IR, cutting, replacements | [`convert`] |
//! | quantization to 8 bits, compressed weights | [`quantize`] |
//! | looking at a model and editing it | [`Model`], [`summarize`], [`ops`], [`passes`], [`ir`] |
//! | operations and rules of your own | [`prelude`], [`Extension`] |
//! | a device of your own | [`device`] |
//! | a file format of your own | [`frontend`], [`Core::add_format`] |
//! | tensors that stay in the memory of a device | [`RemoteContext`], [`gpu`] |
//! | what the engine reports | [`log`] |
//!
//! # Sequences and optionals
//!
//! Inputs and outputs of a compiled model are tensors. One that stands for a sequence or an optional of ONNX is a packed
//! list, a u8 vector; [`Model::packed_type`] says so for a Parameter or Result, and its [`ItemType`] packs and unpacks:
//!
//! ```no_run
//! # use carafe::{Model, InferRequest, Tensor};
//! # fn run(model: &Model, request: &InferRequest) -> carafe::Result<()> {
//! let input = model.packed_type(model.parameters()[0]).expect("a sequence");
//! let outputs = request.infer(input.pack(Some(&[Tensor::scalar(1f32), Tensor::scalar(2f32)]))?)?;
//! let output = model.packed_type(model.results()[0]).expect("a sequence");
//! let tensors: Option<Vec<Tensor>> = output.unpack(&outputs[0])?; // None: an optional without content
//! # Ok(())
//! # }
//! ```
//!
//! A sequence output whose elements are known one by one when the model is read stays a result for each, named `name/0`,
//! `name/1` and so on; [`Model::part_of`] gives the `name`. [`pack_sequence`] and [`unpack_sequence`] are the form itself.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod prelude;
pub mod properties;
mod summary;

// Running models.
pub use carafe_device::{CancelFlag, NodeProfile, NodeStatus, Port, PortKey, Properties, Query, Unsupported, Version};
pub use carafe_device::{RemoteContext, Shared};
pub use carafe_runtime::{
    AsyncInferQueue, CompiledModel, Core, DeviceName, Finished, InferRequest, IntoInputs, ModelSource, NodeExplained,
    Outputs, VariableState,
};
// What the properties of devices and the cache are.
pub use carafe_device::{Mutability, PropertyInfo, PropertyKind};
pub use carafe_runtime::{CACHE_PROPERTIES, CacheEntry, CacheStore, EntryInfo, Removed, parse_size};
// Tensors.
pub use carafe_tensor::{
    Dim, Element, ElementType, Number, PackedSequence, PartialShape, RemoteMemory, SharedBytes, Symbol, Tensor,
    TensorError, bf16, bytes_of_text, f16, files, memory, pack_sequence, text_of_bytes, unpack_sequence,
};
// Models.
pub use carafe_graph::{
    Body, BodyInput, BodyOutput, Constant, Error, ErrorKind, Fact, FrameworkNode, ItemType, Model, Node, NodeId,
    Parameter, Result, ResultOp, Slicing, Value, dump, log, printable, short_number, verify,
};
// One operation by itself, and what nodes and files carry along.
pub use carafe_graph::{
    Content as FactContent, EvalEnv, OpDecl, OpRef, RtAttribute, RtInfo, RtTree, TensorAttr, eval_op, infer_op,
};
pub use summary::{Summary, summarize};
// Reading models.
pub use carafe_frontend::{Content, Format, FormatOptions, InputShape, Log, Progress, ReadRequest};
// Extending the engine.
pub use carafe_abi::{ClKernel, Extension, Library, LoadError, report_crashes};
pub use carafe_frontend::{Explained, Item, Mapping, NodeCx, Outputs as RuleOutputs, Rule};
pub use carafe_graph::{
    AttrInfo, AttrKind, AttrMap, AttrValue, Match, Notes, OpFactory, OpInfo, OpNew, Outcome, Pass, PassChoice, Phase,
    PhasedPass, PortInfo, REPLACEMENT, Registry, Replacement, Rewrite, run_passes,
};
pub use carafe_runtime::IntoExtensions;
// Whole parts of the engine, under names of their own.
pub use carafe_convert as convert;
pub use carafe_device as device;
pub use carafe_frontend as frontend;
pub use carafe_ir as ir;
pub use carafe_multi as multi;
pub use carafe_ops as ops;
pub use carafe_passes as passes;
pub use carafe_preprocess as preprocess;
pub use carafe_quantize as quantize;

/// Memory of the GPU and VPU devices: [`ClContext`](gpu::ClContext) is what [`Core::create_context`] gives for them, and buffers are
/// those of [`opencl`](gpu::opencl).
#[cfg(feature = "gpu")]
pub mod gpu {
    pub use carafe_gpu::{ClContext, opencl};
}

use std::sync::Arc;

/// A [`Core`] with everything that is built in, and the extensions and plugins that the environment variables
/// `CARAFE_EXTENSIONS` and `CARAFE_PLUGINS` list. One that cannot be loaded is a warning to whoever listens ([`log`]).
pub fn core() -> Core {
    let core = Core::empty();
    core.add_ops(carafe_ops::factories());
    core.add_format(Arc::new(carafe_ir::Ir));
    #[cfg(feature = "onnx")]
    core.add_format(Arc::new(carafe_fe_onnx::Onnx));
    #[cfg(feature = "tensorflow")]
    core.add_format(Arc::new(carafe_fe_tensorflow::TensorFlow));
    #[cfg(feature = "paddle")]
    core.add_format(Arc::new(carafe_fe_paddle::Paddle));
    #[cfg(feature = "caffe")]
    core.add_format(Arc::new(carafe_fe_caffe::Caffe::default()));
    #[cfg(feature = "tflite")]
    core.add_format(Arc::new(carafe_fe_tflite::TfLite));
    #[cfg(feature = "kaldi")]
    core.add_format(Arc::new(carafe_fe_kaldi::Kaldi));
    #[cfg(feature = "mxnet")]
    core.add_format(Arc::new(carafe_fe_mxnet::Mxnet));
    #[cfg(feature = "tensorflow")]
    core.add_replacements(carafe_fe_tensorflow::replacements());
    core.add_device(carafe_cpu::NAME, Arc::new(carafe_cpu::CpuDevice::default()))
        .expect("built-in device names are valid and distinct");
    core.add_device(carafe_template::NAME, Arc::new(carafe_template::TemplateDevice::default()))
        .expect("built-in device names are valid and distinct");
    #[cfg(feature = "gpu")]
    for (name, device) in carafe_gpu::devices() {
        core.add_device(name, device).expect("built-in device names are valid and distinct");
    }
    #[cfg(feature = "gpu")]
    core.add_alias(carafe_gpu::MYRIAD, carafe_gpu::VPU);
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
