//! Replacing a part of a graph that a user points at: by its first and last nodes, by how names begin, or not at all. Who
//! finds the part need not know what takes its place, so both meet in [`Match`].

use crate::attr::AttrMap;
use crate::error::{Error, Result};
use crate::model::{Model, NodeId, Value};
use crate::pass::Notes;

/// Domain of a node in a graph as decoded that stands for an operation of ours, spelled `opset::Type`.
pub const REPLACEMENT: &str = "carafe.replacement";

/// A part of a graph. With no nodes it stands for the whole of it.
#[derive(Clone, Debug, Default)]
pub struct Match {
    /// What it is called: the scope, or the name of the replacement.
    pub name: String,
    /// Values that come in, in the order of the user's list.
    pub inputs: Vec<Value>,
    /// Values that go out, in the order of the user's list.
    pub outputs: Vec<Value>,
    /// Everything between.
    pub nodes: Vec<NodeId>,
    /// What the user wants the replacement to know; lists and objects inside of others are JSON text.
    pub attrs: AttrMap,
    /// The same, whole, as JSON.
    pub json: String,
}

impl Match {
    /// The one node inside whose name fits.
    pub fn node_where(&self, model: &Model, fits: impl Fn(&str) -> bool) -> Result<NodeId> {
        let mut found = self.nodes.iter().filter(|id| model.get(**id).is_some_and(|n| fits(n.name())));
        match (found.next(), found.count()) {
            (Some(id), 0) => Ok(*id),
            (first, more) => {
                let n = usize::from(first.is_some()) + more;
                Err(Error::invalid(format!("expected one node of `{}` to fit, found {n}", self.name)))
            }
        }
    }
}

/// Puts something in place of a match. What nothing needs any more is removed afterwards.
pub trait Replacement: Send + Sync {
    /// The `id` of the entries it is for.
    fn id(&self) -> &str;
    /// Puts something else in place of what was found.
    fn replace(&self, model: &mut Model, found: &Match, notes: &mut Notes) -> Result<()>;
}
