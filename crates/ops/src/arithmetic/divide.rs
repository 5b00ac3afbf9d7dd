//! Divide: `y = a / b`. Integers round down by default, so -7 / 2 is -4, and refuse a zero divisor.

use super::binary::{self, AutoBroadcast, Meeting, any_integer};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, Number, ElementType};

/// Quotient.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "a, b", broadcasts)]
pub struct Divide {
    /// Integers round down when true, toward zero when false.
    #[attr(default = true)]
    pub m_pythondiv: bool,
    /// How the two shapes meet.
    #[attr(default = AutoBroadcast::Numpy)]
    pub auto_broadcast: AutoBroadcast,
    /// Axis of the first input where the second begins, with `pdpd` only: 0 when left out, -1 aligns the last axes.
    #[attr(name = "auto_broadcast.auto_broadcast_axis", default = None)]
    pub auto_broadcast_axis: Option<i64>,
}

impl Default for Divide {
    fn default() -> Divide {
        Divide { m_pythondiv: true, auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None }
    }
}

impl Divide {
    fn meeting(&self) -> Meeting {
        Meeting::new(self.auto_broadcast, self.auto_broadcast_axis)
    }
}

impl Op for Divide {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        binary::infer_dims(cx, self.meeting(), |a, b| divide_dims(a, b, self.m_pythondiv))
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        binary::refuse_zero_divisor(cx)?;
        let down = self.m_pythondiv;
        with_number!(cx.ty(0), T => binary::map(cx, self.meeting(), |a: T, b: T| divide(a, b, down)))
    }
    fn neutral(&self, _ty: ElementType) -> Option<f64> {
        Some(1.0)
    }
}

fn divide<T: Number>(a: T, b: T, down: bool) -> T {
    if T::IS_FLOAT || !T::TYPE.is_signed() {
        return a / b;
    }
    let (a, b) = (a.to_i64(), b.to_i64());
    let quotient = a.wrapping_div(b);
    let above = down && a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
    T::from_i64(if above { quotient - 1 } else { quotient })
}

fn divide_dims(a: Dim, b: Dim, down: bool) -> Dim {
    match (b.get(), b.max()) {
        (Some(d), _) if down || (a.min() >= 0 && d > 0) => a.floor_div(d),
        (None, most) if a.min() >= 0 && b.min() > 0 => {
            let low = most.map_or(0, |most| a.min() / most);
            Dim::range(low, a.max().map(|m| m / b.min()))
        }
        _ => any_integer(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_round_down_or_toward_zero() {
        assert_eq!([divide(-7i32, 2, true), divide(7, -2, true), divide(-7, -2, true)], [-4, -4, 3]);
        assert_eq!([divide(-7i32, 2, false), divide(7, -2, false), divide(-7, -2, false)], [-3, -3, 3]);
        assert_eq!(divide(i32::MIN, -1, true), i32::MIN);
        assert_eq!(divide(u64::MAX, 2, true), u64::MAX / 2);
    }

    #[test]
    fn unknown_divisors_give_the_widest_quotient() {
        assert_eq!(divide_dims(Dim::range(10, Some(20)), Dim::range(2, Some(5)), false), Dim::range(2, Some(10)));
        assert_eq!(divide_dims(Dim::ANY, Dim::ANY, true), any_integer());
        assert_eq!(divide_dims(Dim::ANY, Dim::known(2), true), Dim::ANY);
    }
}
