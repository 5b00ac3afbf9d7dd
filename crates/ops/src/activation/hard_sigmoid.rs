//! HardSigmoid: `y = max(0, min(1, alpha * x + beta))`. The two factors are inputs, and scalars: one element in a vector is
//! refused.

use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// A line limited to 0..1.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, alpha, beta", elementwise)]
pub struct HardSigmoid;

impl Op for HardSigmoid {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_number(0)?;
        let ty = cx.same_type(&[0, 1, 2])?;
        cx.require_rank(1, &[0])?;
        cx.require_rank(2, &[0])?;
        cx.set(0, ty, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (alpha, beta) = (cx.float(1)?, cx.float(2)?);
        unary::map_truncated(cx, |x| (alpha * x + beta).clamp(0.0, 1.0))
    }
}
