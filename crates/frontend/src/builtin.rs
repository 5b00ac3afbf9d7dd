//! The built-in operations that [`NodeCx`] has words for: as structs where the op library is linked, else by name, for the
//! engine to make.

use crate::node_cx::NodeCx;
use carafe_graph::{Result, Value};
use carafe_tensor::ElementType;

#[cfg(feature = "ops")]
mod made {
    use super::*;
    use carafe_ops::convert::{Convert, ConvertLike};
    use carafe_ops::movement::{Concat, Reshape, Squeeze, Transpose, Unsqueeze};
    use carafe_ops::shape::ShapeOf;

    pub(crate) fn convert(n: &mut NodeCx<'_>, v: Value, destination_type: ElementType) -> Result<Value> {
        n.emit(Convert { destination_type }, &[v])
    }
    pub(crate) fn convert_like(n: &mut NodeCx<'_>, v: Value, like: Value) -> Result<Value> {
        n.emit(ConvertLike, &[v, like])
    }
    pub(crate) fn shape_of(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
        n.emit(ShapeOf { output_type: ElementType::I64 }, &[v])
    }
    pub(crate) fn reshape(n: &mut NodeCx<'_>, v: Value, pattern: Value) -> Result<Value> {
        n.emit(Reshape { special_zero: true }, &[v, pattern])
    }
    pub(crate) fn transpose(n: &mut NodeCx<'_>, v: Value, order: Value) -> Result<Value> {
        n.emit(Transpose, &[v, order])
    }
    pub(crate) fn unsqueeze(n: &mut NodeCx<'_>, v: Value, axes: Value) -> Result<Value> {
        n.emit(Unsqueeze, &[v, axes])
    }
    pub(crate) fn squeeze(n: &mut NodeCx<'_>, v: Value, axes: Value) -> Result<Value> {
        n.emit(Squeeze { allow_axis_skip: false }, &[v, axes])
    }
    pub(crate) fn concat(n: &mut NodeCx<'_>, values: &[Value], axis: i64) -> Result<Value> {
        n.emit(Concat { axis }, values)
    }
}

#[cfg(not(feature = "ops"))]
mod made {
    use super::*;

    pub(crate) fn convert(n: &mut NodeCx<'_>, v: Value, ty: ElementType) -> Result<Value> {
        n.emit_named("Convert", [("destination_type", ty.into())], &[v])
    }
    pub(crate) fn convert_like(n: &mut NodeCx<'_>, v: Value, like: Value) -> Result<Value> {
        n.emit_named("ConvertLike", [], &[v, like])
    }
    pub(crate) fn shape_of(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
        n.emit_named("ShapeOf", [("output_type", ElementType::I64.into())], &[v])
    }
    pub(crate) fn reshape(n: &mut NodeCx<'_>, v: Value, pattern: Value) -> Result<Value> {
        n.emit_named("Reshape", [("special_zero", true.into())], &[v, pattern])
    }
    pub(crate) fn transpose(n: &mut NodeCx<'_>, v: Value, order: Value) -> Result<Value> {
        n.emit_named("Transpose", [], &[v, order])
    }
    pub(crate) fn unsqueeze(n: &mut NodeCx<'_>, v: Value, axes: Value) -> Result<Value> {
        n.emit_named("Unsqueeze", [], &[v, axes])
    }
    pub(crate) fn squeeze(n: &mut NodeCx<'_>, v: Value, axes: Value) -> Result<Value> {
        n.emit_named("Squeeze", [], &[v, axes])
    }
    pub(crate) fn concat(n: &mut NodeCx<'_>, values: &[Value], axis: i64) -> Result<Value> {
        n.emit_named("Concat", [("axis", axis.into())], values)
    }
}

pub(crate) use made::{concat, convert, convert_like, reshape, shape_of, squeeze, transpose, unsqueeze};
