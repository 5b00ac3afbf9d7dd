//! BitwiseAnd: the bits both integers have; logical on booleans.

use super::bitwise;
use crate::arithmetic::binary::broadcasting;
use carafe_graph::{EvalCx, InferCx, Op, Result};

broadcasting! {
    /// Common bits.
    #[op(since = 13, inputs = "a, b", commutative, broadcasts)]
    pub struct BitwiseAnd;
}

impl Op for BitwiseAnd {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        bitwise::infer(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        bitwise::map(cx, self.meeting(), |a, b| a & b)
    }
}
