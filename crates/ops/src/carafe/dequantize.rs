//! Dequantize: stored integers times a scale, which broadcasts into them. Devices that compute with the integers make it of the
//! longer forms in files; it is not meant for files itself.

use crate::index::{broadcast_strides, offsets};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::ElementType;

/// `data * scale`, as f32.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, scale")]
pub struct Dequantize {}

impl Op for Dequantize {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_integer(0)?;
        cx.require_float(1)?;
        if let (Some(data), Some(scale)) = (cx.shape(0).to_static(), cx.shape(1).to_static()) {
            let lead = data.len().checked_sub(scale.len());
            let fits = lead.is_some_and(|lead| data[lead..].iter().zip(&scale).all(|(d, s)| *s == 1 || s == d));
            cx.require(fits, || format!("scale {scale:?} does not broadcast into {data:?}"))?;
        }
        let shape = cx.shape(0).clone();
        cx.set(0, ElementType::F32, shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let scale = cx.get::<f32>(1)?;
        let steps = broadcast_strides(cx.shape(1), &shape);
        let data = cx.get::<f32>(0)?;
        let scaled = data.iter().zip(offsets(&shape, &steps)).map(|(x, at)| x * scale[at]).collect::<Vec<_>>();
        cx.put(0, &shape, scaled)
    }
}
