//! Heads of SSD: anchors of a feature map, and the detections of classes, offsets and anchors.

use super::cx::MxCx;
use super::search::{rows_at, sorted};
use super::suppress::{NOTHING, kept};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::math::Exp;
use carafe_ops::search::topk::TopKMode;
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] =
    &[rule("_contrib_MultiBoxDetection", 0, detection), rule("_contrib_MultiBoxPrior", 0, prior)];

// For every pixel boxes of all sizes with the first ratio, and of the first size with the other ratios, in parts of the image.
fn prior(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (sizes, ratios) = (n.floats_of("sizes", &[1.0])?, n.floats_of("ratios", &[1.0])?);
    let (steps, offsets) = (n.floats_of("steps", &[-1.0, -1.0])?, n.floats_of("offsets", &[0.5, 0.5])?);
    let clip = n.flag("clip", false)?;
    let (Some(first), Some(first_ratio)) = (sizes.first().copied(), ratios.first().copied()) else {
        return Err(n.fail("`sizes` and `ratios` must have one number at least"));
    };
    if steps.len() != 2 || offsets.len() != 2 {
        return Err(n.fail("`steps` and `offsets` have two numbers, y and x"));
    }
    // Half sizes; widths still lack the aspect of the feature map.
    let root = |r: f64| r.sqrt();
    let of_sizes = sizes.iter().map(|s| (s * root(first_ratio) / 2.0, s / root(first_ratio) / 2.0));
    let of_ratios = ratios[1..].iter().map(|r| (first * root(*r) / 2.0, first / root(*r) / 2.0));
    let halves: Vec<(f64, f64)> = of_sizes.chain(of_ratios).collect();
    let count = halves.len();
    let widths: Vec<f32> = halves.iter().map(|h| h.0 as f32).collect();
    let heights: Vec<f32> = halves.iter().map(|h| h.1 as f32).collect();
    let height = n.length(x, 2)?;
    let width = n.length(x, 3)?;
    let (fh, fw) = (n.convert(height, ElementType::F32)?, n.convert(width, ElementType::F32)?);
    let aspect = n.over(fh, fw)?;
    let centres = |n: &mut NodeCx<'_>, size: Value, length: Value, step: f64, offset: f64, axis: usize| {
        let ticks = n.count_to(size, ElementType::F32)?;
        let ticks = n.plus_number(ticks, offset)?;
        let at = if step <= 0.0 { n.over(ticks, length)? } else { n.times_number(ticks, step)? };
        n.along(at, axis, 4)
    };
    let cy = centres(n, height, fh, steps[0], offsets[0], 0)?;
    let cx = centres(n, width, fw, steps[1], offsets[1], 1)?;
    let half_w = n.floats(&[1, 1, count, 1], &widths)?;
    let half_w = n.times(half_w, aspect)?;
    let half_h = n.floats(&[1, 1, count, 1], &heights)?;
    // [H, W, count, 1] each, stretched against each other.
    let (one, counts) = (n.i64s(&[1])?, n.i64s(&[count as i64])?);
    let (h1, w1) = (n.reshape(height, &[1])?, n.reshape(width, &[1])?);
    let shape = n.concat(&[h1, w1, counts, one], 0)?;
    let sides = [n.minus(cx, half_w)?, n.minus(cy, half_h)?, n.plus(cx, half_w)?, n.plus(cy, half_h)?];
    let sides = sides.into_iter().map(|s| n.stretch(s, shape)).collect::<Result<Vec<_>>>()?;
    let boxes = n.concat(&sides, 3)?;
    let boxes = n.reshape(boxes, &[1, -1, 4])?;
    let boxes = if clip { n.between(boxes, 0.0, 1.0)? } else { boxes };
    Ok(n.convert_like(boxes, x)?.into())
}

// Rows of class, score and box for every anchor, best score first. Of what is suppressed the class is -1; anchors that see
// nothing are -1 as a whole and stand behind the others.
fn detection(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (probabilities, offsets, anchors) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (clip, least) = (n.flag("clip", true)?, n.float("threshold", 0.01)?);
    let (overlap, force) = (n.float("nms_threshold", 0.5)?, n.flag("force_suppress", false)?);
    let (topk, background) = (n.int("nms_topk", -1)?, n.int("background_id", 0)?);
    let variances = n.floats_of("variances", &[0.1, 0.1, 0.2, 0.2])?;
    if background != 0 {
        return Err(n.unsupported(format!("attribute `background_id` is {background}; supported: 0")));
    }
    if variances.len() != 4 {
        return Err(n.fail(format!("attribute `variances` has {} numbers, four are expected", variances.len())));
    }
    if !(overlap > 0.0 && overlap <= 1.0) {
        return Err(n.unsupported(format!("attribute `nms_threshold` is {overlap}; without suppression rows are not sorted")));
    }
    let boxes = decoded(n, offsets, anchors, &variances, clip)?;
    // The best class of each anchor but for the background.
    let things = n.part(probabilities, 1, i64::MAX, 1)?;
    let one = n.i64(1)?;
    let (score, class) = sorted(n, things, one, 1, TopKMode::Max)?;
    let (score, class) = (n.squeeze(score, &[1])?, n.squeeze(class, &[1])?);
    let limit = n.scalar_like(score, least)?;
    let counts = n.greater_equal(score, limit)?;
    let nothing = n.scalar_like(score, NOTHING)?;
    let score = n.choose(counts, score, nothing)?;
    let total = n.length(score, 1)?;
    let unsorted_score = score;
    let (score, order) = sorted(n, score, total, 1, TopKMode::Max)?;
    let picked = |n: &mut NodeCx<'_>, v: Value| {
            rows_at(n, v, order)
    };
    let unsorted = (boxes, unsorted_score);
    let (boxes, class) = (picked(n, boxes)?, picked(n, class)?);
    // Only the best few take part.
    let ranked = match topk > 0 {
        true => {
            let rank = n.count_to(total, ElementType::I64)?;
            let most = n.i64(topk)?;
            let is_among = n.less(rank, most)?;
            let is_among = n.unsqueeze(is_among, &[0])?;
            n.choose(is_among, score, nothing)?
        }
        false => score,
    };
    let scores = match force {
        true => n.unsqueeze(ranked, &[1])?,
        false => {
            let count = n.length(things, 1)?;
            let classes = n.count_to(count, ElementType::I64)?;
            let classes = n.along(classes, 1, 3)?;
            let (own, ranked) = (n.unsqueeze(class, &[1])?, n.unsqueeze(ranked, &[1])?);
            let is_own = n.equal(own, classes)?;
            n.choose(is_own, ranked, nothing)?
        }
    };
    let stays = kept(n, boxes, scores, overlap)?;
    let none = n.scalar_like(score, -1.0)?;
    let class = n.convert_like(class, score)?;
    let class = n.choose(stays, class, none)?;
    let rows = rows_of(n, class, score, boxes)?;
    if topk < 1 {
        return Ok(rows.into());
    }
    // Behind the best few MXNet leaves what stood there before it sorted: anchors that see something, as they come.
    let (boxes, score) = unsorted;
    let mask = counting(n, score)?;
    let mask = n.convert(mask, ElementType::F32)?;
    let (_, order) = sorted(n, mask, total, 1, TopKMode::Max)?;
    let boxes = rows_at(n, boxes, order)?;
    let score = rows_at(n, score, order)?;
    let class = n.filled_like(score, -1.0)?;
    let behind = rows_of(n, class, score, boxes)?;
    let (rank, most) = (n.count_to(total, ElementType::I64)?, n.i64(topk)?);
    let is_among = n.less(rank, most)?;
    let is_among = n.along(is_among, 1, 3)?;
    Ok(n.choose(is_among, rows, behind)?.into())
}

// Whether an anchor sees anything.
fn counting(n: &mut NodeCx<'_>, score: Value) -> Result<Value> {
    let lowest = n.scalar_like(score, NOTHING / 2.0)?;
    n.greater(score, lowest)
}

fn rows_of(n: &mut NodeCx<'_>, class: Value, score: Value, boxes: Value) -> Result<Value> {
    let counts = counting(n, score)?;
    let counts = n.unsqueeze(counts, &[2])?;
    let (class, score) = (n.unsqueeze(class, &[2])?, n.unsqueeze(score, &[2])?);
    let rows = n.concat(&[class, score, boxes], 2)?;
    let none = n.scalar_like(rows, -1.0)?;
    n.choose(counts, rows, none)
}

// Offsets `[N, 4 A]` to anchors `[1, A, 4]` as boxes `[N, A, 4]`.
fn decoded(n: &mut NodeCx<'_>, offsets: Value, anchors: Value, variances: &[f64], clip: bool) -> Result<Value> {
    let offsets = n.reshape(offsets, &[0, -1, 4])?;
    let variances: Vec<f32> = variances.iter().map(|v| *v as f32).collect();
    let variances = n.floats(&[4], &variances)?;
    let variances = n.convert_like(variances, offsets)?;
    let offsets = n.times(offsets, variances)?;
    let (low, high) = (n.part(anchors, 0, 2, 2)?, n.part(anchors, 2, 4, 2)?);
    let (sum, size) = (n.plus(low, high)?, n.minus(high, low)?);
    let centre = n.times_number(sum, 0.5)?;
    let (shift, growth) = (n.part(offsets, 0, 2, 2)?, n.part(offsets, 2, 4, 2)?);
    let shift = n.times(shift, size)?;
    let centre = n.plus(centre, shift)?;
    let growth = n.emit(Exp, &[growth])?;
    let half = n.times(growth, size)?;
    let half = n.times_number(half, 0.5)?;
    let (low, high) = (n.minus(centre, half)?, n.plus(centre, half)?);
    let boxes = n.concat(&[low, high], 2)?;
    if clip { n.between(boxes, 0.0, 1.0) } else { Ok(boxes) }
}
