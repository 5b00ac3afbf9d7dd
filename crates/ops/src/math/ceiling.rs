//! Ceiling: rounds up; integers stay.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Smallest integer not below.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero, idempotent)]
pub struct Ceiling;

impl Op for Ceiling {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_number(cx, f64::ceil, |i| i)
    }
}
