//! Sums, means and their like over axes.

use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::compare::NotEqual;
use carafe_ops::math::{Exp, Log};
use carafe_ops::normalization::NormalizeL2;
use carafe_ops::normalization::normalize_l2::EpsMode;
use carafe_ops::reduce::{
    ReduceL1, ReduceL2, ReduceLogicalAnd, ReduceLogicalOr, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum,
};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("frobenius_norm", 0, |n| reduced(n, |n, x, axes, keep_dims| n.put(ReduceL2 { keep_dims }, &[x, axes]))),
    rule("logsumexp", 0, log_sum_exp),
    rule("mean", 0, |n| over_all(n, |n, x, axes| n.put(ReduceMean { keep_dims: false }, &[x, axes]))),
    rule("norm", 0, norm),
    rule("p_norm", 0, p_norm),
    rule("reduce_all", 0, |n| of_bools(n, |n, x, axes, keep_dims| n.put(ReduceLogicalAnd { keep_dims }, &[x, axes]))),
    rule("reduce_amax", 0, |n| reduced(n, |n, x, axes, keep_dims| n.put(ReduceMax { keep_dims }, &[x, axes]))),
    rule("reduce_amin", 0, |n| reduced(n, |n, x, axes, keep_dims| n.put(ReduceMin { keep_dims }, &[x, axes]))),
    rule("reduce_any", 0, |n| of_bools(n, |n, x, axes, keep_dims| n.put(ReduceLogicalOr { keep_dims }, &[x, axes]))),
    rule("reduce_max", 0, |n| reduced(n, |n, x, axes, keep_dims| n.put(ReduceMax { keep_dims }, &[x, axes]))),
    rule("reduce_mean", 0, |n| reduced(n, |n, x, axes, keep_dims| n.put(ReduceMean { keep_dims }, &[x, axes]))),
    rule("reduce_min", 0, |n| reduced(n, |n, x, axes, keep_dims| n.put(ReduceMin { keep_dims }, &[x, axes]))),
    rule("reduce_prod", 0, |n| reduced(n, |n, x, axes, keep_dims| n.put(ReduceProd { keep_dims }, &[x, axes]))),
    rule("reduce_sum", 0, |n| reduced(n, |n, x, axes, keep_dims| n.put(ReduceSum { keep_dims }, &[x, axes]))),
    rule("squared_l2_norm", 0, |n| {
        over_all(n, |n, x, axes| {
            let y = n.times(x, x)?;
            let y = n.put(ReduceSum { keep_dims: false }, &[y, axes])?;
            n.reshape(y, &[1])
        })
    }),
];

type Reduce = fn(&mut NodeCx<'_>, Value, Value, bool) -> Result<Value>;

/// All axes of a value.
pub(super) fn all_axes(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    match n.rank(x) {
        Some(rank) => n.i64s(&(0..rank as i64).collect::<Vec<_>>()),
        None => {
            let shape = n.shape_of(x)?;
            let rank = n.length(shape, 0)?;
            n.count_to(rank, ElementType::I64)
        }
    }
}

// Axes of `dim`; all of them where the list is empty or `reduce_all` says so.
fn axes(n: &mut NodeCx<'_>, x: Value, attribute: &str, default: &[i64]) -> Result<Value> {
    let found = n.vector(attribute, &[])?;
    let is_all: bool = n.attr("reduce_all", false)?;
    let found = match found {
        Some(v) => v,
        None => n.i64s(default)?,
    };
    if is_all || n.ints(found).is_some_and(|list| list.is_empty()) {
        return all_axes(n, x);
    }
    Ok(found)
}

fn keeps(n: &NodeCx<'_>) -> Result<bool> {
    match n.opt_attr("keep_dim")? {
        Some(keep) => Ok(keep),
        None => n.attr("keepdim", false),
    }
}

fn reduced(n: &mut NodeCx<'_>, f: Reduce) -> Result<Outputs> {
    let mut x = n.slot("X")?;
    n.ignore(&["in_dtype"]);
    // Sums of small types and of bools are made in a wider one.
    let wider = match (n.dtype("out_dtype")?, n.op_type()) {
        (Some(ty), _) => Some(ty),
        (None, "reduce_sum") if matches!(n.ty(x), ElementType::Boolean | ElementType::I32) => Some(ElementType::I64),
        _ => None,
    };
    if let Some(ty) = wider {
        x = n.convert(x, ty)?;
    }
    let default: &[i64] = if n.op_type() == "frobenius_norm" { &[] } else { &[0] };
    let attribute = if n.op_type() == "frobenius_norm" && n.attr_value("axis").is_some() { "axis" } else { "dim" };
    let axes = axes(n, x, attribute, default)?;
    let keep_dims = keeps(n)?;
    let y = match n.rank(x) {
        Some(0) => x,
        _ => f(n, x, axes, keep_dims)?,
    };
    Ok(n.give(&[("Out", y)]))
}

fn of_bools(n: &mut NodeCx<'_>, f: Reduce) -> Result<Outputs> {
    let x = n.slot("X")?;
    n.ignore(&["in_dtype", "out_dtype"]);
    let axes = axes(n, x, "dim", &[0])?;
    let keep_dims = keeps(n)?;
    let x = match n.ty(x) {
        ElementType::Boolean => x,
        _ => {
            let zero = n.number(x, 0.0)?;
            n.put(NotEqual::default(), &[x, zero])?
        }
    };
    let y = match n.rank(x) {
        Some(0) => x,
        _ => f(n, x, axes, keep_dims)?,
    };
    Ok(n.give(&[("Out", y)]))
}

fn over_all(n: &mut NodeCx<'_>, f: impl FnOnce(&mut NodeCx<'_>, Value, Value) -> Result<Value>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axes = all_axes(n, x)?;
    let y = f(n, x, axes)?;
    Ok(n.give(&[("Out", y)]))
}

fn log_sum_exp(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let attribute = if n.attr_value("axis").is_some() || n.has_slot("axis") { "axis" } else { "dim" };
    let axes = axes(n, x, attribute, &[0])?;
    let keep_dims = keeps(n)?;
    // The largest goes out of the exponents, so that they do not overflow.
    let largest = n.put(ReduceMax { keep_dims: true }, &[x, axes])?;
    let y = n.minus(x, largest)?;
    let y = n.put(Exp, &[y])?;
    let y = n.put(ReduceSum { keep_dims: true }, &[y, axes])?;
    let y = n.put(Log, &[y])?;
    let mut y = n.plus(y, largest)?;
    if !keep_dims {
        y = n.put(carafe_ops::movement::Squeeze { allow_axis_skip: false }, &[y, axes])?;
    }
    Ok(n.give(&[("Out", y)]))
}

// x / sqrt(sum of squares + epsilon) along an axis.
fn norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axis: i64 = n.attr("axis", -1)?;
    let eps: f32 = n.attr("epsilon", 1e-10)?;
    let rank = n.known_rank(x)?;
    let axis = n.axis(axis, rank)? as i64;
    let axes = n.i64s(&[axis])?;
    let out = n.put(NormalizeL2 { eps, eps_mode: EpsMode::Add }, &[x, axes])?;
    let mut named = vec![("Out", out)];
    if n.wants("Norm") {
        let y = n.times(x, x)?;
        let y = n.put(ReduceSum { keep_dims: true }, &[y, axes])?;
        let y = n.plus_number(y, f64::from(eps))?;
        named.push(("Norm", n.sqrt(y)?));
    }
    Ok(n.give(&named))
}

// The p-th root of the sum of |x| to the p; of 0 the count of what is not 0, of infinity the largest.
fn p_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut x = n.slot("X")?;
    let p: f64 = n.attr("porder", 2.0)?;
    let axis: i64 = n.attr("axis", -1)?;
    let keep_dims: bool = n.attr("keepdim", false)?;
    n.ignore(&["epsilon"]);
    let is_vector: bool = n.attr("asvector", false)?;
    if is_vector {
        x = n.reshape(x, &[-1])?;
    }
    let axes = n.i64s(&[if is_vector { 0 } else { axis }])?;
    let y = if p == 1.0 {
        n.put(ReduceL1 { keep_dims }, &[x, axes])?
    } else if p == 2.0 {
        n.put(ReduceL2 { keep_dims }, &[x, axes])?
    } else if p == 0.0 {
        let zero = n.number(x, 0.0)?;
        let counted = n.put(NotEqual::default(), &[x, zero])?;
        let counted = n.convert_like(counted, x)?;
        n.put(ReduceSum { keep_dims }, &[counted, axes])?
    } else {
        let size = n.abs(x)?;
        if p == f64::INFINITY {
            n.put(ReduceMax { keep_dims }, &[size, axes])?
        } else if p == f64::NEG_INFINITY {
            n.put(ReduceMin { keep_dims }, &[size, axes])?
        } else {
            let y = n.power_number(size, p)?;
            let y = n.put(ReduceSum { keep_dims }, &[y, axes])?;
            n.power_number(y, 1.0 / p)?
        }
    };
    Ok(n.give(&[("Out", y)]))
}
