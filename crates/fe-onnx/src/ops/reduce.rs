//! Reductions and what runs along an axis. The axes moved from an attribute to an input at version 18, of ReduceSum at 13.
//! No axes mean all of them, unless `noop_with_empty_axes` says none.

use super::shapes::{all_axes, count_to, dim, rank, scalar};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result, Value};
use carafe_ops::arithmetic::{Add, FloorMod, Multiply, Subtract};
use carafe_ops::compare::{Equal, GreaterEqual, Less, LessEqual, Greater};
use carafe_ops::indexing::{Reduction, ScatterElementsUpdate, Select};
use carafe_ops::math::{Abs, Exp, Log};
use carafe_ops::movement::{Broadcast, Slice, Transpose, broadcast::BroadcastMode};
use carafe_ops::reduce::{
    ReduceL1, ReduceL2, ReduceLogicalAnd, ReduceLogicalOr, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum,
};
use carafe_ops::search::{
    CumSum, TopK,
    topk::{TopKMode, TopKSort},
};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("ArgMax", 1, |n| arg(n, TopKMode::Max)),
    rule("ArgMin", 1, |n| arg(n, TopKMode::Min)),
    rule("CumProd", 26, cum_prod),
    rule("CumSum", 11, cum_sum),
    rule("ReduceL1", 1, |n| reduce(n, Axes::Attribute, l1)),
    rule("ReduceL1", 18, |n| reduce(n, Axes::Input, l1)),
    rule("ReduceL2", 1, |n| reduce(n, Axes::Attribute, l2)),
    rule("ReduceL2", 18, |n| reduce(n, Axes::Input, l2)),
    rule("ReduceLogSum", 1, |n| reduce(n, Axes::Attribute, log_sum)),
    rule("ReduceLogSum", 18, |n| reduce(n, Axes::Input, log_sum)),
    rule("ReduceLogSumExp", 1, |n| reduce(n, Axes::Attribute, log_sum_exp)),
    rule("ReduceLogSumExp", 18, |n| reduce(n, Axes::Input, log_sum_exp)),
    rule("ReduceMax", 1, |n| reduce(n, Axes::Attribute, max)),
    rule("ReduceMax", 18, |n| reduce(n, Axes::Input, max)),
    rule("ReduceMean", 1, |n| reduce(n, Axes::Attribute, mean)),
    rule("ReduceMean", 18, |n| reduce(n, Axes::Input, mean)),
    rule("ReduceMin", 1, |n| reduce(n, Axes::Attribute, min)),
    rule("ReduceMin", 18, |n| reduce(n, Axes::Input, min)),
    rule("ReduceProd", 1, |n| reduce(n, Axes::Attribute, prod)),
    rule("ReduceProd", 18, |n| reduce(n, Axes::Input, prod)),
    rule("ReduceSum", 1, |n| reduce(n, Axes::Attribute, sum)),
    rule("ReduceSum", 13, |n| reduce(n, Axes::Input, sum)),
    rule("ReduceSumSquare", 1, |n| reduce(n, Axes::Attribute, sum_square)),
    rule("ReduceSumSquare", 18, |n| reduce(n, Axes::Input, sum_square)),
];

enum Axes {
    Attribute,
    Input,
}

/// Data, axes, whether folded axes stay.
type Fold = fn(&mut NodeCx<'_>, Value, Value, bool) -> Result<Value>;

fn reduce(n: &mut NodeCx<'_>, from: Axes, fold: Fold) -> Result<Outputs> {
    let keep: bool = n.attr("keepdims", true)?;
    let x = n.input(0)?;
    check_type(n, x)?;
    let axes = match from {
        Axes::Attribute => match n.opt_attr::<Vec<i64>>("axes")?.filter(|a| !a.is_empty()) {
            Some(axes) => n.i64s(&axes)?,
            None => all_axes(n, x)?,
        },
        Axes::Input => {
            let noop: bool = n.attr("noop_with_empty_axes", false)?;
            axes_input(n, x, noop)?
        }
    };
    Ok(fold(n, x, axes, keep)?.into())
}

// What our reductions take and ONNX does not, its readers refuse.
fn check_type(n: &NodeCx<'_>, x: Value) -> Result<()> {
    let of_extremes = matches!(n.op_type(), "ReduceMax" | "ReduceMin");
    let first = match n.ty(x) {
        ElementType::I8 | ElementType::U8 if of_extremes => 12,
        ElementType::Boolean if of_extremes => 20,
        ElementType::Bf16 => 13,
        // From 18 on OpenVINO takes small integers everywhere.
        ElementType::I8 | ElementType::U8 | ElementType::I16 | ElementType::U16 => 18,
        ElementType::Boolean => i64::MAX,
        _ => 1,
    };
    if n.version() >= first {
        return Ok(());
    }
    let when = if first == i64::MAX { String::new() } else { format!(" before opset {first}") };
    Err(n.fail(format!("{} does not take {}{when}", n.op_type(), n.ty(x))))
}

fn axes_input(n: &mut NodeCx<'_>, x: Value, noop: bool) -> Result<Value> {
    let Some(axes) = n.opt(1)? else { return if noop { n.i64s(&[]) } else { all_axes(n, x) } };
    let count = if n.rank(axes) == Some(1) { n.shape(axes).dim(0) } else { carafe_tensor::Dim::known(1) };
    match count.get() {
        Some(0) => if noop { n.i64s(&[]) } else { all_axes(n, x) },
        None if !noop && n.rank(axes) == Some(1) => {
            // Axes may repeat: all of them follow exactly when there are none.
            let axes = n.convert(axes, ElementType::I64)?;
            let (given, zero) = (n.shape_of(axes)?, n.i64s(&[0])?);
            let empty = n.emit(Equal::default(), &[given, zero])?;
            let empty = n.convert(empty, ElementType::I64)?;
            let rank = rank(n, x)?;
            let more = n.emit(Multiply::default(), &[empty, rank])?;
            let more = scalar(n, more)?;
            let more = count_to(n, more)?;
            n.concat(&[axes, more], 0)
        }
        _ => Ok(axes),
    }
}

// A file cannot hold the constant of no axes.
fn over_none(n: &NodeCx<'_>, axes: Value) -> bool {
    n.ints(axes).is_some_and(|a| a.is_empty())
}

fn l1(n: &mut NodeCx<'_>, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    if over_none(n, axes) {
        return n.emit(Abs, &[x]);
    }
    n.emit(ReduceL1 { keep_dims }, &[x, axes])
}
fn l2(n: &mut NodeCx<'_>, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    if over_none(n, axes) {
        return n.emit(Abs, &[x]);
    }
    n.emit(ReduceL2 { keep_dims }, &[x, axes])
}
fn mean(n: &mut NodeCx<'_>, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    if over_none(n, axes) {
        return Ok(x);
    }
    n.emit(ReduceMean { keep_dims }, &[x, axes])
}
fn prod(n: &mut NodeCx<'_>, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    if over_none(n, axes) {
        return Ok(x);
    }
    n.emit(ReduceProd { keep_dims }, &[x, axes])
}
fn sum(n: &mut NodeCx<'_>, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    if over_none(n, axes) {
        return Ok(x);
    }
    n.emit(ReduceSum { keep_dims }, &[x, axes])
}
fn sum_square(n: &mut NodeCx<'_>, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    let square = n.emit(Multiply::default(), &[x, x])?;
    sum(n, square, axes, keep_dims)
}
fn log_sum(n: &mut NodeCx<'_>, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    let y = sum(n, x, axes, keep_dims)?;
    n.emit(Log, &[y])
}
fn max(n: &mut NodeCx<'_>, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    if over_none(n, axes) {
        return Ok(x);
    }
    match n.ty(x) {
        ElementType::Boolean if n.ints(axes).is_some() => n.emit(ReduceLogicalOr { keep_dims }, &[x, axes]),
        ElementType::Boolean => as_bytes(n, ReduceMax { keep_dims }, x, axes),
        _ => extreme(n, ReduceMax { keep_dims }, x, axes, f64::NEG_INFINITY),
    }
}
fn min(n: &mut NodeCx<'_>, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    if over_none(n, axes) {
        return Ok(x);
    }
    match n.ty(x) {
        ElementType::Boolean if n.ints(axes).is_some() => n.emit(ReduceLogicalAnd { keep_dims }, &[x, axes]),
        ElementType::Boolean => as_bytes(n, ReduceMin { keep_dims }, x, axes),
        _ => extreme(n, ReduceMin { keep_dims }, x, axes, f64::INFINITY),
    }
}

// OpenVINO wants the axes of logical reductions fixed, those of others may come while it runs.
fn as_bytes<O: Op>(n: &mut NodeCx<'_>, op: O, x: Value, axes: Value) -> Result<Value> {
    let bytes = n.convert(x, ElementType::U8)?;
    let y = n.emit(op, &[bytes, axes])?;
    n.convert(y, ElementType::Boolean)
}

// Of no floats at all the extreme is infinite; our operation gives the last finite one.
fn extreme<O: Op>(n: &mut NodeCx<'_>, op: O, x: Value, axes: Value, of_none: f64) -> Result<Value> {
    let y = n.emit(op, &[x, axes])?;
    let none = n.shape(x).dims().is_some_and(|dims| dims.iter().any(|d| d.get() == Some(0)));
    if !none || !n.ty(x).is_float() || n.shape(y).elements() == Some(0) {
        return Ok(y);
    }
    let (value, shape) = (n.scalar_like(x, of_none)?, n.shape_of(y)?);
    n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[value, shape])
}

// The largest is taken out before the exponential and put back behind the logarithm, so that nothing overflows.
fn log_sum_exp(n: &mut NodeCx<'_>, x: Value, axes: Value, keep: bool) -> Result<Value> {
    if over_none(n, axes) {
        return Ok(x);
    }
    let most = n.emit(ReduceMax { keep_dims: true }, &[x, axes])?;
    let low = n.emit(Subtract::default(), &[x, most])?;
    let powers = n.emit(Exp, &[low])?;
    let total = n.emit(ReduceSum { keep_dims: keep }, &[powers, axes])?;
    let log = n.emit(Log, &[total])?;
    let most = if keep { most } else { n.emit(ReduceMax { keep_dims: false }, &[most, axes])? };
    n.emit(Add::default(), &[log, most])
}

fn arg(n: &mut NodeCx<'_>, mode: TopKMode) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", 0)?;
    let keep: bool = n.attr("keepdims", true)?;
    let last: bool = n.attr("select_last_index", false)?;
    let x = n.input(0)?;
    // The last of equal ones is the first of the data read backwards.
    let data = if last {
        let (start, stop, step, axes) = (n.i64s(&[-1])?, n.i64s(&[i64::MIN])?, n.i64s(&[-1])?, n.i64s(&[axis])?);
        n.emit(Slice, &[x, start, stop, step, axes])?
    } else {
        x
    };
    let op = TopK { axis, mode, sort: TopKSort::Value, index_element_type: ElementType::I64, stable: true };
    let one = n.i64(1)?;
    let outputs = n.emit_all(op, &[data, one])?;
    let Some(&(mut at)) = outputs.get(1) else { return Err(n.fail("TopK has no indices")) };
    if last {
        let (size, one) = (dim(n, x, axis)?, n.i64(1)?);
        let end = n.emit(Subtract::default(), &[size, one])?;
        at = n.emit(Subtract::default(), &[end, at])?;
    }
    Ok(if keep { at } else { n.squeeze(at, &[axis])? }.into())
}

fn cum_sum(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (exclusive, reverse) = (n.attr("exclusive", false)?, n.attr("reverse", false)?);
    let x = n.input(0)?;
    let axis = match n.opt(1)? {
        Some(axis) => scalar(n, axis)?,
        None => {
            n.warn("CumSum has no axis, it runs along the first one");
            n.i64(0)?
        }
    };
    Ok(n.emit(CumSum { exclusive, reverse }, &[x, axis])?.into())
}

// The axis changes places with the last one; then each element becomes the product over a new axis of everything that
// counts for it, the rest taken as 1.
fn cum_prod(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (exclusive, reverse): (bool, bool) = (n.attr("exclusive", false)?, n.attr("reverse", false)?);
    let (x, axis) = (n.input(0)?, n.input(1)?);
    let rank = n.known_rank(x)? as i64;
    if rank == 0 {
        return Err(n.fail("data must not be a scalar"));
    }
    let axis = n.convert(axis, ElementType::I64)?;
    let axis = n.reshape(axis, &[1])?;
    let (ranks, last, first) = (n.i64s(&[rank])?, n.i64s(&[rank - 1])?, n.i64(0)?);
    let axis = n.emit(FloorMod::default(), &[axis, ranks])?;
    let (positions, axes) = (n.concat(&[axis, last], 0)?, n.concat(&[last, axis], 0)?);
    let straight = all_axes(n, x)?;
    let swap = ScatterElementsUpdate { reduction: Reduction::None, use_init_val: true };
    let order = n.emit(swap, &[straight, positions, axes, first])?;
    let x = n.emit(Transpose, &[x, order])?;

    let size = dim(n, x, -1)?;
    let from = count_to(n, size)?;
    let to = n.unsqueeze(from, &[1])?;
    let counts = match (exclusive, reverse) {
        (false, false) => n.emit(LessEqual::default(), &[from, to])?,
        (true, false) => n.emit(Less::default(), &[from, to])?,
        (false, true) => n.emit(GreaterEqual::default(), &[from, to])?,
        (true, true) => n.emit(Greater::default(), &[from, to])?,
    };
    let (factors, one) = (n.unsqueeze(x, &[-2])?, n.scalar_like(x, 1.0)?);
    let op = Select { auto_broadcast: Default::default(), auto_broadcast_axis: None };
    let factors = n.emit(op, &[counts, factors, one])?;
    let over = n.i64(-1)?;
    let y = n.emit(ReduceProd { keep_dims: false }, &[factors, over])?;
    Ok(n.emit(Transpose, &[y, order])?.into())
}
