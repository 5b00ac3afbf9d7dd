//! Functions of a model: found by domain, name and overload, and expanded at the call with the caller's attributes.

use crate::source::{Held, SourceFunction, SourceGraph, SourceNode};
use carafe_graph::AttrValue;
use std::collections::HashMap;
use std::rc::Rc;

/// Sub-graphs are looked into as deep as they are translated.
const MAX_DEPTH: usize = 64;

pub(crate) struct Functions<'f>(HashMap<(&'f str, &'f str, &'f str), &'f SourceFunction>);

impl<'f> Functions<'f> {
    pub(crate) fn of(list: &'f [SourceFunction]) -> Functions<'f> {
        let key = |f: &'f SourceFunction| (f.domain.as_str(), f.name.as_str(), f.overload.as_str());
        Functions(list.iter().map(|f| (key(f), f)).collect())
    }
    /// The function that a node calls.
    pub(crate) fn get(&self, node: &SourceNode) -> Option<&'f SourceFunction> {
        match self.0.is_empty() {
            true => None,
            false => self.0.get(&(node.domain.as_str(), node.op_type.as_str(), node.overload.as_str())).copied(),
        }
    }
}

/// What a caller gives for an attribute, or what is declared for it.
enum Given<'n> {
    Value(&'n AttrValue),
    Held(&'n Held),
}

/// The nodes of a function with references to attributes replaced by the caller's values, or the declared defaults.
pub(crate) fn bound(function: &SourceFunction, caller: &SourceNode, prefix: &str) -> Vec<SourceNode> {
    let given = |name: &str| {
        let held = |list: &'_ [(String, Held)]| list.iter().position(|(n, _)| n == name);
        let value = caller.attrs.get(name).map(Given::Value);
        let value = value.or_else(|| held(&caller.held).map(|i| Given::Held(&caller.held[i].1)));
        let value = value.or_else(|| function.attrs.get(name).map(Given::Value));
        value.or_else(|| held(&function.held).map(|i| Given::Held(&function.held[i].1)))
    };
    let mut nodes = function.graph.nodes.clone();
    for node in &mut nodes {
        bind(node, &given, 0);
        node.name = format!("{prefix}/{}", node.label());
    }
    nodes
}

fn bind<'n>(node: &mut SourceNode, given: &dyn Fn(&str) -> Option<Given<'n>>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    for (name, held) in std::mem::take(&mut node.held) {
        match held {
            Held::Reference(of) => match given(&of) {
                Some(Given::Value(value)) => node.attrs.set(name, value.clone()),
                Some(Given::Held(held)) => node.held.push((name, held.clone())),
                // An attribute that the caller leaves out is left out here too.
                None => {}
            },
            Held::Graph(mut graph) => {
                if refers(&graph, 0) {
                    Rc::make_mut(&mut graph).nodes.iter_mut().for_each(|n| bind(n, given, depth + 1));
                }
                node.held.push((name, Held::Graph(graph)));
            }
            held => node.held.push((name, held)),
        }
    }
}

// Whether any node refers to an attribute of the caller.
fn refers(graph: &SourceGraph, depth: usize) -> bool {
    let refers_in = |held: &Held| match held {
        Held::Reference(_) => true,
        Held::Graph(graph) => depth < MAX_DEPTH && refers(graph, depth + 1),
        Held::Broken(_) => false,
    };
    graph.nodes.iter().flat_map(|n| &n.held).any(|(_, held)| refers_in(held))
}
