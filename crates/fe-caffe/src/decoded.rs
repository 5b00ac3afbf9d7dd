//! The net as decoded: a model whose nodes are its layers, for rewrites that run before translation. Stored blobs are
//! constants behind the bottoms. Going back, a layer that is still there keeps all it said; one that a rewrite made has the
//! attributes of its node.

use crate::attributes;
use crate::input;
use crate::net::{Layer, Net, NetConstant};
use crate::schema::Schema;
use carafe_frontend::{Log, ReadRequest};
use carafe_graph::{
    Constant, Error, FrameworkNode, Model, NodeId, Notes, Pass, Registry, Result, ResultOp, Value, run_passes,
};
use carafe_tensor::ElementType;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How names of blobs begin that the net did not have.
pub(crate) const NAMELESS: char = '\u{1}';

/// Whose type a layer has, as a node of the graph says it.
const DOMAIN: &str = "caffe";

struct Decoded {
    model: Model,
    layers: HashMap<NodeId, Layer>,
    /// Constants that are stored blobs of layers.
    stored: HashSet<NodeId>,
}

/// The net as a model, for looking at it.
pub(crate) fn model(net: &Net, schema: &Schema) -> Result<Model> {
    Ok(Decoded::of(net, schema)?.model)
}

/// The net after the rewrites of the options.
pub(crate) fn rewrite(net: Net, schema: &Schema, options: &ReadRequest<'_>) -> Result<Net> {
    let mut decoded = Decoded::of(&net, schema)?;
    let list: Vec<&dyn Pass> = options.decoded.iter().map(|p| &**p).collect();
    let mut notes = Notes::decoded().with_registry(Arc::new(Registry::new())).kept(options.log.is_debug());
    let done = run_passes(&mut decoded.model, &list, &mut notes);
    notes.lines.iter().for_each(|line| options.log.debug(|| line.clone()));
    done?;
    decoded.model.prune();
    decoded.net(net).map_err(|e| e.at("the net as rewritten before translation"))
}

impl Decoded {
    fn of(net: &Net, schema: &Schema) -> Result<Decoded> {
        let model = Model::new(net.name.clone());
        let mut this = Decoded { model, layers: HashMap::new(), stored: HashSet::new() };
        let mut names: HashMap<&str, (Value, bool)> = HashMap::new();
        for layer in &net.layers {
            this.layer(layer, schema, &mut names).map_err(|e| e.at(layer.place()))?;
        }
        for layer in &net.layers {
            for top in &layer.tops {
                if let Some((v, false)) = names.get(top.as_str()).filter(|_| !input::is_input(&layer.ty)).copied() {
                    this.model.result(top, v)?;
                    names.remove(top.as_str());
                }
            }
        }
        Ok(this)
    }

    fn layer<'n>(
        &mut self,
        layer: &'n Layer,
        schema: &Schema,
        names: &mut HashMap<&'n str, (Value, bool)>,
    ) -> Result<()> {
        if input::is_input(&layer.ty) {
            for (top, shape) in layer.tops.iter().zip(input::shapes(layer)?) {
                let v = self.model.parameter(top, ElementType::F32, shape)?;
                self.model.add_tensor_name(v, top);
                names.insert(top, (v, false));
            }
            return Ok(());
        }
        let mut inputs = vec![];
        for bottom in &layer.bottoms {
            let (v, read) = names
                .get_mut(bottom.as_str())
                .ok_or_else(|| Error::invalid(format!("bottom `{bottom}` is produced by no layer before it")))?;
            *read = true;
            inputs.push(*v);
        }
        for (i, blob) in layer.blobs.iter().enumerate() {
            let v = self.model.constant(&format!("{}/blob_{i}", layer.name), blob.tensor()?)?;
            self.stored.insert(v.node);
            inputs.push(v);
        }
        let mut node = FrameworkNode::new(DOMAIN, &layer.ty).with_outputs(layer.tops.len());
        node.attrs = attributes::of(layer, schema, &Log::default())?;
        let id = self.model.add(&layer.name, node, &inputs)?;
        self.layers.insert(id, layer.clone());
        for (port, top) in layer.tops.iter().enumerate() {
            let v = Value { node: id, port };
            // The name belongs to the latest.
            if let Some((old, _)) = names.insert(top, (v, false)) {
                let mut kept = self.model.output(old).names.clone();
                kept.remove(top);
                self.model.set_tensor_names(old, kept);
            }
            self.model.add_tensor_name(v, top);
        }
        Ok(())
    }

    fn net(mut self, old: Net) -> Result<Net> {
        let mut net = Net { name: old.name, constants: old.constants, left_out: old.left_out, ..Net::default() };
        net.layers.extend(old.layers.into_iter().filter(|l| input::is_input(&l.ty)));
        let mut names: HashMap<Value, String> = HashMap::new();
        let outputs = self.model.nodes().flat_map(|(_, n)| n.outputs());
        let taken: HashSet<String> = outputs.flat_map(|o| o.names.clone()).collect();
        let mut order = self.model.topological_order()?;
        // As the file has them; what is new comes as soon as it can.
        order.sort_unstable();
        let order = in_order(&self.model, &order);
        for id in order {
            let node = self.model.node(id);
            if node.op().is::<ResultOp>() {
                continue;
            }
            for port in 0..node.outputs().len() {
                let v = Value { node: id, port };
                let own = self.model.output(v).names.iter().next().cloned();
                let result = || self.result_of(v).filter(|name| !taken.contains(name));
                names.insert(v, own.or_else(result).unwrap_or_else(|| nameless(v)));
            }
            let inputs = node.inputs().to_vec();
            if let Some(c) = node.op().get::<Constant>() {
                if !self.stored.contains(&id) {
                    names.insert(id.into(), nameless(id.into()));
                    net.constants.push(self.constant(id, c));
                }
                continue;
            }
            let Some(op) = node.op().get::<FrameworkNode>() else { continue };
            let mut layer = match self.layers.remove(&id) {
                Some(layer) => layer,
                None => Layer {
                    name: node.name().to_string(),
                    ty: op.type_name.clone(),
                    made: Some((op.attrs.clone(), if op.opset == DOMAIN { String::new() } else { op.opset.clone() })),
                    ..Layer::default()
                },
            };
            let is_made = layer.made.is_some();
            let mut bottoms = vec![];
            for v in inputs {
                if self.stored.contains(&v.node) {
                    if !is_made {
                        continue;
                    }
                    // Another layer's weights, which the new one reads.
                    let blob = nameless(v);
                    if let (false, Some(c)) =
                        (net.constants.iter().any(|c| c.blob == blob), self.model.node(v.node).op().get::<Constant>())
                    {
                        net.constants.push(self.constant(v.node, c));
                    }
                    bottoms.push(blob);
                    continue;
                }
                bottoms.push(names.get(&v).cloned().ok_or_else(|| Error::invalid("the graph is not in order"))?);
            }
            layer.bottoms = bottoms;
            let n = self.model.node(id).outputs().len();
            layer.tops = (0..n).filter_map(|port| names.get(&Value { node: id, port }).cloned()).collect();
            net.layers.push(layer);
        }
        Ok(net)
    }

    fn constant(&self, id: NodeId, c: &Constant) -> NetConstant {
        let name = self.model.node(id).name().to_string();
        NetConstant { blob: nameless(id.into()), name, tensor: c.tensor().clone() }
    }

    // What an output of the net is called that reads this value.
    fn result_of(&self, v: Value) -> Option<String> {
        let mut readers = self.model.users(v).iter().map(|u| self.model.node(u.node));
        readers.find(|n| n.op().is::<ResultOp>()).map(|n| n.name().to_string())
    }
}

fn nameless(v: Value) -> String {
    format!("{NAMELESS}{}:{}", v.node.0, v.port)
}

// Every node behind those it reads, otherwise in the given order.
fn in_order(model: &Model, wanted: &[NodeId]) -> Vec<NodeId> {
    let mut done: HashSet<NodeId> = HashSet::new();
    let mut order = vec![];
    for &id in wanted {
        let mut stack = vec![(id, false)];
        while let Some((id, ready)) = stack.pop() {
            if done.contains(&id) {
                continue;
            }
            if ready {
                done.insert(id);
                order.push(id);
                continue;
            }
            stack.push((id, true));
            stack.extend(model.node(id).inputs().iter().rev().map(|v| (v.node, false)));
        }
    }
    order
}
