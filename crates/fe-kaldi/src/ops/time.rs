//! What descriptors say: values side by side, sums, and values that depend on the step.

use crate::graph::DESCRIPTOR;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::Result;
use carafe_ops::arithmetic::FloorMod;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(DESCRIPTOR, "Append", 1, append),
    rule_in(DESCRIPTOR, "Const", 1, constant),
    rule_in(DESCRIPTOR, "DimRange", 1, dim_range),
    rule_in(DESCRIPTOR, "Failover", 1, failover),
    rule_in(DESCRIPTOR, "Hold", 1, hold),
    rule_in(DESCRIPTOR, "IfDefined", 1, if_defined),
    rule_in(DESCRIPTOR, "Scale", 1, scale),
    rule_in(DESCRIPTOR, "Sum", 1, sum),
    rule_in(DESCRIPTOR, "Switch", 1, switch),
];

fn append(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let all = n.inputs()?;
    Ok(n.concat(&all, 1)?.into())
}

fn sum(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut all = n.inputs()?.into_iter();
    let first = all.next().ok_or_else(|| n.fail("there is nothing to add"))?;
    Ok(all.try_fold(first, |a, b| n.plus(a, b))?.into())
}

fn scale(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, by) = (n.input(0)?, n.required::<f64>("by")?);
    Ok(n.times_number(x, by)?.into())
}

// A row for every stream of the input.
fn constant(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let like = n.input(0)?;
    let (value, dim): (f64, i64) = (n.required("value")?, n.required("dim")?);
    let (value, streams, width) = (n.scalar(ElementType::F32, value)?, n.size(like, 0)?, n.i64s(&[dim])?);
    let shape = n.concat(&[streams, width], 0)?;
    Ok(n.stretch(value, shape)?.into())
}

fn dim_range(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (offset, dim): (i64, i64) = (n.required("dim-offset")?, n.required("dim")?);
    let whole = super::cx::columns(n, x)?;
    if offset < 0 || dim <= 0 || offset.checked_add(dim).is_none_or(|end| end > whole) {
        return Err(n.fail(format!("{dim} columns from {offset} on are not among {whole}")));
    }
    Ok(n.part(x, offset, offset + dim, 1)?.into())
}

// Zeros before the value is defined.
fn if_defined(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (step, x, from) = (n.input(0)?, n.input(1)?, n.required::<f64>("from")?);
    let zero = n.scalar_like(x, 0.0)?;
    let from = n.number(step, from)?;
    let is_defined = n.greater_equal(step, from)?;
    Ok(n.choose(is_defined, x, zero)?.into())
}

fn failover(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (step, a, b, from) = (n.input(0)?, n.input(1)?, n.input(2)?, n.required::<f64>("from")?);
    let from = n.number(step, from)?;
    let is_defined = n.greater_equal(step, from)?;
    Ok(n.choose(is_defined, a, b)?.into())
}

// The value at the first step and at every so many frames, else the one before.
fn hold(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (step, x, before) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (frames, phase): (f64, f64) = (n.required("frames")?, n.required("phase")?);
    let frames = n.number(step, frames)?;
    let rest = n.emit(FloorMod::default(), &[step, frames])?;
    let (is_due, is_first) = (n.equal_number(rest, phase)?, n.equal_number(step, 0.0)?);
    let takes = n.or(is_due, is_first)?;
    Ok(n.choose(takes, x, before)?.into())
}

// Each in its turn.
fn switch(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let all = n.inputs()?;
    let phase: i64 = n.required("phase")?;
    let (step, turns) = (all[0], &all[1..]);
    let count = turns.len() as i64;
    let period = n.number(step, count as f64)?;
    let rest = n.emit(FloorMod::default(), &[step, period])?;
    let mut y = *turns.last().ok_or_else(|| n.fail("there is nothing to take turns"))?;
    for (i, x) in turns.iter().enumerate().take(turns.len() - 1) {
        let due = n.equal_number(rest, (i as i64 + phase).rem_euclid(count) as f64)?;
        y = n.choose(due, *x, y)?;
    }
    Ok(y.into())
}
