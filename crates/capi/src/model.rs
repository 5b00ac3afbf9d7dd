//! `ov_model.h`: a model as it was read, its ports and its shapes.

use crate::handles::{Handle, Object};
use crate::heap;
use crate::partial_shape::CPartialShape;
use crate::pointers::{List, Out, Text};
use crate::port::{Owner, PortHandle, Side, find, hand_out_port, only};
use crate::status::{Failure, Outcome, Status, guard, guard_or};
use carafe::{Model, PartialShape, Port};
use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `ov_model_t`. Reshaping and preprocessing change the model itself, for all who hold it.
#[derive(Debug)]
pub struct ModelObject(Mutex<Model>);

impl Object for ModelObject {
    const KIND: &'static str = "ov_model_t";
}

pub(crate) type ModelHandle = Handle<ModelObject>;

impl ModelObject {
    pub(crate) fn new(model: Model) -> ModelObject {
        ModelObject(Mutex::new(model))
    }
    // A panic inside of a change leaves the model from before: it is changed as a copy and then put in place.
    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees a model. What was compiled of it stays.
#[unsafe(no_mangle)]
pub extern "C" fn ov_model_free(model: ModelHandle) {
    drop(model.take());
}

fn port(model: ModelHandle, side: Side, to: Out<PortHandle>, choose: impl FnOnce(&[Port]) -> Outcome<usize>) -> Status {
    guard(|| hand_out_port(Owner::Model(model.get("model")?), side, to, choose))
}

macro_rules! port_functions {
    ($($side:ident: $one:ident, $by_name:ident, $by_index:ident;)*) => { $(
        /// The only port of this side.
        #[unsafe(no_mangle)]
        pub extern "C" fn $one(model: ModelHandle, to: Out<PortHandle>) -> Status {
            port(model, Side::$side, to, |ports| only(ports, Side::$side))
        }
        /// A port by a name of its tensor.
        #[unsafe(no_mangle)]
        pub extern "C" fn $by_name(model: ModelHandle, tensor_name: Text, to: Out<PortHandle>) -> Status {
            port(model, Side::$side, to, |ports| find(ports, Side::$side, tensor_name.get("tensor_name")?))
        }
        /// A port by its index.
        #[unsafe(no_mangle)]
        pub extern "C" fn $by_index(model: ModelHandle, index: usize, to: Out<PortHandle>) -> Status {
            port(model, Side::$side, to, |ports| find(ports, Side::$side, index))
        }
    )* };
}

port_functions! {
    Input: ov_model_const_input, ov_model_const_input_by_name, ov_model_const_input_by_index;
    Input: ov_model_input, ov_model_input_by_name, ov_model_input_by_index;
    Output: ov_model_const_output, ov_model_const_output_by_name, ov_model_const_output_by_index;
    Output: ov_model_output, ov_model_output_by_name, ov_model_output_by_index;
}

/// The number of inputs.
#[unsafe(no_mangle)]
pub extern "C" fn ov_model_inputs_size(model: ModelHandle, input_size: Out<usize>) -> Status {
    guard(|| input_size.set(model.get("model")?.model().parameters().len(), "input_size"))
}

/// The number of outputs.
#[unsafe(no_mangle)]
pub extern "C" fn ov_model_outputs_size(model: ModelHandle, output_size: Out<usize>) -> Status {
    guard(|| output_size.set(model.get("model")?.model().results().len(), "output_size"))
}

/// Whether a size anywhere in the model is open; false where the handle is none.
#[unsafe(no_mangle)]
pub extern "C" fn ov_model_is_dynamic(model: ModelHandle) -> bool {
    guard_or(false, || {
        let object = model.get("model")?;
        let model = object.model();
        let open = model.nodes().any(|(_, node)| node.outputs().iter().any(|o| !o.fact.shape.is_static()));
        Ok(open)
    })
}

// All or nothing: shapes that the model does not take leave it as it was.
fn reshape(model: ModelHandle, shapes: impl FnOnce(&[Port]) -> Outcome<HashMap<usize, PartialShape>>) -> Status {
    guard(|| {
        let object = model.get("model")?;
        let mut model = object.model();
        let shapes = shapes(&Port::inputs_of(&model))?;
        *model = model.reshaped(&shapes)?;
        Ok(())
    })
}

/// New shapes of inputs by their names.
#[unsafe(no_mangle)]
pub extern "C" fn ov_model_reshape(
    model: ModelHandle,
    tensor_names: List<Text>,
    partial_shapes: List<CPartialShape>,
    size: usize,
) -> Status {
    reshape(model, |ports| {
        let names = tensor_names.get(size, "tensor_names")?;
        let shapes = partial_shapes.get(size, "partial_shapes")?;
        some(size)?;
        let one = |(name, shape): (&Text, &CPartialShape)| {
            Ok((find(ports, Side::Input, name.get("tensor_names")?)?, shape.get()?))
        };
        names.iter().zip(shapes).map(one).collect()
    })
}

fn some(size: usize) -> Outcome<()> {
    if size == 0 { Err(Failure::argument("no shape is given")) } else { Ok(()) }
}

/// A new shape of the input of a name.
#[unsafe(no_mangle)]
pub extern "C" fn ov_model_reshape_input_by_name(
    model: ModelHandle,
    tensor_name: Text,
    partial_shape: CPartialShape,
) -> Status {
    reshape(model, |ports| {
        let index = find(ports, Side::Input, tensor_name.get("tensor_name")?)?;
        Ok(HashMap::from([(index, partial_shape.get()?)]))
    })
}

/// A new shape of the only input.
#[unsafe(no_mangle)]
pub extern "C" fn ov_model_reshape_single_input(model: ModelHandle, partial_shape: CPartialShape) -> Status {
    reshape(model, |ports| Ok(HashMap::from([(only(ports, Side::Input)?, partial_shape.get()?)])))
}

/// New shapes of inputs by their indexes.
#[unsafe(no_mangle)]
pub extern "C" fn ov_model_reshape_by_port_indexes(
    model: ModelHandle,
    port_indexes: List<usize>,
    partial_shape: List<CPartialShape>,
    size: usize,
) -> Status {
    reshape(model, |ports| {
        let indexes = port_indexes.get(size, "port_indexes")?;
        let shapes = partial_shape.get(size, "partial_shape")?;
        some(size)?;
        let one = |(&index, shape): (&usize, &CPartialShape)| Ok((find(ports, Side::Input, index)?, shape.get()?));
        indexes.iter().zip(shapes).map(one).collect()
    })
}

/// New shapes of inputs by their ports.
#[unsafe(no_mangle)]
pub extern "C" fn ov_model_reshape_by_ports(
    model: ModelHandle,
    output_ports: List<PortHandle>,
    partial_shapes: List<CPartialShape>,
    size: usize,
) -> Status {
    guard(|| {
        // Before the model is locked: looking at one of its ports locks it too.
        let handles = output_ports.get(size, "output_ports")?;
        let given = handles.iter().map(|p| p.get("output_ports")).collect::<Outcome<Vec<_>>>()?;
        let object = model.get("model")?;
        let shapes = partial_shapes.get(size, "partial_shapes")?;
        some(size)?;
        let of_it = |owner: &Owner| matches!(owner, Owner::Model(m) if Arc::ptr_eq(m, &object));
        let mut wanted = HashMap::new();
        for (port, shape) in given.iter().zip(shapes) {
            if port.side != Side::Input || !of_it(&port.owner) {
                return Err(Failure::argument("only inputs of the model itself can be given a shape"));
            }
            wanted.insert(port.index, shape.get()?);
        }
        let mut model = object.model();
        *model = model.reshaped(&wanted)?;
        Ok(())
    })
}

/// The name of the model.
#[unsafe(no_mangle)]
pub extern "C" fn ov_model_get_friendly_name(model: ModelHandle, friendly_name: Out<*mut c_char>) -> Status {
    guard(|| {
        friendly_name.check("friendly_name")?;
        let object = model.get("model")?;
        let name = object.model().name.clone();
        friendly_name.set(heap::text(&name)?, "friendly_name")
    })
}
