//! Reading of attributes and sizes that several rules share. A size that a layer computes with is read off its bottom when
//! the model runs, so that a model stays right when it is given another shape; what is known is folded by whoever compiles.

use carafe_frontend::NodeCx;
use carafe_graph::{AttrValue, Result, Value};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::Slice;
use carafe_ops::shape::Range;
use carafe_tensor::ElementType;

/// A list of numbers, also where a single one was written; empty when absent.
pub(super) fn list(n: &NodeCx<'_>, name: &str) -> Result<Vec<f32>> {
    Ok(match n.attr_value(name) {
        None => vec![],
        Some(AttrValue::Int(v)) => vec![*v as f32],
        Some(AttrValue::Float(v)) => vec![*v as f32],
        Some(AttrValue::Ints(v)) => v.iter().map(|v| *v as f32).collect(),
        Some(AttrValue::Floats(v)) => v.iter().map(|v| *v as f32).collect(),
        Some(other) => return Err(n.fail(format!("`{name}` must be numbers, found {other}"))),
    })
}

/// A dimension, where known.
pub(super) fn dim(n: &NodeCx<'_>, v: Value, axis: usize) -> Option<i64> {
    n.shape(v).dims().and_then(|d| d.get(axis)).and_then(|d| d.get())
}

/// Height and width of an image.
pub(super) fn known_size(n: &NodeCx<'_>, v: Value) -> Result<[i64; 2]> {
    match (n.rank(v), dim(n, v, 2), dim(n, v, 3)) {
        (Some(4), Some(h), Some(w)) => Ok([h, w]),
        _ => Err(n.unsupported(format!("height and width of an image must be known, found [{}]", n.shape(v)))),
    }
}

/// Some dimensions as an i64 vector.
pub(super) fn dims(n: &mut NodeCx<'_>, v: Value, axes: &[i64]) -> Result<Value> {
    let shape = n.shape_of(v)?;
    picked(n, shape, axes)
}

/// Height and width as an i64 vector.
pub(super) fn size(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    if let Some(rank) = n.rank(v).filter(|rank| *rank != 4) {
        return Err(n.fail(format!("an image has four axes, found {rank}: [{}]", n.shape(v))));
    }
    dims(n, v, &[2, 3])
}

/// Some elements of a vector.
pub(super) fn picked(n: &mut NodeCx<'_>, v: Value, positions: &[i64]) -> Result<Value> {
    let (at, zero) = (n.i64s(positions)?, n.i64(0)?);
    n.emit(Gather { batch_dims: 0 }, &[v, at, zero])
}

/// 0, 1, 2 and so on as floats, as many as an i64 vector of one says.
pub(super) fn ticks(n: &mut NodeCx<'_>, count: Value) -> Result<Value> {
    let stop = n.squeeze(count, &[0])?;
    let (start, step) = (n.i64(0)?, n.i64(1)?);
    n.emit(Range { output_type: ElementType::F32 }, &[start, stop, step])
}

/// Elements `start..stop` of some axes, every `steps`-th.
pub(super) fn part(
    n: &mut NodeCx<'_>,
    v: Value,
    axes: &[i64],
    start: &[i64],
    stop: &[i64],
    steps: &[i64],
) -> Result<Value> {
    let (start, stop, steps, axes) = (n.i64s(start)?, n.i64s(stop)?, n.i64s(steps)?, n.i64s(axes)?);
    n.emit(Slice, &[v, start, stop, steps, axes])
}
