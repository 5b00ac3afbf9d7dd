//! MatrixNms: lowers the score of a box by its overlap with all better boxes of the class at once, instead of dropping
//! it. How much a better box counts depends on how much it is itself covered by still better ones.

use super::boxes::Corners;
use super::class_rows::{Counts, Row, SortResult, infer_rows, keep_best, put_rows};
use super::expect::{dim_is, same_dim, same_float};
use super::nms_core::{limit, ranked};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::ElementType;

carafe_graph::attr_enum! {
    /// How overlap lowers a score.
    pub enum DecayFunction { Gaussian = "gaussian", Linear = "linear" }
}

/// Boxes with decayed scores, their flat indices and their number for each image.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "boxes, scores", outputs = "selected_outputs, selected_indices, valid_outputs")]
pub struct MatrixNms {
    /// Order of the result; counts only across the batch, otherwise an image is ordered by score.
    #[attr(default = SortResult::None)]
    pub sort_result_type: SortResult,
    /// Order over all images.
    #[attr(default = false)]
    pub sort_result_across_batch: bool,
    /// Type of the indices: i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
    /// Scores must be greater.
    #[attr(default = 0.0)]
    pub score_threshold: f32,
    /// Best boxes of a class that take part; -1 for all.
    #[attr(default = -1)]
    pub nms_top_k: i64,
    /// Boxes kept of an image; -1 for all.
    #[attr(default = -1)]
    pub keep_top_k: i64,
    /// Class that is skipped; -1 for none.
    #[attr(default = -1)]
    pub background_class: i64,
    /// How overlap lowers a score.
    #[attr(default = DecayFunction::Linear)]
    pub decay_function: DecayFunction,
    /// Sharpness of the gaussian.
    #[attr(default = 2.0)]
    pub gaussian_sigma: f32,
    /// Decayed scores must be greater.
    #[attr(default = 0.0)]
    pub post_threshold: f32,
    /// Coordinates are parts of the image; otherwise pixels, and boxes are one larger.
    #[attr(default = true)]
    pub normalized: bool,
}

impl Op for MatrixNms {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        same_float(cx, &[0, 1])?;
        cx.require_rank(0, &[3])?;
        cx.require_rank(1, &[3])?;
        dim_is(cx, 0, 2, 4)?;
        let counts = Counts {
            boxes: same_dim(cx, (0, 1), (1, 2))?,
            classes: cx.dim(1, 1),
            images: same_dim(cx, (0, 0), (1, 0))?,
        };
        infer_rows(cx, counts, (self.nms_top_k, self.keep_top_k), self.output_type)
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let &[images, classes, boxes] = cx.shape(1) else { return Err(cx.fail("scores must have rank 3")) };
        let mut all = Vec::with_capacity(images);
        {
            let (corners, scores) = (cx.get::<f32>(0)?, cx.get::<f32>(1)?);
            for image in 0..images {
                let corners = &corners[image * boxes * 4..(image + 1) * boxes * 4];
                let mut rows = Vec::new();
                for class in (0..classes).filter(|&c| c as i64 != self.background_class) {
                    let start = (image * classes + class) * boxes;
                    for (index, score) in self.decayed(corners, &scores[start..start + boxes]) {
                        rows.push(Row { image, class, index, score, corners: Corners::at(corners, index) });
                    }
                }
                keep_best(&mut rows, self.keep_top_k);
                all.push(rows);
            }
        }
        put_rows(cx, all, self.sort_result_across_batch, self.sort_result_type, &|r| r.image * boxes + r.index)
    }
}

impl MatrixNms {
    /// Surviving boxes of a class with their new scores.
    fn decayed(&self, corners: &[f32], scores: &[f32]) -> Vec<(usize, f32)> {
        let offset = if self.normalized { 0.0 } else { 1.0 };
        let order = ranked(scores, |s| s > self.score_threshold, limit(self.nms_top_k));
        let boxes: Vec<Corners> = order.iter().map(|&i| Corners::at(corners, i)).collect();
        let spares = self.decay_function == DecayFunction::Linear || self.gaussian_sigma >= 0.0;
        // The greatest overlap of each box with a better one.
        let mut covered: Vec<f32> = Vec::with_capacity(boxes.len());
        let mut kept = Vec::new();
        for (i, &index) in order.iter().enumerate() {
            let (mut most, mut decay) = (0.0f32, 1.0f32);
            for j in 0..i {
                // No overlap leaves a score as it is.
                if spares && !boxes[i].touches(boxes[j]) {
                    continue;
                }
                let iou = boxes[i].iou_touching(boxes[j], offset);
                most = most.max(iou);
                decay = decay.min(self.decay(iou, covered[j]));
            }
            covered.push(most);
            let score = decay * scores[index];
            if score > self.post_threshold {
                kept.push((index, score));
            }
        }
        kept
    }

    fn decay(&self, iou: f32, covered: f32) -> f32 {
        match self.decay_function {
            DecayFunction::Gaussian => ((covered * covered - iou * iou) * self.gaussian_sigma).exp(),
            DecayFunction::Linear => ((1.0 - f64::from(iou)) / (1.0 - f64::from(covered) + 1e-10)) as f32,
        }
    }
}
