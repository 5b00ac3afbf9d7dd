//! Elements found or placed by index. Indices may count from the end everywhere but in the first version of OneHot.

use super::shapes::{count_to, dim, scalar};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::{Add, FloorMod};
use carafe_ops::indexing::{
    Gather, GatherElements, GatherND, NonZero, OneHot, Reduction, ScatterElementsUpdate, ScatterNDUpdate,
    one_hot::NegativeIndices,
};
use carafe_ops::movement::{Broadcast, Slice, Split, broadcast::BroadcastMode};
use carafe_ops::search::{
    TopK, Unique,
    topk::{TopKMode, TopKSort},
};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Compress", 9, compress),
    rule("Gather", 1, gather),
    rule("GatherElements", 11, gather_elements),
    rule("GatherND", 11, gather_nd),
    rule("NonZero", 9, non_zero),
    rule("OneHot", 9, |n| one_hot(n, NegativeIndices::Ignore)),
    rule("OneHot", 11, |n| one_hot(n, NegativeIndices::Normalize)),
    rule("Scatter", 9, scatter_elements),
    rule("ScatterElements", 11, scatter_elements),
    rule("ScatterND", 11, scatter_nd),
    rule("TensorScatter", 24, tensor_scatter),
    rule("TopK", 1, topk_attribute),
    rule("TopK", 10, topk_input),
    rule("Unique", 11, unique),
];

// Without an axis the data is one row.
fn compress(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: Option<i64> = n.opt_attr("axis")?;
    let (x, condition) = (n.input(0)?, n.input(1)?);
    let (x, axis) = match axis {
        Some(axis) => (x, axis),
        None => (n.reshape(x, &[-1])?, 0),
    };
    let chosen = n.emit(NonZero { output_type: ElementType::I64 }, &[condition])?;
    let chosen = n.squeeze(chosen, &[0])?;
    let axis = n.i64(axis)?;
    Ok(n.emit(Gather { batch_dims: 0 }, &[x, chosen, axis])?.into())
}

fn gather(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", 0)?;
    let (x, indices, axis) = (n.input(0)?, n.input(1)?, n.i64(axis)?);
    Ok(n.emit(Gather { batch_dims: 0 }, &[x, indices, axis])?.into())
}

fn gather_elements(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", 0)?;
    let (x, indices) = (n.input(0)?, n.input(1)?);
    let x = cut_to(n, x, indices, axis)?;
    Ok(n.emit(GatherElements { axis }, &[x, indices])?.into())
}

// Indices may be fewer than the data off the axis; then only the first of the data count.
fn cut_to(n: &mut NodeCx<'_>, x: Value, indices: Value, axis: i64) -> Result<Value> {
    let (Some(data), Some(wanted)) = (n.shape(x).dims(), n.shape(indices).dims()) else { return Ok(x) };
    if data.len() != wanted.len() || data.is_empty() {
        return Ok(x);
    }
    let axis = n.axis(axis, data.len())?;
    let shorter = data.iter().zip(wanted).enumerate().filter_map(|(i, (have, want))| {
        let (have, want) = (have.get()?, want.get()?);
        (i != axis && want < have).then_some((i as i64, want))
    });
    let (axes, stops): (Vec<i64>, Vec<i64>) = shorter.unzip();
    if axes.is_empty() {
        return Ok(x);
    }
    let (starts, steps) = (n.i64s(&vec![0; axes.len()])?, n.i64s(&vec![1; axes.len()])?);
    let (stops, axes) = (n.i64s(&stops)?, n.i64s(&axes)?);
    n.emit(Slice, &[x, starts, stops, steps, axes])
}

fn gather_nd(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let batch_dims: usize = n.attr("batch_dims", 0)?;
    let (x, indices) = (n.input(0)?, n.input(1)?);
    let (x, indices) = (broadcast_batch(n, x, indices, batch_dims)?, broadcast_batch(n, indices, x, batch_dims)?);
    Ok(n.emit(GatherND { batch_dims }, &[x, indices])?.into())
}

// Batch axes of 1 are repeated as often as the other side has rows, as ONNX Runtime has it.
fn broadcast_batch(n: &mut NodeCx<'_>, v: Value, other: Value, batch_dims: usize) -> Result<Value> {
    let (Some(own), Some(others)) = (n.shape(v).dims(), n.shape(other).dims()) else { return Ok(v) };
    if batch_dims > own.len().min(others.len()) {
        return Ok(v);
    }
    let mut target: Vec<i64> = vec![1; own.len()];
    for (i, (a, b)) in own.iter().zip(others).take(batch_dims).enumerate() {
        if let (Some(1), Some(rows)) = (a.get(), b.get()) {
            target[i] = rows;
        }
    }
    if target.iter().all(|&rows| rows == 1) {
        return Ok(v);
    }
    let target = n.i64s(&target)?;
    n.emit(Broadcast { mode: BroadcastMode::Bidirectional }, &[v, target])
}

fn non_zero(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(n.emit(NonZero { output_type: ElementType::I64 }, &[x])?.into())
}

// Indices and depth may be floats; the values come as off, on.
fn one_hot(n: &mut NodeCx<'_>, negative_indices_mode: NegativeIndices) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", -1)?;
    let (indices, depth, values) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (indices, depth) = (n.convert(indices, ElementType::I64)?, n.convert(depth, ElementType::I64)?);
    let (depth, first) = (scalar(n, depth)?, n.i64(0)?);
    let (off, on) = match n.emit_all(Split { num_splits: 2 }, &[values, first])?.as_slice() {
        &[off, on] => (scalar(n, off)?, scalar(n, on)?),
        _ => return Err(n.fail("values must be off and on")),
    };
    Ok(n.emit(OneHot { axis, negative_indices_mode }, &[indices, depth, on, off])?.into())
}

fn reduction(n: &NodeCx<'_>) -> Result<Reduction> {
    let name: String = n.attr("reduction", "none".to_string())?;
    Ok(match name.as_str() {
        "none" => Reduction::None,
        "add" => Reduction::Sum,
        "mul" => Reduction::Prod,
        "min" => Reduction::Min,
        "max" => Reduction::Max,
        other => {
            return Err(n.fail(format!("attribute `reduction` must be none, add, mul, min or max, found {other}")));
        }
    })
}

fn scatter_elements(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", 0)?;
    let reduction = reduction(n)?;
    let (x, indices, updates, axis) = (n.input(0)?, n.input(1)?, n.input(2)?, n.i64(axis)?);
    Ok(n.emit(ScatterElementsUpdate { reduction, use_init_val: true }, &[x, indices, updates, axis])?.into())
}

fn scatter_nd(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let reduction = reduction(n)?;
    let (x, indices, updates) = (n.input(0)?, n.input(1)?, n.input(2)?);
    Ok(n.emit(ScatterNDUpdate { reduction }, &[x, indices, updates])?.into())
}

// Writes a run of steps into a cache, for each row of the batch from its own position on.
fn tensor_scatter(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", -2)?;
    let mode: String = n.attr("mode", "linear".to_string())?;
    let circular = match mode.as_str() {
        "linear" => false,
        "circular" => true,
        other => return Err(n.fail(format!("attribute `mode` must be linear or circular, found {other}"))),
    };
    let (cache, update, writes) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    let rank = n.known_rank(cache)?;
    let axis = n.axis(axis, rank)?;
    if axis == 0 {
        return Err(n.fail("attribute `axis` must not be the batch axis"));
    }
    let shaped = |position: usize| {
        let mut pattern = vec![1i64; rank];
        pattern[position] = -1;
        pattern
    };
    let steps = dim(n, update, axis as i64)?;
    let steps = count_to(n, steps)?;
    let mut at = n.reshape(steps, &shaped(axis))?;
    if let Some(writes) = writes {
        let first = n.convert(writes, ElementType::I64)?;
        let first = n.reshape(first, &shaped(0))?;
        at = n.emit(Add::default(), &[first, at])?;
    }
    if circular {
        let size = dim(n, cache, axis as i64)?;
        at = n.emit(FloorMod::default(), &[at, size])?;
    }
    let (shape, axis) = (n.shape_of(update)?, n.i64(axis as i64)?);
    let at = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[at, shape])?;
    let op = ScatterElementsUpdate { reduction: Reduction::None, use_init_val: true };
    Ok(n.emit(op, &[cache, at, update, axis])?.into())
}

fn topk_attribute(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let k: i64 = n.required("k")?;
    let k = n.i64(k)?;
    topk(n, k)
}

fn topk_input(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let k = n.input(1)?;
    let k = scalar(n, k)?;
    topk(n, k)
}

// Sorted also where the order is free; of equal elements the first comes first.
fn topk(n: &mut NodeCx<'_>, k: Value) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", -1)?;
    let largest: bool = n.attr("largest", true)?;
    n.ignore(&["sorted"]);
    let x = n.input(0)?;
    let mode = if largest { TopKMode::Max } else { TopKMode::Min };
    let op = TopK { axis, mode, sort: TopKSort::Value, index_element_type: ElementType::I64, stable: true };
    Ok(n.emit_all(op, &[x, k])?.into())
}

fn unique(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: Option<i64> = n.opt_attr("axis")?;
    let sorted: bool = n.attr("sorted", true)?;
    let x = n.input(0)?;
    let op = Unique { sorted, index_element_type: ElementType::I64, count_element_type: ElementType::I64 };
    Ok(match axis {
        Some(axis) => {
            let axis = n.i64(axis)?;
            n.emit_all(op, &[x, axis])?
        }
        None => n.emit_all(op, &[x])?,
    }
    .into())
}
