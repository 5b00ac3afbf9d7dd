//! ConvolutionBackpropData: transposed convolution (deconvolution). Filters are `[Ci, Co, ...]`, the other way round than
//! in Convolution.

use super::backward::Backward;
use super::window::PadType;
use crate::cost;
use carafe_graph::{EvalCx, InferCx, Op, Result, Fact};

/// Spreads `[N, Ci, ...]` through filters `[Ci, Co, ...]`; the optional input gives the spatial shape of the output.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, filters, output_shape?", rows = "0", shape_inputs = "2", heavy, channel = "1")]
pub struct ConvolutionBackpropData {
    /// Steps between filters in the output, one for each spatial axis.
    pub strides: Vec<i64>,
    /// Elements cut off before each axis.
    pub pads_begin: Vec<i64>,
    /// Elements cut off after each axis.
    pub pads_end: Vec<i64>,
    /// Steps between the elements of a filter.
    pub dilations: Vec<i64>,
    /// Where the pads come from; `same_*` needs the input `output_shape`, without it there are none.
    #[attr(default = PadType::Explicit)]
    pub auto_pad: PadType,
    /// Elements added after each axis.
    #[attr(default = Vec::new())]
    pub output_padding: Vec<i64>,
}

impl ConvolutionBackpropData {
    fn backward(&self) -> Backward<'_> {
        Backward {
            strides: &self.strides,
            dilations: &self.dilations,
            pads_begin: &self.pads_begin,
            pads_end: &self.pads_end,
            auto_pad: self.auto_pad,
            output_padding: &self.output_padding,
            grouped: false,
        }
    }
}

impl Op for ConvolutionBackpropData {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        self.backward().infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        self.backward().eval(cx)
    }
    fn macs(&self, inputs: &[&Fact], _: &[&Fact]) -> Option<u64> {
        // Every input element meets the filter of its own channel.
        cost::convolution(inputs.first()?, inputs.get(1), 1)
    }
}
