//! The graph: nodes in slots, values as (node, port), and edits that keep the user lists right. A removed slot is never
//! reused, so an id stays valid or dead, never somebody else.

use crate::error::{Error, Result};
use crate::eval::EvalEnv;
use crate::fact::Fact;
use crate::infer;
use crate::op::{Op, OpRef};
use crate::rt_info::{RtInfo, RtTree};
use crate::structural::{Constant, Parameter, ResultOp};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A node of a model. Numbers are never used again, so an id is good for its node or for none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u32);

/// One output of one node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value {
    /// The node.
    pub node: NodeId,
    /// Which of its outputs.
    pub port: usize,
}

impl From<NodeId> for Value {
    fn from(node: NodeId) -> Value {
        Value { node, port: 0 }
    }
}

/// One input of one node: who uses a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Use {
    /// The node.
    pub node: NodeId,
    /// Which of its inputs.
    pub input: usize,
}

/// What a node says of one of its outputs.
#[derive(Clone, Debug)]
pub struct Output {
    /// What is known of it.
    pub fact: Fact,
    /// Names of the tensor.
    pub names: BTreeSet<String>,
    /// Further information, as files keep it.
    pub rt_info: RtInfo,
}

/// An operation placed in a graph.
#[derive(Clone, Debug)]
pub struct Node {
    name: String,
    op: OpRef,
    inputs: Vec<Value>,
    outputs: Vec<Output>,
    users: Vec<Vec<Use>>,
    /// Further information, as files keep it.
    pub rt_info: RtInfo,
    /// Runtime information of input ports, by port; may be shorter than the inputs.
    pub input_rt_info: Vec<RtInfo>,
}

impl Node {
    /// The friendly name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Its operation.
    pub fn op(&self) -> &dyn Op {
        &*self.op
    }
    /// Its operation, to share.
    pub fn op_ref(&self) -> &OpRef {
        &self.op
    }
    /// The values that it reads.
    pub fn inputs(&self) -> &[Value] {
        &self.inputs
    }
    /// What it says of its outputs.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }
    /// `node `name` (Type, opset)`, the way errors speak of it.
    pub fn location(&self) -> String {
        position_of(&self.name, &*self.op)
    }
}

pub(crate) fn position_of(name: &str, op: &dyn Op) -> String {
    format!("node `{name}` ({}, {})", op.type_name(), op.opset())
}

/// A model or a body.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Name of the model.
    pub name: String,
    /// Further information, as files keep it.
    pub rt_info: Vec<RtTree>,
    nodes: Vec<Option<Node>>,
    parameters: Vec<NodeId>,
    results: Vec<NodeId>,
    sinks: Vec<NodeId>,
}

impl Model {
    /// Without nodes.
    pub fn new(name: impl Into<String>) -> Model {
        Model { name: name.into(), ..Model::default() }
    }

    // Building.

    /// Adds a node and infers its outputs.
    pub fn add<O: Op>(&mut self, name: impl Into<String>, op: O, inputs: &[Value]) -> Result<NodeId> {
        self.add_ref(name, Arc::new(op), inputs)
    }

    /// As `add`, for an operation whose type is only known at run time.
    pub fn add_ref(&mut self, name: impl Into<String>, op: OpRef, inputs: &[Value]) -> Result<NodeId> {
        self.add_named(name.into(), op, inputs)
    }

    fn add_named(&mut self, name: String, op: OpRef, inputs: &[Value]) -> Result<NodeId> {
        for v in inputs {
            let ports = self.get(v.node).map(|n| n.outputs.len());
            if ports.is_none_or(|n| v.port >= n) {
                return Err(Error::invalid(format!("input {}:{} does not exist", v.node.0, v.port))
                    .at(position_of(&name, &*op)));
            }
        }
        let id = NodeId(self.nodes.len() as u32);
        let facts: Vec<&Fact> = inputs.iter().map(|v| self.fact(*v)).collect();
        let outputs = infer::infer_op(&name, id, &*op, &facts, false)?
            .into_iter()
            .map(|fact| Output { fact, names: BTreeSet::new(), rt_info: RtInfo::default() })
            .collect::<Vec<_>>();
        if op.is::<Parameter>() {
            self.parameters.push(id);
        } else if op.is::<ResultOp>() {
            self.results.push(id);
        } else if op.info().sink {
            self.sinks.push(id);
        }
        for (i, v) in inputs.iter().enumerate() {
            self.users_mut(*v).push(Use { node: id, input: i });
        }
        self.nodes.push(Some(Node {
            name,
            op,
            inputs: inputs.to_vec(),
            users: vec![Vec::new(); outputs.len()],
            outputs,
            rt_info: RtInfo::default(),
            input_rt_info: Vec::new(),
        }));
        Ok(id)
    }

    /// Adds an input of the model; its name also becomes a tensor name.
    pub fn parameter(&mut self, name: &str, ty: ElementType, shape: PartialShape) -> Result<Value> {
        let id = self.add(name, Parameter { shape, element_type: ty }, &[])?;
        self.add_tensor_name(id.into(), name);
        Ok(id.into())
    }

    /// Adds a constant.
    pub fn constant(&mut self, name: &str, tensor: Tensor) -> Result<Value> {
        Ok(self.add(name, Constant::new(tensor), &[])?.into())
    }

    /// Adds an output of the model.
    pub fn result(&mut self, name: &str, value: Value) -> Result<NodeId> {
        self.add(name, ResultOp {}, &[value])
    }

    // Looking.

    /// A node, if it is there.
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)?.as_ref()
    }
    /// The node; panics on a dead id, which is a bug of the caller.
    pub fn node(&self, id: NodeId) -> &Node {
        self.get(id).expect("id of a live node")
    }
    /// What a node says of an output.
    pub fn output(&self, v: Value) -> &Output {
        &self.node(v.node).outputs[v.port]
    }
    /// What is known of a value.
    pub fn fact(&self, v: Value) -> &Fact {
        &self.output(v).fact
    }
    /// Who reads a value.
    pub fn users(&self, v: Value) -> &[Use] {
        &self.node(v.node).users[v.port]
    }
    /// Live nodes in order of creation.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().filter_map(|(i, n)| Some((NodeId(i as u32), n.as_ref()?)))
    }
    /// Number of live nodes.
    pub fn len(&self) -> usize {
        self.nodes.iter().flatten().count()
    }
    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Inputs, in order.
    pub fn parameters(&self) -> &[NodeId] {
        &self.parameters
    }
    /// Outputs, in order.
    pub fn results(&self) -> &[NodeId] {
        &self.results
    }
    /// Nodes that nothing reads and that must run: assignments of variables.
    pub fn sinks(&self) -> &[NodeId] {
        &self.sinks
    }
    /// Upper bound of node ids, dead ones included; for tables indexed by id.
    pub fn slots(&self) -> usize {
        self.nodes.len()
    }
    /// The value that a result passes on.
    pub fn result_value(&self, result: NodeId) -> Value {
        self.node(result).inputs[0]
    }
    /// Names of a model output: its own if it has any, otherwise those of the producing value.
    pub fn result_names(&self, result: NodeId) -> BTreeSet<String> {
        let own = &self.node(result).outputs[0].names;
        if own.is_empty() { self.output(self.result_value(result)).names.clone() } else { own.clone() }
    }
    /// The name a user would call this output by.
    pub fn result_name(&self, result: NodeId) -> String {
        self.result_names(result).into_iter().next().unwrap_or_else(|| {
            let v = self.result_value(result);
            let producer = self.node(v.node);
            // An output that nothing reads, as newer versions of operations have, does not change the name of the first.
            let mut others = producer.users.iter().zip(&producer.outputs).skip(1);
            let alone = v.port == 0 && others.all(|(users, output)| users.is_empty() && output.names.is_empty());
            if alone { producer.name.clone() } else { format!("{}.{}", producer.name, v.port) }
        })
    }
    /// The name a user would call this input by.
    pub fn parameter_name(&self, parameter: NodeId) -> String {
        let n = self.node(parameter);
        n.outputs[0].names.iter().next().unwrap_or(&n.name).clone()
    }
    /// An input by tensor name or friendly name.
    pub fn find_parameter(&self, name: &str) -> Option<usize> {
        let by_tensor = self.parameters.iter().position(|&p| self.node(p).outputs[0].names.contains(name));
        by_tensor.or_else(|| self.parameters.iter().position(|&p| self.node(p).name == name))
    }
    /// An output by tensor name or by the friendly name of the result or its producer.
    pub fn find_result(&self, name: &str) -> Option<usize> {
        let by = |f: &dyn Fn(NodeId) -> bool| self.results.iter().position(|&r| f(r));
        by(&|r| self.result_names(r).contains(name))
            .or_else(|| by(&|r| self.node(r).name == name))
            .or_else(|| by(&|r| self.node(self.result_value(r).node).name == name))
    }
    /// A node by its name.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.nodes().find(|(_, n)| n.name == name).map(|(id, _)| id)
    }
    /// Ids of all variables that are read or assigned, bodies left out.
    pub fn is_stateful(&self) -> bool {
        self.nodes().any(|(_, n)| n.op.info().stateful)
    }

    // Editing.

    /// Renames a node.
    pub fn set_name(&mut self, id: NodeId, name: impl Into<String>) {
        self.slot(id).name = name.into();
    }
    /// Runtime information of a node, for writing.
    pub fn rt_info_mut(&mut self, id: NodeId) -> &mut RtInfo {
        &mut self.slot(id).rt_info
    }
    /// Runtime information of a value, for writing.
    pub fn output_rt_info_mut(&mut self, v: Value) -> &mut RtInfo {
        &mut self.slot(v.node).outputs[v.port].rt_info
    }
    /// Sets the runtime information of an input.
    pub fn set_input_rt_info(&mut self, id: NodeId, input: usize, info: RtInfo) {
        let list = &mut self.slot(id).input_rt_info;
        if list.len() <= input {
            list.resize(input + 1, RtInfo::default());
        }
        list[input] = info;
    }
    /// Gives a value one more name.
    pub fn add_tensor_name(&mut self, v: Value, name: impl Into<String>) {
        self.slot(v.node).outputs[v.port].names.insert(name.into());
    }
    /// Gives a value these names and no others.
    pub fn set_tensor_names(&mut self, v: Value, names: BTreeSet<String>) {
        self.slot(v.node).outputs[v.port].names = names;
    }
    /// Sets the order of inputs; must be a permutation of the present ones.
    pub fn order_parameters(&mut self, order: Vec<NodeId>) {
        debug_assert!(same_set(&order, &self.parameters));
        self.parameters = order;
    }
    /// Sets the order of outputs; must be a permutation of the present ones.
    pub fn order_results(&mut self, order: Vec<NodeId>) {
        debug_assert!(same_set(&order, &self.results));
        self.results = order;
    }
    /// Exchanges the operation of a node and infers its outputs again; the number of outputs must stay.
    pub fn set_op(&mut self, id: NodeId, op: OpRef) -> Result<()> {
        let old = std::mem::replace(&mut self.slot(id).op, op);
        self.infer_node(id).inspect_err(|_| self.slot(id).op = old)
    }
    /// Gives a node another operation on other inputs. Outputs may become more or fewer; those that go must have no users.
    pub fn set_node(&mut self, id: NodeId, op: OpRef, inputs: &[Value]) -> Result<()> {
        let facts: Vec<&Fact> = inputs.iter().map(|v| self.fact(*v)).collect();
        let node = self.node(id);
        let facts = infer::infer_op(&node.name, id, &*op, &facts, false)?;
        if node.users.iter().skip(facts.len()).any(|u| !u.is_empty()) {
            return Err(Error::usage("an output that is used would go").at(node.location()));
        }
        for (i, v) in node.inputs.clone().into_iter().enumerate() {
            self.users_mut(v).retain(|u| *u != Use { node: id, input: i });
        }
        for (i, v) in inputs.iter().enumerate() {
            self.users_mut(*v).push(Use { node: id, input: i });
        }
        let node = self.slot(id);
        node.users.resize_with(facts.len(), Vec::new);
        let fresh = || Output { fact: Fact::unknown(), names: BTreeSet::new(), rt_info: RtInfo::default() };
        node.outputs.resize_with(facts.len(), fresh);
        node.outputs.iter_mut().zip(facts).for_each(|(o, fact)| o.fact = fact);
        (node.op, node.inputs) = (op, inputs.to_vec());
        node.input_rt_info.truncate(inputs.len());
        Ok(())
    }
    /// Connects an input to another value. Facts downstream are not refreshed; call `infer` after a series of edits.
    pub fn set_input(&mut self, id: NodeId, input: usize, v: Value) {
        let old = self.node(id).inputs[input];
        let this = Use { node: id, input };
        self.users_mut(old).retain(|u| *u != this);
        self.users_mut(v).push(this);
        self.slot(id).inputs[input] = v;
    }
    /// Adds a further input.
    pub fn push_input(&mut self, id: NodeId, v: Value) {
        let input = self.node(id).inputs.len();
        self.users_mut(v).push(Use { node: id, input });
        self.slot(id).inputs.push(v);
    }
    /// Lets every user of `old` read `new`; tensor names move along so that outputs keep their names.
    pub fn replace_value(&mut self, old: Value, new: Value) {
        if old == new {
            return;
        }
        for u in std::mem::take(self.users_mut(old)) {
            if u.node == new.node {
                self.users_mut(old).push(u);
                continue;
            }
            self.slot(u.node).inputs[u.input] = new;
            self.users_mut(new).push(u);
        }
        let names = std::mem::take(&mut self.slot(old.node).outputs[old.port].names);
        self.slot(new.node).outputs[new.port].names.extend(names);
    }
    /// Removes a node that nothing uses.
    pub fn remove(&mut self, id: NodeId) -> Result<()> {
        let node = self.node(id);
        if node.users.iter().any(|u| !u.is_empty()) {
            return Err(Error::usage("cannot remove: its output is used").at(node.location()));
        }
        for (i, v) in node.inputs.clone().into_iter().enumerate() {
            self.users_mut(v).retain(|u| *u != Use { node: id, input: i });
        }
        self.nodes[id.0 as usize] = None;
        for list in [&mut self.parameters, &mut self.results, &mut self.sinks] {
            list.retain(|n| *n != id);
        }
        Ok(())
    }
    /// Removes what neither a result nor a sink needs; parameters stay. Returns how many nodes went.
    pub fn prune(&mut self) -> usize {
        let mut live = vec![false; self.nodes.len()];
        let mut stack: Vec<NodeId> = self.results.iter().chain(&self.sinks).chain(&self.parameters).copied().collect();
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut live[id.0 as usize], true) {
                stack.extend(self.node(id).inputs.iter().map(|v| v.node));
            }
        }
        let mut gone = 0;
        for i in 0..self.nodes.len() {
            if self.nodes[i].is_some() && !live[i] {
                self.nodes[i] = None;
                gone += 1;
            }
        }
        for node in self.nodes.iter_mut().flatten() {
            for users in &mut node.users {
                users.retain(|u| live[u.node.0 as usize]);
            }
        }
        gone
    }
    /// Gives inputs new shapes and infers the whole model again; on an error the model is unchanged.
    pub fn reshape(&mut self, shapes: &HashMap<usize, PartialShape>) -> Result<()> {
        *self = self.reshaped(shapes)?;
        Ok(())
    }
    /// As this model, with new shapes of inputs; all others are inferred.
    pub fn reshaped(&self, shapes: &HashMap<usize, PartialShape>) -> Result<Model> {
        let mut model = self.clone();
        for (&i, shape) in shapes {
            let id = *self.parameters.get(i).ok_or_else(|| Error::not_found(format!("model has no input {i}")))?;
            let old = self.node(id).op().get::<Parameter>().expect("parameters hold Parameter");
            let new = Parameter { shape: shape.clone(), element_type: old.element_type };
            model.slot(id).op = Arc::new(new);
        }
        model.infer()?;
        Ok(model)
    }

    // Inference and order.

    /// Infers types, shapes and partial values of every node again, in order.
    pub fn infer(&mut self) -> Result<()> {
        for id in self.topological_order()? {
            self.infer_node(id)?;
        }
        Ok(())
    }

    /// Facts of the results when the parameters have these facts; the model itself is not changed.
    pub fn infer_with(&self, parameters: &[Fact]) -> Result<Vec<Fact>> {
        let mut copy = self.clone();
        for (&id, fact) in self.parameters.iter().zip(parameters) {
            copy.slot(id).outputs[0].fact = fact.clone();
        }
        for id in copy.topological_order()? {
            if !copy.node(id).op.is::<Parameter>() {
                copy.infer_node(id)?;
            }
        }
        Ok(copy.results.iter().map(|&r| copy.fact(copy.result_value(r)).clone()).collect())
    }

    fn infer_node(&mut self, id: NodeId) -> Result<()> {
        let node = self.node(id);
        let facts: Vec<&Fact> = node.inputs.iter().map(|v| self.fact(*v)).collect();
        let new = infer::infer_op(&node.name, id, &*node.op, &facts, false)?;
        if new.len() < node.outputs.len() && node.users[new.len()..].iter().any(|u| !u.is_empty()) {
            return Err(Error::invalid(format!("gives {} outputs, output {} is used", new.len(), new.len()))
                .at(node.location()));
        }
        let node = self.slot(id);
        node.users.resize(new.len(), Vec::new());
        node.outputs.resize_with(new.len(), || Output {
            fact: Fact::unknown(),
            names: BTreeSet::new(),
            rt_info: RtInfo::default(),
        });
        for (output, fact) in node.outputs.iter_mut().zip(new) {
            output.fact = fact;
        }
        Ok(())
    }

    /// Producers before consumers: parameters first in their order, then the rest in a stable order. A node that
    /// writes a variable comes after every node that reads it.
    pub fn topological_order(&self) -> Result<Vec<NodeId>> {
        crate::topo::order(self)
    }

    /// Runs the whole model once with fresh state; the short form for tests and tools.
    pub fn evaluate(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        crate::eval::run(self, inputs, &mut EvalEnv::default())
    }

    /// Same operations, edges and names, whatever the ids.
    pub fn same_as(&self, other: &Model) -> bool {
        let (Ok(a), Ok(b)) = (self.topological_order(), other.topological_order()) else { return false };
        if a.len() != b.len() || self.parameters.len() != other.parameters.len() {
            return false;
        }
        let at: HashMap<NodeId, usize> = a.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let bt: HashMap<NodeId, usize> = b.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let same_list = |x: &[NodeId], y: &[NodeId]| x.iter().map(|n| at[n]).eq(y.iter().map(|n| bt[n]));
        same_list(&self.parameters, &other.parameters)
            && same_list(&self.results, &other.results)
            && a.iter().zip(&b).all(|(x, y)| {
                let (x, y) = (self.node(*x), other.node(*y));
                x.name == y.name
                    && x.op.eq_op(&*y.op)
                    && x.inputs.iter().map(|v| (at[&v.node], v.port)).eq(y.inputs.iter().map(|v| (bt[&v.node], v.port)))
                    && x.outputs.iter().map(|o| &o.names).eq(y.outputs.iter().map(|o| &o.names))
            })
    }

    fn slot(&mut self, id: NodeId) -> &mut Node {
        self.nodes[id.0 as usize].as_mut().expect("id of a live node")
    }
    fn users_mut(&mut self, v: Value) -> &mut Vec<Use> {
        &mut self.slot(v.node).users[v.port]
    }
}

fn same_set(a: &[NodeId], b: &[NodeId]) -> bool {
    a.iter().collect::<BTreeSet<_>>() == b.iter().collect::<BTreeSet<_>>()
}
