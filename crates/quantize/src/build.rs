//! The quantized model: FakeQuantize at the points, integers for weights, corrected biases. What the layers in float need stays
//! as it is.

use crate::layers::Layer;
use crate::points::Point;
use crate::ranges::{LEVELS, Range};
use crate::weights::{Integers, stored};
use carafe_graph::{Model, Notes, Result, Value, run_passes};
use carafe_ops::quantize::FakeQuantize;
use carafe_passes::{COMMON, DeduplicateConstants, MergeIdenticalNodes, RemoveUnused};
use carafe_tensor::Tensor;
use std::collections::HashMap;

/// Everything that is known before it is decided which layers are quantized.
pub(crate) struct Plan {
    /// The model in float, smoothed.
    pub model: Model,
    pub layers: Vec<Layer>,
    pub points: Vec<Point>,
    /// By the group of a point.
    pub ranges: HashMap<usize, Range>,
    /// By layer; for those that may be quantized and have constant weights.
    pub integers: HashMap<usize, Integers>,
    /// By layer: what to add to each output channel.
    pub corrections: HashMap<usize, Vec<f64>>,
}

impl Plan {
    /// Layers that can be quantized.
    pub(crate) fn candidates(&self) -> Vec<usize> {
        (0..self.layers.len()).filter(|&i| self.layers[i].reason.is_none()).collect()
    }

    /// The model with these layers quantized; ids of its nodes are those of the float model.
    pub(crate) fn build(&self, quantized: &dyn Fn(usize) -> bool) -> Result<Model> {
        let mut model = self.model.clone();
        for point in &self.points {
            let readers: Vec<_> = point.active(quantized).collect();
            let Some(range) = self.ranges.get(&point.group).filter(|_| !readers.is_empty()) else { continue };
            let rounded = fake_quantize(&mut model, point.value, range)?;
            for u in readers {
                model.set_input(u.node, u.input, rounded);
            }
        }
        for (i, layer) in self.layers.iter().enumerate().filter(|(i, _)| quantized(*i)) {
            if let (Some(weights), Some(integers)) = (&layer.weights, self.integers.get(&i)) {
                let w = integers.add_to(&mut model, &format!("{}/weights", layer.name))?;
                model.set_input(layer.node, weights.input, w);
            }
            if let (Some(at), Some(correction)) = (layer.bias, self.corrections.get(&i)) {
                let old = model.node(at.node).inputs()[at.input];
                if let Some(bias) = stored(&model, old) {
                    let old = bias.to_vec::<f32>()?;
                    let sums = old.iter().zip(correction).map(|(b, c)| (f64::from(*b) + c) as f32).collect();
                    let new = Tensor::from_vec(bias.shape(), sums)?;
                    let new = model.constant(&format!("{}/bias", layer.name), new)?;
                    model.set_input(at.node, at.input, new);
                }
            }
        }
        model.prune();
        Ok(model)
    }

    /// The same, as it is written.
    pub(crate) fn finish(&self, quantized: &dyn Fn(usize) -> bool) -> Result<Model> {
        let mut model = self.build(quantized)?;
        let notes = &mut Notes::default();
        run_passes(&mut model, &[&DeduplicateConstants, &MergeIdenticalNodes, &RemoveUnused], notes)?;
        run_passes(&mut model, COMMON, notes)?;
        Ok(model)
    }
}

fn fake_quantize(model: &mut Model, v: Value, range: &Range) -> Result<Value> {
    let name = model.node(v.node).name().to_string();
    let name = if v.port == 0 { name } else { format!("{name}.{}", v.port) };
    let low = model.constant(&format!("{name}/fq_low"), Tensor::scalar(range.low))?;
    let high = model.constant(&format!("{name}/fq_high"), Tensor::scalar(range.high))?;
    let op = FakeQuantize { levels: LEVELS, auto_broadcast: Default::default(), auto_broadcast_axis: None };
    Ok(model.add(format!("{name}/fq"), op, &[v, low, high, low, high])?.into())
}
