//! Fourier transforms, windows and mel weights. A last axis of 1 is a real signal, one of 2 a complex one; our transforms
//! of real signals have no such axis.

use crate::tensor::element_type;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::FloorMod;
use carafe_ops::math::{Cos, Floor, Log};
use carafe_ops::signal::{Dft, Idft, Irdft, Rdft, Stft};
use carafe_tensor::ElementType;
use std::f64::consts::{LN_10, PI};

pub(crate) const RULES: &[StaticRule] = &[
    rule("BlackmanWindow", 17, |n| window(n, &[0.42, -0.5, 0.08])),
    rule("DFT", 17, |n| {
        let axis: i64 = n.attr("axis", 1)?;
        let axis = n.i64(axis)?;
        dft(n, axis)
    }),
    rule("DFT", 20, |n| {
        let axis = match n.opt(2)? {
            None => n.i64(-2)?,
            Some(v) => n.convert(v, ElementType::I64)?,
        };
        dft(n, axis)
    }),
    rule("HammingWindow", 17, |n| window(n, &[25.0 / 46.0, -21.0 / 46.0])),
    rule("HannWindow", 17, |n| window(n, &[0.5, -0.5])),
    rule("MelWeightMatrix", 17, mel_weights),
    rule("STFT", 17, stft),
];

// Whether the last axis holds complex numbers.
fn is_complex(n: &NodeCx<'_>, x: Value) -> Result<bool> {
    let rank = n.known_rank(x)?;
    match n.shape(x).dim(rank.saturating_sub(1)).get() {
        Some(1) => Ok(false),
        Some(2) => Ok(true),
        Some(d) => Err(n.fail(format!("the last axis of a signal must be 1 or 2 long, found {d}"))),
        None => Err(n.unsupported("whether the signal is real or complex must be known when the model is read")),
    }
}

// A real signal with a last axis of 1, as a complex one.
fn complex(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let zero = n.times_number(x, 0.0)?;
    n.concat(&[x, zero], -1)
}

fn dft(n: &mut NodeCx<'_>, axis: Value) -> Result<Outputs> {
    let inverse = n.attr("inverse", 0i64)? != 0;
    let onesided = n.attr("onesided", 0i64)? != 0;
    let x = n.input(0)?;
    let rank = n.known_rank(x)?;
    // Axes count the pair axis here; an axis from the end must not.
    let axis = n.reshape(axis, &[1])?;
    let rank = n.i64(rank as i64)?;
    let mut inputs = vec![n.emit(FloorMod::default(), &[axis, rank])?];
    if let Some(length) = n.opt(1)? {
        let length = n.convert(length, ElementType::I64)?;
        inputs.push(n.reshape(length, &[1])?);
    }
    // A real signal may come without its last axis.
    let last = n.shape(x).dims().and_then(|d| d.last()?.get());
    if !inverse && onesided && last.is_some_and(|d| d > 2) {
        n.warn("the signal has no last axis of 1 or 2, it is taken as a real one");
        return Ok(n.emit(Rdft, &[&[x], &inputs[..]].concat())?.into());
    }
    let is_complex = is_complex(n, x)?;
    let with = |x: Value| [&[x], &inputs[..]].concat();
    let y = match (inverse, onesided) {
        (false, true) if is_complex => {
            return Err(n.unsupported("a one-sided transform of a complex signal is not supported"));
        }
        (false, true) => {
            let x = n.squeeze(x, &[-1])?;
            n.emit(Rdft, &with(x))?
        }
        (true, true) => {
            let x = if is_complex { x } else { complex(n, x)? };
            let y = n.emit(Irdft, &with(x))?;
            n.unsqueeze(y, &[-1])?
        }
        (inverse, false) => {
            let x = if is_complex { x } else { complex(n, x)? };
            if inverse { n.emit(Idft, &with(x))? } else { n.emit(Dft, &with(x))? }
        }
    };
    Ok(y.into())
}

fn stft(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let onesided = n.attr("onesided", 1i64)? != 0;
    let signal = n.input(0)?;
    let step = n.input(1)?;
    let step = n.convert(step, ElementType::I64)?;
    let step = n.reshape(step, &[])?;
    let window = n.opt(2)?;
    let length = match (n.opt(3)?, window) {
        (Some(length), _) => {
            let length = n.convert(length, ElementType::I64)?;
            n.reshape(length, &[])?
        }
        (None, Some(w)) => n.length(w, 0)?,
        (None, None) => {
            n.warn("STFT has neither a window nor a frame_length; frames are as long as there are steps in the signal");
            let total = n.length(signal, 1)?;
            n.over(total, step)?
        }
    };
    let window = match window {
        Some(w) => w,
        None => {
            let (one, shape) = (n.scalar_like(signal, 1.0)?, n.reshape(length, &[1])?);
            n.stretch(one, shape)?
        }
    };
    let window = n.convert_like(window, signal)?;
    let is_complex = match n.rank(signal) {
        Some(2) => None,
        _ => Some(is_complex(n, signal)?),
    };
    if onesided && is_complex != Some(true) {
        let x = if is_complex.is_some() { n.squeeze(signal, &[-1])? } else { signal };
        return Ok(n.emit(Stft { transpose_frames: false }, &[x, window, length, step])?.into());
    }
    if onesided {
        return Err(n.unsupported("a one-sided transform of a complex signal is not supported"));
    }
    let signal = if is_complex.is_some() { signal } else { n.unsqueeze(signal, &[-1])? };
    // Frame f holds the elements f * step .. f * step + length.
    let total = n.length(signal, 1)?;
    let rest = n.minus(total, length)?;
    let frames = n.over(rest, step)?;
    let one = n.i64(1)?;
    let frames = n.plus(frames, one)?;
    let starts = n.count_to(frames, ElementType::I64)?;
    let starts = n.times(starts, step)?;
    let starts = n.unsqueeze(starts, &[1])?;
    let offsets = n.count_to(length, ElementType::I64)?;
    let indices = n.plus(starts, offsets)?;
    let x = n.gather(signal, indices, 1)?;
    let window = n.unsqueeze(window, &[1])?;
    let x = n.times(x, window)?;
    let x = if is_complex == Some(true) { x } else { complex(n, x)? };
    let axes = n.i64s(&[2])?;
    Ok(n.emit(Dft, &[x, axes])?.into())
}

// `sum of factors[k] * cos(2 pi k i / N)`, N one less unless periodic.
fn window(n: &mut NodeCx<'_>, factors: &[f64]) -> Result<Outputs> {
    let ty = element_type(i32::try_from(n.attr("output_datatype", 1i64)?).unwrap_or(-1))?;
    let periodic = n.attr("periodic", 1i64)? != 0;
    let size = n.input(0)?;
    let size = n.reshape(size, &[])?;
    let exact = n.convert(size, ElementType::F64)?;
    let period = if periodic { exact } else { n.plus_number(exact, -1.0)? };
    let one = n.number(period, 1.0)?;
    let period = n.max(period, one)?;
    let i = n.count_to(size, ElementType::F64)?;
    let turn = n.times_number(i, 2.0 * PI)?;
    let turn = n.over(turn, period)?;
    let mut sum = n.number(turn, factors[0])?;
    for (k, &factor) in factors.iter().enumerate().skip(1) {
        let angle = n.times_number(turn, k as f64)?;
        let cos = n.emit(Cos, &[angle])?;
        let term = n.times_number(cos, factor)?;
        sum = n.plus(sum, term)?;
    }
    Ok(n.convert(sum, ty)?.into())
}

// Triangles over the bins of a spectrum, with corners equally spaced on the mel scale.
fn mel_weights(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let ty = element_type(i32::try_from(n.attr("output_datatype", 1i64)?).unwrap_or(-1))?;
    let mut scalars = vec![];
    for i in 0..5 {
        let v = n.input(i)?;
        let v = n.reshape(v, &[])?;
        scalars.push(if i < 3 { n.convert(v, ElementType::I64)? } else { n.convert(v, ElementType::F64)? });
    }
    let [bins, length, rate, low, high] = [0, 1, 2, 3, 4].map(|i| scalars[i]);
    let (low, high) = (to_mel(n, low)?, to_mel(n, high)?);
    let two = n.i64(2)?;
    let corners = n.plus(bins, two)?;
    let spread = n.minus(high, low)?;
    let divisor = n.convert(corners, ElementType::F64)?;
    let step = n.over(spread, divisor)?;
    let at = n.count_to(corners, ElementType::F64)?;
    let at = n.times(at, step)?;
    let at = n.plus(at, low)?;
    let at = n.times_number(at, 1.0 / 2595.0)?;
    let ten = n.number(at, 10.0)?;
    let at = n.power(ten, at)?;
    let at = n.plus_number(at, -1.0)?;
    let hertz = n.times_number(at, 700.0)?;
    let (length_f, rate) = (n.convert(length, ElementType::F64)?, n.convert(rate, ElementType::F64)?);
    let scale = n.plus_number(length_f, 1.0)?;
    let at = n.times(hertz, scale)?;
    let at = n.over(at, rate)?;
    let corner = n.emit(Floor, &[at])?;

    let bin = n.over(length, two)?;
    let one = n.i64(1)?;
    let bin = n.plus(bin, one)?;
    let bin = n.count_to(bin, ElementType::F64)?;
    let bin = n.unsqueeze(bin, &[1])?;
    let left = n.part(corner, 0, -2, 0)?;
    let middle = n.part(corner, 1, -1, 0)?;
    let right = n.part(corner, 2, i64::MAX, 0)?;

    let zero = n.number(bin, 0.0)?;
    let one = n.number(bin, 1.0)?;
    let (rise, fall) = (n.minus(middle, left)?, n.minus(right, middle)?);
    let (rise_or_one, fall_or_one) = (n.max(rise, one)?, n.max(fall, one)?);
    let up = n.minus(bin, left)?;
    let up = n.over(up, rise_or_one)?;
    let flat = n.less_equal(rise, zero)?;
    let up = n.choose(flat, one, up)?;
    let (from, to) = (n.greater_equal(bin, left)?, n.less_equal(bin, middle)?);
    let on_left = n.and(from, to)?;
    let up = n.choose(on_left, up, zero)?;
    let down = n.minus(right, bin)?;
    let down = n.over(down, fall_or_one)?;
    let (from, to) = (n.greater_equal(bin, middle)?, n.less(bin, right)?);
    let on_right = n.and(from, to)?;
    let weights = n.choose(on_right, down, up)?;
    Ok(n.convert(weights, ty)?.into())
}

fn to_mel(n: &mut NodeCx<'_>, hertz: Value) -> Result<Value> {
    let x = n.times_number(hertz, 1.0 / 700.0)?;
    let x = n.plus_number(x, 1.0)?;
    let x = n.emit(Log, &[x])?;
    n.times_number(x, 2595.0 / LN_10)
}
