//! SearchSorted: where each value would be inserted into a sorted row. One row may serve all values, or each row of
//! values has its own.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Insertion positions in the last axis of the sorted sequence.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 15, inputs = "sorted_sequence, values")]
pub struct SearchSorted {
    /// Behind equal elements, otherwise before them.
    #[attr(default = false)]
    pub right_mode: bool,
    /// i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
}

impl Op for SearchSorted {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = self.output_type;
        cx.require(matches!(ty, ElementType::I64 | ElementType::I32), || {
            format!("attribute `output_type` must be i64 or i32, found {ty}")
        })?;
        cx.same_type(&[0, 1])?;
        cx.require_number(0)?;
        cx.require_number(1)?;
        cx.require(cx.rank(0) != Some(0), || "sorted_sequence must not be a scalar".to_string())?;
        let shape = match (cx.shape(0).dims(), cx.shape(1).dims()) {
            (Some(sorted), Some(values)) if sorted.len() > 1 => joined(cx, sorted, values)?,
            (Some(sorted), None) if sorted.len() > 1 => joined(cx, sorted, &vec![Dim::ANY; sorted.len()])?,
            (_, Some(_)) => cx.shape(1).clone(),
            (_, None) => PartialShape::dynamic(),
        };
        cx.set(0, ty, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(1).to_vec();
        let n = cx.shape(0).last().copied().unwrap_or(0);
        // Values that share a row.
        let per_row = if cx.shape(0).len() == 1 { cx.input(1).len() } else { shape.last().copied().unwrap_or(1) };
        let positions = with_number!(cx.ty(0), T => {
            let (sorted, values) = (cx.get::<T>(0)?, cx.get::<T>(1)?);
            let mut positions = Vec::with_capacity(values.len());
            for (r, row_values) in values.chunks(per_row.max(1)).enumerate() {
                let row = &sorted[r * n..(r + 1) * n];
                positions.extend(row_values.iter().map(|v| {
                    (if self.right_mode { row.partition_point(|s| s <= v) } else { row.partition_point(|s| s < v) }) as i64
                }));
            }
            positions
        });
        cx.put(0, &shape, positions)
    }
}

fn joined(cx: &InferCx<'_>, sorted: &[Dim], values: &[Dim]) -> Result<PartialShape> {
    let mismatch = || {
        cx.fail(format!(
            "sorted_sequence and values must agree except on the last axis, found [{}] and [{}]",
            cx.shape(0),
            cx.shape(1)
        ))
    };
    let (Some((_, leading)), Some((&last, rows))) = (sorted.split_last(), values.split_last()) else {
        return Err(mismatch());
    };
    let rows = PartialShape::new(rows.iter().copied()).merge(&PartialShape::new(leading.iter().copied()));
    match rows.as_ref().and_then(|r| r.dims()) {
        Some(rows) => Ok(PartialShape::new(rows.iter().copied().chain([last]))),
        None => Err(mismatch()),
    }
}
