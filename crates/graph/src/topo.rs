//! Topological order, stable and without recursion (models of 100 000 nodes exist). Edges between readers and writers of
//! one variable count as edges too: the value read is the one from before the write.

use crate::error::{Error, Result};
use crate::model::{Model, NodeId};
use std::collections::HashMap;

pub(crate) fn order(model: &Model) -> Result<Vec<NodeId>> {
    let mut readers: HashMap<String, Vec<NodeId>> = HashMap::new();
    for (id, node) in model.nodes() {
        if node.op().info().stateful && !node.op().info().sink {
            readers.entry(variable_id(model, id)).or_default().push(id);
        }
    }
    let mut done = vec![0u8; model.slots()]; // 0 new, 1 on the path, 2 placed
    let mut out = Vec::with_capacity(model.len());
    let roots = model
        .parameters()
        .iter()
        .chain(model.results().iter().filter(|r| !model.node(**r).inputs().is_empty()))
        .chain(model.sinks())
        .copied()
        .chain(model.nodes().map(|(id, _)| id));
    let mut late = Vec::new();
    for root in roots {
        // Results and sinks are placed last, so that the order matches what files list.
        let node = model.node(root);
        if model.results().contains(&root) {
            if done[root.0 as usize] == 0 {
                late.push(root);
                for v in node.inputs() {
                    visit(model, v.node, &readers, &mut done, &mut out)?;
                }
                done[root.0 as usize] = 2;
            }
            continue;
        }
        visit(model, root, &readers, &mut done, &mut out)?;
    }
    out.extend(late);
    Ok(out)
}

fn variable_id(model: &Model, id: NodeId) -> String {
    let node = model.node(id);
    let attr = node.op().attrs().into_iter().find(|(n, _)| n == "variable_id");
    attr.and_then(|(_, v)| v.to_text()).unwrap_or_default()
}

fn visit(
    model: &Model,
    root: NodeId,
    readers: &HashMap<String, Vec<NodeId>>,
    done: &mut [u8],
    out: &mut Vec<NodeId>,
) -> Result<()> {
    if done[root.0 as usize] == 2 {
        return Ok(());
    }
    let before = |id: NodeId| -> Vec<NodeId> {
        let node = model.node(id);
        let mut list: Vec<NodeId> = node.inputs().iter().map(|v| v.node).collect();
        if node.op().info().sink && node.op().info().stateful {
            list.extend(readers.get(&variable_id(model, id)).into_iter().flatten());
        }
        list
    };
    done[root.0 as usize] = 1;
    let mut stack = vec![(root, before(root), 0usize)];
    while let Some((id, list, next)) = stack.last_mut() {
        let Some(&child) = list.get(*next) else {
            done[id.0 as usize] = 2;
            out.push(*id);
            stack.pop();
            continue;
        };
        *next += 1;
        match done[child.0 as usize] {
            0 => {
                done[child.0 as usize] = 1;
                stack.push((child, before(child), 0));
            }
            1 => {
                let start = stack.iter().position(|(n, _, _)| *n == child).unwrap_or(0);
                let names: Vec<&str> = stack[start..].iter().take(8).map(|(n, _, _)| model.node(*n).name()).collect();
                let text = format!("the graph has a cycle through `{}`", names.join("`, `"));
                return Err(Error::invalid(text).with_code(97));
            }
            _ => {}
        }
    }
    Ok(())
}
