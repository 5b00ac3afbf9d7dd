//! Walks through decision trees: from a node to one of two others, by comparing a feature of the row with a number.

use crate::eltwise::pieces;
use crate::{Exec, SharedMut, part_of};

/// How a feature must stand to a node's number for the walk to take the first way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeTest {
    LessEqual,
    Less,
    GreaterEqual,
    Greater,
    Equal,
    NotEqual,
}

/// A node as it is looked at: all of it in a quarter of a cache line.
#[derive(Clone, Copy, Debug)]
struct Node {
    value: f32,
    /// The top bit says that NaN takes the first way.
    feature: u32,
    yes: u32,
    no: u32,
}

const MISSING: u32 = 1 << 31;

/// Rows that walk through a tree together, so that one does not wait for the memory of another.
const ABREAST: usize = 8;

/// Tables of the nodes of all trees.
#[derive(Clone, Copy, Debug)]
pub struct TreeNodes<'a> {
    pub features: &'a [i64],
    pub values: &'a [f32],
    pub yes: &'a [i64],
    pub no: &'a [i64],
    /// Not 0 where NaN takes the first way; empty where it never does.
    pub missing: &'a [u8],
}

/// Walks `levels` steps from given nodes; a node that leads to itself is the end.
#[derive(Clone, Debug)]
pub struct TreeWalk {
    test: TreeTest,
    nodes: Vec<Node>,
    levels: usize,
    /// Features of a row.
    width: usize,
    trees: usize,
}

impl TreeWalk {
    /// `None` where a node leads to none, or looks at a feature that rows of `width` do not have.
    pub fn new(test: TreeTest, tables: TreeNodes<'_>, levels: usize, width: usize, trees: usize) -> Option<TreeWalk> {
        let TreeNodes { features, values, yes, no, missing } = tables;
        let count = values.len();
        let same = [features.len(), yes.len(), no.len()].iter().all(|&n| n == count);
        if !same || !(missing.is_empty() || missing.len() == count) || count >= MISSING as usize {
            return None;
        }
        let below = |i: i64, n: usize| usize::try_from(i).ok().filter(|&i| i < n && i < MISSING as usize);
        let node = |i: usize| {
            let feature = below(features[i], width)? as u32;
            let lost = if missing.get(i).is_some_and(|m| *m != 0) { MISSING } else { 0 };
            let (yes, no) = (below(yes[i], count)? as u32, below(no[i], count)? as u32);
            Some(Node { value: values[i], feature: feature | lost, yes, no })
        };
        let nodes = (0..count).map(node).collect::<Option<_>>()?;
        Some(TreeWalk { test, nodes, levels, width, trees })
    }

    /// From the nodes `from`, a row of trees for each row of `x`. The first of them that is no node is the error.
    pub fn run(&self, exec: &Exec<'_>, x: &[f32], from: &[i64], out: &mut [i64]) -> Result<(), i64> {
        let rows = from.len().checked_div(self.trees).unwrap_or(0);
        assert_eq!(from.len(), rows * self.trees, "nodes to start from");
        assert_eq!(from.len(), out.len(), "nodes to end at");
        assert_eq!(x.len(), rows * self.width, "features");
        let wrong = |i: &&i64| usize::try_from(**i).is_err() || **i as usize >= self.nodes.len();
        if let Some(&bad) = from.iter().find(wrong) {
            return Err(bad);
        }
        if from.is_empty() {
            return Ok(());
        }
        // Rows come in blocks, and each block goes through one tree after the other.
        let blocks = rows.div_ceil(ABREAST);
        let chunks = pieces(exec, from.len() * 4 * self.levels.max(1)).min(blocks * self.trees);
        let by_block = chunks.min(blocks);
        let by_tree = (chunks / by_block).clamp(1, self.trees);
        let out = SharedMut::new(out);
        exec.each(by_block * by_tree, |c, _| {
            let trees = part_of(self.trees, by_tree, c % by_tree);
            let mine = part_of(blocks, by_block, c / by_tree);
            for tree in trees {
                for block in mine.clone() {
                    let first = block * ABREAST;
                    let count = ABREAST.min(rows - first);
                    let mut at = [0u32; ABREAST];
                    let start = |k: usize| (first + k.min(count - 1)) * self.trees + tree;
                    at.iter_mut().enumerate().for_each(|(k, at)| *at = from[start(k)] as u32);
                    let base: [usize; ABREAST] = std::array::from_fn(|k| (first + k.min(count - 1)) * self.width);
                    self.walk(x, base, &mut at);
                    for (k, &at) in at.iter().take(count).enumerate() {
                        // SAFETY: this chunk alone writes this tree of this row.
                        let end = unsafe { out.part(start(k)..start(k) + 1) };
                        end[0] = i64::from(at);
                    }
                }
            }
        });
        Ok(())
    }

    fn walk(&self, x: &[f32], base: [usize; ABREAST], at: &mut [u32; ABREAST]) {
        match self.test {
            TreeTest::LessEqual => self.walk_by(x, base, at, |x, v| x <= v),
            TreeTest::Less => self.walk_by(x, base, at, |x, v| x < v),
            TreeTest::GreaterEqual => self.walk_by(x, base, at, |x, v| x >= v),
            TreeTest::Greater => self.walk_by(x, base, at, |x, v| x > v),
            TreeTest::Equal => self.walk_by(x, base, at, |x, v| x == v),
            TreeTest::NotEqual => self.walk_by(x, base, at, |x, v| x != v),
        }
    }

    #[inline(always)]
    fn walk_by(
        &self,
        x: &[f32],
        base: [usize; ABREAST],
        at: &mut [u32; ABREAST],
        first_way: impl Fn(f32, f32) -> bool,
    ) {
        for _ in 0..self.levels {
            let mut moved = 0;
            for (at, base) in at.iter_mut().zip(base) {
                let node = self.nodes[*at as usize];
                let seen = x[base + (node.feature & !MISSING) as usize];
                let go = first_way(seen, node.value) | (seen.is_nan() & (node.feature & MISSING != 0));
                let next = if go { node.yes } else { node.no };
                moved |= next ^ *at;
                *at = next;
            }
            if moved == 0 {
                return;
            }
        }
    }
}
