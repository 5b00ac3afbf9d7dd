//! Quantized operations of `com.microsoft`: take the numbers out, compute, put them back. Weights of a few bits stay packed
//! constants.

use super::contrib::MS;
use super::quantized::check_scale;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Error, Op, Result, Value};
use carafe_ops::activation::{Clamp, PRelu, Sigmoid, Softmax};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::linear::MatMul;
use carafe_ops::movement::Concat;
use carafe_ops::pooling::AvgPool;
use carafe_ops::reduce::{ReduceMax, ReduceMean, ReduceMin};
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(MS, "DequantizeLinear", 1, dequantize_linear),
    rule_in(MS, "DynamicQuantizeMatMul", 1, dynamic_quantize_mat_mul),
    rule_in(MS, "MatMulIntegerToFloat", 1, mat_mul_integer_to_float),
    rule_in(MS, "MatMulNBits", 1, mat_mul_n_bits),
    rule_in(MS, "QGemm", 1, q_gemm),
    rule_in(MS, "QLinearAdd", 1, |n| q_binary(n, Add::default())),
    rule_in(MS, "QLinearAveragePool", 1, q_average_pool),
    rule_in(MS, "QLinearConcat", 1, q_concat),
    rule_in(MS, "QLinearGlobalAveragePool", 1, q_global_average_pool),
    rule_in(MS, "QLinearLeakyRelu", 1, q_leaky_relu),
    rule_in(MS, "QLinearMul", 1, |n| q_binary(n, Multiply::default())),
    rule_in(MS, "QLinearReduceMean", 1, q_reduce_mean),
    rule_in(MS, "QLinearSigmoid", 1, |n| {
        let x = q_input(n, 0)?;
        let y = n.emit(Sigmoid, &[x])?;
        q_output(n, y, 3)
    }),
    rule_in(MS, "QLinearSoftmax", 1, q_softmax),
    rule_in(MS, "QLinearWhere", 1, q_where),
    rule_in(MS, "QuantizeLinear", 1, quantize_linear),
];

// Scales and zero points of one axis, laid along it.
fn along(n: &mut NodeCx<'_>, v: Value, rank: Option<usize>, axis: Option<i64>) -> Result<Value> {
    let (Some(axis), Some(1)) = (axis, n.rank(v)) else { return Ok(v) };
    if n.shape(v).dim(0).get() == Some(1) {
        return Ok(v);
    }
    let rank = rank.ok_or_else(|| n.unsupported("the rank of an input must be known"))?;
    let mut pattern = vec![1; rank];
    pattern[n.axis(axis, rank)?] = -1;
    n.reshape(v, &pattern)
}

/// `(x - zero) * scale`, in the type of the scale.
pub(super) fn dequantized(
    n: &mut NodeCx<'_>,
    x: Value,
    scale: Value,
    zero: Option<Value>,
    axis: Option<i64>,
) -> Result<Value> {
    let rank = n.rank(x);
    let mut y = n.convert_like(x, scale)?;
    if let Some(zero) = zero {
        let zero = n.convert_like(zero, scale)?;
        let zero = along(n, zero, rank, axis)?;
        y = n.minus(y, zero)?;
    }
    let scale = along(n, scale, rank, axis)?;
    n.times(y, scale)
}

/// `round(x / scale) + zero`, within the range of the type of `zero` (u8 where there is none).
pub(super) fn quantized(
    n: &mut NodeCx<'_>,
    x: Value,
    scale: Value,
    zero: Option<Value>,
    axis: Option<i64>,
) -> Result<Value> {
    let ty = zero.map_or(ElementType::U8, |z| n.ty(z));
    let (min, max) = match ty {
        ElementType::U8 => (0.0, 255.0),
        ElementType::I8 => (-128.0, 127.0),
        ElementType::U16 => (0.0, 65535.0),
        ElementType::I16 => (-32768.0, 32767.0),
        ElementType::U4 => (0.0, 15.0),
        ElementType::I4 => (-8.0, 7.0),
        _ => return Err(n.unsupported(format!("quantization to {ty} is not supported"))),
    };
    let rank = n.rank(x);
    let scale = n.convert_like(scale, x)?;
    let scale = along(n, scale, rank, axis)?;
    let y = n.over(x, scale)?;
    let mut y = n.round(y)?;
    if let Some(zero) = zero {
        let zero = n.convert_like(zero, y)?;
        let zero = along(n, zero, rank, axis)?;
        y = n.plus(y, zero)?;
    }
    let y = n.emit(Clamp { min, max }, &[y])?;
    n.convert(y, ty)
}

// A quantized input: tensor, scale, zero point.
fn q_input(n: &mut NodeCx<'_>, at: usize) -> Result<Value> {
    let (x, scale, zero) = (n.input(at)?, n.input(at + 1)?, n.opt(at + 2)?);
    check_scale(n, at + 1, false)?;
    dequantized(n, x, scale, zero, None)
}

// The output by its scale and zero point.
fn q_output(n: &mut NodeCx<'_>, y: Value, at: usize) -> Result<Outputs> {
    let (scale, zero) = (n.input(at)?, n.opt(at + 1)?);
    check_scale(n, at, true)?;
    Ok(quantized(n, y, scale, zero, None)?.into())
}

fn quantize_linear(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: Option<i64> = n.opt_attr("axis")?;
    let (x, scale, zero) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    check_scale(n, 1, true)?;
    Ok(quantized(n, x, scale, zero, axis.or(Some(1)))?.into())
}

fn dequantize_linear(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: Option<i64> = n.opt_attr("axis")?;
    let (x, scale, zero) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    check_scale(n, 1, false)?;
    Ok(dequantized(n, x, scale, zero, axis.or(Some(1)))?.into())
}

fn q_binary<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    let (a, b) = (q_input(n, 0)?, q_input(n, 3)?);
    let y = n.emit(op, &[a, b])?;
    q_output(n, y, 6)
}

fn q_where(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let condition = n.input(0)?;
    let (x, y) = (q_input(n, 1)?, q_input(n, 4)?);
    let z = n.choose(condition, x, y)?;
    q_output(n, z, 7)
}

fn q_leaky_relu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let alpha: f32 = n.attr("alpha", 0.01)?;
    let x = q_input(n, 0)?;
    let slope = n.scalar_like(x, f64::from(alpha))?;
    let y = n.emit(PRelu, &[x, slope])?;
    q_output(n, y, 3)
}

fn q_softmax(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let opset: i64 = n.attr("opset", 13)?;
    let axis: i64 = n.attr("axis", if opset < 13 { 1 } else { -1 })?;
    let x = q_input(n, 0)?;
    let y = if opset < 13 && n.rank(x).is_none_or(|r| axis != -1 && axis + 1 != r as i64) {
        // Everything from the axis on is one row.
        let shape = n.shape_of(x)?;
        let rank = n.known_rank(x)?;
        let at = n.axis(axis, rank)?;
        let pattern: Vec<i64> = (0..at).map(|_| 0).chain([-1]).collect();
        let rows = n.reshape(x, &pattern)?;
        let y = n.emit(Softmax { axis: -1 }, &[rows])?;
        n.reshaped(y, shape, false)?
    } else {
        n.emit(Softmax { axis }, &[x])?
    };
    // The steps in 1 are a whole number, as the operation is defined by its one implementation.
    let (scale, zero) = (n.input(3)?, n.opt(4)?);
    check_scale(n, 3, true)?;
    let one = n.scalar_like(scale, 1.0)?;
    let steps = n.over(one, scale)?;
    let steps = n.floor(steps)?;
    let y = n.times(y, steps)?;
    let zero = match zero {
        Some(zero) => zero,
        None => {
            let x = n.input(0)?;
            n.scalar_like(x, 0.0)?
        }
    };
    Ok(super::quantized::to_integer(n, y, zero)?.into())
}

fn q_concat(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: i64 = n.required("axis")?;
    let parts = (2..n.n_inputs()).step_by(3).map(|i| q_input(n, i)).collect::<Result<Vec<_>>>()?;
    let y = n.emit(Concat { axis }, &parts)?;
    q_output(n, y, 0)
}

// Channels behind the spatial axes, or in front of them.
fn channels_first(n: &mut NodeCx<'_>, x: Value, there: bool) -> Result<Value> {
    let rank = n.known_rank(x)? as i64;
    if rank < 3 {
        return Err(n.fail(format!("pooling needs 3 axes or more, found {rank}")));
    }
    let order: Vec<i64> = match there {
        true => [0, rank - 1].into_iter().chain(1..rank - 1).collect(),
        false => std::iter::once(0).chain(2..rank).chain([1]).collect(),
    };
    n.transpose(x, &order)
}

fn q_global_average_pool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let last = n.attr("channels_last", 0i64)? != 0;
    let x = q_input(n, 0)?;
    let rank = n.known_rank(x)? as i64;
    let axes: Vec<i64> = if last { (1..rank - 1).collect() } else { (2..rank).collect() };
    let y = n.mean_over(x, &axes, true)?;
    q_output(n, y, 3)
}

fn q_average_pool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let last = n.attr("channels_last", 0i64)? != 0;
    let kernel: Vec<i64> = n.required("kernel_shape")?;
    let axes = kernel.len();
    let strides: Vec<i64> = n.attr("strides", vec![1; axes])?;
    let pads: Vec<i64> = n.attr("pads", vec![0; 2 * axes])?;
    let auto_pad: String = n.attr("auto_pad", "NOTSET".to_string())?;
    let ceil = n.attr("ceil_mode", 0i64)? != 0;
    let exclude_pad = n.attr("count_include_pad", 0i64)? == 0;
    if pads.len() != 2 * axes || strides.len() != axes {
        return Err(n.fail(format!("a kernel of {axes} axes needs {axes} strides and {} pads", 2 * axes)));
    }
    let auto_pad = match auto_pad.as_str() {
        "NOTSET" => PadType::Explicit,
        "SAME_UPPER" => PadType::SameUpper,
        "SAME_LOWER" => PadType::SameLower,
        "VALID" => PadType::Valid,
        other => return Err(n.fail(format!("auto_pad `{other}` is not known"))),
    };
    let mut x = q_input(n, 0)?;
    if last {
        x = channels_first(n, x, true)?;
    }
    let op = AvgPool {
        dilations: vec![1; axes],
        strides,
        pads_begin: pads[..axes].to_vec(),
        pads_end: pads[axes..].to_vec(),
        kernel,
        exclude_pad,
        auto_pad,
        rounding_type: if ceil { Rounding::CeilTorch } else { Rounding::Floor },
    };
    let mut y = n.emit(op, &[x])?;
    if last {
        y = channels_first(n, y, false)?;
    }
    q_output(n, y, 3)
}

fn q_reduce_mean(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axes: Vec<i64> = n.attr("axes", vec![])?;
    let keep_dims = n.attr("keepdims", 1i64)? != 0;
    let x = q_input(n, 0)?;
    let axes = match axes.is_empty() {
        true => (0..n.known_rank(x)? as i64).collect(),
        false => axes,
    };
    let axes = n.i64s(&axes)?;
    let y = n.emit(ReduceMean { keep_dims }, &[x, axes])?;
    q_output(n, y, 3)
}

fn q_gemm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let alpha: f32 = n.attr("alpha", 1.0)?;
    let (transpose_a, transpose_b) = (n.attr("transA", 0i64)? != 0, n.attr("transB", 0i64)? != 0);
    let a = q_input(n, 0)?;
    let (b, b_scale, b_zero) = (n.input(3)?, n.input(4)?, n.opt(5)?);
    check_scale(n, 4, false)?;
    let columns = if transpose_b { 0 } else { 1 };
    let b = dequantized(n, b, b_scale, b_zero, Some(columns))?;
    let mut y = n.emit(MatMul { transpose_a, transpose_b }, &[a, b])?;
    if let Some(c) = n.opt(6)? {
        let a_scale = n.input(1)?;
        let unit = n.times(a_scale, b_scale)?;
        let c = n.convert_like(c, unit)?;
        let c = n.times(c, unit)?;
        y = n.plus(y, c)?;
    }
    if alpha != 1.0 {
        y = n.times_number(y, f64::from(alpha))?;
    }
    if n.has(7) { q_output(n, y, 7) } else { Ok(y.into()) }
}

fn mat_mul_integer_to_float(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, b, a_scale, b_scale) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
    let (a_zero, b_zero) = (n.opt(4)?, n.opt(5)?);
    check_scale(n, 2, false)?;
    check_scale(n, 3, false)?;
    let a = dequantized(n, a, a_scale, a_zero, None)?;
    let b = dequantized(n, b, b_scale, b_zero, Some(-1))?;
    let mut y = n.product(a, b, false)?;
    if let Some(bias) = n.opt(6)? {
        y = n.plus(y, bias)?;
    }
    Ok(y.into())
}

// The first input is quantized to u8 by its own range.
fn dynamic_quantize_mat_mul(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, b, b_scale, b_zero) = (n.input(0)?, n.input(1)?, n.input(2)?, n.opt(3)?);
    check_scale(n, 2, false)?;
    let b = dequantized(n, b, b_scale, b_zero, Some(-1))?;
    let a = through_bytes(n, a)?;
    let mut y = n.product(a, b, false)?;
    if let Some(bias) = n.opt(4)? {
        y = n.plus(y, bias)?;
    }
    Ok(y.into())
}

// What is left of a tensor after going through u8 with the range of its values.
fn through_bytes(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let rank = n.known_rank(x)? as i64;
    let axes = n.i64s(&(0..rank).collect::<Vec<_>>())?;
    let zero = n.scalar_like(x, 0.0)?;
    let low = n.emit(ReduceMin { keep_dims: false }, &[x, axes])?;
    let high = n.emit(ReduceMax { keep_dims: false }, &[x, axes])?;
    let (low, high) = (n.min(low, zero)?, n.max(high, zero)?);
    let range = n.minus(high, low)?;
    let scale = n.times_number(range, 1.0 / 255.0)?;
    let one = n.scalar_like(x, 1.0)?;
    let nothing = n.equal(range, zero)?;
    let scale = n.choose(nothing, one, scale)?;
    let middle = n.over(low, scale)?;
    let middle = n.minus(zero, middle)?;
    let middle = n.emit(Clamp { min: 0.0, max: 255.0 }, &[middle])?;
    let middle = n.round(middle)?;
    let y = n.over(x, scale)?;
    let y = n.round(y)?;
    let y = n.plus(y, middle)?;
    let y = n.emit(Clamp { min: 0.0, max: 255.0 }, &[y])?;
    let y = n.minus(y, middle)?;
    n.times(y, scale)
}

fn mat_mul_n_bits(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let size = |name: &str, value: i64| {
        let size = usize::try_from(value).ok().filter(|&v| v > 0);
        size.ok_or_else(|| Error::invalid(format!("{name} must be above 0, found {value}")))
    };
    let k = size("K", n.required("K")?)?;
    let columns = size("N", n.required("N")?)?;
    let block = size("block_size", n.required("block_size")?)?;
    let bits: i64 = n.attr("bits", 4)?;
    n.ignore(&["accuracy_level"]);
    let ty = match bits {
        2 => ElementType::U2,
        4 => ElementType::U4,
        8 => ElementType::U8,
        _ => return Err(n.unsupported(format!("MatMulNBits of {bits} bits is not supported"))),
    };
    let blocks = k.div_ceil(block);
    let a = n.input(0)?;
    let packed = n.input(1)?;
    let weights = unpacked(n, packed, ty, &[columns, blocks, block])?;
    let scales = n.input(2)?;
    check_scale(n, 2, false)?;
    let scales = n.reshape(scales, &[columns as i64, blocks as i64, 1])?;
    let zero = match n.opt(3)? {
        None => {
            let middle = f64::from(1 << (bits - 1));
            n.scalar_like(scales, middle)?
        }
        Some(z) if n.ty(z) == ElementType::U8 => {
            // Rows are filled up to whole bytes.
            let per_byte = (8 / bits) as usize;
            let padded = blocks.div_ceil(per_byte) * per_byte;
            let z = unpacked(n, z, ty, &[columns, padded])?;
            let z = n.convert_like(z, scales)?;
            let z = n.part(z, 0, blocks as i64, 1)?;
            n.unsqueeze(z, &[2])?
        }
        Some(z) => {
            let z = n.reshape(z, &[columns as i64, blocks as i64, 1])?;
            n.convert_like(z, scales)?
        }
    };
    let weights = n.convert_like(weights, scales)?;
    let whole = blocks * block == k;
    let weights = match n.opt(4)? {
        None => {
            let weights = n.minus(weights, zero)?;
            let weights = n.times(weights, scales)?;
            let weights = n.reshape(weights, &[columns as i64, -1])?;
            if whole { weights } else { n.part(weights, 0, k as i64, 1)? }
        }
        // Every row of the weights tells which block's scale it has.
        Some(groups) => {
            let groups = n.part(groups, 0, k as i64, 0)?;
            let weights = n.reshape(weights, &[columns as i64, -1])?;
            let weights = if whole { weights } else { n.part(weights, 0, k as i64, 1)? };
            let of_row = |n: &mut NodeCx<'_>, v: Value| -> Result<Value> {
                if n.rank(v) == Some(0) {
                    return Ok(v);
                }
                let v = n.squeeze(v, &[2])?;
                n.gather(v, groups, 1)
            };
            let (zero, scales) = (of_row(n, zero)?, of_row(n, scales)?);
            let weights = n.minus(weights, zero)?;
            n.times(weights, scales)?
        }
    };
    let weights = n.convert_like(weights, a)?;
    let mut y = n.product(a, weights, true)?;
    if let Some(bias) = n.opt(5)? {
        y = n.plus(y, bias)?;
    }
    Ok(y.into())
}

// The bytes of a constant, seen as smaller elements.
fn unpacked(n: &mut NodeCx<'_>, v: Value, ty: ElementType, shape: &[usize]) -> Result<Value> {
    let bytes = n.tensor(v).map(|t| t.bytes().to_vec());
    let bytes = bytes.ok_or_else(|| n.unsupported("packed weights must be constant"))?;
    n.constant(Tensor::from_bytes(ty, shape, &bytes)?)
}
