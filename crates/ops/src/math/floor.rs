//! Floor: rounds down; integers stay.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Largest integer not above.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero, idempotent)]
pub struct Floor;

impl Op for Floor {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_number(cx, f64::floor, |i| i)
    }
}
