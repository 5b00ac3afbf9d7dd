//! Complex numbers: pairs of real and imaginary part in a last axis of size 2. `types.rs` says how a rule knows that it has
//! them. Operations on elements work on the two parts; operations that move data leave the last axis where it is.

use super::common::shapes::i64_vector;
use super::types::{element_type, is_complex};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::Multiply;
use carafe_ops::math::{Atan, Cos, Cosh, Exp, Log, Negative, Sin, Sinh};
use carafe_ops::movement::Concat;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Angle", 0, |n| {
        let (re, im) = input_parts(n, 0)?;
        Ok(super::binary::atan2(n, im, re)?.into())
    }),
    rule("Complex", 0, |n| {
        is_complex(n, "Tout");
        let (re, im) = (n.input(0)?, n.input(1)?);
        let shape = {
            let sum = n.plus(re, im)?;
            n.shape_of(sum)?
        };
        let (re, im) = (n.stretch(re, shape)?, n.stretch(im, shape)?);
        Ok(pair(n, re, im)?.into())
    }),
    rule("ComplexAbs", 0, |n| {
        let (re, im) = input_parts(n, 0)?;
        Ok(magnitude(n, re, im)?.into())
    }),
    rule("Conj", 0, |n| {
        let x = n.input(0)?;
        // Complex unless it says otherwise: a SavedModel leaves out what is the default.
        let complex = is_complex(n, "T") || n.attr_value("T").is_none();
        Ok(if complex { conjugate(n, x)? } else { x }.into())
    }),
    rule("Imag", 0, |n| {
        is_complex(n, "T");
        Ok(input_parts(n, 0)?.1.into())
    }),
    rule("Real", 0, |n| {
        is_complex(n, "T");
        Ok(input_parts(n, 0)?.0.into())
    }),
];

fn input_parts(n: &mut NodeCx<'_>, input: usize) -> Result<(Value, Value)> {
    is_complex(n, "T");
    let x = n.input(input)?;
    parts(n, x)
}

/// The real and the imaginary part.
pub(super) fn parts(n: &mut NodeCx<'_>, x: Value) -> Result<(Value, Value)> {
    let (first, second) = (n.i64(0)?, n.i64(1)?);
    Ok((n.gather(x, first, -1)?, n.gather(x, second, -1)?))
}

/// Complex numbers of these parts, which have one shape.
pub(super) fn pair(n: &mut NodeCx<'_>, re: Value, im: Value) -> Result<Value> {
    let (re, im) = (n.unsqueeze(re, &[-1])?, n.unsqueeze(im, &[-1])?);
    n.emit(Concat { axis: -1 }, &[re, im])
}

/// Real numbers as complex ones.
pub(super) fn of_real(n: &mut NodeCx<'_>, re: Value) -> Result<Value> {
    let (zero, shape) = (n.scalar_like(re, 0.0)?, n.shape_of(re)?);
    let im = n.stretch(zero, shape)?;
    pair(n, re, im)
}

pub(super) fn conjugate(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let sign = n.constant(carafe_tensor::Tensor::from_f64(n.ty(x), &[2], &[1.0, -1.0])?)?;
    n.emit(Multiply::default(), &[x, sign])
}

pub(super) fn magnitude(n: &mut NodeCx<'_>, re: Value, im: Value) -> Result<Value> {
    let (a, b) = (n.times(re, re)?, n.times(im, im)?);
    let sum = n.plus(a, b)?;
    n.sqrt(sum)
}

pub(super) fn product(n: &mut NodeCx<'_>, x: Value, y: Value) -> Result<Value> {
    let ((a, b), (c, d)) = (parts(n, x)?, parts(n, y)?);
    let (ac, bd, ad, bc) = (n.times(a, c)?, n.times(b, d)?, n.times(a, d)?, n.times(b, c)?);
    let (re, im) = (n.minus(ac, bd)?, n.plus(ad, bc)?);
    pair(n, re, im)
}

/// `1 / x`.
pub(super) fn reciprocal(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let (a, b) = parts(n, x)?;
    let (aa, bb) = (n.times(a, a)?, n.times(b, b)?);
    let norm = n.plus(aa, bb)?;
    let (re, im) = (n.over(a, norm)?, n.over(b, norm)?);
    let im = n.emit(Negative, &[im])?;
    pair(n, re, im)
}

pub(super) fn quotient(n: &mut NodeCx<'_>, x: Value, y: Value) -> Result<Value> {
    let by = reciprocal(n, y)?;
    product(n, x, by)
}

/// `exp(x)`.
pub(super) fn exp(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let (a, b) = parts(n, x)?;
    let (scale, cos, sin) = (n.emit(Exp, &[a])?, n.emit(Cos, &[b])?, n.emit(Sin, &[b])?);
    let (re, im) = (n.times(scale, cos)?, n.times(scale, sin)?);
    pair(n, re, im)
}

/// `log(x)`.
pub(super) fn log(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let (a, b) = parts(n, x)?;
    let size = magnitude(n, a, b)?;
    let re = n.emit(Log, &[size])?;
    let im = super::binary::atan2(n, b, a)?;
    pair(n, re, im)
}

/// The square root with a real part that is not negative.
pub(super) fn sqrt(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let (a, b) = parts(n, x)?;
    let size = magnitude(n, a, b)?;
    let (sum, difference) = (n.plus(size, a)?, n.minus(size, a)?);
    let zero = n.scalar_like(a, 0.0)?;
    let (sum, difference) = (n.max(sum, zero)?, n.max(difference, zero)?);
    let (half_sum, half_difference) = (n.times_number(sum, 0.5)?, n.times_number(difference, 0.5)?);
    let (re, im) = (n.sqrt(half_sum)?, n.sqrt(half_difference)?);
    let below = n.less(b, zero)?;
    let negative = n.emit(Negative, &[im])?;
    let im = n.choose(below, negative, im)?;
    pair(n, re, im)
}

/// `sin(x)`.
pub(super) fn sin(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let (a, b) = parts(n, x)?;
    let (sin, cos, sinh, cosh) = trigonometric(n, a, b)?;
    let (re, im) = (n.times(sin, cosh)?, n.times(cos, sinh)?);
    pair(n, re, im)
}

/// `cos(x)`.
pub(super) fn cos(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let (a, b) = parts(n, x)?;
    let (sin, cos, sinh, cosh) = trigonometric(n, a, b)?;
    let (re, im) = (n.times(cos, cosh)?, n.times(sin, sinh)?);
    let im = n.emit(Negative, &[im])?;
    pair(n, re, im)
}

fn trigonometric(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<(Value, Value, Value, Value)> {
    Ok((n.emit(Sin, &[a])?, n.emit(Cos, &[a])?, n.emit(Sinh, &[b])?, n.emit(Cosh, &[b])?))
}

/// Whether both parts are equal.
pub(super) fn equal(n: &mut NodeCx<'_>, x: Value, y: Value) -> Result<Value> {
    let ((a, b), (c, d)) = (parts(n, x)?, parts(n, y)?);
    let (re, im) = (n.equal(a, c)?, n.equal(b, d)?);
    n.and(re, im)
}

/// An axis that may count from the end, so that it skips the pairs of complex numbers.
pub(super) fn axis_of(axis: i64, complex: bool) -> i64 {
    if complex && axis < 0 { axis - 1 } else { axis }
}

/// Axes that may count from the end, so that they skip the pairs of complex numbers.
pub(super) fn axes_of(n: &mut NodeCx<'_>, axes: Value, complex: bool) -> Result<Value> {
    let axes = i64_vector(n, axes)?;
    if !complex {
        return Ok(axes);
    }
    let zero = n.i64(0)?;
    let negative = n.less(axes, zero)?;
    let before = n.plus_number(axes, -1.0)?;
    n.choose(negative, before, axes)
}

/// An i64 list over axes, with a further value for the axis of the pairs.
pub(super) fn list_of(n: &mut NodeCx<'_>, list: Value, complex: bool, of_pairs: i64) -> Result<Value> {
    let list = i64_vector(n, list)?;
    if !complex {
        return Ok(list);
    }
    let more = n.i64s(&[of_pairs])?;
    n.concat(&[list, more], 0)
}

/// The shape without the axis of the pairs.
pub(super) fn shape_of(n: &mut NodeCx<'_>, x: Value, complex: bool) -> Result<Value> {
    let shape = n.shape_of(x)?;
    if complex { n.part(shape, 0, -1, 0) } else { Ok(shape) }
}

/// Cast between real and complex numbers.
pub(super) fn cast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["Truncate"]);
    let from = is_complex(n, "SrcT");
    let to = is_complex(n, "DstT");
    let ty = element_type(n, "DstT", ElementType::F32)?;
    let x = n.input(0)?;
    let x = match (from, to) {
        (true, false) => parts(n, x)?.0,
        _ => x,
    };
    let y = super::unary::converted(n, x, ty)?;
    Ok(if to && !from { of_real(n, y)? } else { y }.into())
}

/// `atan` of a real number, for callers that work on parts.
pub(super) fn atan(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    n.emit(Atan, &[x])
}
