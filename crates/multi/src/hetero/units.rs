//! Nodes that cannot be parted. A variable lives in one request, so its readers and writers are one unit; and whatever
//! lies on a way from one of them to another is in it too, or the unit would have to run before and after that node.

use carafe_graph::{Model, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// By node id, a representative of the node's unit. Only nodes that are `free` count.
pub(crate) fn units(model: &Model, order: &[NodeId], free: &dyn Fn(NodeId) -> bool) -> Vec<u32> {
    let mut union = Union((0..model.slots() as u32).collect());
    let mut first: BTreeMap<String, NodeId> = BTreeMap::new();
    for &id in order.iter().filter(|id| free(**id)) {
        let mut ids = BTreeSet::new();
        variables(model, id, &mut ids);
        for v in ids {
            let other = *first.entry(v).or_insert(id);
            union.join(other.0, id.0);
        }
    }
    if !first.is_empty() {
        let edges: Vec<(u32, u32)> = order
            .iter()
            .filter(|id| free(**id))
            .flat_map(|&id| model.node(id).inputs().iter().map(move |v| (v.node, id)))
            .filter(|(from, _)| free(*from))
            .map(|(from, to)| (union.root(from.0), union.root(to.0)))
            .filter(|(from, to)| from != to)
            .collect();
        for circle in circles(model.slots(), &edges) {
            for pair in circle.windows(2) {
                union.join(pair[0], pair[1]);
            }
        }
    }
    (0..model.slots() as u32).map(|i| union.root(i)).collect()
}

// Variables of a node and of its bodies.
fn variables(model: &Model, id: NodeId, into: &mut BTreeSet<String>) {
    let op = model.node(id).op();
    if op.info().stateful {
        let attr = op.attrs().into_iter().find(|(k, _)| k == "variable_id");
        into.extend(attr.and_then(|(_, v)| v.to_text()));
    }
    for (_, body) in op.bodies() {
        for (inner, _) in body.model.nodes() {
            variables(&body.model, inner, into);
        }
    }
}

struct Union(Vec<u32>);

impl Union {
    fn root(&mut self, mut i: u32) -> u32 {
        while self.0[i as usize] != i {
            self.0[i as usize] = self.0[self.0[i as usize] as usize];
            i = self.0[i as usize];
        }
        i
    }
    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

// Strongly connected components of more than one node, without recursion.
fn circles(n: usize, edges: &[(u32, u32)]) -> Vec<Vec<u32>> {
    let mut next: Vec<Vec<u32>> = vec![Vec::new(); n];
    edges.iter().for_each(|&(a, b)| next[a as usize].push(b));
    const NEW: u32 = u32::MAX;
    let (mut index, mut low) = (vec![NEW; n], vec![0u32; n]);
    let (mut on_stack, mut stack, mut found) = (vec![false; n], Vec::new(), Vec::new());
    let mut count = 0u32;
    for root in 0..n as u32 {
        if index[root as usize] != NEW {
            continue;
        }
        let mut work = vec![(root, 0usize)];
        while let Some(&mut (v, ref mut at)) = work.last_mut() {
            let i = v as usize;
            if *at == 0 {
                (index[i], low[i], on_stack[i]) = (count, count, true);
                count += 1;
                stack.push(v);
            }
            if let Some(&w) = next[i].get(*at) {
                *at += 1;
                match index[w as usize] {
                    NEW => work.push((w, 0)),
                    seen if on_stack[w as usize] => low[i] = low[i].min(seen),
                    _ => {}
                }
                // A node with edges is looked at again with `at` above zero; one without is finished at once.
                continue;
            }
            work.pop();
            if let Some(&(parent, _)) = work.last() {
                low[parent as usize] = low[parent as usize].min(low[i]);
            }
            if low[i] == index[i] {
                let start = stack.iter().rposition(|&s| s == v).unwrap_or(0);
                let circle = stack.split_off(start);
                circle.iter().for_each(|&s| on_stack[s as usize] = false);
                if circle.len() > 1 {
                    found.push(circle);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_and_a_chain_is_not() {
        let mut found = circles(6, &[(0, 1), (1, 2), (2, 1), (2, 3), (3, 4), (4, 1)]);
        found.iter_mut().for_each(|c| c.sort_unstable());
        assert_eq!(found, [[1, 2, 3, 4]]);
    }

    #[test]
    fn circles_that_touch_are_one() {
        assert_eq!(circles(3, &[(0, 1), (1, 0), (1, 2), (2, 1)]).len(), 1);
    }
}
