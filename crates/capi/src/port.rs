//! `ov_node.h`: inputs and outputs of models and compiled models. A port of a model shows what the model is now, after a
//! reshape too.

use crate::element_type::{ElementNumber, to_number};
use crate::handles::{Handle, Object, hand_out};
use crate::heap;
use crate::model::ModelObject;
use crate::partial_shape::OwnedPartialShape;
use crate::pointers::Out;
use crate::shape::OwnedShape;
use crate::status::{Failure, Outcome, Status, guard};
use carafe::{CompiledModel, Port, PortKey};
use std::ffi::c_char;
use std::sync::Arc;

/// Which side of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Input,
    Output,
}

impl Side {
    fn word(self) -> &'static str {
        match self {
            Side::Input => "input",
            Side::Output => "output",
        }
    }
}

/// `ov_output_port_t` and `ov_output_const_port_t`, which differ in nothing here.
#[derive(Debug)]
pub struct PortObject {
    pub(crate) owner: Owner,
    pub(crate) side: Side,
    pub(crate) index: usize,
}

/// What the port is of.
#[derive(Clone, Debug)]
pub(crate) enum Owner {
    Model(Arc<ModelObject>),
    Compiled(CompiledModel),
}

impl Object for PortObject {
    const KIND: &'static str = "ov_output_const_port_t";
}

pub(crate) type PortHandle = Handle<PortObject>;

impl Owner {
    pub(crate) fn ports(&self, side: Side) -> Vec<Port> {
        match (self, side) {
            (Owner::Model(model), Side::Input) => Port::inputs_of(&model.model()),
            (Owner::Model(model), Side::Output) => Port::outputs_of(&model.model()),
            (Owner::Compiled(compiled), Side::Input) => compiled.inputs().to_vec(),
            (Owner::Compiled(compiled), Side::Output) => compiled.outputs().to_vec(),
        }
    }
}

/// Where the one port of a side is.
pub(crate) fn only(ports: &[Port], side: Side) -> Outcome<usize> {
    match ports.len() {
        1 => Ok(0),
        n => {
            Err(carafe::Error::usage(format!("the model has {n} {}s; say which by index or name", side.word())).into())
        }
    }
}

/// Where a port is among `ports`.
pub(crate) fn find<'k>(ports: &[Port], side: Side, key: impl Into<PortKey<'k>>) -> Outcome<usize> {
    Ok(key.into().find(ports, side.word())?)
}

/// Hands out the port that `choose` finds among those of a side.
pub(crate) fn hand_out_port(
    owner: Owner,
    side: Side,
    to: Out<PortHandle>,
    choose: impl FnOnce(&[Port]) -> Outcome<usize>,
) -> Outcome<()> {
    to.check("port")?;
    let index = choose(&owner.ports(side))?;
    to.set(hand_out(Arc::new(PortObject { owner, side, index })), "port")
}

impl PortObject {
    pub(crate) fn port(&self) -> Outcome<Port> {
        let gone = || Failure::argument(format!("the model has no {} {} any more", self.side.word(), self.index));
        self.owner.ports(self.side).into_iter().nth(self.index).ok_or_else(gone)
    }
}

fn shape_of(port: PortHandle, shape: Out<OwnedShape>) -> Status {
    guard(|| {
        shape.check("tensor_shape")?;
        let port = port.get("port")?.port()?;
        let sizes = port.shape.to_static().ok_or_else(|| {
            let text = format!("`{}` has shape [{}], with sizes that are not known", port.name, port.shape);
            Failure::from(carafe::Error::usage(text))
        })?;
        shape.set(OwnedShape::of(&sizes)?, "tensor_shape")
    })
}

/// The shape of a port; open sizes are an error.
#[unsafe(no_mangle)]
pub extern "C" fn ov_const_port_get_shape(port: PortHandle, tensor_shape: Out<OwnedShape>) -> Status {
    shape_of(port, tensor_shape)
}

/// The shape of a port; open sizes are an error.
#[unsafe(no_mangle)]
pub extern "C" fn ov_port_get_shape(port: PortHandle, tensor_shape: Out<OwnedShape>) -> Status {
    shape_of(port, tensor_shape)
}

/// A name of the tensor; one without any is an error.
#[unsafe(no_mangle)]
pub extern "C" fn ov_port_get_any_name(port: PortHandle, tensor_name: Out<*mut c_char>) -> Status {
    guard(|| {
        tensor_name.check("tensor_name")?;
        let port = port.get("port")?.port()?;
        let name = port.names.get(&port.name).or_else(|| port.names.first());
        let none = || Failure::from(carafe::Error::not_found(format!("the tensor of `{}` has no name", port.name)));
        tensor_name.set(heap::text(name.ok_or_else(none)?)?, "tensor_name")
    })
}

/// The shape of a port, with its open sizes.
#[unsafe(no_mangle)]
pub extern "C" fn ov_port_get_partial_shape(port: PortHandle, partial_shape: Out<OwnedPartialShape>) -> Status {
    guard(|| {
        partial_shape.check("partial_shape")?;
        partial_shape.set(OwnedPartialShape::of(&port.get("port")?.port()?.shape)?, "partial_shape")
    })
}

/// The element type of a port.
#[unsafe(no_mangle)]
pub extern "C" fn ov_port_get_element_type(port: PortHandle, tensor_type: Out<ElementNumber>) -> Status {
    guard(|| tensor_type.set(to_number(port.get("port")?.port()?.ty)?, "tensor_type"))
}

/// Frees a port.
#[unsafe(no_mangle)]
pub extern "C" fn ov_output_port_free(port: PortHandle) {
    drop(port.take());
}

/// Frees a port.
#[unsafe(no_mangle)]
pub extern "C" fn ov_output_const_port_free(port: PortHandle) {
    drop(port.take());
}
