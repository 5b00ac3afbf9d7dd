//! Cuts the units into pieces that run one after the other. A piece takes everything its device can run at that moment,
//! transitively; then another device goes on. So a piece never waits for itself: the order in which pieces are made is an
//! order in which they can run, and no choice of devices can lead to a cycle.

use super::placement::Placement;
use carafe_graph::{Model, NodeId};
use std::collections::{BTreeMap, VecDeque};

/// Piece of each node by id; and the device of each piece.
pub(crate) struct Pieces {
    pub(crate) of: Vec<Option<usize>>,
    pub(crate) devices: Vec<usize>,
}

pub(crate) fn pieces(model: &Model, order: &[NodeId], placed: &Placement, n_devices: usize) -> Pieces {
    let graph = UnitGraph::new(model, order, placed, n_devices);
    // Beginning with another device may save a piece; of equal ones the first of the list wins.
    let runs = (0..n_devices).filter_map(|first| graph.run(first));
    let best = runs.min_by_key(|(_, devices)| devices.len()).unwrap_or_default();
    let of = (0..model.slots()).map(|i| best.0.get(*graph.number.get(&placed.unit[i])?).copied().flatten());
    let of: Vec<Option<usize>> = of.enumerate().map(|(i, p)| placed.device[i].and(p)).collect();
    Pieces { of, devices: best.1 }
}

struct UnitGraph {
    /// Representative to position below.
    number: BTreeMap<u32, usize>,
    device: Vec<usize>,
    next: Vec<Vec<usize>>,
    waits_for: Vec<usize>,
    n_devices: usize,
}

impl UnitGraph {
    fn new(model: &Model, order: &[NodeId], placed: &Placement, n_devices: usize) -> UnitGraph {
        let mut graph =
            UnitGraph { number: BTreeMap::new(), device: vec![], next: vec![], waits_for: vec![], n_devices };
        for &id in order {
            let Some(d) = placed.device[id.0 as usize] else { continue };
            graph.number.entry(placed.unit[id.0 as usize]).or_insert_with(|| {
                graph.device.push(d);
                graph.device.len() - 1
            });
        }
        let n = graph.device.len();
        (graph.next, graph.waits_for) = (vec![vec![]; n], vec![0; n]);
        for &id in order.iter().filter(|id| placed.device[id.0 as usize].is_some()) {
            let to = graph.number[&placed.unit[id.0 as usize]];
            for v in model.node(id).inputs() {
                let i = v.node.0 as usize;
                if placed.device[i].is_none() {
                    continue;
                }
                let from = graph.number[&placed.unit[i]];
                if from != to {
                    graph.next[from].push(to);
                    graph.waits_for[to] += 1;
                }
            }
        }
        graph
    }

    // Piece of each unit and device of each piece; `None` when that device has nothing to begin with.
    fn run(&self, first: usize) -> Option<(Vec<Option<usize>>, Vec<usize>)> {
        let mut waits_for = self.waits_for.clone();
        let mut ready = vec![VecDeque::new(); self.n_devices];
        for u in (0..self.device.len()).filter(|&u| waits_for[u] == 0) {
            ready[self.device[u]].push_back(u);
        }
        let (mut of, mut devices) = (vec![None; self.device.len()], Vec::new());
        let mut now = first;
        if ready[now].is_empty() {
            return None;
        }
        loop {
            let piece = devices.len();
            devices.push(now);
            while let Some(u) = ready[now].pop_front() {
                of[u] = Some(piece);
                for &w in &self.next[u] {
                    waits_for[w] -= 1;
                    if waits_for[w] == 0 {
                        ready[self.device[w]].push_back(w);
                    }
                }
            }
            let most = (0..self.n_devices).rev().max_by_key(|&d| ready[d].len())?;
            if ready[most].is_empty() {
                return Some((of, devices));
            }
            now = most;
        }
    }
}
