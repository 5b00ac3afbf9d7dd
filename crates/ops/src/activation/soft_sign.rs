//! SoftSign: `y = x / (1 + |x|)`; NaN at infinity.

use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Sign with a soft step.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 9, elementwise, keeps_zero)]
pub struct SoftSign;

impl Op for SoftSign {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer_float(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_float(cx, |x| x / (1.0 + x.abs()))
    }
}
