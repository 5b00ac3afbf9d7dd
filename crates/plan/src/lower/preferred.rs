//! Finds values that are better stored in a narrower float type than the model's: those read by units that are computed in it,
//! directly or behind units that pass on what they get. Who makes such a value may write it so; nobody must.

use super::draft::Draft;
use crate::backend::{Fusing, model_precision};

pub(super) fn find(draft: &mut Draft, fusing: &dyn Fusing) {
    for u in (0..draft.units.len()).rev() {
        let unit = &draft.units[u];
        let known = |list: &[usize]| list.iter().map(|&v| draft.values[v].known()).collect::<Vec<_>>();
        let inputs = known(&unit.inputs);
        let model = model_precision(&inputs, &known(&unit.outputs));
        let own = unit.precision;
        let wanted = match own.is_float() && model.is_float() && own.bits() < model.bits() {
            true => Some(own),
            false if fusing.passes_on(&*unit.op, &inputs, unit.group) => draft.values[unit.outputs[0]].preferred,
            false => None,
        };
        // Integers times numbers on a grid stay integers.
        let value = |i: usize| unit.inputs.get(i).map(|&v| &draft.values[v]);
        let quantized = value(0).is_some_and(|v| v.grid.is_some()) && value(1).is_some_and(|v| v.integers.is_some());
        let Some(wanted) = wanted.filter(|_| !quantized) else { continue };
        let op = unit.op.clone();
        // What an epilogue spreads over its result, such as a scale, costs nothing in full and its rounding meets every number.
        let elements = |v: usize| draft.values[v].shape.as_ref().map(|s| s.iter().product::<usize>());
        let spread = |i: usize, v: usize| i >= unit.own_inputs && elements(v) < elements(unit.outputs[0]);
        let read = |(i, v): (usize, &usize)| (fusing.reads_narrow(&*op, i) && !spread(i, *v)).then_some(*v);
        for v in unit.inputs.iter().enumerate().filter_map(read).collect::<Vec<_>>() {
            // A rounding there would be for nothing: it leaves in full.
            if draft.outputs.contains(&v) {
                continue;
            }
            let value = &mut draft.values[v];
            if value.ty == model && value.constant.is_none() && value.input.is_none() && value.grid.is_none() {
                value.preferred = Some(wanted);
            }
        }
    }
}
