//! SliceScatter: the data with a slice of it replaced by the updates. The slice is described as in Slice.

use super::axes::of_rank;
use super::slice::{sliced_shape, sliced_view};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Dim;

/// Writes the updates over `data[start:stop:step]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 15, inputs = "data, updates, start, stop, step, axes?", moves = "0, 1")]
pub struct SliceScatter;

impl Op for SliceScatter {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.same_type(&[0, 1])?;
        let slice = sliced_shape(cx, 0, 2)?;
        cx.require(cx.shape(1).compatible(&slice), || {
            format!("updates must have the shape of the slice, [{slice}], found [{}]", cx.shape(1))
        })?;
        let shape = match (cx.rank(0), cx.rank(1)) {
            (None, Some(r)) => of_rank(Dim::from(r)),
            _ => cx.shape(0).clone(),
        };
        cx.set(0, ty, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let mut out = cx.input(0).clone();
        sliced_view(cx, 0, 2)?
            .for_each_run(|position, offset, n| Ok(out.copy_elements(offset, cx.input(1), position, n)?))?;
        cx.set(0, out)
    }
}
