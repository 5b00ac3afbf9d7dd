//! Shared by operations of one number: floats are computed in f64 and rounded once, so results are exact to the last bit
//! of the stored type in nearly all cases; integers have a function of their own.

use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::ElementType;

/// Numeric input, output alike.
pub(crate) fn infer(cx: &mut InferCx<'_>) -> Result<()> {
    cx.require_number(0)?;
    cx.output_like(0, 0);
    Ok(())
}

/// Applies `float` to floats and `int` to signed integers; unsigned ones pass through `int` as well, as i64 bits.
pub(crate) fn map_number(cx: &mut EvalCx<'_>, float: impl Fn(f64) -> f64, int: impl Fn(i64) -> i64) -> Result<()> {
    let shape = cx.shape(0).to_vec();
    let ty = cx.ty(0);
    if ty.is_float() {
        let y: Vec<f64> = cx.get::<f64>(0)?.iter().map(|&x| float(x)).collect();
        cx.put(0, &shape, y)
    } else if ty == ElementType::U64 {
        let x = cx.input(0).clone();
        cx.set(0, x)
    } else {
        let y: Vec<i64> = cx.get::<i64>(0)?.iter().map(|&x| int(x)).collect();
        cx.put(0, &shape, y)
    }
}
