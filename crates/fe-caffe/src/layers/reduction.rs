//! Layers that gather an axis or many into less. ArgMax orders equal values by their positions from the last to the first, other
//! than the operation it becomes.

use super::cx::LayerCx;
use super::shapes::reversed;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::Gather;
use carafe_ops::reduce::{ReduceL1, ReduceMean, ReduceSum};
use carafe_ops::search::TopK;
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[rule("ArgMax", 0, arg_max), rule("Reduction", 0, reduction)];

fn reduction(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let operation: String = n.attr("operation", "SUM".to_string())?;
    let coefficient: f64 = n.attr("coeff", 1.0)?;
    let rank = n.known_rank(x)?;
    let axis: i64 = n.attr("axis", 0)?;
    let axis = if rank == 0 { 0 } else { n.axis(axis, rank)? };
    let axes = n.i64s(&(axis as i64..rank as i64).collect::<Vec<_>>())?;
    let y = match operation.as_str() {
        "SUM" => n.emit(ReduceSum { keep_dims: false }, &[x, axes])?,
        "ASUM" => n.emit(ReduceL1 { keep_dims: false }, &[x, axes])?,
        "SUMSQ" => {
            let squares = n.times(x, x)?;
            n.emit(ReduceSum { keep_dims: false }, &[squares, axes])?
        }
        "MEAN" => n.emit(ReduceMean { keep_dims: false }, &[x, axes])?,
        other => return Err(n.fail(format!("`operation` must be SUM, ASUM, SUMSQ or MEAN, found `{other}`"))),
    };
    Ok(n.times_number(y, coefficient)?.into())
}

fn arg_max(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let k: i64 = n.attr("top_k", 1)?;
    let values_too: bool = n.attr("out_max_val", false)?;
    let rank = n.known_rank(x)?;
    if k < 1 {
        return Err(n.fail(format!("`top_k` must be at least 1, found {k}")));
    }
    if let Some(axis) = n.opt_attr::<i64>("axis")? {
        let axis = n.axis(axis, rank)? as i64;
        let (values, positions) = largest(n, x, axis, k)?;
        return Ok(if values_too { values } else { positions }.into());
    }
    // Over everything but the batch: positions, and behind them the values.
    let rows = n.reshape(x, &[0, 1, -1])?;
    let (values, positions) = largest(n, rows, 2, k)?;
    let mut y = if values_too { n.concat(&[positions, values], 1)? } else { positions };
    if rank > 3 {
        let axes: Vec<i64> = (3..rank as i64).collect();
        y = n.unsqueeze(y, &axes)?;
    }
    Ok(y.into())
}

// The largest values of an axis and their positions, both as floats.
fn largest(n: &mut NodeCx<'_>, x: Value, axis: i64, k: i64) -> Result<(Value, Value)> {
    let from_the_end = reversed(n, x, axis)?;
    let k = n.i64(k)?;
    let op = TopK {
        axis,
        mode: TopKMode::Max,
        sort: TopKSort::Value,
        index_element_type: ElementType::I64,
        stable: true,
    };
    let found = n.emit_all(op, &[from_the_end, k])?;
    let shape = n.shape_of(x)?;
    let (at, zero) = (n.i64(axis)?, n.i64(0)?);
    let size = n.emit(Gather { batch_dims: 0 }, &[shape, at, zero])?;
    let last = n.plus_number(size, -1.0)?;
    let positions = n.minus(last, found[1])?;
    Ok((found[0], n.convert(positions, ElementType::F32)?))
}
