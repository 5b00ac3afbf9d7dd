//! Operations on single elements that have a counterpart of their own.

use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result};
use carafe_ops::{activation, arithmetic, math};

pub(crate) const RULES: &[StaticRule] = &[
    rule("Abs", 1, |n| same(n, math::Abs)),
    rule("Add", 7, |n| binary(n, arithmetic::Add::default())),
    rule("LeakyRelu", 1, leaky_relu),
    rule("Relu", 1, |n| same(n, activation::Relu)),
];

// One input, the same operation on our side.
fn same<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    let x = n.input(0)?;
    Ok(n.emit(op, &[x])?.into())
}

// Two inputs with numpy broadcasting.
fn binary<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    Ok(n.emit(op, &[a, b])?.into())
}

fn leaky_relu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    let alpha: f32 = n.attr("alpha", 0.01)?;
    let x = n.input(0)?;
    let slope = n.scalar_like(x, f64::from(alpha))?;
    Ok(n.emit(activation::PRelu, &[x, slope])?.into())
}
