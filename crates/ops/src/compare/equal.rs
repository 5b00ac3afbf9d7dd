//! Equal: where two tensors agree. NaN equals nothing; strings compare byte by byte.

use super::comparison::{self, compare};
use crate::arithmetic::binary::broadcasting;
use carafe_graph::{EvalCx, InferCx, Op, Result};

broadcasting! {
    /// Tells where `a == b`.
    #[op(since = 1, inputs = "a, b", commutative, broadcasts)]
    pub struct Equal;
}

impl Op for Equal {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        comparison::infer(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        compare!(cx, self.meeting(), ==)
    }
}
