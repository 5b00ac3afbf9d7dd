//! BitwiseRightShift: moves the bits down and keeps the sign. Of the distance only the low five bits count, six for 64-bit types.

use super::bitwise;
use crate::arithmetic::binary::{self, broadcasting};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Number;

broadcasting! {
    /// `a / 2^b`, rounded down.
    #[op(since = 15, inputs = "a, b", broadcasts)]
    pub struct BitwiseRightShift;
}

impl Op for BitwiseRightShift {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        bitwise::infer_shift(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_number!(cx.ty(0), T => binary::map(cx, self.meeting(), shift::<T>))
    }
}

fn shift<T: Number>(a: T, b: T) -> T {
    let by = b.to_i64() as u32;
    match (T::TYPE.bits(), T::TYPE.is_signed()) {
        (64, true) => T::from_i64(a.to_i64().wrapping_shr(by)),
        (64, false) => T::from_u64(a.to_u64().wrapping_shr(by)),
        (_, true) => T::from_i64(i64::from((a.to_i64() as i32).wrapping_shr(by))),
        (_, false) => T::from_u64(u64::from((a.to_u64() as u32).wrapping_shr(by))),
    }
}
