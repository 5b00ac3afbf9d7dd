//! A `GraphDef` as a `SourceGraph`: what its outputs need, or what a signature says.

use crate::control;
use crate::expand::{Expander, value_name};
use crate::functions::Functions;
use crate::needed::{needed, node_of, terminals};
use crate::resources::Resources;
use crate::store::Store;
use crate::unread::leave_unread;
use crate::wire::{GraphDef, NodeDef};
use carafe_frontend::{ReadRequest, SourceGraph, SourceValue};
use carafe_graph::{Error, Result};
use std::collections::HashSet;

/// What a graph is asked for.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Values that are given from outside, in order; the placeholders that are needed follow.
    pub(crate) inputs: Vec<SourceValue>,
    /// Values that the model gives; `None` for those of all nodes that nobody reads.
    pub(crate) outputs: Option<Vec<SourceValue>>,
}

/// What decoding a graph needs besides the graph.
pub(crate) struct Sources<'a> {
    pub(crate) store: &'a Store,
    pub(crate) resources: Resources<'a>,
    pub(crate) is_users: &'a dyn Fn(&str) -> bool,
}

/// The graph between these ends.
pub(crate) fn of_graph(
    def: &GraphDef,
    ends: Ends,
    sources: &Sources<'_>,
    request: &ReadRequest<'_>,
) -> Result<SourceGraph> {
    if def.node.is_empty() {
        return Err(Error::invalid("the graph has no nodes"));
    }
    check_names(&def.node)?;
    let functions = functions(def);
    let bytes = sources.store.bytes().len();
    let producer = def.versions.as_ref().map_or(0, |v| v.producer);
    let expander = Expander::new(functions, sources.store, &sources.resources, sources.is_users, bytes, producer);
    let outputs = ends.outputs.unwrap_or_else(|| outputs(&def.node, &expander.functions));
    let fed: HashSet<&str> = ends.inputs.iter().map(|v| v.name.as_str()).collect();
    let wanted = request.wanted.iter().flat_map(|name| wanted_nodes(name));
    let roots: Vec<&str> = outputs.iter().map(|o| node_of(&o.name).0).chain(wanted).collect();
    let is_fed = |reference: &str| fed.contains(reference.strip_suffix(":0").unwrap_or(reference));
    let marked = needed(&def.node, roots, is_fed);
    let mut graph = expander.graph(&def.node, &marked, &ends.inputs)?;
    let outputs: Vec<SourceValue> = outputs
        .into_iter()
        .map(|mut o| {
            if let Some(end) = graph.aliases.get(&o.name) {
                o.name.clone_from(end);
            }
            o
        })
        .collect();
    graph.outputs = Some(outputs);
    graph.bytes = bytes;
    control::prepare(&mut graph)?;
    graph.nodes.iter_mut().for_each(|n| n.controls.clear());
    leave_unread(&mut graph, request.wanted);
    Ok(graph)
}

/// The functions of a graph.
pub(crate) fn functions(def: &GraphDef) -> Functions<'_> {
    Functions::new(def.library.iter().flat_map(|l| &l.function))
}

// Values of the nodes that nobody reads.
fn outputs(nodes: &[NodeDef], functions: &Functions<'_>) -> Vec<SourceValue> {
    let ports = |n: &NodeDef| match n.op.starts_with("FusedBatchNorm") {
        // The others are for training.
        true => 1,
        false => functions.n_outputs(n),
    };
    let values = |n: &NodeDef| (0..ports(n)).map(|port| SourceValue::unknown(value_name(&n.name, port))).collect();
    terminals(nodes, |n| functions.n_outputs(n)).into_iter().flat_map(|n| -> Vec<_> { values(n) }).collect()
}

// `conv`, `conv:0` and `0:conv` may mean the node `conv`.
fn wanted_nodes(name: &str) -> impl Iterator<Item = &str> {
    let before = name.rsplit_once(':').map(|(node, _)| node);
    let behind = name.split_once(':').map(|(_, node)| node);
    [Some(name), before, behind].into_iter().flatten()
}

fn check_names(nodes: &[NodeDef]) -> Result<()> {
    let mut seen = HashSet::new();
    match nodes.iter().find(|n| !seen.insert(n.name.as_str())) {
        None => Ok(()),
        Some(n) => Err(Error::invalid(format!("two nodes are named `{}`", n.name))),
    }
}
