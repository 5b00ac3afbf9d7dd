//! Convert: the same numbers in another element type. Floats lose their fraction, integers their high bits, and anything
//! but 0 is true; a float that does not fit gives what x86 gives, not the nearest end.

use super::casting;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::ElementType;

/// Changes the element type.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise)]
pub struct Convert {
    /// The new element type.
    pub destination_type: ElementType,
}

impl Op for Convert {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        casting::infer(cx, 0, 0, self.destination_type)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        casting::eval(cx, 0, 0)
    }
}
