//! Attributes that a rule did not read. Of our own rules each is an error, so that nothing is dropped in silence. An extension
//! takes the parameters it names and no others; what it leaves is reported once for each type, at the end of the reading.

use crate::options::Log;
use crate::rule::Origin;
use crate::source::SourceNode;
use carafe_graph::{Error, Result};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// What users' rules left unread, by type of the source node.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    by_type: RefCell<BTreeMap<(String, String), Left>>,
}

#[derive(Debug, Default)]
struct Left {
    rule: String,
    nodes: usize,
    names: BTreeSet<String>,
}

impl Unread {
    /// Judges the attributes that a rule of this origin did not read: an error where the rule is ours, a line of the later
    /// warning where it is a user's.
    pub(crate) fn judge(&self, node: &SourceNode, origin: &Origin<'_>, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let rule = match origin {
            Origin::User { .. } => format!("the rule of {}", origin.words().0),
            Origin::EqualName { extension: Some(e) } => format!("the operation of extension `{e}`"),
            Origin::EqualName { extension: None } => "the operation of the program".to_string(),
            _ => {
                let shown: Vec<String> =
                    names.iter().filter_map(|n| Some(format!("`{n}` = {}", node.attrs.get(n)?))).collect();
                return Err(Error::unsupported(format!("attributes {} are not understood", shown.join(", "))));
            }
        };
        let mut all = self.by_type.borrow_mut();
        let left = all.entry((node.domain.clone(), node.op_type.clone())).or_default();
        left.rule = rule;
        left.nodes += 1;
        left.names.extend(names.iter().cloned());
        Ok(())
    }

    /// One warning for each type.
    pub(crate) fn warn(&self, log: &Log<'_>) {
        for ((domain, op_type), left) in self.by_type.take() {
            let op = if domain.is_empty() { op_type } else { format!("{domain}::{op_type}") };
            let names: Vec<String> = left.names.iter().map(|n| format!("`{n}`")).collect();
            let nodes = if left.nodes == 1 { "1 node".to_string() } else { format!("{} nodes", left.nodes) };
            log.warn(format!(
                "{op}: {} does not read {}, which {nodes} of the model set; they have no effect",
                left.rule,
                names.join(", ")
            ));
        }
    }
}
