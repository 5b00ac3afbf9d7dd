//! Softmax in its forms, and the heads of training, whose labels are no inputs of a model.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::{LogSoftmax, Sigmoid, Softmax};
use carafe_ops::math::Negative;
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("LogisticRegressionOutput", 0, |n| {
        n.ignore(&["grad_scale"]);
        let x = n.input(0)?;
        Ok(n.emit(Sigmoid, &[x])?.into())
    }),
    rule("SoftmaxActivation", 0, softmax_activation),
    rule("SoftmaxOutput", 0, softmax_output),
    rule("log_softmax", 0, |n| softmax(n, true, false)),
    rule("softmax", 0, |n| softmax(n, false, false)),
    rule("softmin", 0, |n| softmax(n, false, true)),
];

fn softmax(n: &mut NodeCx<'_>, is_log: bool, is_negative: bool) -> Result<Outputs> {
    let mut x = n.input(0)?;
    let axis = n.int("axis", -1)?;
    let temperature = n.opt_float("temperature")?.filter(|t| *t != 1.0);
    let result = n.dtype("dtype")?;
    let length = if n.flag("use_length", false)? { Some(n.input(1)?) } else { None };
    if let Some(ty) = result.filter(|ty| n.ty(x).is_float() && ty.bits() > n.ty(x).bits()) {
        x = n.convert(x, ty)?;
    }
    if is_negative {
        x = n.emit(Negative, &[x])?;
    }
    if let Some(t) = temperature {
        x = n.over_number(x, t)?;
    }
    let inside = length.map(|length| inside(n, x, length, axis)).transpose()?;
    if let Some(inside) = inside {
        let lowest = n.scalar_like(x, f64::NEG_INFINITY)?;
        x = n.choose(inside, x, lowest)?;
    }
    let mut y = match is_log {
        true => n.emit(LogSoftmax { axis }, &[x])?,
        false => n.emit(Softmax { axis }, &[x])?,
    };
    if let Some(inside) = inside {
        let zero = n.scalar_like(y, 0.0)?;
        y = n.choose(inside, y, zero)?;
    }
    let y = result.map_or(Ok(y), |ty| n.convert(y, ty))?;
    Ok(y.into())
}

// Where an axis is shorter than a length for each of the other axes.
fn inside(n: &mut NodeCx<'_>, x: Value, length: Value, axis: i64) -> Result<Value> {
    let rank = n.known_rank(x)?;
    let axis = n.axis(axis, rank)?;
    let size = n.length(x, axis as i64)?;
    let position = n.count_to(size, ElementType::I32)?;
    let position = n.along(position, axis, rank)?;
    let length = n.convert(length, ElementType::I32)?;
    let length = n.unsqueeze(length, &[axis as i64])?;
    n.less(position, length)
}

// Over all axes but the first, as if they were one.
fn over_the_rest(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    if n.rank(x) == Some(2) {
        return n.emit(Softmax { axis: 1 }, &[x]);
    }
    let shape = n.shape_of(x)?;
    let flat = n.reshape(x, &[0, -1])?;
    let y = n.emit(Softmax { axis: 1 }, &[flat])?;
    n.reshaped(y, shape, false)
}

fn softmax_activation(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let y = match n.word("mode", "instance").as_str() {
        "channel" => n.emit(Softmax { axis: 1 }, &[x])?,
        "instance" => n.emit(Softmax { axis: -1 }, &[x])?,
        other => return Err(n.unknown_word("mode", other, "instance, channel")),
    };
    Ok(y.into())
}

fn softmax_output(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["grad_scale", "ignore_label", "use_ignore", "normalization", "out_grad", "smooth_alpha"]);
    let x = n.input(0)?;
    let y = if n.flag("multi_output", false)? {
        n.ignore(&["preserve_shape"]);
        n.emit(Softmax { axis: 1 }, &[x])?
    } else if n.flag("preserve_shape", false)? {
        n.emit(Softmax { axis: -1 }, &[x])?
    } else {
        over_the_rest(n, x)?
    };
    Ok(y.into())
}
