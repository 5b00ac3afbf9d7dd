//! Shared by the comparisons: any one type on both sides, strings included; the result is boolean.

use crate::arithmetic::Meeting;
use crate::arithmetic::binary;
use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::ElementType;

pub(crate) fn infer(cx: &mut InferCx<'_>, meeting: Meeting) -> Result<()> {
    cx.same_type(&[0, 1])?;
    let shape = binary::infer_shape(cx, meeting)?;
    cx.set(0, ElementType::Boolean, shape);
    Ok(())
}

/// Evaluates with an operator of Rust: `compare!(cx, meeting, <=)`.
macro_rules! compare {
    ($cx:expr, $meeting:expr, $operator:tt) => {
        if $cx.ty(0) == ::carafe_tensor::ElementType::String {
            $crate::compare::comparison::strings($cx, $meeting, |a, b| a $operator b)
        } else {
            with_number!($cx.ty(0), T => $crate::arithmetic::binary::map($cx, $meeting, |a: T, b: T| u8::from(a $operator b)))
        }
    };
}
pub(crate) use compare;

pub(crate) fn strings(cx: &mut EvalCx<'_>, meeting: Meeting, holds: impl Fn(&str, &str) -> bool) -> Result<()> {
    let shape = cx.out_shape(0)?;
    let (a, b) = (cx.input(0).strings()?, cx.input(1).strings()?);
    let data = binary::pairs(cx, meeting, &shape, a, b, |x, y| u8::from(holds(x, y)))?;
    cx.put(0, &shape, data)
}
