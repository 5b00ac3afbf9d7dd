//! Normalizations. Statistics of BatchNorm are those that training gathered; `fix_gamma`, which is on unless a file says
//! otherwise, makes every factor 1.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::Relu;
use carafe_ops::normalization::mvn::EpsMode;
use carafe_ops::normalization::{BatchNormInference, Lrn, Mvn};
use carafe_ops::reduce::ReduceMean;

pub(super) const RULES: &[StaticRule] = &[
    rule("BatchNorm", 0, |n| batch_norm(n, false)),
    rule("BatchNorm_v1", 0, |n| batch_norm(n, false)),
    rule("CuDNNBatchNorm", 0, |n| batch_norm(n, false)),
    rule("GroupNorm", 0, group_norm),
    rule("InstanceNorm", 0, instance_norm),
    rule("L2Normalization", 0, l2_normalization),
    rule("LRN", 0, lrn),
    rule("LayerNorm", 0, layer_norm),
    rule("_contrib_BatchNormWithReLU", 0, |n| batch_norm(n, true)),
    rule("_contrib_SyncBatchNorm", 0, |n| batch_norm(n, false)),
    rule("moments", 0, moments),
];

fn batch_norm(n: &mut NodeCx<'_>, with_relu: bool) -> Result<Outputs> {
    n.ignore(&["use_global_stats", "output_mean_var", "ndev", "key", "min_calib_range", "max_calib_range"]);
    let x = n.input(0)?;
    let mut parameters = vec![];
    for i in 1..5 {
        let v = n.input(i)?;
        parameters.push(n.convert_like(v, x)?);
    }
    let [mut gamma, beta, mean, variance] = parameters[..] else { return Err(n.fail("takes five inputs")) };
    let (eps, axis) = (n.float("eps", 1e-3)?, n.int("axis", 1)?);
    if n.flag("fix_gamma", true)? {
        gamma = n.filled_like(gamma, 1.0)?;
    }
    let is_second = axis == 1 || n.rank(x).is_some_and(|r| axis + r as i64 == 1);
    let mut y = if is_second {
        n.emit(BatchNormInference { epsilon: eps as f32 }, &[x, gamma, beta, mean, variance])?
    } else {
        let rank = n.known_rank(x)?;
        let at = n.axis(axis, rank)?;
        let variance = n.plus_number(variance, eps)?;
        let deviation = n.sqrt(variance)?;
        let factor = n.over(gamma, deviation)?;
        let shift = n.times(mean, factor)?;
        let shift = n.minus(beta, shift)?;
        let (factor, shift) = (n.along(factor, at, rank)?, n.along(shift, at, rank)?);
        let y = n.times(x, factor)?;
        n.plus(y, shift)?
    };
    if with_relu {
        y = n.emit(Relu, &[y])?;
    }
    Ok(vec![y, mean, variance].into())
}

// With mean 0 and variance 1 over some axes.
fn normalized(n: &mut NodeCx<'_>, x: Value, axes: &[i64], eps: f64) -> Result<Value> {
    let axes = n.i64s(axes)?;
    n.emit(Mvn { eps: eps as f32, normalize_variance: true, eps_mode: EpsMode::InsideSqrt }, &[x, axes])
}

fn scaled(n: &mut NodeCx<'_>, x: Value, factor: Value, shift: Value) -> Result<Value> {
    let y = n.times(x, factor)?;
    n.plus(y, shift)
}

fn instance_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, gamma, beta) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let eps = n.float("eps", 1e-3)?;
    let rank = n.known_rank(x)?;
    let axes: Vec<i64> = (2..rank as i64).collect();
    let y = normalized(n, x, &axes, eps)?;
    let (gamma, beta) = (n.along(gamma, 1, rank)?, n.along(beta, 1, rank)?);
    Ok(scaled(n, y, gamma, beta)?.into())
}

fn layer_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["output_mean_var"]);
    let (x, gamma, beta) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (eps, axis) = (n.float("eps", 1e-5)?, n.int("axis", -1)?);
    let y = normalized(n, x, &[axis], eps)?;
    let (gamma, beta) = match n.rank(x) {
        // A vector lies along the last axis by itself.
        _ if axis == -1 => (gamma, beta),
        _ => {
            let rank = n.known_rank(x)?;
            let at = n.axis(axis, rank)?;
            (n.along(gamma, at, rank)?, n.along(beta, at, rank)?)
        }
    };
    Ok(scaled(n, y, gamma, beta)?.into())
}

// Factors and shifts are one for each group.
fn group_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["output_mean_var"]);
    let (x, gamma, beta) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (eps, groups) = (n.float("eps", 1e-5)?, n.int("num_groups", 1)?);
    let shape = n.shape_of(x)?;
    let rows = n.reshape(x, &[0, groups, -1])?;
    let y = normalized(n, rows, &[2], eps)?;
    let (gamma, beta) = (n.along(gamma, 1, 3)?, n.along(beta, 1, 3)?);
    let y = scaled(n, y, gamma, beta)?;
    Ok(n.reshaped(y, shape, false)?.into())
}

// `x / sqrt(sum(x^2) + eps)`.
fn l2_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let eps = n.float("eps", 1e-10)?;
    let axes: Vec<i64> = match n.word("mode", "instance").as_str() {
        "channel" => vec![1],
        "instance" => (1..n.known_rank(x)? as i64).collect(),
        "spatial" => (2..n.known_rank(x)? as i64).collect(),
        other => return Err(n.unknown_word("mode", other, "instance, channel, spatial")),
    };
    let square = n.times(x, x)?;
    let sum = n.sum_over(square, &axes, true)?;
    let sum = n.plus_number(sum, eps)?;
    let length = n.sqrt(sum)?;
    Ok(n.over(x, length)?.into())
}

fn lrn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (alpha, beta, bias) = (n.float("alpha", 1e-4)?, n.float("beta", 0.75)?, n.float("knorm", 2.0)?);
    let size = n.needed_int("nsize")?;
    let axes = n.i64s(&[1])?;
    if bias <= 0.0 || bias == 1.0 {
        let op = Lrn { alpha: alpha as f32, beta: beta as f32, bias: bias as f32, size };
        return Ok(n.emit(op, &[x, axes])?.into());
    }
    // OpenVINO's CPU takes every bias for 1, so the factor goes out of the power.
    let op = Lrn { alpha: (alpha / bias) as f32, beta: beta as f32, bias: 1.0, size };
    let y = n.emit(op, &[x, axes])?;
    Ok(n.times_number(y, bias.powf(-beta))?.into())
}

fn moments(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let keep_dims = n.flag("keepdims", false)?;
    let axes = match n.opt_ints("axes")? {
        Some(axes) => axes,
        None => (0..n.known_rank(x)? as i64).collect(),
    };
    let axes = n.i64s(&axes)?;
    let mean = n.emit(ReduceMean { keep_dims: true }, &[x, axes])?;
    let difference = n.minus(x, mean)?;
    let square = n.times(difference, difference)?;
    let variance = n.emit(ReduceMean { keep_dims }, &[square, axes])?;
    let mean = if keep_dims { mean } else { n.emit(ReduceMean { keep_dims }, &[x, axes])? };
    Ok(vec![mean, variance].into())
}
