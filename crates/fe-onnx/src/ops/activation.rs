//! Activations. Softmax, LogSoftmax and Hardmax work on one axis from version 13 on; before, the data was seen as a matrix
//! whose rows begin at `axis`.

use super::elementwise::{binary, same};
use super::shapes::{flatten, scalar};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::{self, gelu::GeluApproximation};
use carafe_ops::arithmetic::{Add, Divide, Maximum, Minimum, Multiply, Subtract};
use carafe_ops::compare::{Greater, Less};
use carafe_ops::indexing::{Gather, OneHot, Select, one_hot::NegativeIndices};
use carafe_ops::math::Exp;
use carafe_ops::movement::Reshape;
use carafe_ops::search::{
    TopK,
    topk::{TopKMode, TopKSort},
};
use carafe_tensor::{Dim, ElementType};

pub(crate) const RULES: &[StaticRule] = &[
    rule("Celu", 12, celu),
    rule("Clip", 1, clip_attributes),
    rule("Clip", 11, clip_inputs),
    rule("Elu", 1, elu),
    rule("Gelu", 20, gelu),
    rule("HardSigmoid", 1, hard_sigmoid),
    rule("HardSwish", 14, |n| same(n, activation::HSwish)),
    rule("Hardmax", 1, |n| on_rows(n, hardmax)),
    rule("Hardmax", 13, |n| on_axis(n, hardmax)),
    rule("LeakyRelu", 1, leaky_relu),
    rule("LogSoftmax", 1, |n| on_rows(n, log_softmax)),
    rule("LogSoftmax", 13, |n| on_axis(n, log_softmax)),
    rule("Mish", 18, |n| same(n, activation::Mish)),
    rule("PRelu", 1, prelu_of_channels),
    rule("PRelu", 7, prelu),
    rule("Relu", 1, |n| same(n, activation::Relu)),
    rule("Selu", 1, |n| selu(n, 1.6732, 1.0507)),
    rule("Selu", 6, |n| selu(n, 1.673_263_192_176_818_8, 1.050_701_022_148_132_3)),
    rule("Shrink", 9, shrink),
    rule("Sigmoid", 1, |n| same(n, activation::Sigmoid)),
    rule("Softmax", 1, |n| on_rows(n, softmax)),
    rule("Softmax", 13, |n| on_axis(n, softmax)),
    rule("Softplus", 1, |n| same(n, activation::SoftPlus)),
    rule("Softsign", 1, |n| same(n, activation::SoftSign)),
    rule("SwiGLU", 28, swi_glu),
    rule("Swish", 24, |n| Ok(swish(n)?.into())),
    rule("ThresholdedRelu", 1, thresholded_relu),
];

fn celu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let alpha: f64 = n.attr("alpha", 1.0)?;
    let x = n.input(0)?;
    let factor = n.scalar_like(x, alpha)?;
    let scaled = n.emit(Divide::default(), &[x, factor])?;
    if alpha > 0.0 {
        let bent = n.emit(activation::Elu { alpha: 1.0 }, &[scaled])?;
        return Ok(n.emit(Multiply::default(), &[bent, factor])?.into());
    }
    // max(0, x) + min(0, alpha * (exp(x / alpha) - 1)); an Elu would bend the other side.
    let (zero, one) = (n.scalar_like(x, 0.0)?, n.scalar_like(x, 1.0)?);
    let power = n.emit(Exp, &[scaled])?;
    let power = n.emit(Subtract::default(), &[power, one])?;
    let bent = n.emit(Multiply::default(), &[power, factor])?;
    let (above, below) = (n.emit(Maximum::default(), &[x, zero])?, n.emit(Minimum::default(), &[bent, zero])?);
    Ok(n.emit(Add::default(), &[above, below])?.into())
}

fn elu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let alpha: f64 = n.attr("alpha", 1.0)?;
    same(n, activation::Elu { alpha })
}

fn gelu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let approximate: String = n.attr("approximate", "none".to_string())?;
    let approximation_mode = match approximate.as_str() {
        "none" => GeluApproximation::Erf,
        "tanh" => GeluApproximation::Tanh,
        other => return Err(n.fail(format!("attribute `approximate` must be none or tanh, found {other}"))),
    };
    same(n, activation::Gelu { approximation_mode })
}

fn hard_sigmoid(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    let (alpha, beta): (f64, f64) = (n.attr("alpha", 0.2)?, n.attr("beta", 0.5)?);
    let x = n.input(0)?;
    let (alpha, beta) = (n.scalar_like(x, alpha)?, n.scalar_like(x, beta)?);
    Ok(n.emit(activation::HardSigmoid, &[x, alpha, beta])?.into())
}

fn leaky_relu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    let alpha: f64 = n.attr("alpha", 0.01)?;
    let x = n.input(0)?;
    let slope = n.scalar_like(x, alpha)?;
    Ok(n.emit(activation::PRelu, &[x, slope])?.into())
}

fn prelu_of_channels(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    binary(n, activation::PRelu)
}

// A vector of slopes belongs to the last axis here and to the channels in our operation. Exporters that meant the channels
// show it by a length that fits nothing else.
fn prelu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, mut slope) = (n.input(0)?, n.input(1)?);
    match n.rank(slope) {
        Some(1) => {
            let len = n.shape(slope).dim(0);
            let last = n.shape(x).dims().map(|d| d.last().copied().unwrap_or(Dim::known(1)));
            if len.contains(1) || last.is_none_or(|last| last.compatible(len)) {
                slope = n.unsqueeze(slope, &[0])?;
            }
        }
        Some(_) => {}
        None => {
            let (scaled, zero) = (n.emit(Multiply::default(), &[x, slope])?, n.scalar_like(x, 0.0)?);
            let below = n.emit(Less::default(), &[x, zero])?;
            return Ok(n.emit(select(), &[below, scaled, x])?.into());
        }
    }
    Ok(n.emit(activation::PRelu, &[x, slope])?.into())
}

fn selu(n: &mut NodeCx<'_>, alpha: f64, gamma: f64) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    let (alpha, gamma): (f64, f64) = (n.attr("alpha", alpha)?, n.attr("gamma", gamma)?);
    let x = n.input(0)?;
    let (alpha, gamma) = (n.scalar_like(x, alpha)?, n.scalar_like(x, gamma)?);
    Ok(n.emit(activation::Selu, &[x, alpha, gamma])?.into())
}

// Limit and bias are floats also for integer data.
fn shrink(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (lambd, bias): (f64, f64) = (n.attr("lambd", 0.5)?, n.attr("bias", 0.0)?);
    let data = n.input(0)?;
    let ty = n.ty(data);
    let x = if ty.is_integer() { n.convert(data, ElementType::F64)? } else { data };
    let (low, high) = (n.scalar_like(x, -lambd)?, n.scalar_like(x, lambd)?);
    let (bias, zero) = (n.scalar_like(x, bias)?, n.scalar_like(x, 0.0)?);
    let (raised, lowered) = (n.emit(Add::default(), &[x, bias])?, n.emit(Subtract::default(), &[x, bias])?);
    let (below, above) = (n.emit(Less::default(), &[x, low])?, n.emit(Greater::default(), &[x, high])?);
    let y = n.emit(select(), &[above, lowered, zero])?;
    let y = n.emit(select(), &[below, raised, y])?;
    Ok(n.convert_like(y, data)?.into())
}

fn swi_glu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (gate, x) = (swish(n)?, n.input(1)?);
    Ok(n.emit(Multiply::default(), &[gate, x])?.into())
}

fn swish(n: &mut NodeCx<'_>) -> Result<Value> {
    let alpha: f64 = n.attr("alpha", 1.0)?;
    let x = n.input(0)?;
    let alpha = n.scalar_like(x, alpha)?;
    n.emit(activation::Swish, &[x, alpha])
}

fn thresholded_relu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let alpha: f64 = n.attr("alpha", 1.0)?;
    let x = n.input(0)?;
    let (alpha, zero) = (n.scalar_like(x, alpha)?, n.scalar_like(x, 0.0)?);
    let above = n.emit(Greater::default(), &[x, alpha])?;
    Ok(n.emit(select(), &[above, x, zero])?.into())
}

fn clip_attributes(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    let (low, high) = (f64::from(f32::MIN), f64::from(f32::MAX));
    let (min, max): (f64, f64) = (n.attr("min", low)?, n.attr("max", high)?);
    same(n, activation::Clamp { min, max })
}

// The largest finite number of a float type, which bounds a Clip that is given no bounds.
fn largest(ty: ElementType) -> Option<f64> {
    Some(match ty {
        ElementType::F16 => 65504.0,
        ElementType::Bf16 => f64::from(f32::from_bits(0x7f7f_0000)),
        ElementType::F32 => f64::from(f32::MAX),
        ElementType::F64 => f64::MAX,
        _ => return None,
    })
}

// Limits in the wrong order give the upper one, which Clamp would refuse.
fn clip_inputs(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (min, max) = (n.opt(1)?, n.opt(2)?);
    let largest = largest(n.ty(x));
    if let Some(largest) = largest {
        let limit = |v: Option<Value>, open: f64| match v {
            Some(v) => n.tensor(v).filter(|t| t.len() == 1)?.to_vec::<f64>().ok()?.first().copied(),
            None => Some(open),
        };
        if let (Some(min), Some(max)) = (limit(min, -largest), limit(max, largest))
            && min <= max
        {
            return Ok(n.emit(activation::Clamp { min, max }, &[x])?.into());
        }
    }
    let mut bound = |given: Option<Value>, open: Option<f64>| match (given, open) {
        (Some(v), _) => scalar(n, v).map(Some),
        (None, Some(open)) => n.scalar_like(x, open).map(Some),
        (None, None) => Ok(None),
    };
    let (min, max) = (bound(min, largest.map(|l| -l))?, bound(max, largest)?);
    let mut y = x;
    if let Some(min) = min {
        y = n.emit(Maximum::default(), &[y, min])?;
    }
    if let Some(max) = max {
        y = n.emit(Minimum::default(), &[y, max])?;
    }
    Ok(y.into())
}

fn select() -> Select {
    Select { auto_broadcast: Default::default(), auto_broadcast_axis: None }
}

type AlongAxis = fn(&mut NodeCx<'_>, Value, i64) -> Result<Value>;

fn on_axis(n: &mut NodeCx<'_>, along: AlongAxis) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", -1)?;
    let x = n.input(0)?;
    match n.rank(x) {
        Some(0) => of_scalar(n, x, along),
        _ => Ok(along(n, x, axis)?.into()),
    }
}

// A scalar is a row of one element.
fn of_scalar(n: &mut NodeCx<'_>, x: Value, along: AlongAxis) -> Result<Outputs> {
    let row = n.unsqueeze(x, &[0])?;
    let y = along(n, row, 0)?;
    Ok(n.squeeze(y, &[0])?.into())
}

fn on_rows(n: &mut NodeCx<'_>, along: AlongAxis) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", 1)?;
    let x = n.input(0)?;
    if n.rank(x) == Some(0) {
        return of_scalar(n, x, along);
    }
    if let Some(rank) = n.rank(x)
        && rank > 0
        && n.axis(axis, rank)? == rank - 1
    {
        return Ok(along(n, x, axis)?.into());
    }
    let shape = n.shape_of(x)?;
    let rows = flatten(n, x, axis)?;
    let y = along(n, rows, 1)?;
    Ok(n.emit(Reshape { special_zero: false }, &[y, shape])?.into())
}

fn softmax(n: &mut NodeCx<'_>, x: Value, axis: i64) -> Result<Value> {
    n.emit(activation::Softmax { axis }, &[x])
}

fn log_softmax(n: &mut NodeCx<'_>, x: Value, axis: i64) -> Result<Value> {
    n.emit(activation::LogSoftmax { axis }, &[x])
}

// One at the first of the largest.
fn hardmax(n: &mut NodeCx<'_>, x: Value, axis: i64) -> Result<Value> {
    let best = TopK {
        axis,
        mode: TopKMode::Max,
        sort: TopKSort::Value,
        index_element_type: ElementType::I64,
        stable: true,
    };
    let one = n.i64(1)?;
    let at = match n.emit_all(best, &[x, one])?.as_slice() {
        [_, at, ..] => *at,
        _ => return Err(n.fail("TopK has no indices")),
    };
    let at = n.squeeze(at, &[axis])?;
    let (shape, position, zero) = (n.shape_of(x)?, n.i64(axis)?, n.i64(0)?);
    let depth = n.emit(Gather { batch_dims: 0 }, &[shape, position, zero])?;
    let (on, off) = (n.scalar_like(x, 1.0)?, n.scalar_like(x, 0.0)?);
    n.emit(OneHot { axis, negative_indices_mode: NegativeIndices::Ignore }, &[at, depth, on, off])
}

