//! BitwiseLeftShift: moves the bits up. As on x86 only the low bits of the distance count: five of them, six for 64-bit types.

use super::bitwise;
use crate::arithmetic::binary::{self, broadcasting};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Number;

broadcasting! {
    /// `a * 2^b`, wrapped.
    #[op(since = 15, inputs = "a, b", broadcasts)]
    pub struct BitwiseLeftShift;
}

impl Op for BitwiseLeftShift {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        bitwise::infer_shift(cx, self.meeting())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_number!(cx.ty(0), T => binary::map(cx, self.meeting(), shift::<T>))
    }
}

fn shift<T: Number>(a: T, b: T) -> T {
    let by = b.to_i64() as u32;
    T::from_i64(match T::TYPE.bits() {
        64 => a.to_i64().wrapping_shl(by),
        _ => i64::from((a.to_i64() as i32).wrapping_shl(by)),
    })
}
