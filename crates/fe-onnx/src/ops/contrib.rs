//! Operations of `com.microsoft` that fuse a few standard ones: activations with a bias, normalizations with a skip, and
//! matrix products. Those that are standard operations under another domain go to the standard rule.

use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::activation::gelu::GeluApproximation;
use carafe_ops::activation::{Clamp, Gelu, HardSigmoid, PRelu, Relu, Sigmoid};
use carafe_ops::linear::{Inverse, MatMul};
use carafe_ops::math::Tanh;
use carafe_ops::movement::Unsqueeze;
use carafe_ops::normalization::Mvn;
use carafe_ops::normalization::mvn::EpsMode;
use carafe_tensor::{ElementType, Tensor};

/// The domain of these operations.
pub(super) const MS: &str = "com.microsoft";

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(MS, "BiasAdd", 1, bias_add),
    rule_in(MS, "BiasGelu", 1, |n| biased_gelu(n, GeluApproximation::Erf)),
    rule_in(MS, "BiasSplitGelu", 1, bias_split_gelu),
    rule_in(MS, "ConvTranspose", 1, |n| standard(n, "ConvTranspose", 22)),
    rule_in(MS, "EmbedLayerNormalization", 1, embed_layer_normalization),
    rule_in(MS, "ExpandDims", 1, expand_dims),
    rule_in(MS, "FastGelu", 1, |n| biased_gelu(n, GeluApproximation::Tanh)),
    rule_in(MS, "FusedConv", 1, fused_conv),
    rule_in(MS, "FusedGemm", 1, fused_gemm),
    rule_in(MS, "FusedMatMul", 1, fused_mat_mul),
    rule_in(MS, "FusedMatMulActivation", 1, |n| {
        let y = product(n)?;
        Ok(activated(n, y)?.into())
    }),
    rule_in(MS, "GatherND", 1, |n| standard(n, "GatherND", 13)),
    rule_in(MS, "Gelu", 1, |n| biased_gelu(n, GeluApproximation::Erf)),
    rule_in(MS, "GemmFastGelu", 1, gemm_fast_gelu),
    rule_in(MS, "GridSample", 1, |n| standard(n, "GridSample", 16)),
    rule_in(MS, "GroupNorm", 1, group_norm),
    rule_in(MS, "Inverse", 1, |n| {
        let x = n.input(0)?;
        Ok(n.emit(Inverse { adjoint: false }, &[x])?.into())
    }),
    rule_in(MS, "LayerNormalization", 1, layer_normalization),
    rule_in(MS, "Pad", 1, |n| standard(n, "Pad", 21)),
    rule_in(MS, "QuickGelu", 1, quick_gelu),
    rule_in(MS, "Range", 1, range),
    rule_in(MS, "SimplifiedLayerNormalization", 1, simplified_layer_normalization),
    rule_in(MS, "SkipLayerNormalization", 1, skip_layer_normalization),
    rule_in(MS, "SkipSimplifiedLayerNormalization", 1, skip_simplified_layer_normalization),
    rule_in(MS, "TransposeMatMul", 1, fused_mat_mul),
    rule_in(MS, "Trilu", 1, |n| standard(n, "Trilu", 14)),
    rule_in(MS, "Unique", 1, |n| standard(n, "Unique", 11)),
    rule("SimplifiedLayerNormalization", 1, simplified_layer_normalization),
];

// The rule of the default domain.
fn standard(n: &mut NodeCx<'_>, op_type: &str, version: i64) -> Result<Outputs> {
    let rules = super::all();
    let found = rules.iter().filter(|r| r.domain.is_empty() && r.op_type == op_type && r.since <= version);
    match found.max_by_key(|r| r.since) {
        Some(rule) => (rule.translate)(n),
        None => Err(n.unsupported(format!("there is no rule for `{op_type}`"))),
    }
}

fn first(n: &NodeCx<'_>, outputs: Outputs) -> Result<Value> {
    match outputs.0.first() {
        Some(Item::Tensor(v)) => Ok(*v),
        _ => Err(n.fail("a tensor is expected")),
    }
}

fn bias_add(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, bias, skip) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let x = n.plus(x, bias)?;
    Ok(n.plus(x, skip)?.into())
}

fn biased_gelu(n: &mut NodeCx<'_>, approximation_mode: GeluApproximation) -> Result<Outputs> {
    let x = n.input(0)?;
    let x = match n.opt(1)? {
        Some(bias) => n.plus(x, bias)?,
        None => x,
    };
    Ok(n.emit(Gelu { approximation_mode }, &[x])?.into())
}

fn bias_split_gelu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, bias) = (n.input(0)?, n.input(1)?);
    let x = n.plus(x, bias)?;
    let halves = n.split_equally(x, -1, 2)?;
    let gate = n.emit(Gelu { approximation_mode: GeluApproximation::Erf }, &[halves[1]])?;
    Ok(n.times(halves[0], gate)?.into())
}

fn quick_gelu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let alpha: f32 = n.attr("alpha", 1.702)?;
    let x = n.input(0)?;
    let scaled = n.times_number(x, f64::from(alpha))?;
    let gate = n.emit(Sigmoid, &[scaled])?;
    Ok(n.times(x, gate)?.into())
}

fn expand_dims(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, axis) = (n.input(0)?, n.input(1)?);
    Ok(n.emit(Unsqueeze, &[x, axis])?.into())
}

// Steps of 1 unless given.
fn range(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (start, limit) = (n.input(0)?, n.input(1)?);
    let output_type = n.ty(start);
    let delta = match n.opt(2)? {
        Some(delta) => delta,
        None => n.scalar_like(start, 1.0)?,
    };
    // Vectors of one are taken for scalars.
    let inputs = [n.reshape(start, &[])?, n.reshape(limit, &[])?, n.reshape(delta, &[])?];
    Ok(n.emit(carafe_ops::shape::Range { output_type }, &inputs)?.into())
}

// The activation that fused operations name in attributes.
pub(super) fn activated(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let name: String = n.attr("activation", String::new())?;
    let params: Vec<f32> = n.attr("activation_params", vec![])?;
    let alpha: Option<f32> = n.opt_attr("activation_alpha")?.or(params.first().copied());
    let beta: Option<f32> = n.opt_attr("activation_beta")?.or(params.get(1).copied());
    n.ignore(&["activation_gamma", "activation_axis"]);
    match name.as_str() {
        "" => Ok(x),
        "Relu" => n.emit(Relu, &[x]),
        "Tanh" => n.emit(Tanh, &[x]),
        "Sigmoid" => n.emit(Sigmoid, &[x]),
        "LeakyRelu" => {
            let slope = n.scalar_like(x, f64::from(alpha.unwrap_or(0.01)))?;
            n.emit(PRelu, &[x, slope])
        }
        "Clip" => {
            let (min, max) = (alpha.unwrap_or(f32::MIN), beta.unwrap_or(f32::MAX));
            n.emit(Clamp { min: f64::from(min), max: f64::from(max) }, &[x])
        }
        "HardSigmoid" => {
            let a = n.scalar_like(x, f64::from(alpha.unwrap_or(0.2)))?;
            let b = n.scalar_like(x, f64::from(beta.unwrap_or(0.5)))?;
            n.emit(HardSigmoid, &[x, a, b])
        }
        _ => Err(n.unsupported(format!("the fused activation `{name}` is not supported"))),
    }
}

fn fused_conv(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let y = standard(n, "Conv", 22)?;
    let mut y = first(n, y)?;
    if let Some(z) = n.opt(3)? {
        y = n.plus(y, z)?;
    }
    Ok(activated(n, y)?.into())
}

fn fused_gemm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let y = standard(n, "Gemm", 13)?;
    let y = first(n, y)?;
    Ok(activated(n, y)?.into())
}

fn gemm_fast_gelu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let mut y = n.product(a, b, false)?;
    if let Some(bias) = n.opt(2)? {
        y = n.plus(y, bias)?;
    }
    Ok(n.emit(Gelu { approximation_mode: GeluApproximation::Tanh }, &[y])?.into())
}

fn fused_mat_mul(n: &mut NodeCx<'_>) -> Result<Outputs> {
    Ok(product(n)?.into())
}

fn product(n: &mut NodeCx<'_>) -> Result<Value> {
    let flag = |name: &str| -> Result<bool> { Ok(n.attr(name, 0i64)? != 0) };
    let (transpose_a, transpose_b) = (flag("transA")?, flag("transB")?);
    let (batch_a, batch_b) = (flag("transBatchA")?, flag("transBatchB")?);
    let alpha: f32 = n.attr("alpha", 1.0)?;
    let (mut a, mut b) = (n.input(0)?, n.input(1)?);
    if batch_a {
        a = batch_first(n, a)?;
    }
    if batch_b {
        b = batch_first(n, b)?;
    }
    let y = n.emit(MatMul { transpose_a, transpose_b }, &[a, b])?;
    if alpha == 1.0 { Ok(y) } else { n.times_number(y, f64::from(alpha)) }
}

// The first axis goes behind the batch axes.
fn batch_first(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    let rank = n.known_rank(v)? as i64;
    if rank < 3 {
        return Ok(v);
    }
    let order: Vec<i64> = (1..rank - 1).chain([0, rank - 1]).collect();
    n.transpose(v, &order)
}

// Normalizations.

fn trailing_axes(n: &NodeCx<'_>, x: Value, axis: i64) -> Result<Vec<i64>> {
    if axis == -1 {
        return Ok(vec![-1]);
    }
    let rank = n.known_rank(x)?;
    Ok((n.axis(axis, rank)? as i64..rank as i64).collect())
}

/// Layer normalization over the last axes; with the mean and the inverse deviation where they are wanted.
fn layer_norm(
    n: &mut NodeCx<'_>,
    x: Value,
    axes: &[i64],
    epsilon: f32,
    [gamma, beta]: [Option<Value>; 2],
) -> Result<Vec<Item>> {
    let over = n.i64s(axes)?;
    let mvn = Mvn { eps: epsilon, normalize_variance: true, eps_mode: EpsMode::InsideSqrt };
    let mut y = n.emit(mvn, &[x, over])?;
    if let Some(gamma) = gamma {
        let gamma = n.convert_like(gamma, y)?;
        y = n.times(y, gamma)?;
    }
    if let Some(beta) = beta {
        let beta = n.convert_like(beta, y)?;
        y = n.plus(y, beta)?;
    }
    let mut items = vec![Item::Tensor(y), Item::Nothing, Item::Nothing];
    if n.wants_output(1) || n.wants_output(2) {
        let x = n.convert(x, ElementType::F32)?;
        let mean = n.mean_over(x, axes, true)?;
        let apart = n.minus(x, mean)?;
        items[1] = mean.into();
        items[2] = inverse_deviation(n, apart, axes, epsilon)?.into();
    }
    Ok(items)
}

// `1 / sqrt(mean(x^2) + epsilon)`
fn inverse_deviation(n: &mut NodeCx<'_>, x: Value, axes: &[i64], epsilon: f32) -> Result<Value> {
    let square = n.times(x, x)?;
    let mean = n.mean_over(square, axes, true)?;
    let mean = n.plus_number(mean, f64::from(epsilon))?;
    let root = n.sqrt(mean)?;
    let one = n.number(root, 1.0)?;
    n.over(one, root)
}

fn rms_norm(n: &mut NodeCx<'_>, x: Value, gamma: Value, axes: &[i64], epsilon: f32) -> Result<Vec<Item>> {
    let wide = match n.ty(x) {
        ElementType::F64 => x,
        _ => n.convert(x, ElementType::F32)?,
    };
    let inverse = inverse_deviation(n, wide, axes, epsilon)?;
    let y = n.times(wide, inverse)?;
    let gamma = n.convert_like(gamma, y)?;
    let y = n.times(y, gamma)?;
    let y = n.convert_like(y, x)?;
    Ok(vec![y.into(), inverse.into()])
}

fn layer_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (axis, epsilon) = (n.attr("axis", -1i64)?, n.attr("epsilon", 1e-5f32)?);
    n.ignore(&["stash_type"]);
    let x = n.input(0)?;
    let (gamma, beta) = (n.input(1)?, n.opt(2)?);
    let axes = trailing_axes(n, x, axis)?;
    Ok(Outputs(layer_norm(n, x, &axes, epsilon, [Some(gamma), beta])?))
}

fn simplified_layer_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (axis, epsilon) = (n.attr("axis", -1i64)?, n.attr("epsilon", 1e-5f32)?);
    n.ignore(&["stash_type"]);
    let (x, gamma) = (n.input(0)?, n.input(1)?);
    let axes = trailing_axes(n, x, axis)?;
    Ok(Outputs(rms_norm(n, x, gamma, &axes, epsilon)?))
}

fn with_skip(n: &mut NodeCx<'_>, bias: usize) -> Result<Value> {
    let (x, skip) = (n.input(0)?, n.input(1)?);
    let sum = n.plus(x, skip)?;
    match n.opt(bias)? {
        Some(bias) => n.plus(sum, bias),
        None => Ok(sum),
    }
}

fn skip_layer_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let epsilon: f32 = n.attr("epsilon", 1e-12)?;
    let sum = with_skip(n, 4)?;
    let (gamma, beta) = (n.input(2)?, n.opt(3)?);
    let mut items = layer_norm(n, sum, &[-1], epsilon, [Some(gamma), beta])?;
    items.push(sum.into());
    Ok(Outputs(items))
}

fn skip_simplified_layer_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let epsilon: f32 = n.attr("epsilon", 1e-12)?;
    let sum = with_skip(n, 3)?;
    let gamma = n.input(2)?;
    let mut items = rms_norm(n, sum, gamma, &[-1], epsilon)?;
    items.insert(1, Item::Nothing);
    items.push(sum.into());
    Ok(Outputs(items))
}

fn embed_layer_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let epsilon: f32 = n.attr("epsilon", 1e-12)?;
    n.ignore(&["mask_index_type"]);
    let ids = n.input(0)?;
    let (words, positions) = (n.input(2)?, n.input(3)?);
    let mut sum = n.gather(words, ids, 0)?;
    let position = match n.opt(8)? {
        Some(at) => n.gather(positions, at, 0)?,
        None => {
            let length = n.length(ids, 1)?;
            let at = n.count_to(length, ElementType::I64)?;
            n.gather(positions, at, 0)?
        }
    };
    sum = n.plus(sum, position)?;
    if let (Some(segments), Some(table)) = (n.opt(1)?, n.opt(4)?) {
        let segment = n.gather(table, segments, 0)?;
        sum = n.plus(sum, segment)?;
    }
    let (gamma, beta) = (n.input(5)?, n.input(6)?);
    let over = n.i64s(&[-1])?;
    let mvn = Mvn { eps: epsilon, normalize_variance: true, eps_mode: EpsMode::InsideSqrt };
    let y = n.emit(mvn, &[sum, over])?;
    let y = n.times(y, gamma)?;
    let y = n.plus(y, beta)?;
    let lengths = match n.opt(7)? {
        Some(mask) => n.sum_over(mask, &[1], false)?,
        None => {
            let (zero, batch) = (n.constant(Tensor::scalar(0i32))?, n.size(ids, 0)?);
            n.stretch(zero, batch)?
        }
    };
    Ok(vec![y, lengths, sum].into())
}

// Channels last unless the attribute says otherwise; may end with a Swish.
fn group_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let epsilon: f32 = n.attr("epsilon", 1e-5)?;
    let groups: i64 = n.required("groups")?;
    let swish = n.required::<i64>("activation")? != 0;
    let last = n.attr("channels_last", 1i64)? != 0;
    let (x, gamma, beta) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let rank = n.known_rank(x)? as i64;
    if rank < 3 {
        return Err(n.fail(format!("GroupNorm needs 3 axes or more, found {rank}")));
    }
    let to: Vec<i64> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    let back: Vec<i64> = std::iter::once(0).chain(2..rank).chain([1]).collect();
    let x = if last { n.transpose(x, &to)? } else { x };
    let (gamma, beta) = (n.convert_like(gamma, x)?, n.convert_like(beta, x)?);
    let op = carafe_ops::normalization::GroupNormalization { num_groups: groups, epsilon };
    let mut y = n.emit(op, &[x, gamma, beta])?;
    if swish {
        y = n.emit(carafe_ops::activation::Swish, &[y])?;
    }
    Ok(if last { n.transpose(y, &back)? } else { y }.into())
}
