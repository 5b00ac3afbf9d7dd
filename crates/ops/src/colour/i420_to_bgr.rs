//! I420toBGR: planar YUV 4:2:0 to BGR pixels; one input holds all three planes.

use super::yuv::{self, Layout, Order};
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Converts I420 to BGR.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "I420toBGR", since = 8, inputs = "y, u?, v?")]
pub struct I420ToBgr;

impl Op for I420ToBgr {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        yuv::infer(cx, Layout::I420)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        yuv::eval(cx, Layout::I420, Order::Bgr)
    }
}
