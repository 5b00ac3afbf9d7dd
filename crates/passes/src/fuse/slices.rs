//! Parts of the last axis, by whatever operation they are cut out.

use super::look::{made_by, same_dim};
use carafe_graph::{Model, Value};
use carafe_ops::movement::{Slice, Split, StridedSlice, VariadicSplit};

/// Every `step`-th of `len` numbers of the last axis of `of`, from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub of: Value,
    pub first: usize,
    pub len: usize,
    pub step: usize,
    /// Of the whole axis.
    pub size: usize,
}

/// The cut that makes `v`, if it leaves all axes but the last alone.
pub(super) fn cut(model: &Model, v: Value) -> Option<Cut> {
    sliced(model, v).or_else(|| strided(model, v)).or_else(|| split(model, v))
}

/// Size of the last axis, if it is known.
pub(super) fn width(model: &Model, v: Value) -> Option<usize> {
    model.fact(v).shape.dims()?.last()?.size()
}

/// Whether two values surely have the same sizes on all axes but the last; elements may have moved over one of them whose
/// size is not known, as long as their number stays.
pub(super) fn same_rows(model: &Model, a: Value, b: Value) -> bool {
    let (Some(a), Some(b)) = (model.fact(a).shape.dims(), model.fact(b).shape.dims()) else { return false };
    let (Some((_, a)), Some((_, b))) = (a.split_last(), b.split_last()) else { return false };
    a.len() == b.len() && a.iter().zip(b).filter(|(a, b)| !same_dim(**a, **b)).count() <= 1
}

fn ints(model: &Model, v: Value) -> Option<Vec<i64>> {
    Some(model.constant_of(v)?.to_vec::<i64>().ok()?.into_owned())
}

// Bounds as Python has them; `None` is the end that the step starts from or goes to. Steps back are not looked at.
fn range(of: Value, size: usize, begin: Option<i64>, end: Option<i64>, step: i64) -> Option<Cut> {
    let n = size as i64;
    let at = |x: i64| (if x < 0 { x.saturating_add(n) } else { x }).clamp(0, n);
    let (first, last) = (begin.map_or(0, at), end.map_or(n, at));
    let step = usize::try_from(step).ok().filter(|&s| s > 0)?;
    let len = usize::try_from(last - first).ok()?.div_ceil(step);
    Some(Cut { of, first: first as usize, len, step, size })
}

fn sliced(model: &Model, v: Value) -> Option<Cut> {
    let inputs = made_by::<Slice>(model, v)?;
    let (of, rank) = (inputs[0], model.fact(inputs[0]).shape.rank()? as i64);
    let lists: Vec<Vec<i64>> = inputs[1..].iter().map(|&v| ints(model, v)).collect::<Option<_>>()?;
    let axis = lists.get(3).map_or(Some(0), |axes| axes.first().copied())?;
    let [start, stop, step] = lists.get(..3)? else { return None };
    let (&[start], &[stop], &[step]) = (&start[..], &stop[..], &step[..]) else { return None };
    (axis == rank - 1 || axis == -1).then_some(())?;
    range(of, width(model, of)?, Some(start), Some(stop), step)
}

fn strided(model: &Model, v: Value) -> Option<Cut> {
    let inputs = made_by::<StridedSlice>(model, v)?;
    let (_, op) = model.producer::<StridedSlice>(v)?;
    let (of, rank) = (inputs[0], model.fact(inputs[0]).shape.rank()?);
    let (begins, ends) = (ints(model, inputs[1])?, ints(model, inputs[2])?);
    let steps = inputs.get(3).map_or(Some(vec![]), |&v| ints(model, v))?;
    let n = begins.len();
    let set = |mask: &[i64], i: usize| mask.get(i) == Some(&1);
    let ellipsis = (0..n).find(|&i| set(&op.ellipsis_mask, i));
    if op.new_axis_mask.contains(&1) || op.shrink_axis_mask.contains(&1) || ends.len() != n || n > rank + 1 {
        return None;
    }
    let mut found = None;
    for i in (0..n).filter(|&i| Some(i) != ellipsis) {
        let axis = if ellipsis.is_some_and(|e| i > e) { rank.checked_sub(n - i)? } else { i };
        let begin = (!set(&op.begin_mask, i)).then_some(begins[i]);
        let end = (!set(&op.end_mask, i)).then_some(ends[i]);
        let step = steps.get(i).copied().unwrap_or(1);
        if axis + 1 == rank {
            found = range(of, width(model, of)?, begin, end, step);
            continue;
        }
        let size = model.fact(of).shape.dims()?.get(axis)?.get();
        let to_end = |e: i64| e >= i64::from(i32::MAX) || size.is_some_and(|n| e >= n);
        if begin.is_some_and(|b| b != 0) || !end.is_none_or(to_end) || step != 1 {
            return None;
        }
    }
    found
}

fn split(model: &Model, v: Value) -> Option<Cut> {
    let node = model.node(v.node);
    let inputs = node.inputs();
    let last = |axis: Value| {
        let rank = model.fact(inputs[0]).shape.rank()? as i64;
        let axis = *ints(model, axis)?.first()?;
        (axis == rank - 1 || axis == -1).then_some(())
    };
    let of = *inputs.first()?;
    if let Some(op) = node.op().get::<Split>() {
        last(inputs[1])?;
        let size = width(model, of)?;
        let len = size.checked_div(op.num_splits)?;
        return Some(Cut { of, first: v.port * len, len, step: 1, size });
    }
    node.op().get::<VariadicSplit>()?;
    last(inputs[1])?;
    let size = width(model, of)?;
    let sizes: Option<Vec<usize>> =
        (0..node.outputs().len()).map(|port| width(model, Value { node: v.node, port })).collect();
    let sizes = sizes?;
    Some(Cut { of, first: sizes[..v.port].iter().sum(), len: sizes[v.port], step: 1, size })
}
