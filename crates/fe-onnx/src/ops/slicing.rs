//! Parts and borders: Split, Slice, Pad and what is made of them. Nearly everything here began as an attribute and became
//! an input later, so each rule exists in both forms.

use super::shapes::{dim, rank, scalar, vector};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::{Add, Divide, FloorMod, Maximum, Minimum, Subtract};
use carafe_ops::indexing::{Gather, Reduction, ScatterElementsUpdate};
use carafe_ops::math::Negative;
use carafe_ops::movement::{
    Broadcast, Pad, Slice, Split, VariadicSplit, broadcast::BroadcastMode, pad::PadMode,
};
use carafe_ops::shape::Range;
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("CenterCropPad", 18, center_crop_pad),
    rule("Crop", 1, crop),
    rule("Pad", 1, |n| pad_attributes(n, "paddings")),
    rule("Pad", 2, |n| pad_attributes(n, "pads")),
    rule("Pad", 11, pad_inputs),
    rule("Slice", 1, slice_attributes),
    rule("Slice", 10, slice_inputs),
    rule("Split", 1, split_attribute),
    rule("Split", 13, split_input),
];

fn split_attribute(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let lengths = match (n.opt_attr::<Vec<i64>>("split")?, n.opt(1)?) {
        (Some(lengths), _) => Some(n.i64s(&lengths)?),
        // The first version had lengths of the type of the data.
        (None, Some(lengths)) => Some(n.convert(lengths, ElementType::I64)?),
        (None, None) => None,
    };
    split(n, lengths)
}

fn split_input(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let lengths = n.opt(1)?;
    split(n, lengths)
}

fn split(n: &mut NodeCx<'_>, lengths: Option<Value>) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", 0)?;
    let parts: Option<usize> = n.opt_attr("num_outputs")?;
    let x = n.input(0)?;
    let position = n.i64(axis)?;
    if let Some(lengths) = lengths {
        return Ok(n.emit_all(VariadicSplit, &[x, position, lengths])?.into());
    }
    let Some(parts) = parts else {
        let num_splits = n.n_outputs();
        return Ok(n.emit_all(Split { num_splits }, &[x, position])?.into());
    };
    if parts == 0 || parts != n.n_outputs() {
        return Err(n.fail(format!("attribute `num_outputs` is {parts}, the node has {} outputs", n.n_outputs())));
    }
    let size = n.rank(x).and_then(|r| n.axis(axis, r).ok()).and_then(|a| n.shape(x).dim(a).size());
    if size.is_some_and(|s| s % parts == 0) {
        return Ok(n.emit_all(Split { num_splits: parts }, &[x, position])?.into());
    }
    // Every part is as long as the first, the last takes what is left.
    let (size, add, count) = (dim(n, x, axis)?, n.i64(parts as i64 - 1)?, n.i64(parts as i64)?);
    let raised = n.emit(Add::default(), &[size, add])?;
    let part = n.emit(Divide::default(), &[raised, count])?;
    let (equal, rest) = (n.i64s(&[parts as i64 - 1])?, n.i64s(&[-1])?);
    let parts = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[part, equal])?;
    let lengths = n.concat(&[parts, rest], 0)?;
    Ok(n.emit_all(VariadicSplit, &[x, position, lengths])?.into())
}

fn slice_attributes(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (starts, ends): (Vec<i64>, Vec<i64>) = (n.required("starts")?, n.required("ends")?);
    let axes: Vec<i64> = n.attr("axes", (0..starts.len() as i64).collect())?;
    let x = n.input(0)?;
    let steps = n.i64s(&vec![1; starts.len()])?;
    let (starts, ends, axes) = (n.i64s(&starts)?, n.i64s(&ends)?, n.i64s(&axes)?);
    Ok(n.emit(Slice, &[x, starts, ends, steps, axes])?.into())
}

fn slice_inputs(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, starts, ends) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let steps = match n.opt(4)? {
        Some(steps) => steps,
        None => {
            let (one, count) = (n.i64(1)?, n.shape_of(starts)?);
            n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[one, count])?
        }
    };
    Ok(match n.opt(3)? {
        Some(axes) => n.emit(Slice, &[x, starts, ends, steps, axes])?,
        None => n.emit(Slice, &[x, starts, ends, steps])?,
    }
    .into())
}

// Of before the standard: cuts a border off the last two axes.
fn crop(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let border: Vec<i64> = n.required("border")?;
    let scale: Option<Vec<i64>> = n.opt_attr("scale")?;
    let x = n.input(0)?;
    let &[left, top, right, bottom] = border.as_slice() else {
        return Err(n.fail(format!("attribute `border` must have 4 entries, found {}", border.len())));
    };
    let ends = match scale.as_deref() {
        Some(&[height, width]) => [top.saturating_add(height), left.saturating_add(width)],
        Some(other) => return Err(n.fail(format!("attribute `scale` must have 2 entries, found {}", other.len()))),
        None => [bottom, right].map(|b| if b == 0 { i64::MAX } else { b.saturating_neg() }),
    };
    let (starts, ends) = (n.i64s(&[top, left])?, n.i64s(&ends)?);
    let (steps, axes) = (n.i64s(&[1, 1])?, n.i64s(&[2, 3])?);
    Ok(n.emit(Slice, &[x, starts, ends, steps, axes])?.into())
}

fn pad_attributes(n: &mut NodeCx<'_>, name: &str) -> Result<Outputs> {
    let pads: Vec<i64> = n.required(name)?;
    let value: f64 = n.attr("value", 0.0)?;
    let x = n.input(0)?;
    let (pads, value) = (n.i64s(&pads)?, n.scalar_like(x, value)?);
    let (begins, ends) = halves(n, pads)?;
    pad(n, x, begins, ends, Some(value))
}

fn pad_inputs(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, pads) = (n.input(0)?, n.input(1)?);
    let (value, axes) = (n.opt(2)?, n.opt(3)?);
    let pads = vector(n, pads)?;
    let (mut begins, mut ends) = halves(n, pads)?;
    if let Some(axes) = axes {
        (begins, ends) = (on_axes(n, x, axes, begins)?, on_axes(n, x, axes, ends)?);
    }
    let value = match value {
        Some(v) => Some(scalar(n, v)?),
        None => None,
    };
    pad(n, x, begins, ends, value)
}

// Pads come as all begins, then all ends.
fn halves(n: &mut NodeCx<'_>, pads: Value) -> Result<(Value, Value)> {
    if let Some(all) = n.ints(pads) {
        if all.len() % 2 != 0 {
            return Err(n.fail(format!("pads must be pairs, found {} entries", all.len())));
        }
        let (begins, ends) = all.split_at(all.len() / 2);
        return Ok((n.i64s(begins)?, n.i64s(ends)?));
    }
    let axis = n.i64(0)?;
    match n.emit_all(Split { num_splits: 2 }, &[pads, axis])?.as_slice() {
        &[begins, ends] => Ok((begins, ends)),
        _ => Err(n.fail("pads must be pairs")),
    }
}

/// Amounts for some axes, put among zeros for all of them.
fn on_axes(n: &mut NodeCx<'_>, x: Value, axes: Value, amounts: Value) -> Result<Value> {
    let rank = rank(n, x)?;
    let zero = n.i64(0)?;
    let zeros = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[zero, rank])?;
    let (axes, amounts) = (n.convert(axes, ElementType::I64)?, n.convert(amounts, ElementType::I64)?);
    let axes = n.emit(FloorMod::default(), &[axes, rank])?;
    let axis = n.i64(0)?;
    let op = ScatterElementsUpdate { reduction: Reduction::None, use_init_val: true };
    n.emit(op, &[zeros, axes, amounts, axis])
}

fn pad(n: &mut NodeCx<'_>, x: Value, begins: Value, ends: Value, value: Option<Value>) -> Result<Outputs> {
    let mode: String = n.attr("mode", "constant".to_string())?;
    let pad_mode = match mode.as_str() {
        "constant" => PadMode::Constant,
        "edge" => PadMode::Edge,
        "reflect" => PadMode::Reflect,
        "wrap" => return wrap(n, x, begins, ends),
        other => {
            return Err(n.fail(format!("attribute `mode` must be constant, edge, reflect or wrap, found {other}")));
        }
    };
    Ok(match value.filter(|_| pad_mode == PadMode::Constant) {
        Some(value) => n.emit(Pad { pad_mode }, &[x, begins, ends, value])?,
        None => n.emit(Pad { pad_mode }, &[x, begins, ends])?,
    }
    .into())
}

// The data repeats without end; a window of it is gathered along each axis.
fn wrap(n: &mut NodeCx<'_>, x: Value, begins: Value, ends: Value) -> Result<Outputs> {
    let rank = n.known_rank(x)?;
    let (known_begins, known_ends) = (n.ints(begins), n.ints(ends));
    let mut y = x;
    for axis in 0..rank {
        let untouched = |v: &Option<Vec<i64>>| v.as_ref().is_some_and(|v| v.get(axis) == Some(&0));
        if untouched(&known_begins) && untouched(&known_ends) {
            continue;
        }
        let entry = |v: &Option<Vec<i64>>| v.as_ref().and_then(|v| v.get(axis).copied());
        if let (Some(begin), Some(end), Some(size)) =
            (entry(&known_begins), entry(&known_ends), n.shape(x).dim(axis).get())
            && begin.min(0).saturating_add(end.min(0)).saturating_add(size) <= 0
        {
            return Err(n.fail(format!("pads {begin} and {end} leave nothing of axis {axis}, which is {size} long")));
        }
        let (position, zero, one) = (n.i64(axis as i64)?, n.i64(0)?, n.i64(1)?);
        let begin = n.emit(Gather { batch_dims: 0 }, &[begins, position, zero])?;
        let end = n.emit(Gather { batch_dims: 0 }, &[ends, position, zero])?;
        let size = dim(n, x, axis as i64)?;
        let start = n.emit(Negative, &[begin])?;
        let stop = n.emit(Add::default(), &[size, end])?;
        let window = n.emit(Range { output_type: ElementType::I64 }, &[start, stop, one])?;
        let window = n.emit(FloorMod::default(), &[window, size])?;
        y = n.emit(Gather { batch_dims: 0 }, &[y, window, position])?;
    }
    Ok(y.into())
}

// Per axis either the crop or the pad is 0, so both are always applied.
fn center_crop_pad(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axes: Option<Vec<i64>> = n.opt_attr("axes")?;
    let (x, target) = (n.input(0)?, n.input(1)?);
    let sizes = n.shape_of(x)?;
    let mut target = n.convert(target, ElementType::I64)?;
    if let Some(axes) = axes {
        let rank = n.known_rank(x)?;
        let axes = axes.iter().map(|&a| n.axis(a, rank).map(|a| a as i64)).collect::<Result<Vec<_>>>()?;
        let (axes, first) = (n.i64s(&axes)?, n.i64(0)?);
        let op = ScatterElementsUpdate { reduction: Reduction::None, use_init_val: true };
        target = n.emit(op, &[sizes, axes, target, first])?;
    }
    let (zero, two) = (n.i64(0)?, n.i64(2)?);
    let kept = n.emit(Minimum::default(), &[sizes, target])?;
    let surplus = n.emit(Subtract::default(), &[sizes, kept])?;
    let start = n.emit(Divide::default(), &[surplus, two])?;
    let stop = n.emit(Add::default(), &[start, kept])?;
    let (one, count) = (n.constant(Tensor::scalar(1i64))?, n.shape_of(sizes)?);
    let step = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[one, count])?;
    let y = n.emit(Slice, &[x, start, stop, step])?;
    let lacking = n.emit(Subtract::default(), &[target, sizes])?;
    let lacking = n.emit(Maximum::default(), &[lacking, zero])?;
    let begin = n.emit(Divide::default(), &[lacking, two])?;
    let end = n.emit(Subtract::default(), &[lacking, begin])?;
    Ok(n.emit(Pad { pad_mode: PadMode::Constant }, &[y, begin, end])?.into())
}
