//! Takes transposes into attention, rotary embeddings and products of two computed matrices, whose kernels read and write in
//! any order of axes as long as rows stay whole.

use super::draft::{Draft, Unit};
use crate::backend::{Fusing, TransposedReads};
use carafe_ops::movement::Transpose;

pub(super) fn absorb(draft: &mut Draft, fusing: &dyn Fusing) {
    let (readers, handed) = draft.readers();
    let mut producer = vec![None; draft.values.len()];
    for (u, unit) in draft.units.iter().enumerate() {
        unit.outputs.iter().for_each(|&v| producer[v] = Some(u));
    }
    let mut left: Vec<usize> = readers.iter().zip(&handed).map(|(r, h)| r.len() + h).collect();
    let mut gone = vec![false; draft.units.len()];
    for u in 0..draft.units.len() {
        let Some(reads) = operands(draft, &draft.units[u], fusing) else { continue };
        let mut unit = draft.units[u].clone();
        unit.orders = vec![None; unit.inputs.len()];
        for i in 0..reads.inputs {
            let v = unit.inputs[i];
            let Some(t) = producer[v].filter(|&t| !gone[t]) else { continue };
            let Some(order) = order_of(draft, &draft.units[t]).filter(|o| rows_stay(o, reads)) else { continue };
            let from = draft.units[t].inputs[0];
            if draft.values[from].constant.is_some() {
                continue;
            }
            unit.inputs[i] = from;
            unit.orders[i] = Some(order);
            left[from] += 1;
            left[v] -= 1;
            if left[v] == 0 {
                gone[t] = true;
                left[from] -= 1;
                unit.fused.push(draft.units[t].name.clone());
            }
        }
        let out = unit.outputs[0];
        if let ([next], 0) = (&readers[out][..], handed[out]) {
            let behind = &draft.units[*next];
            if let Some(order) = order_of(draft, behind).filter(|o| o.last() == Some(&(o.len() - 1))) {
                unit.outputs = behind.outputs.clone();
                unit.out_order = Some(order);
                unit.fused.push(std::mem::replace(&mut unit.name, behind.name.clone()));
                // The work is done where the operation stood; nothing between needs to wait for it.
                gone[*next] = true;
            }
        }
        draft.units[u] = unit;
    }
    let mut at = 0;
    draft.units.retain(|_| {
        at += 1;
        !gone[at - 1]
    });
}

// The inputs that may be read in another order.
fn operands(draft: &Draft, unit: &Unit, fusing: &dyn Fusing) -> Option<TransposedReads> {
    let ty = draft.values[*unit.inputs.first()?].ty;
    let reads = fusing.reads_transposed(&*unit.op, ty)?;
    let computed = |&v: &usize| {
        let v = &draft.values[v];
        v.ty == ty && v.constant.is_none() && v.shape.as_ref().is_some_and(|s| s.len() == 4)
    };
    unit.inputs.get(..reads.inputs)?.iter().all(computed).then_some(reads)
}

// The constant order of a transpose.
fn order_of(draft: &Draft, unit: &Unit) -> Option<Vec<usize>> {
    if !unit.op.is::<Transpose>() || unit.out_order.is_some() || !unit.orders.is_empty() {
        return None;
    }
    let rank = draft.values[unit.inputs[0]].shape.as_ref()?.len();
    let order = draft.values[unit.inputs[1]].constant.as_ref()?.to_vec::<i64>().ok()?;
    let order: Vec<usize> = order.iter().map(|&a| usize::try_from(a).unwrap_or(usize::MAX)).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    (sorted == (0..rank).collect::<Vec<_>>()).then_some(order)
}

// Attention wants rows of a head whole; a product takes columns too.
fn rows_stay(order: &[usize], reads: TransposedReads) -> bool {
    let n = order.len();
    order[n - 1] == n - 1 || (reads.columns && order[n - 2] == n - 1)
}
