//! RDFT: transform of a real tensor. The last listed axis keeps only the first half, `n / 2 + 1` bins; the rest is its
//! mirror image.

use super::axes::{apply_sizes, eval_axes, infer_axes, sized};
use super::fourier::{Complex, resized, to_pairs, transform_axis};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// Transform of a real tensor into half of its spectrum.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "RDFT", since = 9, inputs = "data, axes, signal_size?")]
pub struct Rdft;

impl Op for Rdft {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let axes = infer_axes(cx, cx.rank(0))?;
        let shape = match (cx.shape(0).dims(), axes) {
            (None, _) => PartialShape::dynamic(),
            (Some(dims), None) => {
                cx.require(!dims.is_empty(), || "input 0 (`data`) must not be a scalar".to_string())?;
                PartialShape::new(dims.iter().map(|_| Dim::ANY).chain([Dim::known(2)]))
            }
            (Some(dims), Some(axes)) => {
                let mut dims = dims.to_vec();
                apply_sizes(cx, &mut dims, &axes)?;
                let &last = axes.last().ok_or_else(|| cx.fail("axes must not be empty"))?;
                dims[last] = Dim::range(bins(dims[last].min()), dims[last].max().map(bins));
                PartialShape::new(dims.into_iter().chain([Dim::known(2)]))
            }
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let from = cx.shape(0).to_vec();
        let axes = eval_axes(cx, from.len())?;
        let &last = axes.last().ok_or_else(|| cx.fail("axes must not be empty"))?;
        let to = sized(cx, &from, &axes)?;
        let data: Vec<Complex> = cx.get::<f64>(0)?.iter().map(|&re| Complex { re, im: 0.0 }).collect();
        let mut data = resized(&data, &from, &to)?;
        for axis in axes {
            transform_axis(&mut data, &to, axis, false);
        }
        let mut half = to.clone();
        half[last] = bins(to[last] as i64) as usize;
        let data = resized(&data, &to, &half)?;
        let shape = [&half[..], &[2]].concat();
        cx.put(0, &shape, to_pairs(&data))
    }
}

/// Bins that are kept of `n`.
pub(super) fn bins(n: i64) -> i64 {
    if n > 0 { n / 2 + 1 } else { n }
}
