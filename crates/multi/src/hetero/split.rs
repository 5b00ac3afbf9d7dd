//! Makes a model of each piece. An edge between pieces becomes a Result here and a Parameter there; inputs of the model
//! are Parameters wherever they are read; constants are copied (their bytes are shared) to whoever reads them. What is
//! computed of constants goes along when the reader's device takes it and is evaluated here when not.

use super::order::{Pieces, pieces};
use super::placement::Placement;
use carafe_graph::{Constant, Error, EvalEnv, Model, NodeId, Parameter, Result, ResultOp, Value, eval_node};
use carafe_tensor::Tensor;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Where a tensor comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// An input of the whole model.
    Input(usize),
    /// An output of an earlier sub-model.
    Sub { sub: usize, port: usize },
    /// Known before anything runs; only for outputs of the whole model.
    Constant(usize),
}

/// A piece of the model.
#[derive(Debug)]
pub(crate) struct SubModel {
    pub(crate) model: Model,
    pub(crate) device: usize,
    /// Of its inputs, in order.
    pub(crate) sources: Vec<Source>,
    /// Nodes of the whole model that run here.
    pub(crate) nodes: Vec<NodeId>,
}

/// The whole model in pieces.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) subs: Vec<SubModel>,
    /// Of the outputs of the whole model, in order.
    pub(crate) outputs: Vec<Source>,
    pub(crate) constants: Vec<Tensor>,
    /// Nodes whose values were put into the sub-models as constants.
    pub(crate) folded: BTreeSet<NodeId>,
}

pub(crate) fn split(model: &Model, placed: &Placement, n_devices: usize) -> Result<Split> {
    let order = model.topological_order()?;
    let pieces = pieces(model, &order, placed, n_devices);
    let mut place = vec![0; model.slots()];
    order.iter().enumerate().for_each(|(i, id)| place[id.0 as usize] = i);
    let mut splitter =
        Splitter { model, placed, place, building: vec![], folded: BTreeSet::new(), values: HashMap::new() };
    for (i, &device) in pieces.devices.iter().enumerate() {
        let mut sub = Model::new(format!("{}_{i}", model.name));
        sub.rt_info = model.rt_info.clone();
        splitter.building.push(Building { model: sub, device, ..Building::default() });
    }
    for &id in &order {
        if let Some(piece) = pieces.of[id.0 as usize] {
            splitter.add_node(piece, id, &pieces)?;
        }
    }
    let (mut outputs, mut constants) = (vec![], vec![]);
    for &result in model.results() {
        let v = model.result_value(result);
        outputs.push(if let Some(i) = model.parameters().iter().position(|p| *p == v.node) {
            Source::Input(i)
        } else if placed.constant[v.node.0 as usize] {
            constants.push(splitter.fold(v)?);
            Source::Constant(constants.len() - 1)
        } else {
            splitter.export(v, Some(result), &pieces)?
        });
    }
    Ok(splitter.finish(outputs, constants))
}

#[derive(Default)]
struct Building {
    model: Model,
    device: usize,
    sources: Vec<Source>,
    nodes: Vec<NodeId>,
    /// Values of the whole model by what they are here.
    here: HashMap<Value, Value>,
    exported: HashMap<Value, usize>,
    names: HashSet<String>,
}

impl Building {
    fn unique(&mut self, name: &str) -> String {
        let mut unique = name.to_string();
        let mut n = 1;
        while !self.names.insert(unique.clone()) {
            unique = format!("{name}_{n}");
            n += 1;
        }
        unique
    }
}

struct Splitter<'a> {
    model: &'a Model,
    placed: &'a Placement,
    /// Position in topological order, by id.
    place: Vec<usize>,
    building: Vec<Building>,
    folded: BTreeSet<NodeId>,
    values: HashMap<NodeId, Vec<Tensor>>,
}

impl Splitter<'_> {
    fn add_node(&mut self, piece: usize, id: NodeId, pieces: &Pieces) -> Result<()> {
        let values: Vec<Value> = self.model.node(id).inputs().to_vec();
        let inputs = values.into_iter().map(|v| self.input(piece, v, pieces)).collect::<Result<Vec<_>>>()?;
        self.copy(piece, id, &inputs)?;
        self.building[piece].nodes.push(id);
        Ok(())
    }

    // The node itself with all that hangs on it.
    fn copy(&mut self, piece: usize, id: NodeId, inputs: &[Value]) -> Result<()> {
        let (node, to) = (self.model.node(id), &mut self.building[piece]);
        let name = to.unique(node.name());
        let new = to.model.add_ref(name, node.op_ref().clone(), inputs)?;
        *to.model.rt_info_mut(new) = node.rt_info.clone();
        for (i, info) in node.input_rt_info.iter().enumerate() {
            to.model.set_input_rt_info(new, i, info.clone());
        }
        for (port, output) in node.outputs().iter().enumerate() {
            let (old, v) = (Value { node: id, port }, Value { node: new, port });
            if port < to.model.node(new).outputs().len() {
                to.model.set_tensor_names(v, output.names.clone());
                *to.model.output_rt_info_mut(v) = output.rt_info.clone();
                to.here.insert(old, v);
            }
        }
        Ok(())
    }

    fn input(&mut self, piece: usize, v: Value, pieces: &Pieces) -> Result<Value> {
        if let Some(&here) = self.building[piece].here.get(&v) {
            return Ok(here);
        }
        let i = v.node.0 as usize;
        if self.placed.constant[i] {
            return self.constant(piece, v);
        }
        if let Some(input) = self.model.parameters().iter().position(|p| *p == v.node) {
            self.copy(piece, v.node, &[])?;
            self.building[piece].sources.push(Source::Input(input));
            return Ok(self.building[piece].here[&v]);
        }
        // What inference knows stays known on the other side of the border, and with it the shapes there.
        if let Some(tensor) = self.model.fact(v).tensor().cloned() {
            return self.add_constant(piece, v, tensor);
        }
        let source = self.export(v, None, pieces)?;
        let (fact, names) = (self.model.fact(v), self.model.output(v).names.clone());
        let op = Parameter { shape: fact.shape.clone(), element_type: fact.ty };
        let to = &mut self.building[piece];
        let name = to.unique(&value_name(self.model, v));
        let new = Value::from(to.model.add(name, op, &[])?);
        to.model.set_tensor_names(new, names);
        to.sources.push(source);
        to.here.insert(v, new);
        Ok(new)
    }

    // Makes a value an output of the piece that computes it.
    fn export(&mut self, v: Value, result: Option<NodeId>, pieces: &Pieces) -> Result<Source> {
        let node = self.model.node(v.node);
        let sub =
            pieces.of[v.node.0 as usize].ok_or_else(|| Error::invalid("no device runs it").at(node.location()))?;
        let from = &mut self.building[sub];
        if let Some(&port) = from.exported.get(&v) {
            return Ok(Source::Sub { sub, port });
        }
        let name = match result {
            Some(r) => from.unique(self.model.node(r).name()),
            None => from.unique(&format!("{}/result", value_name(self.model, v))),
        };
        let here = from.here.get(&v).copied();
        let here = here.ok_or_else(|| Error::invalid("its value is not in its sub-model").at(node.location()))?;
        let new = from.model.result(&name, here)?;
        if let Some(r) = result {
            from.model.set_tensor_names(new.into(), self.model.node(r).outputs()[0].names.clone());
            *from.model.rt_info_mut(new) = self.model.node(r).rt_info.clone();
        }
        let port = from.model.results().len() - 1;
        from.exported.insert(v, port);
        Ok(Source::Sub { sub, port })
    }

    fn constant(&mut self, piece: usize, v: Value) -> Result<Value> {
        if self.model.node(v.node).op().is::<Constant>() {
            self.copy(piece, v.node, &[])?;
            return Ok(self.building[piece].here[&v]);
        }
        let takes = self.placed.takes[self.building[piece].device].as_ref();
        let cone = self.cone(v.node);
        let goes_along = self.model.fact(v).tensor().is_none()
            && cone.iter().all(|n| self.is_known(*n) || takes.is_some_and(|t| t.contains(n)));
        if !goes_along {
            let tensor = self.fold(v)?;
            return self.add_constant(piece, v, tensor);
        }
        for id in cone {
            if self.building[piece].here.contains_key(&id.into()) {
                continue;
            }
            let node = self.model.node(id);
            if node.op().is::<Constant>() {
                self.copy(piece, id, &[])?;
            } else if self.is_known(id) {
                for port in 0..node.outputs().len() {
                    let tensor = self.fold(Value { node: id, port })?;
                    self.add_constant(piece, Value { node: id, port }, tensor)?;
                }
            } else {
                let here = &self.building[piece].here;
                let inputs: Vec<Value> = node.inputs().iter().map(|v| here[v]).collect();
                self.copy(piece, id, &inputs)?;
                self.building[piece].nodes.push(id);
            }
        }
        Ok(self.building[piece].here[&v])
    }

    fn is_known(&self, id: NodeId) -> bool {
        let outputs = self.model.node(id).outputs();
        !outputs.is_empty() && outputs.iter().all(|o| o.fact.tensor().is_some())
    }

    fn add_constant(&mut self, piece: usize, v: Value, tensor: Tensor) -> Result<Value> {
        self.folded.insert(v.node);
        let names = self.model.output(v).names.clone();
        let to = &mut self.building[piece];
        let name = to.unique(&value_name(self.model, v));
        let new = to.model.constant(&name, tensor)?;
        to.model.set_tensor_names(new, names);
        to.here.insert(v, new);
        Ok(new)
    }

    // The node and everything it is computed of, back to known values; producers first.
    fn cone(&self, id: NodeId) -> Vec<NodeId> {
        let (mut seen, mut stack) = (HashSet::from([id]), vec![id]);
        while let Some(id) = stack.pop() {
            if self.is_known(id) {
                continue;
            }
            stack.extend(self.model.node(id).inputs().iter().map(|v| v.node).filter(|n| seen.insert(*n)));
        }
        let mut cone: Vec<NodeId> = seen.into_iter().collect();
        carafe_graph::sort_by_key(&mut cone, |n| self.place[n.0 as usize]);
        cone
    }

    fn fold(&mut self, v: Value) -> Result<Tensor> {
        if let Some(tensor) = self.model.fact(v).tensor() {
            self.folded.insert(v.node);
            return Ok(tensor.clone());
        }
        for id in self.cone(v.node) {
            if self.values.contains_key(&id) {
                continue;
            }
            let node = self.model.node(id);
            let known: Option<Vec<Tensor>> = node.outputs().iter().map(|o| o.fact.tensor().cloned()).collect();
            let outputs = match known {
                Some(tensors) if !tensors.is_empty() => tensors,
                _ => {
                    let input = |v: &Value| self.values.get(&v.node)?.get(v.port).cloned();
                    let Some(inputs) = node.inputs().iter().map(input).collect::<Option<Vec<_>>>() else { continue };
                    eval_node(self.model, id, inputs, &mut EvalEnv::default())?
                }
            };
            self.values.insert(id, outputs);
        }
        self.folded.insert(v.node);
        let value = self.values.get(&v.node).and_then(|o| o.get(v.port)).cloned();
        value.ok_or_else(|| {
            Error::invalid("its value is not known before running").at(self.model.node(v.node).location())
        })
    }

    // Pieces of which nothing is needed are left out, and the others move up.
    fn finish(self, outputs: Vec<Source>, constants: Vec<Tensor>) -> Split {
        let mut number = vec![None; self.building.len()];
        let (mut subs, mut folded) = (Vec::new(), self.folded);
        for (i, b) in self.building.into_iter().enumerate() {
            if b.model.results().is_empty() && b.model.sinks().is_empty() {
                folded.extend(b.nodes);
                continue;
            }
            number[i] = Some(subs.len());
            let mut model = b.model;
            model.prune();
            model.name = format!("{}_{}", self.model.name, subs.len());
            let live: HashSet<NodeId> =
                b.here.iter().filter(|(_, new)| model.get(new.node).is_some()).map(|(old, _)| old.node).collect();
            let (nodes, gone) = b
                .nodes
                .into_iter()
                .partition::<Vec<_>, _>(|n| live.contains(n) || self.model.node(*n).outputs().is_empty());
            folded.extend(gone);
            subs.push(SubModel { model, device: b.device, sources: b.sources, nodes });
        }
        let moved = |s: Source| match s {
            Source::Sub { sub, port } => Source::Sub { sub: number[sub].unwrap_or(sub), port },
            other => other,
        };
        for sub in &mut subs {
            sub.sources.iter_mut().for_each(|s| *s = moved(*s));
        }
        let run: HashSet<NodeId> = subs.iter().flat_map(|s| &s.nodes).copied().collect();
        folded.retain(|n| !run.contains(n));
        Split { subs, outputs: outputs.into_iter().map(moved).collect(), constants, folded }
    }
}

fn value_name(model: &Model, v: Value) -> String {
    let node = model.node(v.node);
    if node.outputs().len() > 1 { format!("{}.{}", node.name(), v.port) } else { node.name().to_string() }
}

/// Whether a node is one that a report counts: neither structural nor a plain constant.
pub(crate) fn counts(model: &Model, id: NodeId) -> bool {
    let op = model.node(id).op();
    !(op.is::<Parameter>() || op.is::<ResultOp>() || op.is::<Constant>())
}
