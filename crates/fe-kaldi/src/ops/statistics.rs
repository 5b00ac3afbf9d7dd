//! Statistics of frames, as x-vectors are made of. Frames are added up by descriptors.

use super::cx::{columns, times};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::math::Log;

pub(crate) const RULES: &[StaticRule] = &[
    rule("StatisticsExtractionComponent", 1, extraction),
    rule("StatisticsPoolingComponent", 1, pooling),
];

// A count of one, the frame, and its squares.
fn extraction(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["InputDim", "InputPeriod", "OutputPeriod"]);
    let x = n.input(0)?;
    let first = n.part(x, 0, 1, 1)?;
    let none = n.times_number(first, 0.0)?;
    let one = n.plus_number(none, 1.0)?;
    let mut parts = vec![one, x];
    // Kaldi spells it so.
    if n.attr("IncludeVarinance", true)? {
        parts.push(n.times(x, x)?);
    }
    Ok(n.concat(&parts, 1)?.into())
}

// Means, and standard deviations of means of squares.
fn pooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["InputDim", "InputPeriod", "LeftContext", "RightContext"]);
    let x = n.input(0)?;
    let whole = columns(n, x)?;
    let (count, sums) = (n.part(x, 0, 1, 1)?, n.part(x, 1, whole, 1)?);
    // Before the first frame there is nothing to divide by.
    let one = n.scalar_like(count, 1.0)?;
    let count = n.max(count, one)?;
    let mut means = n.over(sums, count)?;
    if n.attr("OutputStddevs", false)? {
        let dim = times(n, whole - 1, 2, "columns behind the count")?;
        let (mean, squares) = (n.part(means, 0, dim, 1)?, n.part(means, dim, 2 * dim, 1)?);
        let square = n.times(mean, mean)?;
        let variance = n.minus(squares, square)?;
        let floor = n.attr::<f64>("VarianceFloor", 1e-10)?;
        let floor = n.scalar_like(variance, floor)?;
        let variance = n.max(variance, floor)?;
        let deviation = n.sqrt(variance)?;
        means = n.concat(&[mean, deviation], 1)?;
    } else {
        n.ignore(&["VarianceFloor"]);
    }
    let logs: i64 = n.attr("NumLogCountFeatures", 0)?;
    if !(0..=1 << 12).contains(&logs) {
        return Err(n.fail(format!("{logs} columns for the count")));
    }
    if logs > 0 {
        let log = n.emit(Log, &[count])?;
        let mut parts = vec![log; logs as usize];
        parts.push(means);
        means = n.concat(&parts, 1)?;
    }
    Ok(means.into())
}
