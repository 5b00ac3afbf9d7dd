//! Convolution: cross-correlation of a batch of images with a bank of filters; the filters are not flipped.

use super::forward;
use super::window::{PadType, Rounding, Window};
use crate::cost;
use carafe_graph::{EvalCx, InferCx, Op, Result, Fact};

/// Convolves `[N, Ci, ...]` with filters `[Co, Ci, ...]` on one to three spatial axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, filters", rows = "0", heavy, channel = "1")]
pub struct Convolution {
    /// Steps between windows, one for each spatial axis.
    pub strides: Vec<i64>,
    /// Zeros before each axis; negative ones crop.
    pub pads_begin: Vec<i64>,
    /// Zeros after each axis; negative ones crop.
    pub pads_end: Vec<i64>,
    /// Steps between the elements of a filter.
    pub dilations: Vec<i64>,
    /// Where the pads come from.
    #[attr(default = PadType::Explicit)]
    pub auto_pad: PadType,
}

impl Convolution {
    fn window(&self) -> Window<'_> {
        Window {
            strides: &self.strides,
            dilations: &self.dilations,
            pads_begin: &self.pads_begin,
            pads_end: &self.pads_end,
            auto_pad: self.auto_pad,
            rounding: Rounding::Floor,
        }
    }
}

impl Op for Convolution {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        forward::infer(cx, &self.window(), false)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        forward::eval(cx, &self.window(), false)
    }
    fn macs(&self, inputs: &[&Fact], outputs: &[&Fact]) -> Option<u64> {
        cost::convolution(outputs[0], inputs.get(1), 1)
    }
}
