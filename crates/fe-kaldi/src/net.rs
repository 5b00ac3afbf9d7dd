//! A network as all three generations have it in common: nodes that read descriptors, each a component or a part of another.

use crate::component::Component;
use crate::descriptor::Descriptor;
use carafe_ark::Array;
use std::collections::{HashMap, HashSet};

/// A network.
#[derive(Clone, Debug, Default)]
pub(crate) struct Net {
    /// Name and number of columns.
    pub(crate) inputs: Vec<(String, usize)>,
    pub(crate) nodes: Vec<NetNode>,
    /// Name, and what it is.
    pub(crate) outputs: Vec<(String, Descriptor)>,
    pub(crate) components: Vec<Component>,
    /// State priors, which a decoder divides by.
    pub(crate) priors: Option<Array>,
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct NetNode {
    pub(crate) name: String,
    pub(crate) body: Body,
    pub(crate) input: Descriptor,
}

/// What a node does with what it reads.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// A component, by number.
    Component(usize),
    /// Some of the columns.
    Range { offset: i64, dim: i64 },
    /// Nothing.
    Same,
    /// Nothing, and it counts as the same at all times: what there is so far.
    Latest,
}

impl Net {
    /// Adds a node of a component.
    pub(crate) fn add(&mut self, name: &str, component: Component, input: Descriptor) -> Descriptor {
        self.components.push(component);
        self.add_node(name, Body::Component(self.components.len() - 1), input)
    }
    /// Adds a node and gives it as a descriptor.
    pub(crate) fn add_node(&mut self, name: &str, body: Body, input: Descriptor) -> Descriptor {
        self.nodes.push(NetNode { name: name.to_string(), body, input });
        Descriptor::node(name)
    }
    /// Leaves out the nodes that no output needs: models keep some from training.
    pub(crate) fn prune(&mut self) {
        let by_name: HashMap<&str, usize> = self.nodes.iter().enumerate().map(|(i, n)| (n.name.as_str(), i)).collect();
        let mut needed = vec![false; self.nodes.len()];
        let mut stack: Vec<&str> = self.outputs.iter().flat_map(|(_, d)| d.names()).collect();
        while let Some(name) = stack.pop() {
            let Some(i) = by_name.get(name).copied() else { continue };
            if let Some(is_needed) = needed.get_mut(i)
                && !std::mem::replace(is_needed, true)
            {
                stack.extend(self.nodes[i].input.names());
            }
        }
        let mut needed = needed.into_iter();
        self.nodes.retain(|_| needed.next().unwrap_or(true));
    }
    /// The component of a node.
    pub(crate) fn component(&self, node: &NetNode) -> Option<&Component> {
        match node.body {
            Body::Component(i) => self.components.get(i),
            _ => None,
        }
    }
}

/// Names of the nodes of a chain, as `mo` makes them: the type in small letters, and with a number from the second on.
#[derive(Debug, Default)]
pub(crate) struct ChainNames {
    used: HashSet<String>,
    count: usize,
}

impl ChainNames {
    pub(crate) fn of(&mut self, kind: &str) -> String {
        let kind = kind.to_ascii_lowercase();
        self.count += 1;
        let name = if self.used.contains(&kind) { format!("{kind}{}", self.count + 1) } else { kind };
        self.used.insert(name.clone());
        name
    }
}
