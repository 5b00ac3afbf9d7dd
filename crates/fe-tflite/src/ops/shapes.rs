//! Shapes, types, and values made of them.

use super::fourier::complex_part;
use crate::graph::{COMPLEX_INPUT, COMPLEX_OUTPUT};
use carafe_fe_tensorflow::ops::common::shapes::{i64_vector, scalar};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::carafe::BitCast;
use carafe_ops::movement::Broadcast;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::shape::{Range, ShapeOf};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BITCAST", 1, bitcast),
    rule("BROADCAST_ARGS", 1, broadcast_args),
    rule("BROADCAST_TO", 1, broadcast_to),
    rule("CAST", 1, cast),
    rule("FILL", 1, fill),
    rule("RANGE", 1, range),
    rule("RANK", 1, rank),
    rule("SHAPE", 1, shape),
    rule("STABLEHLO_CONVERT", 1, cast),
    rule("ZEROS_LIKE", 1, zeros_like),
];

/// Attributes with what the file declares of an output.
pub(super) const DECLARED: &[&str] = &["output_type", "output_shape"];

// Truth is what is not zero. Of a complex number the real part counts.
fn cast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["output_shape", "in_data_type", "out_data_type"]);
    let (mut x, ty) = (n.input(0)?, n.required::<ElementType>("output_type")?);
    let (from_complex, to_complex): (bool, bool) = (n.attr(COMPLEX_INPUT, false)?, n.attr(COMPLEX_OUTPUT, false)?);
    if from_complex && !to_complex {
        x = complex_part(n, x, 0)?;
    }
    let y = match ty {
        ElementType::Boolean if n.ty(x) != ElementType::Boolean => {
            let zero = n.scalar_like(x, 0.0)?;
            n.emit(carafe_ops::compare::NotEqual::default(), &[x, zero])?
        }
        ty => n.convert(x, ty)?,
    };
    if to_complex && !from_complex {
        let real = n.unsqueeze(y, &[-1])?;
        let none = n.times_number(real, 0.0)?;
        return Ok(n.concat(&[real, none], -1)?.into());
    }
    Ok(y.into())
}

fn bitcast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["output_shape"]);
    let (x, ty) = (n.input(0)?, n.required::<ElementType>("output_type")?);
    let (from, to) = (n.ty(x).bits(), ty.bits());
    if from != to {
        return Err(n.unsupported(format!("bits of {from} cannot be read as {to}: only types of one size are supported")));
    }
    Ok(n.emit(BitCast { destination_type: ty }, &[x])?.into())
}

fn shape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["output_shape", "out_type"]);
    let (mut x, ty) = (n.input(0)?, n.required::<ElementType>("output_type")?);
    if n.attr(COMPLEX_INPUT, false)? {
        x = complex_part(n, x, 0)?;
    }
    match ty {
        ElementType::I32 | ElementType::I64 => Ok(n.emit(ShapeOf { output_type: ty }, &[x])?.into()),
        ty => {
            let shape = n.shape_of(x)?;
            Ok(n.convert(shape, ty)?.into())
        }
    }
}

fn rank(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut x = n.input(0)?;
    if n.attr(COMPLEX_INPUT, false)? {
        x = complex_part(n, x, 0)?;
    }
    let rank = carafe_fe_tensorflow::ops::common::shapes::rank(n, x)?;
    let rank = scalar(n, rank)?;
    Ok(n.convert(rank, ElementType::I32)?.into())
}

fn range(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut inputs = vec![];
    for i in 0..3 {
        let v = n.input(i)?;
        inputs.push(scalar(n, v)?);
    }
    let output_type = n.ty(inputs[0]);
    Ok(n.emit(Range { output_type }, &inputs)?.into())
}

fn fill(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (dims, value) = (n.input(0)?, n.input(1)?);
    let (dims, value) = (i64_vector(n, dims)?, scalar(n, value)?);
    Ok(n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[value, dims])?.into())
}

fn zeros_like(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (zero, shape) = (n.scalar_like(x, 0.0)?, n.shape_of(x)?);
    Ok(n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[zero, shape])?.into())
}

fn broadcast_to(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, shape) = (n.input(0)?, n.input(1)?);
    let shape = i64_vector(n, shape)?;
    Ok(n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[x, shape])?.into())
}

// The shape that values of two shapes meet in.
fn broadcast_args(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let ty = n.ty(a);
    let (a, b) = (i64_vector(n, a)?, i64_vector(n, b)?);
    let one = n.i64(1)?;
    let wide = n.stretch(one, a)?;
    let both = n.stretch(wide, b)?;
    let shape = n.shape_of(both)?;
    Ok(n.convert(shape, ty)?.into())
}
