//! Recurrent cells and sequences with constant weights.

use super::{Built, Cpu, Io, Port, Site, Step, Work, floats};
use crate::weights::{Packed, floats_of};
use carafe_graph::{Error, Op, Result};
use carafe_kernels::{
    Act, CellKind, Direction, Lengths, Recurrent, RecurrentInputs, RecurrentOutputs, RecurrentParams, RecurrentWeights,
};
use carafe_ops::recurrent as ops;
use carafe_plan::Layout;
use carafe_tensor::{ElementType, Tensor};
use std::sync::Arc;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    let Some(form) = Form::of(site.op) else { return Ok(None) };
    let Some((params, reads)) = form.fit(site) else { return Ok(None) };
    let narrow = (site.precision == ElementType::Bf16).then(|| Recurrent::of_bf16(site.cx.isa, params)).flatten();
    let precision = if narrow.is_some() { ElementType::Bf16 } else { ElementType::F32 };
    let kernel = narrow.unwrap_or_else(|| Recurrent::new(site.cx.isa, params));
    let [w, r, b, p] = form.weights.map(|i| i.and_then(|i| site.inputs.get(i)?.constant.as_ref()));
    let (Some(w), Some(r)) = (w, r) else { return Ok(None) };
    let key = format!("{}|{precision}", form_key(&params, b.is_some(), p.is_some()));
    let constants: Vec<&Tensor> = [Some(w), Some(r), b, p].into_iter().flatten().collect();
    let weights = site.cx.packed(&key, &constants, kernel.packed_floats(), |to| {
        let (w_floats, r_floats) = (floats_of(w)?, floats_of(r)?);
        let (b, p) = (b.map(floats_of).transpose()?, p.map(floats_of).transpose()?);
        let from = RecurrentWeights { w: &w_floats, r: &r_floats, b: b.as_deref(), peepholes: p.as_deref() };
        kernel.pack(site.cx.packers.exec().as_ref(), &from, to);
        w.release();
        r.release();
        Ok(())
    })?;
    let workspace = kernel.workspace_floats() * 4;
    let name = if precision == ElementType::Bf16 { format!("{}_bf16", form.name) } else { form.name.to_string() };
    let step = Layer { kernel, weights, name, time: params.time, all: form.sequence, reads: reads.clone() };
    let lies = |role: Role| match role {
        Role::X if precision == ElementType::Bf16 => carafe_plan::Form::typed(Layout::PLAIN, precision),
        _ => Layout::PLAIN.into(),
    };
    let reads = reads.into_iter().map(|(role, input)| (input, lies(role)));
    let outputs = vec![carafe_plan::Form::from(Layout::PLAIN); site.outputs.len()];
    let built = Built::new(Work::Step(Arc::new(step)), reads, outputs).with_workspace(workspace);
    Ok(Some(if precision == ElementType::Bf16 { built.with_precision(precision) } else { built }))
}

/// Whether an operation of this family multiplies in bf16: weights that are constants, and inputs of whole pairs.
pub(super) fn suits_bf16(op: &dyn Op, inputs: &[carafe_plan::Known<'_>]) -> bool {
    let Some(form) = Form::of(op) else { return false };
    let constant = |i: &Option<usize>| i.and_then(|i| inputs.get(i)).is_some_and(|p| p.is_constant);
    let even = inputs.first().and_then(|p| p.shape?.last().copied()).is_some_and(|n| n.is_multiple_of(2));
    even && form.weights[..2].iter().all(constant) && inputs[0].ty == ElementType::F32
}

/// Whether this is an operation of the family.
pub(super) fn is_recurrent(op: &dyn Op) -> bool {
    Form::of(op).is_some()
}

/// What an input of the operation is at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    X,
    Hidden,
    Cell,
    Lengths32,
    Lengths64,
    Attention,
}

#[derive(Debug)]
struct Layer {
    kernel: Recurrent,
    weights: Packed,
    name: String,
    time: usize,
    /// Output 0 is all hidden states, the last ones follow.
    all: bool,
    /// Roles of what is read, in order.
    reads: Vec<(Role, usize)>,
}

impl Step<Cpu> for Layer {
    fn kernel(&self) -> String {
        self.name.clone()
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.kernel.scratch_floats())
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let mut from = RecurrentInputs { x: &[], h: None, c: None, lengths: Lengths::Full, attention: None };
        for (i, (role, _)) in self.reads.iter().enumerate() {
            match role {
                Role::X => from.x = io.input(i),
                Role::Hidden => from.h = Some(io.input(i)),
                Role::Cell => from.c = Some(io.input(i)),
                Role::Lengths32 => from.lengths = Lengths::I32(self.checked(io.input(i))?),
                Role::Lengths64 => from.lengths = Lengths::I64(self.checked(io.input(i))?),
                Role::Attention => from.attention = Some(io.input(i)),
            }
        }
        let mut outputs = io.outputs.iter_mut().map(|out| bytemuck::cast_slice_mut(out));
        let y = if self.all { outputs.next() } else { None };
        let to = RecurrentOutputs { y, h: outputs.next(), c: outputs.next() };
        self.kernel.run(io.exec, self.weights.as_slice(), &from, to, bytemuck::cast_slice_mut(io.workspace));
        Ok(())
    }
}

impl Layer {
    fn checked<'a, T: Copy + Into<i64>>(&self, lengths: &'a [T]) -> Result<&'a [T]> {
        for &n in lengths {
            let n: i64 = n.into();
            if !usize::try_from(n).is_ok_and(|n| n <= self.time) {
                return Err(Error::invalid(format!("sequence length {n} is not within 0..{}", self.time)));
            }
        }
        Ok(lengths)
    }
}

/// An operation of this family: what it computes and where its inputs are.
struct Form<'a> {
    name: &'static str,
    kind: CellKind,
    direction: Direction,
    /// Over time; a cell otherwise.
    sequence: bool,
    clip: f32,
    activations: &'a [String],
    numbers: [&'a [f32]; 2],
    lengths: Option<usize>,
    attention: Option<usize>,
    /// Of the input, of the state, bias, peepholes.
    weights: [Option<usize>; 4],
}

impl<'a> Form<'a> {
    fn of(op: &'a dyn Op) -> Option<Form<'a>> {
        macro_rules! form {
            ($name:literal, $kind:expr, $op:expr) => {
                Form::cell($name, $kind, $op.clip, &$op.activations, [&$op.activations_alpha, &$op.activations_beta])
            };
        }
        let gru = |linear_before_reset: bool| CellKind::Gru { linear_before_reset };
        let lstm = |input_forget: bool| CellKind::Lstm { input_forget };
        Some(if let Some(op) = op.get::<ops::LstmSequence>() {
            form!("lstm_sequence", lstm(false), op).over_time(op.direction)
        } else if let Some(op) = op.get::<ops::GruSequence>() {
            form!("gru_sequence", gru(op.linear_before_reset), op).over_time(op.direction)
        } else if let Some(op) = op.get::<ops::RnnSequence>() {
            form!("rnn_sequence", CellKind::Rnn, op).over_time(op.direction)
        } else if let Some(op) = op.get::<ops::AugruSequence>() {
            let form = form!("augru_sequence", gru(op.linear_before_reset), op).over_time(op.direction);
            Form { attention: Some(6), ..form }
        } else if let Some(op) = op.get::<ops::LstmCell>() {
            form!("lstm_cell", lstm(false), op)
        } else if let Some(op) = op.get::<ops::LstmCellV1>() {
            let mut form = form!("lstm_cell", lstm(op.input_forget), op);
            form.weights[3] = Some(6);
            form
        } else if let Some(op) = op.get::<ops::GruCell>() {
            form!("gru_cell", gru(op.linear_before_reset), op)
        } else if let Some(op) = op.get::<ops::RnnCell>() {
            form!("rnn_cell", CellKind::Rnn, op)
        } else if let Some(op) = op.get::<ops::AugruCell>() {
            Form { attention: Some(5), ..form!("augru_cell", gru(op.linear_before_reset), op) }
        } else {
            return None;
        })
    }

    fn cell(
        name: &'static str,
        kind: CellKind,
        clip: f32,
        activations: &'a [String],
        numbers: [&'a [f32]; 2],
    ) -> Form<'a> {
        let first = if matches!(kind, CellKind::Lstm { .. }) { 3 } else { 2 };
        Form {
            name,
            kind,
            direction: Direction::Forward,
            sequence: false,
            clip,
            activations,
            numbers,
            lengths: None,
            attention: None,
            weights: [Some(first), Some(first + 1), Some(first + 2), None],
        }
    }

    fn over_time(mut self, direction: ops::Direction) -> Form<'a> {
        self.direction = match direction {
            ops::Direction::Forward => Direction::Forward,
            ops::Direction::Reverse => Direction::Reverse,
            ops::Direction::Bidirectional => Direction::Both,
        };
        self.sequence = true;
        self.lengths = self.weights[0];
        self.weights = self.weights.map(|i| i.map(|i| i + 1));
        self
    }

    /// The gate functions, the usual ones where the lists leave something out.
    fn acts(&self) -> Option<[Act; 3]> {
        let mut acts = self.kind.usual_acts();
        let count = match self.kind {
            CellKind::Rnn => 1,
            CellKind::Gru { .. } => 2,
            CellKind::Lstm { .. } => 3,
        };
        for (i, name) in self.activations.iter().enumerate().take(count) {
            let number = |which: usize, default: f32| self.numbers[which].get(i).copied().unwrap_or(default);
            acts[i] = match name.to_ascii_lowercase().as_str() {
                "sigmoid" => Act::Sigmoid,
                "tanh" => Act::Tanh,
                "relu" => Act::Relu,
                "hardsigmoid" => Act::HardSigmoid { alpha: number(0, 0.2), beta: number(1, 0.5) },
                _ => return None,
            };
        }
        Some(acts)
    }

    /// Sizes, and what is read at run time; none where the kernel does not fit.
    fn fit(&self, site: &Site<'_>) -> Option<(RecurrentParams, Vec<(Role, usize)>)> {
        let inputs = &site.inputs[..site.own_inputs];
        let (x, h) = (inputs.first()?, inputs.get(1)?);
        let (batch, time, input, hidden) = match (self.sequence, &x.shape[..], &h.shape[..]) {
            (true, &[batch, time, input], &[.., hidden]) => (batch, time, input, hidden),
            (false, &[batch, input], &[.., hidden]) => (batch, 1, input, hidden),
            _ => return None,
        };
        let mut params = RecurrentParams::dense(self.kind, self.direction, batch, time, input, hidden);
        (params.clip, params.acts) = (self.clip.max(0.0), self.acts()?);
        let (rows, state) = (params.directions() * hidden, batch * params.directions() * hidden);
        let fits = |i: usize, len: usize| inputs.get(i).is_some_and(|p| p.is_f32() && p.len() == len);

        let gates = self.kind.gates();
        let lengths = [gates * input, gates * hidden, self.kind.bias_blocks(), 3].map(|n| n * rows);
        for (which, (&at, len)) in self.weights.iter().zip(lengths).enumerate() {
            let there = at.filter(|&i| i < inputs.len());
            match there {
                Some(i) if fits(i, len) && inputs[i].constant.is_some() => {}
                None if which > 1 => {}
                _ => return None,
            }
        }

        let mut reads = vec![(Role::X, 0)];
        let mut states = vec![(Role::Hidden, 1)];
        if matches!(self.kind, CellKind::Lstm { .. }) {
            states.push((Role::Cell, 2));
        }
        if !x.is_f32() || !states.iter().all(|&(_, i)| fits(i, state)) {
            return None;
        }
        reads.extend(states);
        if let Some(i) = self.attention {
            if !fits(i, batch * time) {
                return None;
            }
            reads.push((Role::Attention, i));
        }
        if let Some(i) = self.lengths {
            reads.extend(lengths_role(inputs.get(i)?, batch, time)?.map(|role| (role, i)));
        }
        let expected = usize::from(self.sequence) + reads.iter().filter(|r| is_state(r.0)).count();
        let outputs = &site.outputs;
        (outputs.len() == expected && outputs.iter().all(Port::is_f32)).then_some((params, reads))
    }
}

fn is_state(role: Role) -> bool {
    matches!(role, Role::Hidden | Role::Cell)
}

/// How lengths are read; nothing to read when every row is known to be full.
fn lengths_role(port: &Port, batch: usize, time: usize) -> Option<Option<Role>> {
    let full = |n: i64| usize::try_from(n) == Ok(time);
    if port.len() != batch {
        return None;
    }
    if port.ints().is_some_and(|n| n.into_iter().all(full)) {
        return Some(None);
    }
    match port.ty {
        ElementType::I32 => Some(Some(Role::Lengths32)),
        ElementType::I64 => Some(Some(Role::Lengths64)),
        _ => None,
    }
}

// Batch and time do not matter for weights.
fn form_key(p: &RecurrentParams, bias: bool, peepholes: bool) -> String {
    format!("{:?}|{:?}|{}x{}|{bias}|{peepholes}", p.kind, p.direction, p.input, p.hidden)
}

#[cfg(test)]
mod tests {
    use super::ops::{Direction, GruSequence, LstmSequence};
    use crate::compiled::Compiled;
    use carafe_device::{CompiledModel, Properties};
    use carafe_graph::{Model, Value};
    use carafe_tensor::{ElementType, PartialShape, Tensor};
    use std::sync::Arc;

    fn numbers(shape: &[usize], scale: f32) -> Tensor {
        let len: usize = shape.iter().product();
        let data = (0..len).map(|i| ((i * 7919 + 13) % 1009) as f32 / 504.5 - 1.0);
        Tensor::from_vec(shape, data.map(|x| x * scale).collect::<Vec<f32>>()).unwrap()
    }

    // Five steps of 6 numbers into two LSTMs of 10 that run both ways, and a GRU of 10 numbers.
    fn net() -> Model {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 5, 6])).unwrap();
        let c = |m: &mut Model, shape: &[usize], scale: f32| m.constant("c", numbers(shape, scale)).unwrap();
        let state: Value = c(&mut m, &[1, 2, 10], 0.5);
        let length = m.constant("length", Tensor::from_slice(&[1], &[5i32]).unwrap()).unwrap();
        let (w, r, b) = (c(&mut m, &[2, 40, 6], 0.5), c(&mut m, &[2, 40, 10], 0.3), c(&mut m, &[2, 40], 0.1));
        let usual = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        let lstm = LstmSequence {
            hidden_size: 10,
            activations: usual(&["sigmoid", "tanh", "tanh"]),
            activations_alpha: vec![],
            activations_beta: vec![],
            clip: 0.0,
            direction: Direction::Bidirectional,
        };
        let lstm = m.add("lstm", lstm, &[x, state, state, length, w, r, b]).unwrap();
        let state: Value = c(&mut m, &[1, 1, 10], 0.5);
        let (w, r, b) = (c(&mut m, &[1, 30, 6], 0.5), c(&mut m, &[1, 30, 10], 0.3), c(&mut m, &[1, 30], 0.1));
        let gru = GruSequence {
            hidden_size: 10,
            activations: usual(&["sigmoid", "tanh"]),
            activations_alpha: vec![],
            activations_beta: vec![],
            clip: 0.0,
            direction: Direction::Reverse,
            linear_before_reset: false,
        };
        let gru = m.add("gru", gru, &[x, state, length, w, r, b]).unwrap();
        m.result("first", lstm.into()).unwrap();
        m.result("second", gru.into()).unwrap();
        m
    }

    #[test]
    fn layers_multiply_in_bf16_where_that_is_asked_for() {
        let f32 = Properties::new().with("INFERENCE_PRECISION_HINT", "f32");
        let outputs = |compiled: Compiled| {
            let mut request = Arc::new(compiled).create_request();
            request.set_input(0, numbers(&[1, 5, 6], 1.0)).unwrap();
            request.infer().unwrap();
            [0, 1].map(|i| request.output(i).unwrap().to_vec::<f32>().unwrap().into_owned()).concat()
        };
        let wanted = outputs(Compiled::new(net(), &[], &f32).unwrap());
        let mut compiled = Compiled::new(net(), &[], &f32).unwrap();
        let planner = Arc::get_mut(&mut compiled.planner).unwrap();
        planner.backend.half = Some(carafe_kernels::Halves::Bf16);
        planner.take_plans();
        planner.prepare().unwrap();
        let plans = compiled.planner.last_plans();
        let kernels: Vec<String> = plans.iter().flat_map(|p| &p.steps).map(|s| format!("{:?}", s.precision)).collect();
        assert!(kernels.iter().filter(|k| k.contains("Bf16")).count() >= 2, "{kernels:?}");
        let found = outputs(compiled);
        assert_ne!(found, wanted);
        for (x, y) in found.iter().zip(&wanted) {
            assert!((x - y).abs() <= 0.01, "{x} {y}");
        }
    }
}
