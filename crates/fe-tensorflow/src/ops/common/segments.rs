//! Rows of data folded by segment.

use super::shapes::scalar;
use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::{Reduction, ScatterElementsUpdate};
use carafe_tensor::ElementType;

/// How rows of a segment are folded, and what a segment without rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The sum; 0 of none.
    Sum,
    /// The product; 1 of none.
    Prod,
    /// The largest; the lowest number of the type of none.
    Max,
    /// The smallest; the greatest number of the type of none.
    Min,
}

/// Folds the rows of `data` that have one number in `ids`, whose axes are the first of `data`'s. Rows of a negative number
/// have no effect. The result has `count` rows.
pub fn unsorted(n: &mut NodeCx<'_>, data: Value, ids: Value, count: Value, fold: Fold) -> Result<Value> {
    let ids = n.convert(ids, ElementType::I64)?;
    let count = n.convert(count, ElementType::I64)?;
    let count = scalar(n, count)?;
    // One row for each id.
    let shape = n.shape_of(data)?;
    let ids_rank = n.known_rank(ids)? as i64;
    let rest = n.part(shape, ids_rank, i64::MAX, 0)?;
    let all = n.i64s(&[-1])?;
    let ids = n.reshaped(ids, all, false)?;
    let length = n.shape_of(ids)?;
    let rows = n.concat(&[length, rest], 0)?;
    let data = n.reshaped(data, rows, false)?;
    // What has no segment goes to a further one, which is dropped.
    let zero = n.i64(0)?;
    let none = n.less(ids, zero)?;
    let ids = n.choose(none, count, ids)?;
    let one = n.i64s(&[1])?;
    let count = n.reshape(count, &[1])?;
    let more = n.plus(count, one)?;
    let shape = n.concat(&[more, rest], 0)?;
    let ty = n.ty(data);
    let (start, reduction) = match fold {
        Fold::Sum => (0.0, Reduction::Sum),
        Fold::Prod => (1.0, Reduction::Prod),
        Fold::Max => (lowest(ty), Reduction::Max),
        Fold::Min => (greatest(ty), Reduction::Min),
    };
    let start = n.scalar_like(data, start)?;
    let start = n.stretch(start, shape)?;
    let behind: Vec<i64> = (1..=n.known_rank(data)? as i64 - 1).collect();
    let ids = if behind.is_empty() { ids } else { n.with_axes(ids, &behind)? };
    let ids = n.stretch(ids, rows)?;
    let op = ScatterElementsUpdate { reduction, use_init_val: true };
    let folded = n.emit(op, &[start, ids, data, zero])?;
    let first = n.i64s(&[0])?;
    n.cut(folded, first, count, 0)
}

/// The lowest finite number of a type, as far as f64 has it.
pub fn lowest(ty: ElementType) -> f64 {
    match ty {
        ElementType::I8 => i8::MIN as f64,
        ElementType::I16 => i16::MIN as f64,
        ElementType::I32 => i32::MIN as f64,
        ElementType::I64 => i64::MIN as f64,
        ElementType::F16 => -65504.0,
        ElementType::Bf16 => -3.389_531_389_251_535_5e38,
        ElementType::F64 => f64::MIN,
        ElementType::F32 => f64::from(f32::MIN),
        _ => 0.0,
    }
}

/// The greatest finite number of a type, as far as f64 has it.
pub fn greatest(ty: ElementType) -> f64 {
    match ty {
        ElementType::U8 => u8::MAX as f64,
        ElementType::U16 => u16::MAX as f64,
        ElementType::U32 => u32::MAX as f64,
        ElementType::U64 => u64::MAX as f64,
        ElementType::I8 => i8::MAX as f64,
        ElementType::I16 => i16::MAX as f64,
        ElementType::I32 => i32::MAX as f64,
        ElementType::I64 => i64::MAX as f64,
        _ => -lowest(ty),
    }
}
