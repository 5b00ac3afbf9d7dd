//! Boxes: overlap, decoding, and suppression with everything in one tensor.

use super::cx::MxCx;
use super::search::{rows_at, sorted};
use super::suppress::{NOTHING, kept};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::math::Exp;
use carafe_ops::reduce::ReduceMax;
use carafe_ops::search::topk::TopKMode;
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("_contrib_box_decode", 0, box_decode),
    rule("_contrib_box_iou", 0, box_iou),
    rule("_contrib_box_nms", 0, box_nms),
];

fn is_corner(n: &NodeCx<'_>, name: &str, default: &str) -> Result<bool> {
    match n.word(name, default).as_str() {
        "corner" => Ok(true),
        "center" => Ok(false),
        other => Err(n.unknown_word(name, other, "corner, center")),
    }
}

// `x, y, width, height` as two corners.
pub(super) fn to_corners(n: &mut NodeCx<'_>, boxes: Value) -> Result<Value> {
    let (centre, size) = (n.part(boxes, 0, 2, -1)?, n.part(boxes, 2, 4, -1)?);
    let half = n.times_number(size, 0.5)?;
    let (low, high) = (n.minus(centre, half)?, n.plus(centre, half)?);
    n.concat(&[low, high], -1)
}

// The other way.
fn to_centre(n: &mut NodeCx<'_>, boxes: Value) -> Result<Value> {
    let (low, high) = (n.part(boxes, 0, 2, -1)?, n.part(boxes, 2, 4, -1)?);
    let (sum, size) = (n.plus(low, high)?, n.minus(high, low)?);
    let centre = n.times_number(sum, 0.5)?;
    n.concat(&[centre, size], -1)
}

// Of `[.., a, 4]` and `[.., b, 4]` all pairs.
fn box_iou(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let corner = is_corner(n, "format", "corner")?;
    let (a, b) = (n.input(0)?, n.input(1)?);
    let (a, b) = if corner { (a, b) } else { (to_corners(n, a)?, to_corners(n, b)?) };
    let (ra, rb) = (n.known_rank(a)? as i64, n.known_rank(b)? as i64);
    let area = |n: &mut NodeCx<'_>, x: Value| {
        let (low, high) = (n.part(x, 0, 2, -1)?, n.part(x, 2, 4, -1)?);
        let size = n.minus(high, low)?;
        let (w, h) = (n.part(size, 0, 1, -1)?, n.part(size, 1, 2, -1)?);
        let area = n.times(w, h)?;
        n.squeeze(area, &[-1])
    };
    // Each axis of one meets each of the other.
    let after = |rank: i64, more: i64| (rank..rank + more).collect::<Vec<i64>>();
    let (area_a, area_b) = (area(n, a)?, area(n, b)?);
    let area_a = n.unsqueeze(area_a, &after(ra - 1, rb - 1))?;
    let last = n.i64s(&after(ra - 1, rb - 1))?;
    let wide = n.emit(carafe_ops::movement::Unsqueeze, &[a, last])?;
    let (low_a, high_a) = (n.part(wide, 0, 2, -1)?, n.part(wide, 2, 4, -1)?);
    let (low_b, high_b) = (n.part(b, 0, 2, -1)?, n.part(b, 2, 4, -1)?);
    let (low, high) = (n.max(low_a, low_b)?, n.min(high_a, high_b)?);
    let size = n.minus(high, low)?;
    let zero = n.scalar_like(size, 0.0)?;
    let size = n.max(size, zero)?;
    let (w, h) = (n.part(size, 0, 1, -1)?, n.part(size, 1, 2, -1)?);
    let common = n.times(w, h)?;
    let common = n.squeeze(common, &[-1])?;
    let sum = n.plus(area_a, area_b)?;
    let union = n.minus(sum, common)?;
    let ratio = n.over(common, union)?;
    // Boxes without an area overlap nothing.
    let is_some = n.greater(union, zero)?;
    Ok(n.choose(is_some, ratio, zero)?.into())
}

fn box_decode(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, anchors) = (n.input(0)?, n.input(1)?);
    let stds = ["std0", "std1", "std2", "std3"].map(|name| n.float(name, 1.0));
    let stds = stds.into_iter().collect::<Result<Vec<_>>>()?;
    let clip = n.float("clip", -1.0)?;
    let anchors = if is_corner(n, "format", "center")? { to_centre(n, anchors)? } else { anchors };
    let stds: Vec<f32> = stds.iter().map(|s| *s as f32).collect();
    let stds = n.floats(&[4], &stds)?;
    let stds = n.convert_like(stds, x)?;
    let x = n.times(x, stds)?;
    let (shift, growth) = (n.part(x, 0, 2, -1)?, n.part(x, 2, 4, -1)?);
    let (centre, size) = (n.part(anchors, 0, 2, -1)?, n.part(anchors, 2, 4, -1)?);
    let shift = n.times(shift, size)?;
    let centre = n.plus(centre, shift)?;
    let growth = match clip > 0.0 {
        true => {
            let most = n.scalar_like(growth, clip)?;
            n.min(growth, most)?
        }
        false => growth,
    };
    let growth = n.emit(Exp, &[growth])?;
    let size = n.times(size, growth)?;
    let half = n.times_number(size, 0.5)?;
    let (low, high) = (n.minus(centre, half)?, n.plus(centre, half)?);
    Ok(n.concat(&[low, high], -1)?.into())
}

// Rows of `[.., boxes, numbers]`, best score first; what is suppressed, or scores too little, is -1 and stands behind the others.
fn box_nms(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (overlap, least) = (n.float("overlap_thresh", 0.5)?, n.float("valid_thresh", 0.0)?);
    let (topk, coord) = (n.int("topk", -1)?, n.int("coord_start", 2)?);
    let (score_at, id_at) = (n.int("score_index", 1)?, n.int("id_index", -1)?);
    let (background, force) = (n.int("background_id", -1)?, n.flag("force_suppress", false)?);
    let (corner, out_corner) = (is_corner(n, "in_format", "corner")?, is_corner(n, "out_format", "corner")?);
    let shape = n.shape_of(x)?;
    // All axes in front as one.
    let rows = match n.rank(x) {
        Some(3) => x,
        _ => {
            let tail = n.part(shape, -2, i64::MAX, 0)?;
            let first = n.i64s(&[-1])?;
            let flat = n.concat(&[first, tail], 0)?;
            n.reshaped(x, flat, false)?
        }
    };
    let column = |n: &mut NodeCx<'_>, rows: Value, at: i64| {
        let at = n.i64(at)?;
        n.gather(rows, at, 2)
    };
    let score = column(n, rows, score_at)?;
    let limit = n.scalar_like(score, least)?;
    let mut counts = n.greater(score, limit)?;
    if id_at >= 0 && background >= 0 {
        let id = column(n, rows, id_at)?;
        let background = n.scalar_like(id, background as f64)?;
        let is_thing = n.emit(carafe_ops::compare::NotEqual::default(), &[id, background])?;
        counts = n.and(counts, is_thing)?;
    }
    let nothing = n.scalar_like(score, NOTHING)?;
    let score = n.choose(counts, score, nothing)?;
    let total = n.length(rows, 1)?;
    let k = match topk > 0 {
        true => {
            let topk = n.i64(topk)?;
            n.min(topk, total)?
        }
        false => total,
    };
    let (score, order) = sorted(n, score, k, 1, TopKMode::Max)?;
    let rows = rows_at(n, rows, order)?;
    let boxes = n.part(rows, coord, coord + 4, 2)?;
    let corners = if corner { boxes } else { to_corners(n, boxes)? };
    let classes = match id_at >= 0 && !force {
        true => {
            let id = column(n, rows, id_at)?;
            by_class(n, score, id)?
        }
        false => n.unsqueeze(score, &[1])?,
    };
    let stays = kept(n, corners, classes, overlap)?;
    let converted = match (corner, out_corner) {
        (true, false) => Some(to_centre(n, boxes)?),
        (false, true) => Some(corners),
        _ => None,
    };
    let rows = match converted {
        Some(boxes) => {
            let (front, back) = (n.part(rows, 0, coord, 2)?, n.part(rows, coord + 4, i64::MAX, 2)?);
            n.concat(&[front, boxes, back], 2)?
        }
        None => rows,
    };
    let y = compacted(n, rows, stays)?;
    // As many rows as there were.
    let y = match topk > 0 {
        true => {
            let rest = n.minus(total, k)?;
            let rest = n.reshape(rest, &[1])?;
            behind(n, y, rest)?
        }
        false => y,
    };
    Ok(n.reshaped(y, shape, false)?.into())
}

// Scores `[B, C, N]`, of each box in its class alone. There are as many classes as the ids say when the model runs.
fn by_class(n: &mut NodeCx<'_>, score: Value, id: Value) -> Result<Value> {
    let all = n.i64s(&[0, 1])?;
    let largest = n.emit(ReduceMax { keep_dims: false }, &[id, all])?;
    let largest = n.convert(largest, ElementType::I64)?;
    let (zero, one) = (n.i64(0)?, n.i64(1)?);
    let largest = n.max(largest, zero)?;
    let count = n.plus(largest, one)?;
    let classes = n.count_to(count, ElementType::F32)?;
    let classes = n.convert_like(classes, id)?;
    let classes = n.along(classes, 1, 3)?;
    let (id, score) = (n.unsqueeze(id, &[1])?, n.unsqueeze(score, &[1])?);
    let is_own = n.equal(id, classes)?;
    let nothing = n.scalar_like(score, NOTHING)?;
    n.choose(is_own, score, nothing)
}

// Rows that stay in front, in their order; -1 behind them.
fn compacted(n: &mut NodeCx<'_>, rows: Value, stays: Value) -> Result<Value> {
    let mask = n.convert(stays, ElementType::F32)?;
    let k = n.length(rows, 1)?;
    // Equals keep their order.
    let (mask, order) = sorted(n, mask, k, 1, TopKMode::Max)?;
    let rows = rows_at(n, rows, order)?;
    let stays = n.as_condition(mask)?;
    let stays = n.unsqueeze(stays, &[2])?;
    let none = n.scalar_like(rows, -1.0)?;
    n.choose(stays, rows, none)
}

// Rows of -1 behind those of `[B, N, W]`.
fn behind(n: &mut NodeCx<'_>, rows: Value, count: Value) -> Result<Value> {
    let (batch, width) = (n.size(rows, 0)?, n.size(rows, 2)?);
    let shape = n.concat(&[batch, count, width], 0)?;
    let none = n.scalar_like(rows, -1.0)?;
    let none = n.stretch(none, shape)?;
    n.concat(&[rows, none], 1)
}
