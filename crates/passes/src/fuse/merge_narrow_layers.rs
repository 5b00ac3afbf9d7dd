//! Narrow convolutions that read the same value become one, and so does what follows each of them alike:
//!
//! ```text
//! Relu(Add(Convolution(x, w1), b1)), Relu(Add(Convolution(x, w2), b2))
//!     ->  VariadicSplit(Relu(Add(Convolution(x, [w1; w2]), [b1; b2])))
//! ```
//!
//! Heads of detectors are like this: a layer each for classes, boxes and points. Each of them reads all of `x` and fills a part of
//! a vector of output channels. Only convolutions that leave most of a vector empty are merged, for parts of a value are read with
//! gaps between pixels.

use super::look::{inputs_at, integers, is_float, sweep};
use carafe_graph::{Elementwise, Model, NodeId, OpRef, Outcome, Result, ResultOp, Rewrite, Value};
use carafe_ops::arithmetic::Add;
use carafe_ops::convolution::{Convolution, GroupConvolution};
use carafe_ops::movement::VariadicSplit;
use carafe_tensor::Tensor;
use std::sync::Arc;

/// Merges narrow convolutions of the same value.
#[derive(Clone, Copy, Debug)]
pub struct MergeNarrowLayers;

/// Output channels of a convolution that fills a vector.
const WIDE: usize = 16;

impl Rewrite for MergeNarrowLayers {
    fn name(&self) -> &'static str {
        "merge_narrow_layers"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(filters) = narrow(model, root) else { return Ok(Outcome::NoMatch) };
        let (x, kernel) = (model.node(root).inputs()[0], filters.shape()[1..].to_vec());
        let mut layers: Vec<NodeId> = model.users(x).iter().filter(|u| u.input == 0).map(|u| u.node).collect();
        layers.retain(|&id| alike(model, id, root) && narrow(model, id).is_some_and(|w| w.shape()[1..] == kernel[..]));
        layers.sort_unstable();
        if layers.first() != Some(&root) || layers.len() < 2 {
            return Ok(Outcome::NoMatch);
        }
        let channels: Vec<usize> = layers.iter().map(|&id| narrow(model, id).map_or(0, |w| w.shape()[0])).collect();
        let mut whole = Branches { ends: layers.clone(), channels, whole: x };
        whole.whole = whole.convolved(model)?.into();
        while let Some((next, merged)) = whole.step(model)? {
            (whole.ends, whole.whole) = (next, merged.into());
        }
        let lengths: Vec<i64> = whole.channels.iter().map(|n| *n as i64).collect();
        let (axis, lengths) = (integers(model, root, "axis", &[1])?, integers(model, root, "lengths", &lengths)?);
        let name = format!("{}/parts", model.node(root).name());
        let split = model.add(name, VariadicSplit, &[whole.whole, axis, lengths])?;
        for (port, end) in whole.ends.into_iter().enumerate() {
            model.replace_value(end.into(), Value { node: split, port });
            sweep(model, end)?;
        }
        Ok(Outcome::Done)
    }
}

/// Branches of which as many operations as are the same are merged.
struct Branches {
    /// The last node of each that is merged.
    ends: Vec<NodeId>,
    /// Channels of each.
    channels: Vec<usize>,
    /// What gives all of them.
    whole: Value,
}

impl Branches {
    // The convolutions themselves.
    fn convolved(&self, model: &mut Model) -> Result<NodeId> {
        let filters: Vec<Tensor> =
            self.ends.iter().filter_map(|&id| model.constant_of(model.node(id).inputs()[1]).cloned()).collect();
        let op = model.node(self.ends[0]).op_ref().clone();
        self.merged(model, &self.ends, op, &[joined(&filters, 0)?])
    }

    /// The nodes behind all ends, and the one that does what they do; `None` where they differ or others read the ends.
    fn step(&self, model: &mut Model) -> Result<Option<(Vec<NodeId>, NodeId)>> {
        let next: Option<Vec<NodeId>> = self.ends.iter().map(|&end| only_reader(model, end.into())).collect();
        let Some(next) = next.filter(|n| (1..n.len()).all(|i| !n[..i].contains(&n[i]))) else { return Ok(None) };
        let each = next.iter().zip(&self.ends).zip(&self.channels);
        let parts: Option<Vec<Part>> = each.map(|((&id, &end), &n)| Part::of(model, id, end.into(), n)).collect();
        let Some(parts) = parts.filter(|p| p.iter().all(|part| part.goes_with(&p[0]))) else { return Ok(None) };
        let constants: Vec<Tensor> = parts.iter().filter_map(|p| p.values.clone()).collect();
        let values = match parts[0].values {
            Some(_) => vec![joined(&constants, parts[0].axis)?],
            None => vec![],
        };
        let merged = self.merged(model, &next, parts[0].op.clone(), &values)?;
        Ok(Some((next, merged)))
    }

    // One node for all, of the whole and of constants.
    fn merged(&self, model: &mut Model, nodes: &[NodeId], op: OpRef, constants: &[Tensor]) -> Result<NodeId> {
        let name = format!("{}/merged", model.node(nodes[0]).name());
        let mut inputs = vec![self.whole];
        for constant in constants {
            inputs.push(model.constant(&format!("{name}/values"), constant.clone())?);
        }
        let new = model.add_ref(name, op, &inputs)?;
        for &id in nodes {
            let info = model.node(id).rt_info.clone();
            model.rt_info_mut(new).extend_missing(&info);
        }
        Ok(new)
    }
}

// The filters of a convolution with few output channels.
fn narrow(model: &Model, id: NodeId) -> Option<&Tensor> {
    model.op_at::<Convolution>(id)?;
    let &[x, weights] = model.node(id).inputs() else { return None };
    let filters = model.constant_of(weights).filter(|w| w.rank() > 2 && (1..WIDE).contains(&w.shape()[0]))?;
    (is_float(model, x) && model.fact(x).ty == filters.element_type()).then_some(filters)
}

fn alike(model: &Model, a: NodeId, b: NodeId) -> bool {
    let (a, b) = (model.node(a), model.node(b));
    a.op().eq_op(b.op()) && a.op().opset() == b.op().opset() && a.inputs().len() == b.inputs().len()
}

fn only_reader(model: &Model, v: Value) -> Option<NodeId> {
    let &[reader] = model.users(v) else { return None };
    let node = model.node(reader.node);
    (node.outputs().len() == 1 && !node.op().is::<ResultOp>()).then_some(reader.node)
}

/// What a branch does next, if that can be done to all channels at once.
struct Part {
    op: OpRef,
    /// What it has for its channels, which lie along the axis.
    values: Option<Tensor>,
    axis: usize,
}

impl Part {
    /// Of a node that reads `v`, which has so many channels.
    fn of(model: &Model, id: NodeId, v: Value, channels: usize) -> Option<Part> {
        let node = model.node(id);
        let info = node.op().info();
        if info.random || info.stateful {
            return None;
        }
        if info.elementwise == Elementwise::First && node.inputs().len() == 1 {
            return Some(Part { op: node.op_ref().clone(), values: None, axis: 0 });
        }
        if let Some(&[a, b]) = inputs_at::<Add>(model, id) {
            let numbers = model.constant_of(if a == v { b } else { a })?;
            let mut shape = vec![1; model.fact(v).shape.rank()?];
            shape[1] = channels;
            // A single number for several channels is rare in such layers.
            let fits =
                numbers.shape() == shape || (channels == 1 && numbers.len() == 1 && numbers.rank() <= shape.len());
            let values = fits.then(|| numbers.reshaped(&shape).ok())??;
            return Some(Part { op: node.op_ref().clone(), values: Some(values), axis: 1 });
        }
        let filters = model.constant_of(*node.inputs().get(1).filter(|_| node.inputs()[0] == v)?)?;
        let mut shape = filters.shape().to_vec();
        if let Some(op) = model.op_at::<Convolution>(id).filter(|_| shape.len() > 2 && shape[..2] == [1, 1]) {
            // Of a single channel it is a depthwise one.
            let Convolution { strides, pads_begin, pads_end, dilations, auto_pad } = op.clone();
            let op: OpRef = Arc::new(GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad });
            shape.insert(0, 1);
            return Some(Part { op, values: Some(filters.reshaped(&shape).ok()?), axis: 0 });
        }
        model.op_at::<GroupConvolution>(id).filter(|_| shape.len() > 3 && shape[..3] == [channels, 1, 1])?;
        Some(Part { op: node.op_ref().clone(), values: Some(filters.clone()), axis: 0 })
    }

    fn goes_with(&self, other: &Part) -> bool {
        let same = |a: &Tensor, b: &Tensor| {
            (a.rank(), a.element_type()) == (b.rank(), b.element_type())
                && a.shape()[self.axis + 1..] == b.shape()[self.axis + 1..]
        };
        self.op.eq_op(&*other.op)
            && self.op.opset() == other.op.opset()
            && match (&self.values, &other.values) {
                (Some(a), Some(b)) => same(a, b),
                (a, b) => a.is_none() && b.is_none(),
            }
    }
}

// Tensors whose other axes, and those before, agree.
fn joined(tensors: &[Tensor], axis: usize) -> Result<Tensor> {
    let mut shape = tensors[0].shape().to_vec();
    shape[axis] = tensors.iter().map(|t| t.shape()[axis]).sum();
    debug_assert!(shape[..axis].iter().all(|n| *n == 1), "parts of {shape:?} would lie in turns");
    let bytes: Vec<u8> = tensors.iter().flat_map(|t| t.bytes().iter().copied()).collect();
    Ok(Tensor::from_bytes(tensors[0].element_type(), &shape, &bytes)?)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires, stays};
    use super::*;
    use carafe_ops::activation::{Relu, Sigmoid};
    use carafe_ops::convolution::window::PadType;
    use carafe_ops::movement::Concat;

    fn conv(pad: i64) -> Convolution {
        Convolution {
            strides: vec![1; 2],
            pads_begin: vec![pad; 2],
            pads_end: vec![pad; 2],
            dilations: vec![1; 2],
            auto_pad: PadType::Explicit,
        }
    }
    fn layer(g: &mut Sketch, x: Value, channels: usize) -> Value {
        let w = g.noise(&[channels, 3, 1, 1], 0.1);
        let y = g.op(conv(0), &[x, w]);
        let b = g.noise(&[1, channels, 1, 1], 0.5);
        g.op(Add::default(), &[y, b])
    }
    fn depthwise(g: &mut Sketch, x: Value, channels: usize) -> Value {
        let y = if channels == 1 {
            let w = g.noise(&[1, 1, 3, 3], 0.1);
            g.op(conv(1), &[x, w])
        } else {
            let w = g.noise(&[channels, 1, 1, 3, 3], 0.1);
            let Convolution { strides, pads_begin, pads_end, dilations, auto_pad } = conv(1);
            g.op(GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, w])
        };
        let b = g.noise(&[1, channels, 1, 1], 0.5);
        g.op(Add::default(), &[b, y])
    }

    #[test]
    fn narrow_convolutions_of_a_value_become_one() {
        fires(&MergeNarrowLayers, "Convolution Add VariadicSplit Sigmoid Concat", |g| {
            let x = g.input(&[2, 3, 4, 5]);
            let (a, b, c) = (layer(g, x, 1), layer(g, x, 4), layer(g, x, 10));
            let a = g.op(Sigmoid, &[a]);
            g.op(Concat { axis: 1 }, &[c, a, b])
        });
    }

    #[test]
    fn what_follows_them_alike_is_merged_too() {
        fires(&MergeNarrowLayers, "Convolution Add Relu GroupConvolution Add VariadicSplit Concat", |g| {
            let x = g.input(&[1, 3, 6, 5]);
            let both = [1, 4].map(|n| {
                let y = layer(g, x, n);
                let y = g.op(Relu, &[y]);
                depthwise(g, y, n)
            });
            g.op(Concat { axis: 1 }, &both)
        });
    }

    #[test]
    fn layers_that_differ_stay_apart() {
        stays(&MergeNarrowLayers, "", |g| {
            let x = g.input(&[1, 3, 4, 5]);
            let (w, v) = (g.noise(&[2, 3, 1, 1], 0.1), g.noise(&[2, 3, 3, 3], 0.1));
            let both = [g.op(conv(0), &[x, w]), g.op(conv(1), &[x, v])];
            g.op(Concat { axis: 1 }, &both)
        });
    }

    #[test]
    fn wide_layers_stay_apart() {
        stays(&MergeNarrowLayers, "", |g| {
            let x = g.input(&[1, 3, 4, 5]);
            let both = [layer(g, x, 16), layer(g, x, 4)];
            g.op(Concat { axis: 1 }, &both)
        });
    }
}
