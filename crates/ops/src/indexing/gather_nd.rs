//! GatherND: takes slices by index tuples, the last axis of the indices. Opset 5 joins all batch axes of the output into
//! one, opset 8 keeps them.

use super::gather::in_axis;
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};
use carafe_tensor::{Dim, PartialShape};

/// Slices by index tuples; batch axes keep their shape.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "data, indices", moves = "0")]
pub struct GatherND {
    /// Number of leading axes that data and indices share.
    #[attr(default = 0)]
    pub batch_dims: usize,
}

impl Op for GatherND {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.batch_dims, false)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.batch_dims)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.batch_dims < 2 { Version::of::<GatherNDV5>(self, cx) } else { None }
    }
}

/// Slices by index tuples; batch axes are joined into one.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "GatherND", since = 5, until = 7, inputs = "data, indices", moves = "0")]
pub struct GatherNDV5 {
    /// Number of leading axes that data and indices share.
    #[attr(default = 0)]
    pub batch_dims: usize,
}

impl Op for GatherNDV5 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.batch_dims, true)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.batch_dims)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.batch_dims < 2 { Version::of::<GatherND>(self, cx) } else { None }
    }
}

fn infer(cx: &mut InferCx<'_>, batch: usize, join_batch: bool) -> Result<()> {
    cx.require_integer(1)?;
    let shape = match (cx.shape(0).dims(), cx.shape(1).dims()) {
        (Some(data), Some(indices)) => gathered(cx, data, indices, batch, join_batch)?,
        _ => PartialShape::dynamic(),
    };
    cx.set(0, cx.ty(0), shape);
    Ok(())
}

fn gathered(cx: &InferCx<'_>, data: &[Dim], indices: &[Dim], batch: usize, join_batch: bool) -> Result<PartialShape> {
    let Some((&tuple, positions)) = indices.split_last() else {
        return Err(cx.fail("indices must have at least 1 axis, found a scalar"));
    };
    cx.require(batch < data.len() && batch <= positions.len(), || {
        format!("attribute `batch_dims` is {batch}, found data [{}] and indices [{}]", cx.shape(0), cx.shape(1))
    })?;
    let mut shared = Vec::with_capacity(batch);
    for i in 0..batch {
        shared.push(data[i].merge(indices[i]).ok_or_else(|| {
            cx.fail(format!("batch axis {i} must agree, found [{}] and [{}]", cx.shape(0), cx.shape(1)))
        })?);
    }
    cx.require(tuple.min() <= (data.len() - batch) as i64, || {
        format!("an index tuple of {tuple} is longer than the {} axes of the data behind the batch", data.len() - batch)
    })?;
    let Some(tuple) = tuple.size() else {
        return Ok(PartialShape::dynamic());
    };
    if join_batch && batch > 0 {
        shared = vec![shared.into_iter().fold(Dim::known(1), Dim::mul)];
    }
    shared.extend(&positions[batch..]);
    shared.extend(&data[batch + tuple..]);
    Ok(PartialShape::new(shared))
}

fn eval(cx: &mut EvalCx<'_>, batch: usize) -> Result<()> {
    let out = cx.out_shape(0)?;
    let (shape, positions) = (cx.shape(0), cx.shape(1));
    let Some(&tuple) = positions.last() else {
        return Err(cx.fail("indices must have at least 1 axis"));
    };
    let per_batch: usize = positions[batch..positions.len() - 1].iter().product();
    let starts = tuple_starts(&shape[batch..], &cx.ints(1)?, tuple, positions[..positions.len() - 1].iter().product())
        .map_err(|m| cx.fail(m))?;
    let plane: usize = shape[batch..].iter().product();
    let inner: usize = shape[batch + tuple..].iter().product();
    let taken = cx.input(0).select(&out, |flat| {
        let (position, k) = (flat / inner, flat % inner);
        Some(position / per_batch * plane + starts[position] + k)
    })?;
    cx.set(0, taken)
}

/// Where the slice of each index tuple begins in data of this shape.
pub(super) fn tuple_starts(
    shape: &[usize],
    indices: &[i64],
    tuple: usize,
    n_tuples: usize,
) -> std::result::Result<Vec<usize>, String> {
    let inner: usize = shape[tuple..].iter().product();
    let mut starts = Vec::with_capacity(n_tuples.min(indices.len().max(1)));
    for t in 0..n_tuples {
        let mut start = 0;
        for (&index, &n) in indices[t * tuple..(t + 1) * tuple].iter().zip(shape) {
            let i = in_axis(index, n).ok_or_else(|| format!("index {index} is outside of an axis of {n}"))?;
            start = start * n + i;
        }
        starts.push(start * inner);
    }
    Ok(starts)
}
