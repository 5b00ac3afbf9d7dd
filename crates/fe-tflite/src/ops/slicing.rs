//! Parts of values.

use carafe_fe_tensorflow::ops::common::shapes::{i64_vector, known_number};
use carafe_fe_tensorflow::ops::common::slicing::{Masks, slice, strided_slice};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::{SliceScatter, VariadicSplit};

pub(crate) const RULES: &[StaticRule] = &[
    rule("DYNAMIC_UPDATE_SLICE", 1, dynamic_update_slice),
    rule("SLICE", 1, |n| {
        let (x, begin, size) = (n.input(0)?, n.input(1)?, n.input(2)?);
        Ok(slice(n, x, begin, size)?.into())
    }),
    rule("SPLIT", 1, split),
    rule("SPLIT_V", 1, split_v),
    rule("STRIDED_SLICE", 1, strided),
    rule("UNPACK", 1, unpack),
];

// Axis first, then the data.
fn split(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (axis, x) = (n.input(0)?, n.input(1)?);
    let parts: usize = n.attr("num_splits", 0)?;
    let axis = known_number(n, axis, "the axis")?;
    if parts != n.n_outputs() {
        return Err(n.fail(format!("{parts} parts do not fit {} outputs", n.n_outputs())));
    }
    Ok(n.split_equally(x, axis, parts)?.into())
}

fn split_v(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_splits"]);
    let (x, sizes, axis) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let axis = known_number(n, axis, "the axis")?;
    let (sizes, axis) = (i64_vector(n, sizes)?, n.i64(axis)?);
    Ok(n.emit_all(VariadicSplit, &[x, axis, sizes])?.into())
}

fn strided(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, begin, mut end, strides) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
    let masks = Masks {
        begin: n.attr("begin_mask", 0)?,
        end: n.attr("end_mask", 0)?,
        ellipsis: n.attr("ellipsis_mask", 0)?,
        new_axis: n.attr("new_axis_mask", 0)?,
        shrink_axis: n.attr("shrink_axis_mask", 0)?,
    };
    // The end counts from the begin.
    if n.attr("offset", false)? {
        end = n.plus(begin, end)?;
    }
    Ok(strided_slice(n, x, [begin, end, strides], masks)?.into())
}

fn unpack(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, axis) = (n.input(0)?, n.attr::<i64>("axis", 0)?);
    let parts: usize = n.attr("num", 0)?;
    if parts != n.n_outputs() {
        return Err(n.fail(format!("{parts} parts do not fit {} outputs", n.n_outputs())));
    }
    let mut all = vec![];
    for part in n.split_equally(x, axis, parts)? {
        all.push(n.squeeze(part, &[axis])?);
    }
    Ok(all.into())
}

// The start is moved so that the update lies inside.
fn dynamic_update_slice(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, update, start) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let start = i64_vector(n, start)?;
    updated_slice(n, x, update, start)
}

/// Data with an update written over it; one that would leave the data is moved back.
pub(super) fn updated_slice(n: &mut NodeCx<'_>, x: Value, update: Value, start: Value) -> Result<Outputs> {
    let rank = n.known_rank(x)?;
    let (size, whole) = (n.shape_of(update)?, n.shape_of(x)?);
    let last = n.minus(whole, size)?;
    let zero = n.i64(0)?;
    let start = n.min(start, last)?;
    let start = n.max(start, zero)?;
    let stop = n.plus(start, size)?;
    let ones = n.i64s(&vec![1; rank])?;
    Ok(n.emit(SliceScatter, &[x, update, start, stop, ones])?.into())
}
