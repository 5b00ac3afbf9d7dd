//! Versions of operations: readers make the newest of what a file has ([`newest`]), writers the oldest that says the same
//! ([`oldest`]). How one version becomes the next is written at the operation ([`Op::upgrade`], [`Op::downgrade`]).

use crate::NEWEST_OPSET;
use crate::attr::AttrMap;
use crate::error::Result;
use crate::fact::Fact;
use crate::infer::infer_op;
use crate::model::{Model, NodeId, Value};
use crate::op::{Op, OpNew, OpRef};
use crate::structural::Constant;
use carafe_tensor::{Element, ElementType, Tensor};
use std::sync::Arc;

/// A node that may get another version of its operation.
#[derive(Debug)]
pub struct VersionCx<'a> {
    inputs: Vec<(&'a Fact, Option<&'a Tensor>)>,
    /// How many outputs somebody reads or has named, counted to the last of them.
    outputs: usize,
}

impl<'a> VersionCx<'a> {
    /// What an operation on these inputs sees, with all outputs in use.
    pub fn of_inputs(model: &'a Model, inputs: &[Value]) -> VersionCx<'a> {
        let input = |v: &Value| (model.fact(*v), model.node(v.node).op().get::<Constant>().map(|c| c.tensor()));
        VersionCx { inputs: inputs.iter().map(input).collect(), outputs: usize::MAX }
    }
    fn of_node(model: &'a Model, id: NodeId) -> VersionCx<'a> {
        let node = model.node(id);
        let used = |port: &usize| {
            let v = Value { node: id, port: *port };
            !model.users(v).is_empty() || !node.outputs()[*port].names.is_empty()
        };
        let outputs = (0..node.outputs().len()).rev().find(used).map_or(0, |last| last + 1);
        VersionCx { outputs, ..VersionCx::of_inputs(model, node.inputs()) }
    }
    /// How many inputs the node has.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }
    /// Type of an input.
    pub fn ty(&self, input: usize) -> ElementType {
        self.inputs[input].0.ty
    }
    /// Rank of an input, where known.
    pub fn rank(&self, input: usize) -> Option<usize> {
        self.inputs.get(input)?.0.shape.rank()
    }
    /// What is known of an input.
    pub fn fact(&self, input: usize) -> Option<&'a Fact> {
        self.inputs.get(input).map(|i| i.0)
    }
    /// An input that is a constant of the model, and so the same whatever shapes the model gets.
    pub fn constant(&self, input: usize) -> Option<&'a Tensor> {
        self.inputs.get(input)?.1
    }
    /// Integers of a constant input.
    pub fn ints(&self, input: usize) -> Option<Vec<i64>> {
        let t = self.constant(input)?;
        let list = t.element_type().is_integer().then(|| t.to_vec::<i64>().ok());
        list.flatten().map(|v| v.into_owned())
    }
    /// Whether nothing reads or names an output behind the first `n`.
    pub fn only_outputs(&self, n: usize) -> bool {
        self.outputs <= n
    }
}

/// An operation in another version, and where its inputs come from.
#[derive(Debug)]
pub struct Version {
    /// The operation.
    pub op: OpRef,
    /// Its inputs, in order.
    pub inputs: Vec<VersionInput>,
}

/// An input of a node in another version.
#[derive(Clone, Debug)]
pub enum VersionInput {
    /// The one that had this number.
    Old(usize),
    /// A constant, under the name of its port.
    New(Tensor),
}

impl Version {
    /// With all the inputs there were.
    pub fn same(op: impl Op, cx: &VersionCx<'_>) -> Option<Version> {
        Version::first(op, cx.n_inputs())
    }
    /// As the class `T` with the attributes that both have and all the inputs.
    pub fn of<T: OpNew>(old: &dyn Op, cx: &VersionCx<'_>) -> Option<Version> {
        Version::same(T::from_attrs(&attrs_of(old)).ok()?, cx)
    }
    /// With the first `n` of the inputs.
    pub fn first(op: impl Op, n: usize) -> Option<Version> {
        Some(Version::with_first(Arc::new(op), n))
    }
    fn with_first(op: OpRef, n: usize) -> Version {
        Version { op, inputs: (0..n).map(VersionInput::Old).collect() }
    }
    /// With these of the inputs there were, in this order.
    #[must_use]
    pub fn picking(self, inputs: &[usize]) -> Version {
        Version { inputs: inputs.iter().map(|&i| VersionInput::Old(i)).collect(), ..self }
    }
    /// With one more input, a list.
    #[must_use]
    pub fn with<T: Element>(mut self, values: &[T]) -> Option<Version> {
        self.inputs.push(VersionInput::New(Tensor::from_slice(&[values.len()], values).ok()?));
        Some(self)
    }
}

impl Version {
    // Whether a reader makes of it the operation that it was made of, on the same inputs.
    fn leads_back(&self, op: &dyn Op, cx: &VersionCx<'_>) -> bool {
        let fact = |input: &VersionInput| match input {
            VersionInput::Old(_) => None,
            VersionInput::New(t) => Some(Fact::of(t)),
        };
        let made: Vec<Option<Fact>> = self.inputs.iter().map(fact).collect();
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (input, fact) in self.inputs.iter().zip(&made) {
            inputs.push(match (input, fact) {
                (VersionInput::Old(i), _) => cx.inputs[*i],
                (VersionInput::New(t), Some(fact)) => (fact, Some(t)),
                (VersionInput::New(_), None) => return false,
            });
        }
        let Some(back) = self.op.upgrade(&VersionCx { inputs, outputs: cx.outputs }) else { return false };
        let same = |(i, input): (usize, &VersionInput)| match input {
            VersionInput::Old(k) => matches!(self.inputs[*k], VersionInput::Old(was) if was == i),
            VersionInput::New(t) => cx.constant(i).is_some_and(|was| was.content_eq(t)),
        };
        back.op.eq_op(op) && back.inputs.len() == cx.n_inputs() && back.inputs.iter().enumerate().all(same)
    }
}

fn attrs_of(op: &dyn Op) -> AttrMap {
    op.attrs().into_iter().map(|(name, value)| (name.into_owned(), value)).collect()
}

// More steps than any operation has versions.
const MOST_STEPS: usize = 16;

/// The newest version of an operation that says the same on these inputs, and its inputs. New constants are added to the
/// model under the name of the node and of the port.
pub fn newest(model: &mut Model, name: &str, op: OpRef, inputs: &[Value]) -> Result<(OpRef, Vec<Value>)> {
    let (mut op, mut inputs) = (op, inputs.to_vec());
    for _ in 0..MOST_STEPS {
        if op.info().until == 0 || op.info().until >= NEWEST_OPSET {
            break;
        }
        // The old version refuses what it cannot be.
        let facts: Vec<&Fact> = inputs.iter().map(|v| model.fact(*v)).collect();
        infer_op(name, NodeId(model.slots() as u32), &*op, &facts, false)?;
        let Some(next) = op.upgrade(&VersionCx::of_inputs(model, &inputs)) else { break };
        inputs = connect(model, name, &next, &inputs)?;
        op = next.op;
    }
    Ok((op, inputs))
}

/// The model with the newest version of every operation that says the same, bodies included; `None` where it has no older
/// one. For models that no reader made.
pub fn upgraded(model: &Model) -> Result<Option<Model>> {
    fn is_current(model: &Model) -> bool {
        let current = |op: &dyn Op| op.info().until == 0 || op.info().until >= NEWEST_OPSET;
        model.nodes().all(|(_, n)| current(n.op()) && n.op().bodies().iter().all(|(_, body)| is_current(&body.model)))
    }
    if is_current(model) {
        return Ok(None);
    }
    let mut model = model.clone();
    upgrade(&mut model)?;
    Ok(Some(model))
}

fn upgrade(model: &mut Model) -> Result<()> {
    for id in model.topological_order()? {
        if model.node(id).op().has_body() {
            let mut op = model.node(id).op().clone_op();
            op.bodies_mut().into_iter().try_for_each(|(_, body)| upgrade(&mut body.model))?;
            model.set_op(id, Arc::from(op))?;
        }
        let (name, op) = (model.node(id).name().to_string(), model.node(id).op_ref().clone());
        let old = model.node(id).inputs().to_vec();
        let (new, inputs) = newest(model, &name, op.clone(), &old)?;
        if !Arc::ptr_eq(&op, &new) {
            model.set_node(id, new, &inputs)?;
        }
    }
    Ok(())
}

fn connect(model: &mut Model, name: &str, version: &Version, old: &[Value]) -> Result<Vec<Value>> {
    let mut inputs = Vec::with_capacity(version.inputs.len());
    for (i, input) in version.inputs.iter().enumerate() {
        inputs.push(match input {
            VersionInput::Old(i) => old[*i],
            VersionInput::New(tensor) => model.constant(&made_name(name, &*version.op, i), tensor.clone())?,
        });
    }
    Ok(inputs)
}

fn made_name(name: &str, op: &dyn Op, input: usize) -> String {
    format!("{name}/{}", op.info().inputs.get(input).map_or("input", |p| p.name))
}

// Whether inputs that the other version does not have are such as [`newest`] makes, so that reading brings them back by name.
fn drops_only_made(model: &Model, id: NodeId, next: &Version) -> bool {
    let node = model.node(id);
    let kept = |i: usize| next.inputs.iter().any(|input| matches!(input, VersionInput::Old(k) if *k == i));
    node.inputs().iter().enumerate().all(|(i, v)| {
        let made =
            || model.node(v.node).name() == made_name(node.name(), node.op(), i) && model.output(*v).names.is_empty();
        kept(i) || made()
    })
}

/// The model with the oldest version of every operation that says the same, bodies included; `None` where that is the model
/// itself.
pub fn oldest(model: &Model) -> Result<Option<Model>> {
    let mut new = None;
    for id in model.topological_order()? {
        let node = model.node(id);
        if node.op().has_body() {
            let mut op = node.op().clone_op();
            let mut changed = false;
            for (_, body) in op.bodies_mut() {
                if let Some(older) = oldest(&body.model)? {
                    body.model = older;
                    changed = true;
                }
            }
            if changed {
                new.get_or_insert_with(|| model.clone()).set_op(id, Arc::from(op))?;
            }
        }
        for _ in 0..MOST_STEPS {
            let now = new.as_ref().unwrap_or(model);
            let (node, cx) = (now.node(id), VersionCx::of_node(now, id));
            let exact = |next: &Version| next.leads_back(node.op(), &cx) && drops_only_made(now, id, next);
            let Some(next) = node.op().downgrade(&cx).filter(exact) else { break };
            let (name, old) = (node.name().to_string(), node.inputs().to_vec());
            let changed = new.get_or_insert_with(|| model.clone());
            let inputs = connect(changed, &name, &next, &old)?;
            changed.set_node(id, next.op, &inputs)?;
        }
    }
    Ok(new)
}
