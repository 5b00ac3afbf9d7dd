//! `--transform Pruning`: convolution channels whose weights are all zero are cut out, together with what the following
//! convolution would have read of them. Numbers stay as they are: between the two only operations may stand that keep the
//! zeros of these channels zero, so an Add ends it unless it adds zero there, and a Sigmoid always does.

use carafe_graph::{Constant, Model, Node, NodeId, Result, Value};
use carafe_ops::arithmetic::{Add, Multiply, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::convolution::{Convolution, GroupConvolution};
use carafe_ops::normalization::BatchNormInference;
use carafe_tensor::Tensor;

pub(super) fn run(model: &mut Model) -> Result<()> {
    for id in model.topological_order()? {
        prune_after(model, id)?;
    }
    model.prune();
    model.infer()
}

/// A constant input with an axis of channels.
struct Part {
    node: NodeId,
    input: usize,
    /// The constant itself, which may stand behind a Convert.
    stored: Value,
    tensor: Tensor,
    axis: usize,
}

fn prune_after(model: &mut Model, first: NodeId) -> Result<()> {
    let Some(weights) = weights(model, first, 0) else { return Ok(()) };
    let (channels, rank) = (weights.tensor.shape()[0], weights.tensor.rank());
    if weights.tensor.is_empty() {
        return Ok(());
    }
    let mut dead = zero_channels(&weights.tensor, 0)?;
    let mut parts = vec![weights];
    let mut v = Value::from(first);
    loop {
        let [reader] = model.users(v) else { return Ok(()) };
        let reader = *reader;
        if let Some(following) = weights_read(model, reader.node, reader.input) {
            if following.tensor.shape()[1] != channels || following.tensor.is_empty() {
                return Ok(());
            }
            parts.push(following);
            break;
        }
        if model.node(reader.node).outputs().len() > 1 && !model.users(Value { node: reader.node, port: 1 }).is_empty()
        {
            return Ok(());
        }
        let Some(more) = between(model, reader.node, reader.input, channels, rank, &mut dead)? else { return Ok(()) };
        parts.extend(more);
        v = reader.node.into();
    }
    let kept: Vec<usize> = (0..channels).filter(|&c| !dead[c]).collect();
    if kept.len() == channels || kept.is_empty() {
        return Ok(());
    }
    for part in parts {
        replace(model, &part, take(&part.tensor, part.axis, &kept)?)?;
    }
    Ok(())
}

// The constants of an operation that keeps zeros, with fewer channels dead where it does so only for some; `None` when no
// channel may be cut across it.
fn between(
    model: &Model,
    id: NodeId,
    input: usize,
    channels: usize,
    rank: usize,
    dead: &mut [bool],
) -> Result<Option<Vec<Part>>> {
    let node = model.node(id);
    let op = node.op();
    if node.inputs().len() == 1 {
        return Ok(op.keeps_zero().then(Vec::new));
    }
    let scales = op.is::<Multiply>();
    match input {
        0 | 1 if scales || op.is::<Add>() || (op.is::<Subtract>() && input == 0) => {
            let Some((stored, tensor)) = constant(model, node.inputs()[1 - input]) else { return Ok(None) };
            if tensor.rank() > rank {
                return Ok(None);
            }
            // Shapes are aligned at their ends; a constant without this axis is the same for all channels.
            let axis = (1 + tensor.rank()).checked_sub(rank).filter(|&a| tensor.shape().get(a) == Some(&channels));
            if !scales {
                let zero = match axis {
                    Some(axis) => zero_channels(&tensor, axis)?,
                    None => vec![tensor.to_vec::<f64>()?.iter().all(|x| *x == 0.0); channels],
                };
                dead.iter_mut().zip(zero).for_each(|(d, z)| *d &= z);
            } else if tensor.to_vec::<f64>()?.iter().any(|x| !x.is_finite()) {
                return Ok(None);
            }
            Ok(Some(axis.map(|axis| Part { node: id, input: 1 - input, stored, tensor, axis }).into_iter().collect()))
        }
        0 if op.is::<BatchNormInference>() => normalization(model, id, node, channels, dead),
        // One filter a channel.
        0 if op.is::<GroupConvolution>() => Ok(constant(model, node.inputs()[1])
            .filter(|(_, t)| t.rank() > 3 && t.shape()[..3] == [channels, 1, 1])
            .map(|(stored, tensor)| vec![Part { node: id, input: 1, stored, tensor, axis: 0 }])),
        _ => Ok(None),
    }
}

fn normalization(
    model: &Model,
    id: NodeId,
    node: &Node,
    channels: usize,
    dead: &mut [bool],
) -> Result<Option<Vec<Part>>> {
    let Some(epsilon) = node.op().get::<BatchNormInference>().map(|b| f64::from(b.epsilon)) else { return Ok(None) };
    let mut parts = Vec::new();
    for input in 1..5 {
        let Some((stored, tensor)) = constant(model, node.inputs()[input]) else { return Ok(None) };
        if tensor.shape() != [channels] {
            return Ok(None);
        }
        parts.push(Part { node: id, input, stored, tensor, axis: 0 });
    }
    let numbers = parts.iter().map(|p| Ok(p.tensor.to_vec::<f64>()?.into_owned())).collect::<Result<Vec<_>>>()?;
    for (c, d) in dead.iter_mut().enumerate() {
        let [gamma, beta, mean, variance] = [0, 1, 2, 3].map(|i| numbers[i][c]);
        *d &= beta - mean / (variance + epsilon).sqrt() * gamma == 0.0;
    }
    Ok(Some(parts))
}

// The weights of a Convolution.
fn weights(model: &Model, id: NodeId, axis: usize) -> Option<Part> {
    let node = model.node(id);
    if !node.op().is::<Convolution>() {
        return None;
    }
    let (stored, tensor) = constant(model, *node.inputs().get(1)?)?;
    (tensor.rank() >= 3).then_some(Part { node: id, input: 1, stored, tensor, axis })
}

fn weights_read(model: &Model, id: NodeId, input: usize) -> Option<Part> {
    weights(model, id, 1).filter(|_| input == 0)
}

// A constant, behind a Convert when it is compressed.
fn constant(model: &Model, mut v: Value) -> Option<(Value, Tensor)> {
    if model.node(v.node).op().is::<Convert>() {
        v = *model.node(v.node).inputs().first()?;
    }
    Some((v, model.node(v.node).op().get::<Constant>()?.tensor().clone()))
}

// Which entries along an axis hold nothing but zeros.
fn zero_channels(tensor: &Tensor, axis: usize) -> Result<Vec<bool>> {
    let length = tensor.shape()[axis];
    let inner: usize = tensor.shape()[axis + 1..].iter().product();
    let mut zero = vec![true; length];
    for (i, x) in tensor.to_vec::<f64>()?.iter().enumerate() {
        zero[i / inner % length] &= *x == 0.0;
    }
    Ok(zero)
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

// The operation reads its own copy, for constants may be shared.
fn replace(model: &mut Model, part: &Part, new: Tensor) -> Result<()> {
    let name = format!("{}/pruned", model.node(part.stored.node).name());
    let new = model.constant(&name, new)?;
    let read = model.node(part.node).inputs()[part.input];
    if read == part.stored {
        model.set_input(part.node, part.input, new);
        return Ok(());
    }
    let convert = model.node(read.node);
    let (op, info, convert_name) = (convert.op_ref().clone(), convert.rt_info.clone(), convert.name().to_string());
    let wide = model.add_ref(format!("{convert_name}/pruned"), op, &[new])?;
    *model.rt_info_mut(wide) = info;
    model.set_input(part.node, part.input, wide.into());
    Ok(())
}
