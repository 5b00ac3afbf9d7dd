//! Cells of recurrent layers in one operation, as the layers of TensorFlow 1 write them, and such a cell over a sequence.

use super::common::shapes::scalar;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Body, BodyInput, BodyOutput, Model, Result, Slicing, Value};
use carafe_ops::activation::{Clamp, Sigmoid};
use carafe_ops::control::TensorIterator;
use carafe_ops::math::Tanh;
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("BlockLSTM", 0, |n| block_lstm(n, Gates::Icfo)),
    rule("BlockLSTMV2", 0, |n| block_lstm(n, Gates::Ifco)),
    rule("GRUBlockCell", 0, gru_cell),
    rule("LSTMBlockCell", 0, |n| {
        let kind = Lstm::of(n, Gates::Icfo)?;
        let inputs = [n.input(0)?, n.input(1)?, n.input(2)?];
        let weights = [n.input(3)?, n.input(4)?, n.input(5)?, n.input(6)?, n.input(7)?];
        Ok(kind.step(n, inputs, weights)?.to_vec().into())
    }),
];

/// The order in which the weights hold the gates: input, forget, new cell, output.
#[derive(Clone, Copy)]
enum Gates {
    Icfo,
    Ifco,
}

struct Lstm {
    gates: Gates,
    forget_bias: f64,
    clip: f64,
    peephole: bool,
}

impl Lstm {
    fn of(n: &NodeCx<'_>, gates: Gates) -> Result<Lstm> {
        // The second version has no bias of its own and does not clip unless told.
        let (bias, clip) = match gates {
            Gates::Icfo => (n.attr("forget_bias", 1.0)?, 3.0),
            Gates::Ifco => (0.0, 0.0),
        };
        Ok(Lstm {
            gates,
            forget_bias: bias,
            clip: n.attr("cell_clip", clip)?,
            peephole: n.attr("use_peephole", false)?,
        })
    }

    // Of x, the cell and the state before it: i, cs, f, o, ci, co, h.
    fn step<C: Compose>(
        &self,
        c: &mut C,
        [x, cell, state]: [Value; 3],
        [w, wci, wcf, wco, b]: [Value; 5],
    ) -> Result<[Value; 7]> {
        let both = c.put(carafe_ops::movement::Concat { axis: 1 }, &[x, state])?;
        let sums = c.product(both, w, false)?;
        let sums = c.plus(sums, b)?;
        let parts = c.split_equally(sums, 1, 4)?;
        let (i, new, f, o) = match self.gates {
            Gates::Icfo => (parts[0], parts[1], parts[2], parts[3]),
            Gates::Ifco => (parts[0], parts[2], parts[1], parts[3]),
        };
        let f = c.plus_number(f, self.forget_bias)?;
        let (i, f) = (self.peep(c, i, cell, wci)?, self.peep(c, f, cell, wcf)?);
        let (i, f, new) = (c.put(Sigmoid, &[i])?, c.put(Sigmoid, &[f])?, c.put(Tanh, &[new])?);
        let (added, kept) = (c.times(new, i)?, c.times(cell, f)?);
        let mut cell = c.plus(added, kept)?;
        if self.clip > 0.0 {
            cell = c.put(Clamp { min: -self.clip, max: self.clip }, &[cell])?;
        }
        let o = self.peep(c, o, cell, wco)?;
        let o = c.put(Sigmoid, &[o])?;
        let seen = c.put(Tanh, &[cell])?;
        let state = c.times(seen, o)?;
        Ok([i, cell, f, o, new, seen, state])
    }

    // A gate also looks at the cell.
    fn peep<C: Compose>(&self, c: &mut C, gate: Value, cell: Value, weight: Value) -> Result<Value> {
        if !self.peephole {
            return Ok(gate);
        }
        let seen = c.times(cell, weight)?;
        c.plus(gate, seen)
    }
}

// The cell over `[time, batch, size]`: seven outputs for each step, zeros from `seq_len_max` on.
fn block_lstm(n: &mut NodeCx<'_>, gates: Gates) -> Result<Outputs> {
    let kind = Lstm::of(n, gates)?;
    let (longest, x) = (n.input(0)?, n.input(1)?);
    let outer = [x, n.input(2)?, n.input(3)?, n.input(4)?, n.input(5)?, n.input(6)?, n.input(7)?, n.input(8)?];
    let mut body = Model::new("block_lstm");
    let mut inside = vec![];
    for (i, v) in outer.iter().enumerate() {
        let fact = n.fact(*v).clone();
        let mut shape = fact.shape.clone();
        if i == 0 {
            shape = shape.dims().map_or(shape.clone(), |d| {
                let rest = d.iter().skip(1).copied();
                carafe_tensor::PartialShape::new([carafe_tensor::Dim::known(1)].into_iter().chain(rest))
            });
        }
        inside.push(body.parameter(&format!("in_{i}"), fact.ty, shape)?);
    }
    let step = body.without_axes(inside[0], &[0])?;
    let weights = [inside[3], inside[4], inside[5], inside[6], inside[7]];
    let given = kind.step(&mut body, [step, inside[1], inside[2]], weights)?;
    let mut outputs = vec![];
    for (i, v) in given.iter().enumerate() {
        let row = body.with_axes(*v, &[0])?;
        body.result(&format!("row_{i}"), row)?;
        outputs.push(BodyOutput { outer: i, result: i, slicing: Some(Slicing::along(0)) });
    }
    // The cell and the state of a step are those that the next one begins with.
    body.result("cell", given[1])?;
    body.result("state", given[6])?;
    let back = |i: usize| [(1, 7), (2, 8)].iter().find(|(p, _)| *p == i).map(|(_, result)| *result);
    let mut whole = Body::new(body);
    whole.inputs = (0..outer.len())
        .map(|i| BodyInput {
            outer: Some(i),
            parameter: i,
            slicing: (i == 0).then(|| Slicing::along(0)),
            back_edge: back(i),
        })
        .collect();
    whole.outputs = outputs;
    let all = n.emit_all(TensorIterator { body: whole }, &outer)?;
    let time = n.length(x, 0)?;
    let steps = n.count_to(time, ElementType::I64)?;
    let longest = n.convert(longest, ElementType::I64)?;
    let longest = scalar(n, longest)?;
    let inside = n.less(steps, longest)?;
    let inside = n.with_axes(inside, &[1, 2])?;
    let nothing = n.scalar_like(x, 0.0)?;
    let masked = all.into_iter().map(|v| n.choose(inside, v, nothing)).collect::<Result<Vec<_>>>()?;
    Ok(masked.into())
}

// Of x and the state before it: r, u, c, h.
fn gru_cell(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, state) = (n.input(0)?, n.input(1)?);
    let (w_gates, w_new, b_gates, b_new) = (n.input(2)?, n.input(3)?, n.input(4)?, n.input(5)?);
    let both = n.concat(&[x, state], 1)?;
    let gates = n.product(both, w_gates, false)?;
    let gates = n.plus(gates, b_gates)?;
    let gates = n.put(Sigmoid, &[gates])?;
    let parts = n.split_equally(gates, 1, 2)?;
    let (reset, update) = (parts[0], parts[1]);
    let kept = n.times(state, reset)?;
    let both = n.concat(&[x, kept], 1)?;
    let new = n.product(both, w_new, false)?;
    let new = n.plus(new, b_new)?;
    let new = n.put(Tanh, &[new])?;
    let old = n.times(update, state)?;
    let rest = n.sub_from(1.0, update)?;
    let fresh = n.times(rest, new)?;
    let next = n.plus(fresh, old)?;
    Ok(vec![reset, update, new, next].into())
}
