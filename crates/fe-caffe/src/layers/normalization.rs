//! Normalizations. BatchNorm stores sums that a third blob divides, and has no factor and offset of its own: a Scale layer
//! follows, except in forks that store both with it.

use super::cx::LayerCx;
use super::fillers::ignore;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::Softmax;
use carafe_ops::math::Sqrt;
use carafe_ops::normalization::mvn::EpsMode;
use carafe_ops::normalization::{BatchNormInference, Lrn, Mvn};
use carafe_ops::reduce::ReduceMean;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BN", 0, bn),
    rule("BatchNorm", 0, batch_norm),
    rule("LRN", 0, lrn),
    rule("MVN", 0, mvn),
    rule("Softmax", 0, softmax),
    rule("SyncBN", 0, bn),
];

// The number of channels, from the bottom or else from the first blob.
fn channels(n: &mut NodeCx<'_>, x: Value) -> Result<usize> {
    match n.shape(x).dims() {
        // A bottom of one axis counts as one channel.
        Some([_]) => Err(n.unsupported("a bottom of one axis has no channels")),
        Some([_, c, ..]) if c.is_known() => Ok(c.size().unwrap_or(0)),
        _ => Ok(n.blob_tensor(0)?.len()),
    }
}

fn batch_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let epsilon: f32 = n.attr("eps", 1e-5)?;
    let stored: bool = n.attr("use_global_stats", true)?;
    n.ignore(&["moving_average_fraction", "engine", "scale_bias", "use_weight_bias", "scale_term", "bias_term"]);
    ignore(n, "scale_filler");
    ignore(n, "bias_filler");
    let c = channels(n, x)?;
    let blobs = n.n_blobs()?;
    if blobs != 5 {
        n.takes_blobs(3)?;
    }
    let (gamma, beta) = match blobs {
        5 => (n.blob(3, &[c])?, n.blob(4, &[c])?),
        _ => (n.floats(&[c], &vec![1.0; c])?, n.floats(&[c], &vec![0.0; c])?),
    };
    if !stored {
        return of_this_batch(n, x, epsilon, [gamma, beta], blobs == 5);
    }
    let factor = match blobs {
        0..=2 => 1.0,
        _ => match n.blob_tensor(2)?.to_vec::<f32>()?.first() {
            Some(0.0) => 0.0,
            Some(sum) => 1.0 / sum,
            None => return Err(n.fail("blob 2 must hold the divisor and is empty")),
        },
    };
    let mean = scaled(n, 0, c, factor, "mean")?;
    let variance = scaled(n, 1, c, factor, "variance")?;
    Ok(n.emit(BatchNormInference { epsilon }, &[x, gamma, beta, mean, variance])?.into())
}

fn scaled(n: &mut NodeCx<'_>, blob: usize, c: usize, factor: f32, name: &str) -> Result<Value> {
    let v = n.blob(blob, &[c])?;
    if factor == 1.0 {
        return Ok(v);
    }
    let values: Vec<f32> = n.blob_tensor(blob)?.to_vec::<f32>()?.iter().map(|x| x * factor).collect();
    n.named_constant(name, carafe_tensor::Tensor::from_slice(&[c], &values)?)
}

// Mean and variance of what is there: the layer asks for them with `use_global_stats: false` even when it is not trained.
fn of_this_batch(n: &mut NodeCx<'_>, x: Value, eps: f32, affine: [Value; 2], has_affine: bool) -> Result<Outputs> {
    let rank = n.known_rank(x)?;
    let axes: Vec<i64> = (0..rank as i64).filter(|a| *a != 1).collect();
    let axes = n.i64s(&axes)?;
    let mean = n.emit(ReduceMean { keep_dims: true }, &[x, axes])?;
    let centred = n.minus(x, mean)?;
    let squares = n.times(centred, centred)?;
    let variance = n.emit(ReduceMean { keep_dims: true }, &[squares, axes])?;
    let variance = n.plus_number(variance, f64::from(eps))?;
    let deviation = n.emit(Sqrt, &[variance])?;
    let mut y = n.over(centred, deviation)?;
    if has_affine {
        let mut pattern = vec![1, -1];
        pattern.extend(vec![1; rank.saturating_sub(2)]);
        let (gamma, beta) = (n.reshape(affine[0], &pattern)?, n.reshape(affine[1], &pattern)?);
        y = n.times(y, gamma)?;
        y = n.plus(y, beta)?;
    }
    Ok(y.into())
}

// A fork's layer with factor, offset, mean and variance; or with factor and offset of a net that was prepared for running.
fn bn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let epsilon: f32 = n.attr("eps", 1e-5)?;
    let mode: String = n.attr("bn_mode", "LEARN".to_string())?;
    n.ignore(&["momentum", "frozen", "engine", "use_global_stats", "moving_average_fraction"]);
    for filler in ["slope_filler", "bias_filler", "scale_filler", "shift_filler"] {
        ignore(n, filler);
    }
    let c = channels(n, x)?;
    match n.n_blobs()? {
        4 => {
            let blobs = [n.blob(0, &[c])?, n.blob(1, &[c])?, n.blob(2, &[c])?, n.blob(3, &[c])?];
            let [gamma, beta, mean, variance] = blobs;
            Ok(n.emit(BatchNormInference { epsilon }, &[x, gamma, beta, mean, variance])?.into())
        }
        2 if mode == "INFERENCE" => {
            let mut shape = vec![c];
            shape.extend(vec![1; n.known_rank(x)?.saturating_sub(2)]);
            let (scale, shift) = (n.blob(0, &shape)?, n.blob(1, &shape)?);
            let y = n.times(x, scale)?;
            Ok(n.plus(y, shift)?.into())
        }
        0 => Err(n.blob_tensor(0).err().unwrap_or_else(|| n.fail("has no blobs"))),
        blobs => Err(n.fail(format!(
            "has {blobs} blobs; it takes 4 (factor, offset, mean, variance), or 2 with `bn_mode: INFERENCE`"
        ))),
    }
}

fn softmax(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    n.ignore(&["engine"]);
    let axis = n.attr("axis", 1)?;
    Ok(n.emit(Softmax { axis }, &[x])?.into())
}

fn lrn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let region: String = n.attr("norm_region", "ACROSS_CHANNELS".to_string())?;
    let size: i64 = n.attr("local_size", 5)?;
    let (alpha, beta, k): (f32, f32, f32) = (n.attr("alpha", 1.0)?, n.attr("beta", 0.75)?, n.attr("k", 1.0)?);
    n.ignore(&["engine"]);
    if size < 1 || size % 2 == 0 {
        return Err(n.fail(format!("`local_size` must be odd, found {size}")));
    }
    let (axes, bias) = match region.as_str() {
        "ACROSS_CHANNELS" => (vec![1], k),
        // Caffe adds 1 within a channel, whatever `k` says.
        "WITHIN_CHANNEL" => (vec![2, 3], 1.0),
        other => {
            return Err(n.fail(format!("`norm_region` must be ACROSS_CHANNELS or WITHIN_CHANNEL, found `{other}`")));
        }
    };
    let axes = n.i64s(&axes)?;
    Ok(n.emit(Lrn { alpha, beta, bias, size }, &[x, axes])?.into())
}

fn mvn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let across: bool = n.attr("across_channels", false)?;
    let normalize_variance = n.attr("normalize_variance", true)?;
    let eps: f32 = n.attr("eps", 1e-9)?;
    let rank = n.known_rank(x)?;
    let axes: Vec<i64> = (if across { 1 } else { 2 }..rank as i64).collect();
    let axes = n.i64s(&axes)?;
    // Caffe adds `eps` to the deviation, behind the root.
    let op = Mvn { eps, normalize_variance, eps_mode: EpsMode::OutsideSqrt };
    Ok(n.emit(op, &[x, axes])?.into())
}
