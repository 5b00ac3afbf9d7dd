//! Recurrent layers out of single operations: a TensorIterator over time for each direction. A row that is over keeps its
//! state and gives zeros; backwards each row is turned around within its own length first.

use super::recurrent::{Inputs, Kind, Settings};
use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Body, BodyInput, BodyOutput, Error, Model, Result, Slicing, Value};
use carafe_ops::activation::{Clamp, Elu, HardSigmoid, PRelu, Relu, Sigmoid, SoftPlus, SoftSign};
use carafe_ops::control::TensorIterator;
use carafe_ops::math::Tanh;
use carafe_ops::movement::ReverseSequence;
use carafe_ops::recurrent::Direction;
use carafe_tensor::{Dim, ElementType, PartialShape};

/// An activation function with its numbers.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Activation {
    /// In lower case.
    pub name: String,
    pub alpha: f32,
    pub beta: f32,
}

impl Activation {
    /// Functions take numbers from the lists only if they have any.
    pub(super) fn new(
        name: &str,
        alpha: &mut impl Iterator<Item = f32>,
        beta: &mut impl Iterator<Item = f32>,
    ) -> Result<Activation> {
        let name = name.to_ascii_lowercase();
        let defaults = match name.as_str() {
            "sigmoid" | "tanh" | "relu" | "softsign" | "softplus" => (None, None),
            "hardsigmoid" => (Some(0.2), Some(0.5)),
            "leakyrelu" => (Some(0.01), None),
            "thresholdedrelu" | "elu" => (Some(1.0), None),
            "affine" => (Some(1.0), Some(0.0)),
            "scaledtanh" => (Some(1.0), Some(1.0)),
            _ => return Err(Error::unsupported(format!("activation `{name}` is not known"))),
        };
        let alpha = defaults.0.map_or(0.0, |d| alpha.next().unwrap_or(d));
        let beta = defaults.1.map_or(0.0, |d| beta.next().unwrap_or(d));
        Ok(Activation { name, alpha, beta })
    }

    /// Whether the sequence operations have it.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.name.as_str(), "sigmoid" | "tanh" | "relu" | "hardsigmoid")
    }

    fn apply(&self, m: &mut Model, x: Value) -> Result<Value> {
        let (alpha, beta) = (f64::from(self.alpha), f64::from(self.beta));
        match self.name.as_str() {
            "sigmoid" => m.put(Sigmoid, &[x]),
            "tanh" => m.put(Tanh, &[x]),
            "relu" => m.put(Relu, &[x]),
            "softsign" => m.put(SoftSign, &[x]),
            "softplus" => m.put(SoftPlus, &[x]),
            "elu" => m.put(Elu { alpha }, &[x]),
            "hardsigmoid" => {
                let (a, b) = (m.number(x, alpha)?, m.number(x, beta)?);
                m.put(HardSigmoid, &[x, a, b])
            }
            "leakyrelu" => {
                let a = m.number(x, alpha)?;
                m.put(PRelu, &[x, a])
            }
            "affine" => {
                let scaled = m.times_number(x, alpha)?;
                m.plus_number(scaled, beta)
            }
            "scaledtanh" => {
                let scaled = m.times_number(x, beta)?;
                let y = m.put(Tanh, &[scaled])?;
                m.times_number(y, alpha)
            }
            _ => {
                let (a, zero) = (m.number(x, alpha)?, m.number(x, 0.0)?);
                let above = m.greater(x, a)?;
                m.choose(above, x, zero)
            }
        }
    }
}

/// Outputs as the sequence operations give them.
pub(super) fn unrolled(
    n: &mut NodeCx<'_>,
    settings: &Settings,
    direction: Direction,
    inputs: &Inputs,
) -> Result<Vec<Value>> {
    let directions = settings.activations.len();
    let mut all: Vec<Vec<Value>> = vec![];
    for d in 0..directions {
        let backwards = direction == Direction::Reverse || d == 1;
        for (slot, v) in one_direction(n, settings, d, backwards, inputs)?.into_iter().enumerate() {
            if all.len() <= slot {
                all.push(vec![]);
            }
            all[slot].push(v);
        }
    }
    all.iter().map(|values| n.concat(values, 1)).collect()
}

fn one_direction(n: &mut NodeCx<'_>, s: &Settings, d: usize, backwards: bool, i: &Inputs) -> Result<Vec<Value>> {
    let at = n.i64(d as i64)?;
    let turn = ReverseSequence { batch_axis: 0, seq_axis: 1 };
    let x = if backwards { n.emit(turn.clone(), &[i.x, i.lengths])? } else { i.x };
    let mut starts = vec![];
    for &state in &i.states {
        starts.push(n.gather(state, at, 1)?);
    }
    let mut weights = vec![];
    for v in [Some(i.w), Some(i.r), Some(i.b), i.peepholes].into_iter().flatten() {
        weights.push(n.gather(v, at, 0)?);
    }
    let time = n.length(x, 1)?;
    let steps = n.count_to(time, ElementType::I64)?;
    let lengths = n.convert(i.lengths, ElementType::I64)?;
    let lengths = n.unsqueeze(lengths, &[1])?;
    let outer = [&[x, steps, lengths], &starts[..], &weights[..]].concat();

    let mut m = Model::new("step");
    let mut parameters = vec![];
    for (p, &v) in outer.iter().enumerate() {
        let fact = n.fact(v);
        let mut shape = fact.shape.clone();
        if let Some(dims) = shape.dims_mut() {
            match p {
                0 => dims[1] = Dim::known(1),
                1 => dims[0] = Dim::known(1),
                _ => {}
            }
        }
        let shape = if p < 2 { shape } else { loose(&shape) };
        parameters.push(m.parameter(&format!("p{p}"), fact.ty, shape)?);
    }
    let x_now = m.without_axes(parameters[0], &[1])?;
    let states = &parameters[3..3 + starts.len()];
    let next = Cell { s, d, weights: &parameters[3 + starts.len()..] }.step(&mut m, x_now, states)?;
    let going = m.less(parameters[1], parameters[2])?;
    let zero = m.number(x_now, 0.0)?;
    let y = m.choose(going, next[0], zero)?;
    let y = m.with_axes(y, &[1])?;
    m.result("y", y)?;
    for (slot, (&new, &old)) in next.iter().zip(states).enumerate() {
        let kept = m.choose(going, new, old)?;
        m.result(&format!("state/{slot}"), kept)?;
    }
    let mut body = Body::new(m);
    for p in 0..outer.len() {
        let slicing = match p {
            0 => Some(Slicing::along(1)),
            1 => Some(Slicing::along(0)),
            _ => None,
        };
        let back_edge = p.checked_sub(3).filter(|&state| state < starts.len()).map(|state| state + 1);
        body.inputs.push(BodyInput { outer: Some(p), parameter: p, slicing, back_edge });
    }
    for r in 0..=starts.len() {
        body.outputs.push(BodyOutput { outer: r, result: r, slicing: (r == 0).then(|| Slicing::along(1)) });
    }
    let outputs = n.emit_all(TensorIterator { body }, &outer)?;
    let y = if backwards { n.emit(turn, &[outputs[0], i.lengths])? } else { outputs[0] };
    let mut result = vec![n.unsqueeze(y, &[1])?];
    for &state in &outputs[1..] {
        result.push(n.unsqueeze(state, &[1])?);
    }
    Ok(result)
}

fn loose(shape: &PartialShape) -> PartialShape {
    match shape.dims() {
        Some(dims) => PartialShape::new(dims.iter().map(|d| Dim::range(d.min(), d.max()))),
        None => PartialShape::dynamic(),
    }
}

struct Cell<'a> {
    s: &'a Settings,
    d: usize,
    /// W, R, B and the peepholes of one direction.
    weights: &'a [Value],
}

impl Cell<'_> {
    fn act(&self, m: &mut Model, which: usize, x: Value) -> Result<Value> {
        let clip = f64::from(self.s.clip);
        let x = if clip > 0.0 { m.put(Clamp { min: -clip, max: clip }, &[x])? } else { x };
        self.s.activations[self.d][which].apply(m, x)
    }

    // The next states, the hidden one first.
    fn step(&self, m: &mut Model, x: Value, states: &[Value]) -> Result<Vec<Value>> {
        let [w, r, b] = [self.weights[0], self.weights[1], self.weights[2]];
        let gates = self.s.kind.gates();
        let (from_x, from_h) = (m.product(x, w, true)?, m.product(states[0], r, true)?);
        let (from_x, from_h) = (m.split_equally(from_x, 1, gates)?, m.split_equally(from_h, 1, gates)?);
        let blocks = m.split_equally(b, 0, gates + usize::from(self.s.linear_before_reset))?;
        let sum = |m: &mut Model, g: usize| -> Result<Value> {
            let both = m.plus(from_x[g], from_h[g])?;
            m.plus(both, blocks[g])
        };
        match self.s.kind {
            Kind::Rnn => {
                let all = sum(m, 0)?;
                Ok(vec![self.act(m, 0, all)?])
            }
            Kind::Gru => {
                let (z, reset) = (sum(m, 0)?, sum(m, 1)?);
                let (z, reset) = (self.act(m, 0, z)?, self.act(m, 0, reset)?);
                let from_reset = if self.s.linear_before_reset {
                    let inner = m.plus(from_h[2], blocks[3])?;
                    m.times(reset, inner)?
                } else {
                    let h = m.times(reset, states[0])?;
                    let rows = m.split_equally(r, 0, gates)?;
                    m.product(h, rows[2], true)?
                };
                let new = m.plus(from_x[2], blocks[2])?;
                let new = m.plus(new, from_reset)?;
                let new = self.act(m, 1, new)?;
                let rest = m.sub_from(1.0, z)?;
                let (a, b) = (m.times(rest, new)?, m.times(z, states[0])?);
                Ok(vec![m.plus(a, b)?])
            }
            Kind::Lstm => self.lstm(m, states, sum),
        }
    }

    fn lstm(
        &self,
        m: &mut Model,
        states: &[Value],
        sum: impl Fn(&mut Model, usize) -> Result<Value>,
    ) -> Result<Vec<Value>> {
        let peepholes = match self.weights.get(3) {
            Some(&p) => m.split_equally(p, 0, 3)?,
            None => vec![],
        };
        let peep = |m: &mut Model, gate: Value, which: usize, c: Value| -> Result<Value> {
            match peepholes.get(which) {
                Some(&p) => {
                    let seen = m.times(p, c)?;
                    m.plus(gate, seen)
                }
                None => Ok(gate),
            }
        };
        let old = states[1];
        let enter = sum(m, 1)?;
        let enter = peep(m, enter, 0, old)?;
        let enter = self.act(m, 0, enter)?;
        let forget = if self.s.input_forget {
            m.sub_from(1.0, enter)?
        } else {
            let forget = sum(m, 0)?;
            let forget = peep(m, forget, 2, old)?;
            self.act(m, 0, forget)?
        };
        let new = sum(m, 2)?;
        let new = self.act(m, 1, new)?;
        let (a, b) = (m.times(forget, old)?, m.times(enter, new)?);
        let c = m.plus(a, b)?;
        let leave = sum(m, 3)?;
        let leave = peep(m, leave, 1, c)?;
        let leave = self.act(m, 0, leave)?;
        let out = self.s.activations[self.d][2].apply(m, c)?;
        Ok(vec![m.times(leave, out)?, c])
    }
}
