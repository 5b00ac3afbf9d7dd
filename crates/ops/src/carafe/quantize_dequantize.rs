//! QuantizeDequantize: rounds numbers to the steps of a grid and gives them back as floats. Devices that store the steps as
//! integers make it of the longer forms in files; it is not meant for files itself.

use carafe_graph::{EvalCx, InferCx, Op, Result};

/// `(clamp(round(x / scale) + zero, low, high) - zero) * scale`; halves go to the even step.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data", quantizes)]
pub struct QuantizeDequantize {
    /// Distance of two steps.
    pub scale: f32,
    /// The step that stands for zero.
    pub zero: i64,
    /// The least step.
    pub low: i64,
    /// The largest step.
    pub high: i64,
}

impl Op for QuantizeDequantize {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        let (scale, low, high) = (self.scale, self.low, self.high);
        cx.require(scale > 0.0 && scale.is_finite(), || format!("attribute `scale` must be above 0, found {scale}"))?;
        let steps = low < high && [low, high, self.zero].iter().all(|x| x.abs() <= 1 << 20);
        cx.require(steps, || format!("attribute `low` must be below `high`, found {low} and {high}"))?;
        cx.output_like(0, 0);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let (zero, low, high) = (self.zero as f32, self.low as f32, self.high as f32);
        let rounded = |x: &f32| {
            let step = (x / self.scale).round_ties_even() + zero;
            // A number that is none stays none.
            let step = if step < low { low } else { step };
            (if step > high { high } else { step } - zero) * self.scale
        };
        let data = cx.get::<f32>(0)?.iter().map(rounded).collect::<Vec<_>>();
        cx.put(0, &shape, data)
    }
}
