//! Xor: LogicalXor under its first name, gone after opset1.

use super::logical;
use crate::arithmetic::binary::broadcasting;
use carafe_graph::{EvalCx, InferCx, Op, Result};

broadcasting! {
    /// Exactly one.
    #[op(since = 1, until = 1, inputs = "a, b", commutative, broadcasts)]
    pub struct Xor;
}

impl Op for Xor {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        logical::infer(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        logical::map(cx, self.meeting(), |a, b| a != b)
    }
}
