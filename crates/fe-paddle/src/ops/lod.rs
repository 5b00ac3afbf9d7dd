//! Operators over packed sequences, which Paddle tells apart by a level of detail (LoD) beside the tensor. There is none here: one
//! inference is one sequence, and all rows of a value belong to it. The reader warns of programs with such operators.

use super::movement::reversed;
use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Body, BodyInput, BodyOutput, Model, Result, Slicing, Value};
use carafe_ops::activation::{Relu, Sigmoid, Softmax};
use carafe_ops::control::Loop;
use carafe_ops::convert::Convert;
use carafe_ops::indexing::GatherTree;
use carafe_ops::math::Tanh;
use carafe_ops::movement::{Reshape, Tile};
use carafe_ops::recurrent::{Direction, GruSequence, LstmSequence};
use carafe_ops::search::TopK;
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(super) const RULES: &[StaticRule] = &[
    rule("crf_decoding", 0, crf_decoding),
    rule("gru", 0, gru),
    rule("lod_reset", 0, lod_reset),
    rule("lstm", 0, lstm),
    rule("sequence_expand", 0, sequence_expand),
    rule("sequence_pool", 0, sequence_pool),
    rule("sequence_reverse", 0, sequence_reverse),
    rule("sequence_softmax", 0, sequence_softmax),
];

/// The largest state and the most tags. Square matrices of that many rows are made here, so a file must not ask for any size.
const LARGEST: usize = 2048;

/// Whether an operator has to know where one sequence ends and the next begins.
pub(crate) fn is_over_sequences(operator: &str) -> bool {
    RULES.iter().any(|r| r.op_type == operator)
}

/// A function of a recurrent cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Function {
    Identity,
    Relu,
    Sigmoid,
    Tanh,
}

impl Function {
    fn read(n: &NodeCx<'_>, attribute: &str, default: &str) -> Result<Function> {
        let name: String = n.attr(attribute, default.to_string())?;
        match name.as_str() {
            "identity" => Ok(Function::Identity),
            "relu" => Ok(Function::Relu),
            "sigmoid" => Ok(Function::Sigmoid),
            "tanh" => Ok(Function::Tanh),
            other => Err(n.unsupported(format!("`{attribute}` is `{other}`"))),
        }
    }
    // The name that the operations know, where they do.
    fn name(self) -> Option<String> {
        match self {
            Function::Identity => None,
            Function::Relu => Some("relu".into()),
            Function::Sigmoid => Some("sigmoid".into()),
            Function::Tanh => Some("tanh".into()),
        }
    }
    fn put(self, model: &mut Model, v: Value) -> Result<Value> {
        match self {
            Function::Identity => Ok(v),
            Function::Relu => model.put(Relu, &[v]),
            Function::Sigmoid => model.put(Sigmoid, &[v]),
            Function::Tanh => model.put(Tanh, &[v]),
        }
    }
}

// A size that weights have.
fn known_size(n: &NodeCx<'_>, v: Value, axis: usize, what: &str) -> Result<usize> {
    let size = n.shape(v).dims().and_then(|dims| dims.get(axis)?.size());
    match size {
        Some(size) if size <= LARGEST => Ok(size),
        Some(size) => Err(n.unsupported(format!("{what} is {size}, more than {LARGEST}"))),
        None => Err(n.unsupported(format!("{what} must be known when the model is read"))),
    }
}

// The state that a sequence starts with, `[1, size]`.
fn start(n: &mut NodeCx<'_>, slot: &str, size: usize, like: Value) -> Result<Value> {
    match n.opt_slot(slot)? {
        Some(v) => n.reshape(v, &[1, size as i64]),
        None => n.constant(Tensor::zeros(n.ty(like), &[1, size])?),
    }
}

// A diagonal of `size` numbers each: the input of the cell is what Paddle has multiplied before.
fn diagonal(n: &mut NodeCx<'_>, order: &[(usize, f64)], size: usize, like: Value) -> Result<Value> {
    let side = order.len() * size;
    let mut all = vec![0.0; side * side];
    for (block, (from, sign)) in order.iter().enumerate() {
        for i in 0..size {
            all[(block * size + i) * side + from * size + i] = *sign;
        }
    }
    n.constant(Tensor::from_f64(n.ty(like), &[1, side, side], &all)?)
}

// Rows as a batch of one, and how many they are.
fn batch_of_one(n: &mut NodeCx<'_>, x: Value) -> Result<(Value, Value)> {
    Ok((n.unsqueeze(x, &[0])?, n.size(x, 0)?))
}

// Gates of the input are update, reset, candidate. The weights are two matrices one behind the other, `[size, 2 * size]` of the gates and
// `[size, size]` of the candidate, whatever their shape says. Without `origin_mode` the update gate weighs the candidate and not the
// state: the gate of GRUSequence is its complement, which a sigmoid is of the negated argument.
fn gru(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("Input")?;
    let weight = n.slot("Weight")?;
    let bias = n.opt_slot("Bias")?;
    n.ignore(&["is_test"]);
    let size = known_size(n, weight, 0, "the size of the state")?;
    let gate = Function::read(n, "gate_activation", "sigmoid")?;
    let candidate = Function::read(n, "activation", "tanh")?;
    let is_origin: bool = n.attr("origin_mode", false)?;
    let is_reverse: bool = n.attr("is_reverse", false)?;
    let (Some(f), Some(g)) = (gate.name(), candidate.name()) else {
        return Err(n.unsupported("an activation is `identity`"));
    };
    if !is_origin && gate != Function::Sigmoid {
        return Err(n.unsupported(format!("`gate_activation` is `{f}` and `origin_mode` is off")));
    }
    let sign = if is_origin { 1.0 } else { -1.0 };
    let h = start(n, "H0", size, x)?;
    let h = n.unsqueeze(h, &[0])?;
    let w = diagonal(n, &[(0, sign), (1, 1.0), (2, 1.0)], size, x)?;
    let (s, flat) = (size as i64, n.reshape(weight, &[-1])?);
    let of_gates = n.part(flat, 0, 2 * s * s, 0)?;
    let of_gates = n.reshape(of_gates, &[s, 2 * s])?;
    let of_gates = n.transpose(of_gates, &[1, 0])?;
    let of_candidate = n.part(flat, 2 * s * s, 3 * s * s, 0)?;
    let of_candidate = n.reshape(of_candidate, &[s, s])?;
    let of_candidate = n.transpose(of_candidate, &[1, 0])?;
    let r = n.concat(&[of_gates, of_candidate], 0)?;
    let signs: Vec<f64> = (0..3 * size).map(|i| if i < size { sign } else { 1.0 }).collect();
    let signs = n.constant(Tensor::from_f64(n.ty(x), &[3 * size, 1], &signs)?)?;
    let r = n.times(r, signs)?;
    let r = n.unsqueeze(r, &[0])?;
    let b = match bias {
        Some(b) => {
            let b = n.reshape(b, &[3 * s, 1])?;
            let b = n.times(b, signs)?;
            n.reshape(b, &[1, 3 * s])?
        }
        None => n.constant(Tensor::zeros(n.ty(x), &[1, 3 * size])?)?,
    };
    let (data, lengths) = batch_of_one(n, x)?;
    let op = GruSequence {
        hidden_size: size as u64,
        activations: vec![f, g],
        activations_alpha: vec![],
        activations_beta: vec![],
        clip: 0.0,
        direction: if is_reverse { Direction::Reverse } else { Direction::Forward },
        linear_before_reset: false,
    };
    let y = n.put(op, &[data, h, lengths, w, r, b])?;
    let y = n.reshape(y, &[-1, s])?;
    Ok(n.give(&[("Hidden", y)]))
}

// Gates are candidate, input, forget, output; behind their biases lie the peepholes of input, forget and output. LSTMSequence has no
// peepholes and gives no cell states but the last: a loop where one of both is asked for.
fn lstm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("Input")?;
    let weight = n.slot("Weight")?;
    let bias = n.opt_slot("Bias")?;
    n.ignore(&["is_test"]);
    let size = known_size(n, weight, 0, "the size of the state")?;
    let functions = [
        Function::read(n, "gate_activation", "sigmoid")?,
        Function::read(n, "candidate_activation", "tanh")?,
        Function::read(n, "cell_activation", "tanh")?,
    ];
    let has_peepholes: bool = n.attr("use_peepholes", true)?;
    let is_reverse: bool = n.attr("is_reverse", false)?;
    let (h, c) = (start(n, "H0", size, x)?, start(n, "C0", size, x)?);
    let s = size as i64;
    let mut peepholes = None;
    let mut b = None;
    if let Some(bias) = bias {
        let bias = n.reshape(bias, &[1, if has_peepholes { 7 * s } else { 4 * s }])?;
        b = Some(n.part(bias, 0, 4 * s, 1)?);
        if has_peepholes {
            peepholes = Some(n.part(bias, 4 * s, 7 * s, 1)?);
        }
    }
    let names: Vec<String> = functions.iter().filter_map(|f| f.name()).collect();
    if peepholes.is_some() || n.wants("Cell") || names.len() < functions.len() {
        let x = b.map_or(Ok(x), |b| n.plus(x, b))?;
        let (hidden, cell) = lstm_loop(n, x, weight, peepholes, (h, c), size, functions, is_reverse)?;
        return Ok(n.give(&[("Hidden", hidden), ("Cell", cell)]));
    }
    let order = [2, 1, 0, 3];
    let w = diagonal(n, &order.map(|from| (from, 1.0)), size, x)?;
    let parts = n.split_equally(weight, 1, 4)?;
    let r = n.concat(&order.map(|from| parts[from]), 1)?;
    let r = n.transpose(r, &[1, 0])?;
    let r = n.unsqueeze(r, &[0])?;
    let b = match b {
        Some(b) => {
            let parts = n.split_equally(b, 1, 4)?;
            n.concat(&order.map(|from| parts[from]), 1)?
        }
        None => n.constant(Tensor::zeros(n.ty(x), &[1, 4 * size])?)?,
    };
    let (data, lengths) = batch_of_one(n, x)?;
    let (h, c) = (n.unsqueeze(h, &[0])?, n.unsqueeze(c, &[0])?);
    let op = LstmSequence {
        hidden_size: size as u64,
        activations: names,
        activations_alpha: vec![],
        activations_beta: vec![],
        clip: 0.0,
        direction: if is_reverse { Direction::Reverse } else { Direction::Forward },
    };
    let y = n.put(op, &[data, h, c, lengths, w, r, b])?;
    let y = n.reshape(y, &[-1, s])?;
    Ok(n.give(&[("Hidden", y)]))
}

fn matrix(rows: usize, columns: usize) -> PartialShape {
    PartialShape::new([rows, columns].map(|d| Dim::known(d as i64)))
}

fn row(size: usize) -> PartialShape {
    matrix(1, size)
}

// One step for each row of the first input, which is cut; the states follow it, then what is the same in all steps. The body gives the
// new states first. Of the first `last` results the last one counts, the others are rows that are put together.
fn each_row(
    n: &mut NodeCx<'_>,
    mut model: Model,
    inputs: &[Value],
    states: usize,
    last: usize,
    is_reverse: bool,
) -> Result<Vec<Value>> {
    let results = model.results().len();
    let again = model.fixed(Tensor::from_f64(ElementType::Boolean, &[], &[1.0])?)?;
    model.result("condition", again)?;
    model.infer()?;
    let slicing = match is_reverse {
        true => Slicing { axis: 0, start: -1, end: 0, stride: -1, part_size: 1 },
        false => Slicing::along(0),
    };
    let mut body = Body::new(model);
    body.execution_condition = Some(results);
    for parameter in 0..inputs.len() {
        body.inputs.push(BodyInput {
            outer: Some(parameter + 2),
            parameter,
            slicing: (parameter == 0).then_some(slicing),
            back_edge: parameter.checked_sub(1).filter(|state| *state < states),
        });
    }
    for result in 0..results {
        let slicing = (result >= last).then_some(slicing);
        body.outputs.push(BodyOutput { outer: result, result, slicing });
    }
    let trips = n.length(inputs[0], 0)?;
    let condition = n.constant(Tensor::from_f64(ElementType::Boolean, &[], &[1.0])?)?;
    n.emit_all(Loop { body }, &[&[trips, condition], inputs].concat())
}

fn lstm_loop(
    n: &mut NodeCx<'_>,
    x: Value,
    weight: Value,
    peepholes: Option<Value>,
    (h, c): (Value, Value),
    size: usize,
    [gate, candidate, cell]: [Function; 3],
    is_reverse: bool,
) -> Result<(Value, Value)> {
    let ty = n.ty(x);
    let mut m = Model::default();
    let mx = m.parameter("x", ty, row(4 * size))?;
    let mh = m.parameter("h", ty, row(size))?;
    let mc = m.parameter("c", ty, row(size))?;
    let mw = m.parameter("w", ty, matrix(size, 4 * size))?;
    let mut inputs = vec![x, h, c, weight];
    let product = m.product(mh, mw, false)?;
    let sums = m.plus(mx, product)?;
    let [mut new, mut enter, mut forget, mut leave] = m.split_equally(sums, 1, 4)?[..] else {
        return Err(n.fail("an LSTM has four gates"));
    };
    let mut at_output = None;
    if let Some(peepholes) = peepholes {
        inputs.push(peepholes);
        let p = m.parameter("peepholes", ty, row(3 * size))?;
        let p = m.split_equally(p, 1, 3)?;
        for (gate, p) in [(&mut enter, p[0]), (&mut forget, p[1])] {
            let seen = m.times(mc, p)?;
            *gate = m.plus(*gate, seen)?;
        }
        at_output = Some(p[2]);
    }
    new = candidate.put(&mut m, new)?;
    enter = gate.put(&mut m, enter)?;
    forget = gate.put(&mut m, forget)?;
    let (added, kept) = (m.times(enter, new)?, m.times(forget, mc)?);
    let next = m.plus(added, kept)?;
    if let Some(p) = at_output {
        let seen = m.times(next, p)?;
        leave = m.plus(leave, seen)?;
    }
    leave = gate.put(&mut m, leave)?;
    let shown = cell.put(&mut m, next)?;
    let out = m.times(leave, shown)?;
    for (name, v) in [("h", out), ("c", next), ("hidden", out), ("cell", next)] {
        m.result(&format!("result/{name}"), v)?;
    }
    let all = each_row(n, m, &inputs, 2, 2, is_reverse)?;
    Ok((all[2], all[3]))
}

// Data stays, only the lengths of sequences would change.
fn lod_reset(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    n.ignore(&["target_lod", "append"]);
    n.ignore_slots(&["Y"]);
    Ok(n.give(&[("Out", x)]))
}

// The best path by Viterbi. Transitions are the weights of a start, of an end, and `[from, to]` between tags. A step adds a row to the
// scores and finds for each tag the best one before the next row; the walk back is a tree of parents, of which the best leaf counts.
fn crf_decoding(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("Emission")?;
    let transition = n.slot("Transition")?;
    let label = n.opt_slot("Label")?;
    if n.has_slot("Length") {
        return Err(n.unsupported("slot `Length` is given: padded sequences"));
    }
    let tags = known_size(n, transition, 1, "the number of tags")?;
    let ty = n.ty(x);
    let first = n.part(transition, 0, 1, 0)?;
    let last = n.part(transition, 1, 2, 0)?;
    let between = n.part(transition, 2, tags as i64 + 2, 0)?;
    let between = n.transpose(between, &[1, 0])?;

    let mut m = Model::default();
    let mx = m.parameter("x", ty, row(tags))?;
    let before = m.parameter("before", ty, row(tags))?;
    let to_from = m.parameter("between", ty, matrix(tags, tags))?;
    let scores = m.plus(before, mx)?;
    let ways = m.plus(scores, to_from)?;
    let one = m.index(1)?;
    let found = m.put_all(best(1), &[ways, one])?;
    let flat = m.indices(&[1, tags as i64])?;
    let reshape = Reshape { special_zero: false };
    let (next, parents) = (m.put(reshape.clone(), &[found[0], flat])?, m.put(reshape, &[found[1], flat])?);
    for (name, v) in [("next", next), ("scores", scores), ("parents", parents)] {
        m.result(&format!("result/{name}"), v)?;
    }
    let all = each_row(n, m, &[x, first, between], 1, 2, false)?;
    let (scores, parents) = (all[1], all[2]);

    // The parents of a row are found in the step before; the first row has none.
    let none = n.constant(Tensor::zeros(ElementType::I32, &[1, tags])?)?;
    let parents = n.concat(&[none, parents], 0)?;
    let parents = n.part(parents, 0, -1, 0)?;
    let parents = n.unsqueeze(parents, &[1])?;
    let ids: Vec<f64> = (0..tags).map(|i| i as f64).collect();
    let ids = n.constant(Tensor::from_f64(ElementType::I32, &[1, 1, tags], &ids)?)?;
    let shape = n.shape_of(parents)?;
    let ids = n.stretch(ids, shape)?;
    let length = n.size(x, 0)?;
    let length = n.convert(length, ElementType::I32)?;
    let end = n.constant(Tensor::from_f64(ElementType::I32, &[], &[-1.0])?)?;
    let paths = n.put(GatherTree, &[ids, parents, length, end])?;
    let scores = n.plus(scores, last)?;
    let one = n.i64(1)?;
    let leaf = n.emit_all(best(1), &[scores, one])?[1];
    let leaf = n.reshape(leaf, &[1])?;
    let path = n.gather(paths, leaf, 2)?;
    let path = n.reshape(path, &[-1, 1])?;
    let mut path = n.convert(path, ElementType::I64)?;
    if let Some(label) = label {
        let label = n.convert(label, ElementType::I64)?;
        let label = n.reshape(label, &[-1, 1])?;
        let is_right = n.equal(path, label)?;
        path = n.put(Convert { destination_type: ElementType::I64 }, &[is_right])?;
    }
    Ok(n.give(&[("ViterbiPath", path)]))
}

// The first of the largest.
fn best(axis: i64) -> TopK {
    TopK { axis, mode: TopKMode::Max, sort: TopKSort::Value, index_element_type: ElementType::I32, stable: true }
}

// The whole of `X` once for each row of `Y`.
fn sequence_expand(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, y) = (n.slot("X")?, n.slot("Y")?);
    let level: i64 = n.attr("ref_level", -1)?;
    if level > 0 {
        return Err(n.unsupported(format!("`ref_level` is {level}: sequences of sequences")));
    }
    let rank = n.known_rank(x)?;
    let mut times = vec![n.size(y, 0)?];
    if rank > 1 {
        times.push(n.i64s(&vec![1; rank - 1])?);
    }
    let times = n.concat(&times, 0)?;
    let out = n.put(Tile, &[x, times])?;
    Ok(n.give(&[("Out", out)]))
}

fn sequence_pool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    n.ignore(&["is_test", "pad_value"]);
    let kind: String = n.attr("pooltype", "AVERAGE".to_string())?;
    let out = match kind.as_str() {
        "AVERAGE" => n.mean_over(x, &[0], true)?,
        "SUM" => n.sum_over(x, &[0], true)?,
        "MAX" => n.max_over(x, &[0], true)?,
        "FIRST" => n.part(x, 0, 1, 0)?,
        "LAST" => n.part(x, -1, i64::MAX, 0)?,
        "SQRT" => {
            let sum = n.sum_over(x, &[0], true)?;
            let rows = n.length(x, 0)?;
            let rows = n.convert_like(rows, x)?;
            let root = n.sqrt(rows)?;
            n.over(sum, root)?
        }
        other => return Err(n.unsupported(format!("`pooltype` is `{other}`"))),
    };
    Ok(n.give(&[("Out", out)]))
}

fn sequence_reverse(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let y = reversed(n, x, &[0])?;
    Ok(n.give(&[("Y", y)]))
}

// Of one number a row.
fn sequence_softmax(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    n.ignore(&["use_cudnn", "data_format"]);
    let y = n.put(Softmax { axis: 0 }, &[x])?;
    Ok(n.give(&[("Out", y)]))
}
