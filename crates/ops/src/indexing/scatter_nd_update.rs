//! ScatterNDUpdate: updates elements or slices of the data at index tuples, the last axis of the indices.

use super::gather_nd::tuple_starts;
use super::scatter::{Reduction, follow, infer_output, is_partial, reduce};
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};
use carafe_tensor::PartialShape;

/// Updates slices at index tuples.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 15, inputs = "data, indices, updates")]
pub struct ScatterNDUpdate {
    /// How an update meets the value at its place; `mean` is not one of them.
    #[attr(default = Reduction::None)]
    pub reduction: Reduction,
}

impl Op for ScatterNDUpdate {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require(self.reduction != Reduction::Mean, || {
            "attribute `reduction` must be none, sum, sub, prod, min or max, found mean".to_string()
        })?;
        infer(cx)?;
        if self.reduction == Reduction::None
            && is_partial(cx, 2)
            && let (Some(data), Some(shape), Some(indices)) =
                (cx.shape(0).to_static(), cx.shape(1).to_static(), cx.ints(1))
            && let Ok(targets) = targets(&data, &shape, &indices)
        {
            follow(cx, 2, &targets);
        }
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.reduction)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.reduction == Reduction::None { Version::of::<ScatterNDUpdateV4>(self, cx) } else { None }
    }
}

/// Replaces slices at index tuples.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "ScatterNDUpdate", since = 4, until = 14, inputs = "data, indices, updates", moves = "0, 2")]
pub struct ScatterNDUpdateV4;

impl Op for ScatterNDUpdateV4 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, Reduction::None)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<ScatterNDUpdate>(self, cx)
    }
}

fn infer(cx: &mut InferCx<'_>) -> Result<()> {
    cx.require_integer(1)?;
    for i in [0, 1] {
        cx.require(cx.rank(i) != Some(0), || format!("{} must not be a scalar", cx.port_name(i)))?;
    }
    if let (Some(data), Some(indices)) = (cx.shape(0).dims(), cx.shape(1).dims())
        && let Some((tuple, positions)) = indices.split_last()
    {
        cx.require(tuple.min() <= data.len() as i64, || {
            format!("an index tuple of {tuple} is longer than the {} axes of the data", data.len())
        })?;
        if let Some(tuple) = tuple.size() {
            let wanted = PartialShape::new(positions.iter().chain(&data[tuple..]).copied());
            cx.require(cx.shape(2).compatible(&wanted), || {
                format!("updates must have shape [{wanted}], found [{}]", cx.shape(2))
            })?;
        }
    }
    infer_output(cx, 2)
}

fn eval(cx: &mut EvalCx<'_>, how: Reduction) -> Result<()> {
    let targets = targets(cx.shape(0), cx.shape(1), &cx.ints(1)?).map_err(|m| cx.fail(m))?;
    reduce(cx, 2, &targets, how, true)
}

// The position of every element of every updated slice.
fn targets(data: &[usize], shape: &[usize], indices: &[i64]) -> Result<Vec<usize>, String> {
    let tuple = shape.last().copied().unwrap_or(0);
    let n_tuples = shape.iter().rev().skip(1).product();
    let inner: usize = data[tuple..].iter().product();
    let starts = tuple_starts(data, indices, tuple, n_tuples)?;
    Ok(starts.into_iter().flat_map(|start| start..start + inner).collect())
}
