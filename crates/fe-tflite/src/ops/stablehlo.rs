//! Operators of StableHLO that converters leave in files. Shapes are what the file declares; nothing broadcasts by itself.

use super::shapes::DECLARED;
use super::slicing::updated_slice;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::linear::Einsum;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::{Broadcast, Pad, Slice};
use carafe_tensor::{ElementType, PartialShape, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("STABLEHLO_BROADCAST_IN_DIM", 1, broadcast_in_dim),
    rule("STABLEHLO_CLAMP", 1, clamp),
    rule("STABLEHLO_CONCATENATE", 1, concatenate),
    rule("STABLEHLO_DOT_GENERAL", 1, dot_general),
    rule("STABLEHLO_DYNAMIC_SLICE", 1, dynamic_slice),
    rule("STABLEHLO_DYNAMIC_UPDATE_SLICE", 1, dynamic_update_slice),
    rule("STABLEHLO_IOTA", 1, iota),
    rule("STABLEHLO_PAD", 1, pad),
    rule("STABLEHLO_RESHAPE", 1, reshape),
    rule("STABLEHLO_SELECT", 1, select),
    rule("STABLEHLO_SLICE", 1, slice),
    rule("STABLEHLO_TRANSPOSE", 1, transpose),
];

// The shape of the result, which the file must know.
fn declared(n: &NodeCx<'_>) -> Result<Vec<i64>> {
    let shape: PartialShape = n.required("output_shape")?;
    n.ignore(DECLARED);
    let dims = shape.to_static().map(|dims| dims.iter().map(|d| *d as i64).collect());
    dims.ok_or_else(|| n.unsupported(format!("the shape of the result must be known, found [{shape}]")))
}

// Axis i of the data becomes axis `broadcast_dimensions[i]`.
fn broadcast_in_dim(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, shape) = (n.input(0)?, declared(n)?);
    let axes: Vec<i64> = n.attr("broadcast_dimensions", vec![])?;
    let mut aligned = vec![1; shape.len()];
    for (i, axis) in axes.iter().enumerate() {
        let (axis, size) = (n.axis(*axis, shape.len())?, n.shape(x).dim(i).get());
        aligned[axis] = size.ok_or_else(|| n.unsupported("the shape of the data must be known"))?;
    }
    let x = n.reshape(x, &aligned)?;
    let shape = n.i64s(&shape)?;
    Ok(n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[x, shape])?.into())
}

fn clamp(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    let (low, x, high) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let x = n.max(x, low)?;
    Ok(n.min(x, high)?.into())
}

fn concatenate(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    let (inputs, axis) = (n.inputs()?, n.attr::<i64>("dimension", 0)?);
    Ok(n.concat(&inputs, axis)?.into())
}

// Batch axes come first in the result, then what is left of both sides.
fn dot_general(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    n.ignore(&["precision_config"]);
    let (a, b) = (n.input(0)?, n.input(1)?);
    let list = |name: &str| n.attr::<Vec<i64>>(name, vec![]);
    let batch = [list("lhs_batching_dimensions")?, list("rhs_batching_dimensions")?];
    let summed = [list("lhs_contracting_dimensions")?, list("rhs_contracting_dimensions")?];
    let ranks = [n.known_rank(a)?, n.known_rank(b)?];
    if batch[0].len() != batch[1].len() || summed[0].len() != summed[1].len() || ranks[0] + ranks[1] > 26 {
        return Err(n.fail("the axes of the two sides do not fit"));
    }
    let mut letters = 'a'..='z';
    let mut terms = [vec!['?'; ranks[0]], vec!['?'; ranks[1]]];
    let mut result = String::new();
    for (pairs, is_batch) in [(&batch, true), (&summed, false)] {
        for (left, right) in pairs[0].iter().zip(&pairs[1]) {
            let letter = letters.next().unwrap_or('?');
            terms[0][n.axis(*left, ranks[0])?] = letter;
            terms[1][n.axis(*right, ranks[1])?] = letter;
            result.extend(is_batch.then_some(letter));
        }
    }
    for letter in terms.iter_mut().flatten().filter(|l| **l == '?') {
        *letter = letters.next().unwrap_or('?');
        result.push(*letter);
    }
    let [left, right] = terms.map(|t| t.into_iter().collect::<String>());
    Ok(n.emit(Einsum { equation: format!("{left},{right}->{result}") }, &[a, b])?.into())
}

// A window of this size; one that would leave the data is moved back.
fn dynamic_slice(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    let (x, sizes) = (n.input(0)?, n.required::<Vec<i64>>("slice_sizes")?);
    let (starts, sizes) = (starts(n, 1, sizes.len())?, n.i64s(&sizes)?);
    let (zero, shape) = (n.i64(0)?, n.shape_of(x)?);
    let last = n.minus(shape, sizes)?;
    let starts = n.max(starts, zero)?;
    let starts = n.min(starts, last)?;
    let (stops, one) = (n.plus(starts, sizes)?, n.i64(1)?);
    let count = n.shape_of(starts)?;
    let steps = n.stretch(one, count)?;
    Ok(n.emit(Slice, &[x, starts, stops, steps])?.into())
}

fn dynamic_update_slice(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    let (x, update) = (n.input(0)?, n.input(1)?);
    let rank = n.known_rank(x)?;
    let starts = starts(n, 2, rank)?;
    updated_slice(n, x, update, starts)
}

// One number for each axis, in inputs of their own.
fn starts(n: &mut NodeCx<'_>, first: usize, axes: usize) -> Result<Value> {
    if axes == 0 || n.n_inputs() != first + axes {
        return Err(n.fail(format!("{} starts are given for {axes} axes", n.n_inputs().saturating_sub(first))));
    }
    let mut all = vec![];
    for i in 0..axes {
        let start = n.input(first + i)?;
        let start = n.convert(start, ElementType::I64)?;
        all.push(n.reshape(start, &[1])?);
    }
    n.concat(&all, 0)
}

fn iota(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let ty: ElementType = n.required("output_type")?;
    let shape = declared(n)?;
    let axis = n.axis(n.attr::<i64>("iota_dimension", 0)?, shape.len())?;
    let stop = n.i64(shape[axis])?;
    let counted = n.count_to(stop, ElementType::I64)?;
    let counted = n.convert(counted, ty)?;
    let mut aligned = vec![1; shape.len()];
    aligned[axis] = shape[axis];
    let counted = n.reshape(counted, &aligned)?;
    let shape = n.i64s(&shape)?;
    Ok(n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[counted, shape])?.into())
}

fn pad(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    let (x, value) = (n.input(0)?, n.input(1)?);
    let (low, high): (Vec<i64>, Vec<i64>) = (n.required("edge_padding_low")?, n.required("edge_padding_high")?);
    let inside: Vec<i64> = n.attr("interior_padding", vec![])?;
    if inside.iter().any(|p| *p != 0) {
        return Err(n.unsupported("padding between elements is not supported"));
    }
    let (low, high) = (n.i64s(&low)?, n.i64s(&high)?);
    let value = n.reshape(value, &[])?;
    Ok(n.emit(Pad { pad_mode: PadMode::Constant }, &[x, low, high, value])?.into())
}

fn reshape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, shape) = (n.input(0)?, declared(n)?);
    Ok(n.reshape(x, &shape)?.into())
}

fn select(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    let (condition, then, other) = (n.input(0)?, n.input(1)?, n.input(2)?);
    Ok(n.choose(condition, then, other)?.into())
}

fn slice(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    let x = n.input(0)?;
    let mut inputs = vec![x];
    for name in ["start_indices", "limit_indices", "strides"] {
        let list: Vec<i64> = n.required(name)?;
        inputs.push(n.constant(Tensor::from_slice(&[list.len()], &list)?)?);
    }
    Ok(n.emit(Slice, &inputs)?.into())
}

fn transpose(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    let (x, order) = (n.input(0)?, n.required::<Vec<i64>>("permutation")?);
    Ok(n.transpose(x, &order)?.into())
}
