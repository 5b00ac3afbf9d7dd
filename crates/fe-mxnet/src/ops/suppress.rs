//! Suppression of boxes that overlap better ones, as a mask: of every box whether it is kept.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::detection::NonMaxSuppression;
use carafe_ops::detection::non_max_suppression::BoxEncoding;
use carafe_ops::indexing::{Reduction, ScatterNDUpdate};
use carafe_ops::movement::Broadcast;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_tensor::ElementType;

/// What no box that counts scores.
pub(super) const NOTHING: f64 = -1e30;

/// Of `[B, N, 4]` boxes by two corners and `[B, C, N]` scores, where those below `NOTHING / 2` do not count: `[B, N]`, true for a
/// box that is kept in one of the classes.
pub(super) fn kept(n: &mut NodeCx<'_>, boxes: Value, scores: Value, overlap: f64) -> Result<Value> {
    let most = n.length(boxes, 1)?;
    let (boxes, scores) = (n.convert(boxes, ElementType::F32)?, n.convert(scores, ElementType::F32)?);
    let (overlap, least) = (n.scalar(ElementType::F32, overlap)?, n.scalar(ElementType::F32, NOTHING / 2.0)?);
    let op = NonMaxSuppression {
        box_encoding: BoxEncoding::Corner,
        sort_result_descending: false,
        output_type: ElementType::I64,
    };
    let selected = n.emit_all(op, &[boxes, scores, most, overlap, least])?[0];
    // Batch and box of each, without the class.
    let columns = n.i64s(&[0, 2])?;
    let at = n.gather(selected, columns, 1)?;
    let shape = n.shape_of(boxes)?;
    let shape = n.part(shape, 0, 2, 0)?;
    let zero = n.i64(0)?;
    let zeros = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[zero, shape])?;
    let count = n.size(at, 0)?;
    let one = n.i64(1)?;
    let ones = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[one, count])?;
    let marked = n.emit(ScatterNDUpdate { reduction: Reduction::None }, &[zeros, at, ones])?;
    n.greater(marked, zero)
}
