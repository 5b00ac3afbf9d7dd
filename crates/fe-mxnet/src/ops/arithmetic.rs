//! Arithmetic of two tensors. `elemwise_*` take equal shapes, `broadcast_*` and the numpy operators stretch axes of one.

use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::FloorMod;
use carafe_tensor::ElementType;

type Binary = fn(&mut NodeCx<'_>, Value, Value) -> Result<Value>;

pub(super) const RULES: &[StaticRule] = &[
    rule("_grad_add", 0, |n| two(n, |n, a, b| n.plus(a, b))),
    rule("_hypot", 0, |n| two(n, hypot)),
    rule("_maximum", 0, |n| two(n, |n, a, b| n.max(a, b))),
    rule("_minimum", 0, |n| two(n, |n, a, b| n.min(a, b))),
    rule("_mod", 0, |n| two(n, modulo)),
    rule("_npi_add", 0, |n| two(n, |n, a, b| n.plus(a, b))),
    rule("_npi_arctan2", 0, |n| two(n, arctan2)),
    rule("_npi_copysign", 0, |n| two(n, copysign)),
    rule("_npi_hypot", 0, |n| two(n, hypot)),
    rule("_npi_ldexp", 0, |n| two(n, ldexp)),
    rule("_npi_mod", 0, |n| two(n, modulo)),
    rule("_npi_multiply", 0, |n| two(n, |n, a, b| n.times(a, b))),
    rule("_npi_power", 0, |n| two(n, |n, a, b| n.power(a, b))),
    rule("_npi_subtract", 0, |n| two(n, |n, a, b| n.minus(a, b))),
    rule("_npi_true_divide", 0, |n| two(n, true_divide)),
    rule("_power", 0, |n| two(n, |n, a, b| n.power(a, b))),
    rule("_scatter_elemwise_div", 0, |n| two(n, |n, a, b| n.over(a, b))),
    rule("add_n", 0, add_n),
    rule("broadcast_add", 0, |n| two(n, |n, a, b| n.plus(a, b))),
    rule("broadcast_div", 0, |n| two(n, |n, a, b| n.over(a, b))),
    rule("broadcast_hypot", 0, |n| two(n, hypot)),
    rule("broadcast_maximum", 0, |n| two(n, |n, a, b| n.max(a, b))),
    rule("broadcast_minimum", 0, |n| two(n, |n, a, b| n.min(a, b))),
    rule("broadcast_mod", 0, |n| two(n, modulo)),
    rule("broadcast_mul", 0, |n| two(n, |n, a, b| n.times(a, b))),
    rule("broadcast_power", 0, |n| two(n, |n, a, b| n.power(a, b))),
    rule("broadcast_sub", 0, |n| two(n, |n, a, b| n.minus(a, b))),
    rule("elemwise_add", 0, |n| two(n, |n, a, b| n.plus(a, b))),
    rule("elemwise_div", 0, |n| two(n, |n, a, b| n.over(a, b))),
    rule("elemwise_mul", 0, |n| two(n, |n, a, b| n.times(a, b))),
    rule("elemwise_sub", 0, |n| two(n, |n, a, b| n.minus(a, b))),
];

/// Both operands in the type that holds them.
pub(super) fn operands(n: &mut NodeCx<'_>) -> Result<(Value, Value)> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let (ta, tb) = (n.ty(a), n.ty(b));
    if ta == tb || ta.is_dynamic() || tb.is_dynamic() {
        return Ok((a, b));
    }
    let rank = |ty: ElementType| (ty.is_float(), ty != ElementType::Boolean, ty.bits());
    let ty = if rank(ta) >= rank(tb) { ta } else { tb };
    Ok((n.convert(a, ty)?, n.convert(b, ty)?))
}

fn two(n: &mut NodeCx<'_>, f: Binary) -> Result<Outputs> {
    let (a, b) = operands(n)?;
    Ok(f(n, a, b)?.into())
}

fn add_n(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_args"]);
    let all = n.inputs()?;
    let Some((&first, rest)) = all.split_first() else { return Err(n.fail("there is nothing to add")) };
    Ok(rest.iter().try_fold(first, |sum, v| n.plus(sum, *v))?.into())
}

/// Has the sign of the divisor.
pub(super) fn modulo(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    n.emit(FloorMod::default(), &[a, b])
}

/// The length of the hypotenuse.
pub(super) fn hypot(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    let (a, b) = (n.times(a, a)?, n.times(b, b)?);
    let sum = n.plus(a, b)?;
    n.sqrt(sum)
}

/// Whole numbers become floats.
pub(super) fn true_divide(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    let whole = !n.ty(a).is_float();
    let (a, b) = if whole { (n.convert(a, ElementType::F32)?, n.convert(b, ElementType::F32)?) } else { (a, b) };
    n.over(a, b)
}

/// The size of one, the sign of the other.
pub(super) fn copysign(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    let size = n.abs(a)?;
    let minus = n.emit(carafe_ops::math::Negative, &[size])?;
    let zero = n.scalar_like(b, 0.0)?;
    let is_negative = n.less(b, zero)?;
    n.choose(is_negative, minus, size)
}

/// `a * 2^b`.
pub(super) fn ldexp(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    let two = n.scalar_like(a, 2.0)?;
    let power = n.power(two, b)?;
    n.times(a, power)
}

/// The angle of a point in all four quadrants.
pub(super) fn arctan2(n: &mut NodeCx<'_>, y: Value, x: Value) -> Result<Value> {
    let zero = n.scalar_like(x, 0.0)?;
    let ratio = n.over(y, x)?;
    let angle = n.emit(carafe_ops::math::Atan, &[ratio])?;
    let (pi, half) = (n.scalar_like(x, std::f64::consts::PI)?, n.scalar_like(x, std::f64::consts::FRAC_PI_2)?);
    let (below, above) = (n.minus(angle, pi)?, n.plus(angle, pi)?);
    let y_is_negative = n.less(y, zero)?;
    let left = n.choose(y_is_negative, below, above)?;
    let x_is_negative = n.less(x, zero)?;
    let angle = n.choose(x_is_negative, left, angle)?;
    // Straight up or down, and nothing at the origin.
    let sign = n.emit(carafe_ops::math::Sign, &[y])?;
    let upright = n.times(sign, half)?;
    let x_is_zero = n.equal(x, zero)?;
    n.choose(x_is_zero, upright, angle)
}

