//! CTCGreedyDecoderSeqLen: best-path decoding of `[batch, time, classes]` with a length per row. Without the third input
//! the blank is the last class.

use super::ctc::{best_class, decode};
use super::shapes::merge;
use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, PartialShape};

/// Decodes the most likely class of each step into labels `[batch, time]`, padded with -1, and their number.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "CTCGreedyDecoderSeqLen",
    since = 6,
    inputs = "data, sequence_length, blank_index?",
    outputs = "classes, length"
)]
pub struct CtcGreedyDecoderSeqLen {
    /// Repeats of one class without a blank between them count once.
    #[attr(default = true)]
    pub merge_repeated: bool,
    /// Type of the labels: i32 or i64.
    #[attr(default = ElementType::I32)]
    pub classes_index_type: ElementType,
    /// Type of the lengths: i32 or i64.
    #[attr(default = ElementType::I32)]
    pub sequence_length_type: ElementType,
}

impl Op for CtcGreedyDecoderSeqLen {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        for (name, ty) in
            [("classes_index_type", self.classes_index_type), ("sequence_length_type", self.sequence_length_type)]
        {
            cx.require(matches!(ty, ElementType::I32 | ElementType::I64), || {
                format!("attribute `{name}` must be i32 or i64, found {ty}")
            })?;
        }
        cx.require_float(0)?;
        cx.require_integer(1)?;
        cx.require_rank(0, &[3])?;
        cx.require_rank(1, &[1])?;
        if cx.has(2) {
            cx.require_integer(2)?;
            cx.require(cx.shape(2).elements().is_none_or(|n| n == 1), || {
                format!("{} must have one element, found [{}]", cx.port_name(2), cx.shape(2))
            })?;
        }
        cx.require(cx.dim(0, 2).get() != Some(0), || "there must be at least one class".to_string())?;
        let mut batch = cx.dim(0, 0);
        merge(cx, &mut batch, cx.dim(1, 0), "batch")?;
        cx.set(0, self.classes_index_type, PartialShape::new([batch, cx.dim(0, 1)]));
        cx.set(1, self.sequence_length_type, PartialShape::new([batch]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let [batch, time, classes] = [0, 1, 2].map(|i| cx.shape(0)[i]);
        let blank = if cx.has(2) { cx.int(2)? } else { classes as i64 - 1 };
        let mut out = filled(&[batch, time], -1i64)?;
        let mut lengths = Vec::with_capacity(batch);
        let data = cx.get::<f64>(0)?;
        for (n, &length) in cx.get::<i64>(1)?.iter().enumerate() {
            let length = usize::try_from(length)
                .ok()
                .filter(|&l| l <= time)
                .ok_or_else(|| cx.fail(format!("sequence length {length} is not within 0..{time}")))?;
            let steps = (0..length).map(|t| best_class(&data[(n * time + t) * classes..][..classes]));
            let labels = decode(steps, blank, self.merge_repeated);
            lengths.push(labels.len() as i64);
            for (slot, label) in out[n * time..].iter_mut().zip(labels) {
                *slot = label as i64;
            }
        }
        drop(data);
        cx.put(0, &[batch, time], out)?;
        cx.put(1, &[batch], lengths)
    }
}
