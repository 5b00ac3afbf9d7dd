//! Products with stored matrices.

use super::cx::{array, columns, numbers, opt_array, shape, size, times};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::Sigmoid;
use carafe_ops::math::Log;
use carafe_tensor::Tensor;

pub(crate) const RULES: &[StaticRule] = &[
    rule("AffineComponent", 1, affine),
    rule("AffineComponentPreconditioned", 1, affine),
    rule("AffineComponentPreconditionedOnline", 1, affine),
    rule("AffineTransform", 1, affine),
    rule("BlockAffineComponent", 1, block_affine),
    rule("BlockAffineComponentPreconditioned", 1, block_affine),
    rule("DctComponent", 1, dct),
    rule("FixedAffineComponent", 1, affine),
    rule("FixedLinearComponent", 1, |n| linear(n, "CuMatrix")),
    rule("KlHmm", 1, kl_hmm),
    rule("LinearComponent", 1, |n| linear(n, "Params")),
    rule("LinearTransform", 1, |n| linear(n, "Params")),
    rule("NaturalGradientAffineComponent", 1, affine),
    rule("NaturalGradientRepeatedAffineComponent", 1, repeated),
    rule("Rbm", 1, rbm),
    rule("RepeatedAffineComponent", 1, repeated),
    rule("TdnnComponent", 1, tdnn),
];

/// Sizes, which the matrix has already.
const SIZES: &[&str] = &["Dim", "InputDim", "OutputDim"];

fn product(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let weights = array(n, "LinearParams")?;
    let y = n.product(x, weights, true)?;
    match opt_array(n, "BiasParams")? {
        Some(bias) => n.plus(y, bias),
        None => Ok(y),
    }
}

fn affine(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    let x = n.input(0)?;
    Ok(product(n, x)?.into())
}

// Its frames stand side by side already.
fn tdnn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["TimeOffsets"]);
    affine(n)
}

fn linear(n: &mut NodeCx<'_>, field: &str) -> Result<Outputs> {
    n.ignore(SIZES);
    let x = n.input(0)?;
    let weights = array(n, field)?;
    Ok(n.product(x, weights, true)?.into())
}

// The same matrix for each of some blocks of columns.
fn repeated(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    let x = n.input(0)?;
    let repeats = size(n, "NumRepeats")?;
    let weights = shape(n, "LinearParams")?;
    let &[rows, cols] = &weights[..] else { return Err(n.fail("`<LinearParams>` must be a matrix")) };
    let blocks = n.reshape(x, &[0, repeats, cols as i64])?;
    let y = product(n, blocks)?;
    Ok(n.reshape(y, &[0, repeats * rows as i64])?.into())
}

// A matrix of its own for each block of columns; they are stored on top of each other.
fn block_affine(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    let x = n.input(0)?;
    let blocks = size(n, "NumBlocks")?;
    let stored = shape(n, "LinearParams")?;
    let &[rows, cols] = &stored[..] else { return Err(n.fail("`<LinearParams>` must be a matrix")) };
    let each = times(n, rows as i64, blocks, "rows of `<LinearParams>`")?;
    let weights = array(n, "LinearParams")?;
    let weights = n.reshape(weights, &[blocks, each, cols as i64])?;
    let x = n.reshape(x, &[0, blocks, 1, cols as i64])?;
    let y = n.product(x, weights, true)?;
    let y = n.reshape(y, &[0, blocks * each])?;
    let bias = array(n, "BiasParams")?;
    Ok(n.plus(y, bias)?.into())
}

// Rows of cosines over each block of columns. Reordered, a block takes its columns from all over the row.
fn dct(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (dim, block) = (size(n, "Dim")?, size(n, "DctDim")?);
    let keep = match n.attr::<i64>("DctKeepDim", 0)? {
        0 => block,
        keep => keep,
    };
    if !(1..=block).contains(&keep) || block * keep > 1 << 24 {
        return Err(n.fail(format!("{keep} of {block} rows of cosines cannot be kept")));
    }
    let blocks = times(n, dim, block, "columns")?;
    let (size, root) = (block as f64, |k: i64| (if k == 0 { 1.0 } else { 2.0 } / block as f64).sqrt());
    let cosines = (0..keep).flat_map(|k| {
        (0..block).map(move |i| (root(k) * (std::f64::consts::PI / size * (i as f64 + 0.5) * k as f64).cos()) as f32)
    });
    let cosines: Vec<f32> = cosines.collect();
    let cosines = n.constant(Tensor::from_vec(&[keep as usize, block as usize], cosines)?)?;
    if !n.attr("Reorder", false)? {
        let x = n.reshape(x, &[0, blocks, block])?;
        let y = n.product(x, cosines, true)?;
        return Ok(n.reshape(y, &[0, blocks * keep])?.into());
    }
    // Kaldi's reordering, element by element: `j * to + b` is taken from `b * from + j`.
    let order = |from: i64, to: i64| {
        let mut list = vec![0i64; (from * to) as usize];
        (0..to).for_each(|b| (0..from).for_each(|j| list[(j * to + b) as usize] = b * from + j));
        list
    };
    if keep != block {
        return Err(n.unsupported("a reordered DctComponent keeps all of its rows"));
    }
    let (there, back) = (order(blocks, block), order(block, blocks));
    let there = n.i64s(&there)?;
    let x = n.gather(x, there, 1)?;
    let x = n.reshape(x, &[0, blocks, block])?;
    let y = n.product(x, cosines, true)?;
    let y = n.reshape(y, &[0, dim])?;
    let back = n.i64s(&back)?;
    Ok(n.gather(y, back, 1)?.into())
}

// Hidden units of a restricted Boltzmann machine.
fn rbm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    n.ignore(&["VisibleType"]);
    let x = n.input(0)?;
    let y = product(n, x)?;
    match n.required::<String>("HiddenType")?.as_str() {
        "bern" => Ok(n.emit(Sigmoid, &[y])?.into()),
        "gauss" => Ok(y.into()),
        other => Err(n.fail(format!("hidden units must be `bern` or `gauss`, found `{other}`"))),
    }
}

// The divergence of the input from each stored distribution, with its sign turned.
fn kl_hmm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(SIZES);
    let x = n.input(0)?;
    let (stats, cols) = (numbers(n, "Stats")?, columns(n, x)?.max(1) as usize);
    let rows = stats.chunks(cols).flat_map(|row| {
        let sum = row.iter().sum::<f32>().max(1e-20);
        row.iter().map(move |q| -(q / sum).max(1e-20).ln()).collect::<Vec<f32>>()
    });
    let rows: Vec<f32> = rows.collect();
    let weights = n.constant(Tensor::from_vec(&[rows.len() / cols, cols], rows)?)?;
    let floor = n.scalar_like(x, 1e-20)?;
    let known = n.max(x, floor)?;
    let log = n.emit(Log, &[known])?;
    let entropy = n.times(x, log)?;
    let entropy = n.sum_over(entropy, &[1], true)?;
    let cross = n.product(x, weights, true)?;
    let sum = n.plus(cross, entropy)?;
    Ok(n.times_number(sum, -1.0)?.into())
}
