//! How a translated sub-graph meets the node around it.

use carafe_frontend::{Item, SubModel};
use carafe_graph::{Body, BodyInput, Error, Model, NodeId, Result, Value};
use std::collections::HashMap;

/// Connects the captured values of a sub-graph to further inputs of the outer node.
pub(super) fn capture(body: &mut Body, captured: &[(Value, usize)], inputs: &mut Vec<Value>) {
    for &(v, parameter) in captured {
        body.inputs.push(BodyInput { outer: Some(inputs.len()), parameter, slicing: None, back_edge: None });
        inputs.push(v);
    }
}

/// Puts the operations of a sub-graph into a model that is a sub-graph of the same graph, with these values for its own
/// parameters. `captured` are the outer values that the model has already; what the sub-graph captures besides is added.
pub(super) fn graft(
    model: &mut Model,
    captured: &mut Vec<(Value, NodeId)>,
    sub: &SubModel,
    arguments: &[Value],
) -> Result<Vec<Item>> {
    let mut moved: HashMap<Value, Value> = HashMap::new();
    for (i, &p) in sub.model.parameters().iter().enumerate() {
        let value = match sub.captured.iter().find(|(_, at)| *at == i) {
            Some((outer, _)) => match captured.iter().find(|(have, _)| have == outer) {
                Some((_, parameter)) => (*parameter).into(),
                None => {
                    let fact = sub.model.fact(p.into()).clone();
                    let v = model.parameter(&format!("captured/{}", model.slots()), fact.ty, fact.shape)?;
                    captured.push((*outer, v.node));
                    v
                }
            },
            None => *arguments
                .get(i)
                .ok_or_else(|| Error::invalid(format!("parameter {i} of the sub-graph has no value")))?,
        };
        moved.insert(p.into(), value);
    }
    let at = |moved: &HashMap<Value, Value>, v: &Value| {
        moved.get(v).copied().ok_or_else(|| Error::invalid("the sub-graph is not in order"))
    };
    for id in sub.model.topological_order()? {
        let node = sub.model.node(id);
        if moved.contains_key(&id.into()) || sub.model.results().contains(&id) {
            continue;
        }
        let inputs = node.inputs().iter().map(|v| at(&moved, v)).collect::<Result<Vec<_>>>()?;
        let new = model.add_ref(node.name().to_string(), node.op_ref().clone(), &inputs)?;
        for port in 0..node.outputs().len() {
            moved.insert(Value { node: id, port }, Value { node: new, port });
        }
    }
    sub.outputs.iter().map(|item| item.map(&mut |v| at(&moved, v))).collect()
}
