//! BitwiseNot: every bit turned over; logical on booleans.

use super::bitwise;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::ElementType;

/// Complement.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 13, elementwise, involution)]
pub struct BitwiseNot;

impl Op for BitwiseNot {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        bitwise::require_bits(cx, 0)?;
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let boolean = cx.ty(0) == ElementType::Boolean;
        let y: Vec<i64> = cx.get::<i64>(0)?.iter().map(|&x| if boolean { i64::from(x == 0) } else { !x }).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, y)
    }
}
