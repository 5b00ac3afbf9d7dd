//! Recurrent cells and sequences with constant weights: what the input gives to the gates as one product, then a launch for each
//! time.

use super::ending::{Ending, bytes_of, table};
use super::product::{Left, Product, Right};
use super::{Built, Port, Site};
use crate::launch::{Arg, Launch, Launches};
use crate::machine::ALIGNMENT;
use crate::programs::Source;
use carafe_graph::{Op, Result};
use carafe_ops::recurrent as ops;
use carafe_plan::Layout;
use carafe_tensor::Tensor;

/// Units of a group, and items that share the sums of each.
const UNITS: usize = 32;
const PARTS: usize = 4;
/// Longer sequences are evaluated: each time is a kernel of its own.
const LONGEST: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rnn,
    Gru { linear_before_reset: bool },
    Lstm,
}

/// An operation of this family: what it computes and where its inputs are.
struct Form<'a> {
    name: &'static str,
    kind: Kind,
    direction: ops::Direction,
    /// Over time; a cell otherwise.
    sequence: bool,
    clip: f32,
    activations: &'a [String],
    numbers: [&'a [f32]; 2],
    /// With attention, an input of its own.
    attention: Option<usize>,
}

impl<'a> Form<'a> {
    fn of(op: &'a dyn Op) -> Option<Form<'a>> {
        macro_rules! form {
            ($name:literal, $kind:expr, $op:expr, $sequence:expr) => {
                Form {
                    name: $name,
                    kind: $kind,
                    direction: ops::Direction::Forward,
                    sequence: $sequence,
                    clip: $op.clip,
                    activations: &$op.activations,
                    numbers: [&$op.activations_alpha, &$op.activations_beta],
                    attention: None,
                }
            };
        }
        let gru = |linear_before_reset: bool| Kind::Gru { linear_before_reset };
        Some(if let Some(op) = op.get::<ops::LstmSequence>() {
            Form { direction: op.direction, ..form!("lstm_sequence", Kind::Lstm, op, true) }
        } else if let Some(op) = op.get::<ops::GruSequence>() {
            Form { direction: op.direction, ..form!("gru_sequence", gru(op.linear_before_reset), op, true) }
        } else if let Some(op) = op.get::<ops::RnnSequence>() {
            Form { direction: op.direction, ..form!("rnn_sequence", Kind::Rnn, op, true) }
        } else if let Some(op) = op.get::<ops::AugruSequence>() {
            Form { attention: Some(6), ..form!("augru_sequence", gru(op.linear_before_reset), op, true) }
        } else if let Some(op) = op.get::<ops::LstmCell>() {
            form!("lstm_cell", Kind::Lstm, op, false)
        } else if let Some(op) = op.get::<ops::GruCell>() {
            form!("gru_cell", gru(op.linear_before_reset), op, false)
        } else if let Some(op) = op.get::<ops::RnnCell>() {
            form!("rnn_cell", Kind::Rnn, op, false)
        } else if let Some(op) = op.get::<ops::AugruCell>() {
            Form { attention: Some(5), ..form!("augru_cell", gru(op.linear_before_reset), op, false) }
        } else {
            return None;
        })
    }

    fn gates(&self) -> usize {
        match self.kind {
            Kind::Rnn => 1,
            Kind::Gru { .. } => 3,
            Kind::Lstm => 4,
        }
    }
    fn blocks(&self) -> usize {
        if self.kind == (Kind::Gru { linear_before_reset: true }) { 4 } else { self.gates() }
    }
    fn states(&self) -> usize {
        if self.kind == Kind::Lstm { 2 } else { 1 }
    }

    // The functions as macros.
    fn functions(&self) -> Option<String> {
        let usual = if self.kind == Kind::Rnn { ["tanh"; 3] } else { ["sigmoid", "tanh", "tanh"] };
        let mut text = String::new();
        for (i, name) in ["F", "G", "H"].into_iter().enumerate() {
            let number = |which: usize, default: f32| self.numbers[which].get(i).copied().unwrap_or(default);
            let asked = self.activations.get(i).map_or(usual[i], String::as_str).to_ascii_lowercase();
            let call = match asked.as_str() {
                "sigmoid" => "f_sigmoid(x)".into(),
                "tanh" => "tanh(x)".into(),
                "relu" => "f_relu(x)".into(),
                "hardsigmoid" => format!("f_hard_sigmoid(x, {:e}f, {:e}f)", number(0, 0.2), number(1, 0.5)),
                _ => return None,
            };
            text += &format!("#define ACT_{name}(x) {call}\n");
        }
        Some(text)
    }
}

/// Sizes and constants of a site that fits.
struct Fit<'a> {
    batch: usize,
    time: usize,
    input: usize,
    hidden: usize,
    directions: usize,
    lengths: Vec<i32>,
    w: &'a Tensor,
    r: &'a Tensor,
    b: Option<&'a Tensor>,
}

fn fit<'a>(form: &Form<'_>, site: &'a Site<'_>) -> Option<Fit<'a>> {
    let inputs = &site.inputs[..site.own_inputs];
    let (x, h) = (inputs.first()?, inputs.get(1)?);
    let (batch, time, input, hidden) = match (form.sequence, &x.shape[..], &h.shape[..]) {
        (true, &[batch, time, input], &[_, _, hidden]) => (batch, time, input, hidden),
        (false, &[batch, input], &[_, hidden]) => (batch, 1, input, hidden),
        _ => return None,
    };
    let directions = if form.direction == ops::Direction::Bidirectional { 2 } else { 1 };
    let first = 1 + form.states() + usize::from(form.sequence);
    let rows = directions * hidden;
    let constant = |i: usize, len: usize| {
        let port = inputs.get(i).filter(|p| p.is_f32() && p.len() == len)?;
        port.constant.as_ref()
    };
    let (w, r) = (constant(first, form.gates() * rows * input)?, constant(first + 1, form.gates() * rows * hidden)?);
    let b = match inputs.get(first + 2) {
        None => None,
        Some(_) => Some(constant(first + 2, form.blocks() * rows)?),
    };
    let floats = |i: usize, len: usize| inputs.get(i).is_some_and(|p| p.is_f32() && p.len() == len);
    let states = (0..form.states()).all(|i| floats(1 + i, batch * rows));
    let attended = form.attention.is_none_or(|i| floats(i, batch * time));
    let outputs = site.outputs.len() == form.states() + usize::from(form.sequence);
    let something = batch * time * input * hidden > 0 && time <= LONGEST;
    if !(x.is_f32() && states && attended && outputs && something && site.outputs.iter().all(Port::is_f32)) {
        return None;
    }
    // Lengths that only the run knows may be wrong, which an evaluation tells.
    let lengths: Vec<i32> = match form.sequence {
        false => vec![1; batch],
        true => {
            inputs.get(1 + form.states())?.ints()?.into_iter().map(|n| i32::try_from(n).ok()).collect::<Option<_>>()?
        }
    };
    let good = lengths.len() == batch && lengths.iter().all(|n| usize::try_from(*n).is_ok_and(|n| n <= time));
    good.then_some(Fit { batch, time, input, hidden, directions, lengths, w, r, b })
}

/// Workspace handed out piece by piece.
#[derive(Default)]
struct Space(usize);

impl Space {
    fn take(&mut self, bytes: usize) -> Arg {
        let start = self.0;
        self.0 += bytes.next_multiple_of(ALIGNMENT);
        Arg::Workspace(start, bytes)
    }
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    let Some(form) = Form::of(site.op) else { return Ok(None) };
    let (Some(fit), Some(functions)) = (fit(&form, site), form.functions()) else { return Ok(None) };
    fit.build(site, &form, &functions).map(Some)
}

impl Fit<'_> {
    fn build(&self, site: &Site<'_>, form: &Form<'_>, functions: &str) -> Result<Built> {
        let cx = site.cx;
        let [batch, time, hidden, directions] = [self.batch, self.time, self.hidden, self.directions];
        let element = if cx.half { 2 } else { 4 };
        let mut space = Space::default();
        let columns = directions * form.gates() * hidden;
        let given = space.take(batch * time * columns * element);
        let state = || 4 * batch * directions * hidden;
        let states = [space.take(state()), space.take(state())];
        let [cell, update, reset] = [(); 3].map(|()| space.take(state()));
        let mut reads = vec![(0, cx.form(&site.inputs[0], Layout::PLAIN))];
        let mut read = |i: usize| {
            reads.push((i, cx.form(&site.inputs[i], Layout::PLAIN)));
            Arg::Read(reads.len() - 1)
        };
        let start: Vec<Arg> = (0..form.states()).map(|i| read(1 + i)).collect();
        let attention = form.attention.map(&mut read);

        let product = Product {
            rows: batch * time,
            columns,
            deep: self.input,
            left: Left::Rows(self.input),
            right: Right { stride: columns.next_multiple_of(8), transposed: false, padded: true },
            out_stride: columns,
            offsets: vec![[0; 4]],
            largest: site.inputs.iter().map(Port::len).max().unwrap_or(0),
        };
        let operands = [Arg::Read(0), self.input_weights(site, form, columns)?, given.clone()];
        let work = product.launches_from(cx, operands, &Ending::none(), space.0)?;
        let workspace = space.0 + work.workspace;

        let file = Source("recurrent.cl");
        let text = format!("{functions}{}", file.text());
        let kernel = |name: &str, stage: usize| {
            let kind = match form.kind {
                Kind::Rnn => 0,
                Kind::Gru { .. } => 1,
                Kind::Lstm => 2,
            };
            let flags = [form.sequence, form.attention.is_some()].map(usize::from);
            let macros = [
                ("KIND", kind),
                ("STAGE", stage),
                ("GATES", form.gates()),
                ("BLOCKS", form.blocks()),
                ("UNITS", UNITS),
                ("PARTS", PARTS),
                ("SEQUENCE", flags[0]),
                ("ATTENTION", flags[1]),
            ];
            cx.generated(file.0, &text, name, &macros.map(|(name, n)| (name, n.to_string())))
        };
        let sizes = super::pool::ints(&[batch, time, hidden, directions]);
        let lengths = table(cx, "lengths", &self.lengths)?;
        let count = [hidden, batch, directions];
        let mut launches = work.launches;
        let begin = kernel("cell_begin", 0)?;
        for (from, to) in start.into_iter().zip([states[0].clone(), cell.clone()]) {
            let args = vec![from, to, sizes.clone(), lengths.clone()];
            launches.push(Launch::plane(&begin, args, count, cx.group()));
        }
        let weights = self.state_weights(site, form)?;
        let bias = self.bias(site, form)?;
        let stages: &[usize] = if form.kind == (Kind::Gru { linear_before_reset: false }) { &[1, 2] } else { &[0] };
        let kernels = stages.iter().map(|&s| kernel("cell_step", s)).collect::<Result<Vec<_>>>()?;
        let backward = i32::from(form.direction == ops::Direction::Reverse);
        for now in 0..time {
            let [from, to] = [&states[now % 2], &states[(now + 1) % 2]];
            for kernel in &kernels {
                let mut args = vec![given.clone(), weights.clone(), bias.clone(), from.clone(), to.clone()];
                args.extend([cell.clone(), update.clone(), reset.clone(), lengths.clone(), sizes.clone()]);
                args.extend([Arg::from(now), Arg::Int(backward), Arg::Float(form.clip.max(0.0))]);
                args.extend(form.sequence.then_some(Arg::Write(0)));
                args.extend(attention.clone());
                let global = [hidden.next_multiple_of(UNITS), batch * PARTS, directions];
                launches.push(Launch { kernel: kernel.clone(), args, global, local: Some([UNITS, PARTS, 1]) });
            }
        }
        let end = kernel("cell_end", 0)?;
        let first = usize::from(form.sequence);
        for (i, from) in [states[time % 2].clone(), cell].into_iter().take(form.states()).enumerate() {
            let args = vec![from, Arg::Write(first + i), sizes.clone()];
            launches.push(Launch::plane(&end, args, count, cx.group()));
        }
        let outputs: Vec<_> = site.outputs.iter().map(|p| cx.form(p, Layout::PLAIN)).collect();
        Ok(Launches::new(form.name, launches).built(reads, outputs).with_workspace(workspace))
    }

    // Weights of the input as one matrix: input x direction, gate and unit.
    fn input_weights(&self, site: &Site<'_>, form: &Form<'_>, columns: usize) -> Result<Arg> {
        let (cx, input, stride) = (site.cx, self.input, columns.next_multiple_of(8));
        let form = format!("{} w {columns} {}", form.name, cx.half);
        let buffer = cx.packed(&form, &[self.w], || {
            let floats = self.w.to_vec::<f32>()?;
            let mut packed = vec![0.0; input * stride];
            for (k, row) in packed.chunks_exact_mut(stride).enumerate() {
                row[..columns].iter_mut().enumerate().for_each(|(n, x)| *x = floats[n * input + k]);
            }
            Ok(bytes_of(cx, &packed))
        })?;
        Ok(buffer.into())
    }

    // Weights of the state: direction, unit before, gate, unit after.
    fn state_weights(&self, site: &Site<'_>, form: &Form<'_>) -> Result<Arg> {
        let (cx, hidden, gates) = (site.cx, self.hidden, form.gates());
        let form = format!("{} r {}x{} {}", form.name, self.directions, hidden, cx.half);
        let buffer = cx.packed(&form, &[self.r], || {
            let floats = self.r.to_vec::<f32>()?;
            let mut packed = Vec::with_capacity(floats.len());
            for direction in floats.chunks_exact(gates * hidden * hidden) {
                for k in 0..hidden {
                    packed.extend((0..gates * hidden).map(|row| direction[row * hidden + k]));
                }
            }
            Ok(bytes_of(cx, &packed))
        })?;
        Ok(buffer.into())
    }

    fn bias(&self, site: &Site<'_>, form: &Form<'_>) -> Result<Arg> {
        match self.b {
            Some(tensor) => super::ending::floats(site.cx, tensor, Layout::PLAIN),
            None => table(site.cx, "no bias", &vec![0; form.blocks() * self.directions * self.hidden]),
        }
    }
}
