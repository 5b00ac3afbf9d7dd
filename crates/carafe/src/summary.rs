//! What a model is made of, in numbers: for `inspect` and for anyone who wants the same facts.

use carafe_device::Port;
use carafe_graph::{Constant, FrameworkNode, Model, Node, NodeId, Parameter, ResultOp};
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
    /// Opsets the nodes are written with.
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
    s.variables.sort();
    s.variables.dedup();
    s
}

fn count(model: &Model, s: &mut Summary) {
    for (id, node) in model.nodes() {
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
        *s.opsets.entry(op.opset().to_string()).or_default() += 1;
        if op.is::<FrameworkNode>() {
            let key = (op.type_name().to_string(), op.opset().to_string());
            s.unknown.entry(key).or_default().push(node.name().to_string());
        }
        if op.info().stateful {
            let id = op.attrs().into_iter().find(|(k, _)| k == "variable_id").and_then(|(_, v)| v.to_text());
            s.variables.extend(id);
        }
        s.macs = match (s.macs, macs(model, id, node)) {
            (Some(a), Some(b)) => a.checked_add(b),
            _ => None,
        };
        for (_, body) in op.bodies() {
            count(&body.model, s);
        }
    }
}

// Multiply-accumulates of one node; 0 for operations that do none worth counting.
fn macs(model: &Model, id: NodeId, node: &Node) -> Option<u64> {
    let input = |i: usize| -> Option<Vec<usize>> { model.fact(*node.inputs().get(i)?).shape.to_static() };
    let output = || model.fact(id.into()).shape.to_static();
    let product = |v: &[usize]| v.iter().try_fold(1u64, |a, &b| a.checked_mul(b as u64));
    match node.op().info().name {
        "Convolution" | "BinaryConvolution" => product(&output()?)?.checked_mul(product(input(1)?.get(1..)?)?),
        "DeformableConvolution" => product(&output()?)?.checked_mul(product(input(2)?.get(1..)?)?),
        "GroupConvolution" => product(&output()?)?.checked_mul(product(input(1)?.get(2..)?)?),
        // Every input element meets the filter of its own channel.
        "ConvolutionBackpropData" => product(&input(0)?)?.checked_mul(product(input(1)?.get(1..)?)?),
        "GroupConvolutionBackpropData" => product(&input(0)?)?.checked_mul(product(input(1)?.get(2..)?)?),
        "MatMul" => {
            let a = input(0)?;
            let transposed =
                node.op().attrs().iter().any(|(k, v)| k == "transpose_a" && v.to_text().as_deref() == Some("true"));
            let k = match a.as_slice() {
                [] => 1,
                [n] => *n,
                [.., m, n] => {
                    if transposed {
                        *m
                    } else {
                        *n
                    }
                }
            };
            product(&output()?)?.checked_mul(k as u64)
        }
        "ScaledDotProductAttention" => {
            let (q, k, v) = (input(0)?, input(1)?, input(2)?);
            let scores = product(&q)?.checked_mul(*k.get(k.len().checked_sub(2)?)? as u64)?;
            let read = product(q.get(..q.len().checked_sub(1)?)?)?
                .checked_mul(*k.get(k.len() - 2)? as u64)?
                .checked_mul(*v.last()? as u64)?;
            scores.checked_add(read)
        }
        "LSTMCell" | "LSTMSequence" | "GRUCell" | "GRUSequence" | "RNNCell" | "RNNSequence" => {
            let name = node.op().info().name;
            let first = if name.starts_with("LSTM") { 3 } else { 2 } + usize::from(name.ends_with("Sequence"));
            let x = input(0)?;
            let steps = if name.ends_with("Sequence") { product(x.get(..2)?)? } else { *x.first()? as u64 };
            let weights = product(&input(first)?)?.checked_add(product(&input(first + 1)?)?)?;
            steps.checked_mul(weights)
        }
        _ => Some(0),
    }
}
