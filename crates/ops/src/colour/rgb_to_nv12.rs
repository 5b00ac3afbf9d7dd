//! RGBtoNV12: RGB pixels to YUV 4:2:0 with interleaved chroma, as one tensor or as two.

use super::to_yuv;
use super::yuv::Order;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Converts RGB to NV12.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "RGBtoNV12", since = 17, outputs = "y, uv?")]
pub struct RgbToNv12 {
    /// Both planes in one output.
    #[attr(default = true)]
    pub single_plane: bool,
}

impl Op for RgbToNv12 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        to_yuv::infer(cx, self.single_plane)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        to_yuv::eval(cx, self.single_plane, Order::Rgb)
    }
}
