//! SequenceLength: how many elements a packed sequence has.

use super::sequence::require_sequence;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, PackedSequence, PartialShape};

/// The number of elements, a scalar.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "sequence", outputs = "length")]
pub struct SequenceLength;

impl Op for SequenceLength {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_sequence(cx, 0)?;
        cx.set(0, ElementType::I64, PartialShape::scalar());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let length = PackedSequence::open(cx.input(0))?.len();
        cx.put(0, &[], vec![length as i64])
    }
}
