//! NonMaxSuppression: per class, keeps the best boxes that do not overlap a better one. All versions give exactly the
//! selected rows, also those whose shape rule once promised a fixed number. Version 9 suppresses above the threshold,
//! the older ones already at it; version 9 with a sigma only lowers scores, version 5 also suppresses.

use super::boxes::Corners;
use super::expect::{dim_is, index_type, same_dim, single, up_to};
use super::nms_core::{descending, limit, select_decaying};
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};
use carafe_tensor::{Dim, ElementType, PartialShape};

carafe_graph::attr_enum! {
    /// What the four numbers of a box are.
    pub enum BoxEncoding {
        /// Any two diagonal corners: `y1, x1, y2, x2`.
        Corner = "corner",
        /// `x_center, y_center, width, height`.
        Center = "center",
    }
}

/// Selected boxes, their scores and their number.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    since = 9,
    inputs = "boxes, scores, max_output_boxes_per_class?, iou_threshold?, score_threshold?, soft_nms_sigma?",
    outputs = "selected_indices, selected_scores, valid_outputs"
)]
pub struct NonMaxSuppression {
    /// Meaning of the numbers of a box.
    #[attr(default = BoxEncoding::Corner)]
    pub box_encoding: BoxEncoding,
    /// Order the result by score over all batches and classes.
    #[attr(default = true)]
    pub sort_result_descending: bool,
    /// Type of the indices: i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
}

/// Selected boxes, their scores and their number; a box above the threshold is dropped even with a sigma.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "NonMaxSuppression",
    since = 5,
    until = 8,
    inputs = "boxes, scores, max_output_boxes_per_class?, iou_threshold?, score_threshold?, soft_nms_sigma?",
    outputs = "selected_indices, selected_scores, valid_outputs"
)]
pub struct NonMaxSuppressionV5 {
    /// Meaning of the numbers of a box.
    #[attr(default = BoxEncoding::Corner)]
    pub box_encoding: BoxEncoding,
    /// Order the result by score over all batches and classes.
    #[attr(default = true)]
    pub sort_result_descending: bool,
    /// Type of the indices: i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
}

/// Selected boxes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "NonMaxSuppression",
    since = 4,
    until = 4,
    inputs = "boxes, scores, max_output_boxes_per_class?, iou_threshold?, score_threshold?",
    outputs = "selected_indices"
)]
pub struct NonMaxSuppressionV4 {
    /// Meaning of the numbers of a box.
    #[attr(default = BoxEncoding::Corner)]
    pub box_encoding: BoxEncoding,
    /// Order the result by score over all batches and classes.
    #[attr(default = true)]
    pub sort_result_descending: bool,
    /// Type of the indices: i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
}

/// Selected boxes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "NonMaxSuppression",
    since = 3,
    until = 3,
    inputs = "boxes, scores, max_output_boxes_per_class?, iou_threshold?, score_threshold?",
    outputs = "selected_indices"
)]
pub struct NonMaxSuppressionV3 {
    /// Meaning of the numbers of a box.
    #[attr(default = BoxEncoding::Corner)]
    pub box_encoding: BoxEncoding,
    /// Order the result by score over all batches and classes.
    #[attr(default = true)]
    pub sort_result_descending: bool,
    /// Type of the indices: i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
}

/// Selected boxes as i64 indices.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "NonMaxSuppression",
    since = 1,
    until = 2,
    inputs = "boxes, scores, max_output_boxes_per_class?, iou_threshold?, score_threshold?",
    outputs = "selected_indices"
)]
pub struct NonMaxSuppressionV1 {
    /// Meaning of the numbers of a box.
    #[attr(default = BoxEncoding::Corner)]
    pub box_encoding: BoxEncoding,
    /// Order the result by score over all batches and classes.
    #[attr(default = true)]
    pub sort_result_descending: bool,
}

impl Op for NonMaxSuppression {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.output_type, true)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.box_encoding, self.sort_result_descending, Suppress::Above)
    }
}

impl Op for NonMaxSuppressionV5 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.output_type, true)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.box_encoding, self.sort_result_descending, Suppress::From)
    }
}

impl Op for NonMaxSuppressionV4 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.output_type, false)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.box_encoding, self.sort_result_descending, Suppress::From)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<NonMaxSuppressionV5>(self, cx)
    }
}

impl Op for NonMaxSuppressionV3 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.output_type, false)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.box_encoding, self.sort_result_descending, Suppress::From)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<NonMaxSuppressionV5>(self, cx)
    }
}

impl Op for NonMaxSuppressionV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, ElementType::I64, false)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.box_encoding, self.sort_result_descending, Suppress::From)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<NonMaxSuppressionV5>(self, cx)
    }
}

/// Where suppression starts.
#[derive(Clone, Copy, PartialEq)]
enum Suppress {
    /// At the threshold, sigma or not.
    From,
    /// Above the threshold, and not at all with a sigma.
    Above,
}

fn infer(cx: &mut InferCx<'_>, ty: ElementType, with_scores: bool) -> Result<()> {
    index_type(cx, "output_type", ty)?;
    infer_selection(cx, 4, ty)?;
    if !with_scores {
        return Ok(());
    }
    let rows = PartialShape::new([row_bound(cx), Dim::known(3)]);
    cx.set(1, ElementType::F32, rows);
    cx.set(2, ty, PartialShape::of(&[1]));
    Ok(())
}

/// Checks boxes of `box_size` numbers, scores and the scalar inputs; sets the indices output.
pub(super) fn infer_selection(cx: &mut InferCx<'_>, box_size: i64, ty: ElementType) -> Result<()> {
    cx.require_float(0)?;
    cx.require_float(1)?;
    cx.require_rank(0, &[3])?;
    cx.require_rank(1, &[3])?;
    same_dim(cx, (0, 0), (1, 0))?;
    same_dim(cx, (0, 1), (1, 2))?;
    dim_is(cx, 0, 2, box_size)?;
    for input in 2..cx.n_inputs() {
        single(cx, input)?;
        if input == 2 { cx.require_integer(input)? } else { cx.require_float(input)? }
    }
    let rows = PartialShape::new([row_bound(cx), Dim::known(3)]);
    cx.set(0, ty, rows);
    Ok(())
}

/// Nothing is promised while the limit per class is unknown.
pub(super) fn row_bound(cx: &InferCx<'_>) -> Dim {
    let Some(most) = cx.int(2) else { return Dim::ANY };
    let boxes = cx.dim(0, 1).merge(cx.dim(1, 2)).unwrap_or(Dim::ANY);
    let images = cx.dim(0, 0).merge(cx.dim(1, 0)).unwrap_or(Dim::ANY);
    let per_class = if most < 0 { boxes } else { boxes.min_of(Dim::known(most)) };
    up_to(per_class.mul(images).mul(cx.dim(1, 1)))
}

/// A selected box.
pub(super) struct Selected {
    pub(super) image: usize,
    pub(super) class: usize,
    pub(super) index: usize,
    pub(super) score: f32,
}

/// The numbers that steer a selection, with the defaults of absent inputs.
pub(super) struct Limits {
    pub(super) most: usize,
    pub(super) iou: f32,
    pub(super) score: f32,
    pub(super) sigma: f32,
}

impl Limits {
    pub(super) fn read(cx: &EvalCx<'_>) -> Result<Limits> {
        let number = |i: usize| if cx.has(i) { cx.float(i).map(|x| x as f32) } else { Ok(0.0) };
        let most = if cx.has(2) { limit(cx.int(2)?).unwrap_or(usize::MAX) } else { 0 };
        Ok(Limits { most, iou: number(3)?, score: number(4)?, sigma: number(5)? })
    }
}

fn eval(cx: &mut EvalCx<'_>, encoding: BoxEncoding, by_score: bool, suppress: Suppress) -> Result<()> {
    let limits = Limits::read(cx)?;
    let boxes: Vec<Corners> = cx.get::<f32>(0)?.chunks_exact(4).map(|b| decode(b, encoding)).collect();
    let soft = limits.sigma > 0.0;
    let scale = if soft { -0.5 / limits.sigma } else { 0.0 };
    let decay = |iou: f32| {
        let dropped = match suppress {
            Suppress::From => iou >= limits.iou,
            Suppress::Above => !soft && iou > limits.iou,
        };
        if dropped { None } else { Some((scale * iou * iou).exp()) }
    };
    let selected = select_all(cx, &limits, |a, b| boxes[a].iou(boxes[b], 0.0), decay)?;
    put_selection(cx, selected, by_score)
}

fn decode(b: &[f32], encoding: BoxEncoding) -> Corners {
    match encoding {
        BoxEncoding::Corner => {
            Corners { x1: b[1].min(b[3]), y1: b[0].min(b[2]), x2: b[1].max(b[3]), y2: b[0].max(b[2]) }
        }
        BoxEncoding::Center => {
            let (w, h) = (b[2] / 2.0, b[3] / 2.0);
            Corners { x1: b[0] - w, y1: b[1] - h, x2: b[0] + w, y2: b[1] + h }
        }
    }
}

/// Runs the selection for each image and class. `overlap` is asked about flat positions in the boxes input.
pub(super) fn select_all(
    cx: &EvalCx<'_>,
    limits: &Limits,
    overlap: impl Fn(usize, usize) -> f32,
    decay: impl Fn(f32) -> Option<f32>,
) -> Result<Vec<Selected>> {
    let &[images, classes, n_boxes] = cx.shape(1) else { return Err(cx.fail("scores must have rank 3")) };
    let scores = cx.get::<f32>(1)?;
    let mut all = Vec::new();
    for image in 0..images {
        let first = image * n_boxes;
        for class in 0..classes {
            let start = (image * classes + class) * n_boxes;
            let scores = &scores[start..start + n_boxes];
            let overlap = |a: usize, b: usize| overlap(first + a, first + b);
            let rows = select_decaying(scores, limits.score, limits.most, overlap, &decay);
            all.extend(rows.into_iter().map(|(index, score)| Selected { image, class, index, score }));
        }
    }
    Ok(all)
}

/// Stores the indices, and the scores and count where the operation has them.
pub(super) fn put_selection(cx: &mut EvalCx<'_>, mut rows: Vec<Selected>, by_score: bool) -> Result<()> {
    if by_score {
        carafe_graph::sort_by(&mut rows, |a, b| {
            descending(a.score, b.score).then_with(|| (a.image, a.class, a.index).cmp(&(b.image, b.class, b.index)))
        });
    }
    let n = rows.len();
    let indices = rows.iter().flat_map(|r| [r.image as i64, r.class as i64, r.index as i64]).collect::<Vec<i64>>();
    cx.put(0, &[n, 3], indices)?;
    if cx.n_outputs() > 1 {
        let scores = rows.iter().flat_map(|r| [r.image as f32, r.class as f32, r.score]).collect::<Vec<f32>>();
        cx.put(1, &[n, 3], scores)?;
        cx.put(2, &[1], vec![n as i64])?;
    }
    Ok(())
}
