//! Finds values whose numbers lie on a grid: what FakeQuantize and QuantizeDequantize give, and what only moves such numbers.
//! They may be stored as bytes; a builder that wants floats gets them by a conversion.

use super::draft::{Draft, Unit, Val};
use crate::elementwise::{Elt, Quantize, RoundTrip};
use crate::grid::Grid;
use carafe_ops::linear::MatMul;
use carafe_passes::fuse::{keeps_steps, passes_on};
use carafe_tensor::ElementType;

/// How far a zero point may lie from a whole step.
const NEAR: f32 = 1e-3;

pub(super) fn find(draft: &mut Draft) {
    for u in 0..draft.units.len() {
        if let Some(grid) = of_unit(draft, &draft.units[u]) {
            for v in draft.units[u].outputs.clone() {
                if draft.values[v].ty == ElementType::F32 {
                    draft.values[v].grid = Some(grid);
                }
            }
        }
    }
}

/// Of each value whether a unit that multiplies integers reads it, directly or behind what keeps numbers on a grid.
pub(super) fn readers_of_bytes(draft: &Draft) -> Vec<bool> {
    let mut wanted = vec![false; draft.values.len()];
    for unit in draft.units.iter().rev() {
        let integers = unit.inputs.get(1).is_some_and(|&w| draft.values[w].integers.is_some()) && !unit.group;
        let on_grid = |&&v: &&usize| draft.values[v].grid.is_some() && wanted[v];
        let both = unit.inputs.iter().take(2).all(|&v| draft.values[v].grid.is_some());
        let product = unit.op.is::<MatMul>() && !unit.group && both;
        let passes = (unit.group || keeps_steps(&*unit.op)) && unit.outputs.iter().filter(on_grid).count() > 0;
        for (i, &v) in unit.inputs.iter().enumerate() {
            wanted[v] |= passes || product && i < 2 || integers && (i == 0 || i >= unit.own_inputs);
        }
    }
    wanted
}

fn of_unit(draft: &Draft, unit: &Unit) -> Option<Grid> {
    let ports: Vec<&Val> = unit.inputs.iter().chain(&unit.outputs).map(|&v| &draft.values[v]).collect();
    match Elt::of(&*unit.op, &ports) {
        Some((Elt::Quantize(q), ElementType::F32)) => return of_range(&q),
        Some((Elt::RoundTrip(r), ElementType::F32)) => return of_steps(&r),
        _ => {}
    }
    if !keeps_steps(&*unit.op) {
        return None;
    }
    let grid = draft.values[*unit.inputs.first()?].grid?;
    let same = |&v: &usize| draft.values[v].grid == Some(grid);
    // A float that is not moved, such as the value of padding, need not lie on the grid.
    let float = |(i, v): &(usize, &usize)| draft.values[**v].ty == ElementType::F32 && passes_on(&*unit.op, *i);
    let all = unit.inputs.iter().enumerate().filter(float).all(|(_, v)| same(v));
    all.then_some(grid)
}

fn of_range(q: &Quantize) -> Option<Grid> {
    let scale = (q.to[1] - q.to[0]) / q.steps;
    let zero = -q.to[0] / scale;
    let whole = (zero - zero.round()).abs() < NEAR && (0.0..=255.0).contains(&zero.round());
    (scale.is_normal() && scale > 0.0 && q.steps <= 255.0 && whole).then(|| Grid { scale, zero: zero.round() as u8 })
}

fn of_steps(r: &RoundTrip) -> Option<Grid> {
    let zero = r.zero - r.low;
    let fits = r.high - r.low <= 255.0 && (0.0..=255.0).contains(&zero);
    (fits && r.scale.is_normal()).then_some(Grid { scale: r.scale, zero: zero as u8 })
}
