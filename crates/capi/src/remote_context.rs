//! `ov_remote_context.h`: memory that lies on a device, made there or shared by the program. The device GPU has such memory;
//! what it cannot share (images, memory of VA) is answered with NOT_IMPLEMENTED.

use crate::compiled_model::{CompiledHandle, CompiledObject};
use crate::core::{CoreHandle, CoreObject};
use crate::element_type::{ElementNumber, from_number};
use crate::handles::{Handle, Object, hand_out};
use crate::heap;
use crate::model::ModelHandle;
use crate::opencl::{self, SharedQueue};
use crate::pointers::{List, Out, Text};
use crate::properties::{self, Given, Property};
use crate::shape::Shape;
use crate::status::{Failure, INVALID_C_PARAM, NOT_IMPLEMENTED, Outcome, Status, guard};
use crate::tensor::TensorObject;
use crate::variadic::{Words, variadic};
use carafe::{Error, ErrorKind, Properties, RemoteContext};
use std::ffi::c_char;
use std::sync::Arc;

/// `ov_remote_context_t`.
#[derive(Debug)]
pub struct Context {
    context: Arc<dyn RemoteContext>,
    /// The queue that the program works in.
    queue: Option<Arc<SharedQueue>>,
}

impl Object for Context {
    const KIND: &'static str = "ov_remote_context_t";
}

type ContextHandle = Handle<Context>;
type TensorHandle = Handle<TensorObject>;

/// Names and values as one text: `KEY value KEY value`.
pub(crate) type Params = Vec<(String, String)>;

fn address(value: usize) -> String {
    format!("{value:#x}")
}

impl Context {
    fn params(&self) -> Params {
        let mut params = vec![("CONTEXT_TYPE".to_string(), "OCL".to_string())];
        for (name, value) in self.context.handles() {
            let own = self.queue.as_ref().filter(|_| name == "OCL_QUEUE").map_or(value, |q| q.address());
            params.push((name.to_string(), address(own)));
        }
        params
    }
}

// What no device here can do is told apart from what went wrong.
fn told(e: Error) -> Failure {
    if e.kind() == ErrorKind::Unsupported { Failure::new(NOT_IMPLEMENTED, e.to_string()) } else { e.into() }
}

fn create(core: CoreHandle, device: Text, given: &Given, to: Out<ContextHandle>) -> Outcome<()> {
    to.check("context")?;
    let core = core.get("core")?;
    let device = device.get("device_name")?;
    core.core.device(device)?;
    if let Some(kind) = given.texts.get("CONTEXT_TYPE").filter(|k| *k != "OCL") {
        return Err(Failure::new(
            NOT_IMPLEMENTED,
            format!("a context of type {kind}; devices here share those of OCL"),
        ));
    }
    for (key, value) in given.texts.iter() {
        match key {
            "CONTEXT_TYPE" => {}
            // One device of a context is used: the first.
            "OCL_CONTEXT_DEVICE_ID" | "TILE_ID" if matches!(value.trim(), "0" | "-1") => {}
            "OCL_CONTEXT_DEVICE_ID" | "TILE_ID" => {
                let text = format!("property {key} is {value}; of a shared context the first device is used, 0");
                return Err(Failure::new(NOT_IMPLEMENTED, text));
            }
            _ => return Err(Failure::argument(format!("a context has no property {key}"))),
        }
    }
    let shared = given.handles.get("OCL_CONTEXT").map(|a| opencl::context(*a)).transpose()?;
    let context = match shared {
        Some(shared) => core.core.share_context(device, shared),
        None => core.core.create_context(device, &Properties::new()),
    };
    let context = context.map_err(told)?;
    let queue = given.handles.get("OCL_QUEUE").map(|a| opencl::queue(&*context, *a)).transpose()?;
    to.set(hand_out(Arc::new(Context { context, queue: queue.map(Arc::new) })), "context")
}

// core, device, number of arguments, where to, pairs.
fn create_words(words: &mut Words) -> Outcome<()> {
    let core = CoreHandle::of_word(words.next());
    let device = Text::of_word(words.pointer());
    let count = words.next();
    let context = Out::of_word(words.pointer());
    let given = Given::of_words(words, count)?;
    create(core, device, &given, context)
}
variadic!(ov_core_create_context, create_entry, create_words);

/// Makes a context of a device, or shares one of OpenCL.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_create_context_props(
    core: CoreHandle,
    device_name: Text,
    num_properties: usize,
    properties: List<Property>,
    context: Out<ContextHandle>,
) -> Status {
    guard(|| create(core, device_name, &Given::of_list(properties, num_properties)?, context))
}

/// The context that a device works in.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_get_default_context(
    core: CoreHandle,
    device_name: Text,
    context: Out<ContextHandle>,
) -> Status {
    guard(|| create(core, device_name, &Given::default(), context))
}

/// The context of a compiled model.
#[unsafe(no_mangle)]
pub extern "C" fn ov_compiled_model_get_context(compiled_model: CompiledHandle, context: Out<ContextHandle>) -> Status {
    guard(|| {
        context.check("context")?;
        let object = compiled_model.get("compiled_model")?;
        let found = object.compiled.context().map_err(told)?;
        context.set(hand_out(Arc::new(Context { context: found, queue: object.queue() })), "context")
    })
}

fn compile(
    core: Handle<CoreObject>,
    model: ModelHandle,
    context: ContextHandle,
    given: &Given,
    to: Out<Handle<CompiledObject>>,
) -> Outcome<()> {
    to.check("compiled_model")?;
    let core = core.get("core")?;
    let model = model.get("model")?;
    let context = context.get("context")?;
    let name = context.context.device();
    let device = name.split('.').next().unwrap_or_default();
    let properties = properties::for_compilation(&core, device, given)?;
    let model = model.model().clone();
    let compiled = core.core.compile_model_in(&model, &*context.context, &properties)?;
    let object = CompiledObject::new(compiled, core, device).behind(context.queue.clone());
    to.set(hand_out(Arc::new(object)), "compiled_model")
}

fn compile_words(words: &mut Words) -> Outcome<()> {
    let (core, model) = (Handle::of_word(words.next()), ModelHandle::of_word(words.next()));
    let context = ContextHandle::of_word(words.next());
    let count = words.next();
    let to = Out::of_word(words.pointer());
    let given = Given::of_words(words, count)?;
    compile(core, model, context, &given, to)
}
variadic!(ov_core_compile_model_with_context, compile_entry, compile_words);

/// Compiles a model for the memory of a context.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_compile_model_with_context_props(
    core: CoreHandle,
    model: ModelHandle,
    context: ContextHandle,
    num_properties: usize,
    properties: List<Property>,
    compiled_model: Out<CompiledHandle>,
) -> Status {
    guard(|| compile(core, model, context, &Given::of_list(properties, num_properties)?, compiled_model))
}

fn create_tensor(
    context: ContextHandle,
    ty: ElementNumber,
    shape: &[usize],
    given: &Given,
    to: Out<TensorHandle>,
) -> Outcome<()> {
    to.check("remote_tensor")?;
    let context = context.get("context")?;
    let ty = from_number(ty)?;
    let kind = given.texts.get("SHARED_MEM_TYPE").unwrap_or("OCL_BUFFER");
    if kind != "OCL_BUFFER" {
        let text = format!("a tensor over memory of type {kind}; device {} takes OCL_BUFFER", context.context.device());
        return Err(Failure::new(NOT_IMPLEMENTED, text));
    }
    if let Some((key, _)) = given.texts.iter().find(|(key, _)| *key != "SHARED_MEM_TYPE") {
        return Err(Failure::argument(format!("a tensor of a context has no property {key}")));
    }
    let inner = &context.context;
    let tensor = match given.handles.get("MEM_HANDLE") {
        Some(memory) => inner.share_tensor(ty, shape, opencl::buffer(&**inner, *memory)?),
        None => inner.create_tensor(ty, shape),
    };
    let tensor = tensor.map_err(told)?;
    let mut params = vec![("SHARED_MEM_TYPE".to_string(), kind.to_string())];
    params.extend(opencl::address_of(&**inner, &tensor).map(|a| ("MEM_HANDLE".to_string(), address(a))));
    params.extend(context.params().into_iter().filter(|(name, _)| name == "OCL_CONTEXT"));
    let object = TensorObject::remote(tensor, inner.device(), params);
    to.set(hand_out(Arc::new(object)), "remote_tensor")
}

// Context, type, shape (its rank and where its sizes are), number of arguments, where to.
fn create_tensor_words(words: &mut Words) -> Outcome<()> {
    let context = ContextHandle::of_word(words.next());
    let ty = words.next() as ElementNumber;
    let shape = Shape::of_words(words);
    let count = words.next();
    let to = Out::of_word(words.pointer());
    let given = Given::of_words(words, count)?;
    create_tensor(context, ty, &shape.sizes("shape")?, &given, to)
}
variadic!(ov_remote_context_create_tensor, create_tensor_entry, create_tensor_words);

/// A tensor of zeros in the memory of a context, or one over a buffer of OpenCL.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_context_create_tensor_props(
    context: ContextHandle,
    ty: ElementNumber,
    shape: Shape,
    num_properties: usize,
    properties: List<Property>,
    remote_tensor: Out<TensorHandle>,
) -> Status {
    guard(|| {
        let given = Given::of_list(properties, num_properties)?;
        create_tensor(context, ty, &shape.sizes("shape")?, &given, remote_tensor)
    })
}

/// The device of a context.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_context_get_device_name(context: ContextHandle, device_name: Out<*mut c_char>) -> Status {
    guard(|| {
        device_name.check("device_name")?;
        device_name.set(heap::text(&context.get("context")?.context.device())?, "device_name")
    })
}

fn give(params: &Params, size: Out<usize>, to: Out<*mut c_char>) -> Outcome<()> {
    size.check("size")?;
    to.check("params")?;
    let text: Vec<String> = params.iter().map(|(name, value)| format!("{name} {value}")).collect();
    to.set(heap::text(&text.join(" "))?, "params")?;
    size.set(params.len(), "size")
}

/// What a context is made of, as names and values in one text; to be freed with `ov_free`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_context_get_params(
    context: ContextHandle,
    size: Out<usize>,
    params: Out<*mut c_char>,
) -> Status {
    guard(|| give(&context.get("context")?.params(), size, params))
}

/// A tensor of the host. Devices read it where it lies or copy it; there is no faster kind here.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_context_create_host_tensor(
    context: ContextHandle,
    ty: ElementNumber,
    shape: Shape,
    tensor: Out<TensorHandle>,
) -> Status {
    guard(|| {
        tensor.check("tensor")?;
        context.get("context")?;
        let object = TensorObject::zeros(from_number(ty)?, &shape.sizes("shape")?)?;
        tensor.set(hand_out(Arc::new(object)), "tensor")
    })
}

/// Frees a context. Tensors and compiled models keep what they use of it.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_context_free(context: ContextHandle) {
    drop(context.take());
}

fn not_remote() -> Failure {
    Failure::new(INVALID_C_PARAM, "the tensor lies in memory of the host, not on a device")
}

/// What a tensor of a device is made of, as names and values in one text; to be freed with `ov_free`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_tensor_get_params(
    tensor: TensorHandle,
    size: Out<usize>,
    params: Out<*mut c_char>,
) -> Status {
    guard(|| {
        let (_, found) = tensor.get("tensor")?.on_device().ok_or_else(not_remote)?;
        give(&found, size, params)
    })
}

/// The device of a tensor; to be freed with `ov_free`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_tensor_get_device_name(
    remote_tensor: TensorHandle,
    device_name: Out<*mut c_char>,
) -> Status {
    guard(|| {
        device_name.check("device_name")?;
        let (device, _) = remote_tensor.get("remote_tensor")?.on_device().ok_or_else(not_remote)?;
        device_name.set(heap::text(&device)?, "device_name")
    })
}
