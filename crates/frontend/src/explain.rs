//! Which rule made a node, and out of what. Readers attach it to nodes only when asked, so that a plain conversion pays
//! nothing; whoever writes the model takes it off again.

use crate::rule::Origin;
use crate::source::LeftOut;
use carafe_graph::{Model, Node, NodeId, Parameter, Result, RtTree, in_bodies};

/// Where it is attached.
const KEY: &str = "carafe_explain";
/// What stands in the file before a node that left nothing in the model.
const AFTER: &str = "after";

/// What a reader tells about a node it made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// Name and type of the node in the file.
    pub source: String,
    /// Type of the source node.
    pub source_type: String,
    /// Whose rule translated it.
    pub rule: String,
    /// Why that one.
    pub why: String,
}

impl Explained {
    /// Of a node and the rule that read it.
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
                model.rt_info_mut(id).user.push(RtTree::branch(KEY, self.leaves()));
            }
        }
    }
    /// Attaches it to the model as a whole, for a node that left nothing in it; `after` is the node before it in the file.
    pub fn attach_gone(&self, model: &mut Model, after: &str) {
        let mut leaves = self.leaves();
        leaves.push(RtTree::leaf(AFTER, after));
        model.rt_info.push(RtTree::branch(KEY, leaves));
    }
    /// Nodes that left nothing in the model, each with the one before it.
    pub fn gone(model: &Model) -> Vec<(Explained, String)> {
        let trees = model.rt_info.iter().filter(|t| t.key == KEY);
        let after = |t: &RtTree| t.child(AFTER).and_then(|t| t.value.clone()).unwrap_or_default();
        trees.map(|t| (Explained::read(t), after(t))).collect()
    }
    fn leaves(&self) -> Vec<RtTree> {
        let fields = [("source", &self.source), ("type", &self.source_type), ("rule", &self.rule), ("why", &self.why)];
        fields.into_iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| RtTree::leaf(k, v.as_str())).collect()
    }
    fn read(tree: &RtTree) -> Explained {
        let field = |key: &str| tree.child(key).and_then(|t| t.value.clone()).unwrap_or_default();
        Explained { source: field("source"), source_type: field("type"), rule: field("rule"), why: field("why") }
    }
    /// What is attached to a node.
    pub fn of(node: &Node) -> Option<Explained> {
        node.rt_info.user.iter().find(|t| t.key == KEY).map(Explained::read)
    }
    /// Takes everything off a model and its bodies.
    pub fn detach(model: &mut Model) -> Result<()> {
        model.rt_info.retain(|t| t.key != KEY);
        let ids: Vec<NodeId> = model.nodes().map(|(id, _)| id).collect();
        for id in ids {
            model.rt_info_mut(id).user.retain(|t| t.key != KEY);
        }
        in_bodies(model, &mut |body| Explained::detach(body).map(|()| 1)).map(|_| ())
    }
}

impl LeftOut {
    /// Attaches it to the model as a whole.
    pub(crate) fn explain(&self, model: &mut Model) {
        let (source, source_type) = (self.name.clone(), self.op_type.clone());
        Explained { source, source_type, rule: String::new(), why: self.why.to_string() }
            .attach_gone(model, &self.after);
    }
}
