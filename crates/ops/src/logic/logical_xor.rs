//! LogicalXor: true where exactly one is. A member of opset1 that files call `opset2`.

use super::logical;
use crate::arithmetic::binary::broadcasting;
use carafe_graph::{EvalCx, InferCx, Op, Result};

broadcasting! {
    /// Exactly one.
    #[op(since = 1, opset = "opset2", inputs = "a, b", commutative, broadcasts)]
    pub struct LogicalXor;
}

impl Op for LogicalXor {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        logical::infer(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        logical::map(cx, self.meeting(), |a, b| a != b)
    }
}
