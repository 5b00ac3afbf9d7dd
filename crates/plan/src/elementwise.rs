//! Which operations work element by element, and as what.

use crate::lower::draft::Val;
use crate::{ElementwiseOp, Port};
use carafe_graph::Op;
use carafe_ops::activation as act;
use carafe_ops::arithmetic::{self as arith, AutoBroadcast};
use carafe_ops::carafe::QuantizeDequantize;
use carafe_ops::math;
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::ElementType;

/// An elementwise function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Elt {
    /// A function that networks put behind a layer.
    Act(Act),
    /// A function of one number.
    Unary(Unary),
    /// A function of two numbers.
    Binary(Binary),
    /// FakeQuantize of one range.
    Quantize(Quantize),
    /// QuantizeDequantize.
    RoundTrip(RoundTrip),
}

/// An activation. The formulas are those of the operations of the same names.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Act {
    Relu,
    Clamp {
        min: f32,
        max: f32,
    },
    /// `x` times the factor below zero.
    LeakyRelu(f32),
    /// `factor * (exp(x) - 1)` below zero.
    Elu(f32),
    /// `scale * (x > 0 ? x : alpha * (exp(x) - 1))`.
    Selu {
        alpha: f32,
        scale: f32,
    },
    Sigmoid,
    Tanh,
    /// `x * sigmoid(beta * x)`.
    Swish(f32),
    /// `x * clamp(x + 3, 0, 6) / 6`.
    HSwish,
    /// `clamp(x + 3, 0, 6) / 6`.
    HSigmoid,
    /// `clamp(alpha * x + beta, 0, 1)`.
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    GeluErf,
    GeluTanh,
    Mish,
    SoftPlus,
    SoftSign,
}

/// FakeQuantize with numbers for its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantize {
    /// Lower and upper limit of what is read.
    pub from: [f32; 2],
    /// Lower and upper limit of the result.
    pub to: [f32; 2],
    /// Steps between the limits: one less than the levels.
    pub steps: f32,
}

/// Rounding to the steps of a grid: `(clamp(round(x / scale) + zero, low, high) - zero) * scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RoundTrip {
    pub scale: f32,
    pub zero: f32,
    pub low: f32,
    pub high: f32,
}

/// A function of one number, named after its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unary {
    Abs,
    Negative,
    Exp,
    Log,
    Sqrt,
    Floor,
    Ceiling,
    RoundToEven,
    RoundAway,
    Sign,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Asinh,
    Acosh,
    Atanh,
    Erf,
}

/// A function of two numbers, named after its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Maximum,
    Minimum,
    Power,
    SquaredDifference,
    Mod,
    FloorMod,
    /// The second operand is the slope below zero.
    PRelu,
}

impl Elt {
    /// What an operation is and of which type, when its operands and its output are of that type and of known shape. The
    /// ports are the inputs, then the output.
    pub(crate) fn of(op: &dyn Op, ports: &[&Val]) -> Option<(Elt, ElementType)> {
        let elt = unary(op, ports).or_else(|| binary(op, ports)).or_else(|| quantize(op, ports))?;
        let output = ports.last()?;
        let alike = |v: &&Val| v.ty == output.ty && v.shape.as_ref().is_some_and(|s| !s.contains(&0));
        (elt.operands(ports).iter().all(alike) && alike(output)).then_some((elt, output.ty))
    }
    /// Those of a node's inputs that are operands; the others are parameters that `of` has read.
    pub(crate) fn operands<'a, T>(&self, inputs: &'a [T]) -> &'a [T] {
        match self {
            Elt::Act(_) | Elt::Unary(_) | Elt::Quantize(_) | Elt::RoundTrip(_) => &inputs[..1],
            Elt::Binary(_) => &inputs[..2],
        }
    }
}

/// Whether a value can be an operand of what follows a convolution or matrix product of this shape: of the same shape, one
/// number, or one number a column.
pub(crate) fn operand_fits(v: &Val, ty: ElementType, shape: &[usize], column_axis: usize) -> bool {
    let Some(own) = &v.shape else { return false };
    v.ty == ty && (own == shape || is_scalar(own) || is_column_vector(own, shape, column_axis))
}

/// Names of operations for reports.
pub fn names(ops: &[ElementwiseOp]) -> String {
    let word = |p: &ElementwiseOp| {
        let text = match p.elt {
            Elt::Act(a) => format!("{a:?}"),
            Elt::Unary(u) => format!("{u:?}"),
            Elt::Binary(b) => format!("{b:?}"),
            Elt::Quantize(_) | Elt::RoundTrip(_) => "quantize".into(),
        };
        text.split([' ', '(']).next().unwrap_or_default().to_ascii_lowercase()
    };
    ops.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The shape of a port with ones in front.
pub fn aligned(port: &Port, rank: usize) -> Vec<usize> {
    std::iter::repeat_n(1, rank.saturating_sub(port.rank())).chain(port.shape.iter().copied()).collect()
}

/// Whether a shape has one element.
pub fn is_scalar(shape: &[usize]) -> bool {
    shape.iter().all(|&n| n == 1)
}

/// Whether a shape, aligned at the last axis, has more than one element only on the column axis.
pub fn is_column_vector(own: &[usize], shape: &[usize], column_axis: usize) -> bool {
    own.len() <= shape.len()
        && own.iter().rev().zip((0..shape.len()).rev()).all(|(&n, axis)| match axis == column_axis {
            true => n == shape[axis],
            false => n == 1,
        })
        && own.len() + column_axis >= shape.len()
}

fn number(port: &Val) -> Option<f32> {
    let t = port.constant.as_ref()?;
    if t.len() != 1 {
        return None;
    }
    t.to_vec::<f32>().ok()?.first().copied()
}

fn unary(op: &dyn Op, ports: &[&Val]) -> Option<Elt> {
    let parameter = |i: usize| ports.get(i).filter(|_| i + 1 < ports.len()).map(|p| number(p));
    let act = if let Some(c) = op.get::<act::Clamp>() {
        Act::Clamp { min: c.min as f32, max: c.max as f32 }
    } else if op.is::<act::Relu>() {
        Act::Relu
    } else if let Some(e) = op.get::<act::Elu>() {
        Act::Elu(e.alpha as f32)
    } else if let Some(g) = op.get::<act::Gelu>() {
        match g.approximation_mode {
            act::gelu::GeluApproximation::Erf => Act::GeluErf,
            act::gelu::GeluApproximation::Tanh => Act::GeluTanh,
        }
    } else if op.is::<act::HSigmoid>() {
        Act::HSigmoid
    } else if op.is::<act::HSwish>() {
        Act::HSwish
    } else if op.is::<act::HardSigmoid>() {
        Act::HardSigmoid { alpha: parameter(1)??, beta: parameter(2)?? }
    } else if op.is::<act::Mish>() {
        Act::Mish
    } else if op.is::<act::Selu>() {
        Act::Selu { alpha: parameter(1)??, scale: parameter(2)?? }
    } else if op.is::<act::Sigmoid>() {
        Act::Sigmoid
    } else if op.is::<act::SoftPlus>() {
        Act::SoftPlus
    } else if op.is::<act::SoftSign>() {
        Act::SoftSign
    } else if op.is::<act::Swish>() {
        match parameter(1) {
            None => Act::Swish(1.0),
            Some(beta) => Act::Swish(beta?),
        }
    } else if op.is::<act::PRelu>() {
        Act::LeakyRelu(parameter(1)??)
    } else if op.is::<math::Tanh>() {
        Act::Tanh
    } else {
        return plain_unary(op).map(Elt::Unary);
    };
    Some(Elt::Act(act))
}

fn quantize(op: &dyn Op, ports: &[&Val]) -> Option<Elt> {
    if let Some(op) = op.get::<QuantizeDequantize>() {
        let [zero, low, high] = [op.zero, op.low, op.high].map(|x| x as f32);
        return Some(Elt::RoundTrip(RoundTrip { scale: op.scale, zero, low, high }));
    }
    let op = op.get::<FakeQuantize>().filter(|op| op.levels < 1 << 24)?;
    let limit = |i: usize| ports.get(i).filter(|p| p.ty == ElementType::F32).and_then(|p| number(p));
    let (from, to) = ([limit(1)?, limit(2)?], [limit(3)?, limit(4)?]);
    Some(Elt::Quantize(Quantize { from, to, steps: (op.levels - 1) as f32 }))
}

fn plain_unary(op: &dyn Op) -> Option<Unary> {
    macro_rules! table {
        ($($class:ident => $unary:ident),* $(,)?) => {
            $(if op.is::<math::$class>() { return Some(Unary::$unary); })*
        };
    }
    table! {
        Abs => Abs, Negative => Negative, Exp => Exp, Log => Log, Sqrt => Sqrt, Floor => Floor, Ceiling => Ceiling,
        Sign => Sign, Sin => Sin, Cos => Cos, Tan => Tan, Asin => Asin, Acos => Acos, Atan => Atan, Sinh => Sinh,
        Cosh => Cosh, Asinh => Asinh, Acosh => Acosh, Atanh => Atanh, Erf => Erf,
    }
    op.get::<math::Round>().map(|r| match r.mode {
        math::round::RoundMode::HalfToEven => Unary::RoundToEven,
        math::round::RoundMode::HalfAwayFromZero => Unary::RoundAway,
    })
}

fn binary(op: &dyn Op, ports: &[&Val]) -> Option<Elt> {
    macro_rules! table {
        ($($class:ident => $binary:ident),* $(,)?) => {
            $(if let Some(b) = op.get::<arith::$class>() {
                return meets(b.auto_broadcast, ports).then_some(Elt::Binary(Binary::$binary));
            })*
        };
    }
    table! {
        Add => Add, Subtract => Subtract, Multiply => Multiply, Divide => Divide, Maximum => Maximum,
        Minimum => Minimum, Power => Power, SquaredDifference => SquaredDifference, Mod => Mod, FloorMod => FloorMod,
    }
    if op.is::<act::PRelu>() {
        // A slope of rank 1 lies along axis 1 unless that is the last axis; only slopes that align like other operands.
        let [x, slope, _] = ports else { return None };
        let (x, slope) = (x.shape.as_ref()?, slope.shape.as_ref()?);
        let aligned = slope.len() == x.len() || (slope.len() == 1 && x.len() == 2);
        return (aligned && slope.iter().zip(x.iter().skip(x.len() - slope.len())).all(|(s, n)| *s == 1 || s == n))
            .then_some(Elt::Binary(Binary::PRelu));
    }
    None
}

// Shapes that meet as numpy's do.
fn meets(how: AutoBroadcast, ports: &[&Val]) -> bool {
    match how {
        AutoBroadcast::Numpy => true,
        AutoBroadcast::None | AutoBroadcast::Pdpd => ports[0].shape == ports[1].shape,
    }
}
