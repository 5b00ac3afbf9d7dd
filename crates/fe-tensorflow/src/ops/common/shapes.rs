//! What several builders need of shapes: scalars, vectors, single dimensions, all axes.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::movement::Reshape;
use carafe_tensor::ElementType;

/// One element without axes, whatever its shape was.
pub fn scalar(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    if n.rank(v) == Some(0) {
        return Ok(v);
    }
    let none = n.i64s(&[])?;
    n.emit(Reshape { special_zero: false }, &[v, none])
}

/// A vector of all elements.
pub fn vector(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    if n.rank(v) == Some(1) { Ok(v) } else { n.reshape(v, &[-1]) }
}

/// A vector of all elements, as i64.
pub fn i64_vector(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    let v = n.convert(v, ElementType::I64)?;
    vector(n, v)
}

/// Number of axes as an i64 vector of one element.
pub fn rank(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    match n.rank(v) {
        Some(r) => n.i64s(&[r as i64]),
        None => {
            let shape = n.shape_of(v)?;
            n.shape_of(shape)
        }
    }
}

/// The numbers of all axes.
pub fn all_axes(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    match n.rank(v) {
        Some(r) => n.i64s(&(0..r as i64).collect::<Vec<_>>()),
        None => {
            let r = rank(n, v)?;
            let r = scalar(n, r)?;
            n.count_to(r, ElementType::I64)
        }
    }
}

/// The only number of a constant, such as an axis; an error that names it where a run decides.
pub fn known_number(n: &NodeCx<'_>, v: Value, what: &str) -> Result<i64> {
    match n.ints(v).as_deref() {
        Some([one]) => Ok(*one),
        Some(other) => Err(n.fail(format!("{what} must be one number, found {other:?}"))),
        None => Err(n.unsupported(format!("{what} must be known when the model is read"))),
    }
}

/// The elements of `v` in the shape of `like`.
pub fn reshape_like(n: &mut NodeCx<'_>, v: Value, like: Value) -> Result<Value> {
    let shape = n.shape_of(like)?;
    n.reshaped(v, shape, false)
}
