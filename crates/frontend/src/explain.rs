//! Which rule made a node, and out of what. Readers attach it to nodes only when asked, so that a plain conversion pays
//! nothing; whoever writes the model takes it off again.

use crate::rule::Origin;
use carafe_graph::{Model, Node, NodeId, Parameter, Result, RtTree, in_bodies};

/// Where it is attached.
const KEY: &str = "carafe_explain";

/// What a reader tells about a node it made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// Name and type of the node in the file.
    pub source: String,
    pub source_type: String,
    /// Whose rule translated it.
    pub rule: String,
    /// Why that one.
    pub why: String,
}

impl Explained {
    pub fn new(source: &str, source_type: &str, origin: &Origin<'_>) -> Explained {
        let (rule, why) = origin.words();
        Explained { source: source.into(), source_type: source_type.into(), rule, why }
    }
    /// Attaches it to every node from a slot on that says nothing yet.
    pub fn attach(&self, model: &mut Model, first_slot: usize) {
        for slot in first_slot..model.slots() {
            let id = NodeId(slot as u32);
            // What a body takes from outside belongs to no rule.
            let is_made = model.get(id).is_some_and(|n| !n.op().is::<Parameter>() && Explained::of(n).is_none());
            if is_made {
                let fields =
                    [("source", &self.source), ("type", &self.source_type), ("rule", &self.rule), ("why", &self.why)];
                let leaves =
                    fields.into_iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| RtTree::leaf(k, v.as_str()));
                model.rt_info_mut(id).user.push(RtTree::branch(KEY, leaves.collect()));
            }
        }
    }
    /// What is attached to a node.
    pub fn of(node: &Node) -> Option<Explained> {
        let tree = node.rt_info.user.iter().find(|t| t.key == KEY)?;
        let field = |key: &str| tree.child(key).and_then(|t| t.value.clone()).unwrap_or_default();
        Some(Explained { source: field("source"), source_type: field("type"), rule: field("rule"), why: field("why") })
    }
    /// Takes everything off a model and its bodies.
    pub fn detach(model: &mut Model) -> Result<()> {
        let ids: Vec<NodeId> = model.nodes().map(|(id, _)| id).collect();
        for id in ids {
            model.rt_info_mut(id).user.retain(|t| t.key != KEY);
        }
        in_bodies(model, |body| Explained::detach(body).map(|()| 1)).map(|_| ())
    }
}
