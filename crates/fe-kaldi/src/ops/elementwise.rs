//! Numbers added to columns and multiplied with them, and what does nothing outside of training.

use super::cx::{array, columns, numbers, size, times};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_tensor::Tensor;

pub(crate) const RULES: &[StaticRule] = &[
    rule("AddShift", 1, |n| shift(n, "Bias")),
    rule("AdditiveNoiseComponent", 1, nothing),
    rule("BackpropTruncationComponent", 1, scale),
    rule("ClipGradientComponent", 1, nothing),
    rule("ConstantComponent", 1, constant),
    rule("ConstantFunctionComponent", 1, constant),
    rule("Dropout", 1, nothing),
    rule("DropoutComponent", 1, nothing),
    rule("DropoutMaskComponent", 1, dropout_mask),
    rule("FixedBiasComponent", 1, |n| shift(n, "Bias")),
    rule("FixedScaleComponent", 1, |n| factor(n, "Scales")),
    rule("GeneralDropoutComponent", 1, nothing),
    rule("NaturalGradientPerElementScaleComponent", 1, |n| factor(n, "Params")),
    rule("NoOpComponent", 1, nothing),
    rule("PerElementOffsetComponent", 1, |n| shift(n, "Offsets")),
    rule("PerElementScaleComponent", 1, |n| factor(n, "Params")),
    rule("Rescale", 1, |n| factor(n, "Scales")),
    rule("ScaleAndOffsetComponent", 1, scale_and_offset),
    rule("ScaleComponent", 1, scale),
    rule("SpecAugmentTimeMaskComponent", 1, nothing),
];

/// Sizes, which the input has already.
const SIZES: &[&str] = &["BlockDim", "Dim", "InputDim", "OutputDim"];

// Dropout and its like are off when a model is used.
fn nothing(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    n.ignore(&["Continuous", "DropoutProportion", "DropoutRate", "DropoutRetention", "DropoutScale", "Stddev", "TestMode"]);
    n.ignore(&["TimeMaskMaxFrames", "ZeroedProportion"]);
    Ok(n.input(0)?.into())
}

fn scale(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    let (x, by) = (n.input(0)?, n.attr::<f64>("Scale", 1.0)?);
    Ok(if by == 1.0 { x } else { n.times_number(x, by)? }.into())
}

// As many numbers as there are columns: a vector that is shorter repeats itself.
fn for_columns(n: &mut NodeCx<'_>, x: Value, values: Vec<f32>) -> Result<Value> {
    let whole = columns(n, x)?;
    let count = times(n, whole, values.len() as i64, "columns of the input")?;
    let tiled = if count == 1 { values } else { values.repeat(count as usize) };
    n.constant(Tensor::from_vec(&[tiled.len()], tiled)?)
}

fn shift(n: &mut NodeCx<'_>, field: &str) -> Result<Outputs> {
    n.ignore(SIZES);
    let x = n.input(0)?;
    let values = numbers(n, field)?;
    let by = for_columns(n, x, values)?;
    Ok(n.plus(x, by)?.into())
}

fn factor(n: &mut NodeCx<'_>, field: &str) -> Result<Outputs> {
    n.ignore(SIZES);
    let x = n.input(0)?;
    let values = numbers(n, field)?;
    let by = for_columns(n, x, values)?;
    Ok(n.times(x, by)?.into())
}

/// Factors are no nearer to zero than this.
const LEAST_SCALE: f32 = 1e-4;

fn scale_and_offset(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    let x = n.input(0)?;
    let away = |s: f32| if s.abs() >= LEAST_SCALE { s } else { LEAST_SCALE.copysign(if s < 0.0 { -1.0 } else { 1.0 }) };
    let scales = numbers(n, "Scales")?.into_iter().map(away).collect();
    let offsets = numbers(n, "Offsets")?;
    let scales = for_columns(n, x, scales)?;
    let y = n.times(x, scales)?;
    let offsets = for_columns(n, x, offsets)?;
    Ok(n.plus(y, offsets)?.into())
}

// The same row for every stream.
fn constant(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    let like = n.input(0)?;
    let row = array(n, "Output")?;
    let row = n.reshape(row, &[1, -1])?;
    let (streams, one) = (n.size(like, 0)?, n.i64s(&[1])?);
    let shape = n.concat(&[streams, one], 0)?;
    Ok(n.stretch(row, shape)?.into())
}

fn dropout_mask(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["TestMode"]);
    let like = n.input(0)?;
    let dim = size(n, "OutputDim")?;
    let share: f32 = n.attr("DropoutProportion", 0.0)?;
    // What is kept on average; a mask of all values between is one on average.
    let kept = if n.attr("Continuous", false)? { 1.0 } else { 1.0 - share };
    let (kept, streams, width) = (n.scalar_like(like, kept.into())?, n.size(like, 0)?, n.i64s(&[dim])?);
    let shape = n.concat(&[streams, width], 0)?;
    Ok(n.stretch(kept, shape)?.into())
}
