//! Decompress: weights out of compressed ones, with scales and zero points of groups. Devices that multiply compressed weights
//! make it of the longer forms in files; it is not meant for files itself.

use crate::index::{broadcast_strides, offsets};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, PartialShape};

/// `(data - zero) * scale`, as f32 of another shape. Scale and zero broadcast into the data.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, scale, zero?")]
pub struct Decompress {
    /// Shape of the result, with as many elements as the data: groups of an axis become the axis.
    pub shape: Vec<i64>,
}

impl Op for Decompress {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(1)?;
        let data = cx.shape(0).to_static();
        for (input, what) in [(1, "scale"), (2, "zero")].into_iter().take(cx.n_inputs() - 1) {
            let (Some(data), Some(small)) = (&data, cx.shape(input).to_static()) else { continue };
            let lead = data.len().checked_sub(small.len());
            let fits = lead.is_some_and(|lead| data[lead..].iter().zip(&small).all(|(d, s)| *s == 1 || s == d));
            cx.require(fits, || format!("{what} {small:?} does not broadcast into {data:?}"))?;
        }
        let shape: Option<Vec<usize>> = self.shape.iter().map(|n| usize::try_from(*n).ok()).collect();
        let shape = shape.ok_or_else(|| cx.fail(format!("attribute `shape` is {:?}", self.shape)))?;
        if let Some(data) = data {
            let same = carafe_tensor::elements(&data) == carafe_tensor::elements(&shape);
            cx.require(same, || format!("attribute `shape` is {shape:?} for data of shape {data:?}"))?;
        }
        cx.set(0, ElementType::F32, PartialShape::of(&shape));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (shape, out) = (cx.shape(0).to_vec(), cx.out_shape(0)?);
        let positions = |input: usize| offsets(&shape, &broadcast_strides(cx.shape(input), &shape));
        let mut numbers = cx.get::<f32>(0)?.into_owned();
        if cx.n_inputs() > 2 {
            let zero = cx.get::<f32>(2)?;
            numbers.iter_mut().zip(positions(2)).for_each(|(x, at)| *x -= zero[at]);
        }
        let scale = cx.get::<f32>(1)?;
        numbers.iter_mut().zip(positions(1)).for_each(|(x, at)| *x *= scale[at]);
        drop(scale);
        cx.put(0, &out, numbers)
    }
}
