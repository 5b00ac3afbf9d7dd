//! SequenceSplit: a tensor cut along an axis into a packed sequence. A scalar says how long each part is, the last may be
//! shorter; a vector lists the lengths, which must add up; without either each part is one long.

use super::sequence::set_sequence;
use crate::index::around;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis};
use carafe_tensor::{Tensor, pack_sequence};

/// More parts than this are refused; an axis of a tensor without elements may be of any length.
const MAX_PARTS: usize = 1 << 20;

/// The parts of a tensor as a sequence.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, split?", outputs = "sequence")]
pub struct SequenceSplit {
    /// Where to cut; negative counts from the end.
    #[attr(default = 0)]
    pub axis: i64,
    /// Whether parts keep the axis; only parts of one without `split` can lose it.
    #[attr(default = true)]
    pub keep_axis: bool,
}

impl Op for SequenceSplit {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        if let Some(rank) = cx.rank(0) {
            cx.axis(self.axis, rank)?;
        }
        if cx.n_inputs() > 1 {
            cx.require_integer(1)?;
            cx.require_rank(1, &[0, 1])?;
        }
        set_sequence(cx, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let data = cx.input(0);
        let axis = normalize_axis(self.axis, data.rank())?;
        let along = data.shape()[axis];
        // Sizes of a tensor without elements may be anything.
        let (outer, _, inner) = if data.is_empty() { (0, 0, 0) } else { around(data.shape(), axis) };
        let lengths = lengths(cx, along)?;
        let mut parts = Vec::with_capacity(lengths.len());
        let mut begin = 0;
        for length in lengths {
            let mut shape = data.shape().to_vec();
            shape[axis] = length;
            let mut part = Tensor::zeros(data.element_type(), &shape)?;
            for o in 0..outer {
                part.copy_elements(o * length * inner, data, (o * along + begin) * inner, length * inner)?;
            }
            if !self.keep_axis && !cx.has(1) {
                shape.remove(axis);
                part = part.reshaped(&shape)?;
            }
            parts.push(part);
            begin += length;
        }
        cx.set(0, pack_sequence(&parts)?)
    }
}

fn lengths(cx: &EvalCx<'_>, along: usize) -> Result<Vec<usize>> {
    let given = if cx.has(1) { cx.ints(1)? } else { vec![1] };
    let bad = || cx.fail(format!("an axis of {along} cannot be cut into parts of {given:?}"));
    if !cx.has(1) || cx.shape(1).is_empty() {
        let size = given.first().and_then(|&n| usize::try_from(n).ok()).filter(|&n| n > 0).ok_or_else(bad)?;
        let parts = along.div_ceil(size);
        if parts > MAX_PARTS {
            return Err(cx.fail(format!("{parts} parts are more than {MAX_PARTS}")));
        }
        return Ok((0..parts).map(|i| size.min(along - i * size)).collect());
    }
    let lengths = given.iter().map(|&n| usize::try_from(n).ok()).collect::<Option<Vec<_>>>().ok_or_else(bad)?;
    let total = lengths.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
    if total == Some(along) { Ok(lengths) } else { Err(bad()) }
}
