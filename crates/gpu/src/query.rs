//! Which nodes the device takes: each is planned by itself, without building or uploading anything, and must come out without a
//! step that is evaluated on the host. What is small and computes shapes may, and so may operations with bodies and variables,
//! whose values lie on the host anyway. A node whose shapes are open is planned with shapes that fit it.

use crate::Kind;
use crate::backend::Gpu;
use crate::compiled::prepare;
use crate::custom::{CustomKernels, CustomOp};
use crate::machine::Machine;
use crate::properties::{self, Settings};
use crate::steps::MOST_ELEMENTS;
use crate::weights::Weights;
use carafe_device::{Properties, Query, Unsupported};
use carafe_graph::{
    Constant, Fact, FrameworkNode, Model, NodeId, Notes, Parameter, Result, ResultOp, Value, run_passes,
};
use carafe_passes::FoldConstants;
use carafe_plan::settled::deciding_ports;
use carafe_plan::{Action, lower};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::collections::HashSet;
use std::sync::Arc;

/// Integers that are computed on the host at no cost to speak of.
const FEW: usize = 64;

/// What is tried where a dimension is open.
const SIZES: &[i64] = &[8, 1, 2, 64];

/// What is tried where the number of axes is open.
const RANKS: &[usize] = &[4, 3, 2, 1];

pub(crate) fn query(kind: Kind, model: &Model, properties: &Properties, custom: &CustomKernels) -> Result<Query> {
    let settings = Settings::of(kind, properties)?;
    let machine = properties::device(properties)?.open()?;
    let asked = Asked { machine, half: settings.half };
    let mut model = model.clone();
    custom.apply(&mut model)?;
    let model = &model;
    let mut query = Query::default();
    let reasons = asked.reasons(model)?;
    for (id, node) in model.nodes() {
        match reasons.iter().find(|(of, _)| *of == id) {
            None => query.supported.push(node.name().to_string()),
            Some((_, reason)) => query.unsupported.push(Unsupported {
                name: node.name().to_string(),
                type_name: node.op().type_name().to_string(),
                reason: reason.clone(),
            }),
        }
    }
    Ok(query)
}

struct Asked {
    machine: Arc<Machine>,
    half: bool,
}

impl Asked {
    // Nodes that the device does not take, and why.
    fn reasons(&self, model: &Model) -> Result<Vec<(NodeId, String)>> {
        // Constants that follow from others are constants; weights in a smaller type stay as they are.
        let mut folded = model.clone();
        run_passes(&mut folded, &[&FoldConstants { decompression: false }], &mut Notes::default())?;
        let mut still: HashSet<NodeId> = HashSet::new();
        let mut reasons = vec![];
        for id in folded.topological_order()? {
            let node = folded.node(id);
            let op = node.op();
            let known = |i: &Value| still.contains(&i.node);
            let free = !op.info().random && !op.info().stateful && !op.info().sink;
            if op.is::<Constant>() || (!node.inputs().is_empty() && node.inputs().iter().all(known) && free) {
                still.insert(id);
                continue;
            }
            if model.get(id).is_none_or(|n| n.name() != node.name()) || op.is::<Parameter>() || op.is::<ResultOp>() {
                continue;
            }
            if let Some(reason) = self.why_not(&folded, id, &still)? {
                reasons.push((id, reason));
            }
        }
        Ok(reasons)
    }

    fn why_not(&self, model: &Model, id: NodeId, still: &HashSet<NodeId>) -> Result<Option<String>> {
        let op = model.node(id).op();
        if op.is::<FrameworkNode>() {
            return Ok(Some(format!("no operation of opset `{}` has this name", op.opset())));
        }
        // The user brought it; whether it suits is told when the model is compiled.
        if op.is::<CustomOp>() {
            return Ok(None);
        }
        for (_, body) in op.bodies() {
            if let Some((inner, reason)) = self.reasons(&body.model)?.first() {
                return Ok(Some(format!("{} in its body: {reason}", body.model.node(*inner).location())));
            }
        }
        if op.has_body() || op.info().stateful || op.info().sink {
            return Ok(None);
        }
        let largest = self.machine.info().largest_buffer;
        let bytes = |fact: &Fact| fact.shape.elements().and_then(|n| fact.ty.byte_len(n)).unwrap_or(0);
        let facts = model.node(id).inputs().iter().map(|v| model.fact(*v));
        let facts = facts.chain(model.node(id).outputs().iter().map(|o| &o.fact));
        if let Some(bytes) = facts.map(bytes).max().filter(|bytes| *bytes > largest) {
            return Ok(Some(format!(
                "a tensor of {bytes} bytes is more than one buffer of the device holds, {largest}"
            )));
        }
        let mut reason = "its shapes are not known".to_string();
        for (size, rank) in SIZES.iter().flat_map(|s| RANKS.iter().map(move |r| (*s, *r))) {
            let Some(mut alone) = alone(model, id, still, size, rank) else { continue };
            reason = match self.runs(&mut alone) || guessed(&alone).into_iter().any(|mut model| self.runs(&mut model)) {
                true => return Ok(None),
                false => "there is no kernel for it with these types, shapes and attributes".to_string(),
            };
            if let Some(count) = most_elements(&alone).filter(|n| *n > MOST_ELEMENTS) {
                reason = format!("its kernels count up to {MOST_ELEMENTS} elements of a tensor, one has {count}");
            }
            let open = |v: &Value| !model.fact(*v).shape.is_static();
            if !model.node(id).inputs().iter().any(open) {
                break;
            }
        }
        Ok(Some(reason))
    }

    // Whether a model comes out without an evaluation: as it is, or after the passes that models go through.
    fn runs(&self, model: &mut Model) -> bool {
        let small = |fact: &Fact| {
            let whole = fact.ty.is_integer() || fact.ty == ElementType::Boolean;
            whole && fact.shape.elements().is_some_and(|n| n <= FEW)
        };
        // Whoever makes nothing has nothing to compute.
        if model.results().iter().all(|&r| model.fact(model.result_value(r)).shape.elements() == Some(0)) {
            return true;
        }
        let fact = |id: &NodeId| model.fact((*id).into());
        let outputs = model.results().iter().map(|&r| model.fact(model.result_value(r)));
        if model.parameters().iter().map(fact).chain(outputs).all(small) {
            return true;
        }
        self.plans(model) || (prepare(model).is_ok() && self.plans(model))
    }

    fn plans(&self, model: &Model) -> bool {
        let weights = Arc::new(Weights::of(&Model::new(""), &self.machine));
        let backend =
            Gpu { machine: self.machine.clone(), weights, half: self.half, dry: true, folder: None, records: false };
        lower(model, &backend).is_ok_and(|p| p.steps.iter().all(|s| !matches!(s.action, Action::Eval(_))))
    }
}

// Elements of the largest tensor.
fn most_elements(model: &Model) -> Option<usize> {
    let facts = model.nodes().flat_map(|(_, node)| node.outputs().iter().map(|o| &o.fact));
    facts.filter_map(|fact| fact.shape.elements()).max()
}

// A model of one node with numbers that decide over shapes, axes and bounds set to some that may fit: plans are made for their values.
fn guessed(alone: &Model) -> Vec<Model> {
    let node =
        alone.nodes().find(|(_, n)| !n.op().is::<Parameter>() && !n.op().is::<Constant>() && !n.op().is::<ResultOp>());
    let Some((id, node)) = node else { return vec![] };
    let ports = deciding_ports(alone, id);
    if ports.is_empty() {
        return vec![];
    }
    let data = alone.fact(node.inputs()[0]).shape.to_static().unwrap_or_default();
    let guess = |round: i64| {
        let mut model = alone.clone();
        for &port in &ports {
            let v = node.inputs()[port];
            let fact = alone.fact(v);
            let shape = fact.shape.to_static()?;
            let n = carafe_tensor::elements(&shape)? as i64;
            let name = node.op().info().inputs.get(port).map_or("", |p| p.name);
            let last = |i: i64| data.len() as i64 - n + i;
            let numbers: Vec<i64> = (0..n)
                .map(|i| match (name, round) {
                    ("axis" | "axes", 0) => last(i),
                    ("axis" | "axes" | "order", _) => i,
                    ("start" | "begin", _) => 0,
                    ("step" | "strides", _) => 1,
                    ("stop" | "end", _) => 2 - round.min(1),
                    ("shape" | "split_lengths", 0) if i == 0 => -1,
                    ("target_shape" | "shape", 1) => usize::try_from(last(i)).ok().map_or(2, |a| data[a] as i64),
                    ("shape" | "split_lengths", _) => 1,
                    (_, 0) => 2,
                    _ => 1,
                })
                .collect();
            let constant =
                model.constant(&format!("guess_{port}"), Tensor::from_i64(fact.ty, &shape, &numbers).ok()?).ok()?;
            model.replace_value(v, constant);
        }
        model.infer().ok()?;
        let known = |r: &NodeId| model.fact(model.result_value(*r)).shape.is_static();
        model.results().iter().all(known).then_some(model)
    };
    (0..3).filter_map(guess).collect()
}

// A model of one node, with dimensions that are open set to a size. `None` where the node does not take such shapes.
fn alone(model: &Model, id: NodeId, still: &HashSet<NodeId>, size: i64, rank: usize) -> Option<Model> {
    let (node, mut alone) = (model.node(id), Model::new("one node"));
    let mut inputs: Vec<Value> = vec![];
    for (i, v) in node.inputs().iter().enumerate() {
        if let Some(at) = node.inputs()[..i].iter().position(|w| w == v) {
            inputs.push(inputs[at]);
            continue;
        }
        let fact = model.fact(*v);
        let shape = settled(&fact.shape, size, rank);
        let name = format!("input_{i}");
        let value = match (fact.tensor(), still.contains(&v.node)) {
            (Some(tensor), _) => alone.constant(&name, tensor.clone()),
            // Nobody looks at the numbers of large constants; memory that is not touched is not there.
            (None, true) => alone.constant(&name, Tensor::zeros(fact.ty, &shape).ok()?),
            (None, false) => alone.parameter(&name, fact.ty, PartialShape::of(&shape)),
        };
        inputs.push(value.ok()?);
    }
    let added = alone.add_ref(node.name(), node.op_ref().clone(), &inputs).ok()?;
    let users = |port: usize| !model.users(Value { node: id, port }).is_empty();
    let ports: Vec<usize> = (0..node.outputs().len()).filter(|&p| p == 0 || users(p)).collect();
    for port in ports {
        alone.result(&format!("output_{port}"), Value { node: added, port }).ok()?;
    }
    alone.infer().ok()?;
    Some(alone)
}

fn settled(shape: &PartialShape, size: i64, rank: usize) -> Vec<usize> {
    let Some(dims) = shape.dims() else { return vec![size as usize; rank] };
    let settle = |d: &carafe_tensor::Dim| size.max(d.min()).min(d.max().unwrap_or(i64::MAX));
    dims.iter().map(|d| usize::try_from(settle(d)).unwrap_or(1)).collect()
}
