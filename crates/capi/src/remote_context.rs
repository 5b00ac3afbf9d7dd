//! `ov_remote_context.h`: memory that lies on a device. No device here shares its own, so what would make a context says so.

use crate::compiled_model::{CompiledHandle, CompiledObject};
use crate::core::{CoreHandle, CoreObject};
use crate::element_type::ElementNumber;
use crate::handles::{Handle, Object};
use crate::model::ModelHandle;
use crate::pointers::{List, Out, Text};
use crate::properties::{Given, Property};
use crate::shape::Shape;
use crate::status::{Failure, NOT_IMPLEMENTED, Outcome, Status, guard};
use crate::tensor::TensorObject;
use crate::variadic::{Words, variadic};
use std::ffi::c_char;

/// `ov_remote_context_t`; there is none yet.
#[derive(Debug)]
pub enum Context {}

impl Object for Context {
    const KIND: &'static str = "ov_remote_context_t";
}

type ContextHandle = Handle<Context>;

fn no_context(device: &str) -> Failure {
    let text = format!("device `{device}` does not share memory: remote contexts are not implemented");
    Failure::new(NOT_IMPLEMENTED, text)
}

fn create(core: CoreHandle, device: Text, context: Out<ContextHandle>) -> Outcome<()> {
    context.check("context")?;
    let core = core.get("core")?;
    let device = device.get("device_name")?;
    core.core.device(device)?;
    Err(no_context(device))
}

// core, device, number of arguments, where to, pairs. The pairs are not looked at: a handle among them would be of no use.
fn create_words(words: &mut Words) -> Outcome<()> {
    let core = CoreHandle::of_word(words.next());
    let device = Text::of_word(words.pointer());
    let count = words.next();
    let context = Out::of_word(words.pointer());
    if !count.is_multiple_of(2) {
        return Err(Failure::argument(format!("properties are pairs of a key and a value, found {count} arguments")));
    }
    create(core, device, context)
}
variadic!(ov_core_create_context, create_entry, create_words);

/// Would make a context of a device.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_create_context_props(
    core: CoreHandle,
    device_name: Text,
    num_properties: usize,
    properties: List<Property>,
    context: Out<ContextHandle>,
) -> Status {
    guard(|| {
        properties.get(num_properties, "properties")?;
        create(core, device_name, context)
    })
}

/// Would give the context that a device works in.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_get_default_context(
    core: CoreHandle,
    device_name: Text,
    context: Out<ContextHandle>,
) -> Status {
    guard(|| create(core, device_name, context))
}

/// Would give the context of a compiled model.
#[unsafe(no_mangle)]
pub extern "C" fn ov_compiled_model_get_context(compiled_model: CompiledHandle, context: Out<ContextHandle>) -> Status {
    guard(|| {
        context.check("context")?;
        let object = compiled_model.get("compiled_model")?;
        Err(no_context(object.device()))
    })
}

fn compile(
    core: Handle<CoreObject>,
    model: ModelHandle,
    context: ContextHandle,
    to: Out<Handle<CompiledObject>>,
) -> Outcome<()> {
    to.check("compiled_model")?;
    core.get("core")?;
    model.get("model")?;
    match *context.get("context")? {}
}

fn compile_words(words: &mut Words) -> Outcome<()> {
    let (core, model) = (Handle::of_word(words.next()), ModelHandle::of_word(words.next()));
    let context = ContextHandle::of_word(words.next());
    let count = words.next();
    let to = Out::of_word(words.pointer());
    Given::of_words(words, count)?;
    compile(core, model, context, to)
}
variadic!(ov_core_compile_model_with_context, compile_entry, compile_words);

/// Would compile a model for the device of a context.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_compile_model_with_context_props(
    core: CoreHandle,
    model: ModelHandle,
    context: ContextHandle,
    num_properties: usize,
    properties: List<Property>,
    compiled_model: Out<CompiledHandle>,
) -> Status {
    guard(|| {
        Given::of_list(properties, num_properties)?;
        compile(core, model, context, compiled_model)
    })
}

// Context, type, shape (two words), number of arguments, where to.
fn create_tensor_words(words: &mut Words) -> Outcome<()> {
    let context = ContextHandle::of_word(words.next());
    match *context.get("context")? {}
}
variadic!(ov_remote_context_create_tensor, create_tensor_entry, create_tensor_words);

/// Would make a tensor on the device of a context.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_context_create_tensor_props(
    context: ContextHandle,
    _ty: ElementNumber,
    _shape: Shape,
    _num_properties: usize,
    _properties: List<Property>,
    _remote_tensor: Out<Handle<TensorObject>>,
) -> Status {
    guard(|| match *context.get("context")? {})
}

/// Would give the device of a context.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_context_get_device_name(context: ContextHandle, _device_name: Out<*mut c_char>) -> Status {
    guard(|| match *context.get("context")? {})
}

/// Would give what a context was made with.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_context_get_params(
    context: ContextHandle,
    _size: Out<usize>,
    _params: Out<*mut c_char>,
) -> Status {
    guard(|| match *context.get("context")? {})
}

/// Would make a tensor of the host that the device reaches fast.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_context_create_host_tensor(
    context: ContextHandle,
    _ty: ElementNumber,
    _shape: Shape,
    _tensor: Out<Handle<TensorObject>>,
) -> Status {
    guard(|| match *context.get("context")? {})
}

/// Would free a context.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_context_free(context: ContextHandle) {
    drop(context.take());
}

fn not_remote(tensor: Handle<TensorObject>) -> Outcome<()> {
    tensor.get("tensor")?;
    Err(Failure::new(NOT_IMPLEMENTED, "the tensor lies in memory of the host, not on a device"))
}

/// Would give what a tensor of a device was made with.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_tensor_get_params(
    tensor: Handle<TensorObject>,
    _size: Out<usize>,
    _params: Out<*mut c_char>,
) -> Status {
    guard(|| not_remote(tensor))
}

/// Would give the device of a tensor.
#[unsafe(no_mangle)]
pub extern "C" fn ov_remote_tensor_get_device_name(
    remote_tensor: Handle<TensorObject>,
    _device_name: Out<*mut c_char>,
) -> Status {
    guard(|| not_remote(remote_tensor))
}
