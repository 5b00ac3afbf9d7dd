//! `--transform Pruning`: convolution channels whose weights are all zero are cut out, together with what the following
//! convolution would have read of them. Between the two only operations that keep zero at zero channel by channel may stand.

use carafe_graph::{Constant, Model, NodeId, Result, Value};
use carafe_ops::convert::Convert;
use carafe_tensor::Tensor;

/// Operations that give 0 for 0 and treat every channel alike.
const ZERO_STAYS: &[&str] = &["Relu", "Abs", "Tanh", "Elu", "Gelu", "Swish", "HSwish", "Mish", "MaxPool", "AvgPool"];

pub(super) fn run(model: &mut Model) -> Result<()> {
    for id in model.topological_order()? {
        prune_after(model, id)?;
    }
    model.prune();
    model.infer()
}

fn prune_after(model: &mut Model, first: NodeId) -> Result<()> {
    let Some((first_weights, weights)) = weights(model, first) else { return Ok(()) };
    let Some((second, second_weights, following)) = following_convolution(model, first) else { return Ok(()) };
    let (channels, read) = (weights.shape()[0], following.shape()[1]);
    if channels != read || weights.is_empty() || following.is_empty() {
        return Ok(());
    }
    let values = weights.to_vec::<f64>()?;
    let per = values.len() / channels;
    let kept: Vec<usize> =
        (0..channels).filter(|&c| values[c * per..(c + 1) * per].iter().any(|x| *x != 0.0)).collect();
    if kept.len() == channels || kept.is_empty() {
        return Ok(());
    }
    let less = take(&weights, 0, &kept)?;
    let following = take(&following, 1, &kept)?;
    replace(model, first, first_weights, less)?;
    replace(model, second, second_weights, following)
}

// The weights of a Convolution, and the node that holds them (behind a Convert when they are compressed).
fn weights(model: &Model, id: NodeId) -> Option<(Value, Tensor)> {
    let node = model.node(id);
    if node.op().info().name != "Convolution" {
        return None;
    }
    let mut v = *node.inputs().get(1)?;
    if model.node(v.node).op().is::<Convert>() {
        v = *model.node(v.node).inputs().first()?;
    }
    let tensor = model.node(v.node).op().get::<Constant>()?.tensor().clone();
    (tensor.rank() >= 3).then_some((v, tensor))
}

// Follows single readers through operations that keep zeros.
fn following_convolution(model: &Model, first: NodeId) -> Option<(NodeId, Value, Tensor)> {
    let mut v = Value::from(first);
    loop {
        let [reader] = model.users(v) else { return None };
        if reader.input != 0 {
            return None;
        }
        if let Some((at, tensor)) = weights(model, reader.node) {
            return Some((reader.node, at, tensor));
        }
        let node = model.node(reader.node);
        if !ZERO_STAYS.contains(&node.op().info().name) || node.inputs().len() != 1 {
            return None;
        }
        if node.outputs().len() > 1 && !model.users(Value { node: reader.node, port: 1 }).is_empty() {
            return None;
        }
        v = reader.node.into();
    }
}

// Some entries along an axis.
fn take(tensor: &Tensor, axis: usize, kept: &[usize]) -> Result<Tensor> {
    let mut shape = tensor.shape().to_vec();
    let (inner, length): (usize, usize) = (shape[axis + 1..].iter().product(), shape[axis]);
    shape[axis] = kept.len();
    Ok(tensor.select(&shape, |i| {
        let (rest, at) = (i / inner, i % inner);
        Some((rest / kept.len() * length + kept[rest % kept.len()]) * inner + at)
    })?)
}

// The convolution reads its own copy, for weights may be shared.
fn replace(model: &mut Model, conv: NodeId, old: Value, new: Tensor) -> Result<()> {
    let name = format!("{}/pruned", model.node(old.node).name());
    let new = model.constant(&name, new)?;
    let read = model.node(conv).inputs()[1];
    if read == old {
        model.set_input(conv, 1, new);
        return Ok(());
    }
    let convert = model.node(read.node);
    let (op, info, convert_name) = (convert.op_ref().clone(), convert.rt_info.clone(), convert.name().to_string());
    let wide = model.add_ref(format!("{convert_name}/pruned"), op, &[new])?;
    *model.rt_info_mut(wide) = info;
    model.set_input(conv, 1, wide.into());
    Ok(())
}
