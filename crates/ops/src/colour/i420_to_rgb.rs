//! I420toRGB: planar YUV 4:2:0 to RGB pixels; one input holds all three planes.

use super::yuv::{self, Layout, Order};
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Converts I420 to RGB.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "I420toRGB", since = 8, inputs = "y, u?, v?")]
pub struct I420ToRgb;

impl Op for I420ToRgb {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        yuv::infer(cx, Layout::I420)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        yuv::eval(cx, Layout::I420, Order::Rgb)
    }
}
