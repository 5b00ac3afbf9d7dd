//! Quantization. Scales are the largest value: a step is the scale divided by `2^(bits - 1) - 1`, or by `qmax`. Zero points are
//! there in files, and Paddle does not read them.
//!
//! What is computed becomes a FakeQuantize, one for a pair of quantizing and dequantizing; weights become integers of 8 bits
//! behind a Convert and a Multiply. These are the forms that devices compute with integers.

use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::quantize::FakeQuantize;
use carafe_ops::reduce::ReduceMax;
use carafe_tensor::{ElementType, Tensor};

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

/// Paddle adds this to a scale that is not larger before it divides by it.
const LEAST_SCALE: f32 = 1e-6;

/// How numbers are rounded: to whole steps from `-least` to `most`.
struct Steps {
    least: f64,
    most: f64,
    /// Halves go away from zero, in a range that is the same on both sides.
    is_away: bool,
}

impl Steps {
    fn read(n: &NodeCx<'_>, default_round_type: i64) -> Result<Steps> {
        let most = largest_step(n)?;
        let is_away = n.attr("round_type", default_round_type)? != 0;
        Ok(Steps { least: if is_away { most } else { most + 1.0 }, most, is_away })
    }

    fn round(&self, x: f32, scale: f32) -> i8 {
        let y = self.most as f32 / above_zero(scale) * x;
        let y = if self.is_away { y.round() } else { y.round_ties_even() };
        y.clamp(-self.least as f32, self.most as f32) as i8
    }

    fn fit_bytes(&self) -> bool {
        self.most <= 127.0
    }
}

fn above_zero(scale: f32) -> f32 {
    if scale <= LEAST_SCALE { scale + LEAST_SCALE } else { scale }
}

fn largest_step(n: &NodeCx<'_>) -> Result<f64> {
    let bits: i64 = n.attr("bit_length", 8)?;
    // Only programs of Paddle 3 say the largest step by itself: 8 bits may be a small float there.
    let most: Option<i64> = n.opt_attr("qmax")?;
    match (bits, most) {
        (2..=16, None) => Ok(f64::from((1i32 << (bits - 1)) - 1)),
        (_, Some(448 | 57344)) => Err(n.unsupported("rounding to floats of 8 bits is not supported")),
        (_, Some(most @ 1..=32767)) => Ok(most as f64),
        (_, Some(most)) => Err(n.fail(format!("`qmax` is {most}; expected 1 to 32767"))),
        (bits, None) => Err(n.fail(format!("`bit_length` is {bits}; expected 2 to 16"))),
    }
}

// Scales that are stored, checked: Paddle itself gives NaN or zeros for what is refused here.
fn stored_scales(n: &NodeCx<'_>, scale: Value) -> Result<Option<Vec<f32>>> {
    let Some(tensor) = n.tensor(scale) else { return Ok(None) };
    let all = tensor.to_vec::<f32>()?.into_owned();
    match all.iter().position(|s| !s.is_finite() || *s < 0.0) {
        Some(at) => {
            let about = format!("the scale is {} at position {at}", all[at]);
            Err(n.fail(format!("{about}; expected the largest absolute value, which is finite and not negative")))
        }
        None => Ok(Some(all)),
    }
}

// A vector of scales along an axis of a tensor of this rank.
fn along(n: &mut NodeCx<'_>, scale: Value, axis: i64, like: Value) -> Result<Value> {
    let count = n.shape(scale).elements();
    if count == Some(1) {
        return n.as_scalar(scale);
    }
    let rank = n.known_rank(like)?;
    let axis = n.axis(axis, rank)?;
    let size = n.shape(like).dims().and_then(|dims| dims[axis].size());
    if let (Some(count), Some(size)) = (count, size)
        && count != size
    {
        let about = format!("there are {count} scales, but axis {axis} of the data has {size} elements");
        return Err(n.fail(format!("{about}; expected one for each, or one for all")));
    }
    let mut shape = vec![1; rank];
    shape[axis] = -1;
    n.reshape(scale, &shape)
}

// Scales as they meet the data, at the axis that is set or one for all.
fn spread(n: &mut NodeCx<'_>, scale: Value, axis: i64, like: Value) -> Result<Value> {
    let count = n.shape(scale).elements();
    if axis < 0 && count.is_some_and(|count| count != 1) {
        let count = count.unwrap_or_default();
        return Err(n.fail(format!("there are {count} scales, but `quant_axis` is {axis}; expected one scale")));
    }
    if axis < 0 { n.as_scalar(scale) } else { along(n, scale, axis, like) }
}

// Stored numbers as bytes, each by the scale of its position along the axis; they come back as floats.
fn rounded_weights(n: &mut NodeCx<'_>, x: Value, scales: &[f32], axis: usize, steps: &Steps) -> Result<Option<Value>> {
    let Some(data) = n.tensor(x).filter(|t| t.element_type() == ElementType::F32 && steps.fit_bytes()) else {
        return Ok(None);
    };
    let inner: usize = data.shape().iter().skip(axis + 1).product();
    let scale = |i: usize| if scales.len() == 1 { scales[0] } else { scales[i / inner.max(1) % scales.len()] };
    let values = data.as_slice::<f32>()?;
    let bytes: Vec<i8> = values.iter().enumerate().map(|(i, x)| steps.round(*x, scale(i))).collect();
    let bytes = Tensor::from_vec(data.shape(), bytes)?;
    widened(n, bytes).map(Some)
}

fn widened(n: &mut NodeCx<'_>, bytes: Tensor) -> Result<Value> {
    let bytes = n.constant(bytes)?;
    n.convert(bytes, ElementType::F32)
}

// Whole numbers that are stored as floats, as bytes behind a conversion.
fn stored_bytes(n: &mut NodeCx<'_>, x: Value) -> Result<Option<Value>> {
    let Some(data) = n.tensor(x).filter(|t| t.element_type() == ElementType::F32) else { return Ok(None) };
    let whole = |v: &f32| v.fract() == 0.0 && (-128.0..=127.0).contains(v);
    let values = data.as_slice::<f32>()?;
    if !values.iter().all(whole) {
        return Ok(None);
    }
    let bytes = Tensor::from_vec(data.shape(), values.iter().map(|v| *v as i8).collect::<Vec<_>>())?;
    widened(n, bytes).map(Some)
}

// To steps of a scale, as whole numbers.
fn whole_steps(n: &mut NodeCx<'_>, x: Value, scale: Value, steps: &Steps) -> Result<Value> {
    let low = n.times_number(scale, -steps.least / steps.most)?;
    let (bottom, top) = (n.number(x, -steps.least)?, n.number(x, steps.most)?);
    n.put(fake_quantize(steps.least + steps.most), &[x, low, scale, bottom, top])
}

fn fake_quantize(steps: f64) -> FakeQuantize {
    FakeQuantize {
        levels: steps as u64 + 1,
        auto_broadcast: carafe_ops::arithmetic::AutoBroadcast::Numpy,
        auto_broadcast_axis: None,
    }
}

// Scales as they are divided by.
fn divisor(n: &mut NodeCx<'_>, scale: Value, stored: Option<&Vec<f32>>) -> Result<Value> {
    match stored {
        Some(all) if all.iter().any(|s| *s <= LEAST_SCALE) => {
            let shape = n.shape(scale).to_static().unwrap_or_else(|| vec![all.len()]);
            n.constant(Tensor::from_vec(&shape, all.iter().map(|s| above_zero(*s)).collect::<Vec<_>>())?)
        }
        _ => Ok(scale),
    }
}

// Scales over the largest step; a constant where they are, so that weights behind it stay integers.
fn step_size(n: &mut NodeCx<'_>, scale: Value, stored: Option<&[f32]>, most: f64) -> Result<Value> {
    match (stored, n.shape(scale).to_static()) {
        (Some(all), Some(shape)) => {
            let steps = all.iter().map(|s| (f64::from(*s) / most) as f32).collect::<Vec<_>>();
            n.constant(Tensor::from_vec(&shape, steps)?)
        }
        _ => n.over_number(scale, most),
    }
}

// Whole numbers times the size of a step. What a FakeQuantize rounded becomes one that gives the numbers themselves.
fn scaled_back(n: &mut NodeCx<'_>, x: Value, scale: Value, stored: Option<&[f32]>, most: f64) -> Result<Value> {
    let may_be_zero = stored.is_none_or(|all| all.contains(&0.0));
    let rounded =
        n.model().producer::<FakeQuantize>(x).map(|(id, op)| (n.model().node(id).inputs().to_vec(), op.clone()));
    let step = step_size(n, scale, stored, most)?;
    let Some((inputs, op)) = rounded.filter(|_| !may_be_zero) else { return n.times(x, step) };
    let low = n.times(inputs[3], step)?;
    let high = n.times(inputs[4], step)?;
    n.put(op, &[inputs[0], inputs[1], inputs[2], low, high])
}

// The scale is the largest of the tensor, or of each channel.
fn own_scale(n: &mut NodeCx<'_>, is_by_channel: bool, is_back: bool) -> Result<Outputs> {
    let x = n.slot("X")?;
    let steps = Steps::read(n, 1)?;
    let axis: i64 = n.attr("quant_axis", 0)?;
    n.ignore_inputs(n.n_inputs());
    let rank = n.known_rank(x)?;
    let axis = if is_by_channel { n.axis(axis, rank)? } else { 0 };
    let stored = n.tensor(x).and_then(|data| largest(data, is_by_channel.then_some(axis)));
    if let Some(scales) = stored
        && let Some(whole) = rounded_weights(n, x, &scales, axis, &steps)?
    {
        let flat = n.constant(Tensor::from_slice(&[scales.len()], &scales)?)?;
        let scale = along(n, flat, axis as i64, x)?;
        let out = if is_back { scaled_back(n, whole, scale, Some(&scales), steps.most)? } else { whole };
        return Ok(n.give(&[("Out", out), ("OutScale", flat)]));
    }
    let axes: Vec<i64> = (0..rank as i64).filter(|a| !is_by_channel || *a != axis as i64).collect();
    let size = n.abs(x)?;
    let at = n.i64s(&axes)?;
    let scale = n.put(ReduceMax { keep_dims: true }, &[size, at])?;
    let whole = whole_steps(n, x, scale, &steps)?;
    let out = if is_back { scaled_back(n, whole, scale, None, steps.most)? } else { whole };
    let flat = n.reshape(scale, &[-1])?;
    Ok(n.give(&[("Out", out), ("OutScale", flat)]))
}

// The largest absolute value of stored numbers, of all or of each position of an axis.
fn largest(data: &Tensor, axis: Option<usize>) -> Option<Vec<f32>> {
    let values = data.as_slice::<f32>().ok()?;
    let inner: usize = axis.map_or(data.len(), |a| data.shape()[a + 1..].iter().product());
    let mut found = vec![0f32; axis.map_or(1, |a| data.shape()[a])];
    let count = found.len();
    for (i, x) in values.iter().enumerate() {
        let at = i / inner.max(1) % count.max(1);
        found[at] = found[at].max(x.abs());
    }
    Some(found)
}

// The scale was found while training.
fn given_scale(n: &mut NodeCx<'_>, is_back: bool) -> Result<Outputs> {
    let (x, scale) = (n.slot("X")?, n.slot("InScale")?);
    let steps = Steps::read(n, 1)?;
    n.ignore(&["moving_rate", "window_size"]);
    n.ignore_inputs(n.n_inputs());
    let stored = stored_scales(n, scale)?;
    let by = divisor(n, scale, stored.as_ref())?;
    let (by, one) = (n.as_scalar(by)?, n.as_scalar(scale)?);
    let whole = whole_steps(n, x, by, &steps)?;
    let out = if is_back { scaled_back(n, whole, one, stored.as_deref(), steps.most)? } else { whole };
    Ok(n.give(&[("Out", out), ("OutScale", scale)]))
}

fn dequantize_max_abs(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, scale) = (n.slot("X")?, n.slot("Scale")?);
    let range: f64 = n.required("max_range")?;
    if !(range.is_finite() && range > 0.0) {
        return Err(n.fail(format!("`max_range` is {range}; expected a number above zero")));
    }
    stored_scales(n, scale)?;
    let scale = n.as_scalar(scale)?;
    let x = n.convert_like(x, scale)?;
    let step = n.over_number(scale, range)?;
    let out = n.times(x, step)?;
    Ok(n.give(&[("Out", out)]))
}

// One list of scales of the channels; a second one is a single scale of activations.
fn channel_wise_dequantize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let scales = n.inputs_named("Scales")?;
    let bits: Vec<i64> = n.attr("quant_bits", vec![8])?;
    let axis: i64 = n.attr("quant_axis", 0)?;
    let columns: i64 = n.attr("x_num_col_dims", 1)?;
    let x = n.convert(x, ElementType::F32)?;
    let mut step = None;
    for (i, scale) in scales.iter().enumerate() {
        let bits = bits.get(i).copied().unwrap_or(8);
        if !(2..=16).contains(&bits) {
            return Err(n.fail(format!("`quant_bits` has {bits}; expected 2 to 16")));
        }
        stored_scales(n, *scale)?;
        let axis = if scales.len() == 2 { columns } else { axis };
        let scale = if i == 0 { along(n, *scale, axis, x)? } else { n.as_scalar(*scale)? };
        let scale = n.over_number(scale, f64::from((1i32 << (bits - 1)) - 1))?;
        step = Some(match step {
            None => scale,
            Some(step) => n.times(step, scale)?,
        });
    }
    let step = step.ok_or_else(|| n.fail("there are no `Scales`; expected one list, or two"))?;
    let out = n.times(x, step)?;
    Ok(n.give(&[("Out", out)]))
}

fn quantize_linear(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, scale) = (n.slot("X")?, n.slot("Scale")?);
    let axis: i64 = n.attr("quant_axis", -1)?;
    let steps = Steps::read(n, 0)?;
    let only_watches: bool = n.attr("only_observer", false)?;
    n.ignore(&["qmin", "moving_rate"]);
    n.ignore_inputs(n.n_inputs());
    if only_watches {
        return Ok(n.give(&[("Y", x), ("OutScale", scale)]));
    }
    let stored = stored_scales(n, scale)?;
    let by = divisor(n, scale, stored.as_ref())?;
    let by = spread(n, by, axis, x)?;
    if let Some(scales) = stored
        && let Some(whole) = rounded_weights(n, x, &scales, axis.max(0) as usize, &steps)?
    {
        return Ok(n.give(&[("Y", whole), ("OutScale", scale)]));
    }
    let out = whole_steps(n, x, by, &steps)?;
    Ok(n.give(&[("Y", out), ("OutScale", scale)]))
}

fn dequantize_linear(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, scale) = (n.slot("X")?, n.slot("Scale")?);
    let axis: i64 = n.attr("quant_axis", -1)?;
    let most = largest_step(n)?;
    let only_watches: bool = n.attr("only_observer", false)?;
    n.ignore(&["round_type", "qmin", "moving_rate"]);
    n.ignore_inputs(n.n_inputs());
    if only_watches {
        let out = n.convert_like(x, scale)?;
        return Ok(n.give(&[("Y", out), ("OutScale", scale)]));
    }
    let stored = stored_scales(n, scale)?;
    let by = spread(n, scale, axis, x)?;
    let x = match stored_bytes(n, x)? {
        Some(bytes) => bytes,
        None => n.convert_like(x, by)?,
    };
    let out = scaled_back(n, x, by, stored.as_deref(), most)?;
    Ok(n.give(&[("Y", out), ("OutScale", scale)]))
}
