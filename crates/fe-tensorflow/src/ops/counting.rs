//! How often, or with which weight, each number below a size occurs: in a list, in the rows of a matrix, in rows of
//! different lengths.

use super::common::shapes::{i64_vector, scalar, vector};
use super::indexing::places_of_true;
use super::shape::filled;
use super::strings::{extent, rows_of};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::{Reduction, ScatterElementsUpdate};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Bincount", 0, |n| {
        let (x, size, weights) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let x = i64_vector(n, x)?;
        Ok(counted(n, x, size, weights)?.into())
    }),
    rule("DenseBincount", 0, dense),
    rule("RaggedBincount", 0, |n| {
        let (splits, x, size, weights) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
        let (splits, x) = (i64_vector(n, splits)?, i64_vector(n, x)?);
        let count = n.length(x, 0)?;
        let rows = rows_of(n, splits, count)?;
        let n_rows = extent(n, splits)?.0;
        in_rows(n, x, rows, n_rows, size, weights)
    }),
];

fn dense(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, size, weights) = (n.input(0)?, n.input(1)?, n.input(2)?);
    if n.known_rank(x)? < 2 {
        let x = i64_vector(n, x)?;
        let y = counted(n, x, size, weights)?;
        return binary(n, y);
    }
    let (n_rows, row) = (n.size(x, 0)?, n.length(x, 0)?);
    let rows = n.count_to(row, ElementType::I64)?;
    let rows = n.unsqueeze(rows, &[1])?;
    let shape = n.shape_of(x)?;
    let rows = n.stretch(rows, shape)?;
    let (rows, x) = (i64_vector(n, rows)?, i64_vector(n, x)?);
    in_rows(n, x, rows, n_rows, size, weights)
}

// Each number counts in its row: as one of a list, as many times longer as there are rows.
fn in_rows(n: &mut NodeCx<'_>, x: Value, rows: Value, n_rows: Value, size: Value, weights: Value) -> Result<Outputs> {
    let size = i64_vector(n, size)?;
    let whole = n.times(n_rows, size)?;
    let start = n.times(rows, size)?;
    let at = n.plus(start, x)?;
    let inside = n.less(x, size)?;
    let at = n.choose(inside, at, whole)?;
    let y = counted(n, at, whole, weights)?;
    let shape = n.concat(&[n_rows, size], 0)?;
    let y = n.reshaped(y, shape, false)?;
    binary(n, y)
}

// Whether it occurs at all, where that is asked for.
fn binary(n: &mut NodeCx<'_>, y: Value) -> Result<Outputs> {
    let binary: bool = n.attr("binary_output", false)?;
    let one = n.scalar_like(y, 1.0)?;
    Ok(if binary { n.min(y, one)? } else { y }.into())
}

fn counted(n: &mut NodeCx<'_>, x: Value, size: Value, weights: Value) -> Result<Value> {
    let ty = n.ty(weights);
    let weights = vector(n, weights)?;
    let size = i64_vector(n, size)?;
    let no_weights = n.shape(weights).dims().and_then(|d| d.first()?.get()) == Some(0);
    let weights = if no_weights {
        let (one, shape) = (n.scalar(ty, 1.0)?, n.shape_of(x)?);
        filled(n, one, shape)?
    } else {
        weights
    };
    // Numbers beyond the size have no effect.
    let count = scalar(n, size)?;
    let inside = n.less(x, count)?;
    let at = places_of_true(n, inside)?;
    let (x, weights) = (n.gather(x, at, 0)?, n.gather(weights, at, 0)?);
    let zero = n.scalar(ty, 0.0)?;
    let zeros = filled(n, zero, size)?;
    let first = n.i64(0)?;
    let op = ScatterElementsUpdate { reduction: Reduction::Sum, use_init_val: true };
    n.emit(op, &[zeros, x, weights, first])
}
