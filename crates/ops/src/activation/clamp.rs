//! Clamp: limits every element. NaN passes. On integers `min` is rounded up and `max` down, and both are cut to the range of
//! the type; when that leaves `min` above `max`, `min` only holds below it.

use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Limits every element to `min..=max`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, idempotent)]
pub struct Clamp {
    /// Lower limit.
    pub min: f64,
    /// Upper limit, not below `min`.
    pub max: f64,
}

impl Op for Clamp {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let (min, max) = (self.min, self.max);
        cx.require(min <= max, || format!("attribute `min` must not exceed `max`, found {min} and {max}"))?;
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (low, high) = unary::integer_range(cx.ty(0));
        let min = (self.min.ceil() as i128).clamp(low, high);
        let max = (self.max.floor() as i128).clamp(low, high);
        unary::map_number(cx, |x| limit(x, self.min, self.max), |i| limit(i, min, max))
    }
    fn keeps_zero(&self) -> bool {
        self.min <= 0.0 && self.max >= 0.0
    }
}

fn limit<T: PartialOrd>(x: T, min: T, max: T) -> T {
    if x < min {
        min
    } else if x > max {
        max
    } else {
        x
    }
}
