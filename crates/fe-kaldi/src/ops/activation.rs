//! Functions of single elements, and softmax.

use super::cx::{array, columns};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result};
use carafe_ops::activation::{LogSoftmax, Relu, Sigmoid, SoftPlus, Softmax};
use carafe_ops::math::Tanh;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BlockSoftmax", 1, block_softmax),
    rule("HiddenSoftmax", 1, |n| same(n, Softmax { axis: 1 })),
    rule("LogSoftmaxComponent", 1, |n| same(n, LogSoftmax { axis: 1 })),
    rule("ParametricRelu", 1, parametric_relu),
    rule("PowerComponent", 1, power),
    rule("RectifiedLinearComponent", 1, |n| same(n, Relu)),
    rule("Sigmoid", 1, |n| same(n, Sigmoid)),
    rule("SigmoidComponent", 1, |n| same(n, Sigmoid)),
    rule("SoftHingeComponent", 1, |n| same(n, SoftPlus)),
    rule("Softmax", 1, |n| same(n, Softmax { axis: 1 })),
    rule("SoftmaxComponent", 1, softmax),
    rule("Tanh", 1, |n| same(n, Tanh)),
    rule("TanhComponent", 1, |n| same(n, Tanh)),
];

/// Sizes, which the input has already.
const SIZES: &[&str] = &["BlockDim", "Dim", "InputDim", "OutputDim"];

fn same<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    n.ignore(SIZES);
    let x = n.input(0)?;
    Ok(n.emit(op, &[x])?.into())
}

// No share is smaller than this, so that it has a logarithm.
fn softmax(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    let x = n.input(0)?;
    let y = n.emit(Softmax { axis: 1 }, &[x])?;
    let floor = n.scalar_like(y, 1e-20)?;
    Ok(n.max(y, floor)?.into())
}

// One for each block of columns.
fn block_softmax(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    let (x, blocks): (_, Vec<i64>) = (n.input(0)?, n.required("Context")?);
    let whole = columns(n, x)?;
    if blocks.iter().any(|b| *b <= 0) || blocks.iter().copied().reduce(i64::saturating_add) != Some(whole) {
        return Err(n.fail(format!("blocks of {blocks:?} do not make {whole} columns")));
    }
    let (mut at, mut parts) = (0, vec![]);
    for block in blocks {
        let part = n.part(x, at, at + block, 1)?;
        parts.push(n.emit(Softmax { axis: 1 }, &[part])?);
        at += block;
    }
    Ok(n.concat(&parts, 1)?.into())
}

fn parametric_relu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    let x = n.input(0)?;
    let (above, below) = (array(n, "Alpha")?, array(n, "Beta")?);
    let zero = n.scalar_like(x, 0.0)?;
    let (is_above, above, below) = (n.greater(x, zero)?, n.times(x, above)?, n.times(x, below)?);
    Ok(n.choose(is_above, above, below)?.into())
}

fn power(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    let (x, by) = (n.input(0)?, n.attr::<f64>("Power", 2.0)?);
    let x = n.abs(x)?;
    Ok(n.power_number(x, by)?.into())
}
