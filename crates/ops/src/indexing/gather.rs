//! Gather: takes slices of the data along an axis, chosen by indices. A negative index counts from the end; one outside
//! of the axis gives zeros, also in the older classes whose specification forbids it.

use crate::movement::axes::{axis_input, of_rank, require_one};
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, RowsCx, RowKind, Version, VersionCx, OrderCx, Reordered};
use carafe_tensor::{Dim, PartialShape};

/// Slices along an axis by indices; leading batch axes are walked together.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "data, indices, axis", moves = "0")]
pub struct Gather {
    /// Number of leading axes that data and indices share; negative counts from the rank of the indices.
    #[attr(default = 0)]
    pub batch_dims: i64,
}

impl Op for Gather {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.batch_dims)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.batch_dims)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        let axis = cx.ints(2).and_then(|a| a.first().copied());
        match (cx.kinds()[0], cx.kinds()[1], axis) {
            (_, _, None) => Err("its axis is not known".into()),
            _ if self.batch_dims != 0 => Err("it gathers for each batch".into()),
            (RowKind::Rows, RowKind::Fixed, Some(axis)) => cx.axis_leaves_rows(axis),
            (RowKind::Fixed, RowKind::Rows, Some(0)) => Ok(()),
            _ => Err("it gathers rows".into()),
        }
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        // Before opset 8 an index could not be counted from the end.
        let forward = cx.ints(1).is_some_and(|list| list.iter().all(|&i| i >= 0));
        if forward { Version::of::<GatherV7>(self, cx) } else { None }
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        let along = self.batch_dims == 0 && (cx.rank)(1)? == 1;
        let ints = vec![(2, cx.axes(2)?)];
        along.then(|| Reordered { op: Box::new(self.clone()), data: 1, ints })
    }
}

/// Slices along an axis by indices; leading batch axes are walked together.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Gather", since = 7, until = 7, inputs = "data, indices, axis", moves = "0")]
pub struct GatherV7 {
    /// Number of leading axes that data and indices share; negative counts from the rank of the indices.
    #[attr(default = 0)]
    pub batch_dims: i64,
}

impl Op for GatherV7 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.batch_dims)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.batch_dims)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<Gather>(self, cx)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.batch_dims == 0 { Version::of::<GatherV1>(self, cx) } else { None }
    }
}

/// Slices along an axis by indices.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Gather", since = 1, until = 6, inputs = "data, indices, axis", moves = "0")]
pub struct GatherV1;

impl Op for GatherV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, 0)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, 0)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<GatherV7>(self, cx)
    }
}

fn infer(cx: &mut InferCx<'_>, batch_dims: i64) -> Result<()> {
    cx.require_integer(1)?;
    require_one(cx, 2)?;
    let shape = match (cx.shape(0).dims(), cx.shape(1).dims()) {
        (Some(data), Some(indices)) => gathered(cx, data, indices, batch_dims)?,
        _ => PartialShape::dynamic(),
    };
    cx.set(0, cx.ty(0), shape);
    Ok(())
}

fn gathered(cx: &InferCx<'_>, data: &[Dim], indices: &[Dim], batch_dims: i64) -> Result<PartialShape> {
    cx.require(!data.is_empty(), || "data must not be a scalar".to_string())?;
    let batch = if batch_dims < 0 { batch_dims.saturating_add(indices.len() as i64) } else { batch_dims };
    cx.require((0..=indices.len() as i64).contains(&batch), || {
        format!("attribute `batch_dims` is {batch_dims}, the indices have {} axes", indices.len())
    })?;
    let batch = batch as usize;
    let axis = axis_input(cx, 2, data.len())?;
    cx.require(batch <= axis.unwrap_or(data.len() - 1), || {
        format!("attribute `batch_dims` must not lie behind the axis, found {batch} and axis {axis:?}")
    })?;
    let mut out = Vec::with_capacity(data.len() + indices.len());
    for i in 0..batch {
        out.push(data[i].merge(indices[i]).ok_or_else(|| {
            cx.fail(format!("batch axis {i} must agree, found [{}] and [{}]", cx.shape(0), cx.shape(1)))
        })?);
    }
    match axis {
        Some(axis) => {
            out.extend(&data[batch..axis]);
            out.extend(&indices[batch..]);
            out.extend(&data[axis + 1..]);
            Ok(PartialShape::new(out))
        }
        None => {
            let rest = of_rank(Dim::from(data.len() - 1 - batch + indices.len() - batch));
            Ok(rest.dims().map_or(PartialShape::dynamic(), |r| PartialShape::new(out.iter().chain(r).copied())))
        }
    }
}

fn eval(cx: &mut EvalCx<'_>, batch_dims: i64) -> Result<()> {
    let out = cx.out_shape(0)?;
    let shape = cx.shape(0);
    let axis = normalize_axis(cx.int(2)?, shape.len())?;
    let n_batch = if batch_dims < 0 { batch_dims + cx.shape(1).len() as i64 } else { batch_dims } as usize;
    let outer: usize = shape[n_batch..axis].iter().product();
    let inner: usize = shape[axis + 1..].iter().product();
    let n_indices: usize = cx.shape(1)[n_batch..].iter().product();
    let n = shape[axis];
    let indices: Vec<Option<usize>> = cx.ints(1)?.into_iter().map(|i| in_axis(i, n)).collect();
    // The output is [batch, outer, index, inner].
    let taken = cx.input(0).select(&out, |flat| {
        let (rest, k) = (flat / inner, flat % inner);
        let (row, i) = (rest / n_indices, rest % n_indices);
        let index = indices[row / outer * n_indices + i]?;
        Some((row * n + index) * inner + k)
    })?;
    cx.set(0, taken)
}

/// Place of an index in an axis of `n`, where negative ones count from the end.
pub(super) fn in_axis(index: i64, n: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(n as i64)? } else { index };
    usize::try_from(index).ok().filter(|&i| i < n)
}
