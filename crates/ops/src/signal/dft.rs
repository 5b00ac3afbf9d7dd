//! DFT and IDFT: complex transforms over any axes. The inverse divides by the product of the lengths.

use super::axes::{apply_sizes, eval_axes, infer_axes, sized};
use super::fourier::{from_pairs, resized, to_pairs, transform_axis};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Dim;

/// Forward transform of a complex tensor.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "DFT", since = 7, inputs = "data, axes, signal_size?")]
pub struct Dft;

impl Op for Dft {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, false)
    }
}

/// Inverse transform of a complex tensor.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "IDFT", since = 7, inputs = "data, axes, signal_size?")]
pub struct Idft;

impl Op for Idft {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, true)
    }
}

/// Refuses data that cannot be complex; gives its rank without the pair axis.
pub(super) fn require_complex(cx: &InferCx<'_>) -> Result<Option<usize>> {
    let Some(rank) = cx.rank(0) else { return Ok(None) };
    let last = cx.dim(0, rank.saturating_sub(1));
    cx.require(rank >= 2 && last.compatible(Dim::known(2)), || {
        format!("{} must be complex: rank 2 or more and a last axis of 2, found [{}]", cx.port_name(0), cx.shape(0))
    })?;
    Ok(Some(rank - 1))
}

fn infer(cx: &mut InferCx<'_>) -> Result<()> {
    let rank = require_complex(cx)?;
    let axes = infer_axes(cx, rank)?;
    let mut shape = cx.shape(0).clone();
    if let (Some(rank), Some(dims)) = (rank, shape.dims_mut()) {
        match axes {
            Some(axes) => apply_sizes(cx, dims, &axes)?,
            None if cx.has(2) => dims[..rank].fill(Dim::ANY),
            None => {}
        }
        dims[rank] = Dim::known(2);
    }
    cx.set(0, cx.ty(0), shape);
    Ok(())
}

fn eval(cx: &mut EvalCx<'_>, inverse: bool) -> Result<()> {
    let rank = cx.shape(0).len() - 1;
    let from = cx.shape(0)[..rank].to_vec();
    let axes = eval_axes(cx, rank)?;
    let to = sized(cx, &from, &axes)?;
    let mut data = resized(&from_pairs(&cx.get::<f64>(0)?), &from, &to)?;
    for axis in axes {
        transform_axis(&mut data, &to, axis, inverse);
    }
    let shape = [&to[..], &[2]].concat();
    cx.put(0, &shape, to_pairs(&data))
}
