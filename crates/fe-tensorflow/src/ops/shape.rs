//! Shapes: asked for, changed, and tensors made of them. Complex data has a last axis of pairs that no shape tells.

use super::common::shapes::{known_number, scalar};
use super::complex::{self, axes_of, axis_of, list_of, shape_of};
use super::types::{element_type, is_complex};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::{Broadcast, Squeeze, Unsqueeze};
use carafe_ops::reduce::ReduceProd;
use carafe_ops::shape::Range;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BroadcastArgs", 0, broadcast_args),
    rule("BroadcastTo", 0, broadcast_to),
    rule("Empty", 0, |n| {
        let (shape, ty) = (n.input(0)?, element_type(n, "dtype", ElementType::F32)?);
        let zero = zero_of(n, ty)?;
        Ok(filled(n, zero, shape)?.into())
    }),
    rule("ExpandDims", 0, expand_dims),
    rule("Fill", 0, fill),
    rule("LinSpace", 0, lin_space),
    rule("OnesLike", 0, |n| like(n, 1.0)),
    rule("Range", 0, range),
    rule("Rank", 0, |n| {
        let (x, complex) = (n.input(0)?, is_complex(n, "T"));
        let rank = match n.rank(x) {
            Some(r) => n.i64(r as i64)?,
            None => {
                let shape = n.shape_of(x)?;
                n.length(shape, 0)?
            }
        };
        let rank = if complex { n.plus_number(rank, -1.0)? } else { rank };
        Ok(n.convert(rank, ElementType::I32)?.into())
    }),
    rule("Reshape", 0, |n| {
        let (x, shape) = (n.input(0)?, n.input(1)?);
        let complex = is_complex(n, "T");
        let shape = list_of(n, shape, complex, 2)?;
        Ok(n.reshaped(x, shape, false)?.into())
    }),
    rule("Shape", 0, |n| {
        let (x, ty) = (n.input(0)?, element_type(n, "out_type", ElementType::I32)?);
        let complex = is_complex(n, "T");
        Ok(shape_in(n, x, complex, ty)?.into())
    }),
    rule("ShapeN", 0, |n| {
        let (inputs, ty) = (n.inputs()?, element_type(n, "out_type", ElementType::I32)?);
        let complex = is_complex(n, "T");
        let shapes = inputs.into_iter().map(|x| shape_in(n, x, complex, ty)).collect::<Result<Vec<_>>>()?;
        Ok(shapes.into())
    }),
    rule("Size", 0, |n| {
        let (x, ty) = (n.input(0)?, element_type(n, "out_type", ElementType::I32)?);
        let complex = is_complex(n, "T");
        let (shape, zero) = (shape_of(n, x, complex)?, n.i64(0)?);
        let size = n.emit(ReduceProd { keep_dims: false }, &[shape, zero])?;
        Ok(n.convert(size, ty)?.into())
    }),
    rule("Squeeze", 0, squeeze),
    rule("ZerosLike", 0, |n| like(n, 0.0)),
];

fn shape_in(n: &mut NodeCx<'_>, x: Value, complex: bool, ty: ElementType) -> Result<Value> {
    if !complex {
        return n.emit(carafe_ops::shape::ShapeOf { output_type: ty }, &[x]);
    }
    let shape = shape_of(n, x, true)?;
    n.convert(shape, ty)
}

fn broadcast_args(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let ty = n.ty(a);
    let one = n.i64(1)?;
    let (left, right) = (n.convert(a, ElementType::I64)?, n.convert(b, ElementType::I64)?);
    let (left, right) = (n.stretch(one, left)?, n.stretch(one, right)?);
    let both = n.times(left, right)?;
    let shape = n.shape_of(both)?;
    Ok(n.convert(shape, ty)?.into())
}

fn broadcast_to(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, shape) = (n.input(0)?, n.input(1)?);
    let complex = is_complex(n, "T");
    let shape = list_of(n, shape, complex, 2)?;
    Ok(n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[x, shape])?.into())
}

fn expand_dims(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, axis) = (n.input(0)?, n.input(1)?);
    let complex = is_complex(n, "T");
    let axes = axes_of(n, axis, complex)?;
    Ok(n.emit(Unsqueeze, &[x, axes])?.into())
}

fn zero_of(n: &mut NodeCx<'_>, ty: ElementType) -> Result<Value> {
    n.constant(carafe_tensor::Tensor::zeros(ty, &[])?)
}

/// A scalar repeated to a shape.
pub(super) fn filled(n: &mut NodeCx<'_>, value: Value, shape: Value) -> Result<Value> {
    let shape = super::common::shapes::i64_vector(n, shape)?;
    let value = scalar(n, value)?;
    n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[value, shape])
}

fn fill(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (dims, value) = (n.input(0)?, n.input(1)?);
    if is_complex(n, "T") {
        let shape = list_of(n, dims, true, 2)?;
        return Ok(n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[value, shape])?.into());
    }
    Ok(filled(n, value, dims)?.into())
}

fn like(n: &mut NodeCx<'_>, value: f64) -> Result<Outputs> {
    let x = n.input(0)?;
    let complex = is_complex(n, "T");
    if n.ty(x) == ElementType::String {
        let (empty, shape) = (zero_of(n, ElementType::String)?, n.shape_of(x)?);
        return Ok(filled(n, empty, shape)?.into());
    }
    let shape = shape_of(n, x, complex)?;
    let value = n.scalar_like(x, value)?;
    let y = filled(n, value, shape)?;
    Ok(if complex { complex::of_real(n, y)? } else { y }.into())
}

// The last one is `stop` itself; of one number it is `start`.
fn lin_space(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (start, stop, count) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let count = n.convert(count, ElementType::I64)?;
    let (count, one) = (scalar(n, count)?, n.i64(1)?);
    let steps = n.minus(count, one)?;
    let divisor = n.max(steps, one)?;
    let (divisor, steps) = (n.convert_like(divisor, start)?, n.convert_like(steps, start)?);
    let index = n.count_to(count, ElementType::I64)?;
    let index = n.convert_like(index, start)?;
    let distance = n.minus(stop, start)?;
    let step = n.over(distance, divisor)?;
    let along = n.times(index, step)?;
    let y = n.plus(start, along)?;
    let (is_last, zero) = (n.equal(index, steps)?, n.scalar_like(start, 0.0)?);
    let several = n.greater(steps, zero)?;
    let is_end = n.and(is_last, several)?;
    Ok(n.choose(is_end, stop, y)?.into())
}

fn range(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut bounds = [n.input(0)?, n.input(1)?, n.input(2)?];
    let output_type = n.ty(bounds[0]);
    for bound in &mut bounds {
        *bound = scalar(n, *bound)?;
    }
    Ok(n.emit(Range { output_type }, &bounds)?.into())
}

fn squeeze(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut axes: Vec<i64> = n.attr("squeeze_dims", vec![])?;
    if axes.is_empty() {
        axes = n.attr("axis", vec![])?;
    }
    let (x, complex) = (n.input(0)?, is_complex(n, "T"));
    if axes.is_empty() {
        return Ok(n.emit(Squeeze { allow_axis_skip: false }, &[x])?.into());
    }
    let axes: Vec<i64> = axes.into_iter().map(|a| axis_of(a, complex)).collect();
    Ok(n.squeeze(x, &axes)?.into())
}

/// An axis input, which must be a constant.
pub(super) fn axis_input(n: &mut NodeCx<'_>, input: usize, complex: bool) -> Result<i64> {
    let v = n.input(input)?;
    Ok(axis_of(known_number(n, v, "the axis")?, complex))
}
