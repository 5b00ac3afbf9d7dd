//! Add: `y = a + b`. Integers wrap.

use super::binary::{self, broadcasting};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, Number, ElementType};

broadcasting! {
    /// Sum.
    #[op(since = 1, inputs = "a, b", commutative, broadcasts)]
    pub struct Add;
}

impl Op for Add {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        binary::infer_dims(cx, self.meeting(), Dim::add)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_number!(cx.ty(0), T => binary::map(cx, self.meeting(), |a: T, b: T| a.wrapping_add(b)))
    }
    fn neutral(&self, _ty: ElementType) -> Option<f64> {
        Some(0.0)
    }
}
