//! ReduceMax: the largest over some axes. NaN never wins; no elements at all give minus infinity or the lowest integer.
//! OpenVINO starts at the lowest finite float instead, and so loses rows of minus infinities, which masks are made of.

use super::reduction::{self, Step};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use crate::math::unary::integer_range;
use carafe_tensor::Dim;

/// Largest over axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, axes", reduces)]
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
        let step = Step { first: (f64::NEG_INFINITY, integer_range(cx.ty(0)).0), float: |a, x| if a < x { x } else { a }, int: i128::max };
        reduction::eval(cx, step)
    }
}
