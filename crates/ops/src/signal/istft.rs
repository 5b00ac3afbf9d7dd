//! ISTFT: a signal from the half spectra of its frames, `[batch?, bins, frames, 2]`. Frames are windowed again, added where
//! they overlap, and divided by the sum of squared windows; where that sum is 0 the signal is 0.

use super::fourier::{Transform, from_pairs};
use super::frames::{eval_frames, infer_frames, padded_window};
use super::irdft::mirrored;
use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// Inverse of STFT.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "ISTFT", since = 16, inputs = "data, window, frame_size, frame_step, signal_length?")]
pub struct Istft {
    /// Half a frame was padded on both sides before the forward transform and is cut here.
    pub center: bool,
    /// The spectra were divided by the square root of the frame size.
    pub normalized: bool,
}

impl Op for Istft {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let (ty, frames) = infer_frames(cx)?;
        cx.require_rank(0, &[3, 4])?;
        if cx.has(4) {
            cx.require_integer(4)?;
            cx.require(cx.shape(4).elements().is_none_or(|n| n == 1), || {
                format!("{} must have one element, found [{}]", cx.port_name(4), cx.shape(4))
            })?;
        }
        let Some(rank) = cx.rank(0) else {
            cx.set(0, ty, PartialShape::dynamic());
            return Ok(());
        };
        let pair = cx.dim(0, rank - 1);
        cx.require(pair.compatible(Dim::known(2)), || format!("the last axis must be 2, found {pair}"))?;
        let (bins, count) = (cx.dim(0, rank - 3), cx.dim(0, rank - 2));
        cx.require(count.get() != Some(0), || "there must be at least one frame".to_string())?;
        if let Some(size) = frames.size {
            cx.require(bins.compatible(Dim::known(size / 2 + 1)), || {
                format!("frame_size {size} has {} bins, found {bins}", size / 2 + 1)
            })?;
        }
        let whole = match (frames.size, frames.step) {
            (Some(size), Some(step)) => {
                let length = count.sub(Dim::known(1)).clamp_shape().mul(Dim::known(step)).add(Dim::known(size));
                length.sub(Dim::known(if self.center { size & !1 } else { 0 })).clamp_shape()
            }
            _ => Dim::ANY,
        };
        let length = match (cx.has(4), cx.int(4)) {
            (true, Some(n)) if n > 0 => Dim::known(n),
            (true, None) => Dim::ANY,
            _ => whole,
        };
        let mut dims = if rank == 4 { vec![cx.dim(0, 0)] } else { vec![] };
        dims.push(length);
        cx.set(0, ty, PartialShape::new(dims));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (size, step) = eval_frames(cx)?;
        let shape = cx.shape(0).to_vec();
        let rank = shape.len();
        let (bins, count) = (shape[rank - 3], shape[rank - 2]);
        let batch = if rank == 4 { shape[0] } else { 1 };
        let length = (count - 1).checked_mul(step).and_then(|n| n.checked_add(size));
        let length = length.ok_or_else(|| cx.fail(format!("{count} frames with a step of {step} are too long")))?;
        let margin = if self.center { size / 2 } else { 0 };
        let wanted = if cx.has(4) { usize::try_from(cx.int(4)?).ok().filter(|&n| n > 0) } else { None };
        let wanted = wanted.unwrap_or(if self.center { length - (size & !1) } else { length });
        let mut dims = shape[..rank - 3].to_vec();
        dims.push(wanted);
        let mut out = filled(&dims, 0.0)?;

        let window = padded_window(cx, size)?;
        let transform = Transform::new(size, true);
        let scale = if self.normalized { (size as f64).sqrt() } else { 1.0 };
        let data = from_pairs(&cx.get::<f64>(0)?);
        let mut weight = filled(&[length], 0.0)?;
        for f in 0..count {
            weight[f * step..].iter_mut().zip(&window).for_each(|(sum, w)| *sum += w * w);
        }
        for n in 0..batch {
            let mut signal = filled(&[length], 0.0)?;
            for f in 0..count {
                let half: Vec<_> = (0..bins).map(|k| data[(n * bins + k) * count + f]).collect();
                let frame = transform.run(&mirrored(&half, &[bins], &[size], 0)?);
                for ((sum, c), w) in signal[f * step..].iter_mut().zip(&frame).zip(&window) {
                    *sum += c.re * w;
                }
            }
            for (i, slot) in out[n * wanted..(n + 1) * wanted].iter_mut().enumerate().take(length - margin) {
                let at = i + margin;
                *slot = if weight[at] != 0.0 { signal[at] * scale / weight[at] } else { 0.0 };
            }
        }
        cx.put(0, &dims, out)
    }
}
