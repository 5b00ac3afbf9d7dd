//! ExperimentalDetectronGenerateProposalsSingleImage: region proposals of one image from given anchors, padded with
//! zeros to `post_nms_count`. A box below the minimum size only loses its score, it is not removed.

use super::expect::{at_least, dim_is, put_f32, same_dim, same_float, zeros};
use super::nms_core::{Kept, greedy, ranked};
use super::rpn::{Image, refine_anchors};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// Proposals and their scores.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 6, inputs = "im_info, anchors, deltas, scores", outputs = "rois, scores", also = "experimental, extension")]
pub struct ExperimentalDetectronGenerateProposalsSingleImage {
    /// Smaller boxes lose their score.
    pub min_size: f32,
    /// A box is dropped when it overlaps a better one by more.
    pub nms_threshold: f32,
    /// Boxes that come out.
    pub post_nms_count: i64,
    /// Boxes that enter suppression.
    pub pre_nms_count: i64,
}

impl Op for ExperimentalDetectronGenerateProposalsSingleImage {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        at_least(cx, "pre_nms_count", self.pre_nms_count, 0)?;
        at_least(cx, "post_nms_count", self.post_nms_count, 0)?;
        let ty = same_float(cx, &[0, 1, 2, 3])?;
        cx.require_rank(0, &[1])?;
        cx.require_rank(1, &[2])?;
        cx.require_rank(2, &[3])?;
        cx.require_rank(3, &[3])?;
        dim_is(cx, 0, 0, 3)?;
        dim_is(cx, 1, 1, 4)?;
        same_dim(cx, (2, 1), (3, 1))?;
        same_dim(cx, (2, 2), (3, 2))?;
        let anchors = cx.dim(3, 0);
        let all = anchors.mul(cx.dim(3, 1)).mul(cx.dim(3, 2));
        cx.require(cx.dim(2, 0).compatible(anchors.mul(Dim::known(4))), || {
            format!("{} must have four channels an anchor, found [{}]", cx.port_name(2), cx.shape(2))
        })?;
        cx.require(cx.dim(1, 0).compatible(all), || {
            format!("{} must have {all} rows, found [{}]", cx.port_name(1), cx.shape(1))
        })?;
        let rows = Dim::known(self.post_nms_count);
        cx.set(0, ty, PartialShape::new([rows, Dim::known(4)]));
        cx.set(1, ty, PartialShape::new([rows]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let post = self.post_nms_count as usize;
        let mut rois = zeros(&[post, 4])?;
        let mut roi_scores = zeros(&[post])?;
        {
            let (info, anchors) = (cx.get::<f32>(0)?, cx.get::<f32>(1)?);
            let (deltas, scores) = (cx.get::<f32>(2)?, cx.get::<f32>(3)?);
            let cells = cx.shape(3)[1] * cx.shape(3)[2];
            let least = self.min_size;
            let image = Image { height: info[0], width: info[1], least_height: least, least_width: least };
            let refined = refine_anchors(&anchors, &deltas, &scores, cells, &image, 1.0);
            let scores: Vec<f32> = refined.iter().map(|r| if r.large_enough { r.score } else { 0.0 }).collect();
            let order = ranked(&scores, |_| true, Some(self.pre_nms_count as usize));
            let mut kept = Kept::new(0.0, true);
            let kept = greedy(&order, post, |i| refined[i].corners, &mut kept, self.nms_threshold);
            let rois = rois.as_slice_mut::<f32>()?.chunks_exact_mut(4);
            for ((row, score), i) in rois.zip(roi_scores.as_slice_mut::<f32>()?).zip(kept) {
                row.copy_from_slice(&refined[i].corners.to_array());
                *score = scores[i];
            }
        }
        put_f32(cx, 0, rois)?;
        put_f32(cx, 1, roi_scores)
    }
}
