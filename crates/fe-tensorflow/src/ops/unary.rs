//! Functions of single elements.

use super::complex;
use super::types::{element_type, is_complex};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result, Value};
use carafe_ops::activation::{Clamp, Elu, Mish, PRelu, Relu, Selu, Sigmoid, SoftPlus, SoftSign, Swish};
use carafe_ops::logic::{BitwiseNot, LogicalNot};
use carafe_ops::math::round::RoundMode;
use carafe_ops::math::{self, Round};
use carafe_ops::carafe::BitCast;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Abs", 0, |n| same(n, math::Abs)),
    rule("Acos", 0, |n| same(n, math::Acos)),
    rule("Acosh", 0, |n| same(n, math::Acosh)),
    rule("Asin", 0, |n| same(n, math::Asin)),
    rule("Asinh", 0, |n| same(n, math::Asinh)),
    rule("Atan", 0, |n| same(n, math::Atan)),
    rule("Atanh", 0, |n| same(n, math::Atanh)),
    rule("Bitcast", 0, bitcast),
    rule("Cast", 0, complex::cast),
    rule("Ceil", 0, |n| same(n, math::Ceiling)),
    rule("Cos", 0, |n| of_either(n, math::Cos, complex::cos)),
    rule("Cosh", 0, |n| same(n, math::Cosh)),
    rule("Elu", 0, |n| {
        let alpha: f64 = n.attr("alpha", 1.0)?;
        same(n, Elu { alpha })
    }),
    rule("Erf", 0, |n| same(n, math::Erf)),
    rule("Erfc", 0, |n| {
        let x = n.input(0)?;
        let y = n.emit(math::Erf, &[x])?;
        Ok(n.sub_from(1.0, y)?.into())
    }),
    rule("Erfinv", 0, |n| same(n, math::ErfInv)),
    rule("Exp", 0, |n| of_either(n, math::Exp, complex::exp)),
    rule("Expm1", 0, expm1),
    rule("Floor", 0, |n| same(n, math::Floor)),
    rule("Inv", 0, reciprocal),
    rule("Invert", 0, |n| same(n, BitwiseNot)),
    rule("IsFinite", 0, |n| same(n, math::IsFinite)),
    rule("IsInf", 0, |n| same(n, math::IsInf { detect_negative: true, detect_positive: true })),
    rule("IsNan", 0, |n| same(n, math::IsNaN)),
    rule("LeakyRelu", 0, leaky_relu),
    rule("Log", 0, |n| of_either(n, math::Log, complex::log)),
    rule("Log1p", 0, |n| {
        let x = n.input(0)?;
        let y = n.plus_number(x, 1.0)?;
        Ok(n.emit(math::Log, &[y])?.into())
    }),
    rule("LogicalNot", 0, |n| same(n, LogicalNot)),
    rule("Mish", 0, |n| same(n, Mish)),
    rule("Neg", 0, |n| {
        is_complex(n, "T");
        same(n, math::Negative)
    }),
    rule("Reciprocal", 0, reciprocal),
    rule("Relu", 0, |n| same(n, Relu)),
    rule("Relu6", 0, |n| same(n, Clamp { min: 0.0, max: 6.0 })),
    rule("Rint", 0, round),
    rule("Round", 0, round),
    rule("Rsqrt", 0, rsqrt),
    rule("Selu", 0, selu),
    rule("Sigmoid", 0, |n| same(n, Sigmoid)),
    rule("Sign", 0, |n| same(n, math::Sign)),
    rule("Sin", 0, |n| of_either(n, math::Sin, complex::sin)),
    rule("Sinh", 0, |n| same(n, math::Sinh)),
    rule("Softplus", 0, |n| same(n, SoftPlus)),
    rule("Softsign", 0, |n| same(n, SoftSign)),
    rule("Sqrt", 0, |n| of_either(n, math::Sqrt, complex::sqrt)),
    rule("Square", 0, square),
    rule("Swish", 0, |n| same(n, Swish)),
    rule("Tan", 0, |n| same(n, math::Tan)),
    rule("Tanh", 0, |n| same(n, math::Tanh)),
    rule("ToBool", 0, to_bool),
    rule("swish_f32", 0, |n| same(n, Swish)),
];

/// One input, the same operation on our side.
pub(super) fn same<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(n.emit(op, &[x])?.into())
}

fn of_either<O: Op>(
    n: &mut NodeCx<'_>,
    op: O,
    of_complex: fn(&mut NodeCx<'_>, Value) -> Result<Value>,
) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(if is_complex(n, "T") { of_complex(n, x)? } else { n.emit(op, &[x])? }.into())
}

/// The value in another element type; fractions are cut off, and what is not 0 is true.
pub(super) fn converted(n: &mut NodeCx<'_>, x: Value, ty: ElementType) -> Result<Value> {
    if ty == ElementType::Boolean && n.ty(x).is_float() {
        let zero = n.scalar_like(x, 0.0)?;
        return n.emit(carafe_ops::compare::NotEqual::default(), &[x, zero]);
    }
    n.convert(x, ty)
}

// The same bits in another type, whose elements may be smaller or larger by a factor.
fn bitcast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let ty = element_type(n, "type", ElementType::F32)?;
    let x = n.input(0)?;
    if n.ty(x).bits() != ty.bits() {
        return Err(n.unsupported(format!("elements of {} and {ty} have different sizes", n.ty(x))));
    }
    Ok(n.emit(BitCast { destination_type: ty }, &[x])?.into())
}

// Near 0 the difference of the exponential and 1 has no digits left; tanh has them: exp(x) - 1 is
// tanh(x / 2) * (exp(x) + 1).
fn expm1(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let half = n.times_number(x, 0.5)?;
    let (tanh, power) = (n.emit(math::Tanh, &[half])?, n.emit(math::Exp, &[x])?);
    let above = n.plus_number(power, 1.0)?;
    let near = n.times(tanh, above)?;
    let far = n.plus_number(power, -1.0)?;
    let (size, one) = (n.abs(x)?, n.scalar_like(x, 1.0)?);
    let is_near = n.less(size, one)?;
    Ok(n.choose(is_near, near, far)?.into())
}

fn leaky_relu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let alpha: f64 = n.attr("alpha", 0.2)?;
    let x = n.input(0)?;
    let slope = n.scalar_like(x, alpha)?;
    let slope = n.reshape(slope, &[1])?;
    Ok(n.emit(PRelu, &[x, slope])?.into())
}

fn reciprocal(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    if is_complex(n, "T") {
        return Ok(complex::reciprocal(n, x)?.into());
    }
    let one = n.scalar_like(x, 1.0)?;
    Ok(super::common::division::divide(n, one, x)?.into())
}

fn round(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    if !n.ty(x).is_float() {
        return Ok(x.into());
    }
    Ok(n.emit(Round { mode: RoundMode::HalfToEven }, &[x])?.into())
}

fn rsqrt(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    if is_complex(n, "T") {
        let root = complex::sqrt(n, x)?;
        return Ok(complex::reciprocal(n, root)?.into());
    }
    Ok(n.power_number(x, -0.5)?.into())
}

fn selu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (alpha, lambda) = (n.scalar_like(x, 1.6732632423543772)?, n.scalar_like(x, 1.0507009873554805)?);
    Ok(n.emit(Selu, &[x, alpha, lambda])?.into())
}

fn square(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(if is_complex(n, "T") { complex::product(n, x, x)? } else { n.times(x, x)? }.into())
}

// A number that is not 0, or a tensor that is not empty.
fn to_bool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    if n.known_rank(x)? == 0 {
        return Ok(converted(n, x, ElementType::Boolean)?.into());
    }
    let (shape, zero) = (n.shape_of(x)?, n.i64(0)?);
    let size = n.emit(carafe_ops::reduce::ReduceProd { keep_dims: false }, &[shape, zero])?;
    Ok(n.emit(carafe_ops::compare::NotEqual::default(), &[size, zero])?.into())
}
