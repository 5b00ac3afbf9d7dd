//! Squeeze: drops axes of size 1. A listed axis that is known not to be 1 stays; one that may be 1 is taken as 1, unless
//! `allow_axis_skip` says that it may stay too, which leaves the rank unknown.

use super::axes::{axes_input, reshaped_rows};
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx, Version, VersionCx};
use carafe_tensor::{Dim, PartialShape};

/// Drops the listed axes of size 1, or all of them when none are listed.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 15, inputs = "data, axes?", moves = "0", shape_inputs = "1")]
pub struct Squeeze {
    /// A listed axis of unknown size may turn out not to be 1 and then stays.
    #[attr(default = false)]
    pub allow_axis_skip: bool,
}

impl Op for Squeeze {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.allow_axis_skip)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        reshaped_rows(cx)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if !self.allow_axis_skip { Version::of::<SqueezeV1>(self, cx) } else { None }
    }
}

/// Drops the listed axes of size 1, or all of them when none are listed.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Squeeze", since = 1, until = 14, inputs = "data, axes?", moves = "0", shape_inputs = "1")]
pub struct SqueezeV1;

impl Op for SqueezeV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, false)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        reshaped_rows(cx)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<Squeeze>(self, cx)
    }
}

fn infer(cx: &mut InferCx<'_>, allow_skip: bool) -> Result<()> {
    if cx.has(1) {
        cx.require_integer(1)?;
        cx.require_rank(1, &[0, 1])?;
    }
    let shape = match cx.shape(0).dims() {
        Some(dims) => squeezed(cx, dims, allow_skip)?,
        None => PartialShape::dynamic(),
    };
    cx.set(0, cx.ty(0), shape);
    Ok(())
}

fn squeezed(cx: &InferCx<'_>, dims: &[Dim], allow_skip: bool) -> Result<PartialShape> {
    let no_axes = !cx.has(1) || cx.shape(1).elements() == Some(0);
    let listed = if no_axes { Some(vec![]) } else { axes_input(cx, 1, dims.len())? };
    let may_go = |axis: usize| listed.as_ref().is_none_or(|l| l.is_empty() || l.contains(&axis));
    // Unlisted axes must be known to be 1; a listed one is trusted.
    let trusted = listed.as_ref().is_some_and(|l| !l.is_empty()) && !allow_skip;
    let mut kept = Vec::new();
    for (axis, &dim) in dims.iter().enumerate() {
        if !may_go(axis) || !dim.contains(1) {
            kept.push(dim);
        } else if listed.is_none() || !(trusted || dim.is_known()) {
            return Ok(PartialShape::dynamic());
        }
    }
    Ok(PartialShape::new(kept))
}

fn eval(cx: &mut EvalCx<'_>) -> Result<()> {
    let out = cx.input(0).reshaped(&cx.out_shape(0)?)?;
    cx.set(0, out)
}
