//! FloorMod: the remainder of division rounded down, with the sign of the divisor: `a - b * floor(a / b)`.

use super::binary::{self, any_integer, broadcasting};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, Number};

broadcasting! {
    /// Remainder with the sign of the divisor.
    #[op(since = 1, inputs = "a, b", broadcasts)]
    pub struct FloorMod;
}

impl Op for FloorMod {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        binary::infer_dims(cx, self.meeting(), remainder_dims)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        binary::refuse_zero_divisor(cx)?;
        with_number!(cx.ty(0), T => binary::map(cx, self.meeting(), remainder::<T>))
    }
}

fn remainder<T: Number>(a: T, b: T) -> T {
    if T::IS_FLOAT {
        let (a, b) = (a.to_f64(), b.to_f64());
        T::from_f64(a - b * (a / b).floor())
    } else if T::TYPE.is_signed() {
        let (a, b) = (a.to_i64(), b.to_i64());
        let rest = a.wrapping_rem(b);
        T::from_i64(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
    } else {
        a % b
    }
}

fn remainder_dims(a: Dim, b: Dim) -> Dim {
    match (a.get(), b.get()) {
        (Some(a), Some(b)) if b != 0 => Dim::known(remainder(a, b)),
        (_, Some(d)) if d > 0 && a.min() >= 0 => a.rem(d),
        (_, Some(d)) if d > 0 => Dim::range(0, Some(d - 1)),
        (_, Some(d)) if d < 0 => Dim::range(d + 1, Some(0)),
        _ => any_integer(),
    }
}
