//! NV12toBGR: YUV 4:2:0 with interleaved chroma to BGR pixels; one input holds both planes.

use super::yuv::{self, Layout, Order};
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Converts NV12 to BGR.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "NV12toBGR", since = 8, inputs = "y, uv?")]
pub struct Nv12ToBgr;

impl Op for Nv12ToBgr {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        yuv::infer(cx, Layout::Nv12)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        yuv::eval(cx, Layout::Nv12, Order::Bgr)
    }
}
