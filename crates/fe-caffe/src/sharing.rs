//! Weights shared by name: all layers that give one name to a parameter (`param { name: "w" }`) have one blob between them. A
//! file may hold it with one of them or with all; Caffe reads them one over the other, so the last one counts.

use crate::blob::Blob;
use crate::net::{Layer, Net};
use carafe_frontend::Log;
use carafe_textproto::Value;
use std::collections::{BTreeMap, HashMap};

/// A blob of a layer that has a name.
struct Named {
    layer: usize,
    index: usize,
    /// Whether the layer takes a blob of another shape.
    any_shape: bool,
}

/// Gives every layer the blobs that it shares. `order` says where in the file of the weights a layer stands.
pub(crate) fn share(net: &mut Net, order: &HashMap<String, usize>, log: &Log<'_>) {
    let mut groups: BTreeMap<String, Vec<Named>> = BTreeMap::new();
    for (i, layer) in net.layers.iter().enumerate() {
        for (name, index, any_shape) in names(layer) {
            groups.entry(name).or_default().push(Named { layer: i, index, any_shape });
        }
    }
    let mut given: Vec<(usize, usize, Blob)> = vec![];
    for (name, group) in groups.into_iter().filter(|(_, group)| group.len() > 1) {
        let blob = |n: &Named| net.layers[n.layer].blobs.get(n.index);
        let position = |n: &Named| (order.get(&net.layers[n.layer].name).copied(), n.layer);
        let stored: Vec<&Named> = group.iter().filter(|n| blob(n).is_some()).collect();
        let Some((last, found)) = stored.iter().max_by_key(|n| position(n)).and_then(|n| Some((*n, blob(n)?))) else {
            continue;
        };
        if let Some(other) = stored.iter().find(|n| blob(n).is_some_and(|b| !b.same_values(found))) {
            let (other, last) = (&net.layers[other.layer].name, &net.layers[last.layer].name);
            log.warn(format!(
                "layers `{other}` and `{last}` share the parameter `{name}`, and the weights have other numbers for each: \
                 those of `{last}` are taken, the last ones stored"
            ));
        }
        for n in &group {
            let own = if n.any_shape && n.layer != last.layer { found.without_shape() } else { found.clone() };
            given.push((n.layer, n.index, own));
        }
    }
    carafe_graph::sort_by_key(&mut given, |(layer, index, _)| (*layer, *index));
    for (layer, index, blob) in given {
        let blobs = &mut net.layers[layer].blobs;
        if index < blobs.len() {
            blobs[index] = blob;
        } else if index == blobs.len() {
            blobs.push(blob);
        }
        // Where one before it is missing, whoever reads it tells.
    }
}

// Names of parameters with the numbers of their blobs, and whether another shape will do. The old form has plain names.
fn names(layer: &Layer) -> Vec<(String, usize, bool)> {
    let modes: Vec<bool> = layer.tree.all("blob_share_mode").map(|(_, v)| is_permissive(v)).collect();
    let all = layer.tree.all("param").enumerate().filter_map(|(i, (_, v))| match v {
        Value::Message(m) => {
            Some((m.get("name")?.as_str()?.to_string(), i, m.get("share_mode").is_some_and(is_permissive)))
        }
        v => Some((v.as_str()?.to_string(), i, modes.get(i).copied().unwrap_or(false))),
    });
    all.filter(|(name, ..)| !name.is_empty()).collect()
}

fn is_permissive(v: &Value) -> bool {
    matches!(v, Value::Word(word) if word == "PERMISSIVE") || v.as_i64() == Some(1)
}
