//! FakeConvert: what is left of data after a trip through an 8-bit float: `(f8(x * scale - shift) + shift) / scale`.
//! The trip goes through f16, so a value just above a tie is rounded twice, and numbers too large stay at the largest
//! finite one, unlike in Convert.

use crate::index::{broadcast_strides, offsets};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, PartialShape, f16, float8};

/// Rounds data to an 8-bit float and back.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 13, inputs = "data, scale, shift?", quantizes)]
pub struct FakeConvert {
    /// f8e4m3 or f8e5m2.
    pub destination_type: ElementType,
}

impl FakeConvert {
    /// Largest finite value of the 8-bit type; `None` for others.
    fn largest(&self) -> Option<f32> {
        match self.destination_type {
            ElementType::F8E4M3 => Some(448.0),
            ElementType::F8E5M2 => Some(57344.0),
            _ => None,
        }
    }
}

impl Op for FakeConvert {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let to = self.destination_type;
        cx.require(self.largest().is_some(), || {
            format!("attribute `destination_type` must be f8e4m3 or f8e5m2, found {to}")
        })?;
        let inputs: Vec<usize> = (0..cx.n_inputs()).collect();
        let ty = cx.same_type(&inputs)?;
        let fits = matches!(ty, ElementType::Dynamic | ElementType::F32 | ElementType::F16 | ElementType::Bf16);
        cx.require(fits, || format!("inputs must be f32, f16 or bf16, found {ty}"))?;
        if cx.has(2) {
            let (scale, shift) = (cx.shape(1), cx.shape(2));
            cx.require(scale.compatible(shift), || {
                format!("scale and shift need one shape, found [{scale}] and [{shift}]")
            })?;
        }
        let data = cx.shape(0);
        for &input in &inputs[1..] {
            let own = cx.shape(input);
            cx.require(spreads_over(own, data), || {
                format!("{} of shape [{own}] does not broadcast to data of shape [{data}]", cx.port_name(input))
            })?;
        }
        cx.set(0, ty, data.clone());
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let ty = self.destination_type;
        let largest = self.largest().ok_or_else(|| cx.fail(format!("{ty} is no 8-bit float")))?;
        let trip = |x: f32| {
            let half = f16::from_f32(x).to_f32().clamp(-largest, largest);
            float8::decode(ty, float8::encode(ty, half))
        };
        let shape = cx.shape(0).to_vec();
        let steps = broadcast_strides(cx.shape(1), &shape);
        let data: Vec<f32> = {
            let (x, scale) = (cx.get::<f32>(0)?, cx.get::<f32>(1)?);
            let shift = if cx.has(2) { cx.get::<f32>(2)?.into_owned() } else { vec![0.0; scale.len()] };
            let at = offsets(&shape, &steps);
            x.iter().zip(at).map(|(x, i)| (trip(x * scale[i] - shift[i]) + shift[i]) / scale[i]).collect()
        };
        cx.put(0, &shape, data)
    }
}

/// Whether a tensor can be repeated over data without widening it.
fn spreads_over(own: &PartialShape, data: &PartialShape) -> bool {
    let (Some(own), Some(data)) = (own.dims(), data.dims()) else { return true };
    own.len() <= data.len() && own.iter().rev().zip(data.iter().rev()).all(|(o, d)| o.contains(1) || o.compatible(*d))
}
