//! RNN: layers of LSTM, GRU or plain cells over `[time, batch, size]`, one or both ways. All weights lie in one vector: for each
//! layer and direction those of the input and of the state, then likewise the biases.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::recurrent::{Direction, GruSequence, LstmSequence, RnnSequence};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[rule("RNN", 0, rnn)];

#[derive(Clone, Copy, PartialEq)]
enum Cell {
    Lstm,
    Gru,
    Plain(&'static str),
}

impl Cell {
    fn gates(self) -> i64 {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Plain(_) => 1,
        }
    }
    // Where each gate of the IR stands in MXNet.
    fn order(self) -> &'static [usize] {
        match self {
            Cell::Lstm => &[1, 0, 2, 3],
            Cell::Gru => &[1, 0, 2],
            Cell::Plain(_) => &[0],
        }
    }
}

struct Sizes {
    cell: Cell,
    hidden: i64,
    layers: i64,
    directions: i64,
    input: i64,
}

impl Sizes {
    fn of(n: &NodeCx<'_>, parameters: Value) -> Result<Sizes> {
        let cell = match n.word("mode", "").as_str() {
            "lstm" => Cell::Lstm,
            "gru" => Cell::Gru,
            "rnn_tanh" => Cell::Plain("tanh"),
            "rnn_relu" => Cell::Plain("relu"),
            other => return Err(n.unknown_word("mode", other, "lstm, gru, rnn_tanh, rnn_relu")),
        };
        let (hidden, layers) = (n.needed_int("state_size")?, n.needed_int("num_layers")?);
        let directions = if n.flag("bidirectional", false)? { 2 } else { 1 };
        if !(1..=1 << 20).contains(&hidden) || !(1..=1 << 10).contains(&layers) {
            return Err(n.fail(format!("has {layers} layers of {hidden} states")));
        }
        let total = n.dim(parameters, 0).ok_or_else(|| n.unsupported("the length of the parameters must be known"))?;
        // What the layers behind the first do not take belongs to the first.
        let per_row = hidden * directions * cell.gates();
        let later = (layers - 1) * (directions * hidden + hidden + 2) * per_row;
        let input = (total - later) / per_row - hidden - 2;
        let sizes = Sizes { cell, hidden, layers, directions, input };
        if input < 1 || (input + hidden + 2) * per_row + later != total {
            return Err(n.fail(format!("{total} parameters do not fit {layers} layers of {hidden} states")));
        }
        Ok(sizes)
    }
    fn input_of(&self, layer: i64) -> i64 {
        if layer == 0 { self.input } else { self.directions * self.hidden }
    }
}

fn rnn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["p", "layout"]);
    for name in ["projection_size", "lstm_state_clip_min", "lstm_state_clip_max"] {
        if n.text(name).is_some() {
            return Err(n.unsupported(format!("attribute `{name}` is set; it must be None")));
        }
    }
    n.ignore(&["lstm_state_clip_nan"]);
    let (x, parameters, state) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let s = Sizes::of(n, parameters)?;
    let cell_state = if s.cell == Cell::Lstm { Some(n.input(3)?) } else { None };
    let lengths = match n.flag("use_sequence_length", false)? {
        true => Some(n.input(if cell_state.is_some() { 4 } else { 3 })?),
        false => None,
    };
    n.flag("state_outputs", false)?;
    // The IR has the batch in front.
    let mut rows = n.transpose(x, &[1, 0, 2])?;
    let lengths = match lengths {
        Some(lengths) => n.convert(lengths, ElementType::I32)?,
        None => {
            let (time, batch) = (n.length(rows, 1)?, n.size(rows, 0)?);
            let time = n.convert(time, ElementType::I32)?;
            n.stretch(time, batch)?
        }
    };
    let weights = Weights { parameters, at: 0 };
    let layers = weights.cut(n, &s)?;
    let (mut last, mut last_cells) = (vec![], vec![]);
    for (i, layer) in layers.iter().enumerate() {
        let first = states_of(n, state, i as i64, &s, rows)?;
        let first_cell = cell_state.map(|c| states_of(n, c, i as i64, &s, rows)).transpose()?;
        let outputs = sequence(n, &s, rows, first, first_cell, lengths, layer)?;
        // [N, D, T, H] to [N, T, D H]
        let y = n.transpose(outputs[0], &[0, 2, 1, 3])?;
        rows = n.reshape(y, &[0, 0, s.directions * s.hidden])?;
        last.push(n.transpose(outputs[1], &[1, 0, 2])?);
        if let Some(cells) = outputs.get(2) {
            last_cells.push(n.transpose(*cells, &[1, 0, 2])?);
        }
    }
    let mut all = vec![n.transpose(rows, &[1, 0, 2])?, n.concat(&last, 0)?];
    if !last_cells.is_empty() {
        all.push(n.concat(&last_cells, 0)?);
    }
    Ok(all.into())
}

// The begin states of a layer as `[batch, directions, hidden]`.
fn states_of(n: &mut NodeCx<'_>, states: Value, layer: i64, s: &Sizes, rows: Value) -> Result<Value> {
    let d = s.directions;
    let part = if s.layers == 1 { states } else { n.part(states, layer * d, (layer + 1) * d, 0)? };
    let part = n.transpose(part, &[1, 0, 2])?;
    if n.dim(part, 0) != Some(1) || n.dim(rows, 0) == Some(1) {
        return Ok(part);
    }
    // One that was made without knowing the batch.
    let batch = n.size(rows, 0)?;
    let ones = n.i64s(&[1, 1])?;
    let shape = n.concat(&[batch, ones], 0)?;
    n.stretch(part, shape)
}

/// One layer: `W [D, G H, in]`, `R [D, G H, H]`, `B`.
struct Layer {
    w: Value,
    r: Value,
    b: Value,
}

/// The vector of all weights, cut from the front.
struct Weights {
    parameters: Value,
    at: i64,
}

impl Weights {
    fn take(&mut self, n: &mut NodeCx<'_>, rows: i64, columns: i64) -> Result<Value> {
        let part = n.part(self.parameters, self.at, self.at + rows * columns, 0)?;
        self.at += rows * columns;
        n.reshape(part, &[rows, columns])
    }

    fn cut(mut self, n: &mut NodeCx<'_>, s: &Sizes) -> Result<Vec<Layer>> {
        let rows = s.cell.gates() * s.hidden;
        let mut matrices = vec![];
        for layer in 0..s.layers {
            let (mut w, mut r) = (vec![], vec![]);
            for _ in 0..s.directions {
                let matrix = self.take(n, rows, s.input_of(layer))?;
                w.push(by_gates(n, matrix, s)?);
                let matrix = self.take(n, rows, s.hidden)?;
                r.push(by_gates(n, matrix, s)?);
            }
            matrices.push((n.concat(&w, 0)?, n.concat(&r, 0)?));
        }
        let mut layers = vec![];
        for (w, r) in matrices {
            let mut b = vec![];
            for _ in 0..s.directions {
                let of_input = self.take(n, rows, 1)?;
                let of_state = self.take(n, rows, 1)?;
                b.push(bias(n, of_input, of_state, s)?);
            }
            layers.push(Layer { w, r, b: n.concat(&b, 0)? });
        }
        Ok(layers)
    }
}

// Gates in the order of the IR, behind an axis of one for the direction.
fn by_gates(n: &mut NodeCx<'_>, matrix: Value, s: &Sizes) -> Result<Value> {
    let matrix = match s.cell.order() {
        [_] => matrix,
        order => {
            let gates = n.split_equally(matrix, 0, order.len())?;
            let gates: Vec<Value> = order.iter().map(|i| gates[*i]).collect();
            n.concat(&gates, 0)?
        }
    };
    n.unsqueeze(matrix, &[0])
}

// Both biases of a gate count as one, but for the last gate of GRU, where the reset stands between them.
fn bias(n: &mut NodeCx<'_>, of_input: Value, of_state: Value, s: &Sizes) -> Result<Value> {
    let all = match s.cell {
        Cell::Gru => {
            let (x, h) = (n.split_equally(of_input, 0, 3)?, n.split_equally(of_state, 0, 3)?);
            let (update, reset) = (n.plus(x[1], h[1])?, n.plus(x[0], h[0])?);
            n.concat(&[update, reset, x[2], h[2]], 0)?
        }
        _ => {
            let sum = n.plus(of_input, of_state)?;
            let sum = by_gates(n, sum, s)?;
            return n.squeeze(sum, &[2]);
        }
    };
    n.reshape(all, &[1, -1])
}

fn sequence(
    n: &mut NodeCx<'_>,
    s: &Sizes,
    rows: Value,
    first: Value,
    first_cell: Option<Value>,
    lengths: Value,
    layer: &Layer,
) -> Result<Vec<Value>> {
    let direction = if s.directions == 2 { Direction::Bidirectional } else { Direction::Forward };
    let hidden_size = s.hidden as u64;
    let states: Vec<Value> = [first].into_iter().chain(first_cell).collect();
    let inputs = [&[rows][..], &states, &[lengths, layer.w, layer.r, layer.b]].concat();
    let (alpha, beta) = (vec![], vec![]);
    let names = |all: &[&str]| all.iter().map(|a| a.to_string()).collect::<Vec<_>>();
    match s.cell {
        Cell::Lstm => n.emit_all(
            LstmSequence {
                hidden_size,
                activations: names(&["sigmoid", "tanh", "tanh"]),
                activations_alpha: alpha,
                activations_beta: beta,
                clip: 0.0,
                direction,
            },
            &inputs,
        ),
        Cell::Gru => n.emit_all(
            GruSequence {
                hidden_size,
                activations: names(&["sigmoid", "tanh"]),
                activations_alpha: alpha,
                activations_beta: beta,
                clip: 0.0,
                direction,
                linear_before_reset: true,
            },
            &inputs,
        ),
        Cell::Plain(function) => n.emit_all(
            RnnSequence {
                hidden_size,
                activations: names(&[function]),
                activations_alpha: alpha,
                activations_beta: beta,
                clip: 0.0,
                direction,
            },
            &inputs,
        ),
    }
}
