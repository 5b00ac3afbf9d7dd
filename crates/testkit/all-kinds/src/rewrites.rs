//! Rewrites of every phase. Each leaves a trace: a mark in the runtime information of a node, or a changed name.

use carafe_sdk::prelude::*;

/// Marks every Sigmoid it sees; fires once for each.
pub(crate) struct Mark {
    pub name: &'static str,
    pub key: &'static str,
}

impl Matcher for Mark {
    fn name(&self) -> &str {
        self.name
    }
    fn root(&self) -> Option<&str> {
        Some("Sigmoid")
    }
    fn at(&self, graph: &mut Graph<'_>, root: NodeId) -> Result<Outcome> {
        if graph.info(root, self.key)?.is_some() {
            return Ok(Outcome::Skip("marked already".into()));
        }
        graph.set_info(root, self.key, "seen")?;
        Ok(Outcome::Done)
    }
}

fn append(graph: &mut Graph<'_>, letter: &str) -> Result<usize> {
    let mut fired = 0;
    for id in graph.nodes()? {
        let node = graph.node(id)?;
        if node.op_type == "Tanh" {
            graph.set_name(id, &format!("{}{letter}", node.name))?;
            fired += 1;
        }
    }
    Ok(fired)
}

/// Runs before `late`, although it is added after it.
pub(crate) struct Early;

impl ModelPass for Early {
    fn name(&self) -> &str {
        "early"
    }
    fn before(&self) -> &[&str] {
        &["late"]
    }
    fn run(&self, graph: &mut Graph<'_>) -> Result<usize> {
        append(graph, "E")
    }
}

/// Runs after `kinds_middle` and `early`.
pub(crate) struct Late;

impl Matcher for Late {
    fn name(&self) -> &str {
        "late"
    }
    fn after(&self) -> &[&str] {
        &["kinds_middle"]
    }
    fn root(&self) -> Option<&str> {
        Some("Tanh")
    }
    fn at(&self, graph: &mut Graph<'_>, root: NodeId) -> Result<Outcome> {
        let node = graph.node(root)?;
        graph.set_name(root, &format!("{}L", node.name))?;
        Ok(Outcome::Done)
    }
}

/// On the graph as decoded: does nothing but look.
pub(crate) struct Decoded;

impl ModelPass for Decoded {
    fn name(&self) -> &str {
        "kinds_decoded"
    }
    fn run(&self, graph: &mut Graph<'_>) -> Result<usize> {
        for id in graph.nodes()? {
            graph.node(id)?;
        }
        Ok(0)
    }
}

/// Only runs when it is asked for.
pub(crate) struct Asked;

impl ModelPass for Asked {
    fn name(&self) -> &str {
        "asked"
    }
    fn enabled(&self) -> bool {
        false
    }
    fn run(&self, graph: &mut Graph<'_>) -> Result<usize> {
        append(graph, "A")
    }
}

/// An Elu with the `alpha` that the user wrote takes the place of a block.
pub(crate) struct EluBlock;

impl Replacer for EluBlock {
    fn id(&self) -> &str {
        "EluBlock"
    }
    fn replace(&self, graph: &mut Graph<'_>, found: &Match) -> Result<()> {
        if found.nodes.is_empty() {
            return Err(Error::invalid("EluBlock needs a match"));
        }
        let mut attrs = AttrMap::new();
        attrs.set("alpha", AttrValue::Float(found.attrs.read("alpha", None)?));
        let elu = graph.add(&found.name, "carafe.replacement::opset1::Elu", &attrs, &found.inputs)?;
        graph.replace(found.outputs[0], elu.into())
    }
}
