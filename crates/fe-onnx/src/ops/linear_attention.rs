//! LinearAttention and CausalConvWithState: layers that carry a state instead of all keys of the past. The state is kept
//! in f32 whatever the type of the data, and rounded once at the end.

use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Body, BodyInput, BodyOutput, Model, Result, Slicing, Value};
use carafe_ops::activation::Swish;
use carafe_ops::control::TensorIterator;
use carafe_ops::convolution::GroupConvolution;
use carafe_ops::convolution::window::PadType;
use carafe_ops::linear::MatMul;
use carafe_ops::math::Exp;
use carafe_tensor::{Dim, ElementType, PartialShape};

pub(crate) const RULES: &[StaticRule] =
    &[rule("CausalConvWithState", 27, causal_conv), rule("LinearAttention", 27, linear_attention)];

/// The type sums are made in.
fn wide_type(ty: ElementType) -> ElementType {
    if ty == ElementType::F64 { ElementType::F64 } else { ElementType::F32 }
}

fn causal_conv(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let activation: String = n.attr("activation", "none".to_string())?;
    let (x, w) = (n.input(0)?, n.input(1)?);
    let (bias, past) = (n.opt(2)?, n.opt(3)?);
    let ty = wide_type(n.ty(x));
    let past = match past {
        Some(past) => past,
        None => {
            let (batch, channels, kernel) = (n.size(x, 0)?, n.size(x, 1)?, n.size(w, 2)?);
            let one = n.i64s(&[1])?;
            let length = n.minus(kernel, one)?;
            let shape = n.concat(&[batch, channels, length], 0)?;
            let zero = n.scalar_like(x, 0.0)?;
            n.stretch(zero, shape)?
        }
    };
    let all = n.concat(&[past, x], 2)?;
    let (data, filters) = (n.convert(all, ty)?, n.convert(w, ty)?);
    let filters = n.unsqueeze(filters, &[1])?;
    let op = GroupConvolution {
        strides: vec![1],
        pads_begin: vec![0],
        pads_end: vec![0],
        dilations: vec![1],
        auto_pad: PadType::Explicit,
    };
    let mut y = n.emit(op, &[data, filters])?;
    if let Some(bias) = bias {
        let bias = n.convert(bias, ty)?;
        let bias = n.unsqueeze(bias, &[1])?;
        y = n.plus(y, bias)?;
    }
    y = match activation.as_str() {
        "none" => y,
        "silu" | "swish" => n.emit(Swish, &[y])?,
        _ => return Err(n.fail(format!("activation must be none, silu or swish, found `{activation}`"))),
    };
    let y = n.convert_like(y, x)?;
    let (start, end) = (n.size(x, 2)?, n.i64s(&[i64::MAX])?);
    let present = n.cut(all, start, end, 2)?;
    Ok(vec![y, present].into())
}

fn linear_attention(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (q_heads, kv_heads): (i64, i64) = (n.required("q_num_heads")?, n.required("kv_num_heads")?);
    let scale: f32 = n.attr("scale", 0.0)?;
    let rule: String = n.attr("update_rule", "gated_delta".to_string())?;
    n.ignore(&["chunk_size"]);
    if kv_heads < 1 || q_heads < 1 || q_heads % kv_heads != 0 {
        return Err(n.fail(format!("{q_heads} heads of queries cannot share {kv_heads} heads of keys equally")));
    }
    let (gated, corrected) = match rule.as_str() {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        _ => {
            return Err(n.fail(format!("update_rule must be linear, gated, delta or gated_delta, found `{rule}`")));
        }
    };
    let (query, key, value) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let past = n.opt(3)?;
    let ty = wide_type(n.ty(query));

    // Queries that share a state stand side by side: [batch, head, time, query, size].
    let q = n.convert(query, ty)?;
    let q = n.reshape(q, &[0, 0, kv_heads, q_heads / kv_heads, -1])?;
    let q = match scale {
        0.0 => {
            let size = n.length(q, 4)?;
            let size = n.convert(size, ty)?;
            let root = n.sqrt(size)?;
            n.over(q, root)?
        }
        scale => n.times_number(q, f64::from(scale))?,
    };
    let q = n.transpose(q, &[0, 2, 1, 3, 4])?;
    let apart = |n: &mut NodeCx<'_>, v: Value| -> Result<Value> {
        let v = n.convert(v, ty)?;
        let v = n.reshape(v, &[0, 0, kv_heads, -1])?;
        n.transpose(v, &[0, 2, 1, 3])
    };
    let (k, v) = (apart(n, key)?, apart(n, value)?);
    let start = match past {
        Some(past) => n.convert(past, ty)?,
        None => {
            let sizes = [n.size(k, 0)?, n.size(k, 1)?, n.size(k, 3)?, n.size(v, 3)?];
            let shape = n.concat(&sizes, 0)?;
            let zero = n.scalar(ty, 0.0)?;
            n.stretch(zero, shape)?
        }
    };
    let mut outer = vec![q, k, v, start];
    if gated {
        let decay = n.input(4)?;
        let decay = apart(n, decay)?;
        outer.push(n.emit(Exp, &[decay])?);
    }
    if corrected {
        let beta = n.input(5)?;
        let beta = n.convert(beta, ty)?;
        let beta = n.unsqueeze(beta, &[-1])?;
        outer.push(n.transpose(beta, &[0, 2, 1, 3])?);
    }
    let body = steps(n, &outer, gated, corrected)?;
    let outputs = n.emit_all(TensorIterator { body }, &outer)?;
    let y = n.transpose(outputs[0], &[0, 2, 1, 3, 4])?;
    let y = n.reshape(y, &[0, 0, -1])?;
    let y = n.convert_like(y, query)?;
    let state = n.convert_like(outputs[1], past.unwrap_or(query))?;
    Ok(vec![y, state].into())
}

/// Which of the values above is the state; all others are cut along time.
const STATE: usize = 3;

// One step of time: forget, correct, write, read.
fn steps(n: &NodeCx<'_>, outer: &[Value], gated: bool, corrected: bool) -> Result<Body> {
    let mut m = Model::new("step");
    let mut parameters = vec![];
    for (p, &v) in outer.iter().enumerate() {
        let fact = n.fact(v);
        let mut shape = loose(&fact.shape);
        if let (true, Some(dims)) = (p != STATE, shape.dims_mut()) {
            dims[2] = Dim::known(1);
        }
        parameters.push(m.parameter(&format!("p{p}"), fact.ty, shape)?);
    }
    let q = m.without_axes(parameters[0], &[2])?;
    let (k, mut v, mut state) = (parameters[1], parameters[2], parameters[STATE]);
    if gated {
        let decay = parameters[STATE + 1];
        let order = m.indices(&[0, 1, 3, 2])?;
        let decay = m.put(carafe_ops::movement::Transpose, &[decay, order])?;
        state = m.times(state, decay)?;
    }
    if corrected {
        let beta = parameters[parameters.len() - 1];
        let known = m.product(k, state, false)?;
        let new = m.minus(v, known)?;
        v = m.times(beta, new)?;
    }
    let written = m.put(MatMul { transpose_a: true, transpose_b: false }, &[k, v])?;
    let state = m.plus(state, written)?;
    let y = m.product(q, state, false)?;
    let y = m.with_axes(y, &[2])?;
    m.result("y", y)?;
    m.result("state", state)?;
    let mut body = Body::new(m);
    for p in 0..outer.len() {
        let slicing = (p != STATE).then(|| Slicing::along(2));
        body.inputs.push(BodyInput { outer: Some(p), parameter: p, slicing, back_edge: (p == STATE).then_some(1) });
    }
    body.outputs.push(BodyOutput { outer: 0, result: 0, slicing: Some(Slicing::along(2)) });
    body.outputs.push(BodyOutput { outer: 1, result: 1, slicing: None });
    Ok(body)
}

// Sizes without their names, which mean nothing inside of a body.
fn loose(shape: &PartialShape) -> PartialShape {
    match shape.dims() {
        Some(dims) => PartialShape::new(dims.iter().map(|d| Dim::range(d.min(), d.max()))),
        None => PartialShape::dynamic(),
    }
}
