//! Padding of data by a matrix `[axes, 2]` of amounts before and after each axis.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::movement::Pad;
use carafe_ops::movement::pad::PadMode;
use carafe_tensor::ElementType;

/// What is before and what is after, each an i64 vector, of a matrix `[axes, 2]`.
pub fn before_and_after(n: &mut NodeCx<'_>, pads: Value) -> Result<(Value, Value)> {
    let pads = n.convert(pads, ElementType::I64)?;
    let (first, second) = (n.i64(0)?, n.i64(1)?);
    Ok((n.gather(pads, first, 1)?, n.gather(pads, second, 1)?))
}

/// Data with elements of `value`, zeros by default, around it.
pub fn pad(n: &mut NodeCx<'_>, x: Value, pads: Value, value: Option<Value>) -> Result<Value> {
    let (before, after) = before_and_after(n, pads)?;
    let value = match value {
        Some(value) => value,
        None => n.scalar_like(x, 0.0)?,
    };
    n.emit(Pad { pad_mode: PadMode::Constant }, &[x, before, after, value])
}

/// Data with its mirror image around it; `with_edge` repeats the border.
pub fn mirror(n: &mut NodeCx<'_>, x: Value, pads: Value, with_edge: bool) -> Result<Value> {
    let (before, after) = before_and_after(n, pads)?;
    let pad_mode = if with_edge { PadMode::Symmetric } else { PadMode::Reflect };
    n.emit(Pad { pad_mode }, &[x, before, after])
}
