//! ExperimentalDetectronTopKROIs: the regions with the highest probabilities. The output always has `max_rois` rows;
//! with fewer regions the rest is zero.

use super::expect::{at_least, dim_is, put_f32, same_dim, same_float, zeros};
use super::nms_core::ranked;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// The best regions, best first.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 6, inputs = "rois, probs", also = "experimental, extension")]
pub struct ExperimentalDetectronTopKROIs {
    /// Rows of the output.
    #[attr(default = 0)]
    pub max_rois: i64,
}

impl Op for ExperimentalDetectronTopKROIs {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        at_least(cx, "max_rois", self.max_rois, 0)?;
        let ty = same_float(cx, &[0, 1])?;
        cx.require_rank(0, &[2])?;
        cx.require_rank(1, &[1])?;
        dim_is(cx, 0, 1, 4)?;
        same_dim(cx, (0, 0), (1, 0))?;
        cx.set(0, ty, PartialShape::new([Dim::known(self.max_rois), Dim::known(4)]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let mut out = zeros(&cx.out_shape(0)?)?;
        {
            let (rois, probs) = (cx.get::<f32>(0)?, cx.get::<f32>(1)?);
            let best = ranked(&probs, |_| true, Some(self.max_rois as usize));
            for (row, i) in out.as_slice_mut::<f32>()?.chunks_exact_mut(4).zip(best) {
                row.copy_from_slice(&rois[4 * i..4 * i + 4]);
            }
        }
        put_f32(cx, 0, out)
    }
}
