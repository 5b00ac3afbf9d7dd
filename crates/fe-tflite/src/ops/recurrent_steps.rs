//! One step of recurrent layers, and the loop over time that runs it. A step is the same inside of a loop's body and on its own.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Body, BodyInput, BodyOutput, Error, Fact, Model, Result, Slicing, Value};
use carafe_ops::activation::{Relu, Sigmoid};
use carafe_ops::arithmetic::AutoBroadcast;
use carafe_ops::control::TensorIterator;
use carafe_ops::math::Tanh;
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::{Dim, Tensor};

/// The numbers that a quantised state can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grid {
    low: f64,
    high: f64,
    levels: u64,
}

impl Grid {
    /// Of signed integers with these bits; none without a scale.
    pub(super) fn new(scale: f64, zero: i64, bits: i64) -> Option<Grid> {
        if !(scale > 0.0 && scale.is_finite() && (2..=16).contains(&bits)) {
            return None;
        }
        let (half, zero) = (2f64.powi(bits as i32 - 1), zero as f64);
        Some(Grid { low: (-half - zero) * scale, high: (half - 1.0 - zero) * scale, levels: 1 << bits })
    }

    /// Rounded to the grid, where there is one.
    pub(super) fn round<C: Compose>(grid: Option<Grid>, m: &mut C, x: Value) -> Result<Value> {
        let Some(grid) = grid else { return Ok(x) };
        let (low, high) = (m.fixed(Tensor::scalar(grid.low as f32))?, m.fixed(Tensor::scalar(grid.high as f32))?);
        let op = FakeQuantize { levels: grid.levels, auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
        m.put(op, &[x, low, high, low, high])
    }
}

/// Which way time is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Forward,
    Backward,
}

/// A recurrent layer at one moment.
pub(super) trait Cell {
    /// The new states, the first of which is also the result.
    fn step<C: Compose>(&self, m: &mut C, x: Value, states: &[Value], fixed: &[Option<Value>]) -> Result<Vec<Value>>;
}

/// Runs a cell over the first axis of `[time, batch, size]`: the results of all steps, and the last states.
pub(super) fn iterate<L: Cell>(
    n: &mut NodeCx<'_>,
    cell: &L,
    x: Value,
    states: &[Value],
    fixed: &[Option<Value>],
    way: Way,
) -> Result<(Value, Vec<Value>)> {
    let slicing = match way {
        Way::Forward => Slicing::along(0),
        Way::Backward => Slicing { axis: 0, start: -1, end: 0, stride: -1, part_size: 1 },
    };
    let mut inner = Model::new("step");
    let mut body_inputs = vec![];
    let mut outer = vec![];
    let mut enter = |n: &NodeCx<'_>, inner: &mut Model, v: Value, slicing: Option<Slicing>, back: Option<usize>| {
        let Fact { ty, mut shape, .. } = n.fact(v).clone();
        if let Some(first) = shape.dims_mut().and_then(|d| d.first_mut()).filter(|_| slicing.is_some()) {
            *first = Dim::known(1);
        }
        let index = outer.len();
        body_inputs.push(BodyInput { outer: Some(index), parameter: index, slicing, back_edge: back });
        outer.push(v);
        inner.parameter(&format!("input/{index}"), ty, shape)
    };
    let step_x = enter(n, &mut inner, x, Some(slicing), None)?;
    let mut inner_states = vec![];
    for (i, state) in states.iter().enumerate() {
        inner_states.push(enter(n, &mut inner, *state, None, Some(i + 1))?);
    }
    let mut inner_fixed = vec![];
    for v in fixed {
        inner_fixed.push(v.map(|v| enter(n, &mut inner, v, None, None)).transpose()?);
    }
    let step_x = inner.without_axes(step_x, &[0])?;
    let new = cell.step(&mut inner, step_x, &inner_states, &inner_fixed)?;
    let first = *new.first().ok_or_else(|| Error::invalid("a recurrent layer without states"))?;
    let y = inner.with_axes(first, &[0])?;
    for (i, v) in [y].into_iter().chain(new.iter().copied()).enumerate() {
        inner.result(&format!("result/{i}"), v)?;
    }
    let mut body = Body::new(inner);
    body.inputs = body_inputs;
    body.outputs =
        (0..=new.len()).map(|i| BodyOutput { outer: i, result: i, slicing: (i == 0).then_some(slicing) }).collect();
    let mut found = n.emit_all(TensorIterator { body }, &outer)?;
    let y = found.remove(0);
    Ok((y, found))
}

/// An LSTM's settings; the default is that of the sequence operations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LstmCell {
    pub activation: String,
    pub cell_clip: Option<f64>,
    pub projection_clip: Option<f64>,
    /// Grids of what a projection reads, of the hidden state and of the cell state.
    pub hidden: Option<Grid>,
    pub state: Option<Grid>,
    pub cell_state: Option<Grid>,
}

impl Default for LstmCell {
    fn default() -> LstmCell {
        let activation = "TANH".to_string();
        LstmCell { activation, cell_clip: None, projection_clip: None, hidden: None, state: None, cell_state: None }
    }
}

impl Cell for LstmCell {
    // Operands: weights, recurrent weights, peepholes (3), biases, projection and its bias, coefficients of norms.
    fn step<C: Compose>(&self, m: &mut C, x: Value, states: &[Value], fixed: &[Option<Value>]) -> Result<Vec<Value>> {
        let [weights, recurrent, peepholes, biases, projection, norms] =
            [&fixed[0..4], &fixed[4..8], &fixed[8..11], &fixed[11..15], &fixed[15..17], &fixed[17..21]];
        let (h, c) = (states[0], states[1]);
        let gate = |m: &mut C, i: usize, peephole: Option<Value>, cell: Value| -> Result<Value> {
            let missing = || Error::invalid("an LSTM lacks the weights of a gate");
            let mut sum = m.product(x, weights[i].ok_or_else(missing)?, true)?;
            let back = m.product(h, recurrent[i].ok_or_else(missing)?, true)?;
            sum = m.plus(sum, back)?;
            if let Some(peephole) = peephole {
                let seen = m.times(cell, peephole)?;
                sum = m.plus(sum, seen)?;
            }
            if let Some(norm) = norms[i] {
                sum = normalized(m, sum)?;
                sum = m.times(sum, norm)?;
            }
            match biases[i] {
                Some(bias) => m.plus(sum, bias),
                None => Ok(sum),
            }
        };
        let forget = gate(m, 1, peepholes[1], c)?;
        let forget = m.put(Sigmoid, &[forget])?;
        let input = match weights[0] {
            Some(_) => {
                let input = gate(m, 0, peepholes[0], c)?;
                m.put(Sigmoid, &[input])?
            }
            None => m.sub_from(1.0, forget)?,
        };
        let new = gate(m, 2, None, c)?;
        let new = activate(m, new, &self.activation)?;
        let (kept, added) = (m.times(forget, c)?, m.times(input, new)?);
        let mut c = m.plus(kept, added)?;
        if let Some(limit) = self.cell_clip {
            c = m.between(c, -limit, limit)?;
        }
        c = Grid::round(self.cell_state, m, c)?;
        let output = gate(m, 3, peepholes[2], c)?;
        let output = m.put(Sigmoid, &[output])?;
        let shown = activate(m, c, &self.activation)?;
        let mut h = m.times(output, shown)?;
        if let Some(weights) = projection[0] {
            h = Grid::round(self.hidden, m, h)?;
            h = m.product(h, weights, true)?;
            if let Some(bias) = projection[1] {
                h = m.plus(h, bias)?;
            }
            if let Some(limit) = self.projection_clip {
                h = m.between(h, -limit, limit)?;
            }
        }
        Ok(vec![Grid::round(self.state, m, h)?, c])
    }
}

/// Hidden and cell state out of the sums of the gates input, forget, cell, output.
pub(super) fn update<C: Compose>(m: &mut C, gates: [Value; 4], state: Value) -> Result<(Value, Value)> {
    let [input, forget, cell, output] = gates;
    let (input, forget) = (m.put(Sigmoid, &[input])?, m.put(Sigmoid, &[forget])?);
    let (cell, output) = (m.put(Tanh, &[cell])?, m.put(Sigmoid, &[output])?);
    let (kept, added) = (m.times(forget, state)?, m.times(input, cell)?);
    let state = m.plus(kept, added)?;
    let shown = m.put(Tanh, &[state])?;
    Ok((m.times(output, shown)?, state))
}

/// A simple layer: an activation of a sum.
#[derive(Clone, Debug)]
pub(super) struct RnnCell {
    pub activation: String,
    pub state: Option<Grid>,
}

impl Cell for RnnCell {
    fn step<C: Compose>(&self, m: &mut C, x: Value, states: &[Value], fixed: &[Option<Value>]) -> Result<Vec<Value>> {
        let missing = || Error::invalid("a recurrent layer lacks weights");
        let sum = m.product(x, fixed[0].ok_or_else(missing)?, true)?;
        let back = m.product(states[0], fixed[1].ok_or_else(missing)?, true)?;
        let mut sum = m.plus(sum, back)?;
        if let Some(bias) = fixed[2] {
            sum = m.plus(sum, bias)?;
        }
        let y = activate(m, sum, &self.activation)?;
        Ok(vec![Grid::round(self.state, m, y)?])
    }
}

fn activate<C: Compose>(m: &mut C, x: Value, name: &str) -> Result<Value> {
    match name {
        "NONE" => Ok(x),
        "RELU" => m.put(Relu, &[x]),
        "RELU_N1_TO_1" => m.between(x, -1.0, 1.0),
        "RELU6" => m.between(x, 0.0, 6.0),
        "TANH" => m.put(Tanh, &[x]),
        other => Err(Error::unsupported(format!("activation `{other}` of a recurrent layer is not known"))),
    }
}

// Mean 0 and deviation 1 in each row.
fn normalized<C: Compose>(m: &mut C, x: Value) -> Result<Value> {
    let mean = m.mean_over(x, &[-1], true)?;
    let centred = m.minus(x, mean)?;
    let squares = m.times(centred, centred)?;
    let variance = m.mean_over(squares, &[-1], true)?;
    let variance = m.plus_number(variance, 1e-8)?;
    let deviation = m.sqrt(variance)?;
    m.over(centred, deviation)
}
