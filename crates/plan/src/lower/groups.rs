//! Puts elementwise nodes together whose values nobody else needs: a node joins the group of its readers when they are all
//! in one group and its result has the group's shape. A group runs where its last node stood, in one pass over memory.

use super::draft::{Draft, Unit};
use crate::backend::Fusing;
use crate::elementwise::Elt;
use crate::epilogue::{ElementwiseOp, Source};
use carafe_tensor::ElementType;
use std::collections::HashMap;

/// Most operations and operands of one group.
const MOST: usize = 24;

pub(super) fn fuse(draft: &mut Draft, fusing: &dyn Fusing) {
    let (readers, handed) = draft.readers();
    let elts: Vec<Option<(Elt, ElementType)>> = draft.units.iter().map(|u| draft.elementwise(u, fusing)).collect();
    // Group of each unit, named by its last unit.
    let mut group: Vec<usize> = (0..draft.units.len()).collect();
    let mut sizes: Vec<(usize, usize)> = draft.units.iter().map(|u| (1, u.inputs.len())).collect();
    for u in (0..draft.units.len()).rev() {
        if elts[u].is_none() {
            continue;
        }
        let value = draft.units[u].outputs[0];
        let Some((&first, others)) = readers[value].split_first() else { continue };
        let tail = group[first];
        let one_group = others.iter().all(|&r| group[r] == tail) && elts[first].is_some();
        let end = &draft.values[draft.units[tail].outputs[0]];
        let alike = draft.values[value].shape == end.shape && draft.values[value].ty == end.ty;
        let operands = draft.units[u].inputs.len();
        let fits = sizes[tail].0 < MOST && sizes[tail].1 + operands <= MOST;
        if handed[value] == 0 && one_group && alike && fits {
            group[u] = tail;
            sizes[tail].0 += 1;
            sizes[tail].1 += operands;
        }
    }
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    for (u, elt) in elts.iter().enumerate() {
        if elt.is_some() {
            members.entry(group[u]).or_default().push(u);
        }
    }
    let mut kept = vec![];
    for u in 0..draft.units.len() {
        if elts[u].is_none() {
            kept.push(draft.units[u].clone());
        } else if let Some(list) = members.get(&u) {
            kept.push(join(draft, list, &elts));
        }
    }
    draft.units = kept;
}

// One unit of all members, which come in order; the last gives name and result.
fn join(draft: &Draft, members: &[usize], elts: &[Option<(Elt, ElementType)>]) -> Unit {
    let last = &draft.units[members[members.len() - 1]];
    let mut unit = Unit { inputs: vec![], own_inputs: 0, group: true, ..last.clone() };
    let mut results: HashMap<usize, usize> = HashMap::new();
    for &m in members {
        let node = &draft.units[m];
        let Some((elt, ty)) = elts[m] else { continue };
        let mut sources = vec![];
        for &v in elt.operands(&node.inputs) {
            sources.push(match results.get(&v) {
                Some(&k) => Source::Result(k),
                None => Source::Input(unit.inputs.iter().position(|&x| x == v).unwrap_or_else(|| {
                    unit.inputs.push(v);
                    unit.inputs.len() - 1
                })),
            });
        }
        results.insert(node.outputs[0], unit.epilogue.len());
        unit.epilogue.push(ElementwiseOp { elt, ty, sources });
        if !std::ptr::eq(node, last) {
            unit.fused.push(node.name.clone());
        }
    }
    unit
}
