//! ReverseSequence: turns around the first `seq_lengths[b]` elements of each batch row and leaves the rest in place.

use crate::index::unravel;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis};
use carafe_tensor::strides;

/// Reverses the beginning of every sequence.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, seq_lengths", moves = "0")]
pub struct ReverseSequence {
    /// Axis that `seq_lengths` runs along.
    #[attr(default = 0)]
    pub batch_axis: i64,
    /// Axis that is reversed.
    #[attr(default = 1)]
    pub seq_axis: i64,
}

impl Op for ReverseSequence {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_number(1)?;
        cx.require_rank(1, &[1])?;
        let mut shape = cx.shape(0).clone();
        if let Some(dims) = shape.dims_mut() {
            cx.require(dims.len() >= 2, || format!("data must have at least 2 axes, found [{}]", cx.shape(0)))?;
            let batch = normalize_axis(self.batch_axis, dims.len())?;
            let seq = normalize_axis(self.seq_axis, dims.len())?;
            let lengths = cx.dim(1, 0);
            dims[batch] = dims[batch].merge(lengths).ok_or_else(|| {
                cx.fail(format!("seq_lengths must have {} entries (axis {batch}), found {lengths}", dims[batch]))
            })?;
            if let (Some(values), Some(n)) = (cx.ints(1), dims[seq].get()) {
                check_lengths(&values, n).map_err(|m| cx.fail(m))?;
            }
        }
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let data = cx.input(0);
        let shape = data.shape();
        let batch = normalize_axis(self.batch_axis, shape.len())?;
        let seq = normalize_axis(self.seq_axis, shape.len())?;
        let lengths = cx.ints(1)?;
        check_lengths(&lengths, shape[seq] as i64).map_err(|m| cx.fail(m))?;
        let step = strides(shape)[seq];
        let out = data.select(shape, |flat| {
            let index = unravel(flat, shape);
            let (i, len) = (index[seq], lengths[index[batch]] as usize);
            Some(if i < len { flat - i * step + (len - 1 - i) * step } else { flat })
        })?;
        cx.set(0, out)
    }
}

fn check_lengths(lengths: &[i64], n: i64) -> Result<(), String> {
    match lengths.iter().find(|l| !(0..=n).contains(*l)) {
        Some(l) => Err(format!("a sequence length is {l}, the axis has {n}")),
        None => Ok(()),
    }
}
