//! Elements by index: gathered, scattered, chosen, counted.

use super::common::shapes::{known_number, scalar};
use super::complex::{axis_of, list_of};
use super::shape::filled;
use super::types::{element_type, is_complex};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::FloorMod;
use carafe_ops::indexing::one_hot::NegativeIndices;
use carafe_ops::indexing::{
    Gather, GatherND, NonZero, OneHot, Reduction, ScatterElementsUpdate, ScatterNDUpdate, Select,
};
use carafe_ops::search::{Bucketize, Unique};
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("Bucketize", 0, bucketize),
    rule("ClipByValue", 0, |n| {
        let (x, low, high) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let least = n.min(x, high)?;
        Ok(n.max(least, low)?.into())
    }),
    rule("DynamicPartition", 0, dynamic_partition),
    rule("DynamicStitch", 0, dynamic_stitch),
    rule("Gather", 0, |n| {
        let complex = is_complex(n, "Tparams");
        let (x, indices) = (n.input(0)?, n.input(1)?);
        gather(n, x, indices, axis_of(0, complex), 0)
    }),
    rule("GatherNd", 0, |n| {
        is_complex(n, "Tparams");
        let (x, indices) = (n.input(0)?, n.input(1)?);
        Ok(n.emit(GatherND { batch_dims: 0 }, &[x, indices])?.into())
    }),
    rule("GatherV2", 0, gather_v2),
    rule("InvertPermutation", 0, invert_permutation),
    rule("ListDiff", 0, list_diff),
    rule("OneHot", 0, one_hot),
    rule("ParallelDynamicStitch", 0, dynamic_stitch),
    rule("ResourceGather", 0, |n| {
        is_complex(n, "dtype");
        let batch_dims: i64 = n.attr("batch_dims", 0)?;
        let (x, indices) = (n.input(0)?, n.input(1)?);
        gather(n, x, indices, batch_dims, batch_dims)
    }),
    rule("ResourceGatherNd", 0, |n| {
        let (x, indices) = (n.input(0)?, n.input(1)?);
        Ok(n.emit(GatherND { batch_dims: 0 }, &[x, indices])?.into())
    }),
    rule("ScatterNd", 0, scatter_nd),
    rule("Select", 0, select),
    rule("SelectV2", 0, |n| {
        let complex = is_complex(n, "T");
        let (condition, a, b) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let condition = if complex { n.unsqueeze(condition, &[-1])? } else { condition };
        Ok(n.choose(condition, a, b)?.into())
    }),
    rule("TensorScatterAdd", 0, |n| tensor_scatter(n, Reduction::Sum)),
    rule("TensorScatterMax", 0, |n| tensor_scatter(n, Reduction::Max)),
    rule("TensorScatterMin", 0, |n| tensor_scatter(n, Reduction::Min)),
    rule("TensorScatterSub", 0, |n| tensor_scatter(n, Reduction::Sub)),
    rule("TensorScatterUpdate", 0, |n| tensor_scatter(n, Reduction::None)),
    rule("Unique", 0, |n| unique(n, false)),
    rule("UniqueV2", 0, |n| unique(n, false)),
    rule("UniqueWithCounts", 0, |n| unique(n, true)),
    rule("UniqueWithCountsV2", 0, |n| unique(n, true)),
    rule("UnravelIndex", 0, unravel_index),
    rule("Where", 0, where_true),
];

fn gather(n: &mut NodeCx<'_>, x: Value, indices: Value, axis: i64, batch_dims: i64) -> Result<Outputs> {
    let axis = n.i64(axis)?;
    Ok(n.emit(Gather { batch_dims }, &[x, indices, axis])?.into())
}

fn gather_v2(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let complex = is_complex(n, "Tparams");
    let batch_dims: i64 = n.attr("batch_dims", 0)?;
    let (x, indices, axis) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let axis = axis_of(known_number(n, axis, "the axis")?, complex);
    gather(n, x, indices, axis, batch_dims)
}

// Which elements are not 0, one row of indices for each.
fn where_true(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let x = if n.ty(x).is_float() { super::unary::converted(n, x, ElementType::Boolean)? } else { x };
    Ok(rows_of_true(n, x)?.into())
}

/// The indices of what is not 0, `[count, rank]`.
pub(super) fn rows_of_true(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let found = n.emit(NonZero { output_type: ElementType::I64 }, &[x])?;
    n.transpose(found, &[1, 0])
}

/// The indices of what is true in a vector, as a vector.
pub(super) fn places_of_true(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let found = n.emit(NonZero { output_type: ElementType::I64 }, &[x])?;
    n.squeeze(found, &[0])
}

// The condition may be a vector over the rows of the other two.
fn select(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let complex = is_complex(n, "T");
    let (mut condition, a, b) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let over_rows = |n: &NodeCx<'_>| Some((n.rank(condition)?, n.rank(a)?));
    match over_rows(n) {
        Some((of_condition, rank)) if of_condition < rank && of_condition > 0 => {
            condition = n.unsqueeze(condition, &(of_condition as i64..rank as i64).collect::<Vec<_>>())?;
        }
        Some(_) => {}
        None if complex => condition = n.unsqueeze(condition, &[-1])?,
        None => {}
    }
    let op = Select { auto_broadcast: Default::default(), auto_broadcast_axis: None };
    Ok(n.emit(op, &[condition, a, b])?.into())
}

fn one_hot(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", -1)?;
    let (indices, depth, on, off) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
    let depth = n.convert(depth, ElementType::I64)?;
    let mut inputs = [indices, depth, on, off];
    for input in &mut inputs[1..] {
        *input = scalar(n, *input)?;
    }
    // Bytes are the only indices that no table of ours takes.
    if !matches!(n.ty(indices), ElementType::I32 | ElementType::I64) {
        inputs[0] = n.convert(indices, ElementType::I64)?;
    }
    Ok(n.emit(OneHot { axis, negative_indices_mode: NegativeIndices::Ignore }, &inputs)?.into())
}

// Values of equal indices are summed.
fn scatter_nd(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let complex = is_complex(n, "T");
    let (indices, updates, shape) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let shape = list_of(n, shape, complex, 2)?;
    let zero = n.scalar_like(updates, 0.0)?;
    let zeros = filled(n, zero, shape)?;
    Ok(n.emit(ScatterNDUpdate { reduction: Reduction::Sum }, &[zeros, indices, updates])?.into())
}

fn tensor_scatter(n: &mut NodeCx<'_>, reduction: Reduction) -> Result<Outputs> {
    let (x, indices, updates) = (n.input(0)?, n.input(1)?, n.input(2)?);
    Ok(n.emit(ScatterNDUpdate { reduction }, &[x, indices, updates])?.into())
}

// y, the number of each element's value in y, and how often each occurs.
fn unique(n: &mut NodeCx<'_>, counts: bool) -> Result<Outputs> {
    let ty = element_type(n, "out_idx", ElementType::I32)?;
    let x = n.input(0)?;
    let mut inputs = vec![x];
    if n.has(1) {
        let axis = n.input(1)?;
        match n.ints(axis).as_deref() {
            Some([]) => {}
            Some([axis]) if n.rank(x) != Some(1) => inputs.push(n.i64(*axis)?),
            Some([_]) => {}
            _ => return Err(n.unsupported("the axis must be known when the model is read")),
        }
    }
    let op = Unique { sorted: false, index_element_type: ty, count_element_type: ty };
    let outputs = n.emit_all(op, &inputs)?;
    let mut all = vec![outputs[0], outputs[2]];
    if counts {
        all.push(outputs[3]);
    }
    Ok(all.into())
}

// What is in x and not in y, and where.
fn list_diff(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let ty = element_type(n, "out_idx", ElementType::I32)?;
    let (x, y) = (n.input(0)?, n.input(1)?);
    let (column, axis) = (n.unsqueeze(x, &[1])?, n.i64s(&[1])?);
    let equal = n.equal(column, y)?;
    let found = n.put(carafe_ops::reduce::ReduceLogicalOr { keep_dims: false }, &[equal, axis])?;
    let missing = n.put(carafe_ops::logic::LogicalNot, &[found])?;
    let at = places_of_true(n, missing)?;
    let values = n.gather(x, at, 0)?;
    Ok(vec![values, n.convert(at, ty)?].into())
}

fn dynamic_partition(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let count: i64 = n.required("num_partitions")?;
    if !(1..=1 << 16).contains(&count) {
        return Err(n.fail(format!("attribute `num_partitions` must be positive, found {count}")));
    }
    is_complex(n, "T");
    let (x, partitions) = (n.input(0)?, n.input(1)?);
    let (x, partitions) = rows_by(n, x, partitions)?;
    let mut parts = vec![];
    for i in 0..count {
        let this = n.equal_number(partitions, i as f64)?;
        let at = places_of_true(n, this)?;
        parts.push(n.gather(x, at, 0)?);
    }
    Ok(parts.into())
}

// Indices as a vector, and data with one row for each of them.
fn rows_by(n: &mut NodeCx<'_>, x: Value, indices: Value) -> Result<(Value, Value)> {
    let rank = n.known_rank(indices)? as i64;
    if rank == 1 {
        return Ok((x, indices));
    }
    let shape = n.shape_of(x)?;
    let rest = n.part(shape, rank, i64::MAX, 0)?;
    let indices = n.reshape(indices, &[-1])?;
    let count = n.shape_of(indices)?;
    let rows = n.concat(&[count, rest], 0)?;
    Ok((n.reshaped(x, rows, false)?, indices))
}

// Rows of several tensors put to their indices; the last of equal ones stays.
fn dynamic_stitch(n: &mut NodeCx<'_>) -> Result<Outputs> {
    is_complex(n, "T");
    let inputs = n.inputs()?;
    if inputs.is_empty() || inputs.len() % 2 != 0 {
        return Err(n.fail(format!("as many indices as data are needed, found {} inputs", inputs.len())));
    }
    let (all_indices, all_data) = inputs.split_at(inputs.len() / 2);
    let (mut indices, mut data) = (vec![], vec![]);
    for (i, d) in all_indices.iter().zip(all_data) {
        let (d, i) = rows_by(n, *d, *i)?;
        indices.push(n.convert(i, ElementType::I64)?);
        data.push(d);
    }
    let (indices, data) = (n.concat(&indices, 0)?, n.concat(&data, 0)?);
    let most = n.max_over(indices, &[0], true)?;
    let count = n.plus_number(most, 1.0)?;
    let shape = n.shape_of(data)?;
    let rest = n.part(shape, 1, i64::MAX, 0)?;
    let shape = n.concat(&[count, rest], 0)?;
    let start = match n.ty(data) {
        ElementType::String => n.constant(Tensor::zeros(ElementType::String, &[])?)?,
        _ => n.scalar_like(data, 0.0)?,
    };
    let start = filled(n, start, shape)?;
    let tuples = n.unsqueeze(indices, &[1])?;
    Ok(n.emit(ScatterNDUpdate { reduction: Reduction::None }, &[start, tuples, data])?.into())
}

// How many boundaries are not above each value.
fn bucketize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let boundaries: Vec<f64> = n.attr("boundaries", vec![])?;
    let x = n.input(0)?;
    let x = if n.ty(x).is_float() { x } else { n.convert(x, ElementType::F64)? };
    if boundaries.is_empty() {
        let (zero, shape) = (n.scalar(ElementType::I32, 0.0)?, n.shape_of(x)?);
        return Ok(filled(n, zero, shape)?.into());
    }
    // Boundaries are of single precision, whatever the values are.
    let boundaries: Vec<f64> = boundaries.into_iter().map(|b| f64::from(b as f32)).collect();
    let boundaries = n.constant(Tensor::from_f64(n.ty(x), &[boundaries.len()], &boundaries)?)?;
    let op = Bucketize { output_type: ElementType::I32, with_right_bound: false };
    Ok(n.emit(op, &[x, boundaries])?.into())
}

fn invert_permutation(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (count, zero) = (n.length(x, 0)?, n.i64(0)?);
    let numbers = n.count_to(count, n.ty(x))?;
    let op = ScatterElementsUpdate { reduction: Reduction::None, use_init_val: true };
    Ok(n.emit(op, &[x, x, numbers, zero])?.into())
}

// Coordinates of flat indices, one row for each axis; the last axis counts fastest.
fn unravel_index(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (indices, dims) = (n.input(0)?, n.input(1)?);
    let axes = n.shape(dims).dims().and_then(|d| d.first()?.size());
    let axes = axes.ok_or_else(|| n.unsupported("the number of axes must be known when the model is read"))?;
    let rows = coordinates(n, indices, dims, axes, 0)?;
    Ok(rows.into())
}

/// The coordinates of flat indices in a shape of this many axes, along a new axis.
pub(super) fn coordinates(
    n: &mut NodeCx<'_>,
    indices: Value,
    dims: Value,
    axes: usize,
    new_axis: i64,
) -> Result<Value> {
    let dims = n.convert_like(dims, indices)?;
    let (mut rest, mut all) = (indices, vec![]);
    for axis in (0..axes).rev() {
        let at = n.i64(axis as i64)?;
        let size = n.gather(dims, at, 0)?;
        let coordinate = if axis == 0 { rest } else { n.emit(FloorMod::default(), &[rest, size])? };
        all.push(n.unsqueeze(coordinate, &[new_axis])?);
        rest = n.over(rest, size)?;
    }
    all.reverse();
    n.concat(&all, new_axis)
}
