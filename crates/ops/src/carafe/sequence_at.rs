//! SequenceAt: one element of a packed sequence. Its type and shape are open unless the attributes tell them; an element
//! that does not agree with these is refused.

use super::sequence::{position, require_position, require_sequence};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, PackedSequence, PartialShape};

/// The element at a position; negative ones count from the end.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "sequence, position", outputs = "item")]
pub struct SequenceAt {
    /// Type of the element, where known.
    #[attr(default = ElementType::Dynamic)]
    pub element_type: ElementType,
    /// Shape of the element, as far as known.
    #[attr(default = PartialShape::dynamic())]
    pub shape: PartialShape,
}

impl Op for SequenceAt {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_sequence(cx, 0)?;
        require_position(cx, 1)?;
        cx.set(0, self.element_type, self.shape.clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let sequence = PackedSequence::open(cx.input(0))?;
        let item = sequence.get(position(cx.int(1)?, sequence.len(), sequence.len())?)?;
        cx.set(0, item)
    }
}
