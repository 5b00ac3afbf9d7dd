//! Regions of detectors: proposals, their levels, what is pooled of them, and suppression.

use super::slots::Slots;
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::detection::SortResult;
use carafe_ops::detection::matrix_nms::DecayFunction;
use carafe_ops::detection::non_max_suppression::BoxEncoding;
use carafe_ops::detection::psroi_pooling::PsRoiMode;
use carafe_ops::detection::roi_align::AlignedMode;
use carafe_ops::detection::roi_pooling::RoiMethod;
use carafe_ops::detection::{
    GenerateProposals, MatrixNms, MulticlassNms, NonMaxSuppression, PSROIPooling, PoolMode, ROIAlign, ROIPooling,
};
use carafe_ops::indexing::{NonZero, ScatterUpdate};
use carafe_ops::math::Log;
use carafe_ops::search::CumSum;
use carafe_ops::search::TopK;
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("collect_fpn_proposals", 0, collect_proposals),
    rule("distribute_fpn_proposals", 0, distribute_proposals),
    rule("generate_proposals", 0, generate_proposals),
    rule("generate_proposals_v2", 0, generate_proposals),
    rule("matrix_nms", 0, matrix_nms),
    rule("multiclass_nms", 0, multiclass_nms),
    rule("multiclass_nms2", 0, multiclass_nms),
    rule("multiclass_nms3", 0, multiclass_nms),
    rule("nms", 0, nms),
    rule("psroi_pool", 0, psroi_pool),
    rule("roi_align", 0, roi_align),
    rule("roi_pool", 0, roi_pool),
];

fn multiclass_nms(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (boxes, scores) = (n.slot("BBoxes")?, n.slot("Scores")?);
    let counts = n.opt_slot("RoisNum")?;
    let op = MulticlassNms {
        sort_result_type: SortResult::ClassId,
        sort_result_across_batch: false,
        output_type: ElementType::I32,
        iou_threshold: n.attr("nms_threshold", 0.3)?,
        score_threshold: n.required("score_threshold")?,
        nms_top_k: n.required("nms_top_k")?,
        keep_top_k: n.required("keep_top_k")?,
        background_class: n.attr("background_label", 0)?,
        nms_eta: n.attr("nms_eta", 1.0)?,
        normalized: n.attr("normalized", true)?,
    };
    let inputs: Vec<Value> = match counts {
        // Boxes of all pictures in one list.
        Some(counts) => {
            let boxes = n.transpose(boxes, &[1, 0, 2])?;
            let scores = n.transpose(scores, &[1, 0])?;
            vec![boxes, scores, counts]
        }
        None => vec![boxes, scores],
    };
    let out = n.emit_all(op, &inputs)?;
    let index = n.reshape(out[1], &[-1, 1])?;
    Ok(n.give(&[("Out", out[0]), ("Index", index), ("NmsRoisNum", out[2])]))
}

fn matrix_nms(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (boxes, scores) = (n.slot("BBoxes")?, n.slot("Scores")?);
    let op = MatrixNms {
        sort_result_type: SortResult::Score,
        sort_result_across_batch: false,
        output_type: ElementType::I32,
        score_threshold: n.attr("score_threshold", 0.0)?,
        nms_top_k: n.attr("nms_top_k", -1)?,
        keep_top_k: n.attr("keep_top_k", -1)?,
        background_class: n.attr("background_label", 0)?,
        decay_function: if n.attr("use_gaussian", false)? { DecayFunction::Gaussian } else { DecayFunction::Linear },
        gaussian_sigma: n.attr("gaussian_sigma", 2.0)?,
        post_threshold: n.attr("post_threshold", 0.0)?,
        normalized: n.attr("normalized", true)?,
    };
    let out = n.emit_all(op, &[boxes, scores])?;
    let index = n.reshape(out[1], &[-1, 1])?;
    Ok(n.give(&[("Out", out[0]), ("Index", index), ("RoisNum", out[2])]))
}

// Boxes come with the best first: each has a score below that of the one before it.
fn nms(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let boxes = n.slot("Boxes")?;
    let threshold: f64 = n.attr("iou_threshold", 1.0)?;
    let count = n.length(boxes, 0)?;
    let at = n.count_to(count, ElementType::I64)?;
    let at = n.convert(at, ElementType::F32)?;
    let scores = n.times_number(at, -1.0)?;
    let scores = n.unsqueeze(scores, &[0, 1])?;
    let batch = n.unsqueeze(boxes, &[0])?;
    let (iou, least) = (n.scalar(ElementType::F32, threshold)?, n.scalar(ElementType::F32, f64::from(f32::MIN))?);
    let sigma = n.scalar(ElementType::F32, 0.0)?;
    let op = NonMaxSuppression {
        box_encoding: BoxEncoding::Corner,
        sort_result_descending: true,
        output_type: ElementType::I64,
    };
    let found = n.emit_all(op, &[batch, scores, count, iou, least, sigma])?[0];
    let rows = n.part(found, 2, 3, 1)?;
    let rows = n.reshape(rows, &[-1])?;
    // Rows behind the last box that was kept are -1.
    let zero = n.i64(0)?;
    let is_kept = n.greater_equal(rows, zero)?;
    let at = n.put(NonZero { output_type: ElementType::I64 }, &[is_kept])?;
    let at = n.reshape(at, &[-1])?;
    let out = n.gather(rows, at, 0)?;
    Ok(n.give(&[("KeepBoxesIdxs", out)]))
}

// The picture of each region, of how many regions each picture has.
fn batch_of(n: &mut NodeCx<'_>, rois: Value, counts: Option<Value>) -> Result<Value> {
    let count = n.length(rois, 0)?;
    let at = n.count_to(count, ElementType::I64)?;
    let Some(counts) = counts else {
        let zero = n.i64(0)?;
        return n.times(at, zero);
    };
    let counts = n.convert(counts, ElementType::I64)?;
    let axis = n.i64(0)?;
    let ends = n.put(CumSum { exclusive: false, reverse: false }, &[counts, axis])?;
    let at = n.unsqueeze(at, &[1])?;
    let is_behind = n.greater_equal(at, ends)?;
    let is_behind = n.convert(is_behind, ElementType::I64)?;
    n.sum_over(is_behind, &[1], false)
}

fn roi_align(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, rois) = (n.slot("X")?, n.slot("ROIs")?);
    let counts = n.opt_slot("RoisNum")?;
    let is_aligned: bool = n.attr("aligned", false)?;
    let ratio: i64 = n.attr("sampling_ratio", -1)?;
    let batch = batch_of(n, rois, counts)?;
    let op = ROIAlign {
        pooled_h: n.attr("pooled_height", 1)?,
        pooled_w: n.attr("pooled_width", 1)?,
        sampling_ratio: ratio.max(0),
        spatial_scale: n.attr("spatial_scale", 1.0)?,
        mode: PoolMode::Avg,
        aligned_mode: if is_aligned { AlignedMode::HalfPixelForNn } else { AlignedMode::Asymmetric },
    };
    let out = n.emit(op, &[x, rois, batch])?;
    Ok(n.give(&[("Out", out)]))
}

// Regions with the number of their picture in front.
fn numbered(n: &mut NodeCx<'_>, rois: Value, counts: Option<Value>) -> Result<Value> {
    let batch = batch_of(n, rois, counts)?;
    let batch = n.convert_like(batch, rois)?;
    let batch = n.unsqueeze(batch, &[1])?;
    n.concat(&[batch, rois], 1)
}

fn roi_pool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, rois) = (n.slot("X")?, n.slot("ROIs")?);
    let counts = n.opt_slot("RoisNum")?;
    let rois = numbered(n, rois, counts)?;
    let op = ROIPooling {
        pooled_h: n.attr("pooled_height", 1)?,
        pooled_w: n.attr("pooled_width", 1)?,
        spatial_scale: n.attr("spatial_scale", 1.0)?,
        method: RoiMethod::Max,
    };
    let out = n.emit(op, &[x, rois])?;
    Ok(n.give(&[("Out", out)]))
}

fn psroi_pool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, rois) = (n.slot("X")?, n.slot("ROIs")?);
    let counts = n.opt_slot("RoisNum")?;
    let rois = numbered(n, rois, counts)?;
    let (height, width): (i64, i64) = (n.attr("pooled_height", 1)?, n.attr("pooled_width", 1)?);
    if height != width {
        return Err(n.unsupported(format!("bins of {height} by {width}; they must be as many in both directions")));
    }
    let op = PSROIPooling {
        output_dim: n.required("output_channels")?,
        group_size: height,
        spatial_scale: n.attr("spatial_scale", 1.0)?,
        mode: PsRoiMode::Average,
        spatial_bins_x: 1,
        spatial_bins_y: 1,
    };
    let out = n.emit(op, &[x, rois])?;
    Ok(n.give(&[("Out", out)]))
}

fn generate_proposals(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (scores, deltas, anchors) = (n.slot("Scores")?, n.slot("BboxDeltas")?, n.slot("Anchors")?);
    let variances = n.slot("Variances")?;
    // The older operator has the scale of the picture behind its sizes.
    let info = match n.opt_slot("ImShape")? {
        Some(shape) => {
            let one = n.i64s(&[1])?;
            let batch = n.size(shape, 0)?;
            let column = n.concat(&[batch, one], 0)?;
            let number = n.number(shape, 1.0)?;
            let scale = n.stretch(number, column)?;
            n.concat(&[shape, scale], 1)?
        }
        None => n.slot("ImInfo")?,
    };
    let is_whole: bool = n.attr("pixel_offset", true)?;
    // Variances are of anchors `[H, W, A, 4]`, deltas `[N, A * 4, H, W]`.
    let (rows, columns) = (n.size(scores, 2)?, n.size(scores, 3)?);
    let rest = n.i64s(&[-1])?;
    let flat = n.concat(&[rows, columns, rest], 0)?;
    let variances = n.reshaped(variances, flat, false)?;
    let variances = n.transpose(variances, &[2, 0, 1])?;
    let deltas = n.times(deltas, variances)?;
    let four = n.i64s(&[4])?;
    let shape = n.concat(&[rows, columns, rest, four], 0)?;
    let anchors = n.reshaped(anchors, shape, false)?;
    let op = GenerateProposals {
        min_size: n.attr("min_size", 0.1)?,
        nms_threshold: n.attr("nms_thresh", 0.5)?,
        pre_nms_count: n.attr("pre_nms_topN", 6000)?,
        post_nms_count: n.attr("post_nms_topN", 1000)?,
        normalized: !is_whole,
        nms_eta: n.attr("eta", 1.0)?,
        roi_num_type: ElementType::I32,
    };
    let out = n.emit_all(op, &[info, anchors, deltas, scores])?;
    let probs = n.reshape(out[1], &[-1, 1])?;
    Ok(n.give(&[("RpnRois", out[0]), ("RpnRoiProbs", probs), ("RpnRoisNum", out[2])]))
}

// Large regions are taken from coarse levels of a pyramid, small ones from fine levels.
fn distribute_proposals(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let rois = n.slot("FpnRois")?;
    let counts = n.opt_slot("RoisNum")?;
    let (min, max): (i64, i64) = (n.required("min_level")?, n.required("max_level")?);
    let (level, scale): (f64, f64) = (n.required("refer_level")?, n.required("refer_scale")?);
    let extra = if n.attr("pixel_offset", true)? { 1.0 } else { 0.0 };
    if !(0..=64).contains(&(max - min)) {
        return Err(n.fail(format!("levels from {min} to {max}")));
    }
    let c = n.split_equally(rois, 1, 4)?;
    let (w, h) = (n.minus(c[2], c[0])?, n.minus(c[3], c[1])?);
    let (w, h) = (n.plus_number(w, extra)?, n.plus_number(h, extra)?);
    let area = n.times(w, h)?;
    let side = n.sqrt(area)?;
    let ratio = n.over_number(side, scale)?;
    let ratio = n.plus_number(ratio, 1e-6)?;
    let log = n.put(Log, &[ratio])?;
    let log = n.times_number(log, std::f64::consts::LOG2_E)?;
    let found = n.plus_number(log, level)?;
    let found = n.floor(found)?;
    let found = n.between(found, min as f64, max as f64)?;
    let found = n.reshape(found, &[-1])?;
    let batch = batch_of(n, rois, counts)?;
    let (mut parts, mut order, mut numbers) = (vec![], vec![], vec![]);
    for l in min..=max {
        let is_here = n.equal_number(found, l as f64)?;
        let at = n.put(NonZero { output_type: ElementType::I64 }, &[is_here])?;
        let at = n.reshape(at, &[-1])?;
        parts.push(n.gather(rois, at, 0)?);
        order.push(at);
        if let Some(counts) = counts {
            let pictures = n.length(counts, 0)?;
            let all = n.count_to(pictures, ElementType::I64)?;
            let all = n.unsqueeze(all, &[1])?;
            let here = n.gather(batch, at, 0)?;
            let is_of = n.equal(all, here)?;
            let is_of = n.convert(is_of, ElementType::I32)?;
            numbers.push(n.sum_over(is_of, &[1], false)?);
        }
    }
    let order = n.concat(&order, 0)?;
    // Where each region went.
    let count = n.length(rois, 0)?;
    let all = n.count_to(count, ElementType::I64)?;
    let axis = n.i64(0)?;
    let restore = n.put(ScatterUpdate, &[all, order, all, axis])?;
    let restore = n.convert(restore, ElementType::I32)?;
    let restore = n.unsqueeze(restore, &[1])?;
    let (mut parts, mut numbers) = (parts.into_iter(), numbers.into_iter());
    let ports: Vec<String> = n.output_ports().to_vec();
    let items = ports.iter().map(|p| match p.as_str() {
        "MultiFpnRois" => parts.next().map_or(Item::Nothing, Item::Tensor),
        "MultiLevelRoIsNum" => numbers.next().map_or(Item::Nothing, Item::Tensor),
        "RestoreIndex" => Item::Tensor(restore),
        _ => Item::Nothing,
    });
    Ok(Outputs(items.collect()))
}

// The best of all levels, in the order of their pictures.
fn collect_proposals(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let rois = n.inputs_named("MultiLevelRois")?;
    let scores = n.inputs_named("MultiLevelScores")?;
    let counts = n.inputs_named("MultiLevelRoIsNum")?;
    let most: i64 = n.required("post_nms_topN")?;
    let mut batches = vec![];
    for (i, r) in rois.iter().enumerate() {
        batches.push(batch_of(n, *r, counts.get(i).copied())?);
    }
    let (rois, batch) = (n.concat(&rois, 0)?, n.concat(&batches, 0)?);
    let scores = n.concat(&scores, 0)?;
    let scores = n.reshape(scores, &[-1])?;
    let count = n.length(rois, 0)?;
    let limit = n.i64(most)?;
    let k = n.min(count, limit)?;
    let best = TopK {
        axis: 0,
        mode: TopKMode::Max,
        sort: TopKSort::Value,
        index_element_type: ElementType::I64,
        stable: true,
    };
    let at = n.emit_all(best, &[scores, k])?[1];
    let picture = n.gather(batch, at, 0)?;
    let by_picture = TopK {
        axis: 0,
        mode: TopKMode::Min,
        sort: TopKSort::Value,
        index_element_type: ElementType::I64,
        stable: true,
    };
    let order = n.emit_all(by_picture, &[picture, k])?[1];
    let at = n.gather(at, order, 0)?;
    let out = n.gather(rois, at, 0)?;
    let mut named = vec![("FpnRois", out)];
    if let Some(first) = counts.first() {
        let pictures = n.length(*first, 0)?;
        let all = n.count_to(pictures, ElementType::I64)?;
        let all = n.unsqueeze(all, &[1])?;
        let is_of = n.equal(all, picture)?;
        let is_of = n.convert(is_of, ElementType::I32)?;
        named.push(("RoisNum", n.sum_over(is_of, &[1], false)?));
    }
    Ok(n.give(&named))
}
