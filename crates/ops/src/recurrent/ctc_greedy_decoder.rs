//! CTCGreedyDecoder: best-path decoding of `[time, batch, classes]`; the blank is the last class. A row ends where its mask
//! is first 0. The result has the type of the data and is padded with -1.

use super::ctc::{best_class, decode};
use super::shapes::merge;
use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// Decodes the most likely class of each step into labels `[batch, time, 1, 1]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "CTCGreedyDecoder", since = 1, inputs = "data, sequence_mask")]
pub struct CtcGreedyDecoder {
    /// Repeats of one class without a blank between them count once.
    #[attr(default = true)]
    pub ctc_merge_repeated: bool,
}

impl Op for CtcGreedyDecoder {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        cx.require_number(1)?;
        cx.require_rank(0, &[3])?;
        cx.require_rank(1, &[2])?;
        let (mut time, mut batch) = (cx.dim(0, 0), cx.dim(0, 1));
        merge(cx, &mut time, cx.dim(1, 0), "time")?;
        merge(cx, &mut batch, cx.dim(1, 1), "batch")?;
        cx.require(cx.dim(0, 2).get() != Some(0), || "there must be at least one class".to_string())?;
        cx.set(0, cx.ty(0), PartialShape::new([batch, time, Dim::known(1), Dim::known(1)]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let [time, batch, classes] = [0, 1, 2].map(|i| cx.shape(0)[i]);
        let shape = [batch, time, 1, 1];
        let mut out = filled(&shape, -1.0)?;
        let (data, mask) = (cx.get::<f64>(0)?, cx.get::<f64>(1)?);
        for n in 0..if out.is_empty() { 0 } else { batch } {
            let length = (0..time).position(|t| mask[t * batch + n] == 0.0).unwrap_or(time);
            let steps = (0..length).map(|t| best_class(&data[(t * batch + n) * classes..][..classes]));
            let labels = decode(steps, classes as i64 - 1, self.ctc_merge_repeated);
            for (slot, label) in out[n * time..].iter_mut().zip(labels) {
                *slot = label as f64;
            }
        }
        drop((data, mask));
        cx.put(0, &shape, out)
    }
}
