//! Region proposals of Faster R-CNN: anchors moved by what a network says of them, the best of those that do not overlap. Where
//! fewer are left than wanted, they are repeated from the first on.

use super::cx::MxCx;
use super::search::{rows_at, sorted};
use super::suppress::kept;
use crate::graph::CUSTOM;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::FloorMod;
use carafe_ops::math::Exp;
use carafe_ops::search::topk::TopKMode;
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("_contrib_MultiProposal", 0, proposal),
    rule("_contrib_Proposal", 0, proposal),
    rule_in(CUSTOM, "proposal", 0, custom_proposal),
];

struct Settings {
    scales: Vec<f64>,
    ratios: Vec<f64>,
    stride: i64,
    before: i64,
    after: i64,
    overlap: f64,
    least: i64,
    is_iou: bool,
    gives_scores: bool,
}

fn proposal(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let s = Settings {
        scales: n.floats_of("scales", &[4.0, 8.0, 16.0, 32.0])?,
        ratios: n.floats_of("ratios", &[0.5, 1.0, 2.0])?,
        stride: n.int("feature_stride", 16)?,
        before: n.int("rpn_pre_nms_top_n", 6000)?,
        after: n.int("rpn_post_nms_top_n", 300)?,
        overlap: n.float("threshold", 0.7)?,
        least: n.int("rpn_min_size", 16)?,
        is_iou: n.flag("iou_loss", false)?,
        gives_scores: n.flag("output_score", false)?,
    };
    proposed(n, &s)
}

// The operator in Python that came before the built-in one.
fn custom_proposal(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let s = Settings {
        scales: n.floats_of("scales", &[8.0, 16.0, 32.0])?,
        ratios: n.floats_of("ratios", &[0.5, 1.0, 2.0])?,
        stride: n.int("feat_stride", 16)?,
        before: n.int("rpn_pre_nms_top_n", 6000)?,
        after: n.int("rpn_post_nms_top_n", 300)?,
        overlap: n.float("threshold", 0.7)?,
        least: n.int("rpn_min_size", 16)?,
        is_iou: false,
        gives_scores: n.flag("output_score", false)?,
    };
    proposed(n, &s)
}

// Corners of the anchors at the first cell, for each ratio all scales.
fn anchors(s: &Settings) -> Vec<f32> {
    let base = s.stride as f64;
    let centre = (base - 1.0) / 2.0;
    let mut all = vec![];
    for ratio in &s.ratios {
        let width = (base * base / ratio).sqrt().round_ties_up();
        let height = (width * ratio).round_ties_up();
        for scale in &s.scales {
            let (w, h) = (width * scale, height * scale);
            let half = |size: f64| (size - 1.0) / 2.0;
            all.extend([centre - half(w), centre - half(h), centre + half(w), centre + half(h)].map(|v| v as f32));
        }
    }
    all
}

trait RoundTiesUp {
    fn round_ties_up(self) -> f64;
}

impl RoundTiesUp for f64 {
    fn round_ties_up(self) -> f64 {
        (self + 0.5).floor()
    }
}

fn proposed(n: &mut NodeCx<'_>, s: &Settings) -> Result<Outputs> {
    let (scores, deltas, info) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let base = anchors(s);
    let count = (base.len() / 4) as i64;
    if count == 0 || s.after < 1 {
        return Err(n.fail("`scales`, `ratios` and `rpn_post_nms_top_n` must name at least one box"));
    }
    // All anchors, in the order of cells: [1, H, W, A, 4].
    let base = n.floats(&[1, 1, 1, count as usize, 4], &base)?;
    let mut grid = vec![];
    for (axis, at) in [(3, 2), (2, 1)] {
        let size = n.length(scores, axis)?;
        let ticks = n.count_to(size, ElementType::F32)?;
        let ticks = n.times_number(ticks, s.stride as f64)?;
        grid.push(n.along(ticks, at, 5)?);
    }
    let shift_shape = n.dims_at(scores, &[2, 3])?;
    let (one, ones) = (n.i64s(&[1])?, n.i64s(&[1, 1])?);
    let shift_shape = n.concat(&[one, shift_shape, ones], 0)?;
    let shifts = grid.into_iter().map(|g| n.stretch(g, shift_shape)).collect::<Result<Vec<_>>>()?;
    let shifts = n.concat(&[shifts[0], shifts[1], shifts[0], shifts[1]], 4)?;
    let boxes = n.plus(base, shifts)?;
    let boxes = n.reshape(boxes, &[1, -1, 4])?;
    // Deltas [N, 4 A, H, W] and scores [N, 2 A, H, W] in that order.
    let tail = n.dims_at(deltas, &[2, 3])?;
    let front = n.i64s(&[0, count, 4])?;
    let shape = n.concat(&[front, tail], 0)?;
    let deltas = n.reshaped(deltas, shape, true)?;
    let deltas = n.transpose(deltas, &[0, 3, 4, 1, 2])?;
    let deltas = n.reshape(deltas, &[0, -1, 4])?;
    let score = n.part(scores, count, i64::MAX, 1)?;
    let score = n.transpose(score, &[0, 2, 3, 1])?;
    let score = n.reshape(score, &[0, -1])?;
    let boxes = if s.is_iou { n.plus(boxes, deltas)? } else { moved(n, boxes, deltas)? };
    let (boxes, score) = limited(n, boxes, score, info, s)?;
    let score = on_the_map(n, score, scores, info, s, count)?;
    // The best of them, before and after suppression.
    let total = n.length(score, 1)?;
    let k = match s.before > 0 {
        true => {
            let most = n.i64(s.before)?;
            n.min(most, total)?
        }
        false => total,
    };
    let (score, order) = sorted(n, score, k, 1, TopKMode::Max)?;
    let boxes = rows_at(n, boxes, order)?;
    chosen(n, boxes, score, s)
}

fn moved(n: &mut NodeCx<'_>, boxes: Value, deltas: Value) -> Result<Value> {
    let (low, high) = (n.part(boxes, 0, 2, 2)?, n.part(boxes, 2, 4, 2)?);
    let size = n.minus(high, low)?;
    let size = n.plus_number(size, 1.0)?;
    let less = n.plus_number(size, -1.0)?;
    let half = n.times_number(less, 0.5)?;
    let centre = n.plus(low, half)?;
    let (shift, growth) = (n.part(deltas, 0, 2, 2)?, n.part(deltas, 2, 4, 2)?);
    let shift = n.times(shift, size)?;
    let centre = n.plus(centre, shift)?;
    let growth = n.emit(Exp, &[growth])?;
    let size = n.times(growth, size)?;
    let less = n.plus_number(size, -1.0)?;
    let half = n.times_number(less, 0.5)?;
    let (low, high) = (n.minus(centre, half)?, n.plus(centre, half)?);
    n.concat(&[low, high], 2)
}

// Inside of the image, `info` being height, width and scale for each; what is too small becomes larger and scores nothing.
fn limited(n: &mut NodeCx<'_>, boxes: Value, score: Value, info: Value, s: &Settings) -> Result<(Value, Value)> {
    let info = n.reshape(info, &[-1, 1, 3])?;
    let columns = n.i64s(&[1, 0, 1, 0])?;
    let size = n.gather(info, columns, 2)?;
    let last = n.plus_number(size, -1.0)?;
    let zero = n.scalar_like(boxes, 0.0)?;
    let boxes = n.max(boxes, zero)?;
    let boxes = n.min(boxes, last)?;
    let scale = n.part(info, 2, 3, 2)?;
    let least = n.times_number(scale, s.least as f64)?;
    let (low, high) = (n.part(boxes, 0, 2, 2)?, n.part(boxes, 2, 4, 2)?);
    let size = n.minus(high, low)?;
    let size = n.plus_number(size, 1.0)?;
    let is_small = n.less(size, least)?;
    let (w, h) = (n.part(is_small, 0, 1, 2)?, n.part(is_small, 1, 2, 2)?);
    let is_small = n.or(w, h)?;
    let half = n.times_number(least, 0.5)?;
    let (low, high) = (n.minus(low, half)?, n.plus(high, half)?);
    let grown = n.concat(&[low, high], 2)?;
    let boxes = n.choose(is_small, grown, boxes)?;
    let none = n.scalar_like(score, -1.0)?;
    let is_small = n.squeeze(is_small, &[2])?;
    Ok((boxes, n.choose(is_small, none, score)?))
}

// Cells behind the image, which a batch of several sizes has, score nothing.
fn on_the_map(
    n: &mut NodeCx<'_>,
    score: Value,
    map: Value,
    info: Value,
    s: &Settings,
    count: i64,
) -> Result<Value> {
    let info = n.reshape(info, &[-1, 3])?;
    let mut inside = vec![];
    for (column, axis, at) in [(0, 2, 1), (1, 3, 2)] {
        let size = n.part(info, column, column + 1, 1)?;
        let cells = n.times_number(size, 1.0 / s.stride as f64)?;
        let cells = n.floor(cells)?;
        let cells = n.reshape(cells, &[-1, 1, 1, 1])?;
        let total = n.length(map, axis)?;
        let ticks = n.count_to(total, ElementType::F32)?;
        let ticks = n.along(ticks, at, 4)?;
        inside.push(n.less(ticks, cells)?);
    }
    let inside = n.and(inside[0], inside[1])?;
    let dims = n.dims_at(map, &[0, 2, 3])?;
    let last = n.i64s(&[count])?;
    let shape = n.concat(&[dims, last], 0)?;
    let inside = n.stretch(inside, shape)?;
    let inside = n.reshape(inside, &[0, -1])?;
    let none = n.scalar_like(score, -1.0)?;
    n.choose(inside, score, none)
}

fn chosen(n: &mut NodeCx<'_>, boxes: Value, score: Value, s: &Settings) -> Result<Outputs> {
    // Sizes count both ends.
    let one_more = n.floats(&[4], &[0.0, 0.0, 1.0, 1.0])?;
    let wide = n.plus(boxes, one_more)?;
    let single = n.unsqueeze(score, &[1])?;
    let stays = kept(n, wide, single, s.overlap)?;
    let mask = n.convert(stays, ElementType::F32)?;
    let k = n.length(boxes, 1)?;
    let (_, order) = sorted(n, mask, k, 1, TopKMode::Max)?;
    let whole = n.convert(stays, ElementType::I64)?;
    let left = n.sum_over(whole, &[1], true)?;
    let after = n.i64s(&[s.after])?;
    let left = n.min(left, after)?;
    let ticks: Vec<i64> = (0..s.after).collect();
    let ticks = n.i64s(&ticks)?;
    let ticks = n.unsqueeze(ticks, &[0])?;
    let at = n.emit(FloorMod::default(), &[ticks, left])?;
    let order = rows_at(n, order, at)?;
    let boxes = rows_at(n, boxes, order)?;
    // The number of the image in front.
    let count = n.length(boxes, 0)?;
    let image = n.count_to(count, ElementType::F32)?;
    let image = n.convert_like(image, boxes)?;
    let image = n.along(image, 0, 3)?;
    let shape = n.dims_at(boxes, &[0, 1])?;
    let one = n.i64s(&[1])?;
    let shape = n.concat(&[shape, one], 0)?;
    let image = n.stretch(image, shape)?;
    let rows = n.concat(&[image, boxes], 2)?;
    let rows = n.reshape(rows, &[-1, 5])?;
    if !s.gives_scores {
        return Ok(rows.into());
    }
    let score = rows_at(n, score, order)?;
    let score = n.reshape(score, &[-1, 1])?;
    Ok(vec![rows, score].into())
}
