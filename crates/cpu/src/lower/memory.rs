//! Gives every value a place. Values of steps share one block of memory: two may have the same bytes when one is dead
//! before the other is made. Views have the place of what they look at, and parts of a value one inside of it.

use super::inside::{Location, locate};
use super::select::{Origin, Selection};
use crate::plan::{Action, Place, Plan, PlanStep, PlanValue};
use carafe_kernels::Part;

const ALIGNMENT: usize = 64;

/// A run of bytes and the steps between which it is needed.
struct Block {
    bytes: usize,
    first: usize,
    last: usize,
    start: usize,
}

pub(super) fn plan(chosen: Selection) -> Plan {
    let n = chosen.values.len();
    let located: Vec<Location> = (0..n).map(|v| locate(&chosen.values, v)).collect();
    let roots: Vec<usize> = located.iter().map(|l| l.root).collect();
    let end = chosen.steps.len();
    let (mut made, mut used): (Vec<usize>, Vec<Option<usize>>) = (vec![usize::MAX; n], vec![None; n]);
    for (s, step) in chosen.steps.iter().enumerate() {
        step.writes.iter().for_each(|&v| made[roots[v]] = made[roots[v]].min(s));
        step.reads.iter().chain(&step.writes).for_each(|&v| used[roots[v]] = Some(s));
    }
    chosen.outputs.iter().for_each(|&v| used[roots[v]] = Some(end));

    let mut places: Vec<Option<Place>> = vec![None; n];
    let mut constants = vec![];
    let mut held = 0;
    let mut held_of = vec![None; n];
    let by_kernel = |v: usize| match made[v] {
        usize::MAX => false,
        s => matches!(chosen.steps[s].action, Action::Fast(_)),
    };
    for v in 0..n {
        if roots[v] != v {
            continue;
        }
        places[v] = match &chosen.values[v].source {
            Origin::Input(i) => Some(Place::Input(*i)),
            // Only what somebody reads is kept.
            Origin::Constant(t) if used[v].is_some() => {
                constants.push(t.clone());
                Some(Place::Constant(constants.len() - 1))
            }
            Origin::Eval => {
                held += 1;
                held_of[v] = Some(held - 1);
                Some(Place::Held(held - 1))
            }
            _ => None,
        };
    }
    for (i, &v) in chosen.outputs.iter().enumerate() {
        let r = roots[v];
        if places[r].is_none() && by_kernel(r) {
            places[r] = Some(Place::Output(i));
        }
    }
    let mut blocks: Vec<Block> = vec![];
    let mut block_of = vec![None; n];
    for v in 0..n {
        if roots[v] == v && places[v].is_none() && by_kernel(v) {
            let value = &chosen.values[v];
            let count = value.shape.as_ref().map_or(0, |s| s.iter().product());
            let bytes = value.ty.byte_len(count).unwrap_or(0).max(1).next_multiple_of(ALIGNMENT);
            block_of[v] = Some(blocks.len());
            blocks.push(Block { bytes, first: made[v], last: used[v].unwrap_or(made[v]), start: 0 });
        }
    }
    let mut workspaces = vec![None; chosen.steps.len()];
    for (s, step) in chosen.steps.iter().enumerate().filter(|(_, step)| step.workspace > 0) {
        workspaces[s] = Some(blocks.len());
        let bytes = step.workspace.next_multiple_of(ALIGNMENT);
        blocks.push(Block { bytes, first: s, last: s, start: 0 });
    }
    let arena = arrange(&mut blocks);

    let part = |b: usize, bytes: usize| Part { start: blocks[b].start, len: bytes };
    let values: Vec<PlanValue> = (0..n)
        .map(|v| {
            let value = &chosen.values[v];
            let Location { root: r, start, pitch } = located[v];
            let bytes = |elements: usize| value.ty.byte_len(elements).unwrap_or(0);
            let (count, row) = (value.elements(), value.row().max(1));
            let reach = match pitch {
                0 => count,
                _ => (count / row).max(1) * pitch - pitch + row,
            };
            let range = bytes(start)..bytes(start) + bytes(reach);
            let in_block = |b: usize| Place::Arena(Part { start: blocks[b].start + range.start, len: range.len() });
            let place = places[r].or_else(|| block_of[r].map(in_block));
            // What nobody reads and no step makes has no place; nobody asks for it either.
            let place = place.unwrap_or(Place::Arena(Part::default()));
            let is_part = count != chosen.values[r].elements();
            PlanValue { ty: value.ty, shape: value.shape.clone(), place, range: is_part.then_some(range) }
        })
        .collect();
    let mut drops = vec![vec![]; chosen.steps.len()];
    for v in 0..n {
        if let (Some(h), Some(last)) = (held_of[v], used[v].filter(|s| *s < end)) {
            drops[last].push(h);
        }
    }
    let steps = chosen.steps.into_iter().zip(drops).zip(&workspaces).map(|((step, drops), workspace)| PlanStep {
        workspace: workspace.map(|b: usize| part(b, step.workspace)),
        node: step.node,
        name: step.name,
        type_name: step.type_name,
        place: step.place,
        kernel: step.kernel,
        action: step.action,
        reads: step.reads,
        writes: step.writes,
        over: step.over,
        drops,
        fused: step.fused,
    });
    let steps = steps.collect();
    let mut inputs = vec![];
    for value in &chosen.values {
        if let Origin::Input(i) = value.source {
            inputs.resize(inputs.len().max(i + 1), vec![]);
            inputs[i] = value.shape.clone().unwrap_or_default();
        }
    }
    Plan { inputs, values, steps, constants, arena, held, scratch: chosen.scratch, outputs: chosen.outputs, tail: None }
}

/// Gives each block a start, the largest first, each as low as it fits; the bytes of the whole.
fn arrange(blocks: &mut [Block]) -> usize {
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|&b| (std::cmp::Reverse(blocks[b].bytes), b));
    let mut placed: Vec<usize> = vec![];
    let mut whole = 0;
    for b in order {
        let (first, last, bytes) = (blocks[b].first, blocks[b].last, blocks[b].bytes);
        // Blocks that live at the same time, from low to high.
        let meets = |&&p: &&usize| blocks[p].first <= last && first <= blocks[p].last;
        let mut start = 0;
        for &p in placed.iter().filter(meets) {
            if start + bytes <= blocks[p].start {
                break;
            }
            start = start.max(blocks[p].start + blocks[p].bytes);
        }
        blocks[b].start = start;
        whole = whole.max(start + bytes);
        let at = placed.partition_point(|&p| blocks[p].start <= start);
        placed.insert(at, b);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_live_together_do_not_overlap_and_others_share() {
        let lives = [(64, 0, 1), (128, 1, 2), (64, 2, 3), (256, 3, 4), (64, 0, 4)];
        let mut blocks: Vec<Block> =
            lives.iter().map(|&(bytes, first, last)| Block { bytes, first, last, start: 0 }).collect();
        let whole = arrange(&mut blocks);
        for (i, a) in blocks.iter().enumerate() {
            for b in &blocks[i + 1..] {
                let together = a.first <= b.last && b.first <= a.last;
                let apart = a.start + a.bytes <= b.start || b.start + b.bytes <= a.start;
                assert!(!together || apart);
            }
        }
        assert_eq!(whole, 64 + 256 + 64);
    }
}
