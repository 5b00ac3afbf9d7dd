//! Mod: the remainder of truncated division, with the sign of the dividend. Floats follow `a - b * trunc(a / b)`, which
//! differs from `fmod` where the divisor is infinite.

use super::binary::{self, any_integer, broadcasting};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, Number};

broadcasting! {
    /// Remainder with the sign of the dividend.
    #[op(since = 1, inputs = "a, b", broadcasts)]
    pub struct Mod;
}

impl Op for Mod {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        binary::infer_dims(cx, self.meeting(), |a, b| b.get().map_or_else(any_integer, |d| Dim::rem(a, d)))
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        binary::refuse_zero_divisor(cx)?;
        with_number!(cx.ty(0), T => binary::map(cx, self.meeting(), remainder::<T>))
    }
}

fn remainder<T: Number>(a: T, b: T) -> T {
    if T::IS_FLOAT {
        let (a, b) = (a.to_f64(), b.to_f64());
        T::from_f64(a - b * (a / b).trunc())
    } else if T::TYPE.is_signed() {
        T::from_i64(a.to_i64().wrapping_rem(b.to_i64()))
    } else {
        a % b
    }
}
