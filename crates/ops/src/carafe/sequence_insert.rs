//! SequenceInsert: a packed sequence with a further element. The length itself is a position too, the end.

use super::sequence::{position, require_element, require_position, require_sequence, set_sequence};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::PackedSequence;

/// The sequence with the item in front of a position, at the end without one; negative positions count from the end.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "sequence, item, position?", outputs = "sequence")]
pub struct SequenceInsert;

impl Op for SequenceInsert {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_sequence(cx, 0)?;
        require_position(cx, 2)?;
        set_sequence(cx, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let sequence = PackedSequence::open(cx.input(0))?;
        require_element(&sequence, cx.ty(1))?;
        let at = match cx.has(2) {
            true => position(cx.int(2)?, sequence.len(), sequence.len() + 1)?,
            false => sequence.len(),
        };
        let longer = sequence.insert(at, cx.input(1))?;
        cx.set(0, longer)
    }
}
