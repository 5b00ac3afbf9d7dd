//! NotEqual: where two tensors differ. NaN differs from everything, itself included.

use super::comparison::{self, compare};
use crate::arithmetic::binary::broadcasting;
use carafe_graph::{EvalCx, InferCx, Op, Result};

broadcasting! {
    /// Tells where `a != b`.
    #[op(since = 1, inputs = "a, b", commutative, broadcasts)]
    pub struct NotEqual;
}

impl Op for NotEqual {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        comparison::infer(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        compare!(cx, self.meeting(), !=)
    }
}
