//! LessEqual: where the first is not larger. False where one is NaN.

use super::comparison::{self, compare};
use crate::arithmetic::binary::broadcasting;
use carafe_graph::{EvalCx, InferCx, Op, Result};

broadcasting! {
    /// Tells where `a <= b`.
    #[op(since = 1, inputs = "a, b", broadcasts)]
    pub struct LessEqual;
}

impl Op for LessEqual {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        comparison::infer(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        compare!(cx, self.meeting(), <=)
    }
}
