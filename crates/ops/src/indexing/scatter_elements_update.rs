//! ScatterElementsUpdate: `out[i][indices[i][j]] = updates[i][j]` for axis 1, and so on for other axes; since opset 12
//! updates may be joined with the data instead of replacing it.

use super::gather::in_axis;
use super::scatter::{Reduction, follow, infer_output, is_partial, reduce, store};
use crate::index::unravel;
use crate::movement::axes::{axis_input, require_one};
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, Version, VersionCx};
use carafe_tensor::{ElementType, elements, strides};

/// Updates single elements along an axis.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 12, inputs = "data, indices, updates, axis")]
pub struct ScatterElementsUpdate {
    /// How an update meets the value at its place; `sub` is not one of them.
    #[attr(default = Reduction::None)]
    pub reduction: Reduction,
    /// Whether the data itself takes part in the reduction.
    #[attr(default = true)]
    pub use_init_val: bool,
}

impl Op for ScatterElementsUpdate {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require(self.reduction != Reduction::Sub, || {
            "attribute `reduction` must be none, sum, prod, min, max or mean, found sub".to_string()
        })?;
        let boolean = [cx.ty(0), cx.ty(2)].contains(&ElementType::Boolean);
        cx.require(!(boolean && self.reduction == Reduction::Mean), || {
            "reduction mean is not defined for booleans".to_string()
        })?;
        infer(cx)?;
        if self.reduction == Reduction::None
            && is_partial(cx, 2)
            && let Some(targets) = known_targets(cx)
        {
            follow(cx, 2, &targets);
        }
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let targets = eval_targets(cx)?;
        reduce(cx, 2, &targets, self.reduction, self.use_init_val)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        // Before opset 12 an index could not be counted from the end.
        let forward = cx.ints(1).is_some_and(|list| list.iter().all(|&i| i >= 0));
        let plain = self.reduction == Reduction::None && forward;
        if plain { Version::of::<ScatterElementsUpdateV3>(self, cx) } else { None }
    }
}

/// Replaces single elements along an axis.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "ScatterElementsUpdate", since = 3, until = 11, inputs = "data, indices, updates, axis", moves = "0, 2")]
pub struct ScatterElementsUpdateV3;

impl Op for ScatterElementsUpdateV3 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let targets = eval_targets(cx)?;
        store(cx, 2, &targets)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<ScatterElementsUpdate>(self, cx)
    }
}

fn infer(cx: &mut InferCx<'_>) -> Result<()> {
    cx.require_integer(1)?;
    require_one(cx, 3)?;
    cx.require(cx.shape(1).compatible(cx.shape(2)), || {
        format!("indices and updates must have one shape, found [{}] and [{}]", cx.shape(1), cx.shape(2))
    })?;
    if let (Some(data), Some(indices)) = (cx.rank(0), cx.rank(1)) {
        cx.require(data == indices, || format!("indices must have {data} axes, found [{}]", cx.shape(1)))?;
    }
    if let Some(rank) = cx.rank(0) {
        axis_input(cx, 3, rank)?;
    }
    infer_output(cx, 2)
}

fn known_targets(cx: &InferCx<'_>) -> Option<Vec<usize>> {
    let (data, shape) = (cx.shape(0).to_static()?, cx.shape(1).to_static()?);
    targets(&data, &shape, &cx.ints(1)?, normalize_axis(cx.int(3)?, data.len()).ok()?).ok()
}

fn eval_targets(cx: &EvalCx<'_>) -> Result<Vec<usize>> {
    let axis = normalize_axis(cx.int(3)?, cx.shape(0).len())?;
    targets(cx.shape(0), cx.shape(1), &cx.ints(1)?, axis).map_err(|m| cx.fail(m))
}

fn targets(data: &[usize], shape: &[usize], indices: &[i64], axis: usize) -> Result<Vec<usize>, String> {
    let beyond = (0..data.len()).find(|&a| a != axis && shape[a] > data[a]);
    if let Some(other) = beyond.filter(|_| elements(shape) != Some(0)) {
        return Err(format!("indices {shape:?} reach beyond axis {other} of data {data:?}"));
    }
    let steps = strides(data);
    let position = |(flat, &index): (usize, &i64)| {
        let mut at = unravel(flat, shape);
        let n = data[axis];
        at[axis] = in_axis(index, n).ok_or_else(|| format!("index {index} is outside of an axis of {n}"))?;
        Ok(at.iter().zip(&steps).map(|(i, s)| i * s).sum())
    };
    indices.iter().enumerate().map(position).collect()
}
