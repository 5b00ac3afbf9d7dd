//! Unsqueeze: inserts axes of size 1. The positions are those of the output, also when they count from the end.

use super::axes::{of_rank, reshaped_rows};
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, RowsCx};
use carafe_tensor::{Dim, PartialShape};
use std::collections::BTreeSet;

/// Inserts axes of size 1 at the listed positions of the output.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, axes", moves = "0", shape_inputs = "1")]
pub struct Unsqueeze;

impl Op for Unsqueeze {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_integer(1)?;
        cx.require_rank(1, &[0, 1])?;
        let shape = match (cx.shape(0).dims(), cx.ints(1)) {
            (Some(dims), Some(axes)) => {
                cx.require(!axes.is_empty(), || "the list of axes is empty".to_string())?;
                inserted(dims, &axes)?
            }
            // One axis cannot be listed twice, so the rank is known.
            (Some(dims), None) if cx.shape(1).elements() == Some(1) => of_rank(Dim::from(dims.len() + 1)),
            _ => PartialShape::dynamic(),
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.input(0).reshaped(&cx.out_shape(0)?)?;
        cx.set(0, out)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        reshaped_rows(cx)
    }
}

// Entries are brought into range with the rank that all different entries would give; positions named twice after that
// (0 and -rank) are inserted once.
fn inserted(dims: &[Dim], axes: &[i64]) -> Result<PartialShape> {
    let distinct: BTreeSet<i64> = axes.iter().copied().collect();
    let rank = dims.len() + distinct.len();
    let positions = distinct.iter().map(|&a| normalize_axis(a, rank)).collect::<Result<BTreeSet<usize>>>()?;
    let mut rest = dims.iter().copied();
    Ok(PartialShape::new(
        (0..dims.len() + positions.len())
            .map(|i| if positions.contains(&i) { Dim::known(1) } else { rest.next().unwrap_or(Dim::known(1)) }),
    ))
}
