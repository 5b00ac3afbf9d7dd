//! Pairs of conditions. A program has no `else`: a condition runs one block, its negation another, and `select_input` behind them takes
//! of each pair of variables that of the block that ran. Such a pair is one condition with two blocks.

use crate::program::{Block, Operator};
use std::collections::{HashMap, HashSet};

/// Two conditions of which one runs.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The variable that decides.
    pub(crate) condition: String,
    pub(crate) then: usize,
    pub(crate) other: usize,
    pub(crate) selected: Vec<Selected>,
}

/// What a `select_input` takes of a pair.
#[derive(Debug)]
pub(crate) struct Selected {
    pub(crate) out: String,
    pub(crate) then: String,
    pub(crate) other: String,
}

/// The pairs of a block, each at the second of its conditions.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    at: HashMap<usize, Pair>,
    /// First conditions of pairs, and selections.
    parts: HashSet<usize>,
}

impl Pairs {
    /// The pair whose second condition is this operator.
    pub(crate) fn at(&self, op: usize) -> Option<&Pair> {
        self.at.get(&op)
    }
    /// Whether an operator is a part of a pair and nothing by itself.
    pub(crate) fn is_part(&self, op: usize) -> bool {
        self.parts.contains(&op)
    }
}

/// Finds the pairs of a block.
pub(crate) fn pairs(block: &Block) -> Pairs {
    let mut found = Pairs::default();
    // The condition that wrote a variable last.
    let mut writers: HashMap<&str, usize> = HashMap::new();
    for (i, op) in block.ops.iter().enumerate() {
        if op.op_type == "select_input" {
            if let Some((first, second, condition, selected)) = selection(block, op, &writers) {
                let (then, other) = (blocks(block, first), blocks(block, second));
                let last = first.max(second);
                // Another pair of one of the two would run its block a second time.
                let is_taken = |op: usize| found.parts.contains(&op) || found.at.contains_key(&op);
                let is_new = !is_taken(first) && !is_taken(second);
                if let (Some(then), Some(other)) = (then, other) {
                    match found.at.get_mut(&last) {
                        Some(pair) if (pair.then, pair.other) == (then, other) => {
                            pair.selected.push(selected);
                            found.parts.insert(i);
                        }
                        None if is_new => {
                            found.at.insert(last, Pair { condition, then, other, selected: vec![selected] });
                            found.parts.extend([i, first.min(second)]);
                        }
                        _ => {}
                    }
                }
            }
            continue;
        }
        for var in op.outputs.iter().flat_map(|s| &s.vars) {
            match op.op_type.as_str() {
                "conditional_block" | "conditional_block_infer" => writers.insert(var, i),
                _ => writers.remove(var.as_str()),
            };
        }
    }
    found
}

fn blocks(block: &Block, op: usize) -> Option<usize> {
    block.ops.get(op)?.block("sub_block")
}

// The conditions behind a selection, true first, what decides, and the variables.
fn selection(block: &Block, op: &Operator, writers: &HashMap<&str, usize>) -> Option<(usize, usize, String, Selected)> {
    let [other, then] = op.input("X") else { return None };
    let (second, first) = (*writers.get(other.as_str())?, *writers.get(then.as_str())?);
    if first == second {
        return None;
    }
    let condition = block.ops.get(first)?.input("Cond").first()?.clone();
    let out = op.output("Out").first()?.clone();
    Some((first, second, condition, Selected { out, then: then.clone(), other: other.clone() }))
}
