//! Shared by the reductions: the axes input, the output shape, and the folding itself. No axes at all means that every
//! element is folded alone, not that everything is folded together.

use crate::index::offsets;
use carafe_graph::{Content, EvalCx, InferCx, Result, normalize_axis};
use carafe_tensor::{Dim, ElementType, PartialShape, strides};

/// Numeric data and integer axes.
pub(crate) fn infer(cx: &mut InferCx<'_>, keep_dims: bool) -> Result<()> {
    cx.require_number(0)?;
    infer_shape(cx, keep_dims)
}

/// Boolean data and integer axes.
pub(crate) fn infer_logical(cx: &mut InferCx<'_>, keep_dims: bool) -> Result<()> {
    cx.require_boolean(0)?;
    infer_shape(cx, keep_dims)
}

fn infer_shape(cx: &mut InferCx<'_>, keep_dims: bool) -> Result<()> {
    cx.require_integer(1)?;
    cx.require_rank(1, &[0, 1])?;
    let (ty, data) = (cx.ty(0), cx.shape(0));
    let shape = match (data.dims(), cx.ints(1)) {
        (None, _) => PartialShape::dynamic(),
        (Some(dims), Some(axes)) => {
            let reduced = reduced_axes(&axes, dims.len())?;
            let kept = dims.iter().zip(&reduced).filter(|(_, r)| keep_dims || !**r);
            PartialShape::new(kept.map(|(&d, &r)| if r { Dim::known(1) } else { d }))
        }
        (Some(dims), None) if keep_dims => PartialShape::any_of_rank(dims.len()),
        // Several axes may repeat one another, so only a single one says how many dimensions go.
        (Some(dims), None) if cx.shape(1).elements() == Some(1) => {
            PartialShape::any_of_rank(dims.len().saturating_sub(1))
        }
        _ => PartialShape::dynamic(),
    };
    cx.set(0, ty, shape);
    Ok(())
}

/// As [`infer`], and folds what is known of a partly known shape: the number of elements of a tensor, for one.
pub(crate) fn infer_dims(cx: &mut InferCx<'_>, keep_dims: bool, first: Dim, f: impl Fn(Dim, Dim) -> Dim) -> Result<()> {
    infer(cx, keep_dims)?;
    if !matches!(cx.fact(0).content, Content::Partial(_)) {
        return Ok(());
    }
    if let (Some(shape), Some(values), Some(axes)) = (cx.shape(0).to_static(), cx.dims_value(0), cx.ints(1)) {
        let plan = Plan::new(&shape, &axes)?;
        let mut out = vec![first; plan.len];
        for (&value, at) in values.iter().zip(offsets(&shape, &plan.steps)) {
            out[at] = f(out[at], value);
        }
        cx.set_dims_value(0, out);
    }
    Ok(())
}

/// Which axes are folded. A scalar has one axis to name, which changes nothing; repeated axes count once.
fn reduced_axes(axes: &[i64], rank: usize) -> Result<Vec<bool>> {
    let mut reduced = vec![false; rank];
    for &axis in axes {
        let axis = normalize_axis(axis, rank.max(1))?;
        if let Some(r) = reduced.get_mut(axis) {
            *r = true;
        }
    }
    Ok(reduced)
}

/// Where each element of the data goes in the output.
struct Plan {
    /// Steps in the output along the axes of the data, 0 for folded ones.
    steps: Vec<usize>,
    /// Elements of the output.
    len: usize,
    /// Elements of the data for each of the output.
    folded: usize,
}

impl Plan {
    fn new(shape: &[usize], axes: &[i64]) -> Result<Plan> {
        let reduced = reduced_axes(axes, shape.len())?;
        let kept: Vec<usize> = shape.iter().zip(&reduced).map(|(&n, &r)| if r { 1 } else { n }).collect();
        let steps = strides(&kept).into_iter().zip(&reduced).map(|(s, &r)| if r { 0 } else { s }).collect();
        let folded = shape.iter().zip(&reduced).filter(|(_, r)| **r).map(|(n, _)| n).product();
        Ok(Plan { steps, len: kept.iter().product(), folded })
    }
}

/// Folds with `f`, starting from `first`; also says how many elements are in each result.
fn fold<A: Copy>(
    cx: &EvalCx<'_>,
    values: impl Iterator<Item = A>,
    first: A,
    f: impl Fn(A, A) -> A,
) -> Result<(Vec<A>, usize)> {
    let plan = Plan::new(cx.shape(0), &cx.ints(1)?)?;
    let mut out = vec![first; plan.len];
    for (value, at) in values.zip(offsets(cx.shape(0), &plan.steps)) {
        out[at] = f(out[at], value);
    }
    Ok((out, plan.folded))
}

/// One step of a reduction on floats and on integers. Integers are folded without bounds and wrap when stored.
pub(crate) struct Step<F, I> {
    pub first: (f64, i128),
    pub float: F,
    pub int: I,
}

/// Evaluates a numeric reduction.
pub(crate) fn eval(
    cx: &mut EvalCx<'_>,
    step: Step<impl Fn(f64, f64) -> f64, impl Fn(i128, i128) -> i128>,
) -> Result<()> {
    eval_with(cx, step, |s, _| s, |s, _| s)
}

/// As [`eval`]; the last two make the result out of the folded value and the number of elements in it.
pub(crate) fn eval_with(
    cx: &mut EvalCx<'_>,
    step: Step<impl Fn(f64, f64) -> f64, impl Fn(i128, i128) -> i128>,
    finish: impl Fn(f64, usize) -> f64,
    finish_int: impl Fn(i128, usize) -> i128,
) -> Result<()> {
    let shape = cx.out_shape(0)?;
    if cx.ty(0).is_float() {
        let (sums, n) = fold(cx, cx.get::<f64>(0)?.iter().copied(), step.first.0, step.float)?;
        return cx.put(0, &shape, sums.into_iter().map(|s| finish(s, n)).collect::<Vec<f64>>());
    }
    let (sums, n) = match cx.ty(0) {
        ElementType::U64 => fold(cx, cx.get::<u64>(0)?.iter().map(|&x| i128::from(x)), step.first.1, step.int)?,
        _ => fold(cx, cx.get::<i64>(0)?.iter().map(|&x| i128::from(x)), step.first.1, step.int)?,
    };
    cx.put(0, &shape, sums.into_iter().map(|s| finish_int(s, n) as i64).collect::<Vec<i64>>())
}

/// Evaluates a boolean reduction.
pub(crate) fn eval_logical(cx: &mut EvalCx<'_>, first: bool, f: impl Fn(bool, bool) -> bool) -> Result<()> {
    let shape = cx.out_shape(0)?;
    let (out, _) = fold(cx, cx.get::<u8>(0)?.iter().map(|&x| x != 0), first, f)?;
    cx.put(0, &shape, out.into_iter().map(u8::from).collect::<Vec<u8>>())
}
