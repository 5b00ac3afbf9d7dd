//! Normalizations.

use super::slots::{Slots, in_channels_first};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::normalization::mvn::EpsMode;
use carafe_ops::normalization::{BatchNormInference, GroupNormalization, Lrn, Mvn};

pub(super) const RULES: &[StaticRule] = &[
    rule("affine_channel", 0, affine_channel),
    rule("batch_norm", 0, batch_norm),
    rule("dropout", 0, dropout),
    rule("fused_rms_norm_quant", 0, rms_norm),
    rule("group_norm", 0, group_norm),
    rule("instance_norm", 0, instance_norm),
    rule("layer_norm", 0, layer_norm),
    rule("lrn", 0, lrn),
    rule("sync_batch_norm", 0, batch_norm),
];

fn batch_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let (mean, variance) = (n.slot("Mean")?, n.slot("Variance")?);
    let (scale, bias) = (n.opt_slot("Scale")?, n.opt_slot("Bias")?);
    let scale = match scale {
        Some(v) => v,
        None => filled_like(n, mean, 1.0)?,
    };
    let bias = match bias {
        Some(v) => v,
        None => filled_like(n, mean, 0.0)?,
    };
    n.ignore(&["momentum", "use_global_stats"]);
    n.ignore_slots(&["MomentumTensor"]);
    let op = BatchNormInference { epsilon: n.attr("epsilon", 1e-5)? };
    let is_last = n.is_channels_last("data_layout")? && n.rank(x).is_none_or(|r| r > 2);
    let out = in_channels_first(n, x, is_last, |n, x| n.emit(op, &[x, scale, bias, mean, variance]))?;
    Ok(n.give(&[("Y", out)]))
}

fn filled_like(n: &mut NodeCx<'_>, like: Value, value: f64) -> Result<Value> {
    let number = n.number(like, value)?;
    let shape = n.shape_of(like)?;
    n.stretch(number, shape)
}

// A vector along the channels, ready to meet a tensor of this rank.
fn along_channels(n: &mut NodeCx<'_>, v: Value, rank: usize) -> Result<Value> {
    let mut shape = vec![1, -1];
    shape.extend(vec![1; rank.saturating_sub(2)]);
    n.reshape(v, &shape)
}

fn affine_channel(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, scale, bias) = (n.slot("X")?, n.slot("Scale")?, n.slot("Bias")?);
    let is_last = n.is_channels_last("data_layout")?;
    let out = in_channels_first(n, x, is_last, |n, x| {
        let rank = n.known_rank(x)?;
        let (scale, bias) = (along_channels(n, scale, rank)?, along_channels(n, bias, rank)?);
        let y = n.times(x, scale)?;
        n.plus(y, bias)
    })?;
    Ok(n.give(&[("Out", out)]))
}

// Without training `upscale_in_train` changes nothing; the older way scales now.
fn dropout(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let kind: Option<String> = match n.opt_attr("dropout_implementation")? {
        Some(kind) => Some(kind),
        None => n.opt_attr("mode")?,
    };
    let p = n.number_of("dropout_prob", &["p", "DropoutProbTensor"], 0.5, x)?;
    n.ignore(&["p", "seed", "fix_seed", "axis", "mode"]);
    n.ignore_slots(&["Seed"]);
    let out = match kind.as_deref().unwrap_or("downgrade_in_infer") {
        "upscale_in_train" => x,
        "downgrade_in_infer" => {
            let kept = n.sub_from(1.0, p)?;
            n.times(x, kept)?
        }
        other => return Err(n.unsupported(format!("`dropout_implementation` is `{other}`"))),
    };
    Ok(n.give(&[("Out", out)]))
}

fn group_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let (scale, bias) = (n.opt_slot("Scale")?, n.opt_slot("Bias")?);
    let op = GroupNormalization { num_groups: n.attr("groups", 1)?, epsilon: n.attr("epsilon", 1e-5)? };
    let is_last = n.is_channels_last("data_layout")?;
    let out = in_channels_first(n, x, is_last, |n, x| {
        let mut both = vec![];
        for (given, value) in [(scale, 1.0), (bias, 0.0)] {
            both.push(match given {
                Some(v) => v,
                None => {
                    let number = n.number(x, value)?;
                    let size = n.size(x, 1)?;
                    n.stretch(number, size)?
                }
            });
        }
        n.emit(op, &[x, both[0], both[1]])
    })?;
    Ok(n.give(&[("Y", out)]))
}

// Deviations from the mean over axes, as a part of their standard deviation.
fn normalized(n: &mut NodeCx<'_>, x: Value, axes: &[i64], eps: f32) -> Result<Value> {
    let axes = n.i64s(axes)?;
    n.put(Mvn { eps, normalize_variance: true, eps_mode: EpsMode::InsideSqrt }, &[x, axes])
}

fn instance_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let (scale, bias) = (n.opt_slot("Scale")?, n.opt_slot("Bias")?);
    let eps: f32 = n.attr("epsilon", 1e-5)?;
    n.ignore(&["momentum", "data_format"]);
    let rank = n.known_rank(x)?;
    let mut out = normalized(n, x, &(2..rank as i64).collect::<Vec<_>>(), eps)?;
    if let Some(scale) = scale {
        let scale = along_channels(n, scale, rank)?;
        out = n.times(out, scale)?;
    }
    if let Some(bias) = bias {
        let bias = along_channels(n, bias, rank)?;
        out = n.plus(out, bias)?;
    }
    Ok(n.give(&[("Y", out)]))
}

// Scale and bias are vectors over all the axes from `begin_norm_axis` on.
fn layer_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let (scale, bias) = (n.opt_slot("Scale")?, n.opt_slot("Bias")?);
    let eps: f32 = n.attr("epsilon", 1e-5)?;
    let first: i64 = n.attr("begin_norm_axis", 1)?;
    let rank = n.known_rank(x)?;
    let first = n.axis(first, rank)?;
    let axes: Vec<i64> = (first as i64..rank as i64).collect();
    let mut out = normalized(n, x, &axes, eps)?;
    let fit = |n: &mut NodeCx<'_>, v: Value| match first + 1 == rank {
        true => Ok(v),
        false => {
            let shape = n.shape_of(x)?;
            let shape = n.part(shape, first as i64, rank as i64, 0)?;
            n.reshaped(v, shape, false)
        }
    };
    if let Some(scale) = scale {
        let scale = fit(n, scale)?;
        out = n.times(out, scale)?;
    }
    if let Some(bias) = bias {
        let bias = fit(n, bias)?;
        out = n.plus(out, bias)?;
    }
    let mut named = vec![("Y", out)];
    if n.wants("Mean") || n.wants("Variance") {
        let mean = n.mean_over(x, &axes, true)?;
        let centred = n.minus(x, mean)?;
        let squares = n.times(centred, centred)?;
        let variance = n.mean_over(squares, &axes, true)?;
        let (mean, variance) = (n.reshape(mean, &[-1])?, n.reshape(variance, &[-1])?);
        named.extend([("Mean", mean), ("Variance", variance)]);
    }
    Ok(n.give(&named))
}

// x / (k + alpha * sum of squares of the channels around)^beta.
fn lrn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let size: i64 = n.attr("n", 5)?;
    let alpha: f32 = n.attr("alpha", 1e-4)?;
    let op = Lrn { alpha: alpha * size as f32, beta: n.attr("beta", 0.75)?, bias: n.attr("k", 2.0)?, size };
    let is_last = n.is_channels_last("data_format")?;
    let out = in_channels_first(n, x, is_last, |n, x| {
        let axes = n.i64s(&[1])?;
        n.emit(op, &[x, axes])
    })?;
    Ok(n.give(&[("Out", out)]))
}

// x / sqrt(mean of squares + epsilon), scaled; a residual and a bias go in first.
fn rms_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut x = n.slot("X")?;
    let (bias, residual) = (n.opt_slot("bias")?, n.opt_slot("residual")?);
    let (scale, shift) = (n.opt_slot("norm_weight")?, n.opt_slot("norm_bias")?);
    let eps: f64 = n.attr("epsilon", 1e-5)?;
    let first: i64 = n.attr("begin_norm_axis", 1)?;
    let quantized: f64 = n.attr("quant_scale", -1.0)?;
    n.ignore(&["quant_round_type", "quant_max_bound", "quant_min_bound"]);
    if quantized > 0.0 {
        return Err(n.unsupported("`quant_scale` is set: the result is quantized"));
    }
    for v in [bias, residual].into_iter().flatten() {
        x = n.plus(x, v)?;
    }
    let rank = n.known_rank(x)?;
    let first = n.axis(first, rank)? as i64;
    let axes: Vec<i64> = (first..rank as i64).collect();
    let squares = n.times(x, x)?;
    let mean = n.mean_over(squares, &axes, true)?;
    let mean = n.plus_number(mean, eps)?;
    let factor = n.power_number(mean, -0.5)?;
    let mut out = n.times(x, factor)?;
    if let Some(scale) = scale {
        out = n.times(out, scale)?;
    }
    if let Some(shift) = shift {
        out = n.plus(out, shift)?;
    }
    Ok(n.give(&[("Out", out), ("residual_out", x)]))
}
