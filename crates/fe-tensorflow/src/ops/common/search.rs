//! The largest elements and where they stand; of equal ones the first counts.

use super::shapes::scalar;
use carafe_frontend::NodeCx;
use carafe_graph::{Result, Value};
use carafe_ops::search::TopK;
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_tensor::ElementType;

/// The `k` largest elements of the last axis from the largest on, and their indices.
pub fn top_k(n: &mut NodeCx<'_>, x: Value, k: Value, index: ElementType) -> Result<(Value, Value)> {
    let sort = TopKSort::Value;
    let op = TopK { axis: -1, mode: TopKMode::Max, sort, index_element_type: index, stable: true };
    let k = n.convert(k, ElementType::I64)?;
    let k = scalar(n, k)?;
    let outputs = n.emit_all(op, &[x, k])?;
    Ok((outputs[0], outputs[1]))
}

/// Index of the largest (`max`) or smallest element along an axis, which is gone in the result.
pub fn arg(n: &mut NodeCx<'_>, x: Value, axis: i64, max: bool, index: ElementType) -> Result<Value> {
    let mode = if max { TopKMode::Max } else { TopKMode::Min };
    let x = if n.ty(x) == ElementType::Boolean { n.convert(x, ElementType::U8)? } else { x };
    // Indices of other types than these two are converted.
    let wide = if index == ElementType::I32 { ElementType::I32 } else { ElementType::I64 };
    let op = TopK { axis, mode, sort: TopKSort::Value, index_element_type: wide, stable: true };
    let one = n.i64(1)?;
    let outputs = n.emit_all(op, &[x, one])?;
    let at = n.squeeze(outputs[1], &[axis])?;
    n.convert(at, index)
}
