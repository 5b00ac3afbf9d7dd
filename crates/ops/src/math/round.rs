//! Round: to the nearest integer. Ties go to the even neighbour unless told otherwise; integers and booleans stay.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::ElementType;

carafe_graph::attr_enum! {
    /// Where a half goes.
    pub enum RoundMode { HalfToEven = "half_to_even", HalfAwayFromZero = "half_away_from_zero" }
}

/// Nearest integer.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 5, elementwise, keeps_zero, idempotent)]
pub struct Round {
    /// Where a half goes.
    #[attr(default = RoundMode::HalfToEven)]
    pub mode: RoundMode,
}

impl Op for Round {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        if cx.ty(0) != ElementType::Boolean {
            cx.require_number(0)?;
        }
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        match self.mode {
            _ if !cx.ty(0).is_float() => unary::keep(cx),
            RoundMode::HalfToEven => unary::map_float(cx, f64::round_ties_even),
            RoundMode::HalfAwayFromZero => unary::map_float(cx, f64::round),
        }
    }
}
