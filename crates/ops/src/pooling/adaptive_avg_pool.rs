//! AdaptiveAvgPool: means over windows that share the data evenly.

use super::adaptive::{each_window, shape};
use crate::linear::product::zeros;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Mean of every window; input 1 is the spatial shape of the output.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "data, output_shape", rows = "0", shape_inputs = "1", heavy)]
pub struct AdaptiveAvgPool;

impl Op for AdaptiveAvgPool {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let shape = shape(cx)?;
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out_shape = cx.out_shape(0)?;
        let image_len: usize = cx.shape(0)[2..].iter().product();
        let data = cx.get::<f64>(0)?;
        let mut out: Vec<f64> = zeros(&out_shape)?;
        if !data.is_empty() {
            let mut means = out.iter_mut();
            for image in data.chunks_exact(image_len) {
                each_window(cx, &mut |positions| {
                    let (sum, count) = positions.fold((0.0, 0.0), |(sum, n), at| (sum + image[at], n + 1.0));
                    if let Some(mean) = means.next() {
                        *mean = sum / count;
                    }
                })?;
            }
        }
        drop(data);
        cx.put(0, &out_shape, out)
    }
}
