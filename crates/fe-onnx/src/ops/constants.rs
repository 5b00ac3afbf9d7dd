//! Values out of nothing but attributes and shapes.

use super::casts::type_attr;
use super::shapes::{count_to, dim, scalar, vector};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, TensorAttr, Value};
use carafe_ops::arithmetic::Add;
use carafe_ops::compare::{GreaterEqual, LessEqual};
use carafe_ops::indexing::Select;
use carafe_ops::movement::{Broadcast, Slice, broadcast::BroadcastMode};
use carafe_ops::reduce::ReduceProd;
use carafe_ops::shape::{Eye, Range, RangeV1};
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("Constant", 1, constant),
    rule("ConstantFill", 1, constant_fill),
    rule("ConstantOfShape", 9, constant_of_shape),
    rule("EyeLike", 9, eye_like),
    rule("Range", 11, range),
    rule("Shape", 1, shape),
    rule("Size", 1, size),
    rule("Trilu", 14, trilu),
];

fn constant(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let tensor = if let Some(TensorAttr(t)) = n.opt_attr("value")? {
        t
    } else if let Some(TensorAttr(t)) = n.opt_attr("sparse_value")? {
        t
    } else if let Some(x) = n.opt_attr::<f32>("value_float")? {
        Tensor::scalar(x)
    } else if let Some(i) = n.opt_attr::<i64>("value_int")? {
        Tensor::scalar(i)
    } else if let Some(s) = n.opt_attr::<String>("value_string")? {
        Tensor::from_strings(&[], vec![s])?
    } else if let Some(v) = n.opt_attr::<Vec<f32>>("value_floats")? {
        Tensor::from_slice(&[v.len()], &v)?
    } else if let Some(v) = n.opt_attr::<Vec<i64>>("value_ints")? {
        Tensor::from_slice(&[v.len()], &v)?
    } else if let Some(v) = n.opt_attr::<Vec<String>>("value_strings")? {
        Tensor::from_strings(&[v.len()], v)?
    } else {
        return Err(n.fail("one of `value`, `sparse_value`, `value_*` must be given"));
    };
    Ok(n.constant(tensor)?.into())
}

fn constant_of_shape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let value = match n.opt_attr::<TensorAttr>("value")? {
        Some(TensorAttr(t)) if t.len() == 1 => t.reshaped(&[])?,
        Some(TensorAttr(t)) => return Err(n.fail(format!("attribute `value` must have one element, found {}", t.len()))),
        None => Tensor::scalar(0f32),
    };
    let value = n.constant(value)?;
    let Some(target) = n.opt(0)? else {
        n.warn("ConstantOfShape has no shape, it gives a scalar");
        return Ok(value.into());
    };
    Ok(n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[value, target])?.into())
}

// Of before the standard: a shape as attribute, as input, or of an input, and a value.
fn constant_fill(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let ty = type_attr(n, "dtype")?.unwrap_or(ElementType::F32);
    let value: f64 = n.attr("value", 0.0)?;
    let as_shape: bool = n.attr("input_as_shape", false)?;
    let shape: Option<Vec<i64>> = n.opt_attr("shape")?;
    let extra: Vec<i64> = n.attr("extra_shape", vec![])?;
    let target = match (n.opt(0)?, shape) {
        (Some(v), _) if as_shape => vector(n, v)?,
        (Some(v), _) => n.shape_of(v)?,
        (None, Some(shape)) => n.i64s(&shape)?,
        (None, None) => return Err(n.fail("needs an input or the attribute `shape`")),
    };
    let target = if extra.is_empty() {
        target
    } else {
        let (front, back) = (n.convert(target, ElementType::I64)?, n.i64s(&extra)?);
        n.concat(&[front, back], 0)?
    };
    let value = n.scalar(ty, value)?;
    Ok(n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[value, target])?.into())
}

fn eye_like(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let k: i64 = n.attr("k", 0)?;
    let ty = type_attr(n, "dtype")?;
    let x = n.input(0)?;
    if n.rank(x).is_some_and(|r| r != 2) {
        return Err(n.fail(format!("the input must be a matrix, found [{}]", n.shape(x))));
    }
    let output_type = match ty.unwrap_or(n.ty(x)) {
        ElementType::Dynamic => ElementType::F32,
        ty => ty,
    };
    let (rows, columns, k) = (dim(n, x, 0)?, dim(n, x, 1)?, n.i64(k)?);
    Ok(n.emit(Eye { output_type }, &[rows, columns, k])?.into())
}

fn range(n: &mut NodeCx<'_>) -> Result<Outputs> {
    // Where intermediate values are kept does not change ours: every element is computed from its number.
    n.ignore(&["stash_type"]);
    let inputs = n.inputs()?;
    let inputs = inputs.into_iter().map(|v| scalar(n, v)).collect::<Result<Vec<Value>>>()?;
    let ty = inputs.first().map_or(ElementType::Dynamic, |&v| n.ty(v));
    Ok(match ty {
        ElementType::Dynamic => n.emit(RangeV1, &inputs)?,
        output_type => n.emit(Range { output_type }, &inputs)?,
    }
    .into())
}

fn shape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (start, end): (i64, Option<i64>) = (n.attr("start", 0)?, n.opt_attr("end")?);
    let x = n.input(0)?;
    let shape = n.shape_of(x)?;
    if start == 0 && end.is_none() {
        return Ok(shape.into());
    }
    let (start, stop, step) = (n.i64s(&[start])?, n.i64s(&[end.unwrap_or(i64::MAX)])?, n.i64s(&[1])?);
    Ok(n.emit(Slice, &[shape, start, stop, step])?.into())
}

fn size(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (shape, axis) = (n.shape_of(x)?, n.i64s(&[0])?);
    Ok(n.emit(ReduceProd { keep_dims: false }, &[shape, axis])?.into())
}

// Keeps what stands on one side of a diagonal of the last two axes.
fn trilu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let upper: bool = n.attr("upper", true)?;
    let x = n.input(0)?;
    let k = match n.opt(1)? {
        Some(k) => {
            let k = scalar(n, k)?;
            n.convert(k, ElementType::I64)?
        }
        None => n.i64(0)?,
    };
    let (rows, columns) = (dim(n, x, -2)?, dim(n, x, -1)?);
    let (row, column) = (count_to(n, rows)?, count_to(n, columns)?);
    let row = n.unsqueeze(row, &[1])?;
    let edge = n.emit(Add::default(), &[row, k])?;
    let kept = match upper {
        true => n.emit(GreaterEqual::default(), &[column, edge])?,
        false => n.emit(LessEqual::default(), &[column, edge])?,
    };
    let zero = n.scalar_like(x, 0.0)?;
    let op = Select { auto_broadcast: Default::default(), auto_broadcast_axis: None };
    Ok(n.emit(op, &[kept, x, zero])?.into())
}
