//! GatherElements: `out[i][j] = data[i][indices[i][j]]` for axis 1, and so on for other axes. The output has the shape
//! of the indices.

use super::gather::in_axis;
use crate::index::around;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis};
use carafe_tensor::{Dim, PartialShape};

/// Picks single elements along an axis.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 6, inputs = "data, indices", moves = "0")]
pub struct GatherElements {
    /// Axis the indices point along; negative counts from the end.
    pub axis: i64,
}

impl Op for GatherElements {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_integer(1)?;
        // The data says nothing about the length of the axis in the output.
        let mut data = cx.shape(0).clone();
        if let Some(dims) = data.dims_mut() {
            cx.require(!dims.is_empty(), || "data must not be a scalar".to_string())?;
            let axis = normalize_axis(self.axis, dims.len())?;
            dims[axis] = Dim::ANY;
        }
        if let Some(rank) = cx.rank(1) {
            cx.require(rank > 0, || "indices must not be a scalar".to_string())?;
            normalize_axis(self.axis, rank)?;
        }
        let shape: PartialShape = cx.shape(1).merge(&data).ok_or_else(|| {
            cx.fail(format!(
                "data and indices must agree except on axis {}, found [{}] and [{}]",
                self.axis,
                cx.shape(0),
                cx.shape(1)
            ))
        })?;
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.out_shape(0)?;
        let axis = normalize_axis(self.axis, out.len())?;
        let n = cx.shape(0)[axis];
        let indices = cx.get::<i64>(1)?;
        if let Some(bad) = indices.iter().find(|&&i| in_axis(i, n).is_none()) {
            return Err(cx.fail(format!("index {bad} is outside of an axis of {n}")));
        }
        let (_, m, inner) = around(&out, axis);
        let picked = cx.input(0).select(&out, |flat| {
            let (outer, k) = (flat / inner / m, flat % inner);
            Some((outer * n + in_axis(indices[flat], n)?) * inner + k)
        })?;
        cx.set(0, picked)
    }
}
