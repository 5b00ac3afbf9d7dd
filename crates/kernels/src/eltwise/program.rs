//! A chain or graph of elementwise operations. It is checked and its registers are placed once; running it is a loop over
//! steps whose operands are already known.

use super::EltOp;
use super::apply::{Area, Source, Target, apply};
use crate::Isa;

/// What an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    Reg(u8),
    Const(f32),
}

impl From<u8> for Arg {
    fn from(register: u8) -> Arg {
        Arg::Reg(register)
    }
}

impl From<f32> for Arg {
    fn from(number: f32) -> Arg {
        Arg::Const(number)
    }
}

/// `dst = op(a, b, c)`; arguments that the operation does not take are ignored. Registers from 0 on are the inputs, which
/// are never written; the others are the program's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instr {
    pub op: EltOp,
    pub dst: u8,
    pub a: Arg,
    pub b: Arg,
    pub c: Arg,
}

impl Instr {
    pub fn unary(op: EltOp, dst: u8, a: impl Into<Arg>) -> Instr {
        Instr { op, dst, a: a.into(), b: Arg::Const(0.0), c: Arg::Const(0.0) }
    }
    pub fn binary(op: EltOp, dst: u8, a: impl Into<Arg>, b: impl Into<Arg>) -> Instr {
        Instr { op, dst, a: a.into(), b: b.into(), c: Arg::Const(0.0) }
    }
    pub fn ternary(op: EltOp, dst: u8, a: impl Into<Arg>, b: impl Into<Arg>, c: impl Into<Arg>) -> Instr {
        Instr { op, dst, a: a.into(), b: b.into(), c: c.into() }
    }
}

/// Where a value lies while the program runs on one block.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slot {
    Input(u8),
    Buffer(u8),
    Output(u8),
    Const(f32),
}

#[derive(Clone, Copy, Debug)]
struct Step {
    op: EltOp,
    args: [Slot; 3],
    to: Slot,
}

/// Elementwise operations that run together, block by block.
#[derive(Clone, Debug)]
pub struct Program {
    inputs: usize,
    outputs: usize,
    steps: Vec<Step>,
    buffers: usize,
    cost: usize,
}

/// One value of a register: from the instruction that makes it to the last that reads it.
struct Value {
    slot: Slot,
    last_use: usize,
    output: Option<u8>,
}

impl Program {
    /// Panics when a register is read before it is written, an input is written, or there is no output.
    pub fn new(inputs: usize, instrs: Vec<Instr>, outputs: Vec<u8>) -> Program {
        assert!(
            inputs <= 64 && !outputs.is_empty() && outputs.len() <= 64,
            "{inputs} inputs, {} outputs",
            outputs.len()
        );
        let mut instrs: Vec<Instr> = instrs.into_iter().map(simplified).collect();
        let outputs = own_outputs(inputs, &mut instrs, outputs);
        let mut values: Vec<Value> =
            (0..inputs).map(|i| Value { slot: Slot::Input(i as u8), last_use: 0, output: None }).collect();
        let mut of_register: [Option<usize>; 256] = [None; 256];
        (0..inputs).for_each(|i| of_register[i] = Some(i));
        let mut reads = Vec::with_capacity(instrs.len());
        for (i, instr) in instrs.iter().enumerate() {
            let args = [instr.a, instr.b, instr.c].map(|arg| match arg {
                Arg::Const(x) => Err(x),
                Arg::Reg(r) => Ok(r),
            });
            let read = std::array::from_fn::<_, 3, _>(|k| match args[k] {
                _ if k >= instr.op.arity() => Err(0.0),
                Err(x) => Err(x),
                Ok(r) => {
                    let value = of_register[usize::from(r)]
                        .unwrap_or_else(|| panic!("register {r} is read before it is written"));
                    values[value].last_use = i;
                    Ok(value)
                }
            });
            assert!(usize::from(instr.dst) >= inputs, "instruction {i} writes input {}", instr.dst);
            reads.push((read, values.len()));
            of_register[usize::from(instr.dst)] = Some(values.len());
            values.push(Value { slot: Slot::Const(0.0), last_use: i, output: None });
        }
        for (k, &register) in outputs.iter().enumerate() {
            let value = of_register[usize::from(register)]
                .unwrap_or_else(|| panic!("output register {register} is never written"));
            values[value].output = Some(k as u8);
        }
        let (steps, buffers) = assign_slots(&instrs, &reads, &mut values);
        let cost = instrs.iter().map(|i| i.op.cost()).sum();
        Program { inputs, outputs: outputs.len(), steps, buffers, cost }
    }

    /// A single operation on as many inputs as it takes.
    pub fn single(op: EltOp) -> Program {
        let n = op.arity() as u8;
        let instr = Instr { op, dst: n, a: Arg::Reg(0), b: Arg::Reg(1), c: Arg::Reg(2) };
        Program::new(usize::from(n), vec![instr], vec![n])
    }

    pub fn inputs(&self) -> usize {
        self.inputs
    }
    pub fn outputs(&self) -> usize {
        self.outputs
    }
    /// What one element costs, in additions.
    pub fn cost(&self) -> usize {
        self.cost
    }
    /// Whether an input may lie where the output goes: there is one output, and nothing reads the input after it is written.
    pub(super) fn may_overwrite(&self, input: usize) -> bool {
        let written = self.steps.iter().position(|s| s.to == Slot::Output(0));
        let read = self.steps.iter().rposition(|s| s.args[..s.op.arity()].contains(&Slot::Input(input as u8)));
        self.outputs == 1 && read.is_none_or(|r| written.is_some_and(|w| r <= w))
    }
    /// Buffers of one block that it needs for values in between.
    pub(super) fn buffers(&self) -> usize {
        self.buffers
    }

    /// Runs the steps on one block. Buffer `i` begins at `buffers + i * block`, densely filled.
    ///
    /// # Safety
    /// Inputs can be read and outputs written for the whole area, an input is an output itself or overlaps none, and the
    /// buffers hold `area.rows * area.columns <= block` floats each.
    pub(super) unsafe fn run_block(
        &self,
        isa: Isa,
        area: Area,
        inputs: &[Source],
        outputs: &[Target],
        buffers: *mut f32,
        block: usize,
    ) {
        for step in &self.steps {
            let args: [Source; 3] = std::array::from_fn(|k| match &step.args[k] {
                Slot::Input(i) => inputs[usize::from(*i)],
                Slot::Const(x) => Source { at: x, step: 0, row: 0 },
                Slot::Buffer(i) => {
                    Source { at: buffers.wrapping_add(usize::from(*i) * block), step: 1, row: area.columns }
                }
                Slot::Output(i) => {
                    let to = outputs[usize::from(*i)];
                    Source { at: to.at, step: 1, row: to.row }
                }
            });
            let to = match step.to {
                Slot::Buffer(i) => Target { at: buffers.wrapping_add(usize::from(i) * block), row: area.columns },
                Slot::Output(i) => outputs[usize::from(i)],
                Slot::Input(_) | Slot::Const(_) => unreachable!("results go to buffers and outputs"),
            };
            // SAFETY: the caller's promise.
            unsafe { apply(isa, step.op, &args, to, area) };
        }
    }
}

/// The same instruction with a cheaper operation, where the constant allows one.
fn simplified(instr: Instr) -> Instr {
    let unary = |op| Instr::unary(op, instr.dst, instr.a);
    match (instr.op, instr.b) {
        (EltOp::Pow, Arg::Const(2.0)) => unary(EltOp::Square),
        (EltOp::Pow, Arg::Const(0.5)) => unary(EltOp::PowHalf),
        (EltOp::Pow, Arg::Const(1.0)) => unary(EltOp::Act(crate::Act::None)),
        (EltOp::Pow, Arg::Const(-1.0)) => unary(EltOp::Reciprocal),
        // A power of two: its inverse is exact.
        (EltOp::Div, Arg::Const(x)) if x.is_normal() && x.to_bits() << 9 == 0 && (1.0 / x).is_normal() => {
            Instr { op: EltOp::Mul, b: Arg::Const(1.0 / x), ..instr }
        }
        _ => instr,
    }
}

/// The output registers, each written by an instruction of its own: inputs passed on and repeated outputs get a copy.
fn own_outputs(inputs: usize, instrs: &mut Vec<Instr>, outputs: Vec<u8>) -> Vec<u8> {
    let mut taken = [false; 256];
    (0..inputs).for_each(|i| taken[i] = true);
    let mut free = 255;
    let mut used = [false; 256];
    instrs.iter().for_each(|i| used[usize::from(i.dst)] = true);
    outputs.iter().for_each(|&r| used[usize::from(r)] = true);
    outputs
        .into_iter()
        .map(|register| {
            if !std::mem::replace(&mut taken[usize::from(register)], true) {
                return register;
            }
            while used[usize::from(free)] {
                assert!(free > 0, "too many registers");
                free -= 1;
            }
            used[usize::from(free)] = true;
            instrs.push(Instr::unary(EltOp::Act(crate::Act::None), free, register));
            free
        })
        .collect()
}

/// Gives every value a slot; a buffer is free again after the last use of its value, also for the result of that use.
fn assign_slots(
    instrs: &[Instr],
    reads: &[([Result<usize, f32>; 3], usize)],
    values: &mut [Value],
) -> (Vec<Step>, usize) {
    let (mut free, mut buffers): (Vec<u8>, u8) = (vec![], 0);
    let mut steps = Vec::with_capacity(instrs.len());
    for (i, (instr, (read, made))) in instrs.iter().zip(reads).enumerate() {
        let args = read.map(|r| match r {
            Ok(value) => values[value].slot,
            Err(x) => Slot::Const(x),
        });
        let mut given = [None; 3];
        for (k, value) in read.iter().enumerate().filter_map(|(k, r)| r.ok().map(|v| (k, v))) {
            if let Slot::Buffer(b) = values[value].slot
                && values[value].last_use == i
                && !given.contains(&Some(b))
            {
                given[k] = Some(b);
                free.push(b);
            }
        }
        let value = &mut values[*made];
        value.slot = match value.output {
            Some(k) => Slot::Output(k),
            None => Slot::Buffer(free.pop().unwrap_or_else(|| {
                buffers = buffers.checked_add(1).expect("a program has fewer than 256 values at once");
                buffers - 1
            })),
        };
        // A value that nobody reads must not keep its buffer.
        if let (Slot::Buffer(b), true) = (value.slot, value.last_use == i) {
            free.push(b);
        }
        steps.push(Step { op: instr.op, args, to: value.slot });
    }
    (steps, usize::from(buffers))
}
