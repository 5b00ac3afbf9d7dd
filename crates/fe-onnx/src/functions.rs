//! Model-local functions: found by domain, name and overload, and expanded at the call with the caller's attributes.

use crate::scope::is_reference;
use crate::types;
use crate::wire::{AttributeProto, FunctionProto, NodeProto};
use std::collections::HashMap;

pub(crate) struct Functions<'f>(HashMap<(String, String, String), &'f FunctionProto>);

impl<'f> Functions<'f> {
    pub(crate) fn of(list: &'f [FunctionProto]) -> Functions<'f> {
        let key = |f: &FunctionProto| {
            let text = |s: &Option<String>| s.clone().unwrap_or_default();
            (types::domain(f.domain.as_deref()), text(&f.name), text(&f.overload))
        };
        Functions(list.iter().map(|f| (key(f), f)).collect())
    }
    pub(crate) fn get(&self, node: &NodeProto) -> Option<&'f FunctionProto> {
        let text = |s: &Option<String>| s.clone().unwrap_or_default();
        self.0.get(&(types::domain(node.domain.as_deref()), text(&node.op_type), text(&node.overload))).copied()
    }
    pub(crate) fn all(&self) -> impl Iterator<Item = &'f FunctionProto> + '_ {
        self.0.values().copied()
    }
}

/// The nodes of a function with references to attributes replaced by the caller's values, or the declared defaults.
pub(crate) fn bound(function: &FunctionProto, given: &[AttributeProto], prefix: &str) -> Vec<NodeProto> {
    let value = |name: &str| {
        let same = |a: &&AttributeProto| a.name.as_deref() == Some(name);
        given.iter().find(same).or_else(|| function.attribute_proto.iter().find(same)).cloned()
    };
    let mut nodes = function.node.clone();
    for node in &mut nodes {
        bind(node, &value, 0);
        let name = node.name.as_deref().filter(|n| !n.is_empty()).or(node.output.first().map(String::as_str));
        node.name = Some(format!("{prefix}/{}", name.unwrap_or("")));
    }
    nodes
}

fn bind(node: &mut NodeProto, value: &dyn Fn(&str) -> Option<AttributeProto>, depth: usize) {
    if depth > 64 {
        return;
    }
    node.attribute = std::mem::take(&mut node.attribute)
        .into_iter()
        .filter_map(|a| {
            if !is_reference(&a) {
                return Some(a);
            }
            // An attribute that the caller leaves out is left out here too.
            let mut found = value(a.ref_attr_name.as_deref().unwrap_or(""))?;
            found.name = a.name;
            Some(found)
        })
        .collect();
    for graph in node.attribute.iter_mut().filter_map(|a| a.g.as_deref_mut()) {
        graph.node.iter_mut().for_each(|n| bind(n, value, depth + 1));
    }
}
