//! Rows brought to a size, and columns to a mean and a variance.

use super::cx::{columns, numbers, times};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::math::Log;
use carafe_tensor::Tensor;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BatchNormComponent", 1, batch_norm),
    rule("LengthNormComponent", 1, length_norm),
    rule("NormalizeComponent", 1, normalize),
];

/// The mean square is no smaller: 2 to the power of -66.
const FLOOR: f64 = 1.355_252_715_606_880_5e-20;

// By the statistics of training, also in a model that was saved while it was trained.
fn batch_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["TestMode", "Dim", "BlockDim"]);
    let x = n.input(0)?;
    let (epsilon, rms): (f64, f64) = (n.attr("Epsilon", 1e-3)?, n.attr("TargetRms", 1.0)?);
    let (mean, variance) = (numbers(n, "StatsMean")?, numbers(n, "StatsVar")?);
    if mean.len() != variance.len() {
        return Err(n.fail(format!("{} means and {} variances", mean.len(), variance.len())));
    }
    let scale: Vec<f64> = variance.iter().map(|v| rms / (f64::from(*v).max(0.0) + epsilon).sqrt()).collect();
    let shift: Vec<f32> = scale.iter().zip(&mean).map(|(s, m)| (-s * f64::from(*m)) as f32).collect();
    let scale: Vec<f32> = scale.iter().map(|s| *s as f32).collect();
    // The same for each block of columns.
    let whole = columns(n, x)?;
    let blocks = times(n, whole, scale.len() as i64, "columns of the input")? as usize;
    let row = |values: Vec<f32>| Tensor::from_vec(&[values.len() * blocks], values.repeat(blocks));
    let (scale, shift) = (n.constant(row(scale)?)?, n.constant(row(shift)?)?);
    let y = n.times(x, scale)?;
    Ok(n.plus(y, shift)?.into())
}

// Each block of columns gets the root of its mean square to the target.
fn normalize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["Dim", "InputDim"]);
    let x = n.input(0)?;
    let rms: f64 = n.attr("TargetRms", 1.0)?;
    let with_log: bool = n.attr("AddLogStddev", false)?;
    let whole = columns(n, x)?;
    let block: i64 = n.attr("BlockDim", whole)?;
    let blocks = times(n, whole, block, "columns of the input")?;
    let rows = n.reshape(x, &[0, blocks, block])?;
    let squares = n.times(rows, rows)?;
    let mean = n.mean_over(squares, &[2], true)?;
    let mean = n.times_number(mean, 1.0 / (rms * rms))?;
    let floor = n.scalar_like(mean, FLOOR)?;
    let mean = n.max(mean, floor)?;
    let root = n.sqrt(mean)?;
    let mut y = n.over(rows, root)?;
    let mut dim = whole;
    if with_log {
        let log = n.emit(Log, &[root])?;
        let log = n.plus_number(log, rms.ln())?;
        y = n.concat(&[y, log], 2)?;
        dim += blocks;
    }
    Ok(n.reshape(y, &[0, dim])?.into())
}

fn length_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["InputDim", "OutputDim"]);
    let x = n.input(0)?;
    let squares = n.times(x, x)?;
    let sum = n.sum_over(squares, &[1], true)?;
    let length = n.sqrt(sum)?;
    Ok(n.over(x, length)?.into())
}
