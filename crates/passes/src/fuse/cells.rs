//! Recurrent cells written out, recognised by what their new state is computed of. Gates are found by their place in it, not by
//! their order in a matrix.

use super::affine::{Affine, Matrix};
use super::look::made_by;
use super::slices::{cut, width};
use carafe_graph::{Model, Op, Value};
use carafe_ops::activation::{Relu, Sigmoid};
use carafe_ops::arithmetic::{Add, Multiply, Subtract};
use carafe_ops::math::Tanh;

/// Which cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Lstm,
    /// `after`: the reset gate scales what was computed of the state.
    Gru {
        after: bool,
    },
    Rnn,
}

/// A cell with its weights, gates in the order of the operations.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) kind: Kind,
    pub(super) hidden: usize,
    pub(super) input: usize,
    pub(super) activations: Vec<&'static str>,
    /// For each gate: of the input, of the state.
    pub(super) weights: Vec<[Matrix; 2]>,
    pub(super) bias: Vec<Vec<f32>>,
}

/// What a body computes a state of: the row of the sequence, the state and, for LSTM, the cell state, and their next values.
#[derive(Clone, Copy, Debug)]
pub(super) struct States {
    pub(super) x: Value,
    pub(super) h: Value,
    pub(super) h_next: Value,
    pub(super) cell: Option<(Value, Value)>,
}

/// What a function is applied to: columns of a value.
#[derive(Clone, Copy, Debug)]
struct Argument {
    of: Value,
    /// First column and number of columns, where it is a part.
    part: Option<(usize, usize)>,
}

/// A function of a gate and what it is applied to. The gate may be cut out of the function of several.
fn gate(model: &Model, v: Value) -> Option<(&'static str, Argument)> {
    fn of<T: Op>(model: &Model, v: Value) -> Option<Value> {
        made_by::<T>(model, v)?.first().copied()
    }
    let cut = cut(model, v).filter(|c| c.step == 1);
    let whole = cut.map_or(v, |c| c.of);
    let (name, of) = None
        .or_else(|| Some(("sigmoid", of::<Sigmoid>(model, whole)?)))
        .or_else(|| Some(("tanh", of::<Tanh>(model, whole)?)))
        .or_else(|| Some(("relu", of::<Relu>(model, whole)?)))?;
    Some((name, Argument { of, part: cut.map(|c| (c.first, c.len)) }))
}

impl From<Value> for Argument {
    fn from(of: Value) -> Argument {
        Argument { of, part: None }
    }
}

// The operands of a commutative operation, in both orders.
fn both<T: Op>(model: &Model, v: Value) -> Vec<[Value; 2]> {
    match made_by::<T>(model, v) {
        Some(&[a, b]) => vec![[a, b], [b, a]],
        _ => vec![],
    }
}

impl States {
    /// The cell that the states are of.
    pub(super) fn cell(&self, model: &Model) -> Option<Cell> {
        match self.cell {
            Some((c, c_next)) => self.lstm(model, c, c_next),
            None => self.gru(model).or_else(|| self.rnn(model)),
        }
    }

    // The two matrices of a gate, and its bias.
    fn parts(&self, model: &Model, v: Argument, h: Value) -> Option<([Matrix; 2], Vec<f32>)> {
        let rows = [(self.x, width(model, self.x)?), (h, width(model, self.h)?)];
        let whole = Affine::of(model, v.of)?;
        v.part.map_or(whole.clone(), |(first, len)| whole.columns(first, len)).by_rows(rows)
    }

    fn of_gates(&self, model: &Model, kind: Kind, gates: &[Argument], activations: Vec<&'static str>) -> Option<Cell> {
        let (hidden, input) = (width(model, self.h)?, width(model, self.x)?);
        let mut cell = Cell { kind, hidden, input, activations, weights: vec![], bias: vec![] };
        for &v in gates {
            let (weights, bias) = self.parts(model, v, self.h)?;
            if bias.len() != hidden {
                return None;
            }
            cell.weights.push(weights);
            cell.bias.push(bias);
        }
        Some(cell)
    }

    // `c' = f * c + i * g`, `h' = o * act(c')`.
    fn lstm(&self, model: &Model, c: Value, c_next: Value) -> Option<Cell> {
        let (o, last) = both::<Multiply>(model, self.h_next).into_iter().find_map(|[o, t]| {
            let (act, of) = gate(model, t)?;
            (of.of == c_next && of.part.is_none()).then_some((gate(model, o)?, act))
        })?;
        for [kept, new] in both::<Add>(model, c_next) {
            let forget = both::<Multiply>(model, kept).into_iter().find(|[_, old]| *old == c);
            let Some(f) = forget.and_then(|[f, _]| gate(model, f)) else { continue };
            for [i, g] in both::<Multiply>(model, new) {
                let (Some(i), Some(g)) = (gate(model, i), gate(model, g)) else { continue };
                if i.0 == f.0 && o.0 == f.0 {
                    return self.of_gates(model, Kind::Lstm, &[f.1, i.1, g.1, o.1], vec![f.0, g.0, last]);
                }
            }
        }
        None
    }

    // `h' = z * h + (1 - z) * n`.
    fn gru(&self, model: &Model) -> Option<Cell> {
        for [kept, new] in both::<Add>(model, self.h_next) {
            let update = both::<Multiply>(model, kept).into_iter().find(|[_, old]| *old == self.h).map(|[z, _]| z);
            let Some(z) = update else { continue };
            let is_rest = |v: Value| match made_by::<Subtract>(model, v) {
                Some(&[one, of]) => of == z && model.splat_of(one) == Some(1.0),
                _ => false,
            };
            let Some([_, n]) = both::<Multiply>(model, new).into_iter().find(|[rest, _]| is_rest(*rest)) else {
                continue;
            };
            let (Some(z), Some(n)) = (gate(model, z), gate(model, n)) else { continue };
            return self.reset_after(model, z, n).or_else(|| self.reset_before(model, z, n));
        }
        None
    }

    // `n = act(x W + r * (h R + b))`.
    fn reset_after(&self, model: &Model, z: (&'static str, Argument), n: (&'static str, Argument)) -> Option<Cell> {
        let (outer, r, inner) =
            both::<Add>(model, n.1.of).into_iter().filter(|_| n.1.part.is_none()).find_map(|[outer, scaled]| {
                let found =
                    both::<Multiply>(model, scaled).into_iter().find_map(|[r, inner]| Some((gate(model, r)?, inner)));
                found.map(|(r, inner)| (outer, r, inner))
            })?;
        let mut cell =
            self.of_gates(model, Kind::Gru { after: true }, &[z.1, r.1, outer.into(), inner.into()], vec![z.0, n.0])?;
        let ([of_input, of_state], inner_bias) = (cell.weights.pop()?, cell.bias.pop()?);
        let is_zero = |m: &Matrix| m.data.iter().all(|x| *x == 0.0);
        let outer = cell.weights.last_mut()?;
        if r.0 != z.0 || !is_zero(&of_input) || !is_zero(&outer[1]) {
            return None;
        }
        outer[1] = of_state;
        cell.bias.push(inner_bias);
        Some(cell)
    }

    // `n = act(x W + (r * h) R + b)`.
    fn reset_before(&self, model: &Model, z: (&'static str, Argument), n: (&'static str, Argument)) -> Option<Cell> {
        let terms = Affine::of(model, n.1.of)?.terms;
        let scaled = terms.iter().map(|(row, _)| *row).find(|row| *row != self.x)?;
        let r = both::<Multiply>(model, scaled).into_iter().find(|[_, old]| *old == self.h).map(|[r, _]| r)?;
        let r = gate(model, r).filter(|r| r.0 == z.0)?;
        let mut cell = self.of_gates(model, Kind::Gru { after: false }, &[z.1, r.1], vec![z.0, n.0])?;
        let (weights, bias) = self.parts(model, n.1, scaled)?;
        cell.weights.push(weights);
        cell.bias.push(bias);
        (cell.bias[2].len() == cell.hidden).then_some(cell)
    }

    // `h' = act(x W + h R + b)`.
    fn rnn(&self, model: &Model) -> Option<Cell> {
        let (act, of) = gate(model, self.h_next)?;
        self.of_gates(model, Kind::Rnn, &[of], vec![act])
    }
}

impl Cell {
    /// W, R and B as the sequence operations take them for one direction: shapes and numbers.
    pub(super) fn tensors(&self) -> [(Vec<usize>, Vec<f32>); 3] {
        let gates = self.weights.len();
        let turned = |which: usize, n: usize| {
            let mut data = Vec::with_capacity(gates * self.hidden * n);
            for pair in &self.weights {
                let m = &pair[which];
                data.extend((0..self.hidden).flat_map(|c| (0..n).map(move |r| m.data[r * m.columns + c])));
            }
            (vec![1, gates * self.hidden, n], data)
        };
        let bias: Vec<f32> = self.bias.concat();
        [turned(0, self.input), turned(1, self.hidden), (vec![1, bias.len()], bias)]
    }
}
