//! Functions of single elements, and softmax.

use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result};
use carafe_ops::activation::gelu::GeluApproximation;
use carafe_ops::activation::{Elu, Gelu, HSwish, LogSoftmax, PRelu, Relu, Sigmoid, Softmax};
use carafe_ops::logic::LogicalNot;
use carafe_ops::math::round::RoundMode;
use carafe_ops::math::{Abs, Ceiling, Cos, Exp, Floor, Log, Negative, Round, Sign, Sin, Sqrt, Tanh};

pub(crate) const RULES: &[StaticRule] = &[
    rule("ABS", 1, |n| same(n, Abs)),
    rule("CEIL", 1, |n| same(n, Ceiling)),
    rule("COS", 1, |n| same(n, Cos)),
    rule("ELU", 1, |n| same(n, Elu { alpha: 1.0 })),
    rule("EXP", 1, |n| same(n, Exp)),
    rule("FLOOR", 1, |n| same(n, Floor)),
    rule("GELU", 1, gelu),
    rule("HARD_SWISH", 1, |n| same(n, HSwish)),
    rule("LEAKY_RELU", 1, leaky_relu),
    rule("LOG", 1, |n| same(n, Log)),
    rule("LOGICAL_NOT", 1, |n| same(n, LogicalNot)),
    rule("LOGISTIC", 1, |n| same(n, Sigmoid)),
    rule("LOG_SOFTMAX", 1, |n| same(n, LogSoftmax { axis: -1 })),
    rule("NEG", 1, |n| same(n, Negative)),
    rule("PRELU", 1, prelu),
    rule("RELU", 1, |n| same(n, Relu)),
    rule("RELU6", 1, |n| between(n, 0.0, 6.0)),
    rule("RELU_0_TO_1", 1, |n| between(n, 0.0, 1.0)),
    rule("RELU_N1_TO_1", 1, |n| between(n, -1.0, 1.0)),
    rule("ROUND", 1, |n| same(n, Round { mode: RoundMode::HalfToEven })),
    rule("RSQRT", 1, rsqrt),
    rule("SIGN", 1, |n| same(n, Sign)),
    rule("SIN", 1, |n| same(n, Sin)),
    rule("SOFTMAX", 1, softmax),
    rule("SQRT", 1, |n| same(n, Sqrt)),
    rule("SQUARE", 1, square),
    rule("STABLEHLO_ABS", 1, |n| hlo(n, Abs)),
    rule("STABLEHLO_CBRT", 1, cbrt),
    rule("STABLEHLO_COSINE", 1, |n| hlo(n, Cos)),
    rule("STABLEHLO_EXPONENTIAL", 1, |n| hlo(n, Exp)),
    rule("STABLEHLO_FLOOR", 1, |n| hlo(n, Floor)),
    rule("STABLEHLO_LOG", 1, |n| hlo(n, Log)),
    rule("STABLEHLO_LOGISTIC", 1, |n| hlo(n, Sigmoid)),
    rule("STABLEHLO_NEGATE", 1, |n| hlo(n, Negative)),
    rule("STABLEHLO_RSQRT", 1, |n| {
        n.ignore(super::shapes::DECLARED);
        rsqrt(n)
    }),
    rule("STABLEHLO_TANH", 1, |n| hlo(n, Tanh)),
    rule("TANH", 1, |n| same(n, Tanh)),
];

fn same<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(n.emit(op, &[x])?.into())
}

fn hlo<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    n.ignore(super::shapes::DECLARED);
    same(n, op)
}

fn between(n: &mut NodeCx<'_>, low: f64, high: f64) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(n.between(x, low, high)?.into())
}

fn gelu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let approximate: bool = n.attr("approximate", false)?;
    let approximation_mode = if approximate { GeluApproximation::Tanh } else { GeluApproximation::Erf };
    same(n, Gelu { approximation_mode })
}

fn leaky_relu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, alpha) = (n.input(0)?, n.attr::<f64>("alpha", 0.0)?);
    let slope = n.scalar_like(x, alpha)?;
    let slope = n.reshape(slope, &[1])?;
    Ok(n.emit(PRelu, &[x, slope])?.into())
}

// A slope of one axis would lie along the second one of the data.
fn prelu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, mut slope) = (n.input(0)?, n.input(1)?);
    let (rank, own) = (n.known_rank(x)?, n.known_rank(slope)?);
    if own < rank {
        slope = n.unsqueeze(slope, &(0..(rank - own) as i64).collect::<Vec<_>>())?;
    }
    Ok(n.emit(PRelu, &[x, slope])?.into())
}

fn rsqrt(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let root = n.sqrt(x)?;
    let one = n.scalar_like(x, 1.0)?;
    Ok(n.over(one, root)?.into())
}

fn square(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(n.times(x, x)?.into())
}

fn softmax(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (mut x, beta) = (n.input(0)?, n.attr::<f64>("beta", 1.0)?);
    if beta != 1.0 {
        x = n.times_number(x, beta)?;
    }
    Ok(n.emit(Softmax { axis: -1 }, &[x])?.into())
}

fn cbrt(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(super::shapes::DECLARED);
    let x = n.input(0)?;
    let (size, sign) = (n.abs(x)?, n.emit(Sign, &[x])?);
    let root = n.power_number(size, 1.0 / 3.0)?;
    Ok(n.times(root, sign)?.into())
}
