//! What several rules need of shapes: scalars, single dimensions, all axes, and the matrix view that starts at an axis.

use carafe_frontend::NodeCx;
use carafe_graph::{Result, Value};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::{Reshape, Slice};
use carafe_ops::reduce::ReduceProd;
use carafe_ops::shape::Range;
use carafe_tensor::ElementType;

/// One element without axes, whatever its shape was.
pub(super) fn scalar(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    if n.rank(v) == Some(0) {
        return Ok(v);
    }
    let none = n.i64s(&[])?;
    n.emit(Reshape { special_zero: false }, &[v, none])
}

/// A vector of all elements.
pub(super) fn vector(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    if n.rank(v) == Some(1) { Ok(v) } else { n.reshape(v, &[-1]) }
}

/// Dimension `axis` of a value as an i64 scalar; negative counts from the end.
pub(super) fn dim(n: &mut NodeCx<'_>, v: Value, axis: i64) -> Result<Value> {
    let (shape, axis, zero) = (n.shape_of(v)?, n.i64(axis)?, n.i64(0)?);
    n.emit(Gather { batch_dims: 0 }, &[shape, axis, zero])
}

/// Number of axes as an i64 vector of one element.
pub(super) fn rank(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    match n.rank(v) {
        Some(r) => n.i64s(&[r as i64]),
        None => {
            let shape = n.shape_of(v)?;
            n.shape_of(shape)
        }
    }
}

/// `0, 1, ...` up to but without the scalar `stop`.
pub(super) fn count_to(n: &mut NodeCx<'_>, stop: Value) -> Result<Value> {
    let (zero, one) = (n.i64(0)?, n.i64(1)?);
    n.emit(Range { output_type: ElementType::I64 }, &[zero, stop, one])
}

/// The numbers of all axes.
pub(super) fn all_axes(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    match n.rank(v) {
        Some(r) => n.i64s(&(0..r as i64).collect::<Vec<_>>()),
        None => {
            let r = rank(n, v)?;
            let r = scalar(n, r)?;
            count_to(n, r)
        }
    }
}

/// The matrix whose rows hold everything from `axis` on.
pub(super) fn flatten(n: &mut NodeCx<'_>, v: Value, axis: i64) -> Result<Value> {
    let split = match n.rank(v) {
        Some(r) if axis == r as i64 => r,
        Some(r) => n.axis(axis, r)?,
        None if axis >= 0 => axis as usize,
        None => return flatten_before(n, v, axis),
    };
    let dims = n.shape(v).dims().unwrap_or(&[]);
    let known = |part: Option<&[carafe_tensor::Dim]>| -> Option<i64> {
        part?.iter().try_fold(1i64, |p, d| p.checked_mul(d.get()?))
    };
    let before = if split == 0 { Some(1) } else { known(dims.get(..split)) };
    let after = known(dims.get(split..).filter(|_| n.rank(v).is_some()));
    let pattern = match (before, after) {
        // What is written must stay right when the model is reshaped; only nothing at all has to be said in numbers.
        (Some(a), Some(b)) if a == 0 || b == 0 => [a, b],
        _ if split == 0 => [1, -1],
        (Some(_), _) if split == 1 => return n.reshape(v, &[0, -1]),
        (Some(_), Some(b)) => [-1, b],
        (Some(a), None) if a > 0 => [a, -1],
        (None, Some(b)) if b > 0 => [-1, b],
        _ if split == 1 => return n.reshape(v, &[0, -1]),
        _ => return flatten_before(n, v, split as i64),
    };
    let pattern = n.i64s(&pattern)?;
    n.emit(Reshape { special_zero: false }, &[v, pattern])
}

// As many rows as the axes before `axis` have elements, which only a run may know; negative counts from the end.
fn flatten_before(n: &mut NodeCx<'_>, v: Value, axis: i64) -> Result<Value> {
    let shape = n.shape_of(v)?;
    let (start, stop, step) = (n.i64s(&[0])?, n.i64s(&[axis])?, n.i64s(&[1])?);
    let front = n.emit(Slice, &[shape, start, stop, step])?;
    let (first, rest) = (n.i64s(&[0])?, n.i64s(&[-1])?);
    let rows = n.emit(ReduceProd { keep_dims: true }, &[front, first])?;
    let pattern = n.concat(&[rows, rest], 0)?;
    n.emit(Reshape { special_zero: false }, &[v, pattern])
}
