//! Operators that make tensors of numbers, shapes and ranges, and those that pass a tensor on.

use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{AttrValue, Result, Value};
use carafe_ops::math::{Cos, Log, Sqrt};
use carafe_ops::random::RandomUniform;
use carafe_ops::random::random_uniform::Alignment;
use carafe_ops::shape::{Eye, Range, ShapeOf};
use carafe_tensor::{ElementType, Tensor};

pub(super) const RULES: &[StaticRule] = &[
    rule("assign", 0, |n| {
        n.ignore_slots(&["Output"]);
        passed_on(n, "X")
    }),
    rule("assign_value", 0, assign_value),
    rule("empty", 0, |n| {
        let dims =
            n.vector("shape", &["ShapeTensor", "ShapeTensorList"])?.ok_or_else(|| n.fail("`shape` is missing"))?;
        let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
        let out = n.filled(ty, 0.0, dims)?;
        Ok(n.give(&[("Out", out)]))
    }),
    rule("eye", 0, eye),
    rule("fill_any_like", 0, fill_like),
    rule("fill_constant", 0, fill_constant),
    rule("fill_constant_batch_size_like", 0, fill_batch_size_like),
    rule("fill_zeros_like", 0, fill_like),
    rule("full_int_array", 0, full_int_array),
    rule("full_with_tensor", 0, full_with_tensor),
    rule("gaussian_random", 0, gaussian_random),
    rule("linspace", 0, linspace),
    rule("memcpy", 0, |n| {
        n.ignore(&["dst_place_type"]);
        passed_on(n, "X")
    }),
    rule("memcpy_d2h", 0, |n| {
        n.ignore(&["dst_place_type"]);
        passed_on(n, "X")
    }),
    rule("memcpy_h2d", 0, |n| {
        n.ignore(&["dst_place_type"]);
        passed_on(n, "X")
    }),
    rule("print", 0, |n| {
        n.attrs();
        passed_on(n, "In")
    }),
    rule("range", 0, range),
    rule("shape", 0, |n| shape(n, ElementType::I32)),
    rule("shape64", 0, |n| shape(n, ElementType::I64)),
    rule("share_data", 0, |n| passed_on(n, "X")),
    rule("size", 0, size),
    rule("uniform_random", 0, uniform_random),
    rule("uniform_random_batch_size_like", 0, uniform_random),
];

fn passed_on(n: &mut NodeCx<'_>, slot: &str) -> Result<Outputs> {
    let item = n.slot_item(slot)?.ok_or_else(|| n.fail(format!("slot `{slot}` is empty")))?;
    Ok(Outputs(n.output_ports().iter().map(|_| item.clone()).collect()))
}

fn numbers(value: &AttrValue) -> Option<Vec<f64>> {
    match value {
        AttrValue::Ints(list) => Some(list.iter().map(|i| *i as f64).collect()),
        AttrValue::Floats(list) => Some(list.clone()),
        AttrValue::Int(i) => Some(vec![*i as f64]),
        AttrValue::Float(x) => Some(vec![*x]),
        AttrValue::Bool(b) => Some(vec![f64::from(u8::from(*b))]),
        _ => None,
    }
}

// The values lie in the list of their type; whole numbers of 64 bits stay exact.
fn assign_value(n: &mut NodeCx<'_>) -> Result<Outputs> {
    // What it writes over is an operand in Paddle 3.
    n.ignore_inputs(n.n_inputs());
    let shape: Vec<i64> = n.attr("shape", vec![])?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let lists = ["values", "fp32_values", "fp64_values", "int32_values", "int64_values", "int8_values", "bool_values"];
    let filled = lists.iter().filter_map(|name| n.attr_value(name).cloned());
    let value = filled.fold(None, |found: Option<AttrValue>, value| match (&found, &value) {
        (Some(AttrValue::Ints(list)), _) if !list.is_empty() => found,
        (Some(AttrValue::Floats(list)), _) if !list.is_empty() => found,
        _ => Some(value),
    });
    let dims: Vec<usize> = shape.iter().map(|d| (*d).max(0) as usize).collect();
    let tensor = match &value {
        Some(AttrValue::Ints(list)) if ty == ElementType::I64 && carafe_tensor::elements(&dims) == Some(list.len()) => {
            Tensor::from_slice(&dims, list)?
        }
        value => {
            let list = value.as_ref().and_then(numbers).unwrap_or_default();
            if carafe_tensor::elements(&dims) != Some(list.len()) {
                return Err(n.fail(format!("{} values for the shape {shape:?}", list.len())));
            }
            Tensor::from_f64(ty, &dims, &list)?
        }
    };
    let out = n.constant(tensor)?;
    Ok(n.give(&[("Out", out)]))
}

fn full_int_array(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let list: Vec<i64> = n.attr("value", vec![])?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::I64);
    let out = n.i64s(&list)?;
    let out = n.convert(out, ty)?;
    Ok(n.give(&[("Out", out)]))
}

// `str_value` says more digits than `value`.
fn constant_number(n: &NodeCx<'_>) -> Result<f64> {
    let text: String = n.attr("str_value", String::new())?;
    let value: f64 = match n.attr_value("value") {
        Some(AttrValue::Bool(b)) => f64::from(u8::from(*b)),
        Some(AttrValue::Int(i)) => *i as f64,
        _ => n.attr("value", 0.0)?,
    };
    match text.as_str() {
        "" => Ok(value),
        "inf" => Ok(f64::INFINITY),
        "-inf" => Ok(f64::NEG_INFINITY),
        "nan" => Ok(f64::NAN),
        "True" | "true" => Ok(1.0),
        "False" | "false" => Ok(0.0),
        text => text.parse().map_err(|_| n.fail(format!("`str_value` must be a number, found `{text}`"))),
    }
}

fn fill_constant(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["force_cpu", "place_type"]);
    let dims = n.vector("shape", &["ShapeTensor", "ShapeTensorList"])?;
    let dims = match dims {
        Some(dims) => dims,
        None => n.i64s(&[])?,
    };
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let out = match n.opt_slot("ValueTensor")? {
        Some(value) => {
            n.ignore(&["value", "str_value"]);
            let value = n.as_scalar(value)?;
            let value = n.convert(value, ty)?;
            n.stretch(value, dims)?
        }
        None => {
            let value = constant_number(n)?;
            n.filled(ty, value, dims)?
        }
    };
    Ok(n.give(&[("Out", out)]))
}

fn full_with_tensor(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let value = n.slot("ValueTensor")?;
    let dims = n.vector("shape", &["ShapeTensor"])?.ok_or_else(|| n.fail("`shape` is missing"))?;
    let ty = n.dtype("dtype")?.unwrap_or(n.ty(value));
    let value = n.as_scalar(value)?;
    let value = n.convert(value, ty)?;
    let out = n.stretch(value, dims)?;
    Ok(n.give(&[("Out", out)]))
}

fn fill_like(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let ty = n.dtype("dtype")?;
    let value = n.number_of("value", &["ValueTensor"], 0.0, x)?;
    let value = n.convert(value, ty.unwrap_or(n.ty(x)))?;
    let dims = n.shape_of(x)?;
    let out = n.stretch(value, dims)?;
    Ok(n.give(&[("Out", out)]))
}

// One size of the shape is that of another tensor.
fn dims_like(n: &mut NodeCx<'_>) -> Result<Value> {
    let input = n.slot("Input")?;
    let shape: Vec<i64> = n.attr("shape", vec![])?;
    let (from, to): (i64, i64) = (n.attr("input_dim_idx", 0)?, n.attr("output_dim_idx", 0)?);
    let to = n.axis(to, shape.len())?;
    let size = n.size(input, from)?;
    let mut parts = vec![];
    if to > 0 {
        parts.push(n.i64s(&shape[..to])?);
    }
    parts.push(size);
    if to + 1 < shape.len() {
        parts.push(n.i64s(&shape[to + 1..])?);
    }
    n.concat(&parts, 0)
}

fn fill_batch_size_like(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["force_cpu", "place_type"]);
    let dims = dims_like(n)?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let value = constant_number(n)?;
    let out = n.filled(ty, value, dims)?;
    Ok(n.give(&[("Out", out)]))
}

fn shape(n: &mut NodeCx<'_>, output_type: ElementType) -> Result<Outputs> {
    let x = n.slot("Input")?;
    let out = n.emit(ShapeOf { output_type }, &[x])?;
    Ok(n.give(&[("Out", out)]))
}

fn size(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = match n.opt_slot("Input")? {
        Some(x) => x,
        None => n.slot("x")?,
    };
    let shape = n.shape_of(x)?;
    let axes = n.i64s(&[0])?;
    let out = n.put(carafe_ops::reduce::ReduceProd { keep_dims: false }, &[shape, axes])?;
    Ok(n.give(&[("Out", out), ("size", out)]))
}

fn range(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (start, end, step) = (n.slot("Start")?, n.slot("End")?, n.slot("Step")?);
    let ty = n.dtype("dtype")?.unwrap_or(n.ty(start));
    let mut all = vec![];
    for v in [start, end, step] {
        all.push(n.as_scalar(v)?);
    }
    let out = n.put(Range { output_type: ty }, &all)?;
    Ok(n.give(&[("Out", out)]))
}

// Both ends, and as many steps between them as there are.
fn linspace(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (start, stop, count) = (n.slot("Start")?, n.slot("Stop")?, n.slot("Num")?);
    let ty = n.dtype("dtype")?.unwrap_or(n.ty(start));
    let wide = if ty == ElementType::F64 { ty } else { ElementType::F32 };
    let mut ends = vec![];
    for v in [start, stop] {
        let v = n.as_scalar(v)?;
        ends.push(n.convert(v, wide)?);
    }
    let count = n.as_scalar(count)?;
    let count = n.convert(count, ElementType::I64)?;
    let one = n.i64(1)?;
    let steps = n.minus(count, one)?;
    let steps = n.max(steps, one)?;
    let steps = n.convert(steps, wide)?;
    let width = n.minus(ends[1], ends[0])?;
    let step = n.over(width, steps)?;
    let at = n.count_to(count, ElementType::I64)?;
    let at = n.convert(at, wide)?;
    // The second half is counted from the end, as Paddle does.
    let offset = n.times(at, step)?;
    let forward = n.plus(ends[0], offset)?;
    let left = n.minus(steps, at)?;
    let offset = n.times(left, step)?;
    let backward = n.minus(ends[1], offset)?;
    let twice = n.times_number(at, 2.0)?;
    let is_first = n.less(twice, steps)?;
    // A range of one has its start only.
    let is_start = n.equal_number(at, 0.0)?;
    let is_first = n.or(is_first, is_start)?;
    let out = n.choose(is_first, forward, backward)?;
    let out = n.convert(out, ty)?;
    Ok(n.give(&[("Out", out)]))
}

fn eye(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let rows = n.vector("num_rows", &[])?.ok_or_else(|| n.fail("`num_rows` is missing"))?;
    let columns = n.vector("num_columns", &[])?;
    let columns = match columns {
        Some(c) if n.ints(c).is_none_or(|c| c != [-1]) => c,
        _ => rows,
    };
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let (rows, columns) = (n.as_scalar(rows)?, n.as_scalar(columns)?);
    let diagonal = n.i64(0)?;
    let out = n.put(Eye { output_type: ty }, &[rows, columns, diagonal])?;
    Ok(n.give(&[("Out", out)]))
}

fn random_dims(n: &mut NodeCx<'_>) -> Result<Value> {
    if n.has_slot("Input") {
        return dims_like(n);
    }
    n.vector("shape", &["ShapeTensor", "ShapeTensorList"])?.ok_or_else(|| n.fail("`shape` is missing"))
}

fn uniform(n: &mut NodeCx<'_>, dims: Value, min: f64, max: f64) -> Result<Value> {
    let seed: i64 = n.attr("seed", 0)?;
    let (min, max) = (n.scalar(ElementType::F32, min)?, n.scalar(ElementType::F32, max)?);
    let op = RandomUniform {
        output_type: ElementType::F32,
        op_seed: seed.unsigned_abs(),
        global_seed: 0,
        alignment: Alignment::Tensorflow,
    };
    n.put(op, &[dims, min, max])
}

fn uniform_random(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["diag_num", "diag_step", "diag_val"]);
    let dims = random_dims(n)?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let (min, max): (f64, f64) = (n.attr("min", -1.0)?, n.attr("max", 1.0)?);
    let out = uniform(n, dims, min, max)?;
    let out = n.convert(out, ty)?;
    Ok(n.give(&[("Out", out)]))
}

// The method of Box and Muller.
fn gaussian_random(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let dims = random_dims(n)?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let (mean, std): (f64, f64) = (n.attr("mean", 0.0)?, n.attr("std", 1.0)?);
    let radius = uniform(n, dims, f64::from(f32::MIN_POSITIVE), 1.0)?;
    let radius = n.put(Log, &[radius])?;
    let radius = n.times_number(radius, -2.0)?;
    let radius = n.put(Sqrt, &[radius])?;
    let turn = uniform(n, dims, 0.0, std::f64::consts::TAU)?;
    let turn = n.put(Cos, &[turn])?;
    let out = n.times(radius, turn)?;
    let out = n.times_number(out, std)?;
    let out = n.plus_number(out, mean)?;
    let out = n.convert(out, ty)?;
    Ok(n.give(&[("Out", out)]))
}
