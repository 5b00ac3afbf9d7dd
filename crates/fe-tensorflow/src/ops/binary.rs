//! Functions of two elements, with numpy broadcasting.

use super::common::division::{divide, floor_div, floor_mod, truncate_mod};
use super::complex;
use super::types::is_complex;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result, Value};
use carafe_ops::arithmetic::{Add, Maximum, Minimum, Power, SquaredDifference, Subtract};
use carafe_ops::compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use carafe_ops::logic::{
    BitwiseAnd, BitwiseLeftShift, BitwiseOr, BitwiseRightShift, BitwiseXor, LogicalAnd, LogicalNot, LogicalOr,
    LogicalXor,
};
use carafe_ops::math::{Log, Negative};
use carafe_tensor::ElementType;
use std::f64::consts::{FRAC_PI_2, PI};

pub(crate) const RULES: &[StaticRule] = &[
    rule("Add", 0, add),
    rule("AddN", 0, add_n),
    rule("AddV2", 0, add),
    rule("ApproximateEqual", 0, approximate_equal),
    rule("Atan2", 0, |n| with(n, atan2)),
    rule("BiasAdd", 0, bias_add),
    rule("BiasAddV1", 0, |n| both(n, Add::default())),
    rule("BitwiseAnd", 0, |n| both(n, BitwiseAnd::default())),
    rule("BitwiseOr", 0, |n| both(n, BitwiseOr::default())),
    rule("BitwiseXor", 0, |n| both(n, BitwiseXor::default())),
    rule("Div", 0, |n| of_either(n, divide, complex::quotient)),
    rule("DivNoNan", 0, |n| of_either(n, div_no_nan, complex_div_no_nan)),
    rule("Equal", 0, |n| of_either(n, |n, a, b| n.equal(a, b), complex::equal)),
    rule("FloorDiv", 0, |n| with(n, floor_div)),
    rule("FloorMod", 0, |n| with(n, floor_mod)),
    rule("Greater", 0, |n| both(n, Greater::default())),
    rule("GreaterEqual", 0, |n| both(n, GreaterEqual::default())),
    rule("LeftShift", 0, |n| both(n, BitwiseLeftShift::default())),
    rule("Less", 0, |n| both(n, Less::default())),
    rule("LessEqual", 0, |n| both(n, LessEqual::default())),
    rule("LogicalAnd", 0, |n| both(n, LogicalAnd::default())),
    rule("LogicalOr", 0, |n| both(n, LogicalOr::default())),
    rule("LogicalXor", 0, |n| both(n, LogicalXor::default())),
    rule("Maximum", 0, |n| both(n, Maximum::default())),
    rule("Minimum", 0, |n| both(n, Minimum::default())),
    rule("Mod", 0, |n| with(n, truncate_mod)),
    rule("Mul", 0, |n| of_either(n, |n, a, b| n.times(a, b), complex::product)),
    rule("MulNoNan", 0, |n| with(n, |n, a, b| no_nan(n, b, |n| n.times(a, b)))),
    rule("NotEqual", 0, not_equal),
    rule("Pow", 0, |n| of_either(n, |n, a, b| n.emit(Power::default(), &[a, b]), complex_pow)),
    rule("RealDiv", 0, |n| of_either(n, divide, complex::quotient)),
    rule("RightShift", 0, |n| both(n, BitwiseRightShift::default())),
    rule("SquaredDifference", 0, |n| both(n, SquaredDifference::default())),
    rule("Sub", 0, |n| {
        is_complex(n, "T");
        both(n, Subtract::default())
    }),
    rule("TruncateDiv", 0, |n| with(n, divide)),
    rule("TruncateMod", 0, |n| with(n, truncate_mod)),
    rule("Xdivy", 0, |n| with(n, |n, a, b| no_nan(n, a, |n| n.over(a, b)))),
    rule("Xlog1py", 0, |n| {
        with(n, |n, a, b| {
            no_nan(n, a, |n| {
                let b = n.plus_number(b, 1.0)?;
                let log = n.emit(Log, &[b])?;
                n.times(a, log)
            })
        })
    }),
    rule("Xlogy", 0, |n| {
        with(n, |n, a, b| {
            no_nan(n, a, |n| {
                let log = n.emit(Log, &[b])?;
                n.times(a, log)
            })
        })
    }),
];

type Two = fn(&mut NodeCx<'_>, Value, Value) -> Result<Value>;

/// Two inputs, the same operation on our side.
pub(super) fn both<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    Ok(n.emit(op, &[a, b])?.into())
}

fn with(n: &mut NodeCx<'_>, of: Two) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    Ok(of(n, a, b)?.into())
}

fn of_either(n: &mut NodeCx<'_>, of_real: Two, of_complex: Two) -> Result<Outputs> {
    if is_complex(n, "T") { with(n, of_complex) } else { with(n, of_real) }
}

// Texts are joined.
fn add(n: &mut NodeCx<'_>) -> Result<Outputs> {
    is_complex(n, "T");
    let (a, b) = (n.input(0)?, n.input(1)?);
    if n.ty(a) == ElementType::String {
        return Ok(n.emit(carafe_ops::carafe::TextConcat, &[a, b])?.into());
    }
    Ok(n.plus(a, b)?.into())
}

fn add_n(n: &mut NodeCx<'_>) -> Result<Outputs> {
    is_complex(n, "T");
    let inputs = n.inputs()?;
    let Some((&first, rest)) = inputs.split_first() else { return Err(n.fail("at least one input is needed")) };
    let sum = rest.iter().try_fold(first, |a, &b| n.plus(a, b))?;
    Ok(sum.into())
}

fn approximate_equal(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let tolerance: f64 = n.attr("tolerance", 1e-5)?;
    let (a, b) = (n.input(0)?, n.input(1)?);
    let difference = n.minus(a, b)?;
    let (size, tolerance) = (n.abs(difference)?, n.scalar_like(a, tolerance)?);
    Ok(n.less(size, tolerance)?.into())
}

fn bias_add(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let format: String = n.attr("data_format", "NHWC".to_string())?;
    let (x, bias) = (n.input(0)?, n.input(1)?);
    let bias = match n.known_rank(x)? {
        rank if format.starts_with("NC") && rank > 2 => {
            let axes: Vec<i64> = (1..rank as i64 - 1).collect();
            n.unsqueeze(bias, &axes)?
        }
        _ => bias,
    };
    Ok(n.plus(x, bias)?.into())
}

// 0 where `zero` is 0, else what is made.
fn no_nan(n: &mut NodeCx<'_>, zero: Value, of: impl Fn(&mut NodeCx<'_>) -> Result<Value>) -> Result<Value> {
    let y = of(n)?;
    let nothing = n.scalar_like(y, 0.0)?;
    let is_zero = n.equal(zero, nothing)?;
    n.choose(is_zero, nothing, y)
}

fn div_no_nan(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    no_nan(n, b, |n| n.over(a, b))
}

fn complex_div_no_nan(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    let y = complex::quotient(n, a, b)?;
    let zero = n.scalar_like(b, 0.0)?;
    let (re, im) = complex::parts(n, b)?;
    let (re, im) = (n.equal(re, zero)?, n.equal(im, zero)?);
    let is_zero = n.and(re, im)?;
    let is_zero = n.unsqueeze(is_zero, &[-1])?;
    n.choose(is_zero, zero, y)
}

fn complex_pow(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    let log = complex::log(n, a)?;
    let y = complex::product(n, b, log)?;
    complex::exp(n, y)
}

fn not_equal(n: &mut NodeCx<'_>) -> Result<Outputs> {
    if !is_complex(n, "T") {
        return both(n, NotEqual::default());
    }
    let (a, b) = (n.input(0)?, n.input(1)?);
    let equal = complex::equal(n, a, b)?;
    Ok(n.emit(LogicalNot, &[equal])?.into())
}

/// The angle of the point `(x, y)`.
pub(super) fn atan2(n: &mut NodeCx<'_>, y: Value, x: Value) -> Result<Value> {
    let zero = n.scalar_like(x, 0.0)?;
    let (quotient, y_below, x_below) = (n.over(y, x)?, n.less(y, zero)?, n.less(x, zero)?);
    let angle = complex::atan(n, quotient)?;
    let half = n.scalar_like(x, PI)?;
    let other_half = n.emit(Negative, &[half])?;
    let turn = n.choose(y_below, other_half, half)?;
    let turned = n.plus(angle, turn)?;
    let angle = n.choose(x_below, turned, angle)?;
    // On the axis there is no quotient.
    let (up, down) = (n.scalar_like(x, FRAC_PI_2)?, n.scalar_like(x, -FRAC_PI_2)?);
    let y_is_zero = n.emit(Equal::default(), &[y, zero])?;
    let upright = n.choose(y_below, down, up)?;
    let upright = n.choose(y_is_zero, zero, upright)?;
    let on_axis = n.emit(Equal::default(), &[x, zero])?;
    n.choose(on_axis, upright, angle)
}

