//! Normalizations. Means and variances of f16 and bf16 data are computed in f32 where the file asks for it, and rounded
//! before scale and bias meet them.

use super::pooling::axes_from;
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::{Broadcast, Unsqueeze};
use carafe_ops::normalization::mvn::EpsMode;
use carafe_ops::normalization::{BatchNormInference, GroupNormalization, Lrn, Mvn};
use carafe_ops::reduce::{ReduceL1, ReduceL2, ReduceMean};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BatchNormalization", 1, |n| batch_normalization(n, Training::ByOutputs)),
    rule("BatchNormalization", 14, |n| batch_normalization(n, Training::ByAttribute)),
    rule("GroupNormalization", 18, |n| group_normalization(n, true)),
    rule("GroupNormalization", 21, |n| group_normalization(n, false)),
    rule("InstanceNormalization", 1, instance_normalization),
    rule("LRN", 1, lrn),
    rule("LayerNormalization", 17, layer_normalization),
    rule("LpNormalization", 1, lp_normalization),
    rule("MeanVarianceNormalization", 1, mean_variance_v1),
    rule("MeanVarianceNormalization", 9, mean_variance),
    rule("RMSNormalization", 23, rms_normalization),
];

/// How a file says that batch statistics are wanted.
#[derive(Clone, Copy, PartialEq)]
enum Training {
    ByOutputs,
    ByAttribute,
}

fn batch_normalization(n: &mut NodeCx<'_>, training: Training) -> Result<Outputs> {
    n.ignore(&["consumed_inputs", "is_test"]);
    let epsilon: f32 = n.attr("epsilon", 1e-5)?;
    let momentum: f64 = n.attr("momentum", 0.9)?;
    let spatial: bool = n.attr("spatial", true)?;
    let train = match training {
        Training::ByAttribute => n.attr("training_mode", false)?,
        Training::ByOutputs => (1..5).any(|i| n.wants_output(i)),
    };
    let data = n.input(0)?;
    // Statistics of f16 data may be f32: all of it is computed so, and only the result is rounded. Sums over a batch
    // need it in any case.
    let small = |ty: ElementType| matches!(ty, ElementType::F16 | ElementType::Bf16);
    let given = (1..5).map(|i| n.input(i)).collect::<Result<Vec<_>>>()?;
    let wide = small(n.ty(data)) && (train || given.iter().any(|&v| !small(n.ty(v))));
    let x = if wide { n.convert(data, ElementType::F32)? } else { data };
    let mut parameters = vec![];
    for v in given {
        parameters.push(n.convert_like(v, x)?);
    }
    let [scale, bias, mean, variance] = parameters[..] else { return Err(n.fail("four parameters are needed")) };
    if !spatial {
        if train {
            return Err(n.unsupported("training with `spatial` = 0 is not supported"));
        }
        let y = normalized(n, x, [scale, bias, mean, variance], epsilon)?;
        return Ok(n.convert_like(y, data)?.into());
    }
    if !train {
        let y = n.emit(BatchNormInference { epsilon }, &[x, scale, bias, mean, variance])?;
        return Ok(n.convert_like(y, data)?.into());
    }
    // All axes but that of the channels.
    let (batch, spatial) = (n.i64s(&[0])?, axes_from(n, x, 2)?);
    let axes = n.concat(&[batch, spatial], 0)?;
    let batch_mean = n.put(ReduceMean { keep_dims: true }, &[x, axes])?;
    let centred = n.minus(x, batch_mean)?;
    let squares = n.times(centred, centred)?;
    let batch_variance = n.put(ReduceMean { keep_dims: true }, &[squares, axes])?;
    let (batch_mean, batch_variance) = (n.reshape(batch_mean, &[-1])?, n.reshape(batch_variance, &[-1])?);
    let y = n.emit(BatchNormInference { epsilon }, &[x, scale, bias, batch_mean, batch_variance])?;
    let mut outputs: Vec<Item> = vec![n.convert_like(y, data)?.into()];
    for (i, (running, now)) in [(mean, batch_mean), (variance, batch_variance)].into_iter().enumerate() {
        let old = n.times_number(running, momentum)?;
        let new = n.times_number(now, 1.0 - momentum)?;
        let v = n.plus(old, new)?;
        let given = n.input(3 + i)?;
        outputs.push(n.convert_like(v, given)?.into());
    }
    if training == Training::ByOutputs {
        outputs.extend([n.convert_like(batch_mean, data)?.into(), n.convert_like(batch_variance, data)?.into()]);
    }
    outputs.truncate(n.n_outputs().max(1));
    Ok(Outputs(outputs))
}

// With parameters that broadcast.
fn normalized(n: &mut NodeCx<'_>, x: Value, parameters: [Value; 4], epsilon: f32) -> Result<Value> {
    let [scale, bias, mean, variance] = parameters;
    let variance = n.plus_number(variance, f64::from(epsilon))?;
    let deviation = n.sqrt(variance)?;
    let x = n.minus(x, mean)?;
    let x = n.over(x, deviation)?;
    let x = n.times(x, scale)?;
    n.plus(x, bias)
}

// Axes of 1 behind a vector of channels, as many as the data has spatial axes.
fn beside_channels(n: &mut NodeCx<'_>, v: Value, x: Value) -> Result<Value> {
    if let Some(rank) = n.rank(x) {
        let mut pattern = vec![-1];
        pattern.extend(vec![1; rank.saturating_sub(2)]);
        return n.reshape(v, &pattern);
    }
    let axes = axes_from(n, x, 2)?;
    let axes = n.plus_number(axes, -1.0)?;
    n.emit(Unsqueeze, &[v, axes])
}

fn mvn(n: &mut NodeCx<'_>, x: Value, axes: Value, eps: f32) -> Result<Value> {
    n.emit(Mvn { eps, normalize_variance: true, eps_mode: EpsMode::InsideSqrt }, &[x, axes])
}

fn instance_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    let epsilon: f32 = n.attr("epsilon", 1e-5)?;
    let (x, scale, bias) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let axes = axes_from(n, x, 2)?;
    let y = mvn(n, x, axes, epsilon)?;
    let scale = beside_channels(n, scale, x)?;
    let bias = beside_channels(n, bias, x)?;
    let y = n.times(y, scale)?;
    Ok(n.plus(y, bias)?.into())
}

fn group_normalization(n: &mut NodeCx<'_>, per_group: bool) -> Result<Outputs> {
    n.ignore(&["stash_type"]);
    let (epsilon, num_groups): (f32, i64) = (n.attr("epsilon", 1e-5)?, n.required("num_groups")?);
    if num_groups < 1 {
        return Err(n.fail(format!("attribute `num_groups` must be at least 1, found {num_groups}")));
    }
    let (x, mut scale, mut bias) = (n.input(0)?, n.input(1)?, n.input(2)?);
    if per_group {
        // Version 18 has one scale for all channels of a group.
        let channels = n.size(x, 1)?;
        let groups = n.i64s(&[num_groups])?;
        let each = n.over(channels, groups)?;
        let shape = n.concat(&[groups, each], 0)?;
        for v in [&mut scale, &mut bias] {
            let column = n.reshape(*v, &[-1, 1])?;
            let all = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[column, shape])?;
            *v = n.reshape(all, &[-1])?;
        }
    }
    Ok(n.emit(GroupNormalization { num_groups, epsilon }, &[x, scale, bias])?.into())
}

// The last axes, from `axis` on.
fn last_axes(n: &mut NodeCx<'_>, x: Value, axis: i64) -> Result<Value> {
    if (-64..0).contains(&axis) {
        let axes: Vec<i64> = (axis..0).collect();
        return n.i64s(&axes);
    }
    let rank = n.known_rank(x)?;
    let axis = n.axis(axis, rank)?;
    axes_from(n, x, axis)
}

// Whether statistics are to be computed in f32 though the data is smaller.
fn stashes_in_f32(n: &NodeCx<'_>, x: Value) -> Result<bool> {
    let stash: i64 = n.attr("stash_type", 1)?;
    Ok(stash == 1 && matches!(n.ty(x), ElementType::F16 | ElementType::Bf16))
}

fn layer_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    // Models of before it was standard spell it so, and nobody reads it.
    n.overlook(&["epsion"]);
    let (axis, epsilon): (i64, f32) = (n.attr("axis", -1)?, n.attr("epsilon", 1e-5)?);
    let (x, scale, bias) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    let wide = stashes_in_f32(n, x)?;
    let axes = last_axes(n, x, axis)?;
    let y = mvn(n, x, axes, epsilon)?;
    let scale = in_rows(n, x, axis, scale)?;
    // In the same models the result has the type of the scale.
    let y = n.convert_like(y, scale)?;
    let mut y = n.times(y, scale)?;
    if let Some(bias) = bias {
        let bias = in_rows(n, x, axis, bias)?;
        y = n.plus(y, bias)?;
    }
    let mut outputs = vec![y];
    if n.wants_output(1) || n.wants_output(2) {
        let x = if wide { n.convert(x, ElementType::F32)? } else { x };
        let mean = n.put(ReduceMean { keep_dims: true }, &[x, axes])?;
        let centred = n.minus(x, mean)?;
        let squares = n.times(centred, centred)?;
        let variance = n.put(ReduceMean { keep_dims: true }, &[squares, axes])?;
        let variance = n.plus_number(variance, f64::from(epsilon))?;
        outputs.extend([mean, n.power_number(variance, -0.5)?]);
        outputs.truncate(n.n_outputs());
    }
    Ok(outputs.into())
}

// A parameter given as one row of all that is normalized, in the shape of that.
fn in_rows(n: &mut NodeCx<'_>, x: Value, axis: i64, parameter: Value) -> Result<Value> {
    let (Some(dims), Some(1)) = (n.shape(x).dims(), n.rank(parameter)) else { return Ok(parameter) };
    let from = n.axis(axis, dims.len())?;
    let Some(sizes) = dims[from..].iter().map(|d| d.get()).collect::<Option<Vec<i64>>>() else { return Ok(parameter) };
    let all = sizes.iter().try_fold(1i64, |p, d| p.checked_mul(*d));
    if sizes.len() < 2 || all.is_none() || n.shape(parameter).dim(0).get() != all || sizes.last().copied() == all {
        return Ok(parameter);
    }
    n.warn(&format!("a parameter of [{}] is given as a row, the normalized axes are {sizes:?}", n.shape(parameter)));
    n.reshape(parameter, &sizes)
}

fn rms_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (axis, epsilon): (i64, f64) = (n.attr("axis", -1)?, n.attr("epsilon", 1e-5)?);
    let (x, scale) = (n.input(0)?, n.input(1)?);
    let wide = stashes_in_f32(n, x)?;
    let axes = last_axes(n, x, axis)?;
    let data = if wide { n.convert(x, ElementType::F32)? } else { x };
    let squares = n.power_number(data, 2.0)?;
    let mean = n.put(ReduceMean { keep_dims: true }, &[squares, axes])?;
    let mean = n.plus_number(mean, epsilon)?;
    let root = n.sqrt(mean)?;
    let y = n.over(data, root)?;
    let y = n.convert_like(y, x)?;
    let scale = n.convert_like(scale, y)?;
    Ok(n.times(y, scale)?.into())
}

fn lp_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (axis, p): (i64, i64) = (n.attr("axis", -1)?, n.attr("p", 2)?);
    let x = n.input(0)?;
    let axes = n.i64s(&[axis])?;
    let norm = match p {
        1 => n.emit(ReduceL1 { keep_dims: true }, &[x, axes])?,
        2 => n.emit(ReduceL2 { keep_dims: true }, &[x, axes])?,
        _ => return Err(n.fail(format!("attribute `p` must be 1 or 2, found {p}"))),
    };
    // Zeros stay zeros.
    let empty = n.equal_number(norm, 0.0)?;
    let one = n.scalar_like(norm, 1.0)?;
    let norm = n.choose(empty, one, norm)?;
    Ok(n.over(x, norm)?.into())
}

fn mean_variance(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axes: Vec<i64> = n.attr("axes", vec![0, 2, 3])?;
    let x = n.input(0)?;
    let axes = n.i64s(&axes)?;
    let op = Mvn { eps: 1e-9, normalize_variance: true, eps_mode: EpsMode::OutsideSqrt };
    Ok(n.emit(op, &[x, axes])?.into())
}

// Before it was standard.
fn mean_variance_v1(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let across: bool = n.attr("across_channels", false)?;
    let normalize_variance: bool = n.attr("normalize_variance", true)?;
    let x = n.input(0)?;
    let axes = axes_from(n, x, if across { 1 } else { 2 })?;
    let op = Mvn { eps: 1e-9, normalize_variance, eps_mode: EpsMode::OutsideSqrt };
    Ok(n.emit(op, &[x, axes])?.into())
}

fn lrn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let op = Lrn {
        alpha: n.attr("alpha", 1e-4)?,
        beta: n.attr("beta", 0.75)?,
        bias: n.attr("bias", 1.0)?,
        size: n.required("size")?,
    };
    let x = n.input(0)?;
    let axes = n.i64s(&[1])?;
    Ok(n.emit(op, &[x, axes])?.into())
}
