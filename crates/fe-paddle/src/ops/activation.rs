//! Activations with parameters.

use super::slots::Slots;
use super::unary::{composed, same};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::gelu::GeluApproximation;
use carafe_ops::activation::{
    Clamp, Elu, Gelu, HSwish, HardSigmoid, LogSoftmax, Mish, PRelu, Selu, SoftPlus, Softmax, Swish,
};
use carafe_ops::math::{Exp, Log, Tanh};
use carafe_ops::reduce::ReduceMax;

pub(super) const RULES: &[StaticRule] = &[
    rule("brelu", 0, |n| {
        let op = Clamp { min: n.attr("t_min", 0.0)?, max: n.attr("t_max", 24.0)? };
        same(n, op)
    }),
    rule("celu", 0, celu),
    rule("elu", 0, |n| {
        let op = Elu { alpha: n.attr("alpha", 1.0)? };
        same(n, op)
    }),
    rule("gelu", 0, gelu),
    rule("hard_shrink", 0, hard_shrink),
    rule("hard_sigmoid", 0, hard_sigmoid),
    rule("hard_swish", 0, hard_swish),
    rule("hard_swish", 2_005_000, |n| {
        // From 2.5 on the numbers are fixed, whatever the attributes say.
        n.ignore(&["threshold", "scale", "offset"]);
        same(n, HSwish)
    }),
    rule("leaky_relu", 0, leaky_relu),
    rule("log_softmax", 0, log_softmax),
    rule("maxout", 0, maxout),
    rule("mish", 0, |n| {
        n.ignore(&["threshold", "lambda"]);
        same(n, Mish)
    }),
    rule("prelu", 0, prelu),
    rule("relu6", 0, |n| {
        let op = Clamp { min: 0.0, max: n.attr("threshold", 6.0)? };
        same(n, op)
    }),
    rule("rrelu", 0, rrelu),
    rule("selu", 0, selu),
    rule("soft_relu", 0, |n| {
        let threshold: f64 = n.attr("threshold", 40.0)?;
        composed(n, |n, x| {
            let y = n.between(x, -threshold, threshold)?;
            n.put(SoftPlus, &[y])
        })
    }),
    rule("softmax", 0, softmax),
    rule("softplus", 0, softplus),
    rule("softshrink", 0, softshrink),
    rule("stanh", 0, |n| {
        let (a, b): (f64, f64) = (n.attr("scale_a", 0.67)?, n.attr("scale_b", 1.7159)?);
        composed(n, |n, x| {
            let y = n.times_number(x, a)?;
            let y = n.put(Tanh, &[y])?;
            n.times_number(y, b)
        })
    }),
    rule("swiglu", 0, swiglu),
    rule("swish", 0, swish),
    rule("thresholded_relu", 0, thresholded_relu),
];

// max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).
fn celu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let alpha: f64 = n.attr("alpha", 1.0)?;
    composed(n, |n, x| {
        let y = n.over_number(x, alpha)?;
        let y = n.put(Elu { alpha: 1.0 }, &[y])?;
        n.times_number(y, alpha)
    })
}

fn gelu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let approximation_mode = match n.attr("approximate", false)? {
        true => GeluApproximation::Tanh,
        false => GeluApproximation::Erf,
    };
    same(n, Gelu { approximation_mode })
}

fn hard_shrink(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let threshold: f64 = n.attr("threshold", 0.5)?;
    composed(n, |n, x| {
        let size = n.abs(x)?;
        let (limit, zero) = (n.number(x, threshold)?, n.number(x, 0.0)?);
        let is_large = n.greater(size, limit)?;
        n.choose(is_large, x, zero)
    })
}

fn hard_sigmoid(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (slope, offset): (f64, f64) = (n.attr("slope", 0.2)?, n.attr("offset", 0.5)?);
    composed(n, |n, x| {
        let (slope, offset) = (n.number(x, slope)?, n.number(x, offset)?);
        n.put(HardSigmoid, &[x, slope, offset])
    })
}

// x * min(max(0, x + offset), threshold) / scale.
fn hard_swish(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (threshold, scale): (f64, f64) = (n.attr("threshold", 6.0)?, n.attr("scale", 6.0)?);
    let offset: f64 = n.attr("offset", 3.0)?;
    if (threshold, scale, offset) == (6.0, 6.0, 3.0) {
        return same(n, HSwish);
    }
    composed(n, |n, x| {
        let y = n.plus_number(x, offset)?;
        let y = n.between(y, 0.0, threshold)?;
        let y = n.times(x, y)?;
        n.over_number(y, scale)
    })
}

fn leaky_relu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let alpha: f64 = n.attr("alpha", 0.02)?;
    composed(n, |n, x| {
        let slope = n.number(x, alpha)?;
        let slope = n.reshape(slope, &[1])?;
        n.put(PRelu, &[x, slope])
    })
}

fn log_softmax(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis = n.attr("axis", -1)?;
    same(n, LogSoftmax { axis })
}

// The largest of each group of channels.
fn maxout(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let groups: i64 = n.attr("groups", 1)?;
    let axis: i64 = n.attr("axis", 1)?;
    composed(n, |n, x| {
        let rank = n.known_rank(x)?;
        let axis = n.axis(axis, rank)?;
        let channels = n.shape(x).dim(axis).get();
        let channels = channels.ok_or_else(|| n.unsupported("the number of channels must be known"))?;
        if groups <= 0 || channels % groups != 0 {
            return Err(n.fail(format!("{channels} channels cannot be cut into groups of {groups}")));
        }
        let y = split_axis(n, x, axis, channels / groups, groups)?;
        let at = n.i64s(&[axis as i64 + 1])?;
        n.put(ReduceMax { keep_dims: false }, &[y, at])
    })
}

/// An axis as two of these sizes.
pub(super) fn split_axis(n: &mut NodeCx<'_>, x: Value, axis: usize, first: i64, second: i64) -> Result<Value> {
    let rank = n.known_rank(x)?;
    let shape = n.shape_of(x)?;
    let before = n.part(shape, 0, axis as i64, 0)?;
    let after = n.part(shape, axis as i64 + 1, rank as i64, 0)?;
    let middle = n.i64s(&[first, second])?;
    let shape = n.concat(&[before, middle, after], 0)?;
    n.reshaped(x, shape, false)
}

// One slope for all, for each channel, or for each element of a sample.
fn prelu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, slope) = (n.slot("X")?, n.slot("Alpha")?);
    let mode: String = n.attr("mode", "all".to_string())?;
    let is_last = n.is_channels_last("data_format")?;
    let rank = n.known_rank(x)?;
    let y = match mode.as_str() {
        "all" => {
            let slope = n.reshape(slope, &[1])?;
            n.put(PRelu, &[x, slope])?
        }
        "channel" if !is_last => {
            let slope = n.reshape(slope, &[-1])?;
            n.put(PRelu, &[x, slope])?
        }
        "channel" | "element" => {
            let slope = match mode.as_str() {
                "channel" => n.reshape(slope, &[-1])?,
                _ if n.rank(slope) == Some(rank) => slope,
                _ => n.unsqueeze(slope, &[0])?,
            };
            let zero = n.number(x, 0.0)?;
            let (positive, negative) = (n.max(x, zero)?, n.min(x, zero)?);
            let negative = n.times(negative, slope)?;
            n.plus(positive, negative)?
        }
        other => return Err(n.unsupported(format!("`mode` is `{other}`; known are all, channel and element"))),
    };
    Ok(n.give(&[("Out", y)]))
}

// Without training the slope is the middle of its range.
fn rrelu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (lower, upper): (f64, f64) = (n.attr("lower", 1.0 / 8.0)?, n.attr("upper", 1.0 / 3.0)?);
    n.ignore(&["fix_seed", "seed"]);
    composed(n, |n, x| {
        let slope = n.number(x, (lower + upper) / 2.0)?;
        let slope = n.reshape(slope, &[1])?;
        n.put(PRelu, &[x, slope])
    })
}

fn selu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let scale: f64 = n.attr("scale", 1.050_700_987_355_480_5)?;
    let alpha: f64 = n.attr("alpha", 1.673_263_242_354_377_2)?;
    composed(n, |n, x| {
        let (alpha, scale) = (n.number(x, alpha)?, n.number(x, scale)?);
        n.put(Selu, &[x, alpha, scale])
    })
}

fn softmax(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis = n.attr("axis", -1)?;
    n.ignore(&["data_format"]);
    composed(n, |n, x| match n.rank(x) {
        Some(0) => n.number(x, 1.0),
        _ => n.put(Softmax { axis }, &[x]),
    })
}

// log(1 + exp(beta * x)) / beta; x itself from the threshold on.
fn softplus(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (beta, threshold): (f64, f64) = (n.attr("beta", 1.0)?, n.attr("threshold", 20.0)?);
    composed(n, |n, x| {
        if beta == 1.0 && threshold >= 20.0 {
            return n.put(SoftPlus, &[x]);
        }
        let scaled = n.times_number(x, beta)?;
        // Above the threshold the other value counts; the exponent must not overflow there.
        let bounded = {
            let limit = n.number(x, threshold)?;
            n.min(scaled, limit)?
        };
        let y = n.put(Exp, &[bounded])?;
        let y = n.plus_number(y, 1.0)?;
        let y = n.put(Log, &[y])?;
        let y = n.over_number(y, beta)?;
        let limit = n.number(x, threshold)?;
        let is_large = n.greater(scaled, limit)?;
        n.choose(is_large, x, y)
    })
}

fn softshrink(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let lambda: f64 = match n.opt_attr("lambda")? {
        Some(lambda) => lambda,
        None => n.attr("threshold", 0.5)?,
    };
    n.ignore(&["threshold"]);
    composed(n, |n, x| {
        let kept = n.between(x, -lambda, lambda)?;
        n.minus(x, kept)
    })
}

// silu(x) * y; without y the halves of x.
fn swiglu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, y) = (n.slot("X")?, n.opt_slot("Y")?);
    let (x, y) = match y {
        Some(y) => (x, y),
        None => {
            let parts = n.split_equally(x, -1, 2)?;
            (parts[0], parts[1])
        }
    };
    let x = n.put(Swish, &[x])?;
    let out = n.times(x, y)?;
    Ok(n.give(&[("Out", out)]))
}

fn swish(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let beta: f64 = n.attr("beta", 1.0)?;
    composed(n, |n, x| {
        if beta == 1.0 {
            return n.put(Swish, &[x]);
        }
        let beta = n.number(x, beta)?;
        n.put(Swish, &[x, beta])
    })
}

fn thresholded_relu(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let threshold: f64 = n.attr("threshold", 1.0)?;
    let value: f64 = n.attr("value", 0.0)?;
    composed(n, |n, x| {
        let (limit, other) = (n.number(x, threshold)?, n.number(x, value)?);
        let is_large = n.greater(x, limit)?;
        n.choose(is_large, x, other)
    })
}
