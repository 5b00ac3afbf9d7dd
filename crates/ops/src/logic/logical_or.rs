//! LogicalOr: true where at least one is. Booleans only.

use super::logical;
use crate::arithmetic::binary::broadcasting;
use carafe_graph::{EvalCx, InferCx, Op, Result};

broadcasting! {
    /// At least one.
    #[op(since = 1, inputs = "a, b", commutative)]
    pub struct LogicalOr;
}

impl Op for LogicalOr {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        logical::infer(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        logical::map(cx, self.meeting(), |a, b| a || b)
    }
}
