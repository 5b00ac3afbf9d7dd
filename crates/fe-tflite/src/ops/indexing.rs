//! Elements by their index, and indexes of elements.

use super::shapes::DECLARED;
use carafe_fe_tensorflow::ops::common::search;
use carafe_fe_tensorflow::ops::common::shapes::{i64_vector, known_number, scalar};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::one_hot::NegativeIndices;
use carafe_ops::indexing::{Gather, GatherND, NonZero, OneHot, Reduction, ScatterNDUpdate};
use carafe_ops::search::{Bucketize, Unique};
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("ARG_MAX", 1, |n| arg(n, true)),
    rule("ARG_MIN", 1, |n| arg(n, false)),
    rule("BUCKETIZE", 1, bucketize),
    rule("EMBEDDING_LOOKUP", 1, embedding_lookup),
    rule("GATHER", 1, gather),
    rule("GATHER_ND", 1, gather_nd),
    rule("MATRIX_DIAG", 1, matrix_diag),
    rule("MATRIX_SET_DIAG", 1, matrix_set_diag),
    rule("ONE_HOT", 1, one_hot),
    rule("SCATTER_ND", 1, scatter_nd),
    rule("SELECT", 1, select),
    rule("SELECT_V2", 1, |n| {
        let (condition, a, b) = (n.input(0)?, n.input(1)?, n.input(2)?);
        Ok(n.choose(condition, a, b)?.into())
    }),
    rule("SPARSE_TO_DENSE", 1, sparse_to_dense),
    rule("TOPK_V2", 1, |n| {
        let (x, k) = (n.input(0)?, n.input(1)?);
        let (values, indices) = search::top_k(n, x, k, ElementType::I32)?;
        Ok(vec![values, indices].into())
    }),
    rule("UNIQUE", 1, unique),
    rule("WHERE", 1, coordinates),
];

fn arg(n: &mut NodeCx<'_>, max: bool) -> Result<Outputs> {
    n.ignore(&["output_shape"]);
    let (x, axis) = (n.input(0)?, n.input(1)?);
    n.ignore(&["output_type"]);
    let ty: ElementType = n.required("output_type")?;
    let axis = known_number(n, axis, "the axis")?;
    Ok(search::arg(n, x, axis, max, ty)?.into())
}

fn bucketize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let boundaries: Vec<f32> = n.required("boundaries")?;
    let buckets = n.constant(Tensor::from_slice(&[boundaries.len()], &boundaries)?)?;
    let x = if n.ty(x).is_float() { x } else { n.convert(x, ElementType::F32)? };
    // A value on a boundary is behind it.
    Ok(n.emit(Bucketize { output_type: ElementType::I32, with_right_bound: false }, &[x, buckets])?.into())
}

fn embedding_lookup(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (ids, table) = (n.input(0)?, n.input(1)?);
    Ok(Compose::gather(n, table, ids, 0)?.into())
}

fn gather(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, at) = (n.input(0)?, n.input(1)?);
    let (axis, batch_dims): (i64, i64) = (n.attr("axis", 0)?, n.attr("batch_dims", 0)?);
    let axis = n.i64(axis)?;
    Ok(n.emit(Gather { batch_dims }, &[x, at, axis])?.into())
}

fn gather_nd(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, at) = (n.input(0)?, n.input(1)?);
    Ok(n.emit(GatherND { batch_dims: 0 }, &[x, at])?.into())
}

// A matrix of the diagonal's length that is true on its diagonal; `rows` and `columns` are scalars.
fn diagonal(n: &mut NodeCx<'_>, rows: Value, columns: Value) -> Result<Value> {
    let (row, column) = (n.count_to(rows, ElementType::I64)?, n.count_to(columns, ElementType::I64)?);
    let row = n.unsqueeze(row, &[1])?;
    n.equal(row, column)
}

fn matrix_diag(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let size = n.length(x, -1)?;
    let on = diagonal(n, size, size)?;
    let (rows, zero) = (n.unsqueeze(x, &[-1])?, n.scalar_like(x, 0.0)?);
    Ok(n.choose(on, rows, zero)?.into())
}

fn matrix_set_diag(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, values) = (n.input(0)?, n.input(1)?);
    let (rows, columns) = (n.length(x, -2)?, n.length(x, -1)?);
    let on = diagonal(n, rows, columns)?;
    // The diagonal is as long as the shorter side: it lies along the longer one, and what is beyond is not read.
    let sizes = (n.shape(x).dims().map(|d| d.len()), n.shape(values).dims().and_then(|d| d.last()?.get()));
    let column_count = sizes.0.and_then(|r| n.shape(x).dim(r.checked_sub(1)?).get());
    let along = if column_count == sizes.1 { -2 } else { -1 };
    let values = n.unsqueeze(values, &[along])?;
    Ok(n.choose(on, values, x)?.into())
}

fn one_hot(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (at, depth, on, off) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
    let axis: i64 = n.attr("axis", -1)?;
    let (depth, on, off) = (scalar(n, depth)?, scalar(n, on)?, scalar(n, off)?);
    let op = OneHot { axis, negative_indices_mode: NegativeIndices::Ignore };
    Ok(n.emit(op, &[at, depth, on, off])?.into())
}

// Updates of one place are added.
fn scatter_nd(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (at, updates, shape) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let shape = i64_vector(n, shape)?;
    let zero = n.scalar_like(updates, 0.0)?;
    let start = n.stretch(zero, shape)?;
    Ok(n.emit(ScatterNDUpdate { reduction: Reduction::Sum }, &[start, at, updates])?.into())
}

// A condition of one axis chooses rows.
fn select(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (mut condition, a, b) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (own, rank) = (n.known_rank(condition)?, n.known_rank(a)?);
    if own == 1 && rank > 1 {
        condition = n.unsqueeze(condition, &(1..rank as i64).collect::<Vec<_>>())?;
    }
    Ok(n.choose(condition, a, b)?.into())
}

// Indices [n, rank], [n], or a scalar; one value or one for each index.
fn sparse_to_dense(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["validate_indices"]);
    let (at, shape, values, default) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
    let (shape, default) = (i64_vector(n, shape)?, scalar(n, default)?);
    let at = match n.known_rank(at)? {
        0 => n.reshape(at, &[1, 1])?,
        1 => n.unsqueeze(at, &[1])?,
        _ => at,
    };
    let count = n.size(at, 0)?;
    let values = if n.rank(values) == Some(0) { n.stretch(values, count)? } else { values };
    let start = n.stretch(default, shape)?;
    Ok(n.emit(ScatterNDUpdate { reduction: Reduction::None }, &[start, at, values])?.into())
}

fn unique(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    let x = n.input(0)?;
    let ty: ElementType = n.attr("idx_out_type", ElementType::I32)?;
    let op = Unique { sorted: false, index_element_type: ty, count_element_type: ElementType::I32 };
    let outputs = n.emit_all(op, &[x])?;
    Ok(vec![outputs[0], outputs[2]].into())
}

// Coordinates of all that is not zero, a row for each.
fn coordinates(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let found = n.emit(NonZero { output_type: ElementType::I64 }, &[x])?;
    Ok(n.transpose(found, &[1, 0])?.into())
}
