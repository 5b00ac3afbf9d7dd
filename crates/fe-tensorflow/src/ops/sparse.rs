//! Sparse tensors: indices `[count, rank]`, values `[count]` and a dense shape `[rank]`.

use super::common::shapes::{i64_vector, scalar};
use super::indexing::coordinates;
use super::shape::filled;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::compare::Less;
use carafe_ops::indexing::{Reduction, ScatterNDUpdate, SparseFillEmptyRows};
use carafe_ops::linear::MatMul;
use carafe_ops::math::Abs;
use carafe_ops::reduce::ReduceProd;
use carafe_ops::search::CumSum;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("SparseFillEmptyRows", 0, fill_empty_rows),
    rule("SparseReshape", 0, sparse_reshape),
    rule("SparseTensorDenseAdd", 0, |n| {
        let (indices, values, dense) = (n.input(0)?, n.input(1)?, n.input(3)?);
        n.ignore_inputs(3);
        Ok(n.emit(ScatterNDUpdate { reduction: Reduction::Sum }, &[dense, indices, values])?.into())
    }),
    rule("SparseTensorDenseMatMul", 0, |n| {
        let (transpose_a, transpose_b): (bool, bool) = (n.attr("adjoint_a", false)?, n.attr("adjoint_b", false)?);
        let (indices, values, shape, b) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
        let zero = n.scalar_like(values, 0.0)?;
        let a = dense(n, indices, shape, values, zero, Reduction::Sum)?;
        Ok(n.emit(MatMul { transpose_a, transpose_b }, &[a, b])?.into())
    }),
    rule("SparseToDense", 0, |n| {
        let (indices, shape, values, default) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
        // A vector of indices is a column, a single index is a matrix of one.
        let indices = match n.known_rank(indices)? {
            0 => n.reshape(indices, &[1, 1])?,
            1 => n.unsqueeze(indices, &[1])?,
            _ => indices,
        };
        let values = if n.rank(values) == Some(0) {
            let count = n.size(indices, 0)?;
            n.stretch(values, count)?
        } else {
            values
        };
        Ok(dense(n, indices, shape, values, default, Reduction::None)?.into())
    }),
];

fn dense(
    n: &mut NodeCx<'_>,
    indices: Value,
    shape: Value,
    values: Value,
    default: Value,
    reduction: Reduction,
) -> Result<Value> {
    let start = filled(n, default, shape)?;
    n.emit(ScatterNDUpdate { reduction }, &[start, indices, values])
}

// Indices, values, which rows were empty, and where each value went.
fn fill_empty_rows(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (indices, values, shape, default) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
    let default = scalar(n, default)?;
    let outputs = n.emit_all(SparseFillEmptyRows, &[values, shape, indices, default])?;
    let mut all = outputs.clone();
    if n.wants_output(3) {
        // A value goes behind as many more as rows before its own were empty.
        let (first, zero) = (n.i64(0)?, n.i64(0)?);
        let rows = n.gather(indices, first, 1)?;
        let empty = n.convert(outputs[2], ElementType::I64)?;
        let before = n.emit(CumSum { exclusive: true, reverse: false }, &[empty, zero])?;
        let more = n.gather(before, rows, 0)?;
        let count = n.length(indices, 0)?;
        let place = n.count_to(count, ElementType::I64)?;
        all.push(n.plus(place, more)?);
    }
    Ok(all.into())
}

// The indices of the same elements in another shape, and that shape with its -1 worked out.
fn sparse_reshape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (indices, old, new) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (old, new) = (i64_vector(n, old)?, i64_vector(n, new)?);
    let zero = n.i64(0)?;
    let product = |n: &mut NodeCx<'_>, v: Value| n.emit(ReduceProd { keep_dims: false }, &[v, zero]);
    let (total, known) = (product(n, old)?, product(n, new)?);
    let known = n.emit(Abs, &[known])?;
    let one = n.i64(1)?;
    let known = n.max(known, one)?;
    let missing = n.over(total, known)?;
    let open = n.emit(Less::default(), &[new, zero])?;
    let shape = n.choose(open, missing, new)?;
    // Flat positions: each axis counts as many elements as lie behind it.
    let axes = |n: &NodeCx<'_>, v: Value| n.shape(v).dims().and_then(|d| d.first()?.size());
    let (from, to) = (axes(n, old).or_else(|| n.shape(indices).dims()?.get(1)?.size()), axes(n, new));
    let (Some(from), Some(to)) = (from, to) else {
        return Err(n.unsupported("the ranks of both shapes must be known when the model is read"));
    };
    let mut flat = n.i64(0)?;
    for axis in 0..from {
        let at = n.i64(axis as i64)?;
        let (size, index) = (n.gather(old, at, 0)?, n.gather(indices, at, 1)?);
        flat = n.times(flat, size)?;
        flat = n.plus(flat, index)?;
    }
    let indices = coordinates(n, flat, shape, to, 1)?;
    Ok(vec![indices, shape].into())
}
