//! Recurrent layers. Their states are variables, which are read before the first step and kept behind the last. Plain LSTMs
//! become sequence operations; whatever has more (peepholes, projections, clipping, normalised or quantised gates) runs its
//! step in a loop over time (`recurrent_steps`).

use super::recurrent_steps::{Cell, Grid, LstmCell, RnnCell, Way, iterate};
use super::state::assign;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::recurrent::{Direction, LstmSequence};
use carafe_ops::state::ReadValue;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BIDIRECTIONAL_SEQUENCE_LSTM", 1, bidirectional_lstm),
    rule("BIDIRECTIONAL_SEQUENCE_RNN", 1, bidirectional_rnn),
    rule("LSTM", 1, lstm),
    rule("RNN", 1, rnn),
    rule("SVDF", 1, svdf),
    rule("UNIDIRECTIONAL_SEQUENCE_LSTM", 1, unidirectional_lstm),
    rule("UNIDIRECTIONAL_SEQUENCE_RNN", 1, unidirectional_rnn),
];

/// Options that say how kernels compute, not what.
const KERNELS: &[&str] = &["asymmetric_quantize_inputs", "intermediate_zero_points"];

// Keeps the new value of a state for the next inference.
fn keep(n: &mut NodeCx<'_>, old: Value, new: Value) -> Result<()> {
    let id = n.model().op_at::<ReadValue>(old.node).map(|r| r.variable_id.clone());
    match id {
        Some(id) => assign(n, id, new),
        None => Ok(()),
    }
}

fn optional<const N: usize>(n: &mut NodeCx<'_>, first: usize) -> Result<[Option<Value>; N]> {
    let mut all = [None; N];
    for (i, v) in all.iter_mut().enumerate() {
        *v = n.opt(first + i)?;
    }
    Ok(all)
}

/// The grids of quantised states, in the order of the inputs.
fn grids(n: &NodeCx<'_>) -> Result<Vec<Option<Grid>>> {
    let scales: Vec<f64> = n.attr("state_scales", vec![])?;
    let zeros: Vec<i64> = n.attr("state_zero_points", vec![])?;
    let bits: Vec<i64> = n.attr("state_bits", vec![])?;
    let grid = |((scale, zero), bits): ((&f64, &i64), &i64)| Grid::new(*scale, *zero, *bits);
    Ok(scales.iter().zip(&zeros).zip(&bits).map(grid).collect())
}

fn grid(all: &[Option<Grid>], which: usize) -> Option<Grid> {
    all.get(which).copied().flatten()
}

/// Operands of an LSTM in the order of the file; gates are input, forget, cell, output.
struct Lstm {
    weights: [Option<Value>; 4],
    recurrent: [Option<Value>; 4],
    /// Of the input, the forget and the output gate.
    peepholes: [Option<Value>; 3],
    biases: [Option<Value>; 4],
    projection: [Option<Value>; 2],
    norms: [Option<Value>; 4],
    /// Hidden and cell state, `[batch, size]`.
    states: [Value; 2],
    cell: LstmCell,
}

impl Lstm {
    // Seventeen operands from `first` on; the rest stands elsewhere.
    fn read(n: &mut NodeCx<'_>, first: usize, states: usize, norms: Option<usize>, pair: usize) -> Result<Lstm> {
        let clip = |n: &NodeCx<'_>, name: &str| n.attr::<f64>(name, 0.0).map(|c| (c > 0.0).then_some(c));
        let quantized = grids(n)?;
        // The last of the intermediate results is what a projection reads.
        let hidden: Vec<f64> = n.attr("intermediate_scales", vec![])?;
        let zeros: Vec<i64> = n.attr("intermediate_zero_points", vec![])?;
        let hidden = hidden.get(4).zip(zeros.get(4)).and_then(|(scale, zero)| Grid::new(*scale, *zero, 8));
        let state = grid(&quantized, 2 * pair);
        let cell = LstmCell {
            activation: n.attr("fused_activation_function", "TANH".to_string())?,
            cell_clip: clip(n, "cell_clip")?,
            projection_clip: clip(n, "proj_clip")?,
            hidden: hidden.filter(|_| state.is_some()),
            state,
            cell_state: grid(&quantized, 2 * pair + 1),
        };
        n.ignore(KERNELS);
        Ok(Lstm {
            weights: optional(n, first)?,
            recurrent: optional(n, first + 4)?,
            peepholes: optional(n, first + 8)?,
            biases: optional(n, first + 11)?,
            projection: optional(n, first + 15)?,
            norms: match norms {
                Some(at) => optional(n, at)?,
                None => [None; 4],
            },
            states: [n.input(states)?, n.input(states + 1)?],
            cell,
        })
    }

    fn fixed(&self) -> Vec<Option<Value>> {
        let all: [&[Option<Value>]; 6] =
            [&self.weights, &self.recurrent, &self.peepholes, &self.biases, &self.projection, &self.norms];
        all.concat()
    }

    // Gates of a sequence operation in its order f, i, c, o, where that does all that the layer does.
    fn as_sequence(&self, n: &mut NodeCx<'_>) -> Result<Option<[Value; 3]>> {
        let extras = [&self.peepholes[..], &self.projection[..], &self.norms[..]];
        if self.cell != LstmCell::default() || extras.concat().iter().any(Option::is_some) {
            return Ok(None);
        }
        let mut parts = vec![];
        for list in [&self.weights, &self.recurrent, &self.biases] {
            let [input, forget, cell, output] = *list;
            let (Some(forget), Some(cell), Some(output)) = (forget, cell, output) else { return Ok(None) };
            // Without an input gate it is what the forget gate leaves: 1 - sigmoid(x) is sigmoid(-x).
            let input = match input.filter(|_| self.weights[0].is_some()) {
                Some(input) => input,
                None => n.times_number(forget, -1.0)?,
            };
            let joined = n.concat(&[forget, input, cell, output], 0)?;
            parts.push(n.unsqueeze(joined, &[0])?);
        }
        Ok(Some([parts[0], parts[1], parts[2]]))
    }

    // Hidden states of all steps, `[time, batch, size]` as the data are.
    fn over_time(&self, n: &mut NodeCx<'_>, x: Value, way: Way) -> Result<Value> {
        let hidden = self.recurrent[1].and_then(|r| n.shape(r).dim(0).get());
        let (y, states) = match (self.as_sequence(n)?, hidden) {
            (Some([w, r, b]), Some(hidden)) if hidden > 0 => {
                let x = n.transpose(x, &[1, 0, 2])?;
                let (time, batch) = (n.length(x, 1)?, n.size(x, 0)?);
                let lengths = n.convert(time, ElementType::I32)?;
                let lengths = n.stretch(lengths, batch)?;
                let (h, c) = (n.unsqueeze(self.states[0], &[1])?, n.unsqueeze(self.states[1], &[1])?);
                let op = LstmSequence {
                    hidden_size: hidden as u64,
                    activations: ["sigmoid", "tanh", "tanh"].map(str::to_string).to_vec(),
                    activations_alpha: vec![],
                    activations_beta: vec![],
                    clip: 0.0,
                    direction: if way == Way::Forward { Direction::Forward } else { Direction::Reverse },
                };
                let found = n.emit_all(op, &[x, h, c, lengths, w, r, b])?;
                let y = n.squeeze(found[0], &[1])?;
                (n.transpose(y, &[1, 0, 2])?, vec![n.squeeze(found[1], &[1])?, n.squeeze(found[2], &[1])?])
            }
            _ => iterate(n, &self.cell, x, &self.states, &self.fixed(), way)?,
        };
        for (old, new) in self.states.into_iter().zip(states) {
            keep(n, old, new)?;
        }
        Ok(y)
    }
}

fn unidirectional_lstm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    if n.attr("diagonal_recurrent_tensors", false)? {
        return Err(n.unsupported("recurrent weights that are diagonals are not supported"));
    }
    let norms = (n.n_inputs() > 20).then_some(20);
    let layer = Lstm::read(n, 1, 18, norms, 0)?;
    let x = n.input(0)?;
    in_time(n, x, &mut |n, x| Ok(vec![layer.over_time(n, x, Way::Forward)?]))
}

fn bidirectional_lstm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    refuse_second_input(n, 39)?;
    let (forward, backward) = (Lstm::read(n, 1, 35, None, 0)?, Lstm::read(n, 18, 37, None, 1)?);
    let x = n.input(0)?;
    let merge: bool = n.attr("merge_outputs", false)?;
    in_time(n, x, &mut |n, x| {
        let both = vec![forward.over_time(n, x, Way::Forward)?, backward.over_time(n, x, Way::Backward)?];
        if merge { Ok(vec![n.concat(&both, -1)?]) } else { Ok(both) }
    })
}

fn refuse_second_input(n: &NodeCx<'_>, first: usize) -> Result<()> {
    match (first..n.n_inputs()).any(|i| n.has(i)) {
        true => Err(n.unsupported("a second input beside the first one is not supported")),
        false => Ok(()),
    }
}

// Data with time first, and results as the data came.
fn in_time(
    n: &mut NodeCx<'_>,
    x: Value,
    layer: &mut dyn FnMut(&mut NodeCx<'_>, Value) -> Result<Vec<Value>>,
) -> Result<Outputs> {
    let time_major: bool = n.attr("time_major", false)?;
    if time_major {
        return Ok(layer(n, x)?.into());
    }
    let x = n.transpose(x, &[1, 0, 2])?;
    let mut outputs = layer(n, x)?;
    for y in &mut outputs {
        *y = n.transpose(*y, &[1, 0, 2])?;
    }
    Ok(outputs.into())
}

// One step. The basic kernel has all weights in one tensor, its gates input, cell, forget, output, and gives its states.
fn lstm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let kernel: String = n.attr("kernel_type", "FULL".to_string())?;
    if kernel == "FULL" {
        let norms = (n.n_inputs() > 20).then_some(20);
        let layer = Lstm::read(n, 1, 18, norms, 0)?;
        let x = n.input(0)?;
        let states = layer.cell.step(n, x, &layer.states, &layer.fixed())?;
        keep(n, layer.states[0], states[0])?;
        keep(n, layer.states[1], states[1])?;
        return Ok(states[0].into());
    }
    let (x, hidden, weights, bias, state) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?, n.input(4)?);
    n.ignore(KERNELS);
    n.ignore(&["fused_activation_function", "cell_clip", "proj_clip", "intermediate_scales"]);
    let both = n.concat(&[x, hidden], -1)?;
    let sums = n.product(both, weights, true)?;
    let sums = n.plus(sums, bias)?;
    let gates = n.split_equally(sums, -1, 4)?;
    let (hidden, state) = super::recurrent_steps::update(n, [gates[0], gates[2], gates[1], gates[3]], state)?;
    // What else it gives is memory of the kernel.
    Ok(vec![hidden, state, both, sums].into())
}

/// Operands of a simple layer: weights, recurrent weights, bias, state.
fn rnn_operands(n: &mut NodeCx<'_>, first: usize) -> Result<(Vec<Option<Value>>, Value)> {
    n.ignore(KERNELS);
    let [w, r, b]: [Option<Value>; 3] = optional(n, first)?;
    Ok((vec![w, r, b], n.input(first + 3)?))
}

fn rnn_cell(n: &NodeCx<'_>, which: usize) -> Result<RnnCell> {
    let activation = n.attr("fused_activation_function", "NONE".to_string())?;
    Ok(RnnCell { activation, state: grid(&grids(n)?, which) })
}

fn rnn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (cell, x) = (rnn_cell(n, 0)?, n.input(0)?);
    let (fixed, state) = rnn_operands(n, 1)?;
    let states = cell.step(n, x, &[state], &fixed)?;
    keep(n, state, states[0])?;
    Ok(states[0].into())
}

fn rnn_over_time(n: &mut NodeCx<'_>, x: Value, first: usize, which: usize, way: Way) -> Result<Value> {
    let cell = rnn_cell(n, which)?;
    let (fixed, state) = rnn_operands(n, first)?;
    let (y, states) = iterate(n, &cell, x, &[state], &fixed, way)?;
    keep(n, state, states[0])?;
    Ok(y)
}

fn unidirectional_rnn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    in_time(n, x, &mut |n, x| Ok(vec![rnn_over_time(n, x, 1, 0, Way::Forward)?]))
}

fn bidirectional_rnn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    refuse_second_input(n, 9)?;
    let x = n.input(0)?;
    let merge: bool = n.attr("merge_outputs", false)?;
    in_time(n, x, &mut |n, x| {
        let both = vec![rnn_over_time(n, x, 1, 0, Way::Forward)?, rnn_over_time(n, x, 5, 1, Way::Backward)?];
        if merge { Ok(vec![n.concat(&both, -1)?]) } else { Ok(both) }
    })
}

// A memory of the last features, weighed over time; `rank` features make a unit.
fn svdf(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, features, times, bias, state) = (n.input(0)?, n.input(1)?, n.input(2)?, n.opt(3)?, n.input(4)?);
    let rank: i64 = n.attr("rank", 1)?;
    n.ignore(KERNELS);
    n.ignore(&["intermediate_scales"]);
    let size = |v: Value, axis| n.shape(v).dim(axis).get();
    let (Some(filters), Some(memory)) = (size(times, 0), size(times, 1)) else {
        return Err(n.unsupported("the shape of the weights must be known"));
    };
    if rank < 1 || filters % rank != 0 {
        return Err(n.fail(format!("{filters} filters cannot be of rank {rank}")));
    }
    let feature = n.product(x, features, true)?;
    let quantized = grid(&grids(n)?, 0);
    let feature = Grid::round(quantized, n, feature)?;
    let feature = n.unsqueeze(feature, &[-1])?;
    let old = n.reshape(state, &[-1, filters, memory])?;
    let old = n.part(old, 1, memory, -1)?;
    let new = n.concat(&[old, feature], -1)?;
    let weighed = n.times(new, times)?;
    let sums = n.sum_over(weighed, &[-1], false)?;
    let sums = n.reshape(sums, &[-1, filters / rank, rank])?;
    let mut y = n.sum_over(sums, &[-1], false)?;
    if let Some(bias) = bias {
        y = n.plus(y, bias)?;
    }
    let kept = n.reshape(new, &[-1, filters * memory])?;
    keep(n, state, kept)?;
    Ok(super::fused::activated(n, y)?.into())
}
