//! The layers that can compute with integers: convolutions and products with constant weights, and products of two computed
//! matrices.

use crate::options::Preset;
use crate::scope::IgnoredScope;
use crate::weights::{WeightLayout, stored};
use carafe_graph::{Error, Model, NodeId, Result, Use, Value};
use carafe_ops::arithmetic::Add;
use carafe_ops::convolution::{Convolution, ConvolutionBackpropData, GroupConvolution, GroupConvolutionBackpropData};
use carafe_ops::linear::MatMul;
use carafe_tensor::ElementType;

/// A layer that may be quantized.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub node: NodeId,
    pub name: String,
    pub type_name: String,
    /// Inputs that carry data.
    pub data: Vec<usize>,
    /// Constant weights; a product of two computed matrices has none.
    pub weights: Option<Weights>,
    /// The constant that is added to it, channel by channel.
    pub bias: Option<Use>,
    /// What it gives, behind its bias.
    pub output: Value,
    /// Why it stays in float.
    pub reason: Option<String>,
}

/// Constant weights of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    pub input: usize,
    pub layout: WeightLayout,
    /// Axis of the data with the input channels, counted from its end.
    pub data_axis_from_end: usize,
    /// How many taps of a channel meet in an output on average, over all taps; below 1 for transposed convolutions.
    pub density: f64,
}

impl Layer {
    pub(crate) fn data_values<'a>(&'a self, model: &'a Model) -> impl Iterator<Item = (Value, Use)> + 'a {
        self.data.iter().map(|&input| (model.node(self.node).inputs()[input], Use { node: self.node, input }))
    }
}

/// Every layer in order of computation; those with a reason stay in float.
pub(crate) fn find(model: &Model, ignored: &IgnoredScope, preset: Preset) -> Result<Vec<Layer>> {
    ignored.check(model)?;
    let mut layers = Vec::new();
    for id in model.topological_order()? {
        let node = model.node(id);
        let Some((data, weights)) = ports(model, id) else { continue };
        // Rounding the scores of attention costs accuracy; who asks for speed gets it.
        if weights.is_none() && preset != Preset::Performance {
            continue;
        }
        let bias = weights.and_then(|w| bias(model, id, &w));
        let mut reason = ignored.reason(node);
        if model.fact(id.into()).ty != ElementType::F32 && reason.is_none() {
            reason = Some(format!("computes in {}", model.fact(id.into()).ty));
        }
        layers.push(Layer {
            node: id,
            name: node.name().to_string(),
            type_name: node.op().type_name().to_string(),
            data,
            weights,
            bias,
            output: bias.map_or(id, |u| u.node).into(),
            reason,
        });
    }
    if layers.is_empty() {
        return Err(Error::invalid(
            "the model has no layer to quantize: no convolution and no matrix product with constant weights",
        ));
    }
    if layers.iter().all(|l| l.reason.is_some()) {
        let why = layers[0].reason.clone().unwrap_or_default();
        let n = layers.len();
        return Err(Error::usage(format!(
            "nothing is left to quantize: all {n} layers are left out (`{}`: {why})",
            layers[0].name
        )));
    }
    Ok(layers)
}

// Which inputs carry data, and the weights.
fn ports(model: &Model, id: NodeId) -> Option<(Vec<usize>, Option<Weights>)> {
    let node = model.node(id);
    let &[data, filters, ..] = node.inputs() else { return None };
    let shape = model.fact(filters).shape.to_static();
    let taps = |from: usize| shape.as_ref().map(|s| s[from..].iter().product::<usize>());
    let spatial = shape.as_ref().map_or(0, |s| s.len());
    let op = node.op();
    let (layout, strides) = if op.is::<Convolution>() {
        let s = shape.as_ref()?;
        (WeightLayout { groups: 1, outs: s[0], ins: s[1], taps: taps(2)?, ins_first: false }, 1)
    } else if op.is::<GroupConvolution>() {
        let s = shape.as_ref()?;
        (WeightLayout { groups: s[0], outs: s[1], ins: s[2], taps: taps(3)?, ins_first: false }, 1)
    } else if let Some(op) = op.get::<ConvolutionBackpropData>() {
        let s = shape.as_ref()?;
        let layout = WeightLayout { groups: 1, outs: s[1], ins: s[0], taps: taps(2)?, ins_first: true };
        (layout, op.strides.iter().product())
    } else if let Some(op) = op.get::<GroupConvolutionBackpropData>() {
        let s = shape.as_ref()?;
        let layout = WeightLayout { groups: s[0], outs: s[2], ins: s[1], taps: taps(3)?, ins_first: true };
        (layout, op.strides.iter().product())
    } else if let Some(op) = op.get::<MatMul>() {
        return product(model, id, op);
    } else {
        return None;
    };
    stored(model, filters)?;
    model.constant_of(data).is_none().then_some(())?;
    // Images have as many axes as filters without groups.
    let rank = if layout.groups > 1 || op.is::<GroupConvolution>() || op.is::<GroupConvolutionBackpropData>() {
        spatial - 1
    } else {
        spatial
    };
    let weights = Weights { input: 1, layout, data_axis_from_end: rank - 1, density: 1.0 / strides.max(1) as f64 };
    Some((vec![0], Some(weights)))
}

fn product(model: &Model, id: NodeId, op: &MatMul) -> Option<(Vec<usize>, Option<Weights>)> {
    let &[a, b] = model.node(id).inputs() else { return None };
    let ranks = [a, b].map(|v| model.fact(v).shape.rank());
    if model.constant_of(a).is_some() || stored(model, a).is_some() {
        return None;
    }
    if stored(model, b).is_none() {
        let computed = ranks.iter().all(|r| r.is_some_and(|r| r >= 2)) && model.fact(b).ty == ElementType::F32;
        return computed.then_some((vec![0, 1], None));
    }
    let shape = model.fact(b).shape.to_static()?;
    let &[rows, columns] = &shape[..] else { return None };
    ranks[0].filter(|r| *r >= 2)?;
    let (outs, ins) = if op.transpose_b { (rows, columns) } else { (columns, rows) };
    let layout = WeightLayout { groups: 1, outs, ins, taps: 1, ins_first: !op.transpose_b };
    let axis = if op.transpose_a { 2 } else { 1 };
    Some((vec![0], Some(Weights { input: 1, layout, data_axis_from_end: axis, density: 1.0 })))
}

// An Add right behind the layer, of one number for each output channel.
fn bias(model: &Model, id: NodeId, weights: &Weights) -> Option<Use> {
    let &[reader] = model.users(id.into()) else { return None };
    model.op_at::<Add>(reader.node)?;
    let input = 1 - reader.input;
    let constant = stored(model, model.input(reader.node, input)?)?;
    let from_end = if model.op_at::<MatMul>(id).is_some() { 1 } else { weights.data_axis_from_end };
    let channels = weights.layout.channels();
    let shape = constant.shape();
    let by_channel = constant.len() == channels && shape.len() >= from_end && shape[shape.len() - from_end] == channels;
    by_channel.then_some(Use { node: reader.node, input })
}
