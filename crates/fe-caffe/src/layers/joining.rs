//! Blobs put together and taken apart along an axis. The axis has an old name each, which counts when it is the one given.

use super::cx::LayerCx;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::{Split, VariadicSplit};

pub(crate) const RULES: &[StaticRule] = &[rule("Concat", 0, concat), rule("Slice", 0, slice)];

/// `axis`, or the same by its old name.
fn axis(n: &NodeCx<'_>, old: &str, x: Value) -> Result<i64> {
    let (new, old): (Option<i64>, Option<i64>) = (n.opt_attr("axis")?, n.opt_attr(old)?);
    let axis = match (new, old) {
        (Some(new), None | Some(1)) => new,
        (None | Some(1), Some(old)) => old,
        (None, None) => 1,
        (Some(new), Some(old)) if new == old => new,
        (Some(new), Some(old)) => {
            return Err(n.fail(format!("has the axis {new} and, by its old name, {old}; only one can be meant")));
        }
    };
    match n.rank(x) {
        Some(rank) => Ok(n.axis(axis, rank)? as i64),
        None => Ok(axis),
    }
}

fn concat(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let bottoms = n.bottoms()?;
    let Some(&first) = bottoms.first() else { return Err(n.fail("has no bottom")) };
    let axis = axis(n, "concat_dim", first)?;
    Ok(n.concat(&bottoms, axis)?.into())
}

fn slice(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let axis = axis(n, "slice_dim", x)?;
    let points: Vec<i64> = n.attr("slice_point", vec![])?;
    let tops = n.n_outputs();
    if tops == 1 && points.is_empty() {
        return Ok(x.into());
    }
    if points.is_empty() {
        let axis = n.i64(axis)?;
        return Ok(n.emit_all(Split { num_splits: tops }, &[x, axis])?.into());
    }
    if points.len() + 1 != tops {
        return Err(n.fail(format!("has {tops} tops and {} of `slice_point`; one less is needed", points.len())));
    }
    let mut lengths = vec![];
    let mut last = 0;
    for point in points {
        if point <= last {
            return Err(n.fail(format!("`slice_point` must grow from above 0 on, found {point} behind {last}")));
        }
        lengths.push(point - last);
        last = point;
    }
    lengths.push(-1);
    let size = usize::try_from(axis).ok().and_then(|a| n.shape(x).dims()?.get(a)?.get());
    if let Some(size) = size.filter(|size| *size <= last) {
        return Err(n.fail(format!("`slice_point` {last} lies beyond the axis of {size}")));
    }
    let (axis, lengths) = (n.i64(axis)?, n.i64s(&lengths)?);
    Ok(n.emit_all(VariadicSplit, &[x, axis, lengths])?.into())
}
