//! GroupConvolution: Convolution on groups of channels. The number of groups is the first dimension of the filters, no
//! attribute.

use super::forward;
use super::window::{PadType, Rounding, Window};
use crate::cost;
use carafe_graph::{EvalCx, InferCx, Op, Result, Fact};

/// Convolves `[N, G*Ci, ...]` with filters `[G, Co, Ci, ...]` to `[N, G*Co, ...]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, filters", rows = "0", heavy, channel = "1")]
pub struct GroupConvolution {
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

impl GroupConvolution {
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

impl Op for GroupConvolution {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        forward::infer(cx, &self.window(), true)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        forward::eval(cx, &self.window(), true)
    }
    fn macs(&self, inputs: &[&Fact], outputs: &[&Fact]) -> Option<u64> {
        cost::convolution(outputs[0], inputs.get(1), 2)
    }
}
