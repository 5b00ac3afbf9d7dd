//! DetectionOutput: SSD post-processing. Decodes boxes against priors, suppresses per class, keeps the best of an image
//! and writes rows `image, label, score, x1, y1, x2, y2`. The row after the last one has image -1, the rest are zero.

use super::boxes::Corners;
use super::expect::{dim_is, put_f32, same_dim, same_float, zeros};
use super::nms_core::{Kept, Rank, best, descending, greedy, limit};
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};
use carafe_tensor::{Dim, PartialShape};

carafe_graph::attr_enum! {
    /// How box predictions relate to priors.
    pub enum CodeType {
        /// Offsets of the corners.
        Corner = "caffe.PriorBoxParameter.CORNER" | "CORNER",
        /// Moved centre and logarithmic size.
        CenterSize = "caffe.PriorBoxParameter.CENTER_SIZE" | "CENTER_SIZE",
    }
}

/// SSD detections; the number of classes follows from the shapes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "box_logits, class_preds, proposals, aux_class_preds?, aux_box_preds?")]
pub struct DetectionOutput {
    /// Class that is never reported; -1 for none.
    #[attr(default = 0)]
    pub background_label_id: i64,
    /// Best boxes of a class that enter suppression; -1 for all.
    #[attr(default = -1)]
    pub top_k: i64,
    /// Box predictions are already multiplied by the variances.
    #[attr(default = false)]
    pub variance_encoded_in_target: bool,
    /// Detections kept of an image; -1 for all. Only the first number counts.
    pub keep_top_k: Vec<i64>,
    /// Meaning of box predictions.
    #[attr(default = CodeType::Corner)]
    pub code_type: CodeType,
    /// One box for all classes of a prior.
    #[attr(default = true)]
    pub share_location: bool,
    /// A box is dropped when it overlaps a better one by more.
    pub nms_threshold: f32,
    /// Lower confidences are dropped.
    #[attr(default = 0.0)]
    pub confidence_threshold: f32,
    /// Clip the reported boxes to 0..1.
    #[attr(default = false)]
    pub clip_after_nms: bool,
    /// Clip the decoded boxes to 0..1.
    #[attr(default = false)]
    pub clip_before_nms: bool,
    /// MXNet style: the best class of a prior only, labels one lower.
    #[attr(default = false)]
    pub decrease_label_id: bool,
    /// Priors are in 0..1 and have four numbers; otherwise five, in pixels.
    #[attr(default = false)]
    pub normalized: bool,
    /// Image height that priors in pixels are divided by.
    #[attr(default = 1)]
    pub input_height: i64,
    /// Image width that priors in pixels are divided by.
    #[attr(default = 1)]
    pub input_width: i64,
    /// Priors whose auxiliary objectness is lower are background.
    #[attr(default = 0.0)]
    pub objectness_score: f32,
}

/// SSD detections with a given number of classes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "DetectionOutput",
    since = 1,
    until = 7,
    inputs = "box_logits, class_preds, proposals, aux_class_preds?, aux_box_preds?"
)]
pub struct DetectionOutputV1 {
    /// Classes, the background included.
    pub num_classes: i64,
    /// Class that is never reported; -1 for none.
    #[attr(default = 0)]
    pub background_label_id: i64,
    /// Best boxes of a class that enter suppression; -1 for all.
    #[attr(default = -1)]
    pub top_k: i64,
    /// Box predictions are already multiplied by the variances.
    #[attr(default = false)]
    pub variance_encoded_in_target: bool,
    /// Detections kept of an image; -1 for all. Only the first number counts.
    pub keep_top_k: Vec<i64>,
    /// Meaning of box predictions.
    #[attr(default = CodeType::Corner)]
    pub code_type: CodeType,
    /// One box for all classes of a prior.
    #[attr(default = true)]
    pub share_location: bool,
    /// A box is dropped when it overlaps a better one by more.
    pub nms_threshold: f32,
    /// Lower confidences are dropped.
    #[attr(default = 0.0)]
    pub confidence_threshold: f32,
    /// Clip the reported boxes to 0..1.
    #[attr(default = false)]
    pub clip_after_nms: bool,
    /// Clip the decoded boxes to 0..1.
    #[attr(default = false)]
    pub clip_before_nms: bool,
    /// MXNet style: the best class of a prior only, labels one lower.
    #[attr(default = false)]
    pub decrease_label_id: bool,
    /// Priors are in 0..1 and have four numbers; otherwise five, in pixels.
    #[attr(default = false)]
    pub normalized: bool,
    /// Image height that priors in pixels are divided by.
    #[attr(default = 1)]
    pub input_height: i64,
    /// Image width that priors in pixels are divided by.
    #[attr(default = 1)]
    pub input_width: i64,
    /// Priors whose auxiliary objectness is lower are background.
    #[attr(default = 0.0)]
    pub objectness_score: f32,
}

impl DetectionOutputV1 {
    /// The same as the class of the newest opset; the number of classes follows from the shapes.
    pub fn newest(&self) -> DetectionOutput {
        DetectionOutput {
            background_label_id: self.background_label_id,
            top_k: self.top_k,
            variance_encoded_in_target: self.variance_encoded_in_target,
            keep_top_k: self.keep_top_k.clone(),
            code_type: self.code_type,
            share_location: self.share_location,
            nms_threshold: self.nms_threshold,
            confidence_threshold: self.confidence_threshold,
            clip_after_nms: self.clip_after_nms,
            clip_before_nms: self.clip_before_nms,
            decrease_label_id: self.decrease_label_id,
            normalized: self.normalized,
            input_height: self.input_height,
            input_width: self.input_width,
            objectness_score: self.objectness_score,
        }
    }
}

impl Op for DetectionOutput {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(self, cx, None)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(self, cx)
    }
}

impl Op for DetectionOutputV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let n = self.num_classes;
        cx.require(n > 0, || format!("attribute `num_classes` must be positive, found {n}"))?;
        infer(&self.newest(), cx, Some(n))
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(&self.newest(), cx)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        // The current version finds the number of classes in the sizes.
        let known = |input: usize, axis: usize| cx.fact(input).is_some_and(|f| f.shape.dim(axis).is_known());
        if known(1, 1) && known(2, 2) { Version::of::<DetectionOutput>(self, cx) } else { None }
    }
}

fn infer(op: &DetectionOutput, cx: &mut InferCx<'_>, num_classes: Option<i64>) -> Result<()> {
    let Some(&keep) = op.keep_top_k.first() else {
        return Err(cx.fail("attribute `keep_top_k` must have a number"));
    };
    cx.require(op.normalized || (op.input_height > 0 && op.input_width > 0), || {
        format!("priors in pixels need a positive input size, found {} x {}", op.input_height, op.input_width)
    })?;
    cx.require(cx.n_inputs() != 4, || "takes 3 or 5 inputs, found 4".to_string())?;
    let ty = same_float(cx, &[0, 1])?;
    cx.require_float(2)?;
    cx.require_rank(0, &[2])?;
    cx.require_rank(1, &[2])?;
    cx.require_rank(2, &[3])?;
    let mut images = same_dim(cx, (0, 0), (1, 0))?;
    if cx.has(4) {
        same_float(cx, &[0, 3, 4])?;
        cx.require_rank(3, &[2])?;
        cx.require_rank(4, &[2])?;
        images = images.merge(same_dim(cx, (1, 0), (3, 0))?).unwrap_or(images);
        same_dim(cx, (0, 0), (4, 0))?;
        same_dim(cx, (0, 1), (4, 1))?;
    }
    let in_batch = cx.dim(2, 0);
    cx.require(in_batch.contains(1) || in_batch.compatible(images), || {
        format!("{} must have a batch of 1 or {images}, found [{}]", cx.port_name(2), cx.shape(2))
    })?;
    dim_is(cx, 2, 1, if op.variance_encoded_in_target { 1 } else { 2 })?;

    let (priors, classes) = counts(op, cx, num_classes)?;
    let rows = match (keep, op.top_k) {
        (1.., _) => images.mul(Dim::known(keep)),
        (-1, 1..) => images.mul(Dim::known(op.top_k)).mul(classes),
        _ => images.mul(priors).mul(classes),
    };
    cx.set(0, ty, PartialShape::new([Dim::known(1), Dim::known(1), rows, Dim::known(7)]));
    Ok(())
}

/// Priors and classes, as far as the shapes or the attribute say, after checking that they fit all inputs.
fn counts(op: &DetectionOutput, cx: &InferCx<'_>, num_classes: Option<i64>) -> Result<(Dim, Dim)> {
    let per_location = |classes: Option<i64>| if op.share_location { Some(4) } else { Some(classes? * 4) };
    let prior_size = op.prior_size() as i64;
    let mut priors = quotient(cx, 2, 2, Some(prior_size))?;
    if priors.is_none() && cx.has(3) {
        priors = quotient(cx, 3, 1, Some(2))?;
    }
    if priors.is_none() {
        priors = quotient(cx, 0, 1, per_location(num_classes.map(|n| n.min(i64::MAX / 4))))?;
    }
    let mut classes = num_classes;
    if priors == Some(0) {
        return Err(cx.fail(format!("{} has no priors: [{}]", cx.port_name(2), cx.shape(2))));
    }
    if classes.is_none() {
        classes = quotient(cx, 1, 1, priors)?;
    }
    if classes.is_none() && !op.share_location {
        classes = quotient(cx, 0, 1, priors.and_then(|p| p.checked_mul(4)))?;
    }
    if priors.is_none() {
        priors = quotient(cx, 1, 1, classes)?;
    }
    let check = |input: usize, axis: usize, wanted: Option<i64>| match wanted {
        Some(n) => dim_is(cx, input, axis, n),
        None => Ok(()),
    };
    let times = |n: Option<i64>| priors.and_then(|p| p.checked_mul(n?));
    check(0, 1, times(per_location(classes.map(|n| n.min(i64::MAX / 4)))))?;
    check(1, 1, times(classes))?;
    check(2, 2, times(Some(prior_size)))?;
    if cx.has(3) {
        check(3, 1, times(Some(2)))?;
    }
    let dim = |n: Option<i64>| n.map_or(Dim::ANY, Dim::known);
    Ok((dim(priors), dim(classes)))
}

/// A known dimension divided by a known positive number, which must go evenly.
fn quotient(cx: &InferCx<'_>, input: usize, axis: usize, by: Option<i64>) -> Result<Option<i64>> {
    match (cx.dim(input, axis).get(), by) {
        (Some(n), Some(by)) if by > 0 => {
            cx.require(n % by == 0, || {
                format!("axis {axis} of {} must be a multiple of {by}, found [{}]", cx.port_name(input), cx.shape(input))
            })?;
            Ok(Some(n / by))
        }
        _ => Ok(None),
    }
}

impl DetectionOutput {
    /// Numbers of a prior.
    pub fn prior_size(&self) -> usize {
        if self.normalized { 4 } else { 5 }
    }

    /// `x1, y1, x2, y2` of the box predicted at prior `p` of `n`, where all classes share it and there is no earlier stage.
    pub fn shared_box(&self, n: usize, p: usize, priors: &[f32], logits: &[f32]) -> [f32; 4] {
        let size = self.prior_size();
        let variance = if self.variance_encoded_in_target { [1.0; 4] } else { four(&priors[n * size..], p) };
        let prior = self.scaled(Corners::at(&priors[p * size + size - 4..(p + 1) * size], 0));
        self.decoded(prior, variance, four(logits, p)).to_array()
    }

    /// The box as it is reported.
    pub fn reported(&self, corners: [f32; 4]) -> [f32; 4] {
        let b = Corners::at(&corners, 0);
        if self.clip_after_nms { b.clipped(1.0, 1.0).to_array() } else { corners }
    }

    fn scaled(&self, b: Corners) -> Corners {
        let (w, h) = if self.normalized { (1.0, 1.0) } else { (self.input_width as f32, self.input_height as f32) };
        Corners { x1: b.x1 / w, y1: b.y1 / h, x2: b.x2 / w, y2: b.y2 / h }
    }

    fn decoded(&self, prior: Corners, variance: [f32; 4], d: [f32; 4]) -> Corners {
        let d = [d[0] * variance[0], d[1] * variance[1], d[2] * variance[2], d[3] * variance[3]];
        let b = match self.code_type {
            CodeType::Corner => {
                Corners { x1: prior.x1 + d[0], y1: prior.y1 + d[1], x2: prior.x2 + d[2], y2: prior.y2 + d[3] }
            }
            CodeType::CenterSize => {
                let (w, h) = (prior.x2 - prior.x1, prior.y2 - prior.y1);
                let (cx, cy) = ((prior.x1 + prior.x2) / 2.0, (prior.y1 + prior.y2) / 2.0);
                let (cx, cy) = (d[0] * w + cx, d[1] * h + cy);
                let (w, h) = (d[2].exp() * w, d[3].exp() * h);
                Corners { x1: cx - w / 2.0, y1: cy - h / 2.0, x2: cx + w / 2.0, y2: cy + h / 2.0 }
            }
        };
        if self.clip_before_nms { b.clipped(1.0, 1.0) } else { b }
    }
}

/// Sizes of one evaluation.
struct Layout {
    priors: usize,
    classes: usize,
    /// Boxes predicted per prior.
    locations: usize,
}

fn eval(op: &DetectionOutput, cx: &mut EvalCx<'_>) -> Result<()> {
    let shape = cx.out_shape(0)?;
    let images = cx.shape(0)[0];
    let priors = cx.shape(2)[2] / op.prior_size();
    let classes = cx.shape(1)[1].checked_div(priors).unwrap_or(0);
    let layout = Layout { priors, classes, locations: if op.share_location { 1 } else { classes } };
    let mut out = zeros(&shape)?;
    {
        let (logits, scores, prior_data) = (cx.get::<f32>(0)?, cx.get::<f32>(1)?, cx.get::<f32>(2)?);
        let aux = match cx.has(4) {
            true => Some((cx.get::<f32>(3)?, cx.get::<f32>(4)?)),
            false => None,
        };
        let per_image = priors * layout.locations * 4;
        let prior_stride = if cx.shape(2)[0] == 1 { 0 } else { cx.shape(2)[1] * cx.shape(2)[2] };
        let mut rows = out.as_slice_mut::<f32>()?.chunks_exact_mut(7);
        let mut full = false;
        for image in 0..images {
            let aux_logits = aux.as_ref().map(|a| &a.1[image * per_image..(image + 1) * per_image]);
            let scores = Scores {
                of_priors: &scores[image * priors * classes..(image + 1) * priors * classes],
                aux: aux.as_ref().map(|a| &a.0[image * priors * 2..(image + 1) * priors * 2]),
                classes,
                objectness: op.objectness_score,
                background: op.background_label_id,
            };
            let candidates = candidates(op, &layout, &scores);
            let mut wanted = vec![false; priors];
            candidates.iter().flatten().for_each(|&prior| wanted[prior] = true);
            let prior_data = &prior_data[image * prior_stride..];
            let logits = &logits[image * per_image..(image + 1) * per_image];
            let boxes = decode_image(op, &layout, prior_data, logits, aux_logits, &wanted);
            for d in detect(op, &layout, &boxes, &scores, &candidates) {
                let Some(row) = rows.next() else {
                    full = true;
                    break;
                };
                let b = boxes[layout.box_of(d.class, d.prior)];
                let label = d.class as f32 - if op.decrease_label_id { 1.0 } else { 0.0 };
                row[..3].copy_from_slice(&[image as f32, label, d.score]);
                row[3..].copy_from_slice(&op.reported(b.to_array()));
            }
        }
        if let (Some(row), false) = (rows.next(), full) {
            row[0] = -1.0;
        }
    }
    put_f32(cx, 0, out)
}

impl Layout {
    /// Position among the decoded boxes, which are class by class.
    fn box_of(&self, class: usize, prior: usize) -> usize {
        if self.locations == 1 { prior } else { class * self.priors + prior }
    }
}

/// Boxes of one image, class by class; only of the priors that are `wanted`.
fn decode_image(
    op: &DetectionOutput,
    layout: &Layout,
    priors: &[f32],
    logits: &[f32],
    aux: Option<&[f32]>,
    wanted: &[bool],
) -> Vec<Corners> {
    let size = op.prior_size();
    let variances = &priors[layout.priors * size..];
    let mut boxes = vec![Corners::default(); layout.priors * layout.locations];
    for p in (0..layout.priors).filter(|&p| wanted[p]) {
        let prior = op.scaled(Corners::at(&priors[p * size + size - 4..(p + 1) * size], 0));
        let variance = if op.variance_encoded_in_target { [1.0; 4] } else { four(variances, p) };
        for location in 0..layout.locations {
            let at = p * layout.locations + location;
            let prior = match aux {
                // Boxes of the first stage are scaled down once more, although they are no pixels.
                Some(aux) => op.scaled(op.decoded(prior, variance, four(aux, at))),
                None => prior,
            };
            boxes[location * layout.priors + p] = op.decoded(prior, variance, four(logits, at));
        }
    }
    boxes
}

fn four(data: &[f32], i: usize) -> [f32; 4] {
    Corners::at(data, i).to_array()
}

/// Confidences of one image; a prior without objectness is all background.
struct Scores<'a> {
    of_priors: &'a [f32],
    aux: Option<&'a [f32]>,
    classes: usize,
    objectness: f32,
    background: i64,
}

impl Scores<'_> {
    fn at(&self, prior: usize, class: usize) -> f32 {
        match self.aux.is_some_and(|a| a[2 * prior + 1] < self.objectness) {
            true if class as i64 == self.background => 1.0,
            true => 0.0,
            false => self.of_priors[prior * self.classes + class],
        }
    }
}

#[derive(Clone, Copy)]
struct Detection {
    class: usize,
    prior: usize,
    score: f32,
}

/// For each class the priors that may be reported, best first. All scores are looked at once, in the order they lie.
fn candidates(op: &DetectionOutput, layout: &Layout, scores: &Scores<'_>) -> Vec<Vec<usize>> {
    let mut classes: Vec<Vec<Rank>> = vec![vec![]; layout.classes];
    if op.decrease_label_id {
        // The best foreground class of each prior, and the best priors over all classes.
        let mut all = vec![];
        let mut class_of = vec![0; layout.priors];
        for prior in 0..layout.priors {
            let mut top = Detection { class: 0, prior, score: -1.0 };
            for class in (1..layout.classes).filter(|&c| c as i64 != op.background_label_id) {
                let score = scores.at(prior, class);
                if score > top.score {
                    top = Detection { class, prior, score };
                }
            }
            if top.class > 0 && top.score >= op.confidence_threshold {
                class_of[prior] = top.class;
                all.push(Rank::new(top.score, prior as u32));
            }
        }
        best(&mut all, limit(op.top_k));
        all.into_iter().for_each(|rank| classes[class_of[rank.index()]].push(rank));
    } else {
        for prior in 0..layout.priors {
            for (class, list) in classes.iter_mut().enumerate() {
                let score = scores.at(prior, class);
                if score > op.confidence_threshold && class as i64 != op.background_label_id {
                    list.push(Rank::new(score, prior as u32));
                }
            }
        }
        classes.iter_mut().for_each(|list| best(list, limit(op.top_k)));
    }
    classes.into_iter().map(|list| list.into_iter().map(Rank::index).collect()).collect()
}

/// What is reported of one image, grouped by class.
fn detect(
    op: &DetectionOutput,
    layout: &Layout,
    boxes: &[Corners],
    scores: &Scores<'_>,
    candidates: &[Vec<usize>],
) -> Vec<Detection> {
    let mut found: Vec<Detection> = Vec::new();
    let mut met = Kept::new(0.0, false);
    for (class, order) in candidates.iter().enumerate() {
        let corners = |prior: usize| boxes[layout.box_of(class, prior)];
        let kept = greedy(order, usize::MAX, corners, &mut met, op.nms_threshold);
        found.extend(kept.into_iter().map(|prior| Detection { class, prior, score: scores.at(prior, class) }));
    }
    if let Some(keep) = op.keep_top_k.first().copied().and_then(limit).filter(|&k| k < found.len()) {
        carafe_graph::sort_by(&mut found, |a, b| descending(a.score, b.score).then(a.prior.cmp(&b.prior)));
        found.truncate(keep);
        carafe_graph::sort_by_key(&mut found, |d| d.class);
    }
    found
}
