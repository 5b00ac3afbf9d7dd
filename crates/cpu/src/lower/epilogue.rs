//! Moves elementwise nodes into the convolution or matrix product before them, one after another, as long as nobody else
//! reads the value between. The unit then stands where its last node stood, so all operands are ready by then.

use super::draft::{Draft, Unit};
use super::elements::{Elt, operand_fits};
use super::post::{Post, Source};
use crate::steps::column_axis;

pub(super) fn fuse(draft: &mut Draft) {
    let (readers, handed) = draft.readers();
    let mut gone = vec![false; draft.units.len()];
    // From the end: of two products that meet in a sum the later one takes it, for the other is ready by then.
    for first in (0..draft.units.len()).rev() {
        if gone[first] || column_axis(&*draft.units[first].op, 2).is_none() {
            continue;
        }
        let mut last = first;
        let mut unit = draft.units[first].clone();
        loop {
            let value = unit.outputs[0];
            let [next] = readers[value][..] else { break };
            if handed[value] > 0 || gone[next] || unit.outputs.len() != 1 {
                break;
            }
            let Some(grown) = grow(draft, &unit, next) else { break };
            unit = grown;
            gone[last] = true;
            last = next;
        }
        if last != first {
            draft.units[last] = unit;
            gone[last] = false;
        }
    }
    let mut at = 0;
    draft.units.retain(|_| {
        at += 1;
        !gone[at - 1]
    });
}

// The unit with the elementwise node behind it taken in.
fn grow(draft: &Draft, unit: &Unit, next: usize) -> Option<Unit> {
    let node = &draft.units[next];
    if node.group || !node.post.is_empty() || node.outputs.len() != 1 {
        return None;
    }
    let value = unit.outputs[0];
    let ports = || node.inputs.iter().chain(&node.outputs).map(|&v| &draft.values[v]);
    let elt = Elt::of(&*node.op, &ports().collect::<Vec<_>>())?;
    let shape = draft.values[value].shape.as_ref()?;
    let columns = column_axis(&*unit.op, shape.len())?;
    if draft.values[node.outputs[0]].shape.as_ref() != Some(shape) {
        return None;
    }
    let mut grown = unit.clone();
    let mut sources = vec![];
    for &v in elt.operands(&node.inputs) {
        if v == value {
            sources.push(Source::Result(unit.post.len()));
            continue;
        }
        if !operand_fits(&draft.values[v], shape, columns) {
            return None;
        }
        sources.push(Source::Input(grown.inputs.len()));
        grown.inputs.push(v);
    }
    grown.post.push(Post { elt, sources });
    grown.outputs = node.outputs.clone();
    grown.fused.push(std::mem::replace(&mut grown.name, node.name.clone()));
    Some(grown)
}
