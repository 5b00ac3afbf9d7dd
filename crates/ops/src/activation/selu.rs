//! Selu: `y = lambda * x` above 0, else `lambda * alpha * (e^x - 1)`. Both factors are inputs of one element.

use super::elu::elu;
use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Scaled exponential linear unit.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, alpha, lambda", elementwise, keeps_zero)]
pub struct Selu;

impl Op for Selu {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.same_type(&[0, 1, 2])?;
        cx.require_float(0)?;
        for i in [1, 2] {
            let shape = cx.shape(i);
            let one = shape.elements().is_none_or(|n| n == 1);
            cx.require(one, || format!("{} must have one element, found [{shape}]", cx.port_name(i)))?;
        }
        cx.set(0, ty, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (alpha, lambda) = (cx.float(1)?, cx.float(2)?);
        unary::map_float(cx, |x| lambda * elu(x, alpha))
    }
}
