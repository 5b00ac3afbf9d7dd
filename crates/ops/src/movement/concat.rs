//! Concat: inputs one after another along an axis. All other dimensions must agree, and what one input knows of them
//! holds for all.

use crate::index::around;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, RowsCx, OrderCx, Reordered};
use carafe_tensor::{Dim, PartialShape, Tensor};

/// Joins its inputs along an axis.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "inputs...", moves = "0")]
pub struct Concat {
    /// Where to join; negative counts from the end.
    pub axis: i64,
}

impl Op for Concat {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let all: Vec<usize> = (0..cx.n_inputs()).collect();
        cx.require(!all.is_empty(), || "takes at least 1 input, found 0".to_string())?;
        let ty = cx.same_type(&all)?;
        let mut joined = PartialShape::dynamic();
        let mut total = Dim::known(0);
        for &i in &all {
            let mut shape = cx.shape(i).clone();
            if let Some(dims) = shape.dims_mut() {
                let axis = normalize_axis(self.axis, dims.len())?;
                total = total.add(dims[axis]);
                dims[axis] = Dim::ANY;
            } else {
                total = total.add(Dim::ANY);
            }
            joined = joined.merge(&shape).ok_or_else(|| {
                cx.fail(format!(
                    "inputs must agree except on axis {}, found [{}] and [{}]",
                    self.axis,
                    cx.shape(0),
                    cx.shape(i)
                ))
            })?;
        }
        if let Some(dims) = joined.dims_mut() {
            let axis = normalize_axis(self.axis, dims.len())?;
            dims[axis] = total;
        }
        cx.set(0, ty, joined);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.out_shape(0)?;
        let axis = normalize_axis(self.axis, shape.len())?;
        let (outer, joined, inner) = around(&shape, axis);
        let mut out = Tensor::zeros(cx.ty(0), &shape)?;
        let mut position = 0;
        for i in 0..cx.n_inputs() {
            let chunk = cx.shape(i)[axis] * inner;
            for o in 0..outer {
                out.copy_elements(o * joined * inner + position, cx.input(i), o * chunk, chunk)?;
            }
            position += chunk;
        }
        cx.set(0, out)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        let all: Vec<usize> = (0..cx.kinds().len()).collect();
        cx.rows_at(&all).and_then(|()| cx.axis_leaves_rows(self.axis))
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        let axis = cx.axis(self.axis)?;
        Some(Reordered { op: Box::new(Concat { axis }), data: cx.n_inputs, ints: vec![] })
    }
}
