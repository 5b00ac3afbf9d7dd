//! Shared by the logical operations of two inputs: booleans in, booleans out.

use crate::arithmetic::Meeting;
use crate::arithmetic::binary;
use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::ElementType;

pub(crate) fn infer(cx: &mut InferCx<'_>, meeting: Meeting) -> Result<()> {
    cx.require_boolean(0)?;
    cx.require_boolean(1)?;
    let shape = binary::infer_shape(cx, meeting)?;
    cx.set(0, ElementType::Boolean, shape);
    Ok(())
}

pub(crate) fn map(cx: &mut EvalCx<'_>, meeting: Meeting, f: impl Fn(bool, bool) -> bool) -> Result<()> {
    binary::map(cx, meeting, |a: u8, b: u8| u8::from(f(a != 0, b != 0)))
}
