//! MulticlassNms: suppression within each class, then the best boxes of each image. Unlike elsewhere a score may equal
//! the threshold, and a box is already suppressed when its overlap equals the threshold. With `roisnum` the images lie
//! behind each other along the boxes axis, and boxes belong to classes.

use super::boxes::Corners;
use super::class_rows::{Counts, Row, SortResult, by_class, infer_rows, keep_best, put_rows};
use super::expect::{dim_is, same_dim, same_float};
use super::nms_core::{Kept, limit, ranked};
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};
use carafe_tensor::ElementType;

/// Selected boxes, their flat indices and their number for each image.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 9, inputs = "boxes, scores, roisnum?", outputs = "selected_outputs, selected_indices, selected_num")]
pub struct MulticlassNms {
    /// Order of the result.
    #[attr(default = SortResult::None)]
    pub sort_result_type: SortResult,
    /// Order over all images.
    #[attr(default = false)]
    pub sort_result_across_batch: bool,
    /// Type of the indices: i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
    /// Overlap from which on a box is suppressed.
    #[attr(default = 0.0)]
    pub iou_threshold: f32,
    /// Least score.
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
    /// Factor of the threshold after each kept box, while the threshold is above 0.5.
    #[attr(default = 1.0)]
    pub nms_eta: f32,
    /// Coordinates are parts of the image; otherwise pixels, and boxes are one larger.
    #[attr(default = true)]
    pub normalized: bool,
}

/// Selected boxes, their flat indices and their number for each image; boxes are shared by the classes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "MulticlassNms",
    since = 8,
    until = 8,
    inputs = "boxes, scores",
    outputs = "selected_outputs, selected_indices, selected_num"
)]
pub struct MulticlassNmsV8 {
    /// Order of the result.
    #[attr(default = SortResult::None)]
    pub sort_result_type: SortResult,
    /// Order over all images.
    #[attr(default = false)]
    pub sort_result_across_batch: bool,
    /// Type of the indices: i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
    /// Overlap from which on a box is suppressed.
    #[attr(default = 0.0)]
    pub iou_threshold: f32,
    /// Least score.
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
    /// Factor of the threshold after each kept box, while the threshold is above 0.5.
    #[attr(default = 1.0)]
    pub nms_eta: f32,
    /// Coordinates are parts of the image; otherwise pixels, and boxes are one larger.
    #[attr(default = true)]
    pub normalized: bool,
}

impl MulticlassNmsV8 {
    fn newest(&self) -> MulticlassNms {
        MulticlassNms {
            sort_result_type: self.sort_result_type,
            sort_result_across_batch: self.sort_result_across_batch,
            output_type: self.output_type,
            iou_threshold: self.iou_threshold,
            score_threshold: self.score_threshold,
            nms_top_k: self.nms_top_k,
            keep_top_k: self.keep_top_k,
            background_class: self.background_class,
            nms_eta: self.nms_eta,
            normalized: self.normalized,
        }
    }
}

impl Op for MulticlassNmsV8 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        self.newest().infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        self.newest().eval(cx)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<MulticlassNms>(self, cx)
    }
}

impl Op for MulticlassNms {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        same_float(cx, &[0, 1])?;
        let eta = self.nms_eta;
        cx.require((0.0..=1.0).contains(&eta), || format!("attribute `nms_eta` must be from 0 to 1, found {eta}"))?;
        cx.require_rank(0, &[3])?;
        dim_is(cx, 0, 2, 4)?;
        let counts = if cx.has(2) {
            cx.require_integer(2)?;
            cx.require_rank(1, &[2])?;
            cx.require_rank(2, &[1])?;
            Counts {
                boxes: same_dim(cx, (0, 1), (1, 1))?,
                classes: same_dim(cx, (0, 0), (1, 0))?,
                images: cx.dim(2, 0),
            }
        } else {
            cx.require_rank(1, &[3])?;
            Counts {
                boxes: same_dim(cx, (0, 1), (1, 2))?,
                classes: cx.dim(1, 1),
                images: same_dim(cx, (0, 0), (1, 0))?,
            }
        };
        infer_rows(cx, counts, (self.nms_top_k, self.keep_top_k), self.output_type)
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        if cx.has(2) { self.eval_listed(cx) } else { self.eval_shared(cx) }
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if cx.n_inputs() == 2 { Version::of::<MulticlassNmsV8>(self, cx) } else { None }
    }
}

impl MulticlassNms {
    /// Boxes `[images, boxes, 4]` shared by the classes of scores `[images, classes, boxes]`.
    fn eval_shared(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let &[images, classes, boxes] = cx.shape(1) else { return Err(cx.fail("scores must have rank 3")) };
        let mut all = Vec::with_capacity(images);
        {
            let (corners, scores) = (cx.get::<f32>(0)?, cx.get::<f32>(1)?);
            for image in 0..images {
                let corners = &corners[image * boxes * 4..(image + 1) * boxes * 4];
                let scores = &scores[image * classes * boxes..(image + 1) * classes * boxes];
                let of_class = |c: usize| (corners, &scores[c * boxes..(c + 1) * boxes]);
                all.push(self.image_rows(image, classes, of_class));
            }
        }
        put_rows(cx, all, self.sort_result_across_batch, self.sort_result_type, &|r| r.image * boxes + r.index)
    }

    /// Boxes `[classes, boxes, 4]` and scores `[classes, boxes]`, of which `roisnum` says how many each image has.
    fn eval_listed(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let &[classes, boxes] = cx.shape(1) else { return Err(cx.fail("scores must have rank 2")) };
        let mut all = Vec::new();
        let mut starts = Vec::new();
        {
            let (corners, scores, counts) = (cx.get::<f32>(0)?, cx.get::<f32>(1)?, cx.get::<i64>(2)?);
            let mut start = 0usize;
            for (image, &count) in counts.iter().enumerate() {
                starts.push(start);
                let end = usize::try_from(count.max(0)).ok().and_then(|n| start.checked_add(n)).filter(|&e| e <= boxes);
                let Some(end) = end else {
                    return Err(cx.fail(format!("roisnum asks for {count} boxes from {start} on, there are {boxes}")));
                };
                let of_class = |c: usize| {
                    let (from, to) = (c * boxes + start, c * boxes + end);
                    (&corners[4 * from..4 * to], &scores[from..to])
                };
                all.push(self.image_rows(image, classes, of_class));
                start = end;
            }
        }
        put_rows(cx, all, self.sort_result_across_batch, self.sort_result_type, &|r| {
            (starts[r.image] + r.index) * classes + r.class
        })
    }

    fn image_rows<'a>(
        &self,
        image: usize,
        classes: usize,
        of_class: impl Fn(usize) -> (&'a [f32], &'a [f32]),
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        for class in (0..classes).filter(|&c| c as i64 != self.background_class) {
            let (corners, scores) = of_class(class);
            rows.extend(self.select(corners, scores).into_iter().map(|index| Row {
                image,
                class,
                index,
                score: scores[index],
                corners: Corners::at(corners, index),
            }));
        }
        keep_best(&mut rows, self.keep_top_k);
        if self.sort_result_type == SortResult::ClassId && !self.sort_result_across_batch {
            carafe_graph::sort_by(&mut rows, by_class);
        }
        rows
    }

    fn select(&self, corners: &[f32], scores: &[f32]) -> Vec<usize> {
        let offset = if self.normalized { 0.0 } else { 1.0 };
        let mut threshold = self.iou_threshold;
        let (mut kept, mut met): (Vec<usize>, Kept) = (Vec::new(), Kept::new(offset, false));
        for candidate in ranked(scores, |s| s >= self.score_threshold, limit(self.nms_top_k)) {
            let b = Corners::at(corners, candidate);
            if met.any(b, |overlap| overlap >= threshold) {
                continue;
            }
            met.push(b);
            if self.nms_eta < 1.0 && threshold > 0.5 {
                threshold *= self.nms_eta;
            }
            kept.push(candidate);
        }
        kept
    }
}
