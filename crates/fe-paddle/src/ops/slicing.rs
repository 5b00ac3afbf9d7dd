//! Parts of tensors, and tensors with other parts.

use super::arrays;
use super::slots::Slots;
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{AttrValue, Result, Value};
use carafe_ops::movement::{Slice, SliceScatter, Squeeze};
use carafe_tensor::{ElementType, Tensor};

pub(super) const RULES: &[StaticRule] = &[
    rule("crop", 0, crop),
    rule("crop_tensor", 0, crop),
    rule("set_value", 0, set_value),
    rule("slice", 0, slice),
    rule("strided_slice", 0, strided_slice),
];

fn slice(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["infer_flags"]);
    if let Some(item @ Item::Sequence(_)) = n.slot_item("Input")? {
        return of_array(n, &item);
    }
    let x = n.slot("Input")?;
    let axes: Vec<i64> = n.attr("axes", vec![])?;
    let starts = n.vector("starts", &["StartsTensor", "StartsTensorList"])?;
    let stops = n.vector("ends", &["EndsTensor", "EndsTensorList"])?;
    let (Some(starts), Some(stops)) = (starts, stops) else { return Err(n.fail("`starts` or `ends` is missing")) };
    let steps = n.i64s(&vec![1; axes.len()])?;
    sliced(n, x, starts, stops, steps, &axes)
}

// An element of an array of tensors.
fn of_array(n: &mut NodeCx<'_>, item: &Item) -> Result<Outputs> {
    let starts = n.vector("starts", &["StartsTensor", "StartsTensorList"])?;
    n.vector("ends", &["EndsTensor", "EndsTensorList"])?;
    n.ignore(&["axes", "decrease_axis"]);
    let index = starts.ok_or_else(|| n.fail("`starts` is missing"))?;
    let out = arrays::element(n, item, index)?;
    Ok(n.give(&[("Out", out)]))
}

fn strided_slice(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["infer_flags"]);
    let x = n.slot("Input")?;
    let axes: Vec<i64> = n.attr("axes", vec![])?;
    let starts = n.vector("starts", &["StartsTensor", "StartsTensorList"])?;
    let stops = n.vector("ends", &["EndsTensor", "EndsTensorList"])?;
    let steps = n.vector("strides", &["StridesTensor", "StridesTensorList"])?;
    let (Some(starts), Some(stops), Some(steps)) = (starts, stops, steps) else {
        return Err(n.fail("`starts`, `ends` or `strides` is missing"));
    };
    // Backwards -1 is in front of the first element, not the last one.
    let stops = match (n.ints(steps), n.ints(stops)) {
        (Some(steps), Some(stops)) => {
            let moved: Vec<i64> = steps
                .iter()
                .zip(&stops)
                .map(|(step, stop)| if *step < 0 && *stop == -1 { i64::MIN } else { *stop })
                .collect();
            n.i64s(&moved)?
        }
        _ => {
            let (zero, last, front) = (n.i64s(&[0])?, n.i64s(&[-1])?, n.i64s(&[i64::MIN])?);
            let (is_back, is_last) = (n.less(steps, zero)?, n.equal(stops, last)?);
            let is_front = n.and(is_back, is_last)?;
            n.choose(is_front, front, stops)?
        }
    };
    sliced(n, x, starts, stops, steps, &axes)
}

fn sliced(n: &mut NodeCx<'_>, x: Value, start: Value, stop: Value, step: Value, axes: &[i64]) -> Result<Outputs> {
    let dropped: Vec<i64> = n.attr("decrease_axis", vec![])?;
    let mut out = x;
    if !axes.is_empty() {
        // -1 as the end of an axis that goes away means the last element, not the one before it.
        let stop = match (n.ints(start), n.ints(stop)) {
            (Some(first), Some(mut last)) => {
                for (i, axis) in axes.iter().enumerate() {
                    if dropped.contains(axis) && first.get(i) == Some(&-1) && last.get(i) == Some(&0) {
                        last[i] = i64::MAX;
                    }
                }
                n.i64s(&last)?
            }
            _ => after_last(n, start, stop, axes, &dropped)?,
        };
        let at = n.i64s(axes)?;
        out = n.put(Slice, &[x, start, stop, step, at])?;
    }
    if !dropped.is_empty() {
        out = n.squeeze(out, &dropped)?;
    }
    Ok(n.give(&[("Out", out)]))
}

// Where one element is taken by a start that is computed, the end is the start and one more, which for -1 is the end of the axis.
fn after_last(n: &mut NodeCx<'_>, start: Value, stop: Value, axes: &[i64], dropped: &[i64]) -> Result<Value> {
    if !axes.iter().any(|a| dropped.contains(a)) {
        return Ok(stop);
    }
    let is_dropped: Vec<f64> = axes.iter().map(|a| f64::from(u8::from(dropped.contains(a)))).collect();
    let is_dropped = n.constant(Tensor::from_f64(ElementType::Boolean, &[axes.len()], &is_dropped)?)?;
    let (last, end) = (n.i64s(&[-1])?, n.i64s(&[i64::MAX])?);
    let is_last = n.equal(start, last)?;
    let is_moved = n.and(is_dropped, is_last)?;
    n.choose(is_moved, end, stop)
}

// A part of this shape from these offsets on.
fn crop(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let rank = n.known_rank(x)?;
    let shape = match n.opt_slot("Y")? {
        Some(y) => {
            n.ignore(&["shape"]);
            n.shape_of(y)?
        }
        None => n.vector("shape", &["ShapeTensor", "Shape"])?.ok_or_else(|| n.fail("`shape` is missing"))?,
    };
    let offsets = match n.vector("offsets", &["OffsetsTensor", "Offsets"])? {
        Some(v) if n.ints(v).is_none_or(|list| !list.is_empty()) => v,
        _ => n.i64s(&vec![0; rank])?,
    };
    // -1 takes the rest of an axis.
    let end = n.plus(offsets, shape)?;
    let whole = n.i64s(&[i64::MAX])?;
    let zero = n.i64s(&[0])?;
    let is_open = n.less(shape, zero)?;
    let end = n.choose(is_open, whole, end)?;
    let step = n.i64s(&vec![1; rank])?;
    let axes = n.i64s(&(0..rank as i64).collect::<Vec<_>>())?;
    let out = n.put(Slice, &[x, offsets, end, step, axes])?;
    Ok(n.give(&[("Out", out)]))
}

// The value of an attribute: the list of the element type at hand, `values` in newer programs.
fn assigned(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let lists = ["values", "fp32_values", "fp64_values", "fp16_values", "int32_values", "int64_values", "bool_values"];
    let shape: Vec<i64> = n.attr("shape", vec![1])?;
    let mut found: Vec<f64> = vec![];
    for name in lists {
        let list: Vec<f64> = match n.attr_value(name) {
            None => continue,
            Some(AttrValue::Ints(list)) => list.iter().map(|i| *i as f64).collect(),
            Some(_) => n.attr(name, vec![])?,
        };
        if found.is_empty() {
            found = list;
        }
    }
    let dims: Vec<usize> = shape.iter().map(|d| (*d).max(0) as usize).collect();
    if carafe_tensor::elements(&dims) != Some(found.len()) {
        return Err(n.fail(format!("{} values for the shape {shape:?}", found.len())));
    }
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let value = n.constant(Tensor::from_f64(ty, &dims, &found)?)?;
    n.convert_like(value, x)
}

fn set_value(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("Input")?;
    let axes: Vec<i64> = n.attr("axes", vec![])?;
    let starts = n.vector("starts", &["StartsTensorList"])?;
    let stops = n.vector("ends", &["EndsTensorList"])?;
    let steps = n.vector("steps", &["StepsTensorList"])?;
    let dropped: Vec<i64> = n.attr("decrease_axes", vec![])?;
    let new: Vec<i64> = n.attr("none_axes", vec![])?;
    let value = match n.opt_slot("ValueTensor")? {
        Some(v) => {
            n.ignore(&[
                "shape",
                "values",
                "fp32_values",
                "fp64_values",
                "fp16_values",
                "int32_values",
                "int64_values",
                "bool_values",
                "dtype",
            ]);
            n.convert_like(v, x)?
        }
        None => {
            n.ignore(&["dtype"]);
            assigned(n, x)?
        }
    };
    let (Some(starts), Some(stops), Some(steps)) = (starts, stops, steps) else {
        return Err(n.fail("`starts`, `ends` or `steps` is missing"));
    };
    if axes.is_empty() {
        let shape = n.shape_of(x)?;
        let out = n.stretch(value, shape)?;
        return Ok(n.give(&[("Out", out)]));
    }
    let stops = after_last(n, starts, stops, &axes, &dropped)?;
    let at = n.i64s(&axes)?;
    // The value meets the part that it replaces in the shape that reading it would have.
    let part = n.put(Slice, &[x, starts, stops, steps, at])?;
    let full = n.shape_of(part)?;
    let mut seen = part;
    if !dropped.is_empty() {
        let axes = n.i64s(&dropped)?;
        seen = n.put(Squeeze { allow_axis_skip: false }, &[seen, axes])?;
    }
    if !new.is_empty() {
        seen = n.unsqueeze(seen, &new)?;
    }
    let shape = n.shape_of(seen)?;
    // Further axes of size 1 in front of a value do not count.
    let value = match (n.rank(value), n.rank(seen)) {
        (Some(a), Some(b)) if a > b => {
            let front: Vec<i64> = (0..(a - b) as i64).collect();
            n.squeeze(value, &front)?
        }
        _ => value,
    };
    let value = n.stretch(value, shape)?;
    let value = n.reshaped(value, full, false)?;
    let out = n.put(SliceScatter, &[x, value, starts, stops, steps, at])?;
    Ok(n.give(&[("Out", out)]))
}
