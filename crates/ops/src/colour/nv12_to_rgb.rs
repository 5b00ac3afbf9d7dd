//! NV12toRGB: YUV 4:2:0 with interleaved chroma to RGB pixels; one input holds both planes.

use super::yuv::{self, Layout, Order};
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Converts NV12 to RGB.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "NV12toRGB", since = 8, inputs = "y, uv?")]
pub struct Nv12ToRgb;

impl Op for Nv12ToRgb {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        yuv::infer(cx, Layout::Nv12)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        yuv::eval(cx, Layout::Nv12, Order::Rgb)
    }
}
