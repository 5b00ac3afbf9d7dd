//! Recurrent cells. What they remember comes in as columns behind their input, so that each is a function of one row.

use super::cx::{array, columns, numbers, shape};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::Sigmoid;
use carafe_ops::math::Tanh;
use carafe_tensor::Tensor;

pub(crate) const RULES: &[StaticRule] = &[
    rule("GruNonlinearityComponent", 1, gru),
    rule("LstmNonlinearityComponent", 1, lstm),
    rule("LstmProjected", 1, lstm_projected),
    rule("OutputGruNonlinearityComponent", 1, output_gru),
    rule("RecurrentComponent", 1, recurrent),
];

// Columns one behind the other, as wide as said.
fn cut_into(n: &mut NodeCx<'_>, x: Value, widths: &[i64]) -> Result<Vec<Value>> {
    let (whole, sum) = (columns(n, x)?, widths.iter().sum::<i64>());
    if whole != sum {
        return Err(n.fail(format!("it reads {whole} columns, expected {sum}: {widths:?}")));
    }
    let mut at = 0;
    widths
        .iter()
        .map(|w| {
            at += w;
            n.part(x, at - w, at, 1)
        })
        .collect()
}

// The sigmoid of a gate with its peephole.
fn gate(n: &mut NodeCx<'_>, x: Value, peephole: Value, cell: Value) -> Result<Value> {
    let seen = n.times(cell, peephole)?;
    let sum = n.plus(x, seen)?;
    n.emit(Sigmoid, &[sum])
}

// (i, f, c, o, c of before) to (c, m); three more columns may scale the gates.
fn lstm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["UseDropout"]);
    let x = n.input(0)?;
    let peepholes = shape(n, "Params")?;
    let &[3, cells] = &peepholes[..] else { return Err(n.fail("`<Params>` must have three rows")) };
    let (c, whole) = (cells as i64, columns(n, x)?);
    let values = numbers(n, "Params")?;
    let mut rows = vec![];
    for row in values.chunks(cells) {
        rows.push(n.constant(Tensor::from_slice(&[cells], row)?)?);
    }
    let has_masks = whole == 5 * c + 3;
    let widths = if has_masks { vec![c, c, c, c, c, 1, 1, 1] } else { vec![c; 5] };
    let parts = cut_into(n, x, &widths)?;
    let before = parts[4];
    let mut input = gate(n, parts[0], rows[0], before)?;
    let mut forget = gate(n, parts[1], rows[1], before)?;
    if has_masks {
        (input, forget) = (n.times(input, parts[5])?, n.times(forget, parts[6])?);
    }
    let fresh = n.emit(Tanh, &[parts[2]])?;
    let (kept, added) = (n.times(forget, before)?, n.times(input, fresh)?);
    let cell = n.plus(kept, added)?;
    let mut output = gate(n, parts[3], rows[2], cell)?;
    if has_masks {
        output = n.times(output, parts[7])?;
    }
    let squashed = n.emit(Tanh, &[cell])?;
    let m = n.times(output, squashed)?;
    Ok(n.concat(&[cell, m], 1)?.into())
}

// (x, r of before, c of before) to (r, c).
fn lstm_projected(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["CellDim", "OutputDim"]);
    let x = n.input(0)?;
    let (projection, inputs) = (shape(n, "ProjectionParams")?, shape(n, "InputParams")?);
    let (&[projected, cells], &[_, dim]) = (&projection[..], &inputs[..]) else {
        return Err(n.fail("its parameters must be matrices"));
    };
    let parts = cut_into(n, x, &[dim as i64, projected as i64, cells as i64])?;
    n.ignore(&["InputDim"]);
    let (w, r, bias) = (array(n, "InputParams")?, array(n, "RecurrentParams")?, array(n, "BiasParams")?);
    let (from_x, from_r) = (n.product(parts[0], w, true)?, n.product(parts[1], r, true)?);
    let sum = n.plus(from_x, bias)?;
    let sum = n.plus(sum, from_r)?;
    let gates = cut_into(n, sum, &[cells as i64; 4])?;
    let before = parts[2];
    let peepholes = (array(n, "PeepholeInput")?, array(n, "PeepholeForget")?, array(n, "PeepholeOutput")?);
    let fresh = n.emit(Tanh, &[gates[0]])?;
    let input = gate(n, gates[1], peepholes.0, before)?;
    let forget = gate(n, gates[2], peepholes.1, before)?;
    let (kept, added) = (n.times(forget, before)?, n.times(input, fresh)?);
    let mut cell = n.plus(kept, added)?;
    let clip: f64 = n.attr("CellClip", 50.0)?;
    if clip > 0.0 {
        cell = n.between(cell, -clip, clip)?;
    }
    let output = gate(n, gates[3], peepholes.2, cell)?;
    let squashed = n.emit(Tanh, &[cell])?;
    let m = n.times(output, squashed)?;
    let w = array(n, "ProjectionParams")?;
    let r = n.product(m, w, true)?;
    Ok(n.concat(&[r, cell], 1)?.into())
}

// (x, y of before) to y.
fn recurrent(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["InputDim", "OutputDim"]);
    let x = n.input(0)?;
    let (forward, own) = (shape(n, "ForwardParams")?, shape(n, "RecurrentParams")?);
    let (&[_, dim], &[_, before]) = (&forward[..], &own[..]) else { return Err(n.fail("its parameters must be matrices")) };
    let parts = cut_into(n, x, &[dim as i64, before as i64])?;
    let (w, r, bias) = (array(n, "ForwardParams")?, array(n, "RecurrentParams")?, array(n, "BiasParams")?);
    let (from_x, from_own) = (n.product(parts[0], w, true)?, n.product(parts[1], r, true)?);
    let sum = n.plus(from_x, bias)?;
    let sum = n.plus(sum, from_own)?;
    Ok(n.emit(Tanh, &[sum])?.into())
}

// (1 - z) h + z c.
fn mix(n: &mut NodeCx<'_>, z: Value, h: Value, before: Value) -> Result<Value> {
    let other = n.sub_from(1.0, z)?;
    let (new, old) = (n.times(other, h)?, n.times(z, before)?);
    n.plus(new, old)
}

// (z, r, part of h, c of before, s of before) to (h, c); without a projection s is c.
fn gru(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (c, r): (i64, i64) = (n.required("CellDim")?, n.required("RecurrentDim")?);
    let widths = if c == r { vec![c, r, c, c] } else { vec![c, r, c, c, r] };
    let parts = cut_into(n, x, &widths)?;
    let (before, own) = (parts[3], *parts.last().unwrap_or(&parts[3]));
    let weights = array(n, "w_h")?;
    let reset = n.times(parts[1], own)?;
    let reset = n.product(reset, weights, true)?;
    let sum = n.plus(parts[2], reset)?;
    let h = n.emit(Tanh, &[sum])?;
    let cell = mix(n, parts[0], h, before)?;
    Ok(n.concat(&[h, cell], 1)?.into())
}

// (z, part of h, c of before) to (h, c).
fn output_gru(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let c: i64 = n.required("CellDim")?;
    let parts = cut_into(n, x, &[c; 3])?;
    let weights = array(n, "w_h")?;
    let seen = n.times(parts[2], weights)?;
    let sum = n.plus(parts[1], seen)?;
    let h = n.emit(Tanh, &[sum])?;
    let cell = mix(n, parts[0], h, parts[2])?;
    Ok(n.concat(&[h, cell], 1)?.into())
}
