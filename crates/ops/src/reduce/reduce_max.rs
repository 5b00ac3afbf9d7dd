//! ReduceMax: the largest over some axes. NaN never wins, and the start is the lowest finite number, so nothing below it
//! (minus infinity) comes out; no elements at all give that start.

use super::reduction::{self, Step};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use crate::math::unary::integer_range;
use carafe_tensor::{Dim, ElementType};

/// Largest over axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, axes")]
pub struct ReduceMax {
    /// Whether folded dimensions stay as 1.
    #[attr(default = false)]
    pub keep_dims: bool,
}

impl Op for ReduceMax {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        reduction::infer_dims(cx, self.keep_dims, Dim::range(i64::MIN, Some(i64::MIN)), Dim::max_of)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let lowest = if cx.ty(0) == ElementType::F64 { f64::MIN } else { f64::from(f32::MIN) };
        let step = Step { first: (lowest, integer_range(cx.ty(0)).0), float: |a, x| if a < x { x } else { a }, int: i128::max };
        reduction::eval(cx, step)
    }
}
