//! Shared by the bitwise operations: integers bit by bit. Booleans are kept as 0 and 1, for which and, or and xor of the
//! bits are the logical ones.

use crate::arithmetic::Meeting;
use crate::arithmetic::binary;
use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::ElementType;

/// Two inputs of one type, integer or boolean; output alike.
pub(crate) fn infer(cx: &mut InferCx<'_>, meeting: Meeting) -> Result<()> {
    require_bits(cx, 0)?;
    require_bits(cx, 1)?;
    set_common(cx, meeting)
}

/// Two inputs of one integer type, output alike.
pub(crate) fn infer_shift(cx: &mut InferCx<'_>, meeting: Meeting) -> Result<()> {
    cx.require_integer(0)?;
    cx.require_integer(1)?;
    set_common(cx, meeting)
}

fn set_common(cx: &mut InferCx<'_>, meeting: Meeting) -> Result<()> {
    let ty = cx.same_type(&[0, 1])?;
    let shape = binary::infer_shape(cx, meeting)?;
    cx.set(0, ty, shape);
    Ok(())
}

pub(crate) fn require_bits(cx: &InferCx<'_>, input: usize) -> Result<()> {
    let ty = cx.ty(input);
    cx.require(ty.is_dynamic() || ty.is_integer() || ty == ElementType::Boolean, || {
        format!("{} must be integer or boolean, found {ty}", cx.port_name(input))
    })
}

pub(crate) fn map(cx: &mut EvalCx<'_>, meeting: Meeting, f: impl Fn(i64, i64) -> i64) -> Result<()> {
    binary::map(cx, meeting, f)
}
