//! BinaryConvolution: Convolution of signs. Bits and numbers above 0 stand for +1, all others for -1, so that the result
//! is the number of equal signs less the number of different ones; a pad value of 0 takes no side. Packed filters are
//! read from the lowest bit of each byte, the other way round than u1 elements elsewhere: so does OpenVINO's kernel.

use super::forward::{convolve, infer_shape};
use super::window::{PadType, Rounding, Window};
use crate::cost;
use carafe_graph::{EvalCx, InferCx, Op, Result, Fact};
use carafe_tensor::ElementType;

carafe_graph::attr_enum! {
    /// How bits are multiplied and summed.
    pub enum BinaryMode {
        /// Product by XNOR, sum by population count.
        XnorPopcount = "xnor-popcount",
    }
}

/// Convolves the signs of `[N, Ci, ...]` with those of filters `[Co, Ci, ...]`, which are usually u1.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, filters", rows = "0", heavy)]
pub struct BinaryConvolution {
    /// Steps between windows, one for each spatial axis.
    pub strides: Vec<i64>,
    /// Padding before each axis.
    pub pads_begin: Vec<i64>,
    /// Padding after each axis.
    pub pads_end: Vec<i64>,
    /// Steps between the elements of a filter.
    pub dilations: Vec<i64>,
    /// How bits are multiplied and summed.
    pub mode: BinaryMode,
    /// What the padding holds: -1, 0 or 1.
    pub pad_value: f32,
    /// Where the pads come from.
    #[attr(default = PadType::Explicit)]
    pub auto_pad: PadType,
}

impl BinaryConvolution {
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

impl Op for BinaryConvolution {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_number(0)?;
        cx.require_number(1)?;
        let pad = self.pad_value;
        cx.require([-1.0, 0.0, 1.0].contains(&pad), || {
            format!("attribute `pad_value` must be -1, 0 or 1, found {pad}")
        })?;
        infer_shape(cx, &self.window(), false, cx.ty(0))
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let sign = |is_set: bool| if is_set { 1.0 } else { -1.0 };
        let data: Vec<f32> = cx.get::<f32>(0)?.iter().map(|&x| sign(x > 0.0)).collect();
        let filters: Vec<f32> = match cx.ty(1) {
            ElementType::U1 => {
                let bytes = cx.input(1).bytes();
                (0..cx.input(1).len()).map(|i| sign(bytes[i / 8] >> (i % 8) & 1 == 1)).collect()
            }
            _ => cx.get::<f32>(1)?.iter().map(|&x| sign(x > 0.0)).collect(),
        };
        let (shape, out) = convolve::<f32>(cx, &self.window(), false, &data, &filters, self.pad_value)?;
        cx.put(0, &shape, out)
    }
    fn macs(&self, inputs: &[&Fact], outputs: &[&Fact]) -> Option<u64> {
        cost::convolution(outputs[0], inputs.get(1), 1)
    }
}
