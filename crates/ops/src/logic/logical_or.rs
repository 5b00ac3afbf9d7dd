//! LogicalOr: true where at least one is. Booleans only.

use super::logical;
use crate::arithmetic::binary::broadcasting;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType};

broadcasting! {
    /// At least one.
    #[op(since = 1, inputs = "a, b", commutative, broadcasts)]
    pub struct LogicalOr;
}

impl Op for LogicalOr {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        logical::infer(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        logical::map(cx, self.meeting(), |a, b| a || b)
    }
    fn neutral(&self, ty: ElementType) -> Option<f64> {
        (ty == ElementType::Boolean).then_some(0.0)
    }
}
