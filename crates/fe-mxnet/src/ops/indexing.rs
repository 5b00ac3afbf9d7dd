//! Elements by index. Indices are floats as a rule; out-of-range ones are clipped or wrapped, as `mode` says.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::FloorMod;
use carafe_ops::convert::Convert;
use carafe_ops::indexing::one_hot::NegativeIndices;
use carafe_ops::indexing::Reduction;
use carafe_ops::indexing::{GatherElements, GatherND, NonZero, OneHot, ScatterNDUpdate, ScatterUpdate};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("Embedding", 0, embedding),
    rule("_contrib_SparseEmbedding", 0, embedding),
    rule("_contrib_boolean_mask", 0, boolean_mask),
    rule("_contrib_index_array", 0, index_array),
    rule("_contrib_index_copy", 0, index_copy),
    rule("_npi_where", 0, condition),
    rule("_npi_where_lscalar", 0, |n| {
        let (condition, y) = (n.input(0)?, n.input(1)?);
        let x = n.float("scalar", 0.0)?;
        let x = n.scalar_like(y, x)?;
        chosen(n, condition, x, y)
    }),
    rule("_npi_where_rscalar", 0, |n| {
        let (condition, x) = (n.input(0)?, n.input(1)?);
        let y = n.float("scalar", 0.0)?;
        let y = n.scalar_like(x, y)?;
        chosen(n, condition, x, y)
    }),
    rule("_ravel_multi_index", 0, ravel),
    rule("_scatter_set_nd", 0, scatter_set),
    rule("_unravel_index", 0, unravel),
    rule("batch_take", 0, batch_take),
    rule("gather_nd", 0, gather_nd),
    rule("one_hot", 0, one_hot),
    rule("pick", 0, pick),
    rule("scatter_nd", 0, scatter_nd),
    rule("take", 0, take),
    rule("where", 0, condition),
];

// Indices inside of an axis.
fn within(n: &mut NodeCx<'_>, indices: Value, data: Value, axis: i64, mode: &str) -> Result<Value> {
    let indices = n.as_indices(indices)?;
    let size = n.length(data, axis)?;
    let size = n.convert_like(size, indices)?;
    match mode {
        "wrap" => n.emit(FloorMod::default(), &[indices, size]),
        "clip" => {
            let (zero, one) = (n.scalar_like(indices, 0.0)?, n.scalar_like(indices, 1.0)?);
            let last = n.minus(size, one)?;
            let indices = n.max(indices, zero)?;
            n.min(indices, last)
        }
        // Whoever raises an error may count from the end.
        "raise" => Ok(indices),
        other => Err(n.unknown_word("mode", other, "clip, wrap, raise")),
    }
}

fn embedding(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["input_dim", "output_dim", "dtype"]);
    let (indices, weight) = (n.input(0)?, n.input(1)?);
    let indices = within(n, indices, weight, 0, "clip")?;
    Ok(n.gather(weight, indices, 0)?.into())
}

fn take(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (data, indices) = (n.input(0)?, n.input(1)?);
    let axis = n.int("axis", 0)?;
    let mode = n.word("mode", "clip");
    let indices = within(n, indices, data, axis, &mode)?;
    Ok(n.gather(data, indices, axis)?.into())
}

// One element for each position of the other axes.
fn pick(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (mut data, mut indices) = (n.input(0)?, n.input(1)?);
    let keeps = n.flag("keepdims", false)?;
    let mode = n.word("mode", "clip");
    let is_flat = n.is_none("axis");
    let axis = n.int("axis", -1)?;
    if is_flat {
        data = n.reshape(data, &[-1])?;
        indices = n.reshape(indices, &[-1])?;
        let indices = within(n, indices, data, 0, &mode)?;
        return Ok(n.emit(GatherElements { axis: 0 }, &[data, indices])?.into());
    }
    let rank = n.known_rank(data)?;
    let axis = n.axis(axis, rank)? as i64;
    // Indices may have the axis as one of size 1, or lack it.
    if n.known_rank(indices)? != rank {
        indices = n.unsqueeze(indices, &[axis])?;
    }
    let indices = within(n, indices, data, axis, &mode)?;
    let y = n.emit(GatherElements { axis }, &[data, indices])?;
    Ok(if keeps { y } else { n.squeeze(y, &[axis])? }.into())
}

fn batch_take(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (data, indices) = (n.input(0)?, n.input(1)?);
    let indices = within(n, indices, data, 1, "clip")?;
    let indices = n.unsqueeze(indices, &[1])?;
    let y = n.emit(GatherElements { axis: 1 }, &[data, indices])?;
    Ok(n.squeeze(y, &[1])?.into())
}

// MXNet keeps the coordinates of an index in the first axis, the IR in the last.
fn coordinates_last(n: &mut NodeCx<'_>, indices: Value) -> Result<Value> {
    let indices = n.as_indices(indices)?;
    let rank = n.known_rank(indices)? as i64;
    let order: Vec<i64> = (1..rank).chain([0]).collect();
    n.transpose(indices, &order)
}

fn gather_nd(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (data, indices) = (n.input(0)?, n.input(1)?);
    let indices = coordinates_last(n, indices)?;
    Ok(n.emit(GatherND { batch_dims: 0 }, &[data, indices])?.into())
}

fn scatter_nd(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (updates, indices) = (n.input(0)?, n.input(1)?);
    let shape = n.ints_of("shape")?;
    let zero = n.scalar_like(updates, 0.0)?;
    let shape = n.i64s(&shape)?;
    let data = n.stretch(zero, shape)?;
    let indices = coordinates_last(n, indices)?;
    Ok(n.emit(ScatterNDUpdate { reduction: Reduction::None }, &[data, indices, updates])?.into())
}

fn scatter_set(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["shape"]);
    let (data, updates, indices) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let indices = coordinates_last(n, indices)?;
    Ok(n.emit(ScatterNDUpdate { reduction: Reduction::None }, &[data, indices, updates])?.into())
}

fn one_hot(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let indices = n.input(0)?;
    let depth = n.needed_int("depth")?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let (on, off) = (n.float("on_value", 1.0)?, n.float("off_value", 0.0)?);
    let indices = n.as_indices(indices)?;
    let (depth, on, off) = (n.i64(depth)?, n.scalar(ty, on)?, n.scalar(ty, off)?);
    let op = OneHot { axis: -1, negative_indices_mode: NegativeIndices::Ignore };
    Ok(n.emit(op, &[indices, depth, on, off])?.into())
}

fn condition(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (condition, x, y) = (n.input(0)?, n.input(1)?, n.input(2)?);
    // A vector of conditions chooses whole rows, but for mxnet.numpy, which stretches it.
    let is_rows = n.op_type() == "where" && n.rank(condition) == Some(1) && n.rank(x).is_some_and(|r| r > 1);
    let condition = match n.rank(x) {
        Some(rank) if is_rows => n.along(condition, 0, rank)?,
        _ => condition,
    };
    chosen(n, condition, x, y)
}

fn chosen(n: &mut NodeCx<'_>, condition: Value, x: Value, y: Value) -> Result<Outputs> {
    let condition = n.as_condition(condition)?;
    let y = n.convert_like(y, x)?;
    Ok(n.choose(condition, x, y)?.into())
}

// The slices whose condition is not zero.
fn boolean_mask(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (data, mask) = (n.input(0)?, n.input(1)?);
    let axis = n.int("axis", 0)?;
    let found = n.emit(NonZero { output_type: ElementType::I64 }, &[mask])?;
    let found = n.reshape(found, &[-1])?;
    Ok(n.gather(data, found, axis)?.into())
}

fn index_copy(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (old, index, new) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let index = n.as_indices(index)?;
    let axis = n.i64(0)?;
    Ok(n.emit(ScatterUpdate, &[old, index, new, axis])?.into())
}

// For each element its position: one more axis, with the numbers of all axes or of some.
fn index_array(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let rank = n.known_rank(x)?;
    let axes = n.opt_ints("axes")?.unwrap_or_else(|| (0..rank as i64).collect());
    let shape = n.shape_of(x)?;
    let mut parts = vec![];
    for axis in axes {
        let axis = n.axis(axis, rank)?;
        let size = n.length(x, axis as i64)?;
        let ticks = n.count_to(size, ElementType::I64)?;
        let ticks = n.along(ticks, axis, rank)?;
        let ticks = n.stretch(ticks, shape)?;
        parts.push(n.unsqueeze(ticks, &[rank as i64])?);
    }
    Ok(n.concat(&parts, rank as i64)?.into())
}

fn strides_of(n: &NodeCx<'_>) -> Result<(Vec<i64>, Vec<i64>)> {
    let shape = n.ints_of("shape")?;
    if shape.iter().any(|d| *d < 1) {
        return Err(n.unsupported("attribute `shape` must be known"));
    }
    let mut strides = vec![1i64; shape.len()];
    for i in (0..shape.len().saturating_sub(1)).rev() {
        let next = strides[i + 1].checked_mul(shape[i + 1]);
        strides[i] = next.ok_or_else(|| n.fail("attribute `shape` is too large"))?;
    }
    Ok((shape, strides))
}

// Positions in a shape as numbers of its elements.
fn ravel(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (_, strides) = strides_of(n)?;
    let rank = n.known_rank(x)?;
    let (ty, count) = (n.ty(x), strides.len());
    let strides: Vec<f64> = strides.iter().map(|s| *s as f64).collect();
    let factors = n.constant(carafe_tensor::Tensor::from_f64(ty, &[count], &strides)?)?;
    let factors = n.along(factors, 0, rank)?;
    let y = n.times(x, factors)?;
    Ok(n.sum_over(y, &[0], false)?.into())
}

// Numbers of elements as positions in a shape.
fn unravel(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (shape, strides) = strides_of(n)?;
    let whole = n.emit(Convert { destination_type: ElementType::I64 }, &[x])?;
    let mut parts = vec![];
    for (i, (size, stride)) in shape.iter().zip(&strides).enumerate() {
        let stride = n.i64(*stride)?;
        let mut part = n.over(whole, stride)?;
        if i > 0 {
            let size = n.i64(*size)?;
            part = n.emit(FloorMod::default(), &[part, size])?;
        }
        let part = n.convert_like(part, x)?;
        parts.push(n.unsqueeze(part, &[0])?);
    }
    Ok(n.concat(&parts, 0)?.into())
}
