//! One step of a recurrent cell for one row of the batch, in f64. Everything a cell differs in is data here: the kind, its
//! functions and its weights.

use super::activation::Activation;

/// The equations of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// `h = f(x W + h R + b)`.
    Rnn { f: Activation },
    /// Gates z, r, h. With `linear_before_reset` the reset gate scales the product `h R`, and the bias has a fourth block.
    Gru { f: Activation, g: Activation, linear_before_reset: bool },
    /// Gates f, i, c, o. `input_forget` couples the input gate: `i = 1 - f`.
    Lstm { f: Activation, g: Activation, h: Activation, input_forget: bool },
}

impl Kind {
    pub(super) fn gates(self) -> usize {
        match self {
            Kind::Rnn { .. } => 1,
            Kind::Gru { .. } => 3,
            Kind::Lstm { .. } => 4,
        }
    }
    /// Blocks of the bias, each as long as the hidden state.
    pub(super) fn bias_blocks(self) -> usize {
        match self {
            Kind::Gru { linear_before_reset: true, .. } => 4,
            other => other.gates(),
        }
    }
    /// Values carried from step to step: the hidden state, and for LSTM the cell state.
    pub(super) fn states(self) -> usize {
        if matches!(self, Kind::Lstm { .. }) { 2 } else { 1 }
    }
}

/// A cell with the weights of one direction: `w` is `[gates * hidden, input]`, `r` is `[gates * hidden, hidden]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'a> {
    pub kind: Kind,
    pub hidden: usize,
    pub input: usize,
    /// Limit of what enters the gate functions; 0 is none.
    pub clip: f64,
    pub w: &'a [f64],
    pub r: &'a [f64],
    pub b: Option<&'a [f64]>,
    /// Peephole weights of the LSTM gates f, i, o.
    pub p: Option<&'a [f64]>,
}

impl Cell<'_> {
    /// Advances the hidden state and, for LSTM, the cell state. `attention` scales the update gate of a GRU.
    pub(super) fn step(&self, x: &[f64], h: &mut [f64], c: &mut [f64], attention: Option<f64>) {
        let n = self.hidden;
        let gates = self.kind.gates();
        let from_x: Vec<f64> = (0..gates * n).map(|row| dot(&self.w[row * self.input..][..self.input], x)).collect();
        let from_h: Vec<f64> = (0..gates * n).map(|row| dot(&self.r[row * n..][..n], h)).collect();
        let sum = |row: usize| from_x[row] + from_h[row] + self.bias(row);
        match self.kind {
            Kind::Rnn { f } => {
                for (i, h) in h.iter_mut().enumerate() {
                    *h = f.apply(self.clipped(sum(i)));
                }
            }
            Kind::Gru { f, g, linear_before_reset } => {
                let z: Vec<f64> = (0..n)
                    .map(|i| f.apply(self.clipped(sum(i))) * (1.0 - attention.unwrap_or(0.0)))
                    .collect();
                let r: Vec<f64> = (0..n).map(|i| f.apply(self.clipped(sum(n + i)))).collect();
                let reset: Vec<f64> = r.iter().zip(h.iter()).map(|(r, h)| r * h).collect();
                for i in 0..n {
                    let row = 2 * n + i;
                    let pre = if linear_before_reset {
                        from_x[row] + self.bias(row) + r[i] * (from_h[row] + self.bias(3 * n + i))
                    } else {
                        from_x[row] + dot(&self.r[row * n..][..n], &reset) + self.bias(row)
                    };
                    h[i] = (1.0 - z[i]) * g.apply(self.clipped(pre)) + z[i] * h[i];
                }
            }
            Kind::Lstm { f, g, h: out, input_forget } => {
                let peep = |block: usize, i: usize| self.p.map_or(0.0, |p| p[block * n + i]);
                for i in 0..n {
                    let [forget, enter, new, leave] = [0, 1, 2, 3].map(|block| sum(block * n + i));
                    let forget = f.apply(self.clipped(forget + peep(0, i) * c[i]));
                    let enter = match input_forget {
                        true => 1.0 - forget,
                        false => f.apply(self.clipped(enter + peep(1, i) * c[i])),
                    };
                    c[i] = forget * c[i] + enter * g.apply(self.clipped(new));
                    h[i] = f.apply(self.clipped(leave + peep(2, i) * c[i])) * out.apply(c[i]);
                }
            }
        }
    }

    fn bias(&self, row: usize) -> f64 {
        self.b.map_or(0.0, |b| b[row])
    }

    fn clipped(&self, x: f64) -> f64 {
        if self.clip > 0.0 { x.clamp(-self.clip, self.clip) } else { x }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
