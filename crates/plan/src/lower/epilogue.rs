//! Moves elementwise nodes into the convolution or matrix product before them, one after another, as long as nobody else
//! reads the value between. The unit then stands where its last node stood, so all operands are ready by then.

use super::draft::{Draft, Unit};
use crate::backend::Fusing;
use crate::elementwise::operand_fits;
use crate::epilogue::{ElementwiseOp, Source};

pub(super) fn fuse(draft: &mut Draft, fusing: &dyn Fusing) {
    let (readers, handed) = draft.readers();
    let mut gone = vec![false; draft.units.len()];
    // From the end: of two products that meet in a sum the later one takes it, for the other is ready by then.
    for first in (0..draft.units.len()).rev() {
        if gone[first] || fusing.epilogue_axis(&*draft.units[first].op, 2).is_none() {
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
            let Some(grown) = grow(draft, fusing, &unit, next) else { break };
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
fn grow(draft: &Draft, fusing: &dyn Fusing, unit: &Unit, next: usize) -> Option<Unit> {
    let node = &draft.units[next];
    if node.group {
        return None;
    }
    let value = unit.outputs[0];
    let (elt, ty) = draft.elementwise(node, fusing)?;
    let shape = draft.values[value].shape.as_ref()?;
    let columns = fusing.epilogue_axis(&*unit.op, shape.len())?;
    if draft.values[node.outputs[0]].shape.as_ref() != Some(shape) {
        return None;
    }
    let mut grown = unit.clone();
    let mut sources = vec![];
    for &v in elt.operands(&node.inputs) {
        if v == value {
            sources.push(Source::Result(unit.epilogue.len()));
            continue;
        }
        if !operand_fits(&draft.values[v], ty, shape, columns) {
            return None;
        }
        sources.push(Source::Input(grown.inputs.len()));
        grown.inputs.push(v);
    }
    grown.epilogue.push(ElementwiseOp { elt, ty, sources });
    grown.outputs = node.outputs.clone();
    grown.fused.push(std::mem::replace(&mut grown.name, node.name.clone()));
    Some(grown)
}
