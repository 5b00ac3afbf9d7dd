//! ExperimentalDetectronDetectionOutput: refines the regions of one image for each class, suppresses within the class
//! and keeps the best. Class 0 is the background. Rows are class by class unless there are more than fit, then by score;
//! unused rows are zero.

use super::boxes::Corners;
use super::expect::{at_least, dim_is, put_f32, same_dim, same_float, zeros};
use super::nms_core::{Kept, descending, greedy, limit, ranked};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Boxes, classes and scores.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 6, inputs = "rois, deltas, scores, im_info", outputs = "boxes, classes, scores", also = "experimental, extension")]
pub struct ExperimentalDetectronDetectionOutput {
    /// Scores must be greater.
    pub score_threshold: f32,
    /// A box is dropped when it overlaps a better one by more.
    pub nms_threshold: f32,
    /// Limit of logarithmic growth.
    pub max_delta_log_wh: f32,
    /// Classes, the background included.
    pub num_classes: i64,
    /// Boxes kept of a class; -1 for all.
    pub post_nms_count: i64,
    /// Rows of the outputs.
    pub max_detections_per_image: i64,
    /// Kept for the file; deltas always belong to classes.
    #[attr(default = false)]
    pub class_agnostic_box_regression: bool,
    /// Divisors of the four deltas.
    pub deltas_weights: Vec<f32>,
}

impl Op for ExperimentalDetectronDetectionOutput {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        at_least(cx, "num_classes", self.num_classes, 1)?;
        at_least(cx, "max_detections_per_image", self.max_detections_per_image, 1)?;
        let weights = self.deltas_weights.len();
        cx.require(weights == 4, || format!("attribute `deltas_weights` must have 4 numbers, found {weights}"))?;
        let ty = same_float(cx, &[0, 1, 2, 3])?;
        for input in 0..4 {
            cx.require_rank(input, &[2])?;
        }
        dim_is(cx, 0, 1, 4)?;
        dim_is(cx, 1, 1, self.num_classes.saturating_mul(4))?;
        dim_is(cx, 2, 1, self.num_classes)?;
        dim_is(cx, 3, 0, 1)?;
        dim_is(cx, 3, 1, 3)?;
        same_dim(cx, (0, 0), (1, 0))?;
        same_dim(cx, (0, 0), (2, 0))?;
        same_dim(cx, (1, 0), (2, 0))?;
        let rows = Dim::known(self.max_detections_per_image);
        cx.set(0, ty, PartialShape::new([rows, Dim::known(4)]));
        cx.set(1, ElementType::I32, PartialShape::new([rows]));
        cx.set(2, ty, PartialShape::new([rows]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let most = self.max_detections_per_image as usize;
        let mut boxes = zeros(&[most, 4])?;
        let mut classes = zeros(&[most])?;
        let mut scores = zeros(&[most])?;
        {
            let found = self.detect(&cx.get::<f32>(0)?, &cx.get::<f32>(1)?, &cx.get::<f32>(2)?);
            let (boxes, classes) = (boxes.as_slice_mut::<f32>()?, classes.as_slice_mut::<f32>()?);
            let rows = boxes.chunks_exact_mut(4).zip(classes).zip(scores.as_slice_mut::<f32>()?);
            for (((corners, class), score), d) in rows.zip(found) {
                corners.copy_from_slice(&d.corners.to_array());
                *class = d.class as f32;
                *score = d.score;
            }
        }
        put_f32(cx, 0, boxes)?;
        put_f32(cx, 1, classes)?;
        put_f32(cx, 2, scores)
    }
}

struct Detection {
    corners: Corners,
    class: usize,
    roi: usize,
    score: f32,
}

impl ExperimentalDetectronDetectionOutput {
    fn detect(&self, rois: &[f32], deltas: &[f32], scores: &[f32]) -> Vec<Detection> {
        let n_classes = self.num_classes as usize;
        let n_rois = rois.len() / 4;
        let mut found = Vec::new();
        let mut met = Kept::new(1.0, true);
        for class in 1..n_classes {
            let refined: Vec<Option<Corners>> =
                (0..n_rois).map(|r| self.refine(rois, r, Corners::at(deltas, r * n_classes + class).to_array())).collect();
            let of_class: Vec<f32> =
                (0..n_rois).map(|r| if refined[r].is_some() { scores[r * n_classes + class] } else { 0.0 }).collect();
            let corners = |r: usize| refined[r].unwrap_or_default();
            let order = ranked(&of_class, |s| s > self.score_threshold, None);
            let most = limit(self.post_nms_count).unwrap_or(usize::MAX);
            let kept = greedy(&order, most, corners, &mut met, self.nms_threshold);
            found.extend(kept.into_iter().map(|roi| Detection {
                corners: corners(roi),
                class,
                roi,
                score: of_class[roi],
            }));
        }
        let most = self.max_detections_per_image as usize;
        if found.len() > most {
            carafe_graph::sort_by(&mut found, |a, b| descending(a.score, b.score).then(a.roi.cmp(&b.roi)));
            found.truncate(most);
        }
        found
    }

    /// The region moved by its deltas; `None` for one without an inside.
    fn refine(&self, rois: &[f32], roi: usize, deltas: [f32; 4]) -> Option<Corners> {
        let b = Corners::at(rois, roi);
        if !(b.x2 - b.x1 > 0.0 && b.y2 - b.y1 > 0.0) {
            return None;
        }
        let d = std::array::from_fn(|i| deltas[i] / self.deltas_weights[i]);
        Some(b.refined(d, self.max_delta_log_wh, 1.0, 1.0).clipped(f32::INFINITY, f32::INFINITY))
    }
}
