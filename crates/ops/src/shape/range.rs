//! Range: `start, start + step, ...` up to but without `stop`. Each element is computed from its number, so no error
//! adds up. For an integer output the three inputs are truncated before anything is counted.

use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};
use carafe_tensor::{Dim, ElementType, Number, PartialShape};

/// An arithmetic sequence of the chosen type.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 4, inputs = "start, stop, step", shape_inputs = "0, 1, 2")]
pub struct Range {
    /// Type of the sequence; the inputs may have others.
    pub output_type: ElementType,
}

impl Op for Range {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = self.output_type;
        cx.require(ty.is_float() || ty.is_integer(), || {
            format!("attribute `output_type` must be numeric, found {ty}")
        })?;
        infer(cx, ty)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if (0..3).all(|i| cx.ty(i) == self.output_type) { Version::of::<RangeV1>(self, cx) } else { None }
    }
}

/// An arithmetic sequence of the type of its inputs.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Range", since = 1, until = 3, inputs = "start, stop, step", shape_inputs = "0, 1, 2")]
pub struct RangeV1;

impl Op for RangeV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.same_type(&[0, 1, 2])?;
        infer(cx, ty)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        let output_type = cx.ty(0);
        if output_type.is_dynamic() { None } else { Version::same(Range { output_type }, cx) }
    }
}

fn infer(cx: &mut InferCx<'_>, ty: ElementType) -> Result<()> {
    for i in 0..3 {
        cx.require_number(i)?;
        cx.require_rank(i, &[0])?;
        let value = cx.float(i);
        cx.require(value.is_none_or(f64::is_finite), || {
            format!("{} must be finite, found {}", cx.port_name(i), value.unwrap_or(f64::NAN))
        })?;
    }
    let count = if ty.is_integer() { count_integers(cx)? } else { count_floats(cx)? };
    cx.set(0, ty, PartialShape::new([count]));
    Ok(())
}

fn count_integers(cx: &InferCx<'_>) -> Result<Dim> {
    let value = |i: usize| match cx.int(i) {
        Some(n) => Some(Dim::known(n)),
        None => cx.dims_value(i).and_then(|v| v.first().copied()),
    };
    let step = match value(2).and_then(Dim::get) {
        Some(0) => return Err(cx.fail("the step must not be 0")),
        Some(step) => step,
        None => return Ok(Dim::ANY),
    };
    let (Some(start), Some(stop)) = (value(0), value(1)) else {
        return Ok(Dim::ANY);
    };
    let way = if step > 0 { stop.sub(start) } else { start.sub(stop) };
    Ok(way.ceil_div(step.saturating_abs()).clamp_shape())
}

fn count_floats(cx: &InferCx<'_>) -> Result<Dim> {
    let step = match cx.float(2) {
        Some(0.0) => return Err(cx.fail("the step must not be 0")),
        Some(step) => step,
        None => return Ok(Dim::ANY),
    };
    match (cx.float(0), cx.float(1)) {
        (Some(start), Some(stop)) => Ok(Dim::known(((stop - start) / step).ceil().max(0.0) as i64)),
        _ => Ok(Dim::ANY),
    }
}

fn eval(cx: &mut EvalCx<'_>) -> Result<()> {
    let shape = cx.out_shape(0)?;
    with_number!(cx.out_ty(0), T => {
        let (start, step) = (first::<T>(cx, 0)?, first::<T>(cx, 2)?);
        let mut sequence = filled(&shape, start)?;
        for (i, x) in sequence.iter_mut().enumerate() {
            *x = start.wrapping_add(T::from_i64(i as i64).wrapping_mul(step));
        }
        cx.put(0, &shape, sequence)
    })
}

fn first<T: Number>(cx: &EvalCx<'_>, input: usize) -> Result<T> {
    cx.get::<T>(input)?.first().copied().ok_or_else(|| cx.fail(format!("input {input} is empty")))
}
