//! Quantization. Scales are the largest value: a step is the scale divided by `2^(bits - 1) - 1`.

use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::math::Round;
use carafe_ops::math::round::RoundMode;
use carafe_ops::quantize::FakeQuantize;
use carafe_ops::reduce::ReduceMax;
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("dequantize_linear", 0, dequantize_linear),
    rule("fake_channel_wise_dequantize_max_abs", 0, channel_wise_dequantize),
    rule("fake_channel_wise_quantize_abs_max", 0, |n| own_scale(n, true, false)),
    rule("fake_channel_wise_quantize_dequantize_abs_max", 0, |n| own_scale(n, true, true)),
    rule("fake_dequantize_max_abs", 0, dequantize_max_abs),
    rule("fake_quantize_abs_max", 0, |n| own_scale(n, false, false)),
    rule("fake_quantize_dequantize_abs_max", 0, |n| own_scale(n, false, true)),
    rule("fake_quantize_dequantize_moving_average_abs_max", 0, |n| given_scale(n, true)),
    rule("fake_quantize_moving_average_abs_max", 0, |n| given_scale(n, false)),
    rule("fake_quantize_range_abs_max", 0, |n| given_scale(n, false)),
    rule("moving_average_abs_max_scale", 0, |n| {
        let x = n.slot("X")?;
        let scale = n.opt_slot("InScale")?;
        n.attrs();
        n.ignore_inputs(n.n_inputs());
        let mut named = vec![("Out", x)];
        named.extend(scale.map(|s| ("OutScale", s)));
        Ok(n.give(&named))
    }),
    rule("quantize_linear", 0, quantize_linear),
];

fn largest_step(n: &NodeCx<'_>) -> Result<f64> {
    let bits: i64 = n.attr("bit_length", 8)?;
    match bits {
        2..=16 => Ok(f64::from((1i32 << (bits - 1)) - 1)),
        _ => Err(n.fail(format!("`bit_length` is {bits}"))),
    }
}

// A vector of scales along an axis of a tensor of this rank.
fn along(n: &mut NodeCx<'_>, scale: Value, axis: i64, like: Value) -> Result<Value> {
    if n.shape(scale).to_static().is_some_and(|s| carafe_tensor::elements(&s) == Some(1)) {
        return n.as_scalar(scale);
    }
    let rank = n.known_rank(like)?;
    let axis = n.axis(axis, rank)?;
    let mut shape = vec![1; rank];
    shape[axis] = -1;
    n.reshape(scale, &shape)
}

// From -scale to scale in even steps, as whole numbers or as what they stand for.
fn quantized(n: &mut NodeCx<'_>, x: Value, scale: Value, steps: f64, is_back: bool) -> Result<Value> {
    let low = n.times_number(scale, -1.0)?;
    let levels = (2.0 * steps + 1.0) as u64;
    let op = FakeQuantize {
        levels,
        auto_broadcast: carafe_ops::arithmetic::AutoBroadcast::Numpy,
        auto_broadcast_axis: None,
    };
    if is_back {
        return n.put(op, &[x, low, scale, low, scale]);
    }
    let (bottom, top) = (n.number(x, -steps)?, n.number(x, steps)?);
    n.put(op, &[x, low, scale, bottom, top])
}

// The scale is the largest of the tensor, or of each channel.
fn own_scale(n: &mut NodeCx<'_>, is_by_channel: bool, is_back: bool) -> Result<Outputs> {
    let x = n.slot("X")?;
    let steps = largest_step(n)?;
    let axis: i64 = n.attr("quant_axis", 0)?;
    n.ignore(&["round_type"]);
    n.ignore_inputs(n.n_inputs());
    let rank = n.known_rank(x)?;
    let axes: Vec<i64> = match is_by_channel {
        true => (0..rank as i64).filter(|a| *a != axis).collect(),
        false => (0..rank as i64).collect(),
    };
    let size = n.abs(x)?;
    let at = n.i64s(&axes)?;
    let scale = n.put(ReduceMax { keep_dims: true }, &[size, at])?;
    let out = quantized(n, x, scale, steps, is_back)?;
    let flat = n.reshape(scale, &[-1])?;
    Ok(n.give(&[("Out", out), ("OutScale", flat)]))
}

// The scale was found while training.
fn given_scale(n: &mut NodeCx<'_>, is_back: bool) -> Result<Outputs> {
    let (x, scale) = (n.slot("X")?, n.slot("InScale")?);
    let steps = largest_step(n)?;
    n.ignore(&["moving_rate", "window_size", "round_type"]);
    n.ignore_inputs(n.n_inputs());
    let one = n.as_scalar(scale)?;
    let out = quantized(n, x, one, steps, is_back)?;
    Ok(n.give(&[("Out", out), ("OutScale", scale)]))
}

fn dequantize_max_abs(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, scale) = (n.slot("X")?, n.slot("Scale")?);
    let range: f64 = n.required("max_range")?;
    let scale = n.as_scalar(scale)?;
    let x = n.convert_like(x, scale)?;
    let out = n.times(x, scale)?;
    let out = n.over_number(out, range)?;
    Ok(n.give(&[("Out", out)]))
}

// One list of scales of the channels; a second one is a single scale of activations.
fn channel_wise_dequantize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let scales = n.inputs_named("Scales")?;
    let bits: Vec<i64> = n.attr("quant_bits", vec![8])?;
    let axis: i64 = n.attr("quant_axis", 0)?;
    let columns: i64 = n.attr("x_num_col_dims", 1)?;
    let mut out = n.convert(x, ElementType::F32)?;
    let range = |bits: i64| f64::from((1i32 << (bits.clamp(2, 16) - 1)) - 1);
    let mut by = 1.0;
    for (i, scale) in scales.iter().enumerate() {
        let axis = if scales.len() == 2 { columns } else { axis };
        let scale = if i == 0 { along(n, *scale, axis, x)? } else { n.as_scalar(*scale)? };
        out = n.times(out, scale)?;
        by *= range(bits.get(i).copied().unwrap_or(8));
    }
    let out = n.over_number(out, by)?;
    Ok(n.give(&[("Out", out)]))
}

fn quantize_linear(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, scale) = (n.slot("X")?, n.slot("Scale")?);
    let axis: i64 = n.attr("quant_axis", -1)?;
    let steps = largest_step(n)?;
    let rounding: i64 = n.attr("round_type", 0)?;
    n.ignore(&["qmin", "qmax", "only_observer", "moving_rate"]);
    n.ignore_inputs(n.n_inputs());
    let scale = if axis < 0 { n.as_scalar(scale)? } else { along(n, scale, axis, x)? };
    let ratio = n.over(x, scale)?;
    let y = n.times_number(ratio, steps)?;
    let mode = if rounding == 0 { RoundMode::HalfToEven } else { RoundMode::HalfAwayFromZero };
    let y = n.put(Round { mode }, &[y])?;
    // Halves away from zero go with a range that is the same on both sides.
    let least = if rounding == 0 { -steps - 1.0 } else { -steps };
    let out = n.between(y, least, steps)?;
    Ok(n.give(&[("Y", out), ("OutScale", scale)]))
}

fn dequantize_linear(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, scale) = (n.slot("X")?, n.slot("Scale")?);
    let axis: i64 = n.attr("quant_axis", -1)?;
    let steps = largest_step(n)?;
    n.ignore(&["round_type", "qmin", "qmax", "only_observer", "moving_rate"]);
    n.ignore_inputs(n.n_inputs());
    let scale = if axis < 0 { n.as_scalar(scale)? } else { along(n, scale, axis, x)? };
    let x = n.convert_like(x, scale)?;
    let scale = n.over_number(scale, steps)?;
    let out = n.times(x, scale)?;
    Ok(n.give(&[("Y", out)]))
}
