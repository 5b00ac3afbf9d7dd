//! Gives every value a slot. Values of steps share memory: two may have the same bytes when one is dead before the other is
//! made. Views have the slot of what they look at, and aliases a part of that of the whole.

use super::alias_concat_split::{Aliased, locate};
use super::select::{Origin, Selection};
use crate::backend::{Backend, MemoryKind};
use crate::plan::{Action, Plan, PlanStep, PlanValue, Region, Slot, new_id};

/// A run of bytes and the steps between which it is needed.
#[derive(Default)]
struct Block {
    bytes: usize,
    first: usize,
    last: usize,
    buffer: usize,
    start: usize,
}

pub(super) fn plan<B: Backend>(chosen: Selection<B>) -> Plan<B> {
    let n = chosen.values.len();
    let located: Vec<Aliased> = (0..n).map(|v| locate(&chosen.values, v)).collect();
    let roots: Vec<usize> = located.iter().map(|l| l.root).collect();
    let end = chosen.steps.len();
    let (mut made, mut used): (Vec<usize>, Vec<Option<usize>>) = (vec![usize::MAX; n], vec![None; n]);
    for (s, step) in chosen.steps.iter().enumerate() {
        step.writes.iter().for_each(|&v| made[roots[v]] = made[roots[v]].min(s));
        step.reads.iter().chain(&step.writes).for_each(|&v| used[roots[v]] = Some(s));
    }
    chosen.outputs.iter().for_each(|&v| used[roots[v]] = Some(end));

    let mut slots: Vec<Option<Slot>> = vec![None; n];
    let mut constants = vec![];
    let mut held = 0;
    let mut held_of = vec![None; n];
    let by_kernel = |v: usize| match made[v] {
        usize::MAX => false,
        s => matches!(chosen.steps[s].action, Action::Kernel(_)),
    };
    for v in 0..n {
        if roots[v] != v {
            continue;
        }
        slots[v] = match &chosen.values[v].source {
            Origin::Input(i) => Some(Slot::Input(*i)),
            // Only what somebody reads is kept.
            Origin::Constant(t) if used[v].is_some() => {
                constants.push(t.clone());
                Some(Slot::Constant(constants.len() - 1))
            }
            Origin::Eval => {
                held += 1;
                held_of[v] = Some(held - 1);
                Some(Slot::Held(held - 1))
            }
            _ => None,
        };
    }
    for (i, &v) in chosen.outputs.iter().enumerate() {
        let r = roots[v];
        if slots[r].is_none() && by_kernel(r) {
            slots[r] = Some(Slot::Output(i));
        }
    }
    let mut blocks: Vec<Block> = vec![];
    let mut block_of = vec![None; n];
    for v in 0..n {
        if roots[v] == v && slots[v].is_none() && by_kernel(v) {
            let value = &chosen.values[v];
            let bytes = value.ty.byte_len(value.elements()).unwrap_or(0).max(1);
            block_of[v] = Some(blocks.len());
            blocks.push(Block { bytes, first: made[v], last: used[v].unwrap_or(made[v]), ..Block::default() });
        }
    }
    let mut workspaces = vec![None; chosen.steps.len()];
    for (s, step) in chosen.steps.iter().enumerate().filter(|(_, step)| step.workspace > 0) {
        workspaces[s] = Some(blocks.len());
        blocks.push(Block { bytes: step.workspace, first: s, last: s, ..Block::default() });
    }
    let buffers = match B::MEMORY {
        MemoryKind::Arena { alignment } => vec![arrange(&mut blocks, alignment)],
        MemoryKind::Buffers => share_buffers(&mut blocks),
    };

    let region =
        |b: usize, start: usize, len: usize| Region { buffer: blocks[b].buffer, start: blocks[b].start + start, len };
    let values: Vec<PlanValue> = (0..n)
        .map(|v| {
            let value = &chosen.values[v];
            let Aliased { root: r, start, row_stride } = located[v];
            let bytes = |elements: usize| value.ty.byte_len(elements).unwrap_or(0);
            let (count, row) = (value.elements(), value.row().max(1));
            let reach = match row_stride {
                0 => count,
                _ => (count / row).max(1) * row_stride - row_stride + row,
            };
            let range = bytes(start)..bytes(start) + bytes(reach);
            let in_block = |b: usize| Slot::Planned(region(b, range.start, range.len()));
            let slot = slots[r].or_else(|| block_of[r].map(in_block));
            // What nobody reads and no step makes has no slot; nobody asks for it either.
            let slot = slot.unwrap_or(Slot::Planned(Region::default()));
            let is_part = count != chosen.values[r].elements();
            PlanValue { ty: value.ty, shape: value.shape.clone(), slot, range: is_part.then_some(range) }
        })
        .collect();
    let mut drops = vec![vec![]; chosen.steps.len()];
    for v in 0..n {
        if let (Some(h), Some(last)) = (held_of[v], used[v].filter(|s| *s < end)) {
            drops[last].push(h);
        }
    }
    let steps = chosen.steps.into_iter().zip(drops).zip(&workspaces).map(|((step, drops), workspace)| PlanStep {
        workspace: workspace.map(|b: usize| region(b, 0, step.workspace)),
        node: step.node,
        name: step.name,
        type_name: step.type_name,
        location: step.location,
        kernel: step.kernel,
        precision: step.precision,
        action: step.action,
        reads: step.reads,
        writes: step.writes,
        in_place: step.in_place,
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
    let (scratch, outputs) = (chosen.scratch, chosen.outputs);
    Plan {
        id: new_id(),
        inputs,
        values_of: vec![],
        values,
        steps,
        constants,
        buffers,
        held,
        scratch,
        outputs,
        tail: None,
    }
}

/// Gives each block a start, the largest first, each as low as it fits; the bytes of the whole.
fn arrange(blocks: &mut [Block], alignment: usize) -> usize {
    blocks.iter_mut().for_each(|b| b.bytes = b.bytes.next_multiple_of(alignment));
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    carafe_graph::sort_by_key(&mut order, |&b| (std::cmp::Reverse(blocks[b].bytes), b));
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

/// Gives each block a buffer, in the order in which they are needed: the smallest large enough whose last block is dead, or
/// one of its own; the bytes of each.
fn share_buffers(blocks: &mut [Block]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    carafe_graph::sort_by_key(&mut order, |&b| (blocks[b].first, b));
    // Bytes of each buffer, and the last step that needs it.
    let mut buffers: Vec<(usize, usize)> = vec![];
    for b in order {
        let block = &mut blocks[b];
        let free = |(_, (bytes, last)): &(usize, &(usize, usize))| *last < block.first && *bytes >= block.bytes;
        let found = buffers.iter().enumerate().filter(free).min_by_key(|(_, (bytes, _))| *bytes).map(|(i, _)| i);
        block.buffer = found.unwrap_or(buffers.len());
        match found {
            Some(i) => buffers[i].1 = block.last,
            None => buffers.push((block.bytes, block.last)),
        }
    }
    buffers.into_iter().map(|(bytes, _)| bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<Block> {
        let lives = [(64, 0, 1), (128, 1, 2), (64, 2, 3), (256, 3, 4), (64, 0, 4)];
        lives.iter().map(|&(bytes, first, last)| Block { bytes, first, last, ..Block::default() }).collect()
    }

    fn pairs(blocks: &[Block]) -> impl Iterator<Item = (&Block, &Block)> {
        let pairs = blocks.iter().enumerate().flat_map(|(i, a)| blocks[i + 1..].iter().map(move |b| (a, b)));
        pairs.filter(|(a, b)| a.first <= b.last && b.first <= a.last)
    }

    #[test]
    fn blocks_that_live_together_do_not_overlap_and_others_share() {
        let mut blocks = blocks();
        let whole = arrange(&mut blocks, 64);
        assert!(pairs(&blocks).all(|(a, b)| a.start + a.bytes <= b.start || b.start + b.bytes <= a.start));
        assert_eq!(whole, 64 + 256 + 64);
    }

    #[test]
    fn blocks_that_live_together_have_buffers_of_their_own() {
        let mut blocks = blocks();
        let buffers = share_buffers(&mut blocks);
        assert!(pairs(&blocks).all(|(a, b)| a.buffer != b.buffer));
        assert_eq!(buffers, [64, 64, 128, 256]);
    }
}
