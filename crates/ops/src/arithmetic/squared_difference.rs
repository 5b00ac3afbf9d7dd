//! SquaredDifference: `y = (a - b)^2`. Integers wrap.

use super::binary::{self, broadcasting};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Number;

broadcasting! {
    /// Square of the difference.
    #[op(since = 1, inputs = "a, b", commutative, broadcasts)]
    pub struct SquaredDifference;
}

impl Op for SquaredDifference {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        binary::infer(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_number!(cx.ty(0), T => binary::map(cx, self.meeting(), |a: T, b: T| square(a.wrapping_sub(b))))
    }
}

fn square<T: Number>(x: T) -> T {
    x.wrapping_mul(x)
}
