//! Reductions. Without an axis all of them are reduced, and the old operators then give one element in one axis, those of
//! mxnet.numpy a scalar.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result, Value};
use carafe_ops::math::IsNaN;
use carafe_ops::reduce::{
    ReduceL1, ReduceL2, ReduceLogicalAnd, ReduceLogicalOr, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum,
};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("_np_all", 0, |n| logical(n, true)),
    rule("_np_any", 0, |n| logical(n, false)),
    rule("_np_max", 0, |n| numpy(n, |n, x, axes, keep_dims| n.emit(ReduceMax { keep_dims }, &[x, axes]))),
    rule("_np_min", 0, |n| numpy(n, |n, x, axes, keep_dims| n.emit(ReduceMin { keep_dims }, &[x, axes]))),
    rule("_np_prod", 0, |n| numpy(n, |n, x, axes, keep_dims| n.emit(ReduceProd { keep_dims }, &[x, axes]))),
    rule("_np_sum", 0, |n| numpy(n, |n, x, axes, keep_dims| n.emit(ReduceSum { keep_dims }, &[x, axes]))),
    rule("_npi_mean", 0, |n| numpy(n, mean)),
    rule("_npi_std", 0, |n| variance(n, true)),
    rule("_npi_var", 0, |n| variance(n, false)),
    rule("_square_sum", 0, |n| {
        let x = n.input(0)?;
        let square = n.times(x, x)?;
        reduced(n, square, |keep_dims| ReduceSum { keep_dims })
    }),
    rule("max", 0, |n| old(n, |keep_dims| ReduceMax { keep_dims })),
    rule("mean", 0, |n| old(n, |keep_dims| ReduceMean { keep_dims })),
    rule("min", 0, |n| old(n, |keep_dims| ReduceMin { keep_dims })),
    rule("nanprod", 0, |n| {
        let x = without_nan(n, 1.0)?;
        reduced(n, x, |keep_dims| ReduceProd { keep_dims })
    }),
    rule("nansum", 0, |n| {
        let x = without_nan(n, 0.0)?;
        reduced(n, x, |keep_dims| ReduceSum { keep_dims })
    }),
    rule("norm", 0, norm),
    rule("prod", 0, |n| old(n, |keep_dims| ReduceProd { keep_dims })),
    rule("sum", 0, |n| old(n, |keep_dims| ReduceSum { keep_dims })),
];

fn old<O: Op>(n: &mut NodeCx<'_>, op: fn(bool) -> O) -> Result<Outputs> {
    let x = n.input(0)?;
    reduced(n, x, op)
}

// The axes of the node; `true` where those are all.
fn axes(n: &mut NodeCx<'_>, x: Value) -> Result<(Vec<i64>, bool)> {
    let given = n.opt_ints("axis")?.unwrap_or_default();
    let excludes = n.flag("exclude", false)?;
    if given.is_empty() && !excludes {
        return Ok(((0..n.known_rank(x)? as i64).collect(), true));
    }
    if !excludes {
        let all = n.rank(x).is_some_and(|r| r == given.len());
        return Ok((given, all));
    }
    let rank = n.known_rank(x)?;
    let given = given.iter().map(|a| n.axis(*a, rank)).collect::<Result<Vec<_>>>()?;
    let rest: Vec<i64> = (0..rank).filter(|a| !given.contains(a)).map(|a| a as i64).collect();
    let all = rest.len() == rank;
    Ok((rest, all))
}

fn reduced<O: Op>(n: &mut NodeCx<'_>, x: Value, op: fn(bool) -> O) -> Result<Outputs> {
    let (axes, all) = axes(n, x)?;
    let keeps = n.flag("keepdims", false)?;
    let axes = n.i64s(&axes)?;
    let y = n.emit(op(keeps), &[x, axes])?;
    Ok(if all && !keeps { n.reshape(y, &[1])? } else { y }.into())
}

fn without_nan(n: &mut NodeCx<'_>, instead: f64) -> Result<Value> {
    let x = n.input(0)?;
    let is_nan = n.emit(IsNaN, &[x])?;
    let instead = n.scalar_like(x, instead)?;
    n.choose(is_nan, instead, x)
}

fn norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let x = match n.dtype("out_dtype")? {
        Some(ty) => n.convert(x, ty)?,
        None => x,
    };
    match n.int("ord", 2)? {
        1 => reduced(n, x, |keep_dims| ReduceL1 { keep_dims }),
        2 => reduced(n, x, |keep_dims| ReduceL2 { keep_dims }),
        other => Err(n.unknown_word("ord", &other.to_string(), "1, 2")),
    }
}

type Reduce = fn(&mut NodeCx<'_>, Value, Value, bool) -> Result<Value>;

fn mean(n: &mut NodeCx<'_>, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    // The mean of whole numbers is a float.
    let x = if n.ty(x).is_float() { x } else { n.convert(x, ElementType::F32)? };
    n.emit(ReduceMean { keep_dims }, &[x, axes])
}

fn numpy(n: &mut NodeCx<'_>, reduce: Reduce) -> Result<Outputs> {
    if n.opt_float("initial")?.is_some() {
        return Err(n.unsupported("attribute `initial` is set; it must be None"));
    }
    let x = n.input(0)?;
    let x = match n.dtype("dtype")? {
        Some(ty) => n.convert(x, ty)?,
        None => x,
    };
    let (axes, _) = axes(n, x)?;
    let keeps = n.flag("keepdims", false)?;
    let axes = n.i64s(&axes)?;
    Ok(reduce(n, x, axes, keeps)?.into())
}

fn logical(n: &mut NodeCx<'_>, all: bool) -> Result<Outputs> {
    let x = n.input(0)?;
    let (axes, _) = axes(n, x)?;
    let keep_dims = n.flag("keepdims", false)?;
    let x = n.as_condition(x)?;
    let axes = n.i64s(&axes)?;
    let y = match all {
        true => n.emit(ReduceLogicalAnd { keep_dims }, &[x, axes])?,
        false => n.emit(ReduceLogicalOr { keep_dims }, &[x, axes])?,
    };
    Ok(y.into())
}

// Divided by the number of elements less `ddof`.
fn variance(n: &mut NodeCx<'_>, takes_root: bool) -> Result<Outputs> {
    let x = n.input(0)?;
    let x = match n.dtype("dtype")? {
        Some(ty) => n.convert(x, ty)?,
        None if n.ty(x).is_float() => x,
        None => n.convert(x, ElementType::F32)?,
    };
    let ddof = n.int("ddof", 0)?;
    let keeps = n.flag("keepdims", false)?;
    let (axes, _) = axes(n, x)?;
    let mean = n.mean_over(x, &axes, true)?;
    let difference = n.minus(x, mean)?;
    let square = n.times(difference, difference)?;
    let sum = n.sum_over(square, &axes, keeps)?;
    let count = n.product_of_dims(x, &axes)?;
    let count = n.reshape(count, &[])?;
    let count = n.convert_like(count, x)?;
    let count = n.plus_number(count, -(ddof as f64))?;
    let y = n.over(sum, count)?;
    Ok(if takes_root { n.sqrt(y)? } else { y }.into())
}
