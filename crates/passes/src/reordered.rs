//! Values and nodes with their axes in another order: what Transposes are moved through.

use crate::shared::ints;
use carafe_graph::{Elementwise, Model, NodeId, OrderCx, Reordered, Result, Value};
use carafe_ops::movement::{Transpose, Unsqueeze};
use carafe_tensor::Tensor;
use std::sync::Arc;

/// The operation that takes its inputs in the order, and those inputs; `None` when there is none. Inputs may have fewer axes
/// where they are broadcast.
pub(crate) fn reordered(model: &Model, id: NodeId, order: &[usize]) -> Option<(Reordered, Vec<Value>)> {
    let node = model.node(id);
    let of_rank = |v: Value| model.fact(v).shape.rank() == Some(order.len());
    if !(0..node.outputs().len()).all(|port| of_rank(Value { node: id, port })) {
        return None;
    }
    let constant_ints = |i: usize| model.constant_of(model.input(id, i)?).and_then(|_| ints(model, id, i));
    let rank = |i: usize| model.fact(model.input(id, i)?).shape.rank();
    let cx = OrderCx { order, n_inputs: node.inputs().len(), rank: &rank, ints: &constant_ints };
    let new = node.op().reorder(&cx)?;
    let inputs = node.inputs().get(..new.data)?;
    let fits = |v: &Value| model.fact(*v).shape.rank().is_some_and(|rank| rank <= order.len());
    (inputs.iter().any(|v| of_rank(*v)) && inputs.iter().all(fits)).then(|| (new, inputs.to_vec()))
}

/// The node made again by `new` with these inputs in the order; it takes the node's name, the old one is left for pruning.
/// Names of tensors meant the old order and stay with the old node.
pub(crate) fn rebuild(model: &mut Model, id: NodeId, new: Reordered, mut inputs: Vec<Value>) -> Result<NodeId> {
    let name = model.node(id).name().to_string();
    let info = model.node(id).rt_info.clone();
    // Inputs beyond those in the order are taken as they are: a type to convert to, a padding value.
    let rest = model.node(id).inputs()[inputs.len()..].to_vec();
    inputs.extend(rest);
    for (input, list) in new.ints {
        let scalar = model.fact(inputs[input]).shape.rank() == Some(0);
        let tensor = match list[..] {
            [n] if scalar => Tensor::scalar(n),
            _ => Tensor::from_slice(&[list.len()], &list)?,
        };
        inputs[input] = model.constant(&format!("{name}/input_{input}"), tensor)?;
    }
    let new = model.add_ref(&name, Arc::from(new.op), &inputs)?;
    model.set_name(id, format!("{name}/was"));
    *model.rt_info_mut(new) = info;
    Ok(new)
}

/// A Transpose of the value, named after it.
pub(crate) fn add_transpose(model: &mut Model, v: Value, order: &[usize]) -> Result<Value> {
    let name = format!("{}/transposed", model.node(v.node).name());
    let order: Vec<i64> = order.iter().map(|&a| a as i64).collect();
    let list = model.constant(&format!("{name}/order"), Tensor::from_slice(&[order.len()], &order)?)?;
    Ok(model.add(name, Transpose, &[v, list])?.into())
}

/// The value with leading axes of 1, so that it has this many.
pub(crate) fn with_rank(model: &mut Model, v: Value, rank: usize) -> Result<Value> {
    let missing = rank.saturating_sub(model.fact(v).shape.rank().unwrap_or(rank));
    if missing == 0 {
        return Ok(v);
    }
    let name = format!("{}/unsqueezed", model.node(v.node).name());
    let axes: Vec<i64> = (0..missing as i64).collect();
    let axes = model.constant(&format!("{name}/axes"), Tensor::from_slice(&[missing], &axes)?)?;
    Ok(model.add(name, Unsqueeze, &[v, axes])?.into())
}

/// A constant that holds the elements of another in the order.
pub(crate) fn add_laid_out(model: &mut Model, v: Value, order: &[usize]) -> Result<Value> {
    let name = format!("{}/transposed", model.node(v.node).name());
    let info = model.node(v.node).rt_info.clone();
    let tensor = model.constant_of(v).map(|t| laid_out(t, order)).transpose()?;
    let Some(tensor) = tensor else { return Ok(v) };
    let new = model.constant(&name, tensor)?;
    *model.rt_info_mut(new.node) = info;
    Ok(new)
}

/// Nodes between a constant and the value made of it.
pub(crate) const DEPTH: usize = 4;

/// Whether the value is a constant, or made of constants element by element, so that it can be laid out anew.
pub(crate) fn is_laid_out(model: &Model, v: Value, depth: usize) -> bool {
    let node = model.node(v.node);
    let aligned = || {
        node.op()
            .attrs()
            .into_iter()
            .all(|(name, a)| name != "auto_broadcast" || a.to_text().is_some_and(|t| t == "numpy"))
    };
    let elementwise = node.op().info().elementwise != Elementwise::No && !node.inputs().is_empty() && aligned();
    let inputs = || node.inputs().iter().all(|&i| is_laid_out(model, i, depth - 1));
    model.constant_of(v).is_some() || (depth > 0 && elementwise && inputs())
}

/// Whether the order changes nothing.
pub(crate) fn is_identity(order: &[usize]) -> bool {
    order.iter().copied().eq(0..order.len())
}

/// The order that undoes this one.
pub(crate) fn inverse(order: &[usize]) -> Vec<usize> {
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(i, &a)| back[a] = i);
    back
}

/// Whether the value has one element: every order is the same.
pub(crate) fn is_single(model: &Model, v: Value) -> bool {
    model.fact(v).shape.dims().is_some_and(|dims| dims.iter().all(|d| d.get() == Some(1)))
}

// The constant in the order; missing leading axes count as 1.
fn laid_out(t: &Tensor, order: &[usize]) -> Result<Tensor> {
    let missing = order.len().saturating_sub(t.rank());
    let old: Vec<usize> = std::iter::repeat_n(1, missing).chain(t.shape().iter().copied()).collect();
    let strides = carafe_tensor::strides(&old);
    let shape: Vec<usize> = order.iter().map(|&a| old[a]).collect();
    let steps: Vec<usize> = order.iter().map(|&a| strides[a]).collect();
    let new = t.select(&shape, |i| {
        let (mut rest, mut at) = (i, 0);
        for (&size, &step) in shape.iter().zip(&steps).rev() {
            at += rest % size * step;
            rest /= size;
        }
        Some(at)
    })?;
    Ok(new)
}
