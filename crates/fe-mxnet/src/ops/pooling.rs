//! Pooling. With the convention `full` a last window may hang over the end: its average is that of what lies inside of the
//! padded data.

use super::convolution::{channels_first, channels_last, is_channels_last};
use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::movement::Pad;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::pooling::{AdaptiveAvgPool, AvgPool, MaxPool};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("Pooling", 0, pooling),
    rule("Pooling_v1", 0, pooling),
    rule("_contrib_AdaptiveAvgPooling2D", 0, adaptive),
];

#[derive(Clone)]
struct Window {
    kernel: Vec<i64>,
    strides: Vec<i64>,
    pads: Vec<i64>,
    is_full: bool,
}

fn pooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let kind = n.word("pool_type", "max");
    let p = n.opt_int("p_value")?;
    let includes_pad = n.flag("count_include_pad", true)?;
    if n.flag("global_pool", false)? {
        n.ignore(&["kernel", "stride", "pad", "pooling_convention"]);
        let axes = n.known_rank(x)?.saturating_sub(2);
        if !(1..=3).contains(&axes) {
            return Err(n.unsupported(format!("data of shape [{}] has no axes to pool over", n.shape(x))));
        }
        let first = if is_channels_last(n, axes)? { 1 } else { 2 };
        let axes: Vec<i64> = (first..first + axes as i64).collect();
        return Ok(global(n, x, &kind, &axes, p)?.into());
    }
    let kernel = n.ints_of("kernel")?;
    let axes = kernel.len();
    if !(1..=3).contains(&axes) {
        return Err(n.fail(format!("attribute `kernel` has {axes} numbers; a window has one to three")));
    }
    let is_last = is_channels_last(n, axes)?;
    let is_full = match n.word("pooling_convention", "valid").as_str() {
        "valid" => false,
        "full" => true,
        other => return Err(n.unknown_word("pooling_convention", other, "valid, full")),
    };
    let w = Window { strides: n.per_axis("stride", axes, 1)?, pads: n.per_axis("pad", axes, 0)?, kernel, is_full };
    let x = channels_first(n, x, axes, is_last)?;
    let y = match kind.as_str() {
        "max" => max(n, x, &w)?,
        "avg" => average(n, x, &w, includes_pad)?,
        "sum" => sum(n, x, &w)?,
        "lp" => {
            let p = p.ok_or_else(|| n.fail("attribute `p_value` is required and missing"))? as f64;
            let size = n.abs(x)?;
            let power = n.power_number(size, p)?;
            let sum = sum(n, power, &w)?;
            n.power_number(sum, 1.0 / p)?
        }
        other => return Err(n.unknown_word("pool_type", other, "max, avg, sum, lp")),
    };
    Ok(channels_last(n, y, axes, is_last)?.into())
}

fn global(n: &mut NodeCx<'_>, x: Value, kind: &str, axes: &[i64], p: Option<i64>) -> Result<Value> {
    match kind {
        "max" => n.max_over(x, axes, true),
        "avg" => n.mean_over(x, axes, true),
        "sum" => n.sum_over(x, axes, true),
        "lp" => {
            let p = p.ok_or_else(|| n.fail("attribute `p_value` is required and missing"))? as f64;
            let size = n.abs(x)?;
            let power = n.power_number(size, p)?;
            let sum = n.sum_over(power, axes, true)?;
            n.power_number(sum, 1.0 / p)
        }
        other => Err(n.unknown_word("pool_type", other, "max, avg, sum, lp")),
    }
}

fn max(n: &mut NodeCx<'_>, x: Value, w: &Window) -> Result<Value> {
    let op = MaxPool {
        strides: w.strides.clone(),
        dilations: vec![1; w.kernel.len()],
        pads_begin: w.pads.clone(),
        pads_end: w.pads.clone(),
        kernel: w.kernel.clone(),
        rounding_type: if w.is_full { Rounding::Ceil } else { Rounding::Floor },
        auto_pad: PadType::Explicit,
        index_element_type: ElementType::I64,
        axis: 0,
    };
    n.emit(op, &[x])
}

// Zeros around, and further ones behind.
fn padded(n: &mut NodeCx<'_>, x: Value, w: &Window, behind: &[i64]) -> Result<Value> {
    if w.pads.iter().chain(behind).all(|p| *p == 0) {
        return Ok(x);
    }
    let front: Vec<i64> = [0, 0].iter().chain(&w.pads).copied().collect();
    let back: Vec<i64> = [0, 0].into_iter().chain(w.pads.iter().zip(behind).map(|(p, b)| p + b)).collect();
    let (front, back, zero) = (n.i64s(&front)?, n.i64s(&back)?, n.scalar_like(x, 0.0)?);
    n.emit(Pad { pad_mode: PadMode::Constant }, &[x, front, back, zero])
}

fn mean_of_windows(n: &mut NodeCx<'_>, x: Value, w: &Window, pads: &[i64], exclude_pad: bool) -> Result<Value> {
    let op = AvgPool {
        dilations: vec![1; w.kernel.len()],
        strides: w.strides.clone(),
        pads_begin: pads.to_vec(),
        pads_end: pads.to_vec(),
        kernel: w.kernel.clone(),
        exclude_pad,
        auto_pad: PadType::Explicit,
        rounding_type: if w.is_full { Rounding::Ceil } else { Rounding::Floor },
    };
    n.emit(op, &[x])
}

fn average(n: &mut NodeCx<'_>, x: Value, w: &Window, includes_pad: bool) -> Result<Value> {
    let has_pads = w.pads.iter().any(|p| *p > 0);
    if !w.is_full || (!includes_pad && has_pads) {
        return mean_of_windows(n, x, w, &w.pads, !includes_pad);
    }
    // The sum of each window by how much of it lies inside of the padded data: what an average of a window that hangs over
    // divides by is not the same everywhere.
    let total = sum(n, x, w)?;
    let mut size = n.dims_at(x, &(2..w.kernel.len() as i64 + 2).collect::<Vec<_>>())?;
    if has_pads {
        let both: Vec<i64> = w.pads.iter().map(|p| 2 * p).collect();
        let both = n.i64s(&both)?;
        size = n.plus(size, both)?;
    }
    let front = n.i64s(&[1, 1])?;
    let shape = n.concat(&[front, size], 0)?;
    let one = n.scalar_like(x, 1.0)?;
    let ones = n.stretch(one, shape)?;
    let inner = Window { pads: vec![0; w.pads.len()], ..w.clone() };
    let count = sum(n, ones, &inner)?;
    n.over(total, count)
}

fn sum(n: &mut NodeCx<'_>, x: Value, w: &Window) -> Result<Value> {
    // A result that is rounded up is one rounded down of data that is longer by all but one of a step.
    let behind: Vec<i64> = w.strides.iter().map(|s| if w.is_full { s - 1 } else { 0 }).collect();
    let x = padded(n, x, w, &behind)?;
    let none = vec![0; w.pads.len()];
    let mean = mean_of_windows(n, x, &Window { is_full: false, ..w.clone() }, &none, false)?;
    n.times_number(mean, w.kernel.iter().product::<i64>() as f64)
}

fn adaptive(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let size = match n.ints_of("output_size")?[..] {
        [] => [1, 1],
        [one] => [one, one],
        [h, w] => [h, w],
        ref other => return Err(n.fail(format!("attribute `output_size` has {} numbers, two at most", other.len()))),
    };
    if size == [1, 1] {
        return Ok(n.mean_over(x, &[2, 3], true)?.into());
    }
    let size = n.i64s(&size)?;
    Ok(n.emit(AdaptiveAvgPool, &[x, size])?.into())
}
