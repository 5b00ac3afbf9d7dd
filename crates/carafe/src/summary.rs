//! What a model is made of, in numbers: for `inspect` and for anyone who wants the same facts.

use carafe_device::Port;
use carafe_graph::{Constant, Fact, FrameworkNode, Model, Parameter, ResultOp};
use std::collections::BTreeMap;

/// Facts about a whole model, bodies included.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Name of the model.
    pub name: String,
    /// Its inputs, in order.
    pub inputs: Vec<Port>,
    /// Its outputs, in order.
    pub outputs: Vec<Port>,
    /// Nodes by type, without parameters, constants and results.
    pub ops: BTreeMap<String, usize>,
    /// Opsets of the nodes as they are written: of the oldest versions that say the same.
    pub opsets: BTreeMap<String, usize>,
    /// Types that no registered operation has, with their opset and node names.
    pub unknown: BTreeMap<(String, String), Vec<String>>,
    /// Elements of all constants of a float or packed type.
    pub parameters: u64,
    /// Bytes of all constants.
    pub weight_bytes: u64,
    /// Multiply-accumulates of convolutions, matrix products and recurrent steps; `None` when a shape is dynamic.
    pub macs: Option<u64>,
    /// Ids of its variables.
    pub variables: Vec<String>,
}

/// Counts.
pub fn summarize(model: &Model) -> Summary {
    let mut s = Summary {
        name: model.name.clone(),
        inputs: Port::inputs_of(model),
        outputs: Port::outputs_of(model),
        macs: Some(0),
        ..Summary::default()
    };
    count(model, &mut s);
    let older = carafe_graph::oldest(model).ok().flatten();
    count_opsets(older.as_ref().unwrap_or(model), &mut s.opsets);
    s.variables.sort_unstable();
    s.variables.dedup();
    s
}

fn count(model: &Model, s: &mut Summary) {
    for (_, node) in model.nodes() {
        let op = node.op();
        if let Some(c) = op.get::<Constant>() {
            let ty = c.tensor().element_type();
            if ty.is_float() || ty.is_sub_byte() || c.tensor().len() > 64 {
                s.parameters += c.tensor().len() as u64;
            }
            s.weight_bytes += c.tensor().byte_len() as u64;
            continue;
        }
        if op.is::<Parameter>() || op.is::<ResultOp>() {
            continue;
        }
        *s.ops.entry(op.type_name().to_string()).or_default() += 1;
        if op.is::<FrameworkNode>() {
            let key = (op.type_name().to_string(), op.opset().to_string());
            s.unknown.entry(key).or_default().push(node.name().to_string());
        }
        if op.info().stateful {
            let id = op.attrs().into_iter().find(|(k, _)| k == "variable_id").and_then(|(_, v)| v.to_text());
            s.variables.extend(id);
        }
        let inputs: Vec<&Fact> = node.inputs().iter().map(|v| model.fact(*v)).collect();
        let outputs: Vec<&Fact> = node.outputs().iter().map(|o| &o.fact).collect();
        s.macs = match (s.macs, op.macs(&inputs, &outputs)) {
            (Some(a), Some(b)) => a.checked_add(b),
            _ => None,
        };
        for (_, body) in op.bodies() {
            count(&body.model, s);
        }
    }
}

fn count_opsets(model: &Model, opsets: &mut BTreeMap<String, usize>) {
    for op in model.nodes().map(|(_, n)| n.op()) {
        if !(op.is::<Constant>() || op.is::<Parameter>() || op.is::<ResultOp>()) {
            *opsets.entry(op.opset().to_string()).or_default() += 1;
        }
        op.bodies().iter().for_each(|(_, body)| count_opsets(&body.model, opsets));
    }
}
