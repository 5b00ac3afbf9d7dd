//! What STFT and ISTFT share: the inputs `window`, `frame_size` and `frame_step`, and the window laid into a frame.

use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::{Dim, ElementType};

/// Size and step of the frames, as far as they are known.
pub(super) struct Frames {
    pub(super) size: Option<i64>,
    pub(super) step: Option<i64>,
}

/// Checks the three inputs; gives the common float type too.
pub(super) fn infer_frames(cx: &InferCx<'_>) -> Result<(ElementType, Frames)> {
    cx.require_float(0)?;
    cx.require_float(1)?;
    let ty = cx.same_type(&[0, 1])?;
    cx.require_rank(1, &[1])?;
    for i in 2..4 {
        cx.require_integer(i)?;
        cx.require_rank(i, &[0])?;
    }
    let frames = Frames { size: cx.int(2), step: cx.int(3) };
    for (name, value) in [("frame_size", frames.size), ("frame_step", frames.step)] {
        if let Some(n) = value {
            cx.require(n > 0, || format!("{name} must be above 0, found {n}"))?;
        }
    }
    if let Some(size) = frames.size {
        let window = cx.dim(1, 0);
        cx.require(window.compatible(Dim::range(1, Some(size))), || {
            format!("the window must have 1 to {size} elements, found {window}")
        })?;
    }
    Ok((ty, frames))
}

/// The window in the middle of a frame of zeros; an odd rest goes to its end.
pub(super) fn padded_window(cx: &EvalCx<'_>, size: usize) -> Result<Vec<f64>> {
    let window = cx.get::<f64>(1)?;
    let start = (size - window.len().min(size)) / 2;
    let mut padded = crate::buffer::filled(&[size], 0.0)?;
    for (slot, w) in padded[start..].iter_mut().zip(window.iter()) {
        *slot = *w;
    }
    Ok(padded)
}

/// Frame size and step of an evaluation.
pub(super) fn eval_frames(cx: &EvalCx<'_>) -> Result<(usize, usize)> {
    let read = |i: usize| -> Result<usize> {
        let n = cx.int(i)?;
        usize::try_from(n).map_err(|_| cx.fail(format!("input {i} must be above 0, found {n}")))
    };
    Ok((read(2)?, read(3)?))
}
