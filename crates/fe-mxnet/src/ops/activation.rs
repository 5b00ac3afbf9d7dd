//! Activation and LeakyReLU, each several functions by `act_type`, and the functions that are operators themselves.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::gelu::GeluApproximation;
use carafe_ops::activation::{Elu, Gelu, HardSigmoid, PRelu, Relu, Selu, Sigmoid, SoftPlus, SoftSign};
use carafe_ops::math::Tanh;

pub(super) const RULES: &[StaticRule] = &[
    rule("Activation", 0, activation),
    rule("LeakyReLU", 0, leaky_relu),
    rule("_npx_relu", 0, |n| one(n, Relu)),
    rule("_npx_sigmoid", 0, |n| one(n, Sigmoid)),
    rule("clip", 0, clip),
    rule("hard_sigmoid", 0, hard_sigmoid),
    rule("relu", 0, |n| one(n, Relu)),
    rule("sigmoid", 0, |n| one(n, Sigmoid)),
    rule("smooth_l1", 0, smooth_l1),
    rule("softsign", 0, |n| one(n, SoftSign)),
];

fn one<O: carafe_graph::Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(n.emit(op, &[x])?.into())
}

/// One of the functions of Activation.
pub(super) fn activate(n: &mut NodeCx<'_>, x: Value, function: &str) -> Result<Value> {
    match function {
        "relu" => n.emit(Relu, &[x]),
        "sigmoid" => n.emit(Sigmoid, &[x]),
        "tanh" => n.emit(Tanh, &[x]),
        "softrelu" => n.emit(SoftPlus, &[x]),
        "softsign" => n.emit(SoftSign, &[x]),
        other => Err(n.unknown_word("act_type", other, "relu, sigmoid, tanh, softrelu, softsign")),
    }
}

fn activation(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let function: String = n.required("act_type")?;
    Ok(activate(n, x, &function)?.into())
}

fn leaky_relu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (slope, bounds) = (n.float("slope", 0.25)?, [n.float("lower_bound", 0.125)?, n.float("upper_bound", 0.334)?]);
    let sloped = |n: &mut NodeCx<'_>, slope: f64| {
        let slope = n.scalar_like(x, slope)?;
        let slope = n.reshape(slope, &[1])?;
        n.emit(PRelu, &[x, slope])
    };
    let y = match n.word("act_type", "leaky").as_str() {
        "leaky" if slope == 0.0 => n.emit(Relu, &[x])?,
        "leaky" => sloped(n, slope)?,
        // Random while training, their mean when not.
        "rrelu" => sloped(n, (bounds[0] + bounds[1]) / 2.0)?,
        "prelu" => {
            let gamma = n.input(1)?;
            let gamma = n.convert_like(gamma, x)?;
            n.emit(PRelu, &[x, gamma])?
        }
        "elu" => n.emit(Elu { alpha: slope }, &[x])?,
        "gelu" => n.emit(Gelu { approximation_mode: GeluApproximation::Erf }, &[x])?,
        "selu" => {
            let (alpha, lambda) = (n.scalar_like(x, 1.6732632423543772)?, n.scalar_like(x, 1.0507009873554805)?);
            n.emit(Selu, &[x, alpha, lambda])?
        }
        other => return Err(n.unknown_word("act_type", other, "leaky, prelu, elu, gelu, selu, rrelu")),
    };
    Ok(y.into())
}

fn clip(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (min, max) = (n.opt_float("a_min")?, n.opt_float("a_max")?);
    let y = match (min, max) {
        (Some(min), Some(max)) => n.between(x, min, max)?,
        (Some(min), None) => {
            let min = n.scalar_like(x, min)?;
            n.max(x, min)?
        }
        (None, Some(max)) => {
            let max = n.scalar_like(x, max)?;
            n.min(x, max)?
        }
        (None, None) => x,
    };
    Ok(y.into())
}

fn hard_sigmoid(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (alpha, beta) = (n.float("alpha", 0.2)?, n.float("beta", 0.5)?);
    let (alpha, beta) = (n.scalar_like(x, alpha)?, n.scalar_like(x, beta)?);
    Ok(n.emit(HardSigmoid, &[x, alpha, beta])?.into())
}

// A parabola around zero, lines outside.
fn smooth_l1(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let sigma2 = n.float("scalar", 1.0)?.powi(2);
    let distance = n.abs(x)?;
    let square = n.times(x, x)?;
    let inside = n.times_number(square, 0.5 * sigma2)?;
    let outside = n.plus_number(distance, -0.5 / sigma2)?;
    let limit = n.scalar_like(x, 1.0 / sigma2)?;
    let is_inside = n.less(distance, limit)?;
    Ok(n.choose(is_inside, inside, outside)?.into())
}
