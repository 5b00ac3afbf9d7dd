//! Normalizations and softmax.

use super::common::Layout;
use super::convolution::layout;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::{LogSoftmax, Softmax};
use carafe_ops::normalization::{BatchNormInference, Lrn};
use carafe_ops::reduce::ReduceProd;

pub(crate) const RULES: &[StaticRule] = &[
    rule("FusedBatchNorm", 0, |n| batch_norm(n, 5)),
    rule("FusedBatchNormV2", 0, |n| batch_norm(n, 5)),
    rule("FusedBatchNormV3", 0, |n| batch_norm(n, 6)),
    rule("L2Loss", 0, |n| {
        let x = n.input(0)?;
        let square = n.times(x, x)?;
        let axes = super::common::shapes::all_axes(n, x)?;
        let sum = n.put(carafe_ops::reduce::ReduceSum { keep_dims: false }, &[square, axes])?;
        Ok(n.times_number(sum, 0.5)?.into())
    }),
    rule("LRN", 0, lrn),
    rule("LogSoftmax", 0, |n| super::unary::same(n, LogSoftmax { axis: -1 })),
    rule("Softmax", 0, |n| super::unary::same(n, Softmax { axis: -1 })),
];

// y, mean, variance, and as many reserved outputs as follow.
fn batch_norm(n: &mut NodeCx<'_>, outputs: usize) -> Result<Outputs> {
    let epsilon: f64 = n.attr("epsilon", 1e-4)?;
    let training: bool = n.attr("is_training", true)?;
    let factor: f64 = n.attr("exponential_avg_factor", 1.0)?;
    let (x, scale, offset) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (mean, variance) = (n.input(3)?, n.input(4)?);
    let rank = n.known_rank(x)?;
    let n_spatial = rank.checked_sub(2).filter(|s| *s > 0);
    let n_spatial = n_spatial.ok_or_else(|| n.fail(format!("data must have at least 3 axes, found {rank}")))?;
    let layout = layout(n, n_spatial)?;
    // Statistics of half precision are in single precision, and so is the computation.
    let ty = n.ty(x);
    let wide = n.convert_like(x, scale)?;
    let (mean, variance, y) = if training {
        let moments = moments(n, wide, layout, rank)?;
        let y = normalized(n, wide, [scale, offset, moments[0], moments[1]], epsilon, layout)?;
        let mean = n.averaged(mean, moments[0], factor)?;
        (mean, n.averaged(variance, moments[2], factor)?, y)
    } else {
        let y = normalized(n, wide, [scale, offset, mean, variance], epsilon, layout)?;
        (mean, variance, y)
    };
    let mut all = vec![n.convert(y, ty)?, mean, variance, mean, variance];
    if outputs > 5 {
        all.push(n.scalar_like(mean, 0.0)?);
    }
    Ok(all.into())
}

fn normalized(n: &mut NodeCx<'_>, x: Value, of: [Value; 4], epsilon: f64, layout: Layout) -> Result<Value> {
    let n_spatial = n.known_rank(x)?.saturating_sub(2);
    let x = layout.to_first(n, x, n_spatial)?;
    let y = n.emit(BatchNormInference { epsilon: epsilon as f32 }, &[x, of[0], of[1], of[2], of[3]])?;
    layout.from_first(n, y, n_spatial)
}

// Mean, variance, and variance of a population that this is a sample of.
fn moments(n: &mut NodeCx<'_>, x: Value, layout: Layout, rank: usize) -> Result<[Value; 3]> {
    let channels = layout.channels(rank);
    let axes: Vec<i64> = (0..rank).filter(|a| *a != channels).map(|a| a as i64).collect();
    let kept = n.mean_over(x, &axes, true)?;
    let difference = n.minus(x, kept)?;
    let square = n.times(difference, difference)?;
    let (mean, variance) = (n.mean_over(x, &axes, false)?, n.mean_over(square, &axes, false)?);
    let (shape, axes) = (n.shape_of(x)?, n.i64s(&axes)?);
    let sizes = n.gather(shape, axes, 0)?;
    let zero = n.i64(0)?;
    let count = n.emit(ReduceProd { keep_dims: false }, &[sizes, zero])?;
    let one = n.i64(1)?;
    let less = n.minus(count, one)?;
    let less = n.max(less, one)?;
    let (count, less) = (n.convert_like(count, x)?, n.convert_like(less, x)?);
    let correction = n.over(count, less)?;
    Ok([mean, variance, n.times(variance, correction)?])
}

trait Averaged {
    /// The new value alone, or blended into the old one.
    fn averaged(&mut self, old: Value, new: Value, factor: f64) -> Result<Value>;
}

impl Averaged for NodeCx<'_> {
    fn averaged(&mut self, old: Value, new: Value, factor: f64) -> Result<Value> {
        if factor == 1.0 {
            return Ok(new);
        }
        let (old, new) = (self.times_number(old, 1.0 - factor)?, self.times_number(new, factor)?);
        self.plus(old, new)
    }
}

// Channels are normalized over their neighbours; our alpha is that of a mean.
fn lrn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let radius: i64 = n.attr("depth_radius", 5)?;
    let (bias, alpha, beta): (f32, f32, f32) = (n.attr("bias", 1.0)?, n.attr("alpha", 1.0)?, n.attr("beta", 0.5)?);
    if !(0..=i64::from(i32::MAX) / 2 - 1).contains(&radius) {
        return Err(n.fail(format!("attribute `depth_radius` is {radius}, which no window can have")));
    }
    let size = 2 * radius + 1;
    let x = n.input(0)?;
    let layout = Layout::ChannelsLast;
    let x = layout.to_first(n, x, 2)?;
    let axes = n.i64s(&[1])?;
    let y = n.emit(Lrn { alpha: alpha * size as f32, beta, bias, size }, &[x, axes])?;
    Ok(layout.from_first(n, y, 2)?.into())
}
