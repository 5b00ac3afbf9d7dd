//! Groups of elementwise operations, each in one pass over memory, and the same as what follows a matrix product.

use super::apart::{Apart, Operand};
use super::{Built, Io, Port, Site, Step};
use crate::lower::elements::{Binary, Elt, Unary};
use crate::lower::post::{Post, Source};
use crate::plan::Layout;
use carafe_graph::Result;
use carafe_kernels::eltwise::{Arg, Broadcast, Elements, EltOp, Instr, Program};
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
}

impl Step for Group {
    fn kernel(&self) -> String {
        self.name.clone()
    }
    fn may_lie_apart(&self, operand: Operand, row: usize) -> bool {
        match operand {
            Operand::Read(i) => self.inputs[i].last() == Some(&row),
            Operand::Write(_) => row > 1 && self.out.last() == Some(&row),
        }
    }
    fn apart(&self, apart: &Apart) -> Option<Arc<dyn Step>> {
        let pitches: Vec<usize> = (0..self.inputs.len()).map(|i| apart.read(i, 0)).collect();
        let dims: Vec<&[usize]> = self.inputs.iter().map(Vec::as_slice).collect();
        let broadcast = Broadcast::with_pitches(&self.out, &dims, &pitches, apart.write(0, 0));
        let elements = Elements::with_broadcast(self.elements.program().clone(), broadcast);
        Some(Arc::new(Group { elements, ..self.clone() }))
    }
    fn may_run_over(&self, read: usize) -> bool {
        self.elements.may_run_over(read)
    }
    fn run(&self, io: &mut Io<'_, '_>) -> Result<()> {
        let mut inputs: [&[f32]; MOST] = [&[]; MOST];
        let count = self.inputs.len();
        for (i, slot) in inputs.iter_mut().enumerate().take(count) {
            *slot = io.input(i);
        }
        let (exec, over) = (io.exec, io.over);
        match over {
            Some(over) => self.elements.run_over(exec, &inputs[..count], over, io.output(0)),
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
    let (program, reads) = program(site.post, None, &site.inputs);
    let layout = match reads.iter().all(|&i| fits_channels_last(&site.inputs[i], out)) {
        true => common_layout(site, &reads),
        false => Layout::Plain,
    };
    let dims: Vec<Vec<usize>> = site.inputs.iter().map(|p| layout.dims(&aligned(p, out.rank()))).collect();
    let inputs: Vec<Vec<usize>> = reads.iter().map(|&i| dims[i].clone()).collect();
    let dims: Vec<&[usize]> = inputs.iter().map(Vec::as_slice).collect();
    let out = layout.dims(&out.shape);
    let elements = Elements::new(program, &out, &dims);
    let reads = reads.into_iter().map(|i| {
        // A shorter value has no channels of its own; it lies the same way in both layouts.
        let own = if site.inputs[i].rank() == out.len() { layout } else { Layout::Plain };
        (i, own)
    });
    let reads: Vec<(usize, Layout)> = reads.collect();
    let name = format!("elementwise[{}]", names(site.post));
    Ok(Some(Built::step(Group { elements, name, out, inputs }, reads, layout)))
}

pub(super) fn names(post: &[Post]) -> String {
    let word = |p: &Post| {
        let text = match p.elt {
            Elt::Act(a) => format!("{a:?}"),
            Elt::Unary(u) => format!("{u:?}"),
            Elt::Binary(b) => format!("{b:?}"),
            Elt::Quantize(_) => "quantize".into(),
        };
        text.split([' ', '(']).next().unwrap_or_default().to_ascii_lowercase()
    };
    post.iter().map(word).collect::<Vec<_>>().join(" ")
}

// The shape with ones in front.
fn aligned(port: &Port, rank: usize) -> Vec<usize> {
    std::iter::repeat_n(1, rank.saturating_sub(port.rank())).chain(port.shape.iter().copied()).collect()
}

// Whether an operand can be read with the channels last: it has all axes, or its bytes lie the same either way.
fn fits_channels_last(port: &Port, out: &Port) -> bool {
    port.rank() == out.rank() || Layout::Plain.same_for(Layout::ChannelsLast, &aligned(port, out.rank()))
}

// The layout of the largest input that is no constant.
fn common_layout(site: &Site<'_>, reads: &[usize]) -> Layout {
    let computed =
        reads.iter().map(|&i| &site.inputs[i]).filter(|p| p.constant.is_none() && p.rank() == site.outputs[0].rank());
    let decided = computed.filter(|p| !Layout::Plain.same_for(Layout::ChannelsLast, &p.shape));
    decided.max_by_key(|p| (p.len(), p.layout == Layout::ChannelsLast)).map_or(Layout::Plain, |p| p.layout)
}

/// The program of posts, and which inputs it reads, in order. With a main operation its result is input 0 of the program.
/// Constants of one number become part of the program.
pub(super) fn program(post: &[Post], main: Option<()>, inputs: &[Port]) -> (Program, Vec<usize>) {
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
            Some(b) => Instr::binary(elt_op(p.elt), dst, a, arg(b)),
            None => Instr::unary(elt_op(p.elt), dst, a),
        });
    }
    let last = register(post.len() - 1 + first);
    (Program::new(count, instrs, vec![last]), reads)
}

fn elt_op(elt: Elt) -> EltOp {
    match elt {
        Elt::Act(act) => EltOp::Act(act),
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
        Elt::Quantize(q) => EltOp::Quantize(q),
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
    }
}
