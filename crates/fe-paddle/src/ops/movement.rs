//! Operators that join, cut and reorder tensors.

use super::slots::Slots;
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::Add;
use carafe_ops::movement::{Roll, Slice, Split, Tile, Transpose, VariadicSplit};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("concat", 0, concat),
    rule("flip", 0, flip),
    rule("meshgrid", 0, meshgrid),
    rule("partial_concat", 0, |n| {
        let parts = partial(n)?;
        let out = n.concat(&parts, 1)?;
        Ok(n.give(&[("Out", out)]))
    }),
    rule("partial_sum", 0, |n| {
        let parts = partial(n)?;
        sum_of(n, parts)
    }),
    rule("repeat_interleave", 0, repeat_interleave),
    rule("reverse", 0, flip),
    rule("roll", 0, roll),
    rule("split", 0, split),
    rule("stack", 0, stack),
    rule("sum", 0, |n| {
        let all = n.inputs_named("X")?;
        sum_of(n, all)
    }),
    rule("tile", 0, tile),
    rule("transpose", 0, transpose),
    rule("transpose2", 0, transpose),
    rule("unbind", 0, |n| {
        let parts = unstacked(n, "Out")?;
        Ok(parts)
    }),
    rule("unstack", 0, |n| unstacked(n, "Y")),
];

fn concat(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let items = match n.slot_item("X")? {
        // An array of tensors that is known one by one.
        Some(Item::Sequence(items)) => {
            items.into_iter().map(|i| super::arrays::tensor(n, i)).collect::<Result<Vec<_>>>()?
        }
        _ => n.inputs_named("X")?,
    };
    let axis = n.known_int("axis", &["AxisTensor"], 0)?;
    if items.is_empty() {
        return Err(n.fail("slot `X` is empty"));
    }
    let out = n.concat(&items, axis)?;
    Ok(n.give(&[("Out", out)]))
}

fn stack(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let all = n.inputs_named("X")?;
    let axis: i64 = n.attr("axis", 0)?;
    let mut parts = vec![];
    for v in all {
        parts.push(n.unsqueeze(v, &[axis])?);
    }
    if parts.is_empty() {
        return Err(n.fail("slot `X` is empty"));
    }
    let out = n.concat(&parts, axis)?;
    Ok(n.give(&[("Y", out), ("Out", out)]))
}

fn sum_of(n: &mut NodeCx<'_>, all: Vec<Value>) -> Result<Outputs> {
    let mut all = all.into_iter();
    let first = all.next().ok_or_else(|| n.fail("slot `X` is empty"))?;
    let out = all.try_fold(first, |a, b| n.emit(Add::default(), &[a, b]))?;
    Ok(n.give(&[("Out", out)]))
}

// Columns `start_index ..` of each matrix.
fn partial(n: &mut NodeCx<'_>) -> Result<Vec<Value>> {
    let all = n.inputs_named("X")?;
    let start: i64 = n.attr("start_index", 0)?;
    let length: i64 = n.attr("length", -1)?;
    let stop = match (length < 0, start + length) {
        (true, _) | (_, 0) => i64::MAX,
        (false, stop) => stop,
    };
    let mut parts = vec![];
    for v in all {
        parts.push(n.part(v, start, stop, 1)?);
    }
    Ok(parts)
}

// Values of a slot with several outputs.
fn several(n: &NodeCx<'_>, slot: &str, values: &[Value]) -> Result<Outputs> {
    let wanted = n.output_ports().iter().filter(|p| *p == slot).count();
    if wanted != values.len() {
        return Err(n.fail(format!("slot `{slot}` has {wanted} outputs, there are {} parts", values.len())));
    }
    let mut values = values.iter();
    let item = |p: &String| match p == slot {
        true => values.next().map_or(Item::Nothing, |v| Item::Tensor(*v)),
        false => Item::Nothing,
    };
    Ok(Outputs(n.output_ports().iter().map(item).collect()))
}

// Sizes of `sections`, of which one may be what is left, or `num` equal parts.
fn split(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axis = n.known_int("axis", &["AxisTensor"], 0)?;
    let sections = n.vector("sections", &["SectionsTensorList"])?;
    let num: i64 = n.attr("num", 0)?;
    let count = n.output_ports().iter().filter(|p| *p == "Out").count();
    let sections = sections.filter(|s| num == 0 && n.ints(*s).is_none_or(|list| !list.is_empty()));
    let at = n.i64(axis)?;
    let parts = match sections {
        Some(sections) if count > 1 => n.put_all(VariadicSplit, &[x, at, sections])?,
        Some(_) => vec![x],
        None => n.put_all(Split { num_splits: if num > 0 { num as usize } else { count } }, &[x, at])?,
    };
    several(n, "Out", &parts)
}

fn unstacked(n: &mut NodeCx<'_>, slot: &str) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axis: i64 = n.attr("axis", 0)?;
    n.ignore(&["num"]);
    let count = n.output_ports().iter().filter(|p| *p == slot).count();
    let mut parts = vec![];
    for part in n.split_equally(x, axis, count)? {
        parts.push(n.squeeze(part, &[axis])?);
    }
    several(n, slot, &parts)
}

fn transpose(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let mut order: Vec<i64> = match n.opt_attr("axis")? {
        Some(order) => order,
        None => n.required("perm")?,
    };
    n.ignore(&["data_format"]);
    let rank = order.len() as i64;
    order.iter_mut().filter(|a| **a < 0).for_each(|a| *a += rank);
    let order = n.i64s(&order)?;
    let out = n.put(Transpose, &[x, order])?;
    Ok(n.give(&[("Out", out)]))
}

fn flip(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axes = n.known_ints("axis", &[])?.unwrap_or_default();
    let out = reversed(n, x, &axes)?;
    Ok(n.give(&[("Out", out)]))
}

/// Axes from their end to their start.
pub(super) fn reversed(n: &mut NodeCx<'_>, x: Value, axes: &[i64]) -> Result<Value> {
    if axes.is_empty() {
        return Ok(x);
    }
    let count = axes.len();
    let start = n.i64s(&vec![-1; count])?;
    let stop = n.i64s(&vec![i64::MIN; count])?;
    let step = n.i64s(&vec![-1; count])?;
    let axes = n.i64s(axes)?;
    n.put(Slice, &[x, start, stop, step, axes])
}

// Each vector along an axis of its own, repeated along the others.
fn meshgrid(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let all = n.inputs_named("X")?;
    let mut sizes = vec![];
    let mut flat = vec![];
    for v in all {
        let v = n.reshape(v, &[-1])?;
        sizes.push(n.size(v, 0)?);
        flat.push(v);
    }
    let shape = n.concat(&sizes, 0)?;
    let mut out = vec![];
    for (i, v) in flat.iter().enumerate() {
        let axes: Vec<i64> = (0..flat.len() as i64).filter(|a| *a != i as i64).collect();
        let v = if axes.is_empty() { *v } else { n.unsqueeze(*v, &axes)? };
        out.push(n.stretch(v, shape)?);
    }
    several(n, "Out", &out)
}

fn roll(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let shifts = n.vector("shifts", &["ShiftsTensor"])?.ok_or_else(|| n.fail("`shifts` is missing"))?;
    let axes: Vec<i64> = n.attr("axis", vec![])?;
    let out = match axes.is_empty() {
        false => {
            let axes = n.i64s(&axes)?;
            n.put(Roll, &[x, shifts, axes])?
        }
        true => {
            let shape = n.shape_of(x)?;
            let flat = n.reshape(x, &[-1])?;
            let axes = n.i64s(&[0])?;
            let rolled = n.put(Roll, &[flat, shifts, axes])?;
            n.reshaped(rolled, shape, false)?
        }
    };
    Ok(n.give(&[("Out", out)]))
}

// Tile repeats with ones in front of the shorter list.
fn tile(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let times = n.vector("repeat_times", &["RepeatTimes", "repeat_times_tensor"])?;
    let times = times.ok_or_else(|| n.fail("`repeat_times` is missing"))?;
    let out = match n.ints(times) {
        Some(list) if list.iter().all(|t| *t == 1) && Some(list.len()) <= n.rank(x) => x,
        _ => n.put(Tile, &[x, times])?,
    };
    Ok(n.give(&[("Out", out)]))
}

// Each element several times in a row.
fn repeat_interleave(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axis: i64 = match n.opt_attr("dim")? {
        Some(axis) => axis,
        None => n.attr("axis", 0)?,
    };
    let rank = n.known_rank(x)?;
    let axis = n.axis(axis, rank)? as i64;
    let times: i64 = match n.opt_attr("Repeats")? {
        Some(times) => times,
        None => n.attr("repeats", 1)?,
    };
    n.ignore(&["output_size"]);
    let times = n.i64(times)?;
    let size = n.length(x, axis)?;
    let count = n.times(size, times)?;
    let all = n.count_to(count, ElementType::I64)?;
    let at = n.over(all, times)?;
    let out = n.gather(x, at, axis)?;
    Ok(n.give(&[("Out", out)]))
}
