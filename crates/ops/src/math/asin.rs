//! Asin: the arc sine. Outside of [-1, 1] floats give NaN and integers the lowest value; integers are cut,
//! unlike those of Acos.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Arc sine.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero)]
pub struct Asin;

impl Op for Asin {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_truncated(cx, f64::asin)
    }
}
