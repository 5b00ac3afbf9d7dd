//! Groups of elementwise operations as one kernel, the functions of an epilogue as OpenCL C, and changes of the element type.

use super::pointwise::{Operand, Pointwise};
use super::{Built, Port, Site, types};
use crate::backend::BuildCx;
use crate::launch::Launches;
use carafe_graph::{Error, Result};
use carafe_plan::elementwise::{Act, Binary, Elt, Unary, aligned, names};
use carafe_plan::{ElementwiseOp, Form, Layout, Source};
use carafe_tensor::{ElementType, strides};
use std::fmt::Write;

/// Operands of one kernel at most; arguments have a kilobyte together.
const MOST: usize = 16;

/// Whether a function of this type can be part of a kernel.
pub(crate) fn fuses(function: &Elt, ty: ElementType) -> bool {
    use ElementType as E;
    match ty {
        E::F32 => true,
        E::I8 | E::I16 | E::I32 | E::I64 | E::U8 | E::U16 | E::U32 | E::U64 => integer(*function, ty, "", "").is_some(),
        _ => false,
    }
}

/// Elementwise operations as statements.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// Each result in a variable: `const float r0 = f_relu(x0);`.
    pub(crate) body: String,
    /// The variable of the last.
    pub(crate) result: String,
    /// Inputs of the site that are read, in order; they are `x0`, `x1`.
    pub(crate) reads: Vec<usize>,
    /// Numbers, `c0`, `c1`: constants of one element and parameters of functions.
    pub(crate) numbers: Vec<f32>,
}

/// The operations as statements. With a main operation, `main` is the variable that holds its result.
pub(crate) fn chain(post: &[ElementwiseOp], main: Option<&str>, inputs: &[Port]) -> Chain {
    let mut chain = Chain { body: String::new(), result: String::new(), reads: vec![], numbers: vec![] };
    for (k, op) in post.iter().enumerate() {
        let operands: Vec<String> = op.sources.iter().map(|s| chain.operand(s, main, inputs, op.ty)).collect();
        let (a, b) = (operands[0].as_str(), operands.get(1).map_or("", String::as_str));
        let value = match op.ty {
            ElementType::F32 => chain.float(op.elt, a, b),
            // Only functions that `fuses` named come here.
            ty => integer(op.elt, ty, a, b).unwrap_or_default(),
        };
        let _ = writeln!(chain.body, "    const {} r{k} = {value};", types::computed(op.ty).unwrap_or("float"));
        chain.result = format!("r{k}");
    }
    chain
}

impl Chain {
    fn number(&mut self, x: f32) -> String {
        let known = self.numbers.iter().position(|n| n.to_bits() == x.to_bits());
        let at = known.unwrap_or_else(|| {
            self.numbers.push(x);
            self.numbers.len() - 1
        });
        format!("c{at}")
    }

    fn operand(&mut self, source: &Source, main: Option<&str>, inputs: &[Port], ty: ElementType) -> String {
        let i = match *source {
            Source::Result(0) if main.is_some() => return main.unwrap_or_default().to_string(),
            Source::Result(k) => return format!("r{}", k - usize::from(main.is_some())),
            Source::Input(i) => i,
        };
        if ty == ElementType::F32
            && let Some(&[number]) = inputs[i].floats().as_deref()
        {
            return self.number(number);
        }
        let at = self.reads.iter().position(|&r| r == i).unwrap_or_else(|| {
            self.reads.push(i);
            self.reads.len() - 1
        });
        format!("x{at}")
    }

    fn float(&mut self, elt: Elt, a: &str, b: &str) -> String {
        let mut call = |name: &str, parameters: &[f32]| {
            let parameters: String = parameters.iter().map(|&p| format!(", {}", self.number(p))).collect();
            format!("{name}({a}{parameters})")
        };
        match elt {
            Elt::Act(act) => match act {
                Act::Relu => call("f_relu", &[]),
                Act::Clamp { min, max } => call("f_clamp", &[min, max]),
                Act::LeakyRelu(slope) => call("f_leaky", &[slope]),
                Act::Elu(alpha) => call("f_elu", &[alpha]),
                Act::Selu { alpha, scale } => call("f_selu", &[alpha, scale]),
                Act::Sigmoid => call("f_sigmoid", &[]),
                Act::Tanh => call("tanh", &[]),
                Act::Swish(beta) => call("f_swish", &[beta]),
                Act::HSwish => call("f_hswish", &[]),
                Act::HSigmoid => call("f_hsigmoid", &[]),
                Act::HardSigmoid { alpha, beta } => call("f_hard_sigmoid", &[alpha, beta]),
                Act::GeluErf => call("f_gelu_erf", &[]),
                Act::GeluTanh => call("f_gelu_tanh", &[]),
                Act::Mish => call("f_mish", &[]),
                Act::SoftPlus => call("f_softplus", &[]),
                Act::SoftSign => call("f_softsign", &[]),
            },
            Elt::Quantize(q) => call("f_quantize", &[q.from[0], q.from[1], q.to[0], q.to[1], q.steps]),
            Elt::RoundTrip(r) => call("f_round_trip", &[r.scale, r.zero, r.low, r.high]),
            Elt::Unary(unary) => match unary {
                Unary::Abs => call("fabs", &[]),
                Unary::Negative => format!("-{a}"),
                Unary::RoundToEven => call("rint", &[]),
                Unary::RoundAway => call("round", &[]),
                Unary::Ceiling => call("ceil", &[]),
                Unary::Sign => call("f_sign", &[]),
                // The others have the names of the language.
                other => call(&format!("{other:?}").to_ascii_lowercase(), &[]),
            },
            Elt::Binary(binary) => match binary {
                Binary::Add => format!("{a} + {b}"),
                Binary::Subtract => format!("{a} - {b}"),
                Binary::Multiply => format!("{a} * {b}"),
                Binary::Divide => format!("{a} / {b}"),
                Binary::Maximum => format!("{a} < {b} ? {b} : {a}"),
                Binary::Minimum => format!("{b} < {a} ? {b} : {a}"),
                Binary::Power => format!("pow({a}, {b})"),
                Binary::SquaredDifference => format!("({a} - {b}) * ({a} - {b})"),
                Binary::Mod => format!("f_mod({a}, {b})"),
                Binary::FloorMod => format!("f_floor_mod({a}, {b})"),
                Binary::PRelu => format!("f_leaky({a}, {b})"),
            },
        }
    }
}

// A function of integers, which wrap.
fn integer(elt: Elt, ty: ElementType, a: &str, b: &str) -> Option<String> {
    let (own, wide) = (types::computed(ty)?, types::wrapping(ty));
    let wrapped = |sign: &str| format!("({own})(({wide}){a} {sign} ({wide}){b})");
    let negative = format!("({own})(0 - ({wide}){a})");
    Some(match elt {
        Elt::Binary(Binary::Add) => wrapped("+"),
        Elt::Binary(Binary::Subtract) => wrapped("-"),
        Elt::Binary(Binary::Multiply) => wrapped("*"),
        Elt::Binary(Binary::Maximum) => format!("{a} < {b} ? {b} : {a}"),
        Elt::Binary(Binary::Minimum) => format!("{b} < {a} ? {b} : {a}"),
        Elt::Unary(Unary::Negative) => negative,
        Elt::Unary(Unary::Abs) if !ty.is_signed() => a.to_string(),
        Elt::Unary(Unary::Abs) => format!("{a} < 0 ? {negative} : {a}"),
        Elt::Unary(Unary::Sign) => format!("({own})(({a} > 0) - ({a} < 0))"),
        _ => return None,
    })
}

// Whether an operand can be read with the channels last: it has all axes, or its bytes lie the same either way.
fn fits_channels_last(port: &Port, out: &Port) -> bool {
    port.rank() == out.rank() || Layout::PLAIN.same_for(Layout::CHANNELS_LAST, &aligned(port, out.rank()))
}

/// The layout of the largest of these inputs that is no constant, where all can be read so.
pub(crate) fn common_layout<'a>(reads: impl Iterator<Item = &'a Port> + Clone, out: &Port) -> Layout {
    if !reads.clone().all(|p| fits_channels_last(p, out)) {
        return Layout::PLAIN;
    }
    let computed = reads.filter(|p| p.constant.is_none() && p.rank() == out.rank());
    let decided = computed.filter(|p| !Layout::PLAIN.same_for(Layout::CHANNELS_LAST, &p.shape));
    let largest = decided.max_by_key(|p| (p.len(), p.layout == Layout::CHANNELS_LAST));
    largest.map_or(Layout::PLAIN, |p| p.layout).unblocked()
}

trait Unblocked {
    fn unblocked(self) -> Layout;
}

impl Unblocked for Layout {
    // Blocks are put into order first.
    fn unblocked(self) -> Layout {
        if self.is_blocked() { Layout::PLAIN } else { self }
    }
}

/// Elements from one to the next of an operand of this shape along the axes of the result, in the order in which they lie.
pub(crate) fn broadcast(shape: &[usize], layout: Layout) -> Vec<usize> {
    let dims = layout.dims(shape);
    strides(&dims).into_iter().zip(&dims).map(|(s, &n)| if n == 1 { 0 } else { s }).collect()
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if !site.group {
        return Ok(None);
    }
    let (out, cx) = (&site.outputs[0], site.cx);
    let mut chain = chain(site.epilogue, None, &site.inputs);
    // A kernel needs something to run over.
    if chain.reads.is_empty() {
        chain.reads.push(0);
    }
    if site.epilogue.len() > 1 && (chain.reads.len() > MOST || chain.numbers.len() > MOST) {
        return Ok(None);
    }
    let layout = common_layout(chain.reads.iter().map(|&i| &site.inputs[i]), out);
    let operand = |&i: &usize| {
        let port = &site.inputs[i];
        Operand { ty: cx.stored(port.ty), strides: broadcast(&aligned(port, out.rank()), layout) }
    };
    let pointwise = Pointwise {
        dims: layout.dims(&out.shape),
        operands: chain.reads.iter().map(operand).collect(),
        out: cx.stored(out.ty),
        body: chain.body,
        result: chain.result,
        numbers: chain.numbers,
        refuses: false,
    };
    let step = pointwise.step(cx, format!("elementwise[{}]", names(site.epilogue)))?;
    let form = |&i: &usize| {
        // A shorter value has no channels of its own; it lies the same way in both layouts.
        let own = if site.inputs[i].rank() == out.rank() { layout } else { Layout::PLAIN };
        (i, cx.form(&site.inputs[i], own))
    };
    let reads: Vec<(usize, Form)> = chain.reads.iter().map(form).collect();
    Ok(Some(step.built(reads, [cx.form(out, layout)])))
}

/// A step that converts so many elements, as the operation does.
pub(crate) fn convert(cx: &BuildCx, len: usize, from: ElementType, to: ElementType) -> Result<Launches> {
    let unknown = || Error::unsupported(format!("no kernel converts {from} to {to}"));
    let result = converted(from, to, "x0").filter(|_| double_is_there(cx, &[from, to])).ok_or_else(unknown)?;
    let operands = vec![Operand { ty: from, strides: vec![1] }];
    let (dims, body, numbers) = (vec![len], String::new(), vec![]);
    let pointwise = Pointwise { dims, operands, out: to, body, result, numbers, refuses: false };
    pointwise.step(cx, format!("convert[{from} {to}]"))
}

/// Whether the device knows all of these types.
pub(crate) fn double_is_there(cx: &BuildCx, types: &[ElementType]) -> bool {
    cx.has_double() || !types.contains(&ElementType::F64)
}

/// An element of one type as one of another, as `Convert` does it: floats are truncated, and what lies outside of the integers
/// of 32 or 64 bits becomes the least of them; narrower ones wrap.
pub(crate) fn converted(from: ElementType, to: ElementType, x: &str) -> Option<String> {
    use ElementType as E;
    let own = types::computed(to)?;
    types::computed(from)?;
    let float = from.is_float();
    let wide = if from == E::F64 { "_d" } else { "" };
    Some(match to {
        E::Boolean => format!("(uchar)({x} != 0)"),
        E::F16 | E::Bf16 | E::F32 | E::F64 => format!("({own}){x}"),
        E::U64 if float => format!("to_ulong{wide}({x})"),
        E::I64 | E::U32 if float => format!("({own})to_long{wide}({x})"),
        _ if float => format!("({own})to_int{wide}({x})"),
        _ => format!("({own}){x}"),
    })
}
