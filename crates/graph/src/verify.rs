//! Checks the invariants of a graph; run after every pass in debug builds.

use crate::error::{Error, Result};
use crate::model::{Model, Use, Value};
use std::collections::{HashMap, HashSet};

/// Says the first thing that is wrong.
pub fn verify(model: &Model) -> Result<()> {
    // Looked up instead of searched for: a constant may have thousands of users.
    let mut listed: HashMap<Use, (Value, usize)> = HashMap::new();
    for (id, node) in model.nodes() {
        for port in 0..node.outputs().len() {
            let v = Value { node: id, port };
            for u in model.users(v) {
                let entry = listed.entry(*u).or_insert((v, 0));
                *entry = (v, entry.1 + 1);
            }
        }
    }
    for (id, node) in model.nodes() {
        for (i, v) in node.inputs().iter().enumerate() {
            let producer = model
                .get(v.node)
                .ok_or_else(|| Error::invalid(format!("input {i} reads a removed node")).at(node.location()))?;
            if v.port >= producer.outputs().len() {
                return Err(Error::invalid(format!("input {i} reads output {} of {}", v.port, producer.location()))
                    .at(node.location()));
            }
            if listed.get(&Use { node: id, input: i }) != Some(&(*v, 1)) {
                return Err(Error::invalid(format!("input {i} is not in its producer's user list")).at(node.location()));
            }
        }
        for port in 0..node.outputs().len() {
            for u in model.users(crate::Value { node: id, port }) {
                let back = model.get(u.node).and_then(|n| n.inputs().get(u.input));
                if back != Some(&crate::Value { node: id, port }) {
                    return Err(Error::invalid(format!("output {port} lists a user that reads something else"))
                        .at(node.location()));
                }
            }
        }
        for (name, body) in node.op().bodies() {
            let check = body.check(node.inputs().len()).and_then(|()| verify(&body.model));
            check.map_err(|e| e.at(format!("`{name}`")).at(node.location()))?;
        }
    }
    let mut names = HashSet::new();
    for id in model.parameters() {
        if !names.insert(model.node(*id).name()) {
            return Err(Error::invalid(format!("two inputs are named `{}`", model.node(*id).name())));
        }
    }
    model.topological_order().map(|_| ())
}
