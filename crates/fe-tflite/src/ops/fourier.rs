//! Fourier transforms and complex numbers, which have a last axis of two real ones.

use carafe_fe_tensorflow::ops::common::shapes::i64_vector;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
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
    let which = n.i64(which)?;
    Ok(n.gather(x, which, -1)?.into())
}

fn complex_abs(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let squares = n.times(x, x)?;
    let sum = n.sum_over(squares, &[-1], false)?;
    Ok(n.sqrt(sum)?.into())
}
