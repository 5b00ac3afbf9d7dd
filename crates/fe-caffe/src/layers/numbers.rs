//! Reading of attributes and sizes that several rules share.

use carafe_frontend::NodeCx;
use carafe_graph::{AttrValue, Result, Value};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::Slice;

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

/// Height and width as an i64 vector; a constant where they are known.
pub(super) fn size(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    match known_size(n, v) {
        Ok(size) => n.i64s(&size),
        Err(_) => {
            let shape = n.shape_of(v)?;
            let (at, zero) = (n.i64s(&[2, 3])?, n.i64(0)?);
            n.emit(Gather { batch_dims: 0 }, &[shape, at, zero])
        }
    }
}

/// A constant in place of what is known.
pub(super) fn settled(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    match n.ints(v) {
        Some(values) => n.i64s(&values),
        None => Ok(v),
    }
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
