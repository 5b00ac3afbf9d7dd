//! `ov_compiled_model.h`: a model made ready for a device.

use crate::core::CoreObject;
use crate::handles::{Handle, Object, hand_out};
use crate::heap;
use crate::infer_request::{RequestHandle, RequestObject};
use crate::model::{ModelHandle, ModelObject};
use crate::opencl::SharedQueue;
use crate::pointers::{List, Out, Text};
use crate::port::{Owner, PortHandle, Side, find, hand_out_port, only};
use crate::properties::{Given, Property, shown};
use crate::status::{Failure, GENERAL_ERROR, NOT_IMPLEMENTED, Outcome, Status, guard};
use crate::variadic::{Words, variadic};
use carafe::{CompiledModel, Port, PropertyKind};
use std::ffi::c_char;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

/// `ov_compiled_model_t`.
#[derive(Debug)]
pub struct CompiledObject {
    pub(crate) compiled: CompiledModel,
    core: Arc<CoreObject>,
    device: String,
    queue: Option<Arc<SharedQueue>>,
}

impl Object for CompiledObject {
    const KIND: &'static str = "ov_compiled_model_t";
}

pub(crate) type CompiledHandle = Handle<CompiledObject>;

impl CompiledObject {
    pub(crate) fn new(compiled: CompiledModel, core: Arc<CoreObject>, device: &str) -> CompiledObject {
        CompiledObject { compiled, core, device: device.to_string(), queue: None }
    }
    /// The same for inferences that come after what the program enqueued there.
    pub(crate) fn behind(self, queue: Option<Arc<SharedQueue>>) -> CompiledObject {
        CompiledObject { queue, ..self }
    }
    pub(crate) fn queue(&self) -> Option<Arc<SharedQueue>> {
        self.queue.clone()
    }
}

/// The number of inputs.
#[unsafe(no_mangle)]
pub extern "C" fn ov_compiled_model_inputs_size(compiled_model: CompiledHandle, size: Out<usize>) -> Status {
    guard(|| size.set(compiled_model.get("compiled_model")?.compiled.inputs().len(), "size"))
}

/// The number of outputs.
#[unsafe(no_mangle)]
pub extern "C" fn ov_compiled_model_outputs_size(compiled_model: CompiledHandle, size: Out<usize>) -> Status {
    guard(|| size.set(compiled_model.get("compiled_model")?.compiled.outputs().len(), "size"))
}

fn port(
    compiled: CompiledHandle,
    side: Side,
    to: Out<PortHandle>,
    choose: impl FnOnce(&[Port]) -> Outcome<usize>,
) -> Status {
    guard(|| {
        let owner = Owner::Compiled(compiled.get("compiled_model")?.compiled.clone());
        hand_out_port(owner, side, to, choose)
    })
}

macro_rules! port_functions {
    ($($side:ident: $one:ident, $by_name:ident, $by_index:ident;)*) => { $(
        /// The only port of this side.
        #[unsafe(no_mangle)]
        pub extern "C" fn $one(compiled_model: CompiledHandle, to: Out<PortHandle>) -> Status {
            port(compiled_model, Side::$side, to, |ports| only(ports, Side::$side))
        }
        /// A port by a name of its tensor.
        #[unsafe(no_mangle)]
        pub extern "C" fn $by_name(compiled_model: CompiledHandle, name: Text, to: Out<PortHandle>) -> Status {
            port(compiled_model, Side::$side, to, |ports| find(ports, Side::$side, name.get("name")?))
        }
        /// A port by its index.
        #[unsafe(no_mangle)]
        pub extern "C" fn $by_index(compiled_model: CompiledHandle, index: usize, to: Out<PortHandle>) -> Status {
            port(compiled_model, Side::$side, to, |ports| find(ports, Side::$side, index))
        }
    )* };
}

port_functions! {
    Input: ov_compiled_model_input, ov_compiled_model_input_by_name, ov_compiled_model_input_by_index;
    Output: ov_compiled_model_output, ov_compiled_model_output_by_name, ov_compiled_model_output_by_index;
}

/// The graph that really runs.
#[unsafe(no_mangle)]
pub extern "C" fn ov_compiled_model_get_runtime_model(
    compiled_model: CompiledHandle,
    model: Out<ModelHandle>,
) -> Status {
    guard(|| {
        model.check("model")?;
        let runtime = compiled_model.get("compiled_model")?.compiled.runtime_model();
        model.set(hand_out(Arc::new(ModelObject::new(runtime))), "model")
    })
}

/// A new request.
#[unsafe(no_mangle)]
pub extern "C" fn ov_compiled_model_create_infer_request(
    compiled_model: CompiledHandle,
    infer_request: Out<RequestHandle>,
) -> Status {
    guard(|| {
        infer_request.check("infer_request")?;
        let object = compiled_model.get("compiled_model")?;
        let request = RequestObject::new(&object.compiled, object.queue());
        infer_request.set(hand_out(Arc::new(request)), "infer_request")
    })
}

fn set(compiled: CompiledHandle, given: &Given) -> Outcome<()> {
    let object = compiled.get("compiled_model")?;
    given.without_handles()?;
    match given.texts.iter().next() {
        None => Ok(()),
        Some((key, _)) => Err(Failure::new(
            NOT_IMPLEMENTED,
            format!("{key} of a model that is compiled for {} cannot change; set it before compiling", object.device),
        )),
    }
}

// The compiled model, then exactly one pair.
fn set_property(words: &mut Words) -> Outcome<()> {
    let compiled = CompiledHandle::of_word(words.next());
    compiled.get("compiled_model")?;
    set(compiled, &Given::of_words(words, 2)?)
}
variadic!(ov_compiled_model_set_property, set_property_entry, set_property);

/// Properties of a compiled model are those that it was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn ov_compiled_model_set_properties(
    compiled_model: CompiledHandle,
    num_properties: usize,
    properties: List<Property>,
) -> Status {
    guard(|| set(compiled_model, &Given::of_list(properties, num_properties)?))
}

/// A property that the model was compiled with, as text, to be freed with `ov_free`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_compiled_model_get_property(
    compiled_model: CompiledHandle,
    property_key: Text,
    property_value: Out<*mut c_char>,
) -> Status {
    guard(|| {
        property_value.check("property_value")?;
        let object = compiled_model.get("compiled_model")?;
        let key = property_key.get("property_key")?;
        let value = object.compiled.property(key)?;
        let kind = object.core.core.device(&object.device).ok();
        let kind = kind.and_then(|d| d.properties().iter().find(|p| p.name == key).map(|p| p.kind));
        let kind = kind.unwrap_or(if key == "LOADED_FROM_CACHE" { PropertyKind::Bool } else { PropertyKind::Text });
        property_value.set(heap::text(&shown(kind, &value))?, "property_value")
    })
}

/// Writes a file that `ov_core_import_model` reads.
#[unsafe(no_mangle)]
pub extern "C" fn ov_compiled_model_export_model(compiled_model: CompiledHandle, export_model_path: Text) -> Status {
    guard(|| {
        let object = compiled_model.get("compiled_model")?;
        let path = export_model_path.get("export_model_path")?;
        let cannot = |e: std::io::Error| Failure::new(GENERAL_ERROR, format!("`{path}` cannot be written: {e}"));
        let mut file = BufWriter::new(File::create(path).map_err(cannot)?);
        object.compiled.export(&mut file)?;
        file.flush().map_err(cannot)
    })
}

/// Frees a compiled model. Requests that were made of it stay.
#[unsafe(no_mangle)]
pub extern "C" fn ov_compiled_model_free(compiled_model: CompiledHandle) {
    drop(compiled_model.take());
}
