//! SequenceErase: a packed sequence without one of its elements.

use super::sequence::{position, require_position, require_sequence, set_sequence};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::PackedSequence;

/// The sequence without the element at a position, without the last when none is given; negative ones count from the end.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "sequence, position?", outputs = "sequence")]
pub struct SequenceErase;

impl Op for SequenceErase {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_sequence(cx, 0)?;
        require_position(cx, 1)?;
        set_sequence(cx, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let sequence = PackedSequence::open(cx.input(0))?;
        let at = if cx.has(1) { cx.int(1)? } else { -1 };
        let shorter = sequence.erase(position(at, sequence.len(), sequence.len())?)?;
        cx.set(0, shorter)
    }
}
