//! Non-maximum suppression over one list of boxes.

use super::shapes::scalar;
use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::detection::NonMaxSuppression;
use carafe_ops::detection::non_max_suppression::BoxEncoding;
use carafe_ops::movement::Pad;
use carafe_ops::movement::pad::PadMode;
use carafe_tensor::ElementType;

/// What decides which boxes stay; the thresholds are scalars of floats.
#[derive(Clone, Copy, Debug)]
pub struct Suppression {
    /// Boxes `[N, 4]` by two diagonal corners `y1, x1, y2, x2`.
    pub boxes: Value,
    /// Scores `[N]`.
    pub scores: Value,
    /// The most boxes that are kept.
    pub max_output: Value,
    /// A box that overlaps a better one by more is dropped.
    pub iou_threshold: Value,
    /// Boxes of this score or a lower one are dropped.
    pub score_threshold: Value,
    /// Lowers scores of overlapping boxes instead of dropping them.
    pub soft_sigma: Option<Value>,
}

/// What was kept.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// i32 indices of the kept boxes, the best first.
    pub indices: Value,
    /// Their scores.
    pub scores: Value,
    /// How many there are, an i32 scalar.
    pub count: Value,
}

/// Keeps the best boxes that do not overlap a better one.
pub fn suppress(n: &mut NodeCx<'_>, s: &Suppression, pad_to_max: bool) -> Result<Kept> {
    let float = ElementType::F32;
    let (boxes, scores) = (n.convert(s.boxes, float)?, n.convert(s.scores, float)?);
    let (boxes, scores) = (n.unsqueeze(boxes, &[0])?, n.unsqueeze(scores, &[0, 1])?);
    let max_output = n.convert(s.max_output, ElementType::I64)?;
    let max_output = scalar(n, max_output)?;
    let mut inputs = vec![boxes, scores, max_output];
    for threshold in [Some(s.iou_threshold), Some(s.score_threshold), s.soft_sigma].into_iter().flatten() {
        let threshold = n.convert(threshold, float)?;
        inputs.push(scalar(n, threshold)?);
    }
    let op = NonMaxSuppression {
        box_encoding: BoxEncoding::Corner,
        sort_result_descending: false,
        output_type: ElementType::I32,
    };
    let outputs = n.emit_all(op, &inputs)?;
    // Rows are batch, class and box; of scores only the last column is one.
    let last = n.i64(2)?;
    let last_column = |n: &mut NodeCx<'_>, rows: Value| n.gather(rows, last, 1);
    let (mut indices, mut scores) = (last_column(n, outputs[0])?, last_column(n, outputs[1])?);
    let count = scalar(n, outputs[2])?;
    // Peers give rows of -1 behind the last one.
    let (start, stop) = (n.i64s(&[0])?, n.convert(outputs[2], ElementType::I64)?);
    indices = n.cut(indices, start, stop, 0)?;
    scores = n.cut(scores, start, stop, 0)?;
    if pad_to_max {
        let most = n.reshape(max_output, &[1])?;
        let (before, after) = (n.i64s(&[0])?, n.minus(most, stop)?);
        let (no_index, no_score) = (n.scalar_like(indices, 0.0)?, n.scalar_like(scores, 0.0)?);
        let pad = || Pad { pad_mode: PadMode::Constant };
        indices = n.emit(pad(), &[indices, before, after, no_index])?;
        scores = n.emit(pad(), &[scores, before, after, no_score])?;
    }
    let scores = n.convert(scores, n.ty(s.scores))?;
    Ok(Kept { indices, scores, count })
}
