//! Functions of one tensor, element by element. The numpy operators have the same functions under names of their own.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result, Value};
use carafe_ops::logic::LogicalNot;
use carafe_ops::math::round::RoundMode;
use carafe_ops::math::{
    Abs, Acos, Acosh, Asin, Asinh, Atan, Atanh, Ceiling, Cos, Cosh, Erf, ErfInv, Exp, Floor, IsFinite, IsInf, IsNaN,
    Log, Negative, Round, Sign, Sin, Sinh, Sqrt, Tan, Tanh,
};

pub(super) const RULES: &[StaticRule] = &[
    rule("_contrib_quadratic", 0, quadratic),
    rule("_contrib_round_ste", 0, |n| float(n, nearest)),
    rule("_contrib_sign_ste", 0, |n| one(n, Sign)),
    rule("_npi_absolute", 0, |n| one(n, Abs)),
    rule("_npi_arccos", 0, |n| one(n, Acos)),
    rule("_npi_arccosh", 0, |n| one(n, Acosh)),
    rule("_npi_arcsin", 0, |n| one(n, Asin)),
    rule("_npi_arcsinh", 0, |n| one(n, Asinh)),
    rule("_npi_arctan", 0, |n| one(n, Atan)),
    rule("_npi_arctanh", 0, |n| one(n, Atanh)),
    rule("_npi_cbrt", 0, |n| float(n, cube_root)),
    rule("_npi_ceil", 0, |n| one(n, Ceiling)),
    rule("_npi_cos", 0, |n| one(n, Cos)),
    rule("_npi_cosh", 0, |n| one(n, Cosh)),
    rule("_npi_degrees", 0, |n| scaled(n, 180.0 / std::f64::consts::PI)),
    rule("_npi_exp", 0, |n| one(n, Exp)),
    rule("_npi_expm1", 0, |n| float(n, expm1)),
    rule("_npi_fix", 0, |n| float(n, towards_zero)),
    rule("_npi_floor", 0, |n| one(n, Floor)),
    rule("_npi_isfinite", 0, |n| one(n, IsFinite)),
    rule("_npi_isinf", 0, |n| one(n, IsInf { detect_negative: true, detect_positive: true })),
    rule("_npi_isnan", 0, |n| one(n, IsNaN)),
    rule("_npi_isneginf", 0, |n| one(n, IsInf { detect_negative: true, detect_positive: false })),
    rule("_npi_isposinf", 0, |n| one(n, IsInf { detect_negative: false, detect_positive: true })),
    rule("_npi_log", 0, |n| one(n, Log)),
    rule("_npi_log10", 0, |n| logarithm(n, 10.0)),
    rule("_npi_log1p", 0, |n| float(n, log1p)),
    rule("_npi_log2", 0, |n| logarithm(n, 2.0)),
    rule("_npi_logical_not", 0, |n| {
        let x = n.input(0)?;
        let x = n.as_condition(x)?;
        Ok(n.emit(LogicalNot, &[x])?.into())
    }),
    rule("_npi_negative", 0, |n| one(n, Negative)),
    rule("_npi_radians", 0, |n| scaled(n, std::f64::consts::PI / 180.0)),
    rule("_npi_reciprocal", 0, |n| float(n, |n, x| n.power_number(x, -1.0))),
    rule("_npi_rint", 0, |n| float(n, halves_down)),
    rule("_npi_sign", 0, |n| one(n, Sign)),
    rule("_npi_sin", 0, |n| one(n, Sin)),
    rule("_npi_sinh", 0, |n| one(n, Sinh)),
    rule("_npi_sqrt", 0, |n| one(n, Sqrt)),
    rule("_npi_square", 0, |n| float(n, |n, x| n.times(x, x))),
    rule("_npi_tan", 0, |n| one(n, Tan)),
    rule("_npi_tanh", 0, |n| one(n, Tanh)),
    rule("_npi_trunc", 0, |n| float(n, towards_zero)),
    rule("abs", 0, |n| one(n, Abs)),
    rule("arccos", 0, |n| one(n, Acos)),
    rule("arccosh", 0, |n| one(n, Acosh)),
    rule("arcsin", 0, |n| one(n, Asin)),
    rule("arcsinh", 0, |n| one(n, Asinh)),
    rule("arctan", 0, |n| one(n, Atan)),
    rule("arctanh", 0, |n| one(n, Atanh)),
    rule("cbrt", 0, |n| float(n, cube_root)),
    rule("ceil", 0, |n| one(n, Ceiling)),
    rule("cos", 0, |n| one(n, Cos)),
    rule("cosh", 0, |n| one(n, Cosh)),
    rule("degrees", 0, |n| scaled(n, 180.0 / std::f64::consts::PI)),
    rule("erf", 0, |n| one(n, Erf)),
    rule("erfinv", 0, |n| one(n, ErfInv)),
    rule("exp", 0, |n| one(n, Exp)),
    rule("expm1", 0, |n| float(n, expm1)),
    rule("fix", 0, |n| float(n, towards_zero)),
    rule("floor", 0, |n| one(n, Floor)),
    rule("log", 0, |n| one(n, Log)),
    rule("log10", 0, |n| logarithm(n, 10.0)),
    rule("log1p", 0, |n| float(n, log1p)),
    rule("log2", 0, |n| logarithm(n, 2.0)),
    rule("logical_not", 0, |n| float(n, |n, x| {
        let zero = n.scalar_like(x, 0.0)?;
        let is_zero = n.equal(x, zero)?;
        n.as_numbers(is_zero, x)
    })),
    rule("negative", 0, |n| one(n, Negative)),
    rule("radians", 0, |n| scaled(n, std::f64::consts::PI / 180.0)),
    rule("rcbrt", 0, |n| float(n, |n, x| {
        let root = cube_root(n, x)?;
        n.power_number(root, -1.0)
    })),
    rule("reciprocal", 0, |n| float(n, |n, x| n.power_number(x, -1.0))),
    rule("rint", 0, |n| float(n, halves_down)),
    rule("round", 0, |n| float(n, nearest)),
    rule("rsqrt", 0, |n| float(n, |n, x| n.power_number(x, -0.5))),
    rule("sign", 0, |n| one(n, Sign)),
    rule("sin", 0, |n| one(n, Sin)),
    rule("sinh", 0, |n| one(n, Sinh)),
    rule("sqrt", 0, |n| one(n, Sqrt)),
    rule("square", 0, |n| float(n, |n, x| n.times(x, x))),
    rule("tan", 0, |n| one(n, Tan)),
    rule("tanh", 0, |n| one(n, Tanh)),
    rule("trunc", 0, |n| float(n, towards_zero)),
];

fn one<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(n.emit(op, &[x])?.into())
}

fn float(n: &mut NodeCx<'_>, f: impl Fn(&mut NodeCx<'_>, Value) -> Result<Value>) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(f(n, x)?.into())
}

fn scaled(n: &mut NodeCx<'_>, factor: f64) -> Result<Outputs> {
    float(n, |n, x| n.times_number(x, factor))
}

fn logarithm(n: &mut NodeCx<'_>, base: f64) -> Result<Outputs> {
    float(n, |n, x| {
        let y = n.emit(Log, &[x])?;
        n.times_number(y, 1.0 / base.ln())
    })
}

fn log1p(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let y = n.plus_number(x, 1.0)?;
    n.emit(Log, &[y])
}

fn expm1(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let y = n.emit(Exp, &[x])?;
    n.plus_number(y, -1.0)
}

// A power of a negative number is none, so the sign goes around it.
fn cube_root(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let size = n.abs(x)?;
    let root = n.power_number(size, 1.0 / 3.0)?;
    let sign = n.emit(Sign, &[x])?;
    n.times(sign, root)
}

/// Halves away from zero.
pub(super) fn nearest(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    n.emit(Round { mode: RoundMode::HalfAwayFromZero }, &[x])
}

// `rint` of MXNet takes halves down.
fn halves_down(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let y = n.plus_number(x, -0.5)?;
    n.ceiling(y)
}

/// Without what stands behind the point.
pub(super) fn towards_zero(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let size = n.abs(x)?;
    let whole = n.floor(size)?;
    let sign = n.emit(Sign, &[x])?;
    n.times(sign, whole)
}

fn quadratic(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (a, b, c) = (n.float("a", 0.0)?, n.float("b", 0.0)?, n.float("c", 0.0)?);
    let square = n.times(x, x)?;
    let (square, line) = (n.times_number(square, a)?, n.times_number(x, b)?);
    let sum = n.plus(square, line)?;
    Ok(n.plus_number(sum, c)?.into())
}
