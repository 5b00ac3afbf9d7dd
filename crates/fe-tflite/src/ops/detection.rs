//! The custom operator that ends networks for object detection: boxes are decoded by their anchors, and the best that do not
//! overlap are given. There are as many rows as are asked for; those behind the last box are zeros.

use crate::graph::CUSTOM;
use carafe_fe_tensorflow::ops::common::nms::{Suppression, suppress};
use carafe_fe_tensorflow::ops::common::search::top_k;
use carafe_fe_tensorflow::ops::common::shapes::scalar;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::detection::NonMaxSuppression;
use carafe_ops::detection::non_max_suppression::BoxEncoding;
use carafe_ops::math::Exp;
use carafe_ops::movement::Pad;
use carafe_ops::movement::pad::PadMode;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[rule_in(CUSTOM, "TFLite_Detection_PostProcess", 1, post_process)];

/// What was found, a row for each box: corners, classes and scores, and how many boxes there are.
struct Found {
    boxes: Value,
    classes: Value,
    scores: Value,
    count: Value,
}

// Encoded boxes [1, N, 4], scores [1, N, classes and perhaps a background in front], anchors [N, 4].
fn post_process(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (encoded, scores, anchors) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let classes: i64 = n.required("num_classes")?;
    let most: i64 = n.required("max_detections")?;
    let each: i64 = n.required("max_classes_per_detection")?;
    let regular: bool = n.attr("use_regular_nms", false)?;
    n.ignore(&["_output_quantized", "_support_output_type_float_in_quantized_op"]);
    let all = n.shape(scores).dims().and_then(|d| d.last()?.get());
    let background = all.map(|all| all - classes).filter(|b| (0..=1).contains(b));
    let background =
        background.ok_or_else(|| n.fail(format!("{classes} classes do not fit scores of [{}]", n.shape(scores))))?;
    if most < 1 || each < 1 || each > classes {
        return Err(n.unsupported(format!("{most} boxes of {each} out of {classes} classes are not supported")));
    }
    let boxes = decoded(n, encoded, anchors)?;
    let scores = n.squeeze(scores, &[0])?;
    let scores = n.part(scores, background, i64::MAX, 1)?;
    let per_class: i64 = n.attr("detections_per_class", 100)?;
    let (found, rows) = match regular {
        true => (class_by_class(n, boxes, scores, most, per_class)?, most),
        false => (all_classes_at_once(n, boxes, scores, most, each)?, most * each),
    };
    let boxes = filled(n, found.boxes, rows, &[1, rows, 4])?;
    let classes = filled(n, found.classes, rows, &[1, rows])?;
    let scores = filled(n, found.scores, rows, &[1, rows])?;
    let count = n.convert(found.count, ElementType::F32)?;
    let count = n.reshape(count, &[1])?;
    Ok(vec![boxes, classes, scores, count].into())
}

// Centres move by parts of the anchor, sizes grow exponentially: corners [N, 4] as y1, x1, y2, x2.
fn decoded(n: &mut NodeCx<'_>, encoded: Value, anchors: Value) -> Result<Value> {
    let encoded = n.squeeze(encoded, &[0])?;
    let column = |n: &mut NodeCx<'_>, v: Value, i: i64| n.part(v, i, i + 1, 1);
    let (mut low, mut high) = (vec![], vec![]);
    for (axis, place, size) in [(0, "y_scale", "h_scale"), (1, "x_scale", "w_scale")] {
        let (place, size): (f64, f64) = (n.required(place)?, n.required(size)?);
        let (anchor, length) = (column(n, anchors, axis)?, column(n, anchors, axis + 2)?);
        let moved = column(n, encoded, axis)?;
        let moved = n.over_number(moved, place)?;
        let moved = n.times(moved, length)?;
        let centre = n.plus(moved, anchor)?;
        let grown = column(n, encoded, axis + 2)?;
        let grown = n.over_number(grown, size)?;
        let grown = n.emit(Exp, &[grown])?;
        let grown = n.times(grown, length)?;
        let half = n.times_number(grown, 0.5)?;
        low.push(n.minus(centre, half)?);
        high.push(n.plus(centre, half)?);
    }
    n.concat(&[low, high].concat(), 1)
}

fn thresholds(n: &mut NodeCx<'_>) -> Result<[Value; 2]> {
    let (iou, score): (f64, f64) = (n.required("nms_iou_threshold")?, n.required("nms_score_threshold")?);
    Ok([n.scalar(ElementType::F32, iou)?, n.scalar(ElementType::F32, score)?])
}

// Boxes compete by their best score, whatever its class; each has its `each` best classes.
fn all_classes_at_once(n: &mut NodeCx<'_>, boxes: Value, scores: Value, most: i64, each: i64) -> Result<Found> {
    let k = n.i64(each)?;
    let (best, classes) = top_k(n, scores, k, ElementType::I32)?;
    let first = n.part(best, 0, 1, 1)?;
    let first = n.reshape(first, &[-1])?;
    let ([iou_threshold, score_threshold], max_output) = (thresholds(n)?, n.i64(most)?);
    let s = Suppression { boxes, scores: first, max_output, iou_threshold, score_threshold, soft_sigma: None };
    let kept = suppress(n, &s, false)?;
    let rows = |n: &mut NodeCx<'_>, v: Value| n.gather(v, kept.indices, 0);
    let (boxes, best, classes) = (rows(n, boxes)?, rows(n, best)?, rows(n, classes)?);
    // A row of a box for each of its classes.
    let times = n.i64s(&[1, each, 1])?;
    let boxes = n.unsqueeze(boxes, &[1])?;
    let boxes = n.emit(carafe_ops::movement::Tile, &[boxes, times])?;
    let boxes = n.reshape(boxes, &[-1, 4])?;
    let (scores, classes) = (n.reshape(best, &[-1])?, n.reshape(classes, &[-1])?);
    Ok(Found { boxes, classes: n.convert(classes, ElementType::F32)?, scores, count: kept.count })
}

// Boxes of a class compete with each other, and of all that are left the best are given.
fn class_by_class(n: &mut NodeCx<'_>, boxes: Value, scores: Value, most: i64, per_class: i64) -> Result<Found> {
    let by_class = n.transpose(scores, &[1, 0])?;
    let (one, by_class) = (n.unsqueeze(boxes, &[0])?, n.unsqueeze(by_class, &[0])?);
    let ([iou, score], per_class) = (thresholds(n)?, n.i64(per_class)?);
    let op = NonMaxSuppression {
        box_encoding: BoxEncoding::Corner,
        sort_result_descending: true,
        output_type: ElementType::I64,
    };
    let outputs = n.emit_all(op, &[one, by_class, per_class, iou, score])?;
    let most = n.i64s(&[most])?;
    let count = n.convert(outputs[2], ElementType::I64)?;
    let count = n.reshape(count, &[1])?;
    let count = n.min(count, most)?;
    let start = n.i64s(&[0])?;
    let (rows, scores) = (n.cut(outputs[0], start, count, 0)?, n.cut(outputs[1], start, count, 0)?);
    let column = |n: &mut NodeCx<'_>, v: Value, i: i64| {
        let i = n.i64(i)?;
        n.gather(v, i, 1)
    };
    let (class, which, scores) = (column(n, rows, 1)?, column(n, rows, 2)?, column(n, scores, 2)?);
    let boxes = n.gather(boxes, which, 0)?;
    let count = scalar(n, count)?;
    Ok(Found { boxes, classes: n.convert(class, ElementType::F32)?, scores, count })
}

// Zeros behind the last row, up to so many.
fn filled(n: &mut NodeCx<'_>, v: Value, rows: i64, shape: &[i64]) -> Result<Value> {
    let rank = n.known_rank(v)?;
    let (length, wanted) = (n.size(v, 0)?, n.i64s(&[rows])?);
    let missing = n.minus(wanted, length)?;
    let (before, others) = (n.i64s(&vec![0; rank])?, n.i64s(&vec![0; rank - 1])?);
    let after = n.concat(&[missing, others], 0)?;
    let zero = n.scalar_like(v, 0.0)?;
    let v = n.emit(Pad { pad_mode: PadMode::Constant }, &[v, before, after, zero])?;
    n.reshape(v, shape)
}
