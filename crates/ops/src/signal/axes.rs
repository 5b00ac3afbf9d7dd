//! The `axes` and `signal_size` inputs that the transforms share.

use carafe_graph::{EvalCx, InferCx, Result, normalize_axis};
use carafe_tensor::Dim;

/// Checks types and ranks of the inputs, and gives the axes where both they and `rank` (without the pair axis) are known.
pub(super) fn infer_axes(cx: &InferCx<'_>, rank: Option<usize>) -> Result<Option<Vec<usize>>> {
    cx.require_float(0)?;
    for i in 1..cx.n_inputs() {
        cx.require_integer(i)?;
        cx.require_rank(i, &[1])?;
    }
    if cx.has(2) {
        let (axes, sizes) = (cx.dim(1, 0), cx.dim(2, 0));
        cx.require(axes.compatible(sizes), || format!("axes and signal_size differ in length: {axes} and {sizes}"))?;
    }
    let (Some(rank), Some(axes)) = (rank, cx.ints(1)) else { return Ok(None) };
    normalized(&axes, rank).map(Some)
}

/// The axes of an evaluation.
pub(super) fn eval_axes(cx: &EvalCx<'_>, rank: usize) -> Result<Vec<usize>> {
    normalized(&cx.ints(1)?, rank)
}

fn normalized(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let axes = axes.iter().map(|&a| normalize_axis(a, rank)).collect::<Result<Vec<_>>>()?;
    let twice = axes.iter().enumerate().find(|(i, a)| axes[..*i].contains(a));
    match twice {
        Some((_, a)) => Err(carafe_graph::Error::invalid(format!("axes must be unique, found {a} twice"))),
        None => Ok(axes),
    }
}

/// Puts the signal sizes into the dimensions they are for: -1 keeps one, and what is unknown leaves it open.
pub(super) fn apply_sizes(cx: &InferCx<'_>, dims: &mut [Dim], axes: &[usize]) -> Result<()> {
    if !cx.has(2) {
        return Ok(());
    }
    let sizes = cx.dims_value(2);
    for (i, &axis) in axes.iter().enumerate() {
        let size = sizes.as_ref().and_then(|s| s.get(i)).copied();
        match size {
            Some(s) if s.get() == Some(-1) => {}
            Some(s) if s.max().is_some_and(|m| m < -1) => {
                return Err(cx.fail(format!("signal_size must be -1 or more, found {s}")));
            }
            Some(s) if s.min() >= 0 => dims[axis] = s,
            _ => dims[axis] = Dim::ANY,
        }
    }
    Ok(())
}

/// The shape with the signal sizes of an evaluation.
pub(super) fn sized(cx: &EvalCx<'_>, shape: &[usize], axes: &[usize]) -> Result<Vec<usize>> {
    let mut shape = shape.to_vec();
    if cx.has(2) {
        for (&axis, size) in axes.iter().zip(cx.ints(2)?) {
            if let Ok(n) = usize::try_from(size) {
                shape[axis] = n;
            }
        }
    }
    Ok(shape)
}
