//! Fourier transforms and complex numbers, which have a last axis of two real ones.

use carafe_fe_tensorflow::ops::common::shapes::i64_vector;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::signal::Rdft;

pub(crate) const RULES: &[StaticRule] = &[
    rule("COMPLEX_ABS", 1, complex_abs),
    rule("IMAG", 1, |n| part(n, 1)),
    rule("REAL", 1, |n| part(n, 0)),
    rule("RFFT2D", 1, rfft2d),
];

fn rfft2d(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, lengths) = (n.input(0)?, n.input(1)?);
    let axes = n.i64s(&[-2, -1])?;
    let lengths = i64_vector(n, lengths)?;
    Ok(n.emit(Rdft, &[x, axes, lengths])?.into())
}

fn part(n: &mut NodeCx<'_>, which: i64) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(complex_part(n, x, which)?.into())
}

/// The real part of complex numbers, 0, or the imaginary one, 1.
pub(super) fn complex_part(n: &mut NodeCx<'_>, x: Value, which: i64) -> Result<Value> {
    let which = n.i64(which)?;
    n.gather(x, which, -1)
}

/// An axis of complex numbers as one of their real ones: negative axes are counted without the last one.
pub(super) fn complex_axis(axis: i64) -> i64 {
    if axis < 0 { axis - 1 } else { axis }
}

fn complex_abs(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let squares = n.times(x, x)?;
    let sum = n.sum_over(squares, &[-1], false)?;
    Ok(n.sqrt(sum)?.into())
}
