//! The cheapest way to cut a network in two (Dinic's algorithm). Vertices 0 and 1 are the two ends.

use std::collections::VecDeque;

/// An edge that no cut goes through.
pub(super) const NEVER: i64 = i64::MAX / 4;
/// The end whose side is told by `false`.
pub(super) const SOURCE: usize = 0;
/// The end whose side is told by `true`.
pub(super) const SINK: usize = 1;

struct Edge {
    to: usize,
    room: i64,
}

/// Vertices and directed edges with costs; edge `i ^ 1` is the reverse of edge `i`.
pub(super) struct Network {
    edges: Vec<Edge>,
    out: Vec<Vec<usize>>,
}

impl Network {
    pub(super) fn new() -> Network {
        Network { edges: vec![], out: vec![vec![], vec![]] }
    }
    pub(super) fn vertex(&mut self) -> usize {
        self.out.push(vec![]);
        self.out.len() - 1
    }
    /// Costs `there` when `a` is on the side of the source and `b` on that of the sink, `back` when the other way round.
    pub(super) fn edge(&mut self, a: usize, b: usize, there: i64, back: i64) {
        for (from, to, room) in [(a, b, there), (b, a, back)] {
            self.out[from].push(self.edges.len());
            self.edges.push(Edge { to, room });
        }
    }
    /// The least cost, and for each vertex whether it is on the side of the sink; where several cuts cost as little, the one
    /// with the fewest vertices there.
    pub(super) fn cut(mut self) -> (i64, Vec<bool>) {
        let mut total = 0;
        while let Some(levels) = self.levels() {
            let mut next = vec![0; self.out.len()];
            while let Some(pushed) = self.push(&levels, &mut next) {
                total += pushed;
            }
        }
        (total, self.reaches_sink())
    }

    // Distance of every vertex from the source over edges with room; `None` when the sink is out of reach.
    fn levels(&self) -> Option<Vec<usize>> {
        let mut levels = vec![usize::MAX; self.out.len()];
        levels[SOURCE] = 0;
        let mut queue = VecDeque::from([SOURCE]);
        while let Some(v) = queue.pop_front() {
            for edge in self.out[v].iter().map(|&e| &self.edges[e]) {
                if edge.room > 0 && levels[edge.to] == usize::MAX {
                    levels[edge.to] = levels[v] + 1;
                    queue.push_back(edge.to);
                }
            }
        }
        (levels[SINK] != usize::MAX).then_some(levels)
    }

    // One path of growing distance; `next` holds the edges that may still lead somewhere.
    fn push(&mut self, levels: &[usize], next: &mut [usize]) -> Option<i64> {
        let mut path: Vec<usize> = vec![];
        let mut at = SOURCE;
        while at != SINK {
            let found = self.out[at][next[at]..].iter().position(|&e| {
                let edge = &self.edges[e];
                edge.room > 0 && levels[edge.to] == levels[at] + 1
            });
            match found {
                Some(skipped) => {
                    next[at] += skipped;
                    let edge = self.out[at][next[at]];
                    path.push(edge);
                    at = self.edges[edge].to;
                }
                None => {
                    let last = path.pop()?;
                    at = self.edges[last ^ 1].to;
                    next[at] += 1;
                }
            }
        }
        let amount = path.iter().map(|&e| self.edges[e].room).min()?;
        for e in path {
            self.edges[e].room -= amount;
            self.edges[e ^ 1].room += amount;
        }
        Some(amount)
    }

    fn reaches_sink(&self) -> Vec<bool> {
        let mut reaches = vec![false; self.out.len()];
        reaches[SINK] = true;
        let mut stack = vec![SINK];
        while let Some(v) = stack.pop() {
            for &e in &self.out[v] {
                let (from, room) = (self.edges[e].to, self.edges[e ^ 1].room);
                if room > 0 && !reaches[from] {
                    reaches[from] = true;
                    stack.push(from);
                }
            }
        }
        reaches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheaper_of_two_edges_in_a_row_is_cut() {
        let mut n = Network::new();
        let (a, b) = (n.vertex(), n.vertex());
        n.edge(SOURCE, a, NEVER, 0);
        n.edge(a, b, 3, 3);
        n.edge(b, SINK, 5, 0);
        assert_eq!(n.cut(), (3, vec![false, true, false, true]));
    }

    #[test]
    fn where_cuts_cost_the_same_few_are_moved() {
        let mut n = Network::new();
        let a = n.vertex();
        n.edge(SOURCE, a, 4, 0);
        n.edge(a, SINK, 4, 0);
        assert_eq!(n.cut(), (4, vec![false, true, false]));
    }
}
