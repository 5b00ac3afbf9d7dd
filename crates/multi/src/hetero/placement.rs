//! Decides which device runs each node: the user's word first, then the first device of the list that takes it. Only
//! nodes that compute are placed. Constants, and whatever is known before anything runs, follow their consumers; inputs
//! and outputs of the model belong to no device. Nodes that share a variable, and all that lies between them, are one
//! unit and go to one device.

use super::report::Refused;
use super::units::units;
use carafe_device::{Device, Properties, Query};
use carafe_graph::{Constant, Error, FrameworkNode, Model, Node, NodeId, Parameter, Result, ResultOp, RtTree};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// A device of the list, with what it is compiled with.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) properties: Properties,
}

/// Where every node goes; tables are indexed by node id.
pub(crate) struct Placement {
    /// Device of a node that computes; `None` for the others and for those nobody takes.
    pub(crate) device: Vec<Option<usize>>,
    /// Known before anything runs.
    pub(crate) constant: Vec<bool>,
    /// A representative of the node's unit.
    pub(crate) unit: Vec<u32>,
    /// Nodes each device takes; asked only of devices that matter.
    pub(crate) takes: Vec<Option<HashSet<NodeId>>>,
    pub(crate) refused: Vec<Refused>,
}

/// The user's wish for a node: runtime information `affinity`.
pub fn affinity(node: &Node) -> Option<&str> {
    let attribute = node.rt_info.get("affinity").and_then(|a| {
        let value = a.fields.iter().find(|(k, _)| k == "value").or(a.fields.first());
        value.map(|(_, v)| v.as_str())
    });
    attribute.or_else(|| node.rt_info.user.iter().find(|t| t.key == "affinity")?.value.as_deref())
}

/// Asks HETERO to run a node on this device.
pub fn set_affinity(model: &mut Model, node: NodeId, device: &str) {
    let info = model.rt_info_mut(node);
    info.remove("affinity");
    info.user.retain(|t| t.key != "affinity");
    info.user.push(RtTree::leaf("affinity", device));
}

/// Devices that the user names on nodes, each once, in order.
pub(crate) fn wished(model: &Model) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, node) in model.nodes().filter(|(_, n)| computes(n)) {
        if let Some(name) = affinity(node).filter(|name| !names.iter().any(|n| n == name)) {
            names.push(name.to_string());
        }
    }
    names
}

fn computes(node: &Node) -> bool {
    let op = node.op();
    !(op.is::<Parameter>() || op.is::<Constant>() || op.is::<ResultOp>())
}

pub(crate) fn place(model: &Model, parts: &[Part], listed: usize) -> Result<Placement> {
    let order = model.topological_order()?;
    let constant = constants(model, &order);
    let free = |id: NodeId| computes(model.node(id)) && !constant[id.0 as usize];
    let unit = units(model, &order, &free);
    let mut members: BTreeMap<u32, Vec<NodeId>> = BTreeMap::new();
    for &id in order.iter().filter(|id| free(**id)) {
        members.entry(unit[id.0 as usize]).or_default().push(id);
    }
    let mut device = vec![None; model.slots()];
    let mut takes: Vec<Option<HashSet<NodeId>>> = vec![None; parts.len()];
    let mut reasons: Vec<HashMap<NodeId, String>> = vec![HashMap::new(); parts.len()];
    let mut left = Vec::new();
    for (unit, nodes) in &members {
        match wish(model, nodes, parts)? {
            Some(d) => nodes.iter().for_each(|n| device[n.0 as usize] = Some(d)),
            None => left.push(*unit),
        }
    }
    let asked = with_unique_names(model);
    for (d, part) in parts.iter().enumerate() {
        // A device the user named on nodes alone takes no others.
        let needed = (d < listed && !left.is_empty()) || device.contains(&Some(d));
        if !needed {
            continue;
        }
        let query = part.device.query(&asked, &part.properties).map_err(|e| e.at(format!("device `{}`", part.name)))?;
        let (taken, why) = by_id(&asked, query);
        if d < listed {
            left.retain(|unit| {
                let nodes = &members[unit];
                let all = nodes.iter().all(|n| taken.contains(n));
                if all {
                    nodes.iter().for_each(|n| device[n.0 as usize] = Some(d));
                }
                !all
            });
        }
        (takes[d], reasons[d]) = (Some(taken), why);
    }
    let mut refused = Vec::new();
    for &id in left.iter().flat_map(|unit| &members[unit]) {
        let row = |d: usize| {
            let taken = takes[d].as_ref().is_some_and(|t| t.contains(&id));
            let others =
                || members[&unit[id.0 as usize]].iter().find(|n| takes[d].as_ref().is_some_and(|t| !t.contains(n)));
            let reason = match (reasons[d].get(&id), taken) {
                (Some(reason), _) => reason.clone(),
                (None, true) => match others() {
                    Some(o) => {
                        format!("must run together with `{}`, which the device does not take", model.node(*o).name())
                    }
                    None => "not chosen".into(),
                },
                (None, false) => "the device does not list it".into(),
            };
            (parts[d].name.clone(), reason)
        };
        let node = model.node(id);
        refused.push(Refused {
            name: node.name().to_string(),
            type_name: node.op().type_name().to_string(),
            reasons: (0..listed).map(row).collect(),
        });
    }
    Ok(Placement { device, constant, unit, takes, refused })
}

// One device for the whole unit, or none.
fn wish(model: &Model, nodes: &[NodeId], parts: &[Part]) -> Result<Option<usize>> {
    let mut found: Option<(NodeId, usize)> = None;
    for &id in nodes {
        let Some(name) = affinity(model.node(id)) else { continue };
        let d = parts.iter().position(|p| p.name == name);
        let d = d.ok_or_else(|| {
            Error::not_found(format!("affinity `{name}` is no device of the list")).at(model.node(id).location())
        })?;
        match found {
            Some((first, other)) if other != d => {
                return Err(Error::usage(format!(
                    "`{}` and `{}` work with one variable and must be on one device, found affinities `{}` and `{}`",
                    model.node(first).name(),
                    model.node(id).name(),
                    parts[other].name,
                    parts[d].name
                )));
            }
            _ => found = Some((id, d)),
        }
    }
    Ok(found.map(|(_, d)| d))
}

// What needs no input of the model: constants, what is computed of them alone, and values that inference knows. A node
// with a wish of the user stays where it was put.
fn constants(model: &Model, order: &[NodeId]) -> Vec<bool> {
    let mut constant = vec![false; model.slots()];
    for &id in order {
        let node = model.node(id);
        let (op, info) = (node.op(), node.op().info());
        constant[id.0 as usize] = if op.is::<Constant>() {
            true
        } else if !computes(node) || info.random || info.stateful || info.sink || affinity(node).is_some() {
            false
        } else {
            let known = !node.outputs().is_empty() && node.outputs().iter().all(|o| o.fact.tensor().is_some());
            let of_constants = !node.inputs().is_empty()
                && !op.is::<FrameworkNode>()
                && !op.has_body()
                && node.inputs().iter().all(|v| constant[v.node.0 as usize]);
            known || of_constants
        };
    }
    constant
}

// Devices answer by name, so two nodes of one name must not be taken for each other.
fn with_unique_names(model: &Model) -> Model {
    let mut asked = model.clone();
    let mut seen = HashSet::new();
    let ids: Vec<NodeId> = model.nodes().map(|(id, _)| id).collect();
    for id in ids {
        let mut name = asked.node(id).name().to_string();
        if !seen.insert(name.clone()) {
            name = format!("{name}#{}", id.0);
            while !seen.insert(name.clone()) {
                name.push('#');
            }
            asked.set_name(id, name);
        }
    }
    asked
}

fn by_id(asked: &Model, query: Query) -> (HashSet<NodeId>, HashMap<NodeId, String>) {
    let ids: HashMap<&str, NodeId> = asked.nodes().map(|(id, n)| (n.name(), id)).collect();
    let why: HashMap<NodeId, String> =
        query.unsupported.iter().filter_map(|u| Some((*ids.get(u.name.as_str())?, u.reason.clone()))).collect();
    let taken = query.supported.iter().filter_map(|n| ids.get(n.as_str()).copied()).filter(|n| !why.contains_key(n));
    (taken.collect(), why)
}
