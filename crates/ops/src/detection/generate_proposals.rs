//! GenerateProposals: region proposals of a batch from given anchors. Boxes below the minimum size are ranked with the
//! rest and only then dropped, so they use up positions of `pre_nms_count`. Rows are exactly those found, image by image.

use super::expect::{at_least, dim_is, index_type, same_dim, same_float, up_to};
use super::nms_core::{Kept, greedy, ranked};
use super::rpn::{Image, refine_anchors};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Proposals, their scores and their number for each image.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 9, inputs = "im_info, anchors, deltas, scores", outputs = "rpnrois, rpnscores, rpnroisnum")]
pub struct GenerateProposals {
    /// Smaller boxes are dropped.
    pub min_size: f32,
    /// A box is dropped when it overlaps a better one by more.
    pub nms_threshold: f32,
    /// Boxes that enter suppression.
    pub pre_nms_count: i64,
    /// Boxes of an image that come out.
    pub post_nms_count: i64,
    /// Coordinates are parts of the image; otherwise pixels, and boxes are one larger.
    #[attr(default = true)]
    pub normalized: bool,
    /// Must be 1: the threshold does not adapt.
    #[attr(default = 1.0)]
    pub nms_eta: f32,
    /// Type of the counts: i64 or i32.
    #[attr(default = ElementType::I64)]
    pub roi_num_type: ElementType,
}

impl Op for GenerateProposals {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        index_type(cx, "roi_num_type", self.roi_num_type)?;
        at_least(cx, "pre_nms_count", self.pre_nms_count, 0)?;
        at_least(cx, "post_nms_count", self.post_nms_count, 0)?;
        let eta = self.nms_eta;
        cx.require(eta == 1.0, || format!("attribute `nms_eta` must be 1, found {eta}"))?;
        let ty = same_float(cx, &[0, 1, 2, 3])?;
        cx.require_rank(0, &[2])?;
        for input in 1..4 {
            cx.require_rank(input, &[4])?;
        }
        let numbers = cx.dim(0, 1);
        cx.require(numbers.contains(3) || numbers.contains(4), || {
            format!("{} must be height, width and one or two scales, found [{}]", cx.port_name(0), cx.shape(0))
        })?;
        dim_is(cx, 1, 3, 4)?;
        let images = same_dim(cx, (2, 0), (3, 0))?;
        let Some(images) = same_dim(cx, (0, 0), (2, 0))?.merge(images) else {
            return Err(cx.fail("all inputs must have as many images"));
        };
        for (anchors, deltas, scores) in [(0, 2, 2), (1, 3, 3)] {
            same_dim(cx, (1, anchors), (3, scores))?;
            same_dim(cx, (2, deltas), (3, scores))?;
        }
        same_dim(cx, (1, 2), (3, 1))?;
        let channels = cx.dim(3, 1).mul(Dim::known(4));
        cx.require(cx.dim(2, 1).compatible(channels), || {
            format!("{} must have {channels} channels, found [{}]", cx.port_name(2), cx.shape(2))
        })?;
        let rows = up_to(images.mul(Dim::known(self.post_nms_count)));
        cx.set(0, ty, PartialShape::new([rows, Dim::known(4)]));
        cx.set(1, ty, PartialShape::new([rows]));
        cx.set(2, self.roi_num_type, PartialShape::new([images]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let offset = if self.normalized { 0.0 } else { 1.0 };
        let (mut rois, mut roi_scores, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        {
            let (info, anchors) = (cx.get::<f32>(0)?, cx.get::<f32>(1)?);
            let (deltas, scores) = (cx.get::<f32>(2)?, cx.get::<f32>(3)?);
            let &[images, n_anchors, height, width] = cx.shape(3) else {
                return Err(cx.fail("scores must have rank 4"));
            };
            let (cells, boxes) = (height * width, n_anchors * height * width);
            for n in 0..images {
                let numbers = cx.shape(0)[1];
                let info = &info[n * numbers..(n + 1) * numbers];
                let image = Image {
                    height: info[0],
                    width: info[1],
                    least_height: self.min_size * info[2],
                    least_width: self.min_size * info[numbers - 1],
                };
                let deltas = &deltas[n * boxes * 4..(n + 1) * boxes * 4];
                let refined = refine_anchors(&anchors, deltas, &scores[n * boxes..(n + 1) * boxes], cells, &image, offset);
                let scores: Vec<f32> = refined.iter().map(|r| r.score).collect();
                let mut order = ranked(&scores, |_| true, Some(self.pre_nms_count as usize));
                order.retain(|&i| refined[i].large_enough);
                let (post, mut kept) = (self.post_nms_count as usize, Kept::new(offset, true));
                let kept = greedy(&order, post, |i| refined[i].corners, &mut kept, self.nms_threshold);
                counts.push(kept.len() as i64);
                for i in kept {
                    rois.extend(refined[i].corners.to_array());
                    roi_scores.push(refined[i].score);
                }
            }
        }
        let (rows, images) = (roi_scores.len(), counts.len());
        cx.put(0, &[rows, 4], rois)?;
        cx.put(1, &[rows], roi_scores)?;
        cx.put(2, &[images], counts)
    }
}
