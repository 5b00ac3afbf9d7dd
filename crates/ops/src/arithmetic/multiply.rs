//! Multiply: `y = a * b`. Integers wrap.

use super::binary::{self, broadcasting};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, Number, ElementType};

broadcasting! {
    /// Product.
    #[op(since = 1, inputs = "a, b", commutative, broadcasts)]
    pub struct Multiply;
}

impl Op for Multiply {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        binary::infer_dims(cx, self.meeting(), Dim::mul)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_number!(cx.ty(0), T => binary::map(cx, self.meeting(), |a: T, b: T| a.wrapping_mul(b)))
    }
    fn neutral(&self, _ty: ElementType) -> Option<f64> {
        Some(1.0)
    }
}
