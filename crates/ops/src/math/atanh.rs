//! Atanh: the inverse hyperbolic tangent. An integer is either 0 or at infinity, which is stored as the highest or lowest
//! value of its type.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Inverse hyperbolic tangent.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 4, elementwise, keeps_zero)]
pub struct Atanh;

impl Op for Atanh {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let ty = cx.ty(0);
        if ty.is_float() {
            return unary::map_float(cx, f64::atanh);
        }
        let (low, high) = unary::integer_range(ty);
        unary::map_number(cx, f64::atanh, |i| match i.signum() {
            1 => high,
            -1 => low,
            _ => 0,
        })
    }
}
