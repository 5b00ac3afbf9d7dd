//! Operators of two tensors, element by element. `Y` may have fewer axes: they then stand at `axis` of `X`, and from the end where
//! `axis` is -1.

use super::slots::Slots;
use super::unary::truncated;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result, Value};
use carafe_ops::arithmetic::{Add, Divide, FloorMod, Maximum, Minimum, Multiply, Power, Subtract};
use carafe_ops::compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use carafe_ops::logic::{BitwiseAnd, BitwiseOr, BitwiseXor, LogicalAnd, LogicalOr, LogicalXor};
use carafe_ops::math::{Atan, IsNaN};
use carafe_ops::reduce::ReduceLogicalAnd;
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("allclose", 0, all_close),
    rule("atan2", 0, atan2),
    rule("bitwise_and", 0, |n| bits(n, BitwiseAnd::default(), LogicalAnd::default())),
    rule("bitwise_or", 0, |n| bits(n, BitwiseOr::default(), LogicalOr::default())),
    rule("bitwise_xor", 0, |n| bits(n, BitwiseXor::default(), LogicalXor::default())),
    rule("elementwise_add", 0, |n| over_bool(n, Add::default(), LogicalOr::default())),
    rule("elementwise_div", 0, divide),
    rule("elementwise_fmax", 0, |n| ignoring_nan(n, Maximum::default())),
    rule("elementwise_fmin", 0, |n| ignoring_nan(n, Minimum::default())),
    rule("elementwise_floordiv", 0, |n| floor_divide(n, false)),
    rule("elementwise_floordiv", 2_005_000, |n| floor_divide(n, true)),
    rule("elementwise_max", 0, |n| both(n, Maximum::default())),
    rule("elementwise_min", 0, |n| both(n, Minimum::default())),
    rule("elementwise_mod", 0, |n| both(n, FloorMod::default())),
    rule("elementwise_mul", 0, |n| over_bool(n, Multiply::default(), LogicalAnd::default())),
    rule("elementwise_pow", 0, |n| both(n, Power::default())),
    rule("elementwise_sub", 0, |n| both(n, Subtract::default())),
    rule("equal", 0, |n| compared(n, Equal::default())),
    rule("equal_all", 0, equal_all),
    rule("greater_equal", 0, |n| compared(n, GreaterEqual::default())),
    rule("greater_than", 0, |n| compared(n, Greater::default())),
    rule("isclose", 0, is_close),
    rule("less_equal", 0, |n| compared(n, LessEqual::default())),
    rule("less_than", 0, |n| compared(n, Less::default())),
    rule("logical_and", 0, |n| logical(n, LogicalAnd::default())),
    rule("logical_or", 0, |n| logical(n, LogicalOr::default())),
    rule("logical_xor", 0, |n| logical(n, LogicalXor::default())),
    rule("not_equal", 0, |n| compared(n, NotEqual::default())),
];

/// Both operands with axes that meet as numpy's do.
pub(super) fn operands(n: &mut NodeCx<'_>) -> Result<(Value, Value)> {
    let (x, y) = (n.slot("X")?, n.slot("Y")?);
    let axis: i64 = n.attr("axis", -1)?;
    aligned(n, x, y, axis)
}

fn aligned(n: &mut NodeCx<'_>, x: Value, y: Value, axis: i64) -> Result<(Value, Value)> {
    let (Some(a), Some(b)) = (n.rank(x), n.rank(y)) else { return Ok((x, y)) };
    let (long, short) = (a.max(b), a.min(b));
    if axis == -1 || long == short || short == 0 {
        return Ok((x, y));
    }
    let Some(behind) = usize::try_from(axis).ok().and_then(|at| (long - short).checked_sub(at)) else {
        // Axes of size 1 at the end of the shorter operand do not count.
        return trailing_ones(n, x, y, axis, a > b);
    };
    if behind == 0 {
        return Ok((x, y));
    }
    let axes: Vec<i64> = (short as i64..(short + behind) as i64).collect();
    match a > b {
        true => Ok((x, n.unsqueeze(y, &axes)?)),
        false => Ok((n.unsqueeze(x, &axes)?, y)),
    }
}

fn trailing_ones(n: &mut NodeCx<'_>, x: Value, y: Value, axis: i64, x_is_long: bool) -> Result<(Value, Value)> {
    let short = if x_is_long { y } else { x };
    let rank = n.known_rank(short)?;
    if rank > 1 && n.shape(short).dim(rank - 1).get() == Some(1) {
        let short = n.squeeze(short, &[-1])?;
        return if x_is_long { aligned(n, x, short, axis) } else { aligned(n, short, y, axis) };
    }
    Err(n.fail(format!("`axis` is {axis}, where the shorter operand does not fit into the longer one")))
}

/// One operation over `X` and `Y`.
pub(super) fn both(n: &mut NodeCx<'_>, op: impl Op) -> Result<Outputs> {
    let (x, y) = operands(n)?;
    let out = n.emit(op, &[x, y])?;
    Ok(n.give(&[("Out", out)]))
}

fn over_bool(n: &mut NodeCx<'_>, op: impl Op, on_bool: impl Op) -> Result<Outputs> {
    let (x, y) = operands(n)?;
    let out = match n.ty(x) {
        ElementType::Boolean => n.emit(on_bool, &[x, y])?,
        _ => n.emit(op, &[x, y])?,
    };
    Ok(n.give(&[("Out", out)]))
}

fn bits(n: &mut NodeCx<'_>, op: impl Op, on_bool: impl Op) -> Result<Outputs> {
    over_bool(n, op, on_bool)
}

fn compared(n: &mut NodeCx<'_>, op: impl Op) -> Result<Outputs> {
    n.ignore(&["force_cpu"]);
    both(n, op)
}

fn logical(n: &mut NodeCx<'_>, op: impl Op) -> Result<Outputs> {
    let (x, y) = operands(n)?;
    let (x, y) = (n.convert(x, ElementType::Boolean)?, n.convert(y, ElementType::Boolean)?);
    let out = n.emit(op, &[x, y])?;
    Ok(n.give(&[("Out", out)]))
}

// Whole numbers are divided toward zero.
fn divide(n: &mut NodeCx<'_>) -> Result<Outputs> {
    both(n, Divide { m_pythondiv: false, ..Divide::default() })
}

// Before 2.5 it cut the fraction off.
fn floor_divide(n: &mut NodeCx<'_>, is_down: bool) -> Result<Outputs> {
    let (x, y) = operands(n)?;
    let out = n.put(Divide { m_pythondiv: is_down, ..Divide::default() }, &[x, y])?;
    let out = match (n.ty(out).is_float(), is_down) {
        (false, _) => out,
        (true, true) => n.floor(out)?,
        (true, false) => truncated(n, out)?,
    };
    Ok(n.give(&[("Out", out)]))
}

// Of a number and NaN the number.
fn ignoring_nan(n: &mut NodeCx<'_>, op: impl Op) -> Result<Outputs> {
    let (x, y) = operands(n)?;
    let mut out = n.put(op, &[x, y])?;
    if n.ty(x).is_float() {
        let (x_is, y_is) = (n.put(IsNaN, &[x])?, n.put(IsNaN, &[y])?);
        out = n.choose(x_is, y, out)?;
        out = n.choose(y_is, x, out)?;
    }
    Ok(n.give(&[("Out", out)]))
}

fn equal_all(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, y) = operands(n)?;
    let same = n.equal(x, y)?;
    let out = all_of(n, same)?;
    Ok(n.give(&[("Out", out)]))
}

fn all_of(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let flat = n.reshape(x, &[-1])?;
    let axes = n.i64s(&[0])?;
    n.put(ReduceLogicalAnd { keep_dims: false }, &[flat, axes])
}

// |x - y| <= atol + rtol * |y|.
fn closeness(n: &mut NodeCx<'_>) -> Result<Value> {
    let (x, y) = (n.slot("Input")?, n.slot("Other")?);
    let parse = |n: &NodeCx<'_>, name: &str, default: f64| match n.attr_value(name) {
        Some(carafe_graph::AttrValue::Str(text)) => {
            text.parse().map_err(|_| n.fail(format!("`{name}` must be a number, found `{text}`")))
        }
        _ => n.attr(name, default),
    };
    let (rtol, atol) = (parse(n, "rtol", 1e-5)?, parse(n, "atol", 1e-8)?);
    let is_nan_equal: bool = n.attr("equal_nan", false)?;
    let (rtol, atol) = (n.number_of("rtol", &["Rtol"], rtol, x)?, n.number_of("atol", &["Atol"], atol, x)?);
    let difference = n.minus(x, y)?;
    let difference = n.abs(difference)?;
    let size = n.abs(y)?;
    let allowed = n.times(rtol, size)?;
    let allowed = n.plus(allowed, atol)?;
    let mut is_close = n.less_equal(difference, allowed)?;
    // Equal infinities are close though their difference is none.
    let same = n.equal(x, y)?;
    is_close = n.or(is_close, same)?;
    if is_nan_equal {
        let (a, b) = (n.put(IsNaN, &[x])?, n.put(IsNaN, &[y])?);
        let nan = n.and(a, b)?;
        is_close = n.or(is_close, nan)?;
    }
    Ok(is_close)
}

fn is_close(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let out = closeness(n)?;
    Ok(n.give(&[("Out", out)]))
}

fn all_close(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let close = closeness(n)?;
    let out = all_of(n, close)?;
    Ok(n.give(&[("Out", out)]))
}

// The angle of the point (y, x), from -pi to pi.
fn atan2(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (y, x) = (n.slot("X1")?, n.slot("X2")?);
    let out = angle(n, y, x)?;
    Ok(n.give(&[("Out", out)]))
}

/// The angle of the point (y, x), from -pi to pi.
pub(super) fn angle(n: &mut NodeCx<'_>, y: Value, x: Value) -> Result<Value> {
    let ratio = n.over(y, x)?;
    let base = n.put(Atan, &[ratio])?;
    let zero = n.number(x, 0.0)?;
    let pi = n.number(x, std::f64::consts::PI)?;
    let (x_is_negative, y_is_negative) = (n.less(x, zero)?, n.less(y, zero)?);
    let (up, down) = (n.plus(base, pi)?, n.minus(base, pi)?);
    let left = n.choose(y_is_negative, down, up)?;
    let found = n.choose(x_is_negative, left, base)?;
    // 0 / 0 is no number, and the angle of the origin is 0.
    let (x_is_zero, y_is_zero) = (n.equal(x, zero)?, n.equal(y, zero)?);
    let is_origin = n.and(x_is_zero, y_is_zero)?;
    n.choose(is_origin, zero, found)
}
