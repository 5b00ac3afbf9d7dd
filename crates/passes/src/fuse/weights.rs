//! Factors that go into the weights of a layer: convolutions, their transposed forms, and products with a stored matrix.
//! Weights kept in a smaller type keep it: the factor joins their scale, or stands behind the Convert that widens them.

use super::linear::{Plain, Step, step};
use super::look::{operands, put_in_place, read_outside, stored};
use crate::shared::feeds_result;
use carafe_graph::{Constant, Model, NodeId, Outcome, Result, Value};
use carafe_ops::arithmetic::{Add, Multiply, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::convolution::{Convolution, ConvolutionBackpropData, GroupConvolution, GroupConvolutionBackpropData};
use carafe_ops::linear::MatMul;
use carafe_ops::movement::Reshape;

/// A node whose output channels each have weights of their own.
#[derive(Debug)]
pub(super) struct Layer {
    id: NodeId,
    weights: Value,
    /// Number of output channels, the axis they lie on and the rank of the output.
    pub channels: usize,
    axis: usize,
    rank: usize,
    /// Shape in which numbers of channels meet the weights.
    spread: Vec<usize>,
    /// The shift that follows, if any: its node and the numbers of channels.
    shift: Option<(NodeId, Vec<f64>)>,
}

impl Layer {
    /// The layer whose output `v` is, possibly behind a shift. `Err` says what is not right with it.
    pub(super) fn before(model: &Model, v: Value) -> Option<std::result::Result<Layer, Outcome>> {
        if let Some(layer) = Layer::at(model, v) {
            return Some(layer);
        }
        let (x, Step::Plus(shift)) = step(model, v.node).filter(|_| v.port == 0)? else { return None };
        let mut layer = match Layer::at(model, x)? {
            Ok(layer) => layer,
            skip => return Some(skip),
        };
        Some(match layer.by_channel(&shift) {
            Some(values) => {
                layer.shift = Some((v.node, values));
                Ok(layer)
            }
            None => Err(Outcome::skip("the shift before it is not one number for each channel")),
        })
    }

    fn at(model: &Model, v: Value) -> Option<std::result::Result<Layer, Outcome>> {
        let id = v.node;
        let weights = model.input(id, 1)?;
        let shape = || model.fact(weights).shape.to_static();
        let skip = |why: &'static str| Some(Err(Outcome::skip(why)));
        let grouped = model.op_at::<GroupConvolution>(id).is_some();
        let (out_axes, axis, rank) = if grouped || model.op_at::<Convolution>(id).is_some() {
            let rank = shape()?.len();
            if grouped { (vec![0, 1], 1, rank - 1) } else { (vec![0], 1, rank) }
        } else if model.op_at::<ConvolutionBackpropData>(id).is_some() {
            (vec![1], 1, shape()?.len())
        } else if model.op_at::<GroupConvolutionBackpropData>(id).is_some() {
            (vec![0, 2], 1, shape()?.len() - 1)
        } else {
            let op = model.op_at::<MatMul>(id)?;
            let (Some(shape), Some(rank)) = (shape(), model.fact(v).shape.rank()) else {
                return is_constant(model, weights).then(|| Err(Outcome::skip("the rank of the product is unknown")));
            };
            if shape.len() < 2 {
                return None;
            }
            (vec![if op.transpose_b { shape.len() - 2 } else { shape.len() - 1 }], rank - 1, rank)
        };
        if !is_constant(model, weights) {
            return match model.op_at::<MatMul>(id) {
                Some(_) => None,
                None => skip("the weights of the layer before it are computed"),
            };
        }
        if model.users(weights).len() > 1 {
            return skip("the weights of the layer before it have another user");
        }
        let shape = shape()?;
        let spread: Vec<usize> = (0..shape.len()).map(|i| if out_axes.contains(&i) { shape[i] } else { 1 }).collect();
        let channels = spread.iter().product();
        Some(Ok(Layer { id, weights, channels, axis, rank, spread, shift: None }))
    }

    /// Whether the channels are this axis of the output.
    pub(super) fn lies_on(&self, axis: usize) -> bool {
        self.axis == axis
    }

    /// One number for each output channel, if the constant is that.
    pub(super) fn by_channel(&self, c: &Plain) -> Option<Vec<f64>> {
        let lead = self.rank.checked_sub(c.shape.len())?;
        let along = |(i, &n): (usize, &usize)| n == 1 || (lead + i == self.axis && n == self.channels);
        if !c.shape.iter().enumerate().all(along) {
            return None;
        }
        match c.values.len() {
            1 => Some(vec![c.values[0]; self.channels]),
            _ => Some(c.values.clone()),
        }
    }

    /// Puts the layer with its channels multiplied by `scale` and then shifted in the place of `root`.
    pub(super) fn replace(
        &self,
        model: &mut Model,
        root: NodeId,
        scale: &[f64],
        shift: Option<&[f64]>,
    ) -> Result<Outcome> {
        let ty = model.fact(root.into()).ty;
        let shift: Option<Vec<f64>> = match (&self.shift, shift) {
            (Some((_, old)), new) => {
                let new = new.unwrap_or(&[]).iter().chain(std::iter::repeat(&0.0));
                Some(old.iter().zip(scale).zip(new).map(|((old, s), new)| old * s + new).collect())
            }
            (None, new) => new.map(<[f64]>::to_vec),
        };
        let mut wide = vec![1; self.rank - self.axis];
        wide[0] = self.channels;
        let shift = shift.map(|values| Plain { shape: wide, values });
        let scale = Plain { shape: self.spread.clone(), values: scale.to_vec() };
        let large = |c: &Plain| c.values.iter().any(|x| !x.is_finite() || x.abs() > 1e30);
        if large(&scale) || shift.as_ref().is_some_and(large) {
            return Ok(Outcome::skip("the numbers are not finite or too large to be folded"));
        }
        // Who asks for the shape alone may ask the result, which has the same.
        let inside = [Some(self.id), self.shift.as_ref().map(|(id, _)| *id)];
        for id in inside.into_iter().flatten() {
            let askers: Vec<NodeId> = model.users(id.into()).iter().map(|u| u.node).collect();
            for asker in askers {
                if model.node(asker).op().info().shape_only {
                    model.set_input(asker, 0, root.into());
                }
            }
        }
        let leaves: Vec<Value> = model.node(self.id).inputs().to_vec();
        if let Some(skip) = read_outside(model, root, &leaves) {
            return Ok(skip);
        }
        let weights = match self.scaled(model, &scale)? {
            Ok(weights) => weights,
            Err(why) => return Ok(Outcome::skip(why)),
        };
        let name = model.node(root).name().to_string();
        let mut inputs = leaves;
        inputs[1] = weights;
        let op = model.node(self.id).op_ref().clone();
        // The name of an output stays with it; otherwise the layer goes on under its own.
        let keeps_name = shift.is_some() || !feeds_result(model, root.into());
        let own = model.node(self.id).name().to_string();
        let layer_name = if keeps_name { own.clone() } else { format!("{name}/layer") };
        if keeps_name {
            model.set_name(self.id, format!("{own}/was"));
        }
        let info = model.node(self.id).rt_info.clone();
        let layer = model.add_ref(layer_name, op, &inputs)?;
        let mut new = layer;
        model.rt_info_mut(new).extend_missing(&info);
        if let Some(shift) = shift {
            let bias = model.constant(&format!("{name}/bias"), shift.tensor(ty)?)?;
            new = model.add(format!("{name}/Add"), Add::default(), &[new.into(), bias])?;
        }
        let done = put_in_place(model, root, new)?;
        if keeps_name && new == layer && model.get(layer).is_some() {
            model.set_name(layer, own);
        } else if model.get(self.id).is_some() {
            model.set_name(self.id, own);
        }
        Ok(done)
    }

    // New weights, or why there are none.
    fn scaled(&self, model: &mut Model, scale: &Plain) -> Result<std::result::Result<Value, &'static str>> {
        let name = model.node(self.weights.node).name().to_string();
        let ty = model.fact(self.weights).ty;
        if let Some(tensor) = model.constant_of(self.weights) {
            let Some(new) = Plain::of(tensor).and_then(|w| w.zip(scale, |w, s| w * s)) else {
                return Ok(Err("the weights are no floats"));
            };
            let fits = new.values.iter().all(|x| x.abs() <= limit(ty));
            return match fits {
                true => Ok(Ok(model.constant(&format!("{name}/scaled"), new.tensor(ty)?)?)),
                false => Ok(Err("the scaled weights are too large for their type")),
            };
        }
        // Quantized weights end in a factor, which takes the new one in.
        let last = |v: Value| model.constant_of(v).and_then(Plain::of);
        if let Some((old, quantized)) = operands::<Multiply, _>(model, self.weights, last) {
            let joined = old.zip(scale, |a, b| a * b).filter(|c| c.fits(ty));
            let Some(joined) = joined else {
                return Ok(Err("the scales of the quantized weights do not take the factor"));
            };
            let factor = model.constant(&format!("{name}/factor"), joined.tensor(ty)?)?;
            let new = model.add(format!("{name}/scaled"), Multiply::default(), &[quantized, factor])?;
            return Ok(Ok(new.into()));
        }
        if model.producer::<Convert>(self.weights).is_none() {
            return Ok(Err("the weights are neither stored nor widened from a smaller type"));
        }
        let factor = model.constant(&format!("{name}/factor"), scale.tensor(ty)?)?;
        Ok(Ok(model.add(format!("{name}/scaled"), Multiply::default(), &[self.weights, factor])?.into()))
    }
}

fn limit(ty: carafe_tensor::ElementType) -> f64 {
    if ty == carafe_tensor::ElementType::F16 { 65504.0 } else { f64::from(f32::MAX) }
}

/// Whether the value is made of constants alone: stored weights and the steps that widen them.
fn is_constant(model: &Model, v: Value) -> bool {
    let node = model.node(v.node);
    if node.op().is::<Constant>() {
        return true;
    }
    let widens = node.op().is::<Convert>()
        || node.op().is::<Multiply>()
        || node.op().is::<Subtract>()
        || node.op().is::<Reshape>();
    widens && node.inputs().iter().all(|v| is_constant(model, *v))
}

/// The numbers of a constant vector.
pub(super) fn numbers(model: &Model, v: Value) -> Option<Vec<f64>> {
    Some(stored(model, v)?.to_vec::<f64>().ok()?.into_owned())
}
