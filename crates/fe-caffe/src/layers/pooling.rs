//! Pooling of images. Sizes round up, and with padding a last window that would begin in the end padding is dropped. The mean
//! of a window counts its padding but not what lies beyond it, so a window that hangs over the end padding divides by less.

use super::cx::LayerCx;
use super::numbers::{dim, dims, size};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{AttrValue, Result, Value};
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::movement::Pad;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::pooling::{AvgPool, MaxPool};
use carafe_ops::reduce::{ReduceMax, ReduceMean, ReduceProd};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[rule("Pooling", 0, pooling)];

/// Windows over height and width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    pub kernel: [i64; 2],
    pub strides: [i64; 2],
    pub pads: [i64; 2],
    pub ceil: bool,
}

fn pooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let method: String = n.attr("pool", "MAX".to_string())?;
    n.ignore(&["engine"]);
    let ceil = rounds_up(n)?;
    if n.attr("global_pooling", false)? {
        return global(n, x, &method);
    }
    let pool = Pool {
        kernel: pair(n, "kernel_size", ["kernel_h", "kernel_w"], None, 1)?,
        strides: pair(n, "stride", ["stride_h", "stride_w"], Some(1), 1)?,
        pads: pair(n, "pad", ["pad_h", "pad_w"], Some(0), 0)?,
        ceil,
    };
    pool.check(n)?;
    let reaches_over = pool.reaches_over(n, x);
    match method.as_str() {
        "MAX" => {
            let (x, pool) = match reaches_over {
                false => (x, pool),
                true if n.n_outputs() < 2 => (pool.widened(n, x, f64::from(f32::MIN))?, pool),
                // Places count in the data as they are.
                true => (x, pool.fitted(n, x)),
            };
            let mut tops = max(n, x, pool)?;
            if n.n_outputs() < 2 {
                return Ok(tops[0].into());
            }
            tops[1] = n.convert(tops[1], ElementType::F32)?;
            Ok(tops.into())
        }
        "AVE" => Ok(pool.mean(n, x, reaches_over)?.into()),
        "STOCHASTIC" => Ok(weighted(n, x, |n, x| pool.mean(n, x, reaches_over))?.into()),
        other => Err(n.fail(format!("`pool` must be MAX, AVE or STOCHASTIC, found `{other}`"))),
    }
}

// `ceil_mode` and `round_mode` are the same switch of two forks.
fn rounds_up(n: &NodeCx<'_>) -> Result<bool> {
    let by_mode: bool = n.attr("ceil_mode", true)?;
    Ok(match n.attr_value("round_mode") {
        None => by_mode,
        Some(AttrValue::Str(word)) if word == "CEIL" => true,
        Some(AttrValue::Int(0)) => true,
        Some(AttrValue::Str(word)) if word == "FLOOR" => false,
        Some(AttrValue::Int(1)) => false,
        Some(other) => return Err(n.fail(format!("`round_mode` must be CEIL or FLOOR, found {other}"))),
    })
}

fn pair(n: &NodeCx<'_>, name: &str, hw: [&str; 2], default: Option<i64>, least: i64) -> Result<[i64; 2]> {
    let (both, h, w): (Option<i64>, Option<i64>, Option<i64>) =
        (n.opt_attr(name)?, n.opt_attr(hw[0])?, n.opt_attr(hw[1])?);
    // A default that is written out beside the other form says nothing.
    let is_said = |v: Option<i64>| v.filter(|v| Some(*v) != default && *v != 0);
    let values = match (both, h, w) {
        (Some(_), h, w) if is_said(both).is_some() && (is_said(h).is_some() || is_said(w).is_some()) => {
            return Err(n.fail(format!("has `{name}` as well as `{}` or `{}`", hw[0], hw[1])));
        }
        (Some(both), h, w) if is_said(h).is_none() && is_said(w).is_none() => [both; 2],
        (_, h, w) => match (h.or(default), w.or(default)) {
            (Some(h), Some(w)) => [h, w],
            _ => return Err(n.fail(format!("has neither `{name}` nor `{}` and `{}`", hw[0], hw[1]))),
        },
    };
    match values.iter().find(|v| **v < least || i32::try_from(**v).is_err()) {
        Some(v) => Err(n.fail(format!("`{name}` must be from {least} to {}, found {v}", i32::MAX))),
        None => Ok(values),
    }
}

fn global(n: &mut NodeCx<'_>, x: Value, method: &str) -> Result<Outputs> {
    n.ignore(&["kernel_size", "kernel_h", "kernel_w", "stride", "stride_h", "stride_w", "pad", "pad_h", "pad_w"]);
    let axes = n.i64s(&[2, 3])?;
    let y = match method {
        "MAX" => n.emit(ReduceMax { keep_dims: true }, &[x, axes])?,
        "AVE" => n.emit(ReduceMean { keep_dims: true }, &[x, axes])?,
        "STOCHASTIC" => weighted(n, x, |n, x| n.emit(ReduceMean { keep_dims: true }, &[x, axes]))?,
        other => return Err(n.fail(format!("`pool` must be MAX, AVE or STOCHASTIC, found `{other}`"))),
    };
    Ok(y.into())
}

// Stochastic pooling picks a value by its size; when a net is run, that is the mean weighted by the values themselves.
fn weighted(
    n: &mut NodeCx<'_>,
    x: Value,
    mean: impl Fn(&mut NodeCx<'_>, Value) -> Result<Value>,
) -> Result<Value> {
    let square = n.times(x, x)?;
    let (above, below) = (mean(n, square)?, mean(n, x)?);
    // Caffe adds the least number, so that windows of zeros give zero.
    let below = n.plus_number(below, f64::from(f32::MIN_POSITIVE))?;
    n.over(above, below)
}

impl Pool {
    fn check(&self, n: &NodeCx<'_>) -> Result<()> {
        match (0..2).find(|&i| self.pads[i] >= self.kernel[i]) {
            Some(i) => {
                let (pad, kernel) = (self.pads[i], self.kernel[i]);
                Err(n.fail(format!("`pad` {pad} must be smaller than the window of {kernel}")))
            }
            None => Ok(()),
        }
    }

    // The padded data along an axis where a window is larger. Caffe lets it be as long as rounding up leaves one; it is as
    // large as the data then.
    fn short_room(&self, n: &NodeCx<'_>, x: Value, i: usize) -> Option<i64> {
        let room = dim(n, x, i + 2)?.saturating_add(2 * self.pads[i]);
        let missing = self.kernel[i] - room;
        (self.ceil && missing > 0 && missing < self.strides[i] && self.pads[i] < room).then_some(room)
    }

    fn reaches_over(&self, n: &NodeCx<'_>, x: Value) -> bool {
        (0..2).any(|i| self.short_room(n, x, i).is_some())
    }

    // Windows as large as the data at most.
    fn fitted(mut self, n: &NodeCx<'_>, x: Value) -> Pool {
        for i in 0..2 {
            self.kernel[i] = self.short_room(n, x, i).unwrap_or(self.kernel[i]);
        }
        self
    }

    // By how much windows are larger than the padded data.
    fn missing(&self, n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
        let (whole, most) = (size(n, x)?, n.i64s(&[0, 1].map(|i: usize| self.kernel[i] - 2 * self.pads[i]))?);
        let (missing, none) = (n.minus(most, whole)?, n.i64s(&[0, 0])?);
        n.larger(missing, none)
    }

    // The data and as much of this value behind them as windows are larger; data of another size are left alone.
    fn widened(&self, n: &mut NodeCx<'_>, x: Value, value: f64) -> Result<Value> {
        let missing = self.missing(n, x)?;
        let (begin, none) = (n.i64s(&[0; 4])?, n.i64s(&[0, 0])?);
        let end = n.concat(&[none, missing], 0)?;
        let value = n.scalar_like(x, value)?;
        n.emit(Pad { pad_mode: PadMode::Constant }, &[x, begin, end, value])
    }

    fn mean(&self, n: &mut NodeCx<'_>, x: Value, reaches_over: bool) -> Result<Value> {
        if !reaches_over {
            return average(n, x, *self);
        }
        let wide = self.widened(n, x, 0.0)?;
        let y = average(n, wide, *self)?;
        // What lies behind the data does not count.
        let (kernel, missing) = (n.i64s(&self.kernel)?, self.missing(n, x)?);
        let counted = n.minus(kernel, missing)?;
        let (kernel, counted) = (n.convert(kernel, ElementType::F32)?, n.convert(counted, ElementType::F32)?);
        let (factor, axis) = (n.over(kernel, counted)?, n.i64s(&[0])?);
        let factor = n.emit(ReduceProd { keep_dims: false }, &[factor, axis])?;
        n.times(y, factor)
    }

    fn rounding(&self) -> Rounding {
        match (self.ceil, self.pads) {
            (false, _) => Rounding::Floor,
            // Without padding there is nothing to begin in, and Caffe drops no window.
            (true, [0, 0]) => Rounding::Ceil,
            (true, _) => Rounding::CeilTorch,
        }
    }
}

/// The largest element of every window, and its place in the channel.
pub(super) fn max(n: &mut NodeCx<'_>, x: Value, pool: Pool) -> Result<Vec<Value>> {
    let op = MaxPool {
        strides: pool.strides.to_vec(),
        dilations: vec![1, 1],
        pads_begin: pool.pads.to_vec(),
        pads_end: pool.pads.to_vec(),
        kernel: pool.kernel.to_vec(),
        rounding_type: pool.rounding(),
        auto_pad: PadType::Explicit,
        index_element_type: ElementType::I64,
        // Positions count within one channel; without them the oldest version of the operation says the same.
        axis: if n.n_outputs() > 1 { 2 } else { 0 },
    };
    n.emit_all(op, &[x])
}

/// The mean of every window as Caffe has it.
pub(super) fn average(n: &mut NodeCx<'_>, x: Value, pool: Pool) -> Result<Value> {
    let op = |pads: [i64; 2], exclude_pad: bool, rounding_type: Rounding| AvgPool {
        dilations: vec![1, 1],
        strides: pool.strides.to_vec(),
        pads_begin: pads.to_vec(),
        pads_end: pads.to_vec(),
        kernel: pool.kernel.to_vec(),
        exclude_pad,
        auto_pad: PadType::Explicit,
        rounding_type,
    };
    if pool.pads == [0, 0] {
        return n.emit(op([0, 0], true, pool.rounding()), &[x]);
    }
    if !(0..2).any(|i| pool.may_hang_over(i)) {
        return n.emit(op(pool.pads, false, pool.rounding()), &[x]);
    }
    // The padding becomes data, then what is beyond it does not count.
    let counts = window_counts(n, x, pool)?;
    let pads = n.i64s(&[0, 0, pool.pads[0], pool.pads[1]])?;
    let zero = n.scalar_like(x, 0.0)?;
    let padded = n.emit(Pad { pad_mode: PadMode::Constant }, &[x, pads, pads, zero])?;
    let mut y = n.emit(op([0, 0], true, Rounding::Ceil), &[padded])?;
    for (i, count) in counts.into_iter().enumerate() {
        // Only in padding can a window begin behind the data.
        if pool.pads[i] > 0 {
            let start = n.i64s(&[0])?;
            y = n.cut(y, start, count, i as i64 + 2)?;
        }
    }
    Ok(y)
}

impl Pool {
    // Whether there are sizes for which the last window reaches beyond the end padding and still begins in the data.
    fn may_hang_over(&self, i: usize) -> bool {
        self.ceil && self.strides[i] > 1 && self.kernel[i] - self.pads[i] > 1
    }
}

// How many windows begin in the data or before it, for each axis, as i64 vectors of one.
fn window_counts(n: &mut NodeCx<'_>, x: Value, pool: Pool) -> Result<Vec<Value>> {
    let mut counts = vec![];
    for i in 0..2 {
        let size = dims(n, x, &[i as i64 + 2])?;
        let room = n.plus_number(size, (pool.pads[i] - 1) as f64)?;
        let stride = n.i64s(&[pool.strides[i]])?;
        let steps = n.over(room, stride)?;
        counts.push(n.plus_number(steps, 1.0)?);
    }
    Ok(counts)
}
