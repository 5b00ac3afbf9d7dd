//! STFT: the spectrum of overlapping windowed frames. The signal is not padded: a rest shorter than a frame is dropped.

use super::fourier::{Complex, Transform};
use super::frames::{eval_frames, infer_frames, padded_window};
use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// Half spectra of the frames of a signal `[length]` or `[batch, length]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "STFT", since = 15, inputs = "signal, window, frame_size, frame_step")]
pub struct Stft {
    /// Bins before frames in the output.
    pub transpose_frames: bool,
}

impl Op for Stft {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let (ty, frames) = infer_frames(cx)?;
        cx.require_rank(0, &[1, 2])?;
        let Some(rank) = cx.rank(0) else {
            cx.set(0, ty, PartialShape::dynamic());
            return Ok(());
        };
        let length = cx.dim(0, rank - 1);
        if let Some(size) = frames.size {
            cx.require(length.max().is_none_or(|l| size <= l), || {
                format!("frame_size {size} is longer than the signal of {length}")
            })?;
        }
        let bins = frames.size.map_or(Dim::ANY, |s| Dim::known(s / 2 + 1));
        let count = match (frames.size, frames.step) {
            (Some(size), Some(step)) => {
                length.sub(Dim::known(size)).clamp_shape().floor_div(step).add(Dim::known(1))
            }
            _ => Dim::ANY,
        };
        let mut dims = if rank == 2 { vec![cx.dim(0, 0)] } else { vec![] };
        dims.extend(if self.transpose_frames { [bins, count] } else { [count, bins] });
        dims.push(Dim::known(2));
        cx.set(0, ty, PartialShape::new(dims));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (size, step) = eval_frames(cx)?;
        let signal_shape = cx.shape(0).to_vec();
        let length = signal_shape[signal_shape.len() - 1];
        let batch = if signal_shape.len() == 2 { signal_shape[0] } else { 1 };
        let count = (length - size) / step + 1;
        let bins = size / 2 + 1;
        let window = padded_window(cx, size)?;
        let transform = Transform::new(size, false);
        let mut dims = signal_shape[..signal_shape.len() - 1].to_vec();
        dims.extend(if self.transpose_frames { [bins, count, 2] } else { [count, bins, 2] });
        let mut out = filled(&dims, 0.0)?;
        let signal = cx.get::<f64>(0)?;
        for n in 0..batch {
            for f in 0..count {
                let frame = &signal[n * length + f * step..][..size];
                let frame: Vec<Complex> =
                    frame.iter().zip(&window).map(|(x, w)| Complex { re: x * w, im: 0.0 }).collect();
                for (k, c) in transform.run(&frame).iter().take(bins).enumerate() {
                    let at = if self.transpose_frames { k * count + f } else { f * bins + k };
                    let at = (n * count * bins + at) * 2;
                    out[at] = c.re;
                    out[at + 1] = c.im;
                }
            }
        }
        drop(signal);
        cx.put(0, &dims, out)
    }
}
