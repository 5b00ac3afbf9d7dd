//! Rewrites of a graph before it is translated. They see a model of `FrameworkNode`s (`decoded.rs`); what they leave becomes
//! the graph again, and nodes that they did not touch are the very nodes of the file. Names are the edges of the graph, but a
//! rewrite joins values: outputs and what sub-graphs read keep their names, everything else gets one that is free.

use crate::decoded::{CAPTURED, Decoded, MARKER, NOTHING};
use crate::dialect::Dialect;
use crate::request::ReadRequest;
use crate::source::{MARK, SourceGraph, SourceNode, SourceTensor, SourceValue};
use carafe_graph::{
    AttrMap, Constant, Error, FrameworkNode, ItemType, Model, Node, NodeId, Notes, Parameter, Pass, Registry, Result,
    ResultOp, Value, run_passes,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The graph after the rewrites of the request.
pub(crate) fn rewrite(
    mut graph: SourceGraph,
    dialect: &dyn Dialect,
    framework: &str,
    request: &ReadRequest<'_>,
) -> Result<SourceGraph> {
    let mut decoded = Decoded::of(&mut graph, dialect, framework)?;
    let list: Vec<&dyn Pass> = request.rewrites.iter().chain(request.decoded).map(|p| &**p).collect();
    let mut notes = Notes::decoded().with_registry(Arc::new(Registry::new())).kept(request.log.is_debug());
    let done = run_passes(&mut decoded.model, &list, &mut notes);
    notes.lines.iter().for_each(|line| request.log.debug(|| line.clone()));
    done?;
    decoded.model.prune();
    let word = dialect.words().graph;
    decoded.into_graph(graph).map_err(|e| e.at(format!("the {word} as rewritten before translation")))
}

impl Decoded<'_> {
    // The graph that the model describes now; `graph` is what was left of it.
    fn into_graph(mut self, mut graph: SourceGraph) -> Result<SourceGraph> {
        graph.name = self.model.name.clone();
        let order = self.model.topological_order()?;
        let mut names = Names::default();
        names.fix(&self.model, &order)?;
        names.find_rest(&self.model, &order, &self.keys);
        for &p in self.model.parameters() {
            let name = names.of(p.into()).to_string();
            let new = || SourceValue::new("", Ok(ItemType::of(self.model.fact(p.into()))));
            let old = self.inputs.remove(&p);
            graph.inputs.push(SourceValue { name, ..old.unwrap_or_else(new) });
        }
        let mut known = std::mem::take(&mut self.nodes);
        // In the order of the file, where it had them.
        for (id, node) in self.model.nodes() {
            if let Some(c) = node.op().get::<Constant>() {
                let is_own = |owner: &NodeId| self.model.users(id.into()).iter().all(|u| u.node == *owner);
                if !self.stored.get(&id).is_some_and(is_own) {
                    graph.tensors.push(SourceTensor::new(names.of(id.into()), c.tensor().clone()));
                }
            } else if let Some(op) = node.op().get::<FrameworkNode>() {
                if op.opset != MARKER {
                    graph.nodes.push(self.node_of(id, node, op, known.remove(&id), &names, &graph)?);
                }
            } else if !node.op().is::<Parameter>() && !node.op().is::<ResultOp>() {
                let why =
                    "is an operation of the engine; before translation only those of the source format can be added";
                return Err(Error::unsupported(why).at(node.location()));
            }
        }
        graph.aliases = names.copies.iter().cloned().collect();
        let old = graph.outputs.take().unwrap_or_default();
        let output = |r: &NodeId| {
            let name = self.model.node(*r).name();
            old.iter().find(|o| o.name == name).cloned().unwrap_or_else(|| SourceValue::unknown(name))
        };
        graph.outputs = Some(self.model.results().iter().map(output).collect());
        Ok(graph)
    }

    fn node_of(
        &self,
        id: NodeId,
        node: &Node,
        op: &FrameworkNode,
        before: Option<SourceNode>,
        names: &Names,
        graph: &SourceGraph,
    ) -> Result<SourceNode> {
        let words = self.dialect.words();
        let domain = if op.opset == words.domain { String::new() } else { op.opset.clone() };
        let is_known = before.as_ref().is_some_and(|b| b.op_type == op.type_name && b.domain == domain);
        let mut new = before.unwrap_or_default();
        let (ports, old_inputs) = (std::mem::take(&mut new.input_ports), std::mem::take(&mut new.inputs));
        new.stored.clear();
        for v in node.inputs() {
            let at = self.model.node(v.node);
            let marker = at.op().get::<FrameworkNode>().filter(|op| op.opset == MARKER);
            match marker.map(|op| op.type_name.as_str()) {
                Some(NOTHING) => new.inputs.push(String::new()),
                Some(_) => continue,
                None => new.inputs.push(names.of(*v).to_string()),
            }
            let mut port = words.input_port;
            if let (Some(owner), Some(c)) = (self.stored.get(&v.node), at.op().get::<Constant>())
                && *owner == id
            {
                let name = names.of(*v).to_string();
                let old = old_inputs.iter().position(|i| Some(i) == self.keys.get(v));
                port = old.and_then(|i| ports.get(i)).map_or(port, String::as_str);
                new.stored.push(SourceTensor::new(name, c.tensor().clone()));
            }
            new.input_ports.push(port.to_string());
        }
        if words.input_port.is_empty() {
            // Ports are known of nodes that read as many values as before.
            new.input_ports = if ports.len() == new.inputs.len() { ports } else { vec![] };
        }
        let outputs = node.outputs().len();
        if new.output_ports.len() != outputs {
            new.output_ports =
                vec![words.output_port.to_string(); if words.output_port.is_empty() { 0 } else { outputs }];
        }
        new.outputs = (0..outputs).map(|port| names.of(Value { node: id, port }).to_string()).collect();
        // A node without a name is called by its output.
        if !is_known || new.label() != node.name() {
            new.name = node.name().to_string();
        }
        self.attributes(op, &mut new).map_err(|e| e.at(node.location()))?;
        if !is_known {
            (new.version, new.index) = (graph.versions.of(&domain), None);
            (new.op_type, new.domain) = (op.type_name.clone(), domain);
        }
        Ok(new)
    }

    fn attributes(&self, op: &FrameworkNode, new: &mut SourceNode) -> Result<()> {
        let old = std::mem::replace(&mut new.attrs, AttrMap::new());
        new.held.clear();
        for (name, value) in op.attrs.iter() {
            if let Some(held) = self.held(value) {
                new.held.push((name.to_string(), held.clone()));
                continue;
            }
            let value = match old.get(name) == Some(value) {
                true => value.clone(),
                false => self.dialect.attribute(value.clone()).map_err(|e| e.at(format!("attribute `{name}`")))?,
            };
            new.attrs.set(name, value);
        }
        Ok(())
    }
}

/// A name for every value.
#[derive(Default)]
struct Names {
    of: HashMap<Value, String>,
    taken: HashSet<String>,
    /// Second names of values, and their first.
    copies: Vec<(String, String)>,
}

impl Names {
    fn of(&self, v: Value) -> &str {
        self.of.get(&v).map_or("", String::as_str)
    }

    // Names that somebody outside of the nodes relies on: callers, and sub-graphs.
    fn fix(&mut self, model: &Model, order: &[NodeId]) -> Result<()> {
        for &p in model.parameters() {
            let name = model.node(p).name().to_string();
            if !self.taken.insert(name.clone()) {
                return Err(Error::invalid(format!("two inputs are named `{name}`")));
            }
            self.of.insert(p.into(), name);
        }
        let is_captured = |id: &&NodeId| {
            let op = model.node(**id).op().get::<FrameworkNode>();
            op.is_some_and(|op| op.opset == MARKER && op.type_name == CAPTURED)
        };
        let mut asked: HashMap<&str, Value> = HashMap::new();
        for &id in model.results().iter().chain(order.iter().filter(is_captured)) {
            let node = model.node(id);
            let v = node.inputs()[0];
            match asked.insert(node.name(), v) {
                Some(other) if other != v => {
                    return Err(Error::invalid(format!("two different values are needed as `{}`", node.name())));
                }
                Some(_) => {}
                None => self.ask(v, node.name())?,
            }
        }
        Ok(())
    }

    fn ask(&mut self, v: Value, name: &str) -> Result<()> {
        let first = self.of.get(&v).cloned();
        if first.as_deref() == Some(name) {
            return Ok(());
        }
        if !self.taken.insert(name.to_string()) {
            return Err(Error::invalid(format!("`{name}` is the name of two different values")));
        }
        match first {
            Some(first) => self.copies.push((name.to_string(), first)),
            None => drop(self.of.insert(v, name.to_string())),
        }
        Ok(())
    }

    fn find_rest(&mut self, model: &Model, order: &[NodeId], keys: &HashMap<Value, String>) {
        let ports = |id: NodeId| (0..model.node(id).outputs().len()).map(move |port| Value { node: id, port });
        let is_result = |id: &&NodeId| model.node(**id).op().is::<ResultOp>();
        let values: Vec<Value> = order.iter().filter(|id| !is_result(id)).flat_map(|id| ports(*id)).collect();
        for &v in &values {
            let wanted = model.output(v).names.iter().find(|n| !self.taken.contains(*n));
            if let (false, Some(name)) = (self.of.contains_key(&v), wanted) {
                self.taken.insert(name.clone());
                self.of.insert(v, name.clone());
            }
        }
        for &v in &values {
            // An output that nobody named and nobody reads stays left out.
            if self.of.contains_key(&v) || (model.output(v).names.is_empty() && model.users(v).is_empty()) {
                continue;
            }
            let name = match keys.get(&v) {
                Some(key) if !self.taken.contains(key) => key.clone(),
                // Another value bears its name now.
                Some(_) => format!("{MARK}{}:{}", v.node.0, v.port),
                None => self.free_name(model.node(v.node).name(), v.port),
            };
            self.taken.insert(name.clone());
            self.of.insert(v, name);
        }
    }

    fn free_name(&self, node: &str, port: usize) -> String {
        let wanted = if port == 0 { node.to_string() } else { format!("{node}.{port}") };
        let numbered = (1..).map(|n| format!("{wanted}_{n}"));
        let mut all = std::iter::once(wanted.clone()).chain(numbered);
        all.find(|name| !name.is_empty() && !self.taken.contains(name)).unwrap_or_default()
    }
}
