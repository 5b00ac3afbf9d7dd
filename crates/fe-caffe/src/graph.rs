//! The net as a `SourceGraph`. In a net a name means the latest blob of that name: a layer whose top is one of its bottoms works
//! in place, and what follows reads its result. Here every blob has a name of its own.

use crate::attributes;
use crate::input;
use crate::net::{Layer, Net};
use crate::schema::Schema;
use carafe_frontend::{Log, MARK, SourceGraph, SourceNode, SourceTensor, SourceValue};
use carafe_graph::{Error, ItemType, Result};
use carafe_tensor::ElementType;
use std::collections::{HashMap, HashSet};

/// The graph of a net, and the net's layers, whose numbers nodes have. `is_input` says which layers are inputs.
pub(crate) fn of_net(
    net: Net,
    schema: &Schema,
    log: &Log<'_>,
    is_input: impl Fn(&Layer) -> bool,
    type_of: impl Fn(&Layer) -> String,
) -> (SourceGraph, Vec<Layer>) {
    let mut graph = SourceGraph { name: net.name, left_out: net.left_out, ..SourceGraph::default() };
    graph.versions.otherwise = 1;
    let later: HashSet<String> = net.layers.iter().flat_map(|l| &l.tops).cloned().collect();
    let mut blobs = Blobs { later, ..Blobs::default() };
    let (mut input_names, mut layer_names) = (HashMap::new(), HashMap::new());
    let mut layers = net.layers;
    for (i, layer) in layers.iter_mut().enumerate() {
        let name = unique(&layer.name, &mut layer_names);
        if is_input(layer) {
            let shapes = input::shapes(layer);
            for (t, top) in layer.tops.iter().enumerate() {
                let shape = shapes.as_ref().map(|s| s[t].clone()).map_err(Error::clone);
                let (key, named) = match blobs.make(layer, top) {
                    Ok(key) => (key, Ok(())),
                    Err(e) => (format!("{MARK}input {i}:{t}"), Err(e)),
                };
                let ty = named.and(shape).map(|shape| ItemType::Tensor(ElementType::F32, shape));
                let own = if layer.tops.len() == 1 { &name } else { top };
                let label = Some(unique(own, &mut input_names));
                let ty = ty.map_err(|e| e.at(layer.location()));
                graph.inputs.push(SourceValue { label, ..SourceValue::new(key, ty) });
            }
            continue;
        }
        graph.nodes.push(node(layer, i, name, type_of(layer), schema, log, &mut blobs));
    }
    (graph, layers)
}

fn node(
    layer: &mut Layer,
    index: usize,
    name: String,
    op_type: String,
    schema: &Schema,
    log: &Log<'_>,
    blobs: &mut Blobs,
) -> SourceNode {
    let ports = |word: &str, n: usize| vec![word.to_string(); n];
    let inputs: Result<Vec<String>> = layer.bottoms.iter().map(|b| blobs.read(layer, b)).collect();
    let outputs: Result<Vec<String>> = layer.tops.iter().map(|t| blobs.make(layer, t)).collect();
    let attrs = attributes::of(layer, schema, log);
    let fault = [inputs.as_ref().err(), outputs.as_ref().err(), attrs.as_ref().err()].into_iter().flatten().next();
    let mut node = SourceNode {
        op_type,
        version: 1,
        fault: fault.cloned(),
        input_ports: ports("bottom", layer.bottoms.len()),
        output_ports: ports("top", layer.tops.len()),
        inputs: inputs.unwrap_or_default(),
        outputs: outputs.unwrap_or_default(),
        attrs: attrs.unwrap_or_default(),
        index: Some(index),
        ..SourceNode::default()
    };
    for (i, blob) in std::mem::take(&mut layer.blobs).into_iter().enumerate() {
        let what = match i {
            0 => "weights".to_string(),
            1 => "biases".to_string(),
            i => format!("custom_{i}"),
        };
        // No blob of the net has such a name.
        let key = format!("{name}/{what}{MARK}");
        node.inputs.push(key.clone());
        node.input_ports.push("blob".into());
        node.stored.push(SourceTensor::lazy(key, move || blob.tensor()));
    }
    SourceNode { name, ..node }
}

/// Blobs by the name that the net has for them.
#[derive(Default)]
struct Blobs {
    /// The latest of each name, its layer, and how many there were.
    latest: HashMap<String, (String, String, usize)>,
    /// All names of the net.
    later: HashSet<String>,
}

impl Blobs {
    // Every bottom must have been produced before.
    fn read(&self, layer: &Layer, bottom: &str) -> Result<String> {
        if let Some((key, ..)) = self.latest.get(bottom) {
            return Ok(key.clone());
        }
        Err(Error::invalid(if layer.tops.iter().any(|t| t == bottom) {
            format!("bottom `{bottom}` is its own top, and no layer before it produces `{bottom}`")
        } else if self.later.contains(bottom) {
            format!("bottom `{bottom}` is produced by a later layer; layers stand behind those they read")
        } else {
            format!("bottom `{bottom}` is produced by no layer")
        }))
    }

    fn make(&mut self, layer: &Layer, top: &str) -> Result<String> {
        let n = match self.latest.get(top) {
            None => 0,
            Some((_, _, n)) if layer.bottoms.iter().any(|b| b == top) => n + 1,
            Some((_, producer, _)) => {
                return Err(Error::invalid(format!(
                    "top `{top}` was already produced by layer `{producer}`; only a layer that reads it may produce it again"
                )));
            }
        };
        let key = if n == 0 { top.to_string() } else { format!("{top}{MARK}{n}") };
        self.latest.insert(top.to_string(), (key.clone(), layer.name.clone(), n));
        Ok(key)
    }
}

// The name, or the name with a number behind it. The map has the number that each name came to.
fn unique(name: &str, taken: &mut HashMap<String, usize>) -> String {
    let Some(n) = taken.get(name).copied() else {
        taken.insert(name.to_string(), 0);
        return name.to_string();
    };
    let mut n = n + 1;
    while taken.contains_key(&format!("{name}_{n}")) {
        n += 1;
    }
    taken.insert(name.to_string(), n);
    let own = format!("{name}_{n}");
    taken.insert(own.clone(), 0);
    own
}
