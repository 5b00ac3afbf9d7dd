//! BitwiseXor: the bits exactly one integer has; logical on booleans.

use super::bitwise;
use crate::arithmetic::binary::broadcasting;
use carafe_graph::{EvalCx, InferCx, Op, Result};

broadcasting! {
    /// Bits of exactly one.
    #[op(since = 13, inputs = "a, b", commutative, broadcasts)]
    pub struct BitwiseXor;
}

impl Op for BitwiseXor {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        bitwise::infer(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        bitwise::map(cx, self.meeting(), |a, b| a ^ b)
    }
}
