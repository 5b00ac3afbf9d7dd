//! Groups of elementwise operations, each in one pass over memory, and the same as what follows a matrix product.

use super::{Built, Cpu, Io, Port, Site, Step, half};
use carafe_graph::Result;
use carafe_kernels::Halves;
use carafe_kernels::eltwise::{Arg, Broadcast, Elements, EltOp, Instr, Program, Quantize, Steps};
use carafe_plan::elementwise::{Act, Binary, Elt, Unary, aligned, names};
use carafe_plan::{ElementwiseOp, Form, Layout, Operand, RowStrides, Source};
use std::sync::Arc;

/// Inputs and outputs together that the kernel takes.
const MOST: usize = 30;

#[derive(Clone, Debug)]
struct Group {
    elements: Elements,
    name: String,
    /// Dimensions of the result and of each input, as they lie.
    out: Vec<usize>,
    inputs: Vec<Vec<usize>>,
    /// Inputs that lie as numbers of 16 bits, whether the result does, and their type.
    halves: (Vec<usize>, bool, Halves),
}

impl Group {
    fn in_halves(&self) -> bool {
        !self.halves.0.is_empty() || self.halves.1
    }
}

impl Step<Cpu> for Group {
    fn kernel(&self) -> String {
        self.name.clone()
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        match operand {
            Operand::Read(i) => self.inputs[i].last() == Some(&row) && !self.halves.0.contains(&i),
            Operand::Write(_) => row > 1 && self.out.last() == Some(&row),
        }
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let row_strides: Vec<usize> = (0..self.inputs.len()).map(|i| strides.read(i, 0)).collect();
        let dims: Vec<&[usize]> = self.inputs.iter().map(Vec::as_slice).collect();
        let broadcast = Broadcast::with_pitches(&self.out, &dims, &row_strides, strides.write(0, 0));
        let elements = Elements::with_broadcast(self.elements.program().clone(), broadcast);
        let elements = elements.of_halves(self.halves.2, &self.halves.0, self.halves.1);
        Some(Arc::new(Group { elements, ..self.clone() }))
    }
    fn runs_in_place(&self, read: usize) -> bool {
        self.elements.may_run_over(read)
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let count = self.inputs.len();
        if self.in_halves() {
            let (out, io) = io.take_output(0);
            self.elements.run_halves(io.exec, &io.inputs[..count], out);
            return Ok(());
        }
        let mut inputs: [&[f32]; MOST] = [&[]; MOST];
        for (i, slot) in inputs.iter_mut().enumerate().take(count) {
            *slot = io.input(i);
        }
        let (exec, in_place) = (io.exec, io.in_place);
        match in_place {
            Some(read) => self.elements.run_over(exec, &inputs[..count], read, io.output(0)),
            None => self.elements.run(exec, &inputs[..count], &mut [io.output(0)]),
        }
        Ok(())
    }
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if !site.group || site.inputs.len() >= MOST {
        return Ok(None);
    }
    let out = &site.outputs[0];
    let (program, reads) = program(site.epilogue, None, &site.inputs);
    let layout = match reads.iter().all(|&i| fits_channels_last(&site.inputs[i], out)) {
        true => common_layout(site, &reads),
        false => Layout::PLAIN,
    };
    let dims: Vec<Vec<usize>> = site.inputs.iter().map(|p| layout.dims(&aligned(p, out.rank()))).collect();
    let inputs: Vec<Vec<usize>> = reads.iter().map(|&i| dims[i].clone()).collect();
    let dims: Vec<&[usize]> = inputs.iter().map(Vec::as_slice).collect();
    let out = layout.dims(&out.shape);
    let elements = Elements::new(program, &out, &dims);
    // What has all of the result's elements may lie as numbers of 16 bits.
    let kind = site.cx.half.unwrap_or(Halves::Bf16);
    let narrow = half::type_of(kind);
    let lies_so = |&at: &usize| site.inputs[reads[at]].stored == narrow && inputs[at] == out;
    let halves: Vec<usize> = (0..reads.len()).filter(lies_so).collect();
    let to_half = half::preferred(site) == Some(kind);
    let elements = elements.of_halves(kind, &halves, to_half);
    let typed = |half: bool, layout: Layout| if half { Form::typed(layout, narrow) } else { layout.into() };
    let reads = reads.into_iter().enumerate().map(|(at, i)| {
        // A shorter value has no channels of its own; it lies the same way in both layouts.
        let own = if site.inputs[i].rank() == out.len() { layout } else { Layout::PLAIN };
        (i, typed(halves.contains(&at), own))
    });
    let reads: Vec<(usize, Form)> = reads.collect();
    let name = format!("elementwise[{}]", names(site.epilogue));
    let output = typed(to_half, layout);
    Ok(Some(Built::step(Group { elements, name, out, inputs, halves: (halves, to_half, kind) }, reads, output)))
}

// Whether an operand can be read with the channels last: it has all axes, or its bytes lie the same either way.
pub(super) fn fits_channels_last(port: &Port, out: &Port) -> bool {
    port.rank() == out.rank() || Layout::PLAIN.same_for(Layout::CHANNELS_LAST, &aligned(port, out.rank()))
}

// The layout of the largest input that is no constant.
pub(super) fn common_layout(site: &Site<'_>, reads: &[usize]) -> Layout {
    let computed =
        reads.iter().map(|&i| &site.inputs[i]).filter(|p| p.constant.is_none() && p.rank() == site.outputs[0].rank());
    let decided = computed.filter(|p| !Layout::PLAIN.same_for(Layout::CHANNELS_LAST, &p.shape));
    decided.max_by_key(|p| (p.len(), p.layout == Layout::CHANNELS_LAST)).map_or(Layout::PLAIN, |p| p.layout)
}

/// The program of elementwise work, and which inputs it reads, in order. With a main operation its result is input 0 of the program.
/// Constants of one number become part of the program.
pub(super) fn program(post: &[ElementwiseOp], main: Option<()>, inputs: &[Port]) -> (Program, Vec<usize>) {
    let first = usize::from(main.is_some());
    let number = |i: usize| inputs[i].floats().filter(|v| v.len() == 1).map(|v| v[0]);
    let mut reads: Vec<usize> = vec![];
    let used = post.iter().flat_map(|p| &p.sources).filter_map(|s| match s {
        Source::Input(i) => Some(*i),
        Source::Result(_) => None,
    });
    for i in used {
        // A number that only ever meets others as a constant needs no memory.
        if number(i).is_none() && !reads.contains(&i) {
            reads.push(i);
        }
    }
    // A program needs something to run over.
    if reads.is_empty() && main.is_none() {
        reads.push(0);
    }
    let count = first + reads.len();
    let register = |result: usize| match main {
        Some(()) if result == 0 => 0,
        Some(()) => (count + result - 1) as u8,
        None => (count + result) as u8,
    };
    let arg = |s: &Source| -> Arg {
        match *s {
            Source::Result(k) => Arg::Reg(register(k)),
            Source::Input(i) => match reads.iter().position(|&r| r == i) {
                Some(at) => Arg::Reg((first + at) as u8),
                None => Arg::Const(number(i).unwrap_or(f32::NAN)),
            },
        }
    };
    let mut instrs = vec![];
    for (k, p) in post.iter().enumerate() {
        let dst = register(k + first);
        let a = arg(&p.sources[0]);
        instrs.push(match p.sources.get(1) {
            Some(b) => Instr::binary(op(p.elt), dst, a, arg(b)),
            None => Instr::unary(op(p.elt), dst, a),
        });
    }
    let last = register(post.len() - 1 + first);
    (Program::new(count, instrs, vec![last]), reads)
}

// Only functions that the kernels have are fused, see `Cpu::fuses`.
fn op(elt: Elt) -> EltOp {
    elt_op(elt).unwrap_or_else(|| unreachable!("{elt:?} was fused"))
}

/// What the kernels call a function; `None` for one that they do not have.
pub(crate) fn elt_op(elt: Elt) -> Option<EltOp> {
    Some(match elt {
        Elt::Act(act) => EltOp::Act(act_of(act)),
        Elt::Unary(u) => match u {
            Unary::Abs => EltOp::Abs,
            Unary::Negative => EltOp::Neg,
            Unary::Exp => EltOp::Exp,
            Unary::Log => EltOp::Log,
            Unary::Sqrt => EltOp::Sqrt,
            Unary::Floor => EltOp::Floor,
            Unary::Ceiling => EltOp::Ceil,
            Unary::RoundToEven => EltOp::RoundEven,
            Unary::RoundAway => EltOp::RoundAway,
            Unary::Sign => EltOp::Sign,
            Unary::Sin => EltOp::Sin,
            Unary::Cos => EltOp::Cos,
            Unary::Tan => EltOp::Tan,
            Unary::Asin => EltOp::Asin,
            Unary::Acos => EltOp::Acos,
            Unary::Atan => EltOp::Atan,
            Unary::Sinh => EltOp::Sinh,
            Unary::Cosh => EltOp::Cosh,
            Unary::Asinh => EltOp::Asinh,
            Unary::Acosh => EltOp::Acosh,
            Unary::Atanh => EltOp::Atanh,
            Unary::Erf => EltOp::Erf,
        },
        Elt::Quantize(q) => EltOp::Quantize(Quantize::new(q.from, q.to, q.steps)?),
        Elt::RoundTrip(r) => EltOp::RoundTrip(Steps::new(r.scale, r.zero, r.low, r.high)?),
        Elt::Binary(b) => match b {
            Binary::Add => EltOp::Add,
            Binary::Subtract => EltOp::Sub,
            Binary::Multiply => EltOp::Mul,
            Binary::Divide => EltOp::Div,
            Binary::Maximum => EltOp::Max,
            Binary::Minimum => EltOp::Min,
            Binary::Power => EltOp::Pow,
            Binary::SquaredDifference => EltOp::SquaredDifference,
            Binary::Mod => EltOp::Mod,
            Binary::FloorMod => EltOp::FloorMod,
            Binary::PRelu => EltOp::PRelu,
        },
    })
}

/// What the kernels call an activation.
pub(super) fn act_of(act: Act) -> carafe_kernels::Act {
    use carafe_kernels::Act as A;
    match act {
        Act::Relu => A::Relu,
        Act::Clamp { min, max } => A::Clamp { min, max },
        Act::LeakyRelu(slope) => A::LeakyRelu(slope),
        Act::Elu(alpha) => A::Elu(alpha),
        Act::Selu { alpha, scale } => A::Selu { alpha, scale },
        Act::Sigmoid => A::Sigmoid,
        Act::Tanh => A::Tanh,
        Act::Swish(beta) => A::Swish(beta),
        Act::HSwish => A::HSwish,
        Act::HSigmoid => A::HSigmoid,
        Act::HardSigmoid { alpha, beta } => A::HardSigmoid { alpha, beta },
        Act::GeluErf => A::GeluErf,
        Act::GeluTanh => A::GeluTanh,
        Act::Mish => A::Mish,
        Act::SoftPlus => A::SoftPlus,
        Act::SoftSign => A::SoftSign,
    }
}
