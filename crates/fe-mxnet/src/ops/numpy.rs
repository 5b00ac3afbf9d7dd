//! Operators of mxnet.numpy that have no counterpart among the old ones, and a few old ones like them.

use super::cx::MxCx;
use super::unary::nearest;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convert::Convert;
use carafe_ops::indexing::NonZero;
use carafe_ops::logic::{BitwiseAnd, BitwiseNot, BitwiseOr, BitwiseXor};
use carafe_ops::math::{IsInf, IsNaN};
use carafe_ops::movement::Roll;
use carafe_ops::search::CumSum;
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("_image_normalize", 0, image_normalize),
    rule("_image_to_tensor", 0, image_to_tensor),
    rule("_np_cumsum", 0, cumsum),
    rule("_np_diag", 0, |n| diagonal(n, "axis1", "axis2", "k")),
    rule("_np_diagonal", 0, |n| diagonal(n, "axis1", "axis2", "offset")),
    rule("_np_roll", 0, roll),
    rule("_np_trace", 0, |n| {
        let y = diagonal(n, "axis1", "axis2", "offset")?;
        let [carafe_frontend::Item::Tensor(y)] = y.0[..] else { return Err(n.fail("a diagonal is one tensor")) };
        Ok(n.sum_over(y, &[-1], false)?.into())
    }),
    rule("_npi_around", 0, around),
    rule("_npi_bitwise_and", 0, |n| bits(n, |n, a, b| n.emit(BitwiseAnd::default(), &[a, b]))),
    rule("_npi_bitwise_not", 0, |n| {
        let x = n.input(0)?;
        Ok(n.emit(BitwiseNot, &[x])?.into())
    }),
    rule("_npi_bitwise_or", 0, |n| bits(n, |n, a, b| n.emit(BitwiseOr::default(), &[a, b]))),
    rule("_npi_bitwise_xor", 0, |n| bits(n, |n, a, b| n.emit(BitwiseXor::default(), &[a, b]))),
    rule("_npi_diff", 0, diff),
    rule("_npi_nan_to_num", 0, nan_to_num),
    rule("_npi_tril", 0, tril),
    rule("_npx_nonzero", 0, |n| {
        let x = n.input(0)?;
        let found = n.emit(NonZero { output_type: ElementType::I64 }, &[x])?;
        Ok(n.transpose(found, &[1, 0])?.into())
    }),
    rule("diag", 0, |n| diagonal(n, "axis1", "axis2", "k")),
];

fn bits(n: &mut NodeCx<'_>, f: fn(&mut NodeCx<'_>, Value, Value) -> Result<Value>) -> Result<Outputs> {
    let (a, b) = super::arithmetic::operands(n)?;
    Ok(f(n, a, b)?.into())
}

fn cumsum(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut x = n.input(0)?;
    if let Some(ty) = n.dtype("dtype")? {
        x = n.convert(x, ty)?;
    }
    let axis = match n.opt_int("axis")? {
        Some(axis) => axis,
        None => {
            x = n.reshape(x, &[-1])?;
            0
        }
    };
    let axis = n.i64(axis)?;
    Ok(n.emit(CumSum { exclusive: false, reverse: false }, &[x, axis])?.into())
}

// Without an axis all elements in a row.
fn roll(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (mut shift, axes) = (n.ints_of("shift")?, n.opt_ints("axis")?);
    let Some(axes) = axes else {
        let shape = n.shape_of(x)?;
        let flat = n.reshape(x, &[-1])?;
        let (shift, axis) = (n.i64s(&[shift.iter().sum()])?, n.i64s(&[0])?);
        let y = n.emit(Roll, &[flat, shift, axis])?;
        return Ok(n.reshaped(y, shape, false)?.into());
    };
    if shift.len() == 1 {
        shift = vec![shift[0]; axes.len()];
    }
    let (shift, axes) = (n.i64s(&shift)?, n.i64s(&axes)?);
    Ok(n.emit(Roll, &[x, shift, axes])?.into())
}

fn around(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let factor = 10f64.powi(n.int("decimals", 0)?.clamp(-30, 30) as i32);
    let scaled = if factor == 1.0 { x } else { n.times_number(x, factor)? };
    let whole = nearest(n, scaled)?;
    Ok(if factor == 1.0 { whole } else { n.over_number(whole, factor)? }.into())
}

fn diff(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut x = n.input(0)?;
    let (times, axis) = (n.int("n", 1)?, n.int("axis", -1)?);
    if !(0..=64).contains(&times) {
        return Err(n.fail(format!("attribute `n` must be from 0 to 64, found {times}")));
    }
    for _ in 0..times {
        let (later, earlier) = (n.part(x, 1, i64::MAX, axis)?, n.part(x, 0, -1, axis)?);
        x = n.minus(later, earlier)?;
    }
    Ok(x.into())
}

fn nan_to_num(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["copy"]);
    let x = n.input(0)?;
    let largest = match n.ty(x) {
        ElementType::F64 => f64::MAX,
        ElementType::F16 => 65504.0,
        _ => f64::from(f32::MAX),
    };
    let nan = n.float("nan", 0.0)?;
    let (high, low) = (n.opt_float("posinf")?.unwrap_or(largest), n.opt_float("neginf")?.unwrap_or(-largest));
    let is_nan = n.emit(IsNaN, &[x])?;
    let is_high = n.emit(IsInf { detect_negative: false, detect_positive: true }, &[x])?;
    let is_low = n.emit(IsInf { detect_negative: true, detect_positive: false }, &[x])?;
    let mut y = x;
    for (condition, number) in [(is_nan, nan), (is_high, high), (is_low, low)] {
        let number = n.scalar_like(x, number)?;
        y = n.choose(condition, number, y)?;
    }
    Ok(y.into())
}

// Columns minus rows, for the last two axes, as `[rows, columns]`.
fn offsets(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let (rows, columns) = (n.length(x, -2)?, n.length(x, -1)?);
    let (rows, columns) = (n.count_to(rows, ElementType::I64)?, n.count_to(columns, ElementType::I64)?);
    let (rows, columns) = (n.unsqueeze(rows, &[1])?, n.unsqueeze(columns, &[0])?);
    n.minus(columns, rows)
}

fn tril(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let k = n.int("k", 0)?;
    let offsets = offsets(n, x)?;
    let k = n.i64(k)?;
    let below = n.less_equal(offsets, k)?;
    let zero = n.scalar_like(x, 0.0)?;
    Ok(n.choose(below, x, zero)?.into())
}

// The diagonal of two axes, or the matrix that has a vector as its diagonal.
fn diagonal(n: &mut NodeCx<'_>, axis1: &str, axis2: &str, offset: &str) -> Result<Outputs> {
    let x = n.input(0)?;
    let k = n.int(offset, 0)?;
    let (a, b) = (n.int(axis1, 0)?, n.int(axis2, 1)?);
    let rank = n.known_rank(x)?;
    if rank == 1 {
        return matrix(n, x, k);
    }
    let (a, b) = (n.axis(a, rank)?, n.axis(b, rank)?);
    let mut order: Vec<i64> = (0..rank).filter(|i| *i != a && *i != b).map(|i| i as i64).collect();
    order.extend([a as i64, b as i64]);
    let x = n.transpose(x, &order)?;
    // What is cut off in front of it, then of both axes what they have in common.
    let (skip_rows, skip_columns) = ((-k).max(0), k.max(0));
    let x = n.part(x, skip_rows, i64::MAX, rank as i64 - 2)?;
    let x = n.part(x, skip_columns, i64::MAX, rank as i64 - 1)?;
    let (rows, columns) = (n.length(x, -2)?, n.length(x, -1)?);
    let count = n.min(rows, columns)?;
    let ticks = n.count_to(count, ElementType::I64)?;
    let one = n.i64(1)?;
    let step = n.plus(columns, one)?;
    let at = n.times(ticks, step)?;
    let mut pattern = vec![0; rank - 2];
    pattern.push(-1);
    let flat = n.reshape(x, &pattern)?;
    Ok(n.gather(flat, at, rank as i64 - 2)?.into())
}

fn matrix(n: &mut NodeCx<'_>, x: Value, k: i64) -> Result<Outputs> {
    let (front, size) = (k.unsigned_abs() as i64, n.length(x, 0)?);
    let more = n.i64(front)?;
    let total = n.plus(size, more)?;
    let ticks = n.count_to(total, ElementType::I64)?;
    let (rows, columns) = (n.unsqueeze(ticks, &[1])?, n.unsqueeze(ticks, &[0])?);
    let offsets = n.minus(columns, rows)?;
    let wanted = n.i64(k)?;
    let is_on = n.equal(offsets, wanted)?;
    // Each value at the column, or the row, that it belongs to.
    let begin = n.i64s(&[0])?;
    let end = n.i64s(&[front])?;
    let zero = n.scalar_like(x, 0.0)?;
    let pad = carafe_ops::movement::Pad { pad_mode: carafe_ops::movement::pad::PadMode::Constant };
    let values = n.emit(pad, &[x, begin, end, zero])?;
    let values = n.unsqueeze(values, &[if k >= 0 { 1 } else { 0 }])?;
    Ok(n.choose(is_on, values, zero)?.into())
}

// Of images with channels first, one or many.
fn image_normalize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (mean, std) = (n.floats_of("mean", &[0.0])?, n.floats_of("std", &[1.0])?);
    let mut y = x;
    for (numbers, divides) in [(mean, false), (std, true)] {
        let numbers: Vec<f32> = numbers.iter().map(|v| *v as f32).collect();
        let numbers = if numbers.len() == 4 && n.shape(x).rank() == Some(3) { numbers[..3].to_vec() } else { numbers };
        let numbers = n.floats(&[numbers.len(), 1, 1], &numbers)?;
        y = if divides { n.over(y, numbers)? } else { n.minus(y, numbers)? };
    }
    Ok(y.into())
}

// Channels first, and from 0 to 1.
fn image_to_tensor(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let order: &[i64] = if n.known_rank(x)? == 3 { &[2, 0, 1] } else { &[0, 3, 1, 2] };
    let x = n.transpose(x, order)?;
    let x = n.emit(Convert { destination_type: ElementType::F32 }, &[x])?;
    Ok(n.times_number(x, 1.0 / 255.0)?.into())
}
