//! Kernels of extensions at a unit of work: what they are asked, in the words of `carafe_device`, and their answer in those of a
//! plan. Any backend can put the kernel into a step.

use crate::backend::Backend;
use crate::elementwise::{Act, Binary, Elt, Unary};
use crate::epilogue::{ElementwiseOp, Source};
use crate::layout::{Form, Layout};
use crate::site::{Port, Site};
use carafe_device::{
    ChosenKernel, EpilogueOp, Function, KernelOffer, KernelOp, Layout as KernelLayout, Operand, PortLayout,
};
use carafe_graph::Fact;
use carafe_tensor::PartialShape;

/// A kernel with the forms in which a step of it reads and writes.
#[derive(Debug)]
pub struct PlannedKernel {
    /// The kernel.
    pub kernel: ChosenKernel,
    /// Name in reports: the kernel's, then what it takes of the epilogue.
    pub name: String,
    /// Form of each input that it reads, in order.
    pub inputs: Vec<Form>,
    /// Form of each output.
    pub outputs: Vec<Form>,
}

impl PlannedKernel {
    /// The kernel that takes a unit. `None` where none does, and where it asks for an order of elements or a type that plans do
    /// not have: then the node is evaluated, which copies around it.
    pub fn of<B: Backend>(site: &Site<'_, B>) -> Option<PlannedKernel> {
        let op = site.op.get::<KernelOp>().filter(|_| !site.group && !site.reordered() && site.before.is_none())?;
        let kernel = op.choose(KernelOffer {
            inputs: site.inputs.iter().map(fact).collect(),
            input_layouts: site.inputs.iter().map(|p| kernel_layout(p.layout)).collect(),
            outputs: site.outputs.iter().map(fact).collect(),
            epilogue: site.epilogue.iter().map(epilogue_op).collect(),
        })?;
        kernel.forms()?;
        let config = kernel.config();
        let inputs = config.inputs.iter().zip(&site.inputs).map(form).collect::<Option<_>>()?;
        let outputs = config.outputs.iter().zip(&site.outputs).map(form).collect::<Option<_>>()?;
        let mut name = kernel.name().to_string();
        for op in &site.epilogue[..config.epilogue] {
            name += &format!("+{:?}", epilogue_op(op).function).to_ascii_lowercase();
        }
        Some(PlannedKernel { kernel, name, inputs, outputs })
    }
}

fn fact(port: &Port) -> Fact {
    match &port.constant {
        Some(t) => Fact::of(t),
        None => Fact::new(port.ty, PartialShape::of(&port.shape)),
    }
}

fn form((wanted, port): (&PortLayout, &Port)) -> Option<Form> {
    let rank = port.shape.len();
    let layout = match wanted.layout {
        KernelLayout::Plain => Layout::PLAIN,
        KernelLayout::ChannelsLast => Layout::CHANNELS_LAST,
        KernelLayout::BlockedBy(n) if rank > 2 => Layout::channel_blocks(u16::try_from(n).ok().filter(|n| *n > 0)?),
        KernelLayout::BlockedBy(_) | KernelLayout::Other(_) => return None,
    };
    if wanted.ty == port.ty {
        return Some(layout.into());
    }
    let number = |ty: carafe_tensor::ElementType| !ty.is_sub_byte() && (ty.is_float() || ty.is_integer());
    (number(wanted.ty) && number(port.ty)).then(|| Form::typed(layout, wanted.ty))
}

fn kernel_layout(layout: Layout) -> KernelLayout {
    let [outer, inner] = layout.blocks;
    match () {
        _ if layout == Layout::CHANNELS_LAST => KernelLayout::ChannelsLast,
        _ if outer.size == 0 && layout == Layout::channel_blocks(inner.size) && inner.size > 0 => {
            KernelLayout::BlockedBy(inner.size.into())
        }
        _ => KernelLayout::Plain,
    }
}

fn epilogue_op(op: &ElementwiseOp) -> EpilogueOp {
    let operand = |s: &Source| match *s {
        Source::Input(i) => Operand::Input(i),
        Source::Result(k) => Operand::Result(k),
    };
    let (function, numbers) = function(op.elt);
    EpilogueOp { function, numbers, operands: op.sources.iter().map(operand).collect() }
}

fn function(elt: Elt) -> (Function, Vec<f64>) {
    match elt {
        Elt::Act(act) => activation(act),
        Elt::Unary(unary) => (of_one(unary), vec![]),
        Elt::Binary(binary) => (of_two(binary), vec![]),
        Elt::Quantize(q) => {
            let numbers = [q.from[0], q.from[1], q.to[0], q.to[1], q.steps];
            (Function::Quantize, numbers.map(f64::from).to_vec())
        }
        Elt::RoundTrip(r) => {
            let [low, high] = [r.low, r.high].map(|x| (x - r.zero) * r.scale);
            (Function::Quantize, [low, high, low, high, r.high - r.low].map(f64::from).to_vec())
        }
    }
}

fn activation(act: Act) -> (Function, Vec<f64>) {
    use Function as F;
    let (function, numbers): (F, &[f32]) = match act {
        Act::Relu => (F::Relu, &[]),
        Act::Clamp { min, max } => (F::Clamp, &[min, max]),
        Act::LeakyRelu(factor) => (F::LeakyRelu, &[factor]),
        Act::Elu(factor) => (F::Elu, &[factor]),
        Act::Selu { alpha, scale } => (F::Selu, &[alpha, scale]),
        Act::Sigmoid => (F::Sigmoid, &[]),
        Act::Tanh => (F::Tanh, &[]),
        Act::Swish(beta) => (F::Swish, &[beta]),
        Act::HSwish => (F::HSwish, &[]),
        Act::HSigmoid => (F::HSigmoid, &[]),
        Act::HardSigmoid { alpha, beta } => (F::HardSigmoid, &[alpha, beta]),
        Act::GeluErf => (F::GeluErf, &[]),
        Act::GeluTanh => (F::GeluTanh, &[]),
        Act::Mish => (F::Mish, &[]),
        Act::SoftPlus => (F::SoftPlus, &[]),
        Act::SoftSign => (F::SoftSign, &[]),
    };
    (function, numbers.iter().map(|n| f64::from(*n)).collect())
}

macro_rules! same_names {
    ($of:expr, $from:ident => $($name:ident),* $(,)?) => {
        match $of {
            $($from::$name => Function::$name,)*
        }
    };
}

fn of_one(unary: Unary) -> Function {
    same_names!(unary, Unary => Abs, Negative, Exp, Log, Sqrt, Floor, Ceiling, RoundToEven, RoundAway, Sign, Sin, Cos, Tan,
        Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh, Erf)
}

fn of_two(binary: Binary) -> Function {
    same_names!(binary, Binary => Add, Subtract, Multiply, Divide, Maximum, Minimum, Power, SquaredDifference, Mod,
        FloorMod, PRelu)
}
