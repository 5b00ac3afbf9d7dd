//! A filter of one channel along rows gives a block of neighbouring outputs at once:
//!
//! ```text
//! Convolution(x, w), one channel in and out, stride s, k numbers in a row
//!     ->  Slice(Reshape(Transpose(Convolution(x, w'))))
//!         16 channels out, stride 16 * s, w'[j] is w moved by j * s among k + 15 * s numbers
//! ```
//!
//! Kernels have their vectors along the output channels, of which there is one otherwise. The channels of a pixel are then
//! neighbours of a row, so behind a convolution with channels last the transpose moves nothing.

use super::look::{integers, put_in_place};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite};
use carafe_ops::convolution::Convolution;
use carafe_ops::convolution::window::PadType;
use carafe_ops::movement::{Reshape, Slice, Transpose};
use carafe_tensor::Tensor;

/// Outputs of a block.
const BLOCK: usize = 16;

/// Lets a long filter of one channel give many outputs at once.
#[derive(Clone, Copy, Debug)]
pub struct WidenFilters;

impl Rewrite for WidenFilters {
    fn name(&self) -> &'static str {
        "widen_filters"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(op) = model.op_at::<Convolution>(root).cloned() else { return Ok(Outcome::NoMatch) };
        let &[x, weights] = model.node(root).inputs() else { return Ok(Outcome::NoMatch) };
        let Some(tensor) = model.constant_of(weights).filter(|w| w.rank() > 2 && w.shape()[..2] == [1, 1]) else {
            return Ok(Outcome::NoMatch);
        };
        let (shape, data) = (tensor.shape().to_vec(), tensor.to_vec::<f32>().map(|d| d.into_owned()));
        let (rank, ty) = (shape.len(), tensor.element_type());
        let last = rank - 3;
        let Ok(stride) = usize::try_from(op.strides.get(last).copied().unwrap_or(1)) else {
            return Ok(Outcome::NoMatch);
        };
        let (k, wide) = (shape[rank - 1], shape[rank - 1] + (BLOCK - 1) * stride);
        if stride == 0 || wide > 2 * k || op.dilations.get(last).is_some_and(|d| *d != 1) {
            return Ok(Outcome::skip("its rows are too short for a block of outputs"));
        }
        let sizes =
            |v| model.fact(v).shape.dims().and_then(|d| d[2..].iter().map(|d| d.size()).collect::<Option<Vec<_>>>());
        let (Some(from), Some(to), Ok(data)) = (sizes(x), sizes(root.into()), data) else {
            return Ok(Outcome::skip("the size of its images is unknown"));
        };
        if op.auto_pad != PadType::Explicit || to[last] < 2 * BLOCK {
            return Ok(Outcome::skip("it has few outputs, or the padding is not given by numbers"));
        }
        let blocks = to[last].div_ceil(BLOCK);
        let begin = op.pads_begin.get(last).copied().unwrap_or(0);
        let end = ((blocks - 1) * BLOCK * stride + wide) as i64 - from[last] as i64 - begin;
        if begin < 0 {
            return Ok(Outcome::skip("its padding is negative"));
        }
        let mut moved = op.clone();
        moved.strides.resize(last + 1, 1);
        moved.pads_begin.resize(last + 1, 0);
        moved.pads_end.resize(last + 1, 0);
        moved.dilations.resize(last + 1, 1);
        moved.strides[last] = (BLOCK * stride) as i64;
        // What rows have behind the last window is left over still.
        moved.pads_end[last] = end.max(0);
        let rows = data.len() / k;
        let mut filters = vec![0f32; BLOCK * rows * wide];
        for (j, filter) in filters.chunks_mut(rows * wide).enumerate() {
            for (row, w) in filter.chunks_mut(wide).zip(data.chunks(k)) {
                row[j * stride..][..k].copy_from_slice(w);
            }
        }
        let mut filter_shape = shape;
        (filter_shape[0], filter_shape[rank - 1]) = (BLOCK, wide);
        let (name, info) = (model.node(root).name().to_string(), model.node(root).rt_info.clone());
        let filters = Tensor::from_vec(&filter_shape, filters)?.cast(ty)?;
        let filters = model.constant(&format!("{name}/filters"), filters)?;
        let layer = model.add(format!("{name}/blocks"), moved, &[x, filters])?;
        model.rt_info_mut(layer).extend_missing(&info);
        // Channels behind the row they are neighbours of.
        let mut order: Vec<i64> = (0..rank as i64).collect();
        order[1..].rotate_left(1);
        let order = integers(model, root, "order", &order)?;
        let pixels = model.add(format!("{name}/Transpose"), Transpose, &[layer.into(), order])?;
        let mut joined: Vec<i64> = [-1, 1].into_iter().chain(to.iter().map(|n| *n as i64)).collect();
        joined[rank - 1] = (blocks * BLOCK) as i64;
        let joined = integers(model, root, "shape", &joined)?;
        let mut new =
            model.add(format!("{name}/Reshape"), Reshape { special_zero: false }, &[pixels.into(), joined])?;
        if blocks * BLOCK > to[last] {
            let one = |model: &mut Model, what, n: i64| integers(model, root, what, &[n]);
            let (start, stop) = (one(model, "start", 0)?, one(model, "stop", to[last] as i64)?);
            let (step, axis) = (one(model, "step", 1)?, one(model, "axis", rank as i64 - 1)?);
            new = model.add(format!("{name}/Slice"), Slice, &[new.into(), start, stop, step, axis])?;
        }
        put_in_place(model, root, new)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires_static, stays};
    use super::*;
    use carafe_graph::Value;

    fn filter(g: &mut Sketch, x: Value, kernel: &[usize], stride: i64, pads: [i64; 2]) -> Value {
        let n = kernel.len();
        let w = g.noise(&[&[1, 1], kernel].concat(), 0.1);
        let along = |value: i64, other: i64| (0..n).map(|i| if i + 1 == n { value } else { other }).collect::<Vec<_>>();
        let op = Convolution {
            strides: along(stride, 1),
            pads_begin: along(pads[0], 0),
            pads_end: along(pads[1], 0),
            dilations: vec![1; n],
            auto_pad: PadType::Explicit,
        };
        g.op(op, &[x, w])
    }

    #[test]
    fn rows_of_one_channel_become_blocks_of_outputs() {
        fires_static(&WidenFilters, "Convolution Transpose Reshape", |g| {
            let x = g.input(&[2, 1, 159]);
            filter(g, x, &[32], 2, [0, 0])
        });
        fires_static(&WidenFilters, "Convolution Transpose Reshape Slice", |g| {
            let x = g.input(&[1, 1, 3, 70]);
            filter(g, x, &[2, 21], 1, [3, 5])
        });
    }

    #[test]
    fn others_stay() {
        stays(&WidenFilters, "too short", |g| {
            let x = g.input(&[1, 1, 3, 70]);
            filter(g, x, &[3, 3], 1, [1, 1])
        });
        stays(&WidenFilters, "few outputs", |g| {
            let x = g.input(&[1, 1, 40]);
            filter(g, x, &[32], 1, [0, 0])
        });
    }
}
