//! Pooling. With `ceil_mode` a last window that begins beyond the data is dropped, which is our `ceil_torch`. Indices of
//! MaxPool count over the whole tensor.

use super::convolution::Windows;
use super::shapes::{rank, scalar};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result, Value};
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::indexing::{Reduction, ScatterElementsUpdate};
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::{Broadcast, Pad};
use carafe_ops::pooling::{AvgPool, MaxPool};
use carafe_ops::reduce::{ReduceL1, ReduceL2, ReduceMax, ReduceMean, ReduceProd, ReduceSum};
use carafe_ops::shape::Range;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("AveragePool", 1, average_pool),
    rule("GlobalAveragePool", 1, |n| global(n, ReduceMean { keep_dims: true })),
    rule("GlobalLpPool", 1, global_lp_pool),
    rule("GlobalMaxPool", 1, |n| global(n, ReduceMax { keep_dims: true })),
    rule("LpPool", 1, lp_pool),
    rule("MaxPool", 1, max_pool),
    rule("MaxUnpool", 9, max_unpool),
];

fn windows(n: &NodeCx<'_>) -> Result<(Windows, Rounding)> {
    let windows = Windows::read(n, None)?;
    let ceil: bool = n.attr("ceil_mode", false)?;
    Ok((windows, if ceil { Rounding::CeilTorch } else { Rounding::Floor }))
}

fn average_pool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (mut w, rounding) = windows(n)?;
    let include: bool = n.attr("count_include_pad", false)?;
    let padded = w.pads_begin.iter().chain(&w.pads_end).any(|&p| p != 0);
    if !include || !padded || rounding == Rounding::Floor {
        return Ok(average(n, x, w, rounding, !include)?.into());
    }
    // Pads count, what a last window has beyond them does not: then the pads must be data.
    let last = last_windows(n, x, &w)?;
    let x = pad_with_zeros(n, x, &mut w, false)?;
    let y = average(n, x, w, rounding, true)?;
    Ok(cut_windows(n, y, last)?.into())
}

// Turns the pads into zeros of the data; with slack a last window that hangs over is whole as well.
fn pad_with_zeros(n: &mut NodeCx<'_>, x: Value, w: &mut Windows, slack: bool) -> Result<Value> {
    let axes = w.n_spatial();
    let after = |(&pad, &stride): (&i64, &i64)| if slack { pad + stride - 1 } else { pad };
    let end: Vec<i64> = w.pads_end.iter().zip(&w.strides).map(after).collect();
    let begin = n.i64s(&[&[0, 0], &w.pads_begin[..]].concat())?;
    let end = n.i64s(&[&[0, 0], &end[..]].concat())?;
    let zero = n.scalar_like(x, 0.0)?;
    (w.pads_begin, w.pads_end, w.auto_pad) = (vec![0; axes], vec![0; axes], PadType::Explicit);
    n.emit(Pad { pad_mode: PadMode::Constant }, &[x, begin, end, zero])
}

// How many windows of each axis begin in the data or before it, as i64 vectors of one.
fn last_windows(n: &mut NodeCx<'_>, x: Value, w: &Windows) -> Result<Vec<Value>> {
    let mut counts = vec![];
    for i in 0..w.n_spatial() {
        let size = n.size(x, i as i64 + 2)?;
        let room = n.plus_number(size, (w.pads_begin[i] - 1) as f64)?;
        let steps = n.over_number(room, w.strides[i] as f64)?;
        counts.push(n.plus_number(steps, 1.0)?);
    }
    Ok(counts)
}

fn cut_windows(n: &mut NodeCx<'_>, mut y: Value, counts: Vec<Value>) -> Result<Value> {
    for (i, count) in counts.into_iter().enumerate() {
        let have = n.shape(y).dims().and_then(|d| d.get(i + 2)).and_then(|d| d.get());
        let want = n.ints(count).and_then(|c| c.first().copied());
        if have.is_none() || want.is_none() || want < have {
            let start = n.i64s(&[0])?;
            y = n.cut(y, start, count, i as i64 + 2)?;
        }
    }
    Ok(y)
}

fn average(n: &mut NodeCx<'_>, x: Value, w: Windows, rounding_type: Rounding, exclude_pad: bool) -> Result<Value> {
    let op = AvgPool {
        dilations: w.dilations,
        strides: w.strides,
        pads_begin: w.pads_begin,
        pads_end: w.pads_end,
        kernel: w.kernel,
        exclude_pad,
        auto_pad: w.auto_pad,
        rounding_type,
    };
    n.emit(op, &[x])
}

fn max_pool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (w, rounding_type) = windows(n)?;
    let column_major: bool = n.attr("storage_order", false)?;
    let op = MaxPool {
        strides: w.strides,
        dilations: w.dilations,
        pads_begin: w.pads_begin,
        pads_end: w.pads_end,
        kernel: w.kernel,
        rounding_type,
        auto_pad: w.auto_pad,
        index_element_type: ElementType::I64,
        axis: 0,
    };
    let mut outputs = n.emit_all(op, &[x])?;
    if !n.wants_output(1) {
        outputs.truncate(1);
    } else if column_major {
        outputs[1] = column_major_indices(n, x, outputs[1])?;
    }
    Ok(outputs.into())
}

// From row-major to column-major positions within each image; images stay in order.
fn column_major_indices(n: &mut NodeCx<'_>, x: Value, indices: Value) -> Result<Value> {
    let rank = n.known_rank(x)?;
    let mut rest = indices;
    let mut step = n.i64(1)?;
    let mut coordinates = vec![];
    for axis in (2..rank).rev() {
        let size = n.length(x, axis as i64)?;
        let whole = n.over(rest, size)?;
        let used = n.times(whole, size)?;
        coordinates.push((n.minus(rest, used)?, size));
        rest = whole;
        step = n.times(step, size)?;
    }
    let mut position = n.times(rest, step)?;
    let mut step = n.i64(1)?;
    for (coordinate, size) in coordinates.into_iter().rev() {
        let offset = n.times(coordinate, step)?;
        position = n.plus(position, offset)?;
        step = n.times(step, size)?;
    }
    Ok(position)
}

/// The axes from one on, also of a value of unknown rank.
pub(super) fn axes_from(n: &mut NodeCx<'_>, v: Value, first: usize) -> Result<Value> {
    if let Some(rank) = n.rank(v) {
        let axes: Vec<i64> = (first as i64..rank as i64).collect();
        return n.i64s(&axes);
    }
    let rank = rank(n, v)?;
    let stop = scalar(n, rank)?;
    let (start, step) = (n.i64(first as i64)?, n.i64(1)?);
    n.emit(Range { output_type: ElementType::I64 }, &[start, stop, step])
}

fn global<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    n.overlook(&["auto_pad", "dilations", "kernel_shape", "pads", "strides"]);
    let x = n.input(0)?;
    let axes = axes_from(n, x, 2)?;
    Ok(n.emit(op, &[x, axes])?.into())
}

// Version 1 has a float, later ones an integer.
fn exponent(n: &NodeCx<'_>) -> Result<f64> {
    let p: f64 = n.attr("p", 2.0)?;
    if p > 0.0 { Ok(p) } else { Err(n.fail(format!("attribute `p` must be above 0, found {p}"))) }
}

fn global_lp_pool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    if n.attr::<f64>("p", 2.0)? == 0.0 {
        return count_nonzero(n);
    }
    let p = exponent(n)?;
    if p == 1.0 {
        return global(n, ReduceL1 { keep_dims: true });
    }
    if p == 2.0 {
        return global(n, ReduceL2 { keep_dims: true });
    }
    let x = n.input(0)?;
    let axes = axes_from(n, x, 2)?;
    let x = n.abs(x)?;
    let x = n.power_number(x, p)?;
    let y = n.put(ReduceSum { keep_dims: true }, &[x, axes])?;
    Ok(n.power_number(y, 1.0 / p)?.into())
}

// What the norms tend to for an exponent of 0.
fn count_nonzero(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let axes = axes_from(n, x, 2)?;
    let zero = n.equal_number(x, 0.0)?;
    let (none, one) = (n.number(x, 0.0)?, n.number(x, 1.0)?);
    let counted = n.choose(zero, none, one)?;
    Ok(n.put(ReduceSum { keep_dims: true }, &[counted, axes])?.into())
}

fn lp_pool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let p = exponent(n)?;
    let x = n.input(0)?;
    let (mut w, rounding) = windows(n)?;
    let volume: f64 = w.kernel.iter().map(|&k| k as f64).product();
    let powers = n.abs(x)?;
    let mut powers = if p == 1.0 { powers } else { n.power_number(powers, p)? };
    let y = if rounding == Rounding::Floor {
        average(n, powers, w, Rounding::Floor, false)?
    } else {
        let last = last_windows(n, x, &w)?;
        powers = pad_with_zeros(n, powers, &mut w, true)?;
        let y = average(n, powers, w, Rounding::Floor, false)?;
        cut_windows(n, y, last)?
    };
    let y = n.times_number(y, volume)?;
    Ok(if p == 1.0 { y } else { n.power_number(y, 1.0 / p)? }.into())
}

fn max_unpool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, indices, asked) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    let w = Windows::read(n, None)?;
    let (mut strides, mut offsets) = (vec![1, 1], vec![0, 0]);
    for i in 0..w.n_spatial() {
        strides.push(w.strides[i]);
        offsets.push(w.kernel[i] - w.strides[i] - w.pads_begin[i] - w.pads_end[i]);
    }
    let shape = n.shape_of(x)?;
    let (strides, offsets) = (n.i64s(&strides)?, n.i64s(&offsets)?);
    let shape = n.times(shape, strides)?;
    let shape = n.plus(shape, offsets)?;
    let first = n.i64s(&[0])?;
    let length = n.emit(ReduceProd { keep_dims: true }, &[shape, first])?;
    let zero = n.scalar_like(x, 0.0)?;
    let zeros = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[zero, length])?;
    let (x, indices) = (n.reshape(x, &[-1])?, n.reshape(indices, &[-1])?);
    let axis = n.i64(0)?;
    let op = ScatterElementsUpdate { reduction: Reduction::None, use_init_val: true };
    let flat = n.emit(op, &[zeros, indices, x, axis])?;
    let y = n.reshaped(flat, shape, false)?;
    let Some(asked) = asked else { return Ok(y.into()) };
    // A larger result has zeros behind.
    let begin = n.minus(shape, shape)?;
    let end = n.minus(asked, shape)?;
    Ok(n.emit(Pad { pad_mode: PadMode::Constant }, &[y, begin, end, zero])?.into())
}
