//! Recurrent layers over time: plain, GRU and LSTM cells, forwards, backwards or both. The products with the inputs of all
//! steps are one matrix product; what remains of a step, the product with the state and the functions of the gates, is one
//! pass over the packed weights that holds everything in registers. A layer of one step is a cell.
//!
//! Gates lie in the order f, i, c, o (LSTM) and z, r, h (GRU). A row of the batch ends at its own length: later outputs are
//! 0, and its last state is that of its last step; a row of length 0 has states of 0.

mod cells;
mod gates;
mod steps;
mod team;
mod weights;

use crate::{Act, Epilogue, Exec, Gemm, Halves, Isa, Numbers, TypedEpilogue, TypedOut};
use weights::{Layout, Weights};

/// The equations of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CellKind {
    /// `h = f(x W + h R + b)`.
    Rnn,
    /// With `linear_before_reset` the reset gate scales the product `h R`, and the bias has a fourth block.
    Gru { linear_before_reset: bool },
    /// `input_forget` couples the input gate: `i = 1 - f`.
    Lstm { input_forget: bool },
}

impl CellKind {
    pub fn gates(self) -> usize {
        match self {
            CellKind::Rnn => 1,
            CellKind::Gru { .. } => 3,
            CellKind::Lstm { .. } => 4,
        }
    }
    /// Blocks of the bias, each as long as the hidden state.
    pub fn bias_blocks(self) -> usize {
        match self {
            CellKind::Gru { linear_before_reset: true } => 4,
            other => other.gates(),
        }
    }
    /// The functions of an ordinary cell: of the gates, of the new value, of the output.
    pub fn usual_acts(self) -> [Act; 3] {
        match self {
            CellKind::Rnn => [Act::Tanh; 3],
            _ => [Act::Sigmoid, Act::Tanh, Act::Tanh],
        }
    }
}

/// Which way a sequence is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Reverse,
    Both,
}

/// Sizes and positions; strides count floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecurrentParams {
    pub kind: CellKind,
    pub direction: Direction,
    pub batch: usize,
    pub time: usize,
    pub input: usize,
    pub hidden: usize,
    /// Limit of what enters a gate function; 0 is none.
    pub clip: f32,
    pub acts: [Act; 3],
    /// Strides of the input: batch, time.
    pub x: [usize; 2],
    /// Strides of all hidden states: batch, direction, time.
    pub y: [usize; 3],
}

impl RecurrentParams {
    /// Input `[batch, time, input]`, output `[batch, direction, time, hidden]`, the usual functions.
    pub fn dense(
        kind: CellKind,
        direction: Direction,
        batch: usize,
        time: usize,
        input: usize,
        hidden: usize,
    ) -> RecurrentParams {
        let directions = if direction == Direction::Both { 2 } else { 1 };
        RecurrentParams {
            kind,
            direction,
            batch,
            time,
            input,
            hidden,
            clip: 0.0,
            acts: kind.usual_acts(),
            x: [time * input, input],
            y: [directions * time * hidden, time * hidden, hidden],
        }
    }
    pub fn directions(&self) -> usize {
        if self.direction == Direction::Both { 2 } else { 1 }
    }
}

/// Weights as operations have them: `w` is `[direction, gates * hidden, input]`, `r` `[direction, gates * hidden, hidden]`.
#[derive(Clone, Copy, Debug)]
pub struct RecurrentWeights<'a> {
    pub w: &'a [f32],
    pub r: &'a [f32],
    /// `[direction, blocks * hidden]`.
    pub b: Option<&'a [f32]>,
    /// Of the LSTM gates f, i, o: `[direction, 3 * hidden]`.
    pub peepholes: Option<&'a [f32]>,
}

/// How many steps each row of the batch has; numbers outside of `0..=time` count as the nearer end.
#[derive(Clone, Copy, Debug)]
pub enum Lengths<'a> {
    Full,
    I32(&'a [i32]),
    I64(&'a [i64]),
}

impl Lengths<'_> {
    fn of(&self, row: usize, time: usize) -> usize {
        match self {
            Lengths::Full => time,
            Lengths::I32(n) => (n[row].max(0) as usize).min(time),
            Lengths::I64(n) => (n[row].max(0) as usize).min(time),
        }
    }
}

/// The data of one run. States are `[batch, direction, hidden]`; without them they start at 0.
#[derive(Clone, Copy, Debug)]
pub struct RecurrentInputs<'a> {
    /// Floats, or cells of two bf16 each.
    pub x: &'a [f32],
    pub h: Option<&'a [f32]>,
    pub c: Option<&'a [f32]>,
    pub lengths: Lengths<'a>,
    /// Weakens the update gate of a GRU: `[batch, time]`.
    pub attention: Option<&'a [f32]>,
}

/// What a run writes: all hidden states, the last hidden states and the last cell states `[batch, direction, hidden]`.
#[derive(Debug, Default)]
pub struct RecurrentOutputs<'a> {
    pub y: Option<&'a mut [f32]>,
    pub h: Option<&'a mut [f32]>,
    pub c: Option<&'a mut [f32]>,
}

/// A recurrent layer of one shape.
#[derive(Clone, Copy, Debug)]
pub struct Recurrent {
    p: RecurrentParams,
    isa: Isa,
    gemm: Gemm,
    layout: Layout,
}

impl Recurrent {
    /// Panics where outputs would overlap.
    pub fn new(isa: Isa, p: RecurrentParams) -> Recurrent {
        let dims = [p.batch, p.directions(), p.time, p.hidden];
        assert!(crate::attention::disjoint(dims, p.y), "hidden states overlap: {:?}", p.y);
        let gemm = Gemm::new(isa, p.directions() * p.kind.gates() * p.hidden, p.input);
        Recurrent { p, isa, gemm, layout: Layout::new(isa, &p, gemm.packed_floats(), 1) }
    }
    /// With weights, inputs and what is multiplied of the states in bf16; sums, gates and states that are given out are floats.
    /// `None` where inputs do not lie in whole pairs. Panics where outputs would overlap.
    pub fn of_bf16(isa: Isa, p: RecurrentParams) -> Option<Recurrent> {
        let whole = p.x.iter().all(|stride| stride.is_multiple_of(2));
        let gemm = Gemm::of_cells(isa, Numbers::Bf16, p.directions() * p.kind.gates() * p.hidden, p.input)?;
        let floats = Recurrent::new(isa, p);
        whole.then(|| Recurrent { gemm, layout: Layout::new(isa, &p, gemm.packed_floats(), 2), ..floats })
    }
    fn per_cell(&self) -> usize {
        self.layout.per_cell
    }

    pub fn packed_floats(&self) -> usize {
        self.layout.floats
    }
    /// Memory of a run that all threads share.
    pub fn workspace_floats(&self) -> usize {
        let p = &self.p;
        self.x_floats() + p.directions() * steps::state_floats(p, self.per_cell())
    }
    /// Floats that each thread needs of the scratch.
    pub fn scratch_floats(&self) -> usize {
        self.gemm.scratch_floats()
    }
    fn x_floats(&self) -> usize {
        (self.p.batch * self.p.time * self.gemm.n()).next_multiple_of(16)
    }

    /// Packs the weights, once. Without `exec` on this thread alone.
    pub fn pack(&self, exec: Option<&Exec>, from: &RecurrentWeights, packed: &mut [f32]) {
        assert!(packed.len() >= self.layout.floats, "{} floats for packed weights", packed.len());
        let (p, n) = (&self.p, self.p.hidden);
        let rows = p.directions() * p.kind.gates() * n;
        assert!(from.w.len() >= rows * p.input, "{} input weights for {rows} x {}", from.w.len(), p.input);
        assert!(from.r.len() >= rows * n, "{} weights of the state for {rows} x {n}", from.r.len());
        if let Some(b) = from.b {
            assert!(b.len() >= p.directions() * p.kind.bias_blocks() * n, "{} floats of bias", b.len());
        }
        if let Some(peepholes) = from.peepholes {
            assert!(peepholes.len() >= p.directions() * 3 * n, "{} peepholes", peepholes.len());
        }
        let product = &mut packed[..self.gemm.packed_floats()];
        match self.per_cell() {
            1 => self.gemm.pack(exec, from.w, true, product),
            _ => self.gemm.pack_halves(&Halves::Bf16.all_bits(&from.w[..rows * p.input]), true, product),
        }
        self.layout.pack(p, from, packed);
    }

    pub fn run(
        &self,
        exec: &Exec,
        packed: &[f32],
        inputs: &RecurrentInputs,
        outputs: RecurrentOutputs,
        workspace: &mut [f32],
    ) {
        self.check(packed, inputs, &outputs, workspace);
        if self.p.batch * self.p.hidden == 0 {
            return;
        }
        let (x, states) = workspace.split_at_mut(self.x_floats());
        let by_row = self.project(exec, packed, inputs.x, x);
        let weights = Weights { layout: &self.layout, packed };
        steps::run(exec, self.isa, &self.p, weights, inputs, outputs, (x, by_row), states);
    }

    fn check(&self, packed: &[f32], inputs: &RecurrentInputs, outputs: &RecurrentOutputs, workspace: &[f32]) {
        let (p, n) = (&self.p, self.p.batch * self.p.directions() * self.p.hidden);
        assert!(packed.len() >= self.layout.floats, "{} floats of packed weights", packed.len());
        assert!(workspace.len() >= self.workspace_floats(), "{} floats of workspace", workspace.len());
        let x = crate::attention::span(&[p.batch, p.time], &p.x, p.input).map(|x| x.div_ceil(self.per_cell()));
        assert!(x.is_some_and(|x| x <= inputs.x.len()), "{} inputs, {x:?} are needed", inputs.x.len());
        for (what, state) in [("hidden", inputs.h), ("cell", inputs.c)] {
            assert!(state.is_none_or(|s| s.len() >= n), "the {what} state has fewer than {n} floats");
        }
        let rows = match inputs.lengths {
            Lengths::Full => p.batch,
            Lengths::I32(n) => n.len(),
            Lengths::I64(n) => n.len(),
        };
        assert!(rows >= p.batch, "{rows} lengths for a batch of {}", p.batch);
        assert!(inputs.attention.is_none_or(|a| a.len() >= p.batch * p.time), "too few numbers of attention");
        let y = crate::attention::span(&[p.batch, p.directions(), p.time], &p.y, p.hidden);
        let fits = |out: &Option<&mut [f32]>, n: usize| out.as_ref().is_none_or(|out| out.len() >= n);
        assert!(y.is_some_and(|y| fits(&outputs.y, y)), "the output is shorter than {y:?} floats");
        assert!(fits(&outputs.h, n) && fits(&outputs.c, n), "a last state has fewer than {n} floats");
    }

    /// Products of the inputs of all steps, with the bias. Gives the rows from batch to batch and from step to step.
    fn project(&self, exec: &Exec, packed: &[f32], x: &[f32], to: &mut [f32]) -> [usize; 2] {
        let (p, per) = (&self.p, self.per_cell());
        let n = self.gemm.n();
        let bias = Some(self.layout.x_bias(packed));
        let mut product = |rows: usize, from: usize, stride: usize, first: usize| {
            let (x, stride, to) = (&x[from / per..], stride / per, &mut to[first * n..]);
            if per == 1 {
                self.gemm.run(exec, rows, x, stride, packed, to, n, &Epilogue { bias, ..Epilogue::default() });
                return;
            }
            let epilogue = TypedEpilogue { bias, ..TypedEpilogue::default() };
            let rows = (rows, x, stride);
            self.gemm.run_typed(exec, Numbers::Bf16, rows, packed, TypedOut::F32(to), n, &epilogue);
        };
        if p.time == 0 {
            return [0, 0];
        }
        let along_time = p.batch == 1 || p.x[0] == p.time * p.x[1];
        if along_time && p.x[1] >= p.input {
            product(p.batch * p.time, 0, p.x[1], 0);
            return [p.time, 1];
        }
        if (p.time == 1 || p.x[1] == p.batch * p.x[0]) && p.x[0] >= p.input {
            product(p.batch * p.time, 0, p.x[0], 0);
            return [1, p.batch];
        }
        for row in 0..p.batch * p.time {
            product(1, row / p.time * p.x[0] + row % p.time * p.x[1], p.input, row);
        }
        [p.time, 1]
    }
}
