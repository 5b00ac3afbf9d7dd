//! Columns moved, and groups of them brought together.

use super::cx::{columns, numbers, size, times};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_tensor::Tensor;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Copy", 1, permute),
    rule("ElementwiseProductComponent", 1, product),
    rule("FramePoolingComponent", 1, frame_pooling),
    rule("MaxoutComponent", 1, maxout),
    rule("PermuteComponent", 1, permute),
    rule("PnormComponent", 1, pnorm),
    rule("SpliceMaxComponent", 1, splice_max),
    rule("SumBlockComponent", 1, sum_block),
    rule("SumGroupComponent", 1, sum_group),
];

// Columns by their numbers; nnet2 says where each one goes to, the others where it comes from.
fn permute(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["InputDim", "OutputDim"]);
    let x = n.input(0)?;
    let mut order = match n.opt_attr::<Vec<i64>>("Reorder")? {
        Some(goes) => {
            let mut comes = vec![0; goes.len()];
            for (i, to) in goes.iter().enumerate() {
                let slot = usize::try_from(*to).ok().and_then(|to| comes.get_mut(to));
                *slot.ok_or_else(|| n.fail(format!("column {i} goes to {to} of {}", goes.len())))? = i as i64;
            }
            comes
        }
        None => n.attr::<Vec<i64>>("ColumnMap", vec![])?,
    };
    if order.is_empty() {
        order = numbers(n, "ColumnMap")?.iter().map(|x| *x as i64).collect();
    }
    let whole = columns(n, x)?;
    if let Some(wrong) = order.iter().find(|i| !(0..whole).contains(*i)) {
        return Err(n.fail(format!("there is no column {wrong}, the input has {whole}")));
    }
    let order = n.i64s(&order)?;
    Ok(n.gather(x, order, 1)?.into())
}

// Parts of the columns, each as wide as the output.
fn parts(n: &mut NodeCx<'_>) -> Result<(Value, i64, i64)> {
    n.ignore(&["InputDim"]);
    let x = n.input(0)?;
    let dim = size(n, "OutputDim")?;
    let (whole, what) = (columns(n, x)?, "columns of the input");
    Ok((x, times(n, whole, dim, what)?, dim))
}

fn product(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, count, _) = parts(n)?;
    if count > 1 << 12 {
        return Err(n.fail(format!("{count} factors")));
    }
    let mut all = n.split_equally(x, 1, count as usize)?.into_iter();
    let first = all.next().ok_or_else(|| n.fail("there are no columns"))?;
    Ok(all.try_fold(first, |a, b| n.times(a, b))?.into())
}

fn sum_block(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, count, dim) = parts(n)?;
    let x = n.reshape(x, &[0, count, dim])?;
    let y = n.sum_over(x, &[1], false)?;
    let scale: f64 = n.attr("Scale", 1.0)?;
    Ok(if scale == 1.0 { y } else { n.times_number(y, scale)? }.into())
}

// Neighbours: each output has its group of columns.
fn groups(n: &mut NodeCx<'_>) -> Result<Value> {
    let (x, count, dim) = parts(n)?;
    n.reshape(x, &[0, dim, count])
}

fn maxout(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = groups(n)?;
    Ok(n.max_over(x, &[2], false)?.into())
}

fn pnorm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = groups(n)?;
    let p: f64 = n.attr("P", 2.0)?;
    if p == 2.0 {
        let squares = n.times(x, x)?;
        let sum = n.sum_over(squares, &[2], false)?;
        return Ok(n.sqrt(sum)?.into());
    }
    let x = n.abs(x)?;
    if p == f64::INFINITY {
        return Ok(n.max_over(x, &[2], false)?.into());
    }
    if p == 1.0 {
        return Ok(n.sum_over(x, &[2], false)?.into());
    }
    if p.is_nan() || p <= 0.0 {
        return Err(n.fail(format!("the norm of power {p}")));
    }
    let powers = n.power_number(x, p)?;
    let sum = n.sum_over(powers, &[2], false)?;
    Ok(n.power_number(sum, 1.0 / p)?.into())
}

// Its frames stand side by side already.
fn splice_max(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (frames, dim) = (size(n, "NumFrames")?, size(n, "Dim")?);
    let x = n.reshape(x, &[0, frames, dim])?;
    Ok(n.max_over(x, &[1], false)?.into())
}

// Sums of neighbours, as many as the sizes say.
fn sum_group(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (sizes, whole): (Vec<i64>, i64) = (n.required("Sizes")?, columns(n, x)?);
    if sizes.iter().any(|s| *s <= 0) || sizes.iter().copied().reduce(i64::saturating_add) != Some(whole) {
        return Err(n.fail(format!("groups of {sizes:?} do not make {whole} columns")));
    }
    if sizes.iter().all(|s| *s == sizes[0]) {
        let x = n.reshape(x, &[0, sizes.len() as i64, sizes[0]])?;
        return Ok(n.sum_over(x, &[2], false)?.into());
    }
    let (rows, cols) = (sizes.len(), whole as usize);
    if rows.saturating_mul(cols) > 1 << 26 {
        return Err(n.unsupported(format!("{rows} groups of different sizes of {cols} columns")));
    }
    let mut member = vec![0f32; rows * cols];
    let mut at = 0;
    for (row, size) in sizes.iter().enumerate() {
        member[row * cols + at..row * cols + at + *size as usize].fill(1.0);
        at += *size as usize;
    }
    let member = n.constant(Tensor::from_vec(&[rows, cols], member)?)?;
    Ok(n.product(x, member, true)?.into())
}

// Weighted sums of frames that stand side by side.
fn frame_pooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["InputDim", "OutputDim", "Normalize"]);
    let x = n.input(0)?;
    let dim = size(n, "FeatureDim")?;
    let offsets: Vec<i64> = n.required("FrameOffset")?;
    let whole = columns(n, x)?;
    let frames = times(n, whole, dim, "columns of the input")?;
    let x = n.reshape(x, &[0, frames, dim])?;
    let mut pools = vec![];
    for (i, first) in offsets.iter().enumerate() {
        let weights = numbers(n, &format!("FrameWeight{i}"))?;
        let count = weights.len() as i64;
        if *first < 0 || first + count > frames {
            return Err(n.fail(format!("pool {i} takes {count} frames from {first} on, there are {frames}")));
        }
        let part = n.part(x, *first, first + count, 1)?;
        let weights = n.constant(Tensor::from_vec(&[weights.len(), 1], weights)?)?;
        let part = n.times(part, weights)?;
        pools.push(n.sum_over(part, &[1], false)?);
    }
    Ok(n.concat(&pools, 1)?.into())
}
