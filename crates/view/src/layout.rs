//! Where boxes lie: in layers from top to bottom, so that edges go down, with few crossings and short edges (after Sugiyama). The same
//! graph always gets the same picture, and the time grows with the number of boxes and edges, however deep the graph is.
//!
//! Layers are longest paths. An edge over several layers goes through points, one in each; edges of one box share them. Sweeps order each
//! layer by the medians of its neighbours, and the best order seen is kept. Then each layer is moved as near to its neighbours as its
//! order allows, which is an isotonic regression.

/// Between two boxes of a layer.
const GAP_X: f64 = 24.0;
/// Between a point of an edge and its neighbours.
const GAP_POINT: f64 = 12.0;
/// Between two layers.
const GAP_Y: f64 = 38.0;
/// Sweeps that order layers, down and up in turn.
const SWEEPS: usize = 10;
/// Sweeps that move layers sideways.
const MOVES: usize = 12;
/// Beyond this many points long edges are drawn straight.
const MOST_POINTS: usize = 400_000;

/// Where everything lies. The upper left corner is 0, 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// Middle and upper end of each box.
    pub at: Vec<(f64, f64)>,
    /// The layer of each box.
    pub layer: Vec<usize>,
    /// For each edge, the points it goes through from the lower end of one box to the upper end of the other; empty for an edge from
    /// a box to itself.
    pub routes: Vec<Vec<(f64, f64)>>,
    /// Size of the whole.
    pub size: (f64, f64),
}

/// Lays out boxes of these sizes. Edges should go from earlier to later boxes; one that goes back is drawn upward.
pub fn layout(sizes: &[(f64, f64)], edges: &[(usize, usize)]) -> Layout {
    if sizes.is_empty() {
        return Layout::default();
    }
    let n = sizes.len();
    let forward: Vec<(usize, usize)> = edges.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
    let layer = layers(n, &forward);
    let mut net = Net::new(sizes, &forward, &layer);
    net.order();
    net.place();
    net.finish(n, edges, &forward)
}

// Longest paths from above; what has nothing above it moves down to what reads it.
fn layers(n: usize, forward: &[(usize, usize)]) -> Vec<usize> {
    let mut below: Vec<Vec<usize>> = vec![vec![]; n];
    let mut has_above = vec![false; n];
    for &(a, b) in forward.iter().filter(|(a, b)| a != b) {
        below[a].push(b);
        has_above[b] = true;
    }
    let mut layer = vec![0; n];
    for a in 0..n {
        for &b in &below[a] {
            layer[b] = layer[b].max(layer[a] + 1);
        }
    }
    for a in (0..n).filter(|a| !has_above[*a]) {
        layer[a] = below[a].iter().map(|b| layer[*b] - 1).min().unwrap_or(0);
    }
    layer
}

/// Boxes and points in layers; the first `n` cells are the boxes.
struct Net {
    width: Vec<f64>,
    height: Vec<f64>,
    layer: Vec<usize>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    /// Cells of each layer, from left to right.
    rows: Vec<Vec<usize>>,
    x: Vec<f64>,
    /// Of each box, the points below it, one a layer.
    chain: Vec<Vec<usize>>,
    boxes: usize,
}

impl Net {
    fn new(sizes: &[(f64, f64)], forward: &[(usize, usize)], layer: &[usize]) -> Net {
        let n = sizes.len();
        let mut net = Net {
            width: sizes.iter().map(|s| s.0).collect(),
            height: sizes.iter().map(|s| s.1).collect(),
            layer: layer.to_vec(),
            above: vec![vec![]; n],
            below: vec![vec![]; n],
            rows: vec![],
            x: vec![],
            chain: vec![vec![]; n],
            boxes: n,
        };
        let mut reach = vec![0; n];
        for &(a, b) in forward {
            reach[a] = reach[a].max(layer[b]);
        }
        let points: usize = (0..n).map(|a| reach[a].saturating_sub(layer[a] + 1)).sum();
        if points <= MOST_POINTS {
            for a in 0..n {
                let mut last = a;
                for l in layer[a] + 1..reach[a] {
                    let point = net.width.len();
                    net.width.push(0.0);
                    net.height.push(0.0);
                    net.layer.push(l);
                    net.above.push(vec![last]);
                    net.below.push(vec![]);
                    net.below[last].push(point);
                    net.chain[a].push(point);
                    last = point;
                }
            }
        }
        for &(a, b) in forward.iter().filter(|(a, b)| layer[*a] < layer[*b]) {
            let from = match layer[b] - layer[a] {
                1 => a,
                far => *net.chain[a].get(far - 2).unwrap_or(&a),
            };
            if net.layer[b] == net.layer[from] + 1 && !net.below[from].contains(&b) {
                net.below[from].push(b);
                net.above[b].push(from);
            }
        }
        let depth = net.layer.iter().max().map_or(0, |l| l + 1);
        net.rows = vec![vec![]; depth];
        net.x = vec![0.0; net.width.len()];
        net.first_order();
        net
    }

    // From the outputs upward, depth first: what belongs together comes together.
    fn first_order(&mut self) {
        let count = self.width.len();
        let mut seen = vec![false; count];
        let mut stack: Vec<usize> = (0..count).filter(|c| self.below[*c].is_empty()).rev().collect();
        let mut order = vec![];
        while let Some(cell) = stack.pop() {
            if std::mem::replace(&mut seen[cell], true) {
                continue;
            }
            order.push(cell);
            stack.extend(self.above[cell].iter().rev().filter(|c| !seen[**c]));
        }
        order.extend((0..count).filter(|c| !seen[*c]));
        for cell in order {
            self.rows[self.layer[cell]].push(cell);
        }
    }

    fn positions(&self) -> Vec<usize> {
        let mut at = vec![0; self.width.len()];
        for row in &self.rows {
            row.iter().enumerate().for_each(|(i, cell)| at[*cell] = i);
        }
        at
    }

    fn order(&mut self) {
        let mut best = self.rows.clone();
        let mut fewest = self.crossings();
        for sweep in 0..SWEEPS {
            if fewest == 0 {
                break;
            }
            let down = sweep % 2 == 0;
            let mut at = self.positions();
            let depth = self.rows.len();
            for step in 1..depth {
                let l = if down { step } else { depth - 1 - step };
                let near = if down { &self.above } else { &self.below };
                let mut keyed: Vec<(f64, usize, usize)> = self.rows[l]
                    .iter()
                    .map(|&cell| {
                        let mut places: Vec<usize> = near[cell].iter().map(|c| at[*c]).collect();
                        places.sort_unstable();
                        (median(&places).unwrap_or(at[cell] as f64), at[cell], cell)
                    })
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                self.rows[l] = keyed.into_iter().map(|(_, _, cell)| cell).collect();
                self.rows[l].iter().enumerate().for_each(|(i, cell)| at[*cell] = i);
            }
            let found = self.crossings();
            if found < fewest {
                fewest = found;
                best.clone_from(&self.rows);
            }
        }
        self.rows = best;
    }

    /// Pairs of edges between neighbouring layers that cross.
    fn crossings(&self) -> usize {
        let at = self.positions();
        let mut total = 0;
        for row in &self.rows {
            let mut ends: Vec<usize> = vec![];
            for cell in row {
                let mut to: Vec<usize> = self.below[*cell].iter().map(|c| at[*c]).collect();
                to.sort_unstable();
                ends.extend(to);
            }
            total += inversions(&ends);
        }
        total
    }

    fn place(&mut self) {
        for row in &self.rows {
            let mut x = 0.0;
            for pair in 0..row.len() {
                if pair > 0 {
                    x += self.distance(row[pair - 1], row[pair]);
                }
                self.x[row[pair]] = x;
            }
        }
        let depth = self.rows.len();
        for turn in 0..MOVES {
            let down = turn % 2 == 0;
            for step in 0..depth {
                let l = if down { step } else { depth - 1 - step };
                self.move_row(l, down, turn + 2 >= MOVES);
            }
        }
        let left = (0..self.x.len()).map(|c| self.x[c] - self.width[c] / 2.0).fold(f64::INFINITY, f64::min);
        self.x.iter_mut().for_each(|x| *x -= left);
    }

    fn distance(&self, a: usize, b: usize) -> f64 {
        let gap = if a < self.boxes && b < self.boxes { GAP_X } else { GAP_POINT };
        (self.width[a] + self.width[b]) / 2.0 + gap
    }

    // Moves a layer to where the layer above or below it would have it, in the end to where both would.
    fn move_row(&mut self, l: usize, down: bool, both: bool) {
        let row = &self.rows[l];
        let mut wish = Vec::with_capacity(row.len());
        let mut offset = 0.0;
        for (i, &cell) in row.iter().enumerate() {
            if i > 0 {
                offset += self.distance(row[i - 1], cell);
            }
            let (mut sum, mut weight) = (0.0, 0.0);
            let sides = [(down || both).then_some(&self.above[cell]), (!down || both).then_some(&self.below[cell])];
            for &near in sides.into_iter().flatten().flatten() {
                // Long edges shall be straight before all; what only feeds one of several inputs follows its reader.
                let w = match near {
                    near if cell >= self.boxes && near >= self.boxes => 8.0,
                    near if self.above[near].is_empty() && self.above[cell].len() > 1 => 0.05,
                    _ => 1.0,
                };
                sum += w * self.x[near];
                weight += w;
            }
            let (x, w) = if weight > 0.0 { (sum / weight, weight) } else { (self.x[cell], 0.1) };
            wish.push((x - offset, w, offset));
        }
        let settled = isotonic(&wish.iter().map(|(x, w, _)| (*x, *w)).collect::<Vec<_>>());
        for (i, cell) in row.clone().into_iter().enumerate() {
            self.x[cell] = settled[i] + wish[i].2;
        }
    }

    fn finish(self, n: usize, edges: &[(usize, usize)], forward: &[(usize, usize)]) -> Layout {
        // Upper and lower end of each layer: between them long edges are straight, so that they pass beside boxes.
        let mut tops = Vec::with_capacity(self.rows.len());
        let mut ends = Vec::with_capacity(self.rows.len());
        let mut y = 0.0;
        for row in &self.rows {
            tops.push(y);
            let high = row.iter().map(|c| self.height[*c]).fold(0.0, f64::max);
            ends.push(y + high);
            y += high + GAP_Y;
        }
        let at: Vec<(f64, f64)> = (0..n).map(|c| (self.x[c], tops[self.layer[c]])).collect();
        let route = |(edge, ahead): (&(usize, usize), &(usize, usize))| {
            let (a, b) = *ahead;
            if a == b {
                return vec![];
            }
            let mut points = vec![(self.x[a], at[a].1 + self.height[a])];
            let between = (self.layer[b] - self.layer[a]).saturating_sub(1);
            for &p in self.chain[a].iter().take(between) {
                let l = self.layer[p];
                points.push((self.x[p], tops[l]));
                if ends[l] > tops[l] {
                    points.push((self.x[p], ends[l]));
                }
            }
            points.push((self.x[b], at[b].1));
            if edge != ahead {
                points.reverse();
            }
            points
        };
        let routes = edges.iter().zip(forward).map(route).collect();
        let right = (0..self.x.len()).map(|c| self.x[c] + self.width[c] / 2.0).fold(0.0, f64::max);
        Layout { at, layer: self.layer[..n].to_vec(), routes, size: (right, y - GAP_Y) }
    }
}

fn median(sorted: &[usize]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle] as f64),
        _ => Some((sorted[middle - 1] + sorted[middle]) as f64 / 2.0),
    }
}

// Pairs that stand in the wrong order, by a tree of counts.
fn inversions(list: &[usize]) -> usize {
    let size = list.iter().max().map_or(0, |m| m + 1);
    let mut tree = vec![0usize; size + 1];
    let mut total = 0;
    for (seen, &value) in list.iter().enumerate() {
        let (mut i, mut not_greater) = (value + 1, 0);
        while i > 0 {
            not_greater += tree[i];
            i &= i - 1;
        }
        total += seen - not_greater;
        let mut i = value + 1;
        while i <= size {
            tree[i] += 1;
            i += i & i.wrapping_neg();
        }
    }
    total
}

// The growing sequence nearest to a list of values with weights: neighbours in the wrong order are pooled.
fn isotonic(values: &[(f64, f64)]) -> Vec<f64> {
    let mut pools: Vec<(f64, f64, usize)> = vec![];
    for &(x, w) in values {
        let mut pool = (x, w, 1);
        while let Some(&(before, weight, count)) = pools.last().filter(|p| p.0 > pool.0) {
            pools.pop();
            let sum = weight + pool.1;
            pool = ((before * weight + pool.0 * pool.1) / sum, sum, count + pool.2);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(x, _, count)| std::iter::repeat_n(x, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // No two boxes of a layer overlap, and edges go down.
    fn check(sizes: &[(f64, f64)], edges: &[(usize, usize)]) -> Layout {
        let found = layout(sizes, edges);
        for a in 0..sizes.len() {
            for b in a + 1..sizes.len() {
                let near = (found.at[a].0 - found.at[b].0).abs() < (sizes[a].0 + sizes[b].0) / 2.0 - 1e-6;
                assert!(found.layer[a] != found.layer[b] || !near, "{a} and {b} overlap");
            }
            assert!(
                found.at[a].0 - sizes[a].0 / 2.0 >= -1e-6 && found.at[a].0 + sizes[a].0 / 2.0 <= found.size.0 + 1e-6
            );
        }
        for ((a, b), route) in edges.iter().zip(&found.routes).filter(|((a, b), _)| a < b) {
            assert!(found.layer[*a] < found.layer[*b]);
            assert!(route.windows(2).all(|w| w[0].1 < w[1].1), "{a} to {b}: {route:?}");
        }
        found
    }

    const SIZE: (f64, f64) = (80.0, 30.0);

    #[test]
    fn a_chain_is_straight() {
        let found = check(&[SIZE; 4], &[(0, 1), (1, 2), (2, 3)]);
        assert!(found.at.iter().all(|p| p.0 == found.at[0].0));
        assert_eq!(found.layer, [0, 1, 2, 3]);
    }

    #[test]
    fn branches_stand_beside_each_other_without_crossings() {
        let edges = [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)];
        let found = check(&[SIZE; 6], &edges);
        assert_eq!(found.layer[1], found.layer[2]);
        assert_eq!((found.at[1].0 < found.at[2].0), (found.at[3].0 < found.at[4].0));
        assert!((found.at[0].0 - found.at[5].0).abs() < 1.0);
    }

    #[test]
    fn a_late_input_lies_above_its_reader() {
        assert_eq!(check(&[SIZE; 5], &[(0, 1), (1, 2), (2, 3), (4, 3)]).layer, [0, 1, 2, 3, 4]);
        assert_eq!(check(&[SIZE; 5], &[(0, 2), (2, 3), (3, 4), (1, 4)]).layer, [0, 2, 1, 2, 3]);
    }

    #[test]
    fn an_edge_back_and_one_to_itself_are_no_trouble() {
        let found = layout(&[SIZE; 3], &[(0, 1), (1, 2), (2, 0), (1, 1)]);
        assert!(found.routes[2].first().unwrap().1 > found.routes[2].last().unwrap().1);
        assert!(found.routes[3].is_empty());
    }

    #[test]
    fn a_long_net_with_skips_is_laid_out_without_overlaps() {
        let n = 3000;
        let edges: Vec<_> = (1..n).map(|i| (i - 1, i)).chain((0..n - 9).step_by(7).map(|i| (i, i + 9))).collect();
        let sizes: Vec<_> = (0..n).map(|i| (60.0 + (i % 5) as f64 * 20.0, 30.0)).collect();
        assert_eq!(check(&sizes, &edges), layout(&sizes, &edges));
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(layout(&[], &[]), Layout::default());
        assert_eq!(layout(&[SIZE], &[]).size, SIZE);
    }

    #[test]
    fn inversions_are_counted() {
        assert_eq!(inversions(&[0, 1, 2]), 0);
        assert_eq!(inversions(&[2, 1, 0]), 3);
        assert_eq!(inversions(&[1, 0, 1, 0]), 3);
    }
}
