//! SparseFillEmptyRows: gives every row of a sparse matrix at least one value. Values come out sorted by row and column;
//! a filled row has the default value in column 0.

use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};
use std::collections::BTreeSet;

/// Puts a default value into rows that have none.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    since = 16,
    inputs = "values, dense_shape, indices, default_value",
    outputs = "output_indices, output_values, empty_row_indicator"
)]
pub struct SparseFillEmptyRows;

impl Op for SparseFillEmptyRows {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.same_type(&[0, 3])?;
        let index_ty = cx.same_type(&[1, 2])?;
        for (i, rank) in [(0, 1), (1, 1), (2, 2), (3, 0)] {
            cx.require_rank(i, &[rank])?;
        }
        for i in [1, 2] {
            cx.require_integer(i)?;
            let pair = cx.dim(i, i - 1);
            cx.require(pair.contains(2), || {
                format!("only matrices are supported: {} must hold pairs, found [{}]", cx.port_name(i), cx.shape(i))
            })?;
        }
        let (values, positions) = (cx.dim(0, 0), cx.dim(2, 0));
        let n = values.merge(positions).ok_or_else(|| {
            cx.fail(format!("indices must have a row for each of {values} values, found [{}]", cx.shape(2)))
        })?;
        let rows = cx.dims_value(1).and_then(|v| v.first().copied()).unwrap_or(Dim::ANY);
        cx.require(rows.max().is_none_or(|m| m >= 0), || format!("the number of rows is {rows}"))?;
        let rows = rows.clamp_shape();
        let count = match (cx.ints(2), rows.size()) {
            (Some(indices), Some(rows)) => {
                let present = present_rows(&indices, rows).map_err(|m| cx.fail(m))?;
                n.add(Dim::from(rows - present.len()))
            }
            _ => Dim::range(n.min().max(rows.min()), n.add(rows).max()),
        };
        cx.set(0, index_ty, PartialShape::new([count, Dim::known(2)]));
        cx.set(1, ty, PartialShape::new([count]));
        cx.set(2, ElementType::Boolean, PartialShape::new([rows]));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let rows = cx.out_shape(2)?[0];
        let indices = cx.ints(2)?;
        let mut empty = filled(&[rows], 1u8)?;
        present_rows(&indices, rows).map_err(|m| cx.fail(m))?.into_iter().for_each(|row| empty[row] = 0);
        let n = indices.len() / 2;
        // Row, column and source of each value; the default value sits behind the given ones.
        let mut entries: Vec<(i64, i64, usize)> = (0..n).map(|i| (indices[2 * i], indices[2 * i + 1], i)).collect();
        entries.extend((0..rows).filter(|&r| empty[r] == 1).map(|r| (r as i64, 0, n)));
        entries.sort();
        let mut values = Tensor::zeros(cx.ty(0), &[n + 1])?;
        values.copy_elements(0, cx.input(0), 0, n)?;
        values.copy_elements(n, cx.input(3), 0, 1)?;
        let found = values.select(&[entries.len()], |i| Some(entries[i].2))?;
        let positions: Vec<i64> = entries.iter().flat_map(|&(row, column, _)| [row, column]).collect();
        cx.put(0, &[entries.len(), 2], positions)?;
        cx.set(1, found)?;
        cx.put(2, &[rows], empty)
    }
}

// The rows that have values, each of them within the matrix.
fn present_rows(indices: &[i64], rows: usize) -> Result<BTreeSet<usize>, String> {
    let position = |row: i64| usize::try_from(row).ok().filter(|&r| r < rows);
    let rows_of = indices.chunks(2).map(|pair| pair[0]);
    rows_of.map(|row| position(row).ok_or_else(|| format!("row {row} is outside of {rows} rows"))).collect()
}
