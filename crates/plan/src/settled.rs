//! Inputs whose few numbers decide over shapes, axes and bounds: the target of a reshape, the limits of a slice. A backend whose kernels want
//! them known has plans for their values too ([`Backend::PLANS_BY_VALUE`]): in such a plan they are constants.

use crate::backend::Backend;
use carafe_graph::{Constant, Model, NodeId, Parameter, Result, Value};
use carafe_tensor::{ElementType, Tensor};
use std::collections::BTreeSet;

/// More numbers decide over nothing.
pub const FEW: usize = 64;

/// Ports of a node whose numbers its kernels want known, and which are not.
pub fn deciding_ports(model: &Model, id: NodeId) -> Vec<usize> {
    let node = model.node(id);
    let info = node.op().info();
    // What is handed to a body or a variable is data.
    if node.op().has_body() || info.stateful || info.sink {
        return vec![];
    }
    let static_inputs = node.inputs().iter().all(|v| model.fact(*v).shape.is_static());
    let open = static_inputs && node.outputs().iter().any(|o| !o.fact.shape.is_static());
    let named = |port: usize| info.inputs.get(port).is_some_and(|p| matches!(p.name, "axis" | "axes"));
    let decides = |port: usize| {
        let fact = model.fact(node.inputs()[port]);
        let few = fact.shape.elements().is_some_and(|n| n <= FEW);
        let whole = fact.ty.is_integer();
        let said = info.shape_inputs.contains(&port);
        fact.tensor().is_none() && few && (said || (whole && (named(port) || (open && port > 0))))
    };
    (0..node.inputs().len()).filter(|&port| decides(port)).collect()
}

// Inputs of a model that decide, by their index.
fn deciding(model: &Model) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut seen: BTreeSet<Value> = BTreeSet::new();
    for (id, node) in model.nodes() {
        let mut values: Vec<Value> = deciding_ports(model, id).into_iter().map(|port| node.inputs()[port]).collect();
        while let Some(v) = values.pop() {
            let (from, fact) = (model.node(v.node), model.fact(v));
            if !seen.insert(v) || from.op().is::<Constant>() || from.op().info().shape_only || fact.tensor().is_some() {
                continue;
            }
            match from.op().is::<Parameter>() {
                true => found.extend(model.parameters().iter().position(|&p| p == v.node)),
                false => values.extend(from.inputs()),
            }
        }
    }
    found
}

/// Whether inputs of a model decide.
pub(crate) fn any_decides(model: &Model) -> bool {
    !deciding(model).is_empty()
}

fn is_few(tensor: &Tensor) -> bool {
    tensor.len() <= FEW && tensor.element_type() != ElementType::String
}

/// The model with some of its inputs as constants; they stay inputs that nobody reads.
pub(crate) fn settle(model: &Model, inputs: &[Tensor], which: &[usize]) -> Result<Model> {
    let mut model = model.clone();
    for &i in which {
        let parameter = model.parameters()[i];
        let constant = model.constant(&format!("input_{i}_now"), inputs[i].to_host()?)?;
        model.replace_value(parameter.into(), constant);
    }
    model.infer()?;
    Ok(model)
}

/// Inputs of a model of these shapes that decide, by their index.
pub(crate) fn deciding_inputs<B: Backend>(model: &Model, inputs: &[Tensor]) -> Vec<usize> {
    let mut all: Vec<usize> = vec![];
    if !B::PLANS_BY_VALUE {
        return all;
    }
    let mut now = None;
    // With the first of them known others may come to light.
    loop {
        let more = deciding(now.as_ref().unwrap_or(model));
        let more: Vec<usize> = more.into_iter().filter(|i| !all.contains(i) && is_few(&inputs[*i])).collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
        match settle(model, inputs, &all) {
            Ok(settled) => now = Some(settled),
            // What is wrong with the values is told by the node that meets them.
            Err(_) => return vec![],
        }
    }
}
