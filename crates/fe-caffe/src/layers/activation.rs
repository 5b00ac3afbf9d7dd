//! Element by element: rectifiers, sigmoids and what Caffe calls neuron layers.

use super::cx::LayerCx;
use super::fillers;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result};
use carafe_ops::activation::{Clamp, Elu, HSwish, Mish, PRelu, Relu, Sigmoid, SoftPlus, Swish};
use carafe_ops::compare::Greater;
use carafe_ops::math::{Abs, Exp, Log, Tanh};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("AbsVal", 0, |n| plain(n, Abs)),
    rule("BNLL", 0, |n| plain(n, SoftPlus)),
    rule("Clip", 0, clip),
    rule("ELU", 0, elu),
    rule("Exp", 0, exp),
    rule("HSwish", 0, |n| plain(n, HSwish)),
    rule("Log", 0, log),
    rule("Mish", 0, |n| plain(n, Mish)),
    rule("PReLU", 0, prelu),
    rule("Power", 0, power),
    rule("ReLU", 0, relu),
    rule("ReLU6", 0, relu6),
    rule("Sigmoid", 0, |n| plain(n, Sigmoid)),
    rule("Swish", 0, swish),
    rule("TanH", 0, |n| plain(n, Tanh)),
    rule("Threshold", 0, threshold),
];

fn plain<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    n.ignore(&["engine"]);
    let x = n.bottom()?;
    Ok(n.emit(op, &[x])?.into())
}

fn relu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["engine"]);
    let x = n.bottom()?;
    let slope: f32 = n.attr("negative_slope", 0.0)?;
    if slope == 0.0 {
        return Ok(n.emit(Relu, &[x])?.into());
    }
    let slope = n.floats(&[1], &[slope])?;
    Ok(n.emit(PRelu, &[x, slope])?.into())
}

fn relu6(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let max: f64 = n.attr("n", 6.0)?;
    n.ignore(&["negative_slope", "engine"]);
    Ok(n.emit(Clamp { min: 0.0, max }, &[x])?.into())
}

fn prelu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let shared: bool = n.attr("channel_shared", false)?;
    let channels = match (shared, n.shape(x).dims()) {
        (true, _) => 1,
        (false, Some(dims)) => match dims.get(1).map(|d| d.size()) {
            Some(Some(c)) => c,
            Some(None) => n.blob_tensor(0)?.len(),
            None => 1,
        },
        (false, None) => n.blob_tensor(0)?.len(),
    };
    n.takes_blobs(1)?;
    let slope = fillers::blob_or_value(n, 0, &[channels], "filler", 0.25)?;
    Ok(n.emit(PRelu, &[x, slope])?.into())
}

fn elu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let alpha = n.attr("alpha", 1.0)?;
    Ok(n.emit(Elu { alpha }, &[x])?.into())
}

fn swish(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let beta: f64 = n.attr("beta", 1.0)?;
    if beta == 1.0 {
        return Ok(n.emit(Swish, &[x])?.into());
    }
    let beta = n.scalar_like(x, beta)?;
    Ok(n.emit(Swish, &[x, beta])?.into())
}

fn clip(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let (min, max) = (n.required("min")?, n.required("max")?);
    Ok(n.emit(Clamp { min, max }, &[x])?.into())
}

// (shift + scale * x) ^ power
fn power(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let power: f64 = n.attr("power", 1.0)?;
    let inner = shifted(n, x)?;
    let y = if power == 1.0 { inner } else { n.power_number(inner, power)? };
    Ok(y.into())
}

fn shifted(n: &mut NodeCx<'_>, x: carafe_graph::Value) -> Result<carafe_graph::Value> {
    let (scale, shift): (f64, f64) = (n.attr("scale", 1.0)?, n.attr("shift", 0.0)?);
    let y = n.times_number(x, scale)?;
    n.plus_number(y, shift)
}

// The logarithm of a base; -1 stands for e.
fn log_of_base(n: &NodeCx<'_>) -> Result<f64> {
    let base: f64 = n.attr("base", -1.0)?;
    match base {
        -1.0 => Ok(1.0),
        b if b > 0.0 => Ok(b.ln()),
        b => Err(n.fail(format!("`base` must be positive, or -1 for e, found {b}"))),
    }
}

// base ^ (shift + scale * x)
fn exp(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let factor = log_of_base(n)?;
    let inner = shifted(n, x)?;
    let inner = n.times_number(inner, factor)?;
    Ok(n.emit(Exp, &[inner])?.into())
}

// The logarithm of shift + scale * x.
fn log(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let factor = log_of_base(n)?;
    if factor == 0.0 {
        return Err(n.fail("`base` must not be 1"));
    }
    let inner = shifted(n, x)?;
    let y = n.emit(Log, &[inner])?;
    Ok(n.times_number(y, 1.0 / factor)?.into())
}

fn threshold(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let threshold: f64 = n.attr("threshold", 0.0)?;
    let threshold = n.scalar_like(x, threshold)?;
    let above = n.emit(Greater::default(), &[x, threshold])?;
    Ok(n.convert(above, ElementType::F32)?.into())
}
