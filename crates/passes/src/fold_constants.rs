//! A node whose inputs are all constants becomes a constant; so does one whose value is known from shapes alone. Weights
//! that are stored in a smaller type stay small: their `decompression` Convert, or the one before a factor of quantized
//! weights, is left, unless asked for.

use crate::fuse::dequantizes_weights;
use carafe_graph::{
    Body, Constant, EvalEnv, Model, NodeId, Notes, Parameter, Pass, Result, ResultOp, Value, eval_node,
};
use carafe_ops::carafe::{Decompress, Dequantize};
use carafe_ops::movement::Identity;
use carafe_tensor::{ElementType, Tensor};
use std::sync::Arc;

/// A folded tensor may be this large whatever it was made from; larger ones must not outgrow their inputs fourfold.
const ALWAYS_FOLDED_BYTES: usize = 1 << 20;

/// Computes what depends on constants and known shapes alone.
#[derive(Clone, Copy, Debug)]
pub struct FoldConstants {
    /// Also fold the converts that widen compressed weights.
    pub decompression: bool,
}

impl Pass for FoldConstants {
    fn name(&self) -> &'static str {
        "fold_constants"
    }
    fn run(&self, model: &mut Model, notes: &mut Notes) -> Result<usize> {
        self.fold(model, false, notes)
    }
}

impl FoldConstants {
    fn fold(&self, model: &mut Model, in_body: bool, notes: &mut Notes) -> Result<usize> {
        let mut folded = crate::transposed_weights::read_directly(model)? + self.fold_bodies(model, notes)?;
        for id in model.topological_order()? {
            if let Some(tensors) = self.values_of(model, id, in_body, notes) {
                replace(model, id, tensors)?;
                folded += 1;
            }
        }
        Ok(folded)
    }

    fn fold_bodies(&self, model: &mut Model, notes: &mut Notes) -> Result<usize> {
        let with_bodies: Vec<NodeId> = model.nodes().filter(|(_, n)| n.op().has_body()).map(|(id, _)| id).collect();
        let mut folded = 0;
        for id in with_bodies {
            let mut op = model.node(id).op().clone_op();
            for (_, body) in op.bodies_mut() {
                folded += fold_conditions(model, id, body)?;
                folded += self.fold(&mut body.model, true, notes)?;
                body.model.prune();
            }
            model.set_op(id, Arc::from(op))?;
        }
        Ok(folded)
    }

    fn values_of(&self, model: &Model, id: NodeId, in_body: bool, notes: &mut Notes) -> Option<Vec<Tensor>> {
        let node = model.node(id);
        let (op, info) = (node.op(), node.op().info());
        if op.is::<Constant>() || op.is::<Parameter>() || op.is::<ResultOp>() {
            return None;
        }
        // Made by a device that computes with the integers of weights, which are a second input.
        if op.is::<Dequantize>() && model.users(id.into()).iter().any(|u| u.input == 1) {
            return None;
        }
        // Made by a device that computes with compressed weights.
        let is_output = |u: &carafe_graph::Use| model.node(u.node).op().is::<ResultOp>();
        if op.is::<Decompress>() && !model.users(id.into()).iter().all(is_output) {
            return None;
        }
        if info.random || info.stateful || info.sink || node.outputs().is_empty() {
            return None;
        }
        if !self.decompression && node.rt_info.has("decompression") {
            notes.add(|| format!("fold_constants: {} stays, it widens compressed weights", node.location()));
            return None;
        }
        if !self.decompression && dequantizes_weights(model, id) {
            notes.add(|| format!("fold_constants: {} stays, it is a step to quantized weights", node.location()));
            return None;
        }
        if node.rt_info.has("DisableConstantFolding") && !self.decompression {
            notes.add(|| format!("fold_constants: {} is marked to stay", node.location()));
            return None;
        }
        // Known without evaluation: the shape arithmetic that inference followed. Not in a body, whose parameters may
        // get other shapes when the outer model is reshaped.
        let known = || node.outputs().iter().map(|o| o.fact.tensor().cloned()).collect::<Option<Vec<_>>>();
        if let Some(known) = known().filter(|_| !in_body) {
            return Some(known);
        }
        let inputs: Vec<Tensor> =
            node.inputs().iter().map(|v| Some(constant(model, *v)?.clone())).collect::<Option<_>>()?;
        let bytes_in: usize = inputs.iter().map(Tensor::byte_len).sum();
        let bytes_out: usize = node
            .outputs()
            .iter()
            .map(|o| o.fact.shape.elements().and_then(|n| o.fact.ty.byte_len(n)).unwrap_or(0))
            .fold(0, usize::saturating_add);
        if bytes_out > ALWAYS_FOLDED_BYTES && bytes_out / 4 > bytes_in {
            notes.add(|| format!("fold_constants: {} stays, {bytes_out} bytes from {bytes_in}", node.location()));
            return None;
        }
        match eval_node(model, id, inputs, &mut EvalEnv::default()) {
            Ok(tensors) => Some(tensors),
            Err(e) => {
                notes.add(|| format!("fold_constants: {e}"));
                None
            }
        }
    }
}

// A condition that comes as a constant and goes on as it came is a constant in the body: then a loop is seen to run as often
// as its count says.
fn fold_conditions(model: &Model, id: NodeId, body: &mut Body) -> Result<usize> {
    let mut folded = 0;
    for input in &body.inputs {
        let Some(outer) = input.outer.and_then(|i| model.node(id).inputs().get(i)) else { continue };
        let tensor = constant(model, *outer).filter(|t| t.element_type() == ElementType::Boolean && t.len() == 1);
        let (Some(tensor), None) = (tensor, input.slicing) else { continue };
        let inner = &mut body.model;
        let Some(&parameter) = inner.parameters().get(input.parameter) else { continue };
        let unchanged = match input.back_edge.and_then(|r| inner.results().get(r)) {
            Some(&result) => passed_on(inner, inner.result_value(result)) == Value::from(parameter),
            None => input.back_edge.is_none(),
        };
        if unchanged && !inner.users(parameter.into()).is_empty() && tensor.shape() == shape_of(inner, parameter) {
            let name = format!("{}/known", inner.node(parameter).name());
            let known = inner.constant(&name, tensor.clone())?;
            let readers = inner.users(parameter.into()).to_vec();
            readers.iter().for_each(|u| inner.set_input(u.node, u.input, known));
            folded += 1;
        }
    }
    Ok(folded)
}

fn passed_on(model: &Model, mut v: Value) -> Value {
    while model.node(v.node).op().is::<Identity>() {
        v = model.node(v.node).inputs()[0];
    }
    v
}

fn shape_of(model: &Model, parameter: NodeId) -> Vec<usize> {
    model.fact(parameter.into()).shape.to_static().unwrap_or(vec![usize::MAX])
}

fn constant(model: &Model, v: Value) -> Option<&Tensor> {
    Some(model.node(v.node).op().get::<Constant>()?.tensor())
}

fn replace(model: &mut Model, id: NodeId, tensors: Vec<Tensor>) -> Result<()> {
    let name = model.node(id).name().to_string();
    let single = tensors.len() == 1;
    for (port, tensor) in tensors.into_iter().enumerate() {
        let name = if single { name.clone() } else { format!("{name}.{port}") };
        let new = model.constant(&name, tensor)?;
        model.replace_value(Value { node: id, port }, new);
    }
    if single {
        model.set_name(id, format!("{name}/folded"));
    }
    model.remove(id)
}
