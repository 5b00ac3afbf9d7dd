//! Operations of two values, or of many, that meet by broadcasting.

use super::fused::activated;
use super::shapes::DECLARED;
use carafe_fe_tensorflow::ops::common::division;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result, Value};
use carafe_ops::arithmetic::{Add, Maximum, Minimum, Multiply, Power, SquaredDifference, Subtract};
use carafe_ops::compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use carafe_ops::logic::{
    BitwiseAnd, BitwiseLeftShift, BitwiseOr, BitwiseRightShift, BitwiseXor, LogicalAnd, LogicalOr,
};
use carafe_ops::math::Atan;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("ADD", 1, |n| fused(n, Add::default())),
    rule("ADD_N", 1, add_n),
    rule("ATAN2", 1, |n| {
        let (y, x) = (n.input(0)?, n.input(1)?);
        Ok(angle(n, y, x)?.into())
    }),
    rule("BITWISE_XOR", 1, |n| binary(n, BitwiseXor::default())),
    rule("DIV", 1, |n| {
        let (a, b) = (n.input(0)?, n.input(1)?);
        let y = division::divide(n, a, b)?;
        Ok(activated(n, y)?.into())
    }),
    rule("EQUAL", 1, |n| binary(n, Equal::default())),
    rule("FLOOR_DIV", 1, |n| {
        let (a, b) = (n.input(0)?, n.input(1)?);
        Ok(division::floor_div(n, a, b)?.into())
    }),
    rule("FLOOR_MOD", 1, |n| {
        let (a, b) = (n.input(0)?, n.input(1)?);
        Ok(division::floor_mod(n, a, b)?.into())
    }),
    rule("GREATER", 1, |n| binary(n, Greater::default())),
    rule("GREATER_EQUAL", 1, |n| binary(n, GreaterEqual::default())),
    rule("LESS", 1, |n| binary(n, Less::default())),
    rule("LESS_EQUAL", 1, |n| binary(n, LessEqual::default())),
    rule("LOGICAL_AND", 1, |n| binary(n, LogicalAnd::default())),
    rule("LOGICAL_OR", 1, |n| binary(n, LogicalOr::default())),
    rule("MAXIMUM", 1, |n| binary(n, Maximum::default())),
    rule("MINIMUM", 1, |n| binary(n, Minimum::default())),
    rule("MUL", 1, |n| fused(n, Multiply::default())),
    rule("NOT_EQUAL", 1, |n| binary(n, NotEqual::default())),
    rule("POW", 1, |n| binary(n, Power::default())),
    rule("RIGHT_SHIFT", 1, |n| binary(n, BitwiseRightShift::default())),
    rule("SQUARED_DIFFERENCE", 1, |n| binary(n, SquaredDifference::default())),
    rule("STABLEHLO_ADD", 1, |n| hlo(n, Add::default(), Some(LogicalOr::default()))),
    rule("STABLEHLO_AND", 1, |n| hlo(n, BitwiseAnd::default(), Some(LogicalAnd::default()))),
    rule("STABLEHLO_COMPARE", 1, compare),
    rule("STABLEHLO_DIVIDE", 1, |n| {
        n.ignore(DECLARED);
        let (a, b) = (n.input(0)?, n.input(1)?);
        Ok(division::divide(n, a, b)?.into())
    }),
    rule("STABLEHLO_MAXIMUM", 1, |n| hlo(n, Maximum::default(), Some(LogicalOr::default()))),
    rule("STABLEHLO_MINIMUM", 1, |n| hlo(n, Minimum::default(), Some(LogicalAnd::default()))),
    rule("STABLEHLO_MULTIPLY", 1, |n| hlo(n, Multiply::default(), Some(LogicalAnd::default()))),
    rule("STABLEHLO_OR", 1, |n| hlo(n, BitwiseOr::default(), Some(LogicalOr::default()))),
    rule("STABLEHLO_POWER", 1, |n| hlo(n, Power::default(), None::<LogicalAnd>)),
    rule("STABLEHLO_REMAINDER", 1, |n| {
        n.ignore(DECLARED);
        let (a, b) = (n.input(0)?, n.input(1)?);
        Ok(division::truncate_mod(n, a, b)?.into())
    }),
    rule("STABLEHLO_SHIFT_LEFT", 1, |n| hlo(n, BitwiseLeftShift::default(), None::<LogicalAnd>)),
    rule("STABLEHLO_SUBTRACT", 1, |n| hlo(n, Subtract::default(), None::<LogicalAnd>)),
    rule("SUB", 1, |n| fused(n, Subtract::default())),
];

fn binary<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    Ok(n.emit(op, &[a, b])?.into())
}

fn fused<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    // How 16-bit scales are rounded in kernels.
    n.ignore(&["pot_scale_int16"]);
    let (a, b) = (n.input(0)?, n.input(1)?);
    let y = n.emit(op, &[a, b])?;
    Ok(activated(n, y)?.into())
}

// Arithmetic of truth values is logic.
fn hlo<O: Op, L: Op>(n: &mut NodeCx<'_>, op: O, logical: Option<L>) -> Result<Outputs> {
    n.ignore(DECLARED);
    let (a, b) = (n.input(0)?, n.input(1)?);
    match logical {
        Some(logical) if n.ty(a) == ElementType::Boolean => Ok(n.emit(logical, &[a, b])?.into()),
        _ => Ok(n.emit(op, &[a, b])?.into()),
    }
}

fn add_n(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut all = n.inputs()?.into_iter();
    let first = all.next().ok_or_else(|| n.fail("there is nothing to add"))?;
    Ok(all.try_fold(first, |a, b| n.plus(a, b))?.into())
}

fn compare(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    n.ignore(&["compare_type"]);
    let (a, b) = (n.input(0)?, n.input(1)?);
    let direction: String = n.required("comparison_direction")?;
    let y = match direction.as_str() {
        "EQ" => n.equal(a, b)?,
        "NE" => n.emit(NotEqual::default(), &[a, b])?,
        "GE" => n.greater_equal(a, b)?,
        "GT" => n.greater(a, b)?,
        "LE" => n.less_equal(a, b)?,
        _ => n.less(a, b)?,
    };
    Ok(y.into())
}

/// The angle of the point (x, y): that of the quotient, turned by half a circle on the left side.
pub(super) fn angle(n: &mut NodeCx<'_>, y: Value, x: Value) -> Result<Value> {
    let zero = n.scalar_like(x, 0.0)?;
    let (half, quarter) = (n.scalar_like(x, std::f64::consts::PI)?, n.scalar_like(x, std::f64::consts::FRAC_PI_2)?);
    let (minus_half, minus_quarter) =
        (n.scalar_like(x, -std::f64::consts::PI)?, n.scalar_like(x, -std::f64::consts::FRAC_PI_2)?);
    let quotient = n.over(y, x)?;
    let angle = n.emit(Atan, &[quotient])?;
    let pick = |n: &mut NodeCx<'_>, c: Value, a: Value, b: Value| n.choose(c, a, b);
    let below = n.less(y, zero)?;
    let turn = pick(n, below, minus_half, half)?;
    let turned = n.plus(angle, turn)?;
    let left = n.less(x, zero)?;
    let angle = pick(n, left, turned, angle)?;
    // On the axis between the sides there is no quotient.
    let above = n.greater(y, zero)?;
    let upright = pick(n, below, minus_quarter, zero)?;
    let upright = pick(n, above, quarter, upright)?;
    let on_axis = n.equal(x, zero)?;
    pick(n, on_axis, upright, angle)
}
