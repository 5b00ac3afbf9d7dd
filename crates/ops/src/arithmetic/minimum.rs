//! Minimum: the smaller of two numbers. Where they do not compare (NaN), the first one.

use super::binary::{self, broadcasting};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Dim;

broadcasting! {
    /// Smaller number.
    #[op(since = 1, inputs = "a, b", commutative, broadcasts)]
    pub struct Minimum;
}

impl Op for Minimum {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        binary::infer_dims(cx, self.meeting(), Dim::min_of)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_number!(cx.ty(0), T => binary::map(cx, self.meeting(), |a: T, b: T| if b < a { b } else { a }))
    }
}
