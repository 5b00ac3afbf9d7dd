//! LSTM, GRU and RNN as sequence operations. Those work on `[batch, time, input]` and give `[batch, direction, time,
//! hidden]`, and LSTM gates come as f, i, c, o instead of i, o, f, c. What they cannot do (peepholes, coupled gates, rarer
//! activations) is unrolled into steps by `recurrent_steps`.

use super::contrib::MS;
use super::contrib_quantized::dequantized;
use super::recurrent_steps::{self, Activation};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::recurrent::{Direction, GruSequence, LstmSequence, RnnSequence};
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("LSTM", 1, |n| recurrent(n, Kind::Lstm, stored)),
    rule("GRU", 1, |n| recurrent(n, Kind::Gru, stored)),
    rule("RNN", 1, |n| recurrent(n, Kind::Rnn, stored)),
    rule_in(MS, "DynamicQuantizeLSTM", 1, |n| recurrent(n, Kind::Lstm, quantized)),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Lstm,
    Gru,
    Rnn,
}

impl Kind {
    pub(super) fn gates(self) -> usize {
        match self {
            Kind::Lstm => 4,
            Kind::Gru => 3,
            Kind::Rnn => 1,
        }
    }
    fn defaults(self) -> &'static [&'static str] {
        match self {
            Kind::Lstm => &["sigmoid", "tanh", "tanh"],
            Kind::Gru => &["sigmoid", "tanh"],
            Kind::Rnn => &["tanh"],
        }
    }
    // Where the gates of the file stand in the operation's order.
    fn order(self) -> &'static [usize] {
        match self {
            Kind::Lstm => &[2, 0, 3, 1],
            Kind::Gru => &[0, 1, 2],
            Kind::Rnn => &[0],
        }
    }
}

/// The attributes that say how a cell computes.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub kind: Kind,
    pub hidden: usize,
    pub clip: f32,
    pub linear_before_reset: bool,
    pub input_forget: bool,
    /// For each direction.
    pub activations: Vec<Vec<Activation>>,
}

/// Inputs in the layout of the sequence operations, gates already in their order.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    pub x: Value,
    /// The hidden state and, for LSTM, the cell state: `[batch, direction, hidden]`.
    pub states: Vec<Value>,
    pub lengths: Value,
    pub w: Value,
    pub r: Value,
    pub b: Value,
    /// `[direction, 3 * hidden]`, gates i, o, f.
    pub peepholes: Option<Value>,
    /// Weights came without the axis of directions, so results have none either.
    pub bare: bool,
}

// How a node holds W and R.
type Weights = fn(&mut NodeCx<'_>) -> Result<[Value; 2]>;

fn stored(n: &mut NodeCx<'_>) -> Result<[Value; 2]> {
    Ok([n.input(1)?, n.input(2)?])
}

// As bytes and turned around: `[direction, input, gates * hidden]`. The activations stay what they are, where the original
// also puts them through bytes.
fn quantized(n: &mut NodeCx<'_>) -> Result<[Value; 2]> {
    let mut both = [n.input(1)?, n.input(2)?];
    for (i, w) in both.iter_mut().enumerate() {
        let (scale, zero) = (n.input(8 + 2 * i)?, n.input(9 + 2 * i)?);
        let directions = n.shape(*w).dim(0).get().ok_or_else(|| n.unsupported("the shape of W must be known"))?;
        let (scale, zero) = (n.reshape(scale, &[directions, 1, -1])?, n.reshape(zero, &[directions, 1, -1])?);
        let wide = dequantized(n, *w, scale, Some(zero), None)?;
        *w = n.transpose(wide, &[0, 2, 1])?;
    }
    Ok(both)
}

fn recurrent(n: &mut NodeCx<'_>, kind: Kind, weights: Weights) -> Result<Outputs> {
    let direction: String = n.attr("direction", "forward".to_string())?;
    let direction = match direction.to_ascii_lowercase().as_str() {
        "forward" => Direction::Forward,
        "reverse" => Direction::Reverse,
        "bidirectional" => Direction::Bidirectional,
        _ => return Err(n.fail(format!("direction must be forward, reverse or bidirectional, found `{direction}`"))),
    };
    let directions = if direction == Direction::Bidirectional { 2 } else { 1 };
    n.ignore(&["output_sequence"]);
    let batch_first: bool = n.attr("layout", 0i64)? != 0;
    let settings = settings(n, kind, directions)?;
    let inputs = inputs(n, &settings, weights, directions, batch_first)?;
    let plain = !settings.input_forget
        && inputs.peepholes.is_none()
        && settings.activations.iter().flatten().all(Activation::is_plain)
        && settings.activations.windows(2).all(|w| w[0] == w[1]);
    let outputs = match plain {
        true => sequence(n, &settings, direction, &inputs)?,
        false => recurrent_steps::unrolled(n, &settings, direction, &inputs)?,
    };
    let y = if batch_first { &[0, 2, 1, 3] } else { &[2, 1, 0, 3] };
    let mut values = vec![n.transpose(outputs[0], y)?];
    for &state in &outputs[1..] {
        values.push(if batch_first { state } else { n.transpose(state, &[1, 0, 2])? });
    }
    if inputs.bare {
        let axes = if batch_first { [2, 1, 1] } else { [1, 0, 0] };
        values = values.into_iter().zip(axes).map(|(v, axis)| n.squeeze(v, &[axis])).collect::<Result<_>>()?;
    }
    Ok(values.into())
}

fn settings(n: &NodeCx<'_>, kind: Kind, directions: usize) -> Result<Settings> {
    let hidden = n.attr("hidden_size", -1i64)?;
    let names: Vec<String> = n.attr("activations", vec![])?;
    let mut alpha = n.attr::<Vec<f32>>("activation_alpha", vec![])?.into_iter();
    let mut beta = n.attr::<Vec<f32>>("activation_beta", vec![])?.into_iter();
    let defaults = kind.defaults();
    let mut activations = vec![];
    for d in 0..directions {
        let mut list = vec![];
        for (i, default) in defaults.iter().enumerate() {
            let name = names.get(d * defaults.len() + i).map_or(*default, String::as_str);
            list.push(Activation::new(name, &mut alpha, &mut beta)?);
        }
        activations.push(list);
    }
    let (linear_before_reset, input_forget) = match kind {
        Kind::Lstm => (false, n.attr("input_forget", 0i64)? != 0),
        Kind::Gru => (n.attr("linear_before_reset", 0i64)? != 0, false),
        Kind::Rnn => (false, false),
    };
    let hidden = usize::try_from(hidden).unwrap_or(0);
    Ok(Settings { kind, hidden, clip: n.attr("clip", 0.0f32)?, linear_before_reset, input_forget, activations })
}

fn inputs(
    n: &mut NodeCx<'_>,
    settings: &Settings,
    weights: Weights,
    directions: usize,
    batch_first: bool,
) -> Result<Inputs> {
    let kind = settings.kind;
    let x = n.input(0)?;
    let [w, r] = weights(n)?;
    let bare = directions == 1 && n.rank(w) == Some(2) && n.rank(r) == Some(2);
    let (x, w, r) = (of_rank(n, x, 3, "X")?, of_rank(n, w, 3, "W")?, of_rank(n, r, 3, "R")?);
    let x = if batch_first { x } else { n.transpose(x, &[1, 0, 2])? };
    let hidden = match n.shape(r).dim(2).size() {
        Some(h) if n.rank(r).is_some() => h,
        _ if settings.hidden > 0 => settings.hidden,
        _ => return Err(n.fail("hidden_size is required: the shape of R does not tell it")),
    };
    if settings.hidden > 0 && settings.hidden != hidden {
        let (given, shape) = (settings.hidden, n.shape(r));
        return Err(n.fail(format!("attribute `hidden_size` is {given}, R is [{shape}]")));
    }
    let b = match n.opt(3)? {
        Some(b) => {
            let b = of_rank(n, b, 2, "B")?;
            bias(n, settings, b)?
        }
        None => {
            let blocks = kind.gates() + usize::from(settings.linear_before_reset);
            zeros(n, x, &[directions, blocks * hidden])?
        }
    };
    let batch = n.size(x, 0)?;
    let lengths = match n.opt(4)? {
        Some(l) => l,
        None => {
            let time = n.size(x, 1)?;
            n.stretch(time, batch)?
        }
    };
    let mut states = vec![];
    for i in 0..if kind == Kind::Lstm { 2 } else { 1 } {
        let given = match n.opt(5 + i)? {
            Some(s) => Some(of_rank(n, s, 3, "a state")?),
            None => None,
        };
        states.push(match given {
            Some(s) if batch_first => s,
            Some(s) => n.transpose(s, &[1, 0, 2])?,
            None => {
                let zero = n.scalar_like(x, 0.0)?;
                let rest = n.i64s(&[directions as i64, hidden as i64])?;
                let shape = n.concat(&[batch, rest], 0)?;
                n.stretch(zero, shape)?
            }
        });
    }
    let peepholes = if kind == Kind::Lstm { n.opt(7)? } else { None };
    let peepholes = peepholes.filter(|&p| !is_zero(n, p));
    let (w, r) = (reorder(n, w, kind)?, reorder(n, r, kind)?);
    Ok(Inputs { x, states, lengths, w, r, b, peepholes, bare })
}

// Leading axes of 1 that are too many are dropped, and the axis of a single direction may be missing: OpenVINO takes both.
fn of_rank(n: &mut NodeCx<'_>, v: Value, rank: usize, what: &str) -> Result<Value> {
    let Some(found) = n.rank(v).filter(|&found| found != rank) else { return Ok(v) };
    let ones = n.shape(v).dims().is_some_and(|d| d.iter().take(found.saturating_sub(rank)).all(|d| d.contains(1)));
    let lacks_direction = found + 1 == rank && what != "X";
    if !lacks_direction && (found < rank || !ones) {
        return Err(n.fail(format!("{what} must have {rank} axes, found [{}]", n.shape(v))));
    }
    n.warn(&format!("{what} must have {rank} axes, found {found}: axes of 1 are added or dropped in front"));
    match found.checked_sub(rank) {
        Some(more) => n.squeeze(v, &(0..more as i64).collect::<Vec<_>>()),
        None => n.unsqueeze(v, &[0]),
    }
}

fn is_zero(n: &NodeCx<'_>, v: Value) -> bool {
    n.tensor(v).and_then(|t| Some(t.to_vec::<f64>().ok()?.iter().all(|&x| x == 0.0))).unwrap_or(false)
}

fn zeros(n: &mut NodeCx<'_>, like: Value, shape: &[usize]) -> Result<Value> {
    // A file of a few bytes can declare any size; a bias of this many elements no network has.
    if carafe_tensor::elements(shape).is_none_or(|n| n > 1 << 26) {
        return Err(n.fail(format!("a bias of shape {shape:?} is too large")));
    }
    match n.ty(like) {
        ElementType::Dynamic => Err(n.unsupported("the element type of the input must be known")),
        ty => n.constant(Tensor::zeros(ty, shape)?),
    }
}

// Gates lie one after the other on axis 1.
fn reorder(n: &mut NodeCx<'_>, v: Value, kind: Kind) -> Result<Value> {
    if kind != Kind::Lstm {
        return Ok(v);
    }
    let gates = n.split_equally(v, 1, kind.gates())?;
    let ordered: Vec<Value> = kind.order().iter().map(|&g| gates[g]).collect();
    n.concat(&ordered, 1)
}

// The file has a bias for W and one for R; only the last gate of a GRU may need them apart.
fn bias(n: &mut NodeCx<'_>, settings: &Settings, b: Value) -> Result<Value> {
    if settings.linear_before_reset {
        let p = n.split_equally(b, 1, 6)?;
        let (z, r) = (n.plus(p[0], p[3])?, n.plus(p[1], p[4])?);
        return n.concat(&[z, r, p[2], p[5]], 1);
    }
    let halves = n.split_equally(b, 1, 2)?;
    let sum = n.plus(halves[0], halves[1])?;
    reorder(n, sum, settings.kind)
}

fn sequence(n: &mut NodeCx<'_>, settings: &Settings, direction: Direction, i: &Inputs) -> Result<Vec<Value>> {
    let list = &settings.activations[0];
    let activations = list.iter().map(|a| a.name.clone()).collect();
    let activations_alpha = list.iter().map(|a| a.alpha).collect();
    let activations_beta = list.iter().map(|a| a.beta).collect();
    let (hidden_size, clip) = (settings.hidden as u64, settings.clip);
    let inputs = [&[i.x], &i.states[..], &[i.lengths, i.w, i.r, i.b]].concat();
    match settings.kind {
        Kind::Lstm => n.emit_all(
            LstmSequence { hidden_size, activations, activations_alpha, activations_beta, clip, direction },
            &inputs,
        ),
        Kind::Gru => {
            let linear_before_reset = settings.linear_before_reset;
            n.emit_all(
                GruSequence {
                    hidden_size,
                    activations,
                    activations_alpha,
                    activations_beta,
                    clip,
                    direction,
                    linear_before_reset,
                },
                &inputs,
            )
        }
        Kind::Rnn => n.emit_all(
            RnnSequence { hidden_size, activations, activations_alpha, activations_beta, clip, direction },
            &inputs,
        ),
    }
}
