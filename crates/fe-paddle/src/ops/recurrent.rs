//! Recurrent networks: layers of LSTM, GRU and plain cells, in one direction or both.

use super::slots::Slots;
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::Transpose;
use carafe_ops::recurrent::{Direction, GruSequence, LstmSequence, RnnSequence};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[rule("rnn", 0, rnn)];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Lstm,
    Gru,
    Plain(&'static str),
}

impl Cell {
    fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Plain(_) => 1,
        }
    }
    // The order of the gates that the operations have, in Paddle's: `i f c o` becomes `f i c o`, `r z c` becomes `z r c`.
    fn order(self) -> &'static [i64] {
        match self {
            Cell::Lstm => &[1, 0, 2, 3],
            Cell::Gru => &[1, 0, 2],
            Cell::Plain(_) => &[0],
        }
    }
}

/// What a layer is made of.
struct Layer {
    w: Value,
    r: Value,
    b: Value,
}

// Data is `[time, batch, size]`, states `[layers * directions, batch, hidden]`. Weights of all layers and directions come before all
// biases, each time the one of the input and the one of the state.
fn rnn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut x = n.slot("Input")?;
    let states = n.inputs_named("PreState")?;
    let weights = n.inputs_named("WeightList")?;
    let lengths = n.opt_slot("SequenceLength")?;
    n.ignore(&["input_size", "dropout_prob", "seed"]);
    n.ignore_slots(&["dropout_state_in", "DropoutState"]);
    let mode: String = n.attr("mode", "LSTM".to_string())?;
    let cell = match mode.as_str() {
        "LSTM" => Cell::Lstm,
        "GRU" => Cell::Gru,
        "RNN_TANH" => Cell::Plain("tanh"),
        "RNN_RELU" => Cell::Plain("relu"),
        other => return Err(n.unsupported(format!("`mode` is `{other}`"))),
    };
    let hidden: u64 = n.attr("hidden_size", 0)?;
    let layers: usize = n.attr("num_layers", 1)?;
    let directions = if n.attr("is_bidirec", false)? { 2 } else { 1 };
    let wanted = 4 * layers * directions;
    if weights.len() != wanted {
        return Err(n.fail(format!("slot `WeightList` has {} values, expected {wanted}", weights.len())));
    }
    let kept = if cell == Cell::Lstm { 2 } else { 1 };
    if states.len() != kept {
        return Err(n.fail(format!("slot `PreState` has {} values, expected {kept}", states.len())));
    }
    let lengths = match lengths {
        Some(v) => n.convert(v, ElementType::I64)?,
        None => {
            let (time, batch) = (n.size(x, 0)?, n.size(x, 1)?);
            n.stretch(time, batch)?
        }
    };
    let mut ends: Vec<Vec<Value>> = vec![vec![]; kept];
    for layer in 0..layers {
        let at = layer * directions;
        let parts = layer_of(n, cell, &weights, at, directions, layers)?;
        // States of the layer, batch first.
        let mut start = vec![];
        for state in &states {
            let part = n.part(*state, at as i64, (at + directions) as i64, 0)?;
            start.push(n.transpose(part, &[1, 0, 2])?);
        }
        let data = n.transpose(x, &[1, 0, 2])?;
        let (y, last) = sequence(n, cell, data, &start, lengths, &parts, hidden, directions)?;
        // [batch, directions, time, hidden] becomes [time, batch, directions * hidden].
        let order = n.i64s(&[2, 0, 1, 3])?;
        let y = n.put(Transpose, &[y, order])?;
        x = n.reshape(y, &[0, 0, (directions as u64 * hidden) as i64])?;
        for (all, v) in ends.iter_mut().zip(last) {
            all.push(n.transpose(v, &[1, 0, 2])?);
        }
    }
    let mut out = vec![];
    for all in ends {
        out.push(n.concat(&all, 0)?);
    }
    let mut state = out.into_iter();
    let ports: Vec<String> = n.output_ports().to_vec();
    let items = ports.iter().map(|p| match p.as_str() {
        "Out" => Item::Tensor(x),
        "State" => state.next().map_or(Item::Nothing, Item::Tensor),
        _ => Item::Nothing,
    });
    Ok(Outputs(items.collect()))
}

// Gates in the order of the operations.
fn reordered(n: &mut NodeCx<'_>, v: Value, cell: Cell) -> Result<Value> {
    let order = cell.order();
    if order.len() == 1 {
        return Ok(v);
    }
    let parts = n.split_equally(v, 0, cell.gates())?;
    let parts: Vec<Value> = order.iter().map(|i| parts[*i as usize]).collect();
    n.concat(&parts, 0)
}

fn layer_of(
    n: &mut NodeCx<'_>,
    cell: Cell,
    weights: &[Value],
    at: usize,
    directions: usize,
    layers: usize,
) -> Result<Layer> {
    let biases = 2 * layers * directions;
    let (mut w, mut r, mut b) = (vec![], vec![], vec![]);
    for i in at..at + directions {
        for (from, into) in [(weights[2 * i], &mut w), (weights[2 * i + 1], &mut r)] {
            let v = reordered(n, from, cell)?;
            into.push(n.unsqueeze(v, &[0])?);
        }
        let of_input = reordered(n, weights[biases + 2 * i], cell)?;
        let of_state = reordered(n, weights[biases + 2 * i + 1], cell)?;
        let bias = match cell {
            // The last gate has its two biases apart: that of the state is inside of the reset.
            Cell::Gru => {
                let sum = n.plus(of_input, of_state)?;
                let parts = n.split_equally(sum, 0, 3)?;
                let (input, state) = (n.split_equally(of_input, 0, 3)?, n.split_equally(of_state, 0, 3)?);
                n.concat(&[parts[0], parts[1], input[2], state[2]], 0)?
            }
            _ => n.plus(of_input, of_state)?,
        };
        b.push(n.unsqueeze(bias, &[0])?);
    }
    Ok(Layer { w: n.concat(&w, 0)?, r: n.concat(&r, 0)?, b: n.concat(&b, 0)? })
}

fn sequence(
    n: &mut NodeCx<'_>,
    cell: Cell,
    x: Value,
    start: &[Value],
    lengths: Value,
    layer: &Layer,
    hidden_size: u64,
    directions: usize,
) -> Result<(Value, Vec<Value>)> {
    let direction = if directions == 2 { Direction::Bidirectional } else { Direction::Forward };
    let names = |list: &[&str]| list.iter().map(|s| s.to_string()).collect::<Vec<_>>();
    let (activations_alpha, activations_beta, clip) = (vec![], vec![], 0.0);
    let out = match cell {
        Cell::Lstm => n.emit_all(
            LstmSequence {
                hidden_size,
                activations: names(&["sigmoid", "tanh", "tanh"]),
                activations_alpha,
                activations_beta,
                clip,
                direction,
            },
            &[x, start[0], start[1], lengths, layer.w, layer.r, layer.b],
        )?,
        Cell::Gru => n.emit_all(
            GruSequence {
                hidden_size,
                activations: names(&["sigmoid", "tanh"]),
                activations_alpha,
                activations_beta,
                clip,
                direction,
                linear_before_reset: true,
            },
            &[x, start[0], lengths, layer.w, layer.r, layer.b],
        )?,
        Cell::Plain(activation) => n.emit_all(
            RnnSequence {
                hidden_size,
                activations: names(&[activation]),
                activations_alpha,
                activations_beta,
                clip,
                direction,
            },
            &[x, start[0], lengths, layer.w, layer.r, layer.b],
        )?,
    };
    Ok((out[0], out[1..].to_vec()))
}
