//! Power: `y = a ^ b`. Integers are computed in floating point and cut, so a negative exponent gives 0.

use super::binary::{self, broadcasting};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Number, ElementType};

broadcasting! {
    /// Power.
    #[op(since = 1, inputs = "a, b", broadcasts)]
    pub struct Power;
}

impl Op for Power {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        binary::infer(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_number!(cx.ty(0), T => binary::map(cx, self.meeting(), |a: T, b: T| T::from_f64(a.to_f64().powf(b.to_f64()))))
    }
    fn neutral(&self, ty: ElementType) -> Option<f64> {
        // The power of a 64-bit integer goes through floating point and loses digits.
        (!matches!(ty, ElementType::I64 | ElementType::U64)).then_some(1.0)
    }
}
