//! Gives every node a name of its own: a repeated name gets `_2`, `_3`, ... Devices report by name, so two nodes must not
//! share one.

use carafe_graph::{Model, NodeId, Notes, Pass, Result};
use std::collections::{HashMap, HashSet};

/// Gives every node a name of its own.
#[derive(Clone, Copy, Debug)]
pub struct NameUniquely;

impl Pass for NameUniquely {
    fn name(&self) -> &'static str {
        "name_uniquely"
    }
    fn run(&self, model: &mut Model, _: &mut Notes) -> Result<usize> {
        let names: Vec<(NodeId, String)> = model.nodes().map(|(id, n)| (id, n.name().to_string())).collect();
        let mut taken: HashSet<String> = names.iter().map(|(_, n)| n.clone()).collect();
        let mut seen = HashSet::new();
        // The first number that may be free: many nodes can share a name.
        let mut next: HashMap<String, usize> = HashMap::new();
        let mut renamed = 0;
        for (id, name) in names {
            if seen.insert(name.clone()) && !name.is_empty() {
                continue;
            }
            let base = if name.is_empty() { model.node(id).op().type_name().to_string() } else { name };
            let number = next.entry(base.clone()).or_insert(2);
            let new = loop {
                let new = format!("{base}_{number}");
                *number += 1;
                if taken.insert(new.clone()) {
                    break new;
                }
            };
            model.set_name(id, new);
            renamed += 1;
        }
        Ok(renamed)
    }
}
