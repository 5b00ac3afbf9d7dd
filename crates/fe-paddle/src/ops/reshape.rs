//! Operators that give a tensor another shape and keep its elements in order.

use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::{Broadcast, Reshape, Squeeze, Unsqueeze};

pub(super) const RULES: &[StaticRule] = &[
    rule("expand", 0, expand_times),
    rule("expand_as", 0, expand_as_times),
    rule("expand_as_v2", 0, expand_as),
    rule("expand_v2", 0, expand),
    rule("flatten", 0, flatten),
    rule("flatten2", 0, flatten),
    rule("flatten_contiguous_range", 0, flatten_range),
    rule("reshape", 0, reshape),
    rule("reshape2", 0, reshape),
    rule("squeeze", 0, squeeze),
    rule("squeeze2", 0, squeeze),
    rule("unsqueeze", 0, unsqueeze),
    rule("unsqueeze2", 0, unsqueeze),
];

// 0 copies a size of the input, -1 is what is left.
fn reshape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let shape = n.vector("shape", &["ShapeTensor", "Shape"])?.ok_or_else(|| n.fail("`shape` is missing"))?;
    n.ignore_slots(&["Shape"]);
    let out = n.put(Reshape { special_zero: true }, &[x, shape])?;
    Ok(n.give(&[("Out", out)]))
}

// Axes that are not of size 1 stay.
fn squeeze(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axes = n.known_ints("axes", &["AxesTensor", "AxesTensorList"])?.unwrap_or_default();
    let out = match n.rank(x) {
        Some(rank) => {
            let mut taken = vec![];
            let names_none = axes.is_empty();
            for axis in axes {
                let axis = n.axis(axis, rank)?;
                // One whose size is open is counted on to be 1, as the program was made for it.
                if n.shape(x).dim(axis).contains(1) {
                    taken.push(axis as i64);
                }
            }
            taken.sort_unstable();
            taken.dedup();
            match (names_none, taken.is_empty()) {
                (true, _) => n.put(Squeeze { allow_axis_skip: false }, &[x])?,
                (false, true) => x,
                (false, false) => n.squeeze(x, &taken)?,
            }
        }
        None if axes.is_empty() => n.put(Squeeze { allow_axis_skip: false }, &[x])?,
        None => n.squeeze(x, &axes)?,
    };
    Ok(n.give(&[("Out", out)]))
}

fn unsqueeze(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axes = n.vector("axes", &["AxesTensorList", "AxesTensor"])?.ok_or_else(|| n.fail("`axes` is missing"))?;
    let out = match (n.ints(axes), n.rank(x)) {
        // Each axis is put in where the ones before it leave it.
        (Some(list), Some(rank)) => {
            let mut kept: Vec<bool> = vec![true; rank];
            for axis in list {
                let at = n.axis(axis, kept.len() + 1)?;
                kept.insert(at, false);
            }
            let new: Vec<i64> = kept.iter().enumerate().filter(|(_, k)| !**k).map(|(i, _)| i as i64).collect();
            if new.is_empty() { x } else { n.unsqueeze(x, &new)? }
        }
        _ => n.put(Unsqueeze, &[x, axes])?,
    };
    Ok(n.give(&[("Out", out)]))
}

// The product of the axes before `axis` and of those behind it.
fn flatten(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axis: i64 = n.attr("axis", 1)?;
    let out = flattened(n, x, axis)?;
    Ok(n.give(&[("Out", out)]))
}

/// A matrix: the axes before `axis`, and those from it on.
pub(super) fn flattened(n: &mut NodeCx<'_>, x: Value, axis: i64) -> Result<Value> {
    match axis {
        0 => n.reshape(x, &[1, -1]),
        1 => n.reshape(x, &[0, -1]),
        _ => {
            let shape = n.shape_of(x)?;
            let rank = n.known_rank(x)?;
            if axis as usize == rank {
                return n.reshape(x, &[-1, 1]);
            }
            let rest = n.part(shape, axis, rank as i64, 0)?;
            let axes = n.i64s(&[0])?;
            let columns = n.put(carafe_ops::reduce::ReduceProd { keep_dims: true }, &[rest, axes])?;
            let rows = n.i64s(&[-1])?;
            let shape = n.concat(&[rows, columns], 0)?;
            n.reshaped(x, shape, false)
        }
    }
}

// Axes from `start_axis` to `stop_axis` become one.
fn flatten_range(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let (start, stop): (i64, i64) = (n.attr("start_axis", 1)?, n.attr("stop_axis", 1)?);
    let rank = n.known_rank(x)?;
    if rank == 0 {
        let out = n.reshape(x, &[1])?;
        return Ok(n.give(&[("Out", out)]));
    }
    let (start, stop) = (n.axis(start, rank)?, n.axis(stop, rank)?);
    let out = if start >= stop {
        x
    } else if stop + 1 == rank {
        let mut pattern = vec![0; start];
        pattern.push(-1);
        n.reshape(x, &pattern)?
    } else {
        let shape = n.shape_of(x)?;
        let before = n.part(shape, 0, start as i64, 0)?;
        let after = n.part(shape, stop as i64 + 1, rank as i64, 0)?;
        let middle = n.i64s(&[-1])?;
        let shape = n.concat(&[before, middle, after], 0)?;
        n.reshaped(x, shape, false)?
    };
    Ok(n.give(&[("Out", out)]))
}

// -1 keeps a size.
fn expand(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let shape = n.vector("shape", &["expand_shapes_tensor", "Shape"])?.ok_or_else(|| n.fail("`shape` is missing"))?;
    n.ignore_slots(&["Shape"]);
    let out = expanded(n, x, shape)?;
    Ok(n.give(&[("Out", out)]))
}

fn expand_as(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let shape = match n.opt_slot("Y")? {
        Some(y) => {
            n.ignore(&["target_shape"]);
            n.shape_of(y)?
        }
        None => n.vector("target_shape", &[])?.ok_or_else(|| n.fail("`target_shape` is missing"))?,
    };
    let out = expanded(n, x, shape)?;
    Ok(n.give(&[("Out", out)]))
}

fn expanded(n: &mut NodeCx<'_>, x: Value, shape: Value) -> Result<Value> {
    if n.ints(shape).is_some_and(|s| s.iter().all(|d| *d >= 0)) {
        return n.put(Broadcast { mode: BroadcastMode::Numpy }, &[x, shape]);
    }
    // A size of 1 meets every other.
    let one = n.i64s(&[1])?;
    let shape = n.max(shape, one)?;
    n.put(Broadcast { mode: BroadcastMode::Bidirectional }, &[x, shape])
}

// Each axis as often as `expand_times` says.
fn expand_times(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let times = n.vector("expand_times", &["ExpandTimes", "expand_times_tensor"])?;
    let times = times.ok_or_else(|| n.fail("`expand_times` is missing"))?;
    let out = n.put(carafe_ops::movement::Tile, &[x, times])?;
    Ok(n.give(&[("Out", out)]))
}

fn expand_as_times(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, target) = (n.slot("X")?, n.slot("target_tensor")?);
    let (have, want) = (n.shape_of(x)?, n.shape_of(target)?);
    let times = n.over(want, have)?;
    let out = n.put(carafe_ops::movement::Tile, &[x, times])?;
    Ok(n.give(&[("Out", out)]))
}
