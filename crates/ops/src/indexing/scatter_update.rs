//! ScatterUpdate: replaces whole slices of the data along an axis. Indices must lie within the axis and do not count
//! from its end.

use super::scatter::infer_output;
use crate::movement::axes::{axis_input, require_one};
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis};
use carafe_tensor::PartialShape;

/// Replaces slices along an axis; where an index repeats, the last update stays.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 3, inputs = "data, indices, updates, axis", moves = "0, 2")]
pub struct ScatterUpdate;

impl Op for ScatterUpdate {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_integer(1)?;
        require_one(cx, 3)?;
        if let (Some(data), Some(indices)) = (cx.shape(0).dims(), cx.shape(1).dims()) {
            cx.require(!data.is_empty(), || "data must not be a scalar".to_string())?;
            if let Some(axis) = axis_input(cx, 3, data.len())? {
                let slices = data[..axis].iter().chain(indices).chain(&data[axis + 1..]).copied();
                let wanted = PartialShape::new(slices);
                cx.require(cx.shape(2).compatible(&wanted), || {
                    format!("updates must have shape [{wanted}], found [{}]", cx.shape(2))
                })?;
            }
        }
        infer_output(cx, 2)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0);
        let axis = normalize_axis(cx.int(3)?, shape.len())?;
        let n = shape[axis];
        let outer: usize = shape[..axis].iter().product();
        let inner: usize = shape[axis + 1..].iter().product();
        let indices = cx.ints(1)?;
        let mut out = cx.input(0).clone();
        for o in 0..outer {
            for (i, &index) in indices.iter().enumerate() {
                let at = usize::try_from(index).ok().filter(|&at| at < n);
                let at = at.ok_or_else(|| cx.fail(format!("index {index} is outside of an axis of {n}")))?;
                out.copy_elements((o * n + at) * inner, cx.input(2), (o * indices.len() + i) * inner, inner)?;
            }
        }
        cx.set(0, out)
    }
}
