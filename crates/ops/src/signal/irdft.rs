//! IRDFT: from half of a spectrum back to a real tensor. The last listed axis becomes `2 * (n - 1)` long unless
//! `signal_size` says otherwise, so an odd length needs it.

use super::axes::{apply_sizes, eval_axes, infer_axes, sized};
use super::dft::require_complex;
use super::fourier::{Complex, from_pairs, resized, transform_axis};
use crate::buffer::filled;
use crate::index::around;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// Inverse of the transform of a real tensor.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "IRDFT", since = 9, inputs = "data, axes, signal_size?")]
pub struct Irdft;

impl Op for Irdft {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let rank = require_complex(cx)?;
        let axes = infer_axes(cx, rank)?;
        let shape = match (rank, axes) {
            (None, _) => PartialShape::dynamic(),
            (Some(rank), None) => PartialShape::any_of_rank(rank),
            (Some(rank), Some(axes)) => {
                let mut dims: Vec<Dim> = (0..rank).map(|i| cx.dim(0, i)).collect();
                let &last = axes.last().ok_or_else(|| cx.fail("axes must not be empty"))?;
                dims[last] = dims[last].sub(Dim::known(1)).mul(Dim::known(2)).clamp_shape();
                apply_sizes(cx, &mut dims, &axes)?;
                PartialShape::new(dims)
            }
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let rank = cx.shape(0).len() - 1;
        let from = cx.shape(0)[..rank].to_vec();
        let axes = eval_axes(cx, rank)?;
        let Some((&last, outer)) = axes.split_last() else { return Err(cx.fail("axes must not be empty")) };
        let mut whole = from.clone();
        whole[last] = from[last].saturating_sub(1).saturating_mul(2);
        let to = sized(cx, &whole, &axes)?;
        let mut half = to.clone();
        half[last] = from[last];
        let mut data = resized(&from_pairs(&cx.get::<f64>(0)?), &from, &half)?;
        for &axis in outer {
            transform_axis(&mut data, &half, axis, true);
        }
        let mut data = mirrored(&data, &half, &to, last)?;
        transform_axis(&mut data, &to, last, true);
        cx.put(0, &to, data.iter().map(|c| c.re).collect::<Vec<f64>>())
    }
}

/// Completes half of a spectrum: missing bins are 0, and bin `n - k` is the conjugate of bin `k`.
pub(super) fn mirrored(half: &[Complex], from: &[usize], to: &[usize], axis: usize) -> Result<Vec<Complex>> {
    let mut out = filled(to, Complex::default())?;
    if out.is_empty() {
        return Ok(out);
    }
    let (before, given, after) = around(from, axis);
    let n = to[axis];
    for i in 0..before {
        for k in (0..=n / 2).take(given.min(n)) {
            for j in 0..after {
                let value = half[(i * given + k) * after + j];
                out[(i * n + k) * after + j] = value;
                if k > 0 && 2 * k < n {
                    out[(i * n + n - k) * after + j] = value.conjugate();
                }
            }
        }
    }
    Ok(out)
}
