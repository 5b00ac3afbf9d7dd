//! Operators of one tensor, element by element.

use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result, Value};
use carafe_ops::activation::{Relu, Sigmoid, SoftPlus, SoftSign, Swish};
use carafe_ops::logic::{BitwiseNot, LogicalNot};
use carafe_ops::math::round::RoundMode;
use carafe_ops::math::{
    Abs, Acos, Acosh, Asin, Asinh, Atan, Atanh, Ceiling, Cos, Cosh, Erf, ErfInv, Exp, Floor, IsFinite, IsInf, IsNaN,
    Log, Negative, Round, Sign, Sin, Sinh, Sqrt, Tan, Tanh,
};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("abs", 0, |n| same(n, Abs)),
    rule("acos", 0, |n| same(n, Acos)),
    rule("acosh", 0, |n| same(n, Acosh)),
    rule("asin", 0, |n| same(n, Asin)),
    rule("asinh", 0, |n| same(n, Asinh)),
    rule("atan", 0, |n| same(n, Atan)),
    rule("atanh", 0, |n| same(n, Atanh)),
    rule("bitwise_not", 0, bitwise_not),
    rule("cast", 0, cast),
    rule("ceil", 0, |n| same(n, Ceiling)),
    rule("clip", 0, clip),
    rule("cos", 0, |n| same(n, Cos)),
    rule("cosh", 0, |n| same(n, Cosh)),
    rule("erf", 0, |n| same(n, Erf)),
    rule("erfinv", 0, |n| same(n, ErfInv)),
    rule("exp", 0, |n| same(n, Exp)),
    rule("expm1", 0, |n| {
        composed(n, |n, x| {
            let y = n.put(Exp, &[x])?;
            n.plus_number(y, -1.0)
        })
    }),
    rule("floor", 0, |n| same(n, Floor)),
    rule("increment", 0, increment),
    rule("isfinite_v2", 0, |n| same(n, IsFinite)),
    rule("isinf_v2", 0, |n| same(n, IsInf { detect_negative: true, detect_positive: true })),
    rule("isnan_v2", 0, |n| same(n, IsNaN)),
    rule("log", 0, |n| same(n, Log)),
    rule("log10", 0, |n| composed(n, |n, x| logarithm(n, x, std::f64::consts::LN_10))),
    rule("log1p", 0, |n| {
        composed(n, |n, x| {
            let y = n.plus_number(x, 1.0)?;
            n.put(Log, &[y])
        })
    }),
    rule("log2", 0, |n| composed(n, |n, x| logarithm(n, x, std::f64::consts::LN_2))),
    rule("logical_not", 0, |n| {
        composed(n, |n, x| {
            let x = n.convert(x, ElementType::Boolean)?;
            n.put(LogicalNot, &[x])
        })
    }),
    rule("logsigmoid", 0, |n| {
        composed(n, |n, x| {
            let y = n.put(Negative, &[x])?;
            let y = n.put(SoftPlus, &[y])?;
            n.put(Negative, &[y])
        })
    }),
    rule("pow", 0, pow),
    rule("reciprocal", 0, |n| {
        composed(n, |n, x| {
            let one = n.number(x, 1.0)?;
            n.over(one, x)
        })
    }),
    rule("relu", 0, |n| same(n, Relu)),
    rule("round", 0, |n| round(n, RoundMode::HalfAwayFromZero)),
    rule("round", 3_000_000, |n| round(n, RoundMode::HalfToEven)),
    rule("rsqrt", 0, |n| composed(n, |n, x| n.power_number(x, -0.5))),
    rule("scale", 0, scale),
    rule("sigmoid", 0, |n| same(n, Sigmoid)),
    rule("sign", 0, |n| same(n, Sign)),
    rule("silu", 0, |n| same(n, Swish)),
    rule("sin", 0, |n| same(n, Sin)),
    rule("sinh", 0, |n| same(n, Sinh)),
    rule("softsign", 0, |n| same(n, SoftSign)),
    rule("sqrt", 0, |n| same(n, Sqrt)),
    rule("square", 0, |n| composed(n, |n, x| n.times(x, x))),
    rule("tan", 0, |n| same(n, Tan)),
    rule("tanh", 0, |n| same(n, Tanh)),
    rule("tanh_shrink", 0, |n| {
        composed(n, |n, x| {
            let y = n.put(Tanh, &[x])?;
            n.minus(x, y)
        })
    }),
    rule("trunc", 0, |n| composed(n, truncated)),
];

/// One operation over `X`.
pub(super) fn same(n: &mut NodeCx<'_>, op: impl Op) -> Result<Outputs> {
    let x = n.slot("X")?;
    let y = n.emit(op, &[x])?;
    Ok(n.give(&[("Out", y)]))
}

/// A function of `X`.
pub(super) fn composed(n: &mut NodeCx<'_>, f: impl FnOnce(&mut NodeCx<'_>, Value) -> Result<Value>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let y = f(n, x)?;
    Ok(n.give(&[("Out", y)]))
}

fn logarithm(n: &mut NodeCx<'_>, x: Value, base: f64) -> Result<Value> {
    let y = n.put(Log, &[x])?;
    n.times_number(y, 1.0 / base)
}

/// Rounded toward zero.
pub(super) fn truncated(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    if !n.ty(x).is_float() {
        return Ok(x);
    }
    let (sign, size) = (n.put(Sign, &[x])?, n.abs(x)?);
    let size = n.floor(size)?;
    n.times(sign, size)
}

fn bitwise_not(n: &mut NodeCx<'_>) -> Result<Outputs> {
    composed(n, |n, x| match n.ty(x) {
        ElementType::Boolean => n.put(LogicalNot, &[x]),
        _ => n.put(BitwiseNot, &[x]),
    })
}

fn cast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["in_dtype"]);
    let ty = match n.dtype("out_dtype")? {
        Some(ty) => ty,
        None => n.dtype("dtype")?.ok_or_else(|| n.fail("`out_dtype` is missing"))?,
    };
    composed(n, |n, x| n.convert(x, ty))
}

fn clip(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let is_fixed = !["Min", "Max", "min", "max"].iter().any(|s| n.has_slot(s));
    let y = if is_fixed && n.ty(x).is_float() {
        let (min, max) = (n.attr("min", f64::from(f32::MIN))?, n.attr("max", f64::from(f32::MAX))?);
        n.between(x, min, max)?
    } else {
        let min = n.number_of("min", &["Min"], f64::from(f32::MIN), x)?;
        let max = n.number_of("max", &["Max"], f64::from(f32::MAX), x)?;
        let y = n.max(x, min)?;
        n.min(y, max)?
    };
    Ok(n.give(&[("Out", y)]))
}

fn increment(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let step = match n.opt_attr::<f64>("step")? {
        Some(step) => step,
        None => n.attr("value", 1.0)?,
    };
    n.ignore(&["value"]);
    composed(n, |n, x| n.plus_number(x, step))
}

fn pow(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let factor = n.number_of("factor", &["FactorTensor"], 1.0, x)?;
    let y = n.power(x, factor)?;
    Ok(n.give(&[("Out", y)]))
}

// Halves go away from zero before Paddle 3, and to the even number since.
fn round(n: &mut NodeCx<'_>, mode: RoundMode) -> Result<Outputs> {
    let decimals: i64 = n.attr("decimals", 0)?;
    composed(n, |n, x| {
        let op = Round { mode };
        if decimals == 0 || !n.ty(x).is_float() {
            return n.put(op, &[x]);
        }
        let power = 10f64.powi(decimals as i32);
        let y = n.times_number(x, power)?;
        let y = n.put(op, &[y])?;
        n.over_number(y, power)
    })
}

fn scale(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let is_after = n.attr("bias_after_scale", true)?;
    let bias: f64 = n.attr("bias", 0.0)?;
    // Whole numbers are scaled as such, by a number cut to their type.
    let scale = n.number_of("scale", &["ScaleTensor"], 1.0, x)?;
    let is_one = n.tensor(scale).is_some_and(|t| t.to_vec::<f64>().is_ok_and(|v| v[0] == 1.0));
    let mut y = x;
    if !is_after && bias != 0.0 {
        y = n.plus_number(y, bias)?;
    }
    if !is_one {
        y = n.times(y, scale)?;
    }
    if is_after && bias != 0.0 {
        y = n.plus_number(y, bias)?;
    }
    Ok(n.give(&[("Out", y)]))
}
