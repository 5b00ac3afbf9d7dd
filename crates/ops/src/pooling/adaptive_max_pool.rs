//! AdaptiveMaxPool: largest elements of windows that share the data evenly. Indices are flat over the spatial axes only.

use super::adaptive::{each_window, shape};
use super::pool::check_index_type;
use crate::linear::product::zeros;
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx};
use carafe_tensor::{ElementType, Number};

/// Largest element of every window, and where it stood; input 1 is the spatial shape of the output.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "data, output_shape", outputs = "values, indices", shape_inputs = "1", heavy)]
pub struct AdaptiveMaxPool {
    /// Type of the indices, i64 or i32.
    #[attr(default = ElementType::I64)]
    pub index_element_type: ElementType,
}

impl Op for AdaptiveMaxPool {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        check_index_type(cx, self.index_element_type)?;
        let shape = shape(cx)?;
        cx.set(0, cx.ty(0), shape.clone());
        cx.set(1, self.index_element_type, shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_number!(cx.ty(0), T => {
            let (values, indices) = largest::<T>(cx)?;
            let out_shape = cx.out_shape(0)?;
            cx.put(0, &out_shape, values)?;
            cx.put(1, &out_shape, indices)
        })
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0])?;
        // Positions of the maxima count over all rows.
        if cx.only_first_output() { Ok(()) } else { Err("its positions count over all rows".into()) }
    }
}

fn largest<T: Number>(cx: &EvalCx<'_>) -> Result<(Vec<T>, Vec<i64>)> {
    let out_shape = cx.out_shape(0)?;
    let image_len: usize = cx.shape(0)[2..].iter().product();
    let data = cx.get::<T>(0)?;
    let mut values: Vec<T> = zeros(&out_shape)?;
    let mut indices: Vec<i64> = zeros(&out_shape)?;
    if data.is_empty() {
        return Ok((values, indices));
    }
    let mut out = values.iter_mut().zip(&mut indices);
    for image in data.chunks_exact(image_len) {
        each_window(cx, &mut |positions| {
            let Some(mut best) = positions.next() else { return };
            for at in positions {
                if image[at] > image[best] {
                    best = at;
                }
            }
            if let Some((value, index)) = out.next() {
                (*value, *index) = (image[best], best as i64);
            }
        })?;
    }
    Ok((values, indices))
}
