//! Losses of classifiers. A target equal to `ignore_index` counts neither in the sum nor in the mean.

use super::shapes::all_axes;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::LogSoftmax;
use carafe_ops::indexing::GatherElements;
use carafe_ops::math::Negative;
use carafe_ops::reduce::{ReduceMean, ReduceSum};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("NegativeLogLikelihoodLoss", 12, negative_log_likelihood),
    rule("SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy),
];

fn negative_log_likelihood(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(loss(n, x)?.into())
}

fn softmax_cross_entropy(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let logarithms = n.emit(LogSoftmax { axis: 1 }, &[x])?;
    let loss = loss(n, logarithms)?;
    Ok(if n.wants_output(1) { vec![loss, logarithms] } else { vec![loss] }.into())
}

// Of the logarithms of probabilities `[N, C, ...]`, with targets and weights from inputs 1 and 2.
fn loss(n: &mut NodeCx<'_>, logarithms: Value) -> Result<Value> {
    let reduction: String = n.attr("reduction", "mean".to_string())?;
    let ignored: Option<i64> = n.opt_attr("ignore_index")?;
    let (target, weights) = (n.input(1)?, n.opt(2)?);
    let target = n.convert(target, ElementType::I64)?;
    let mut class = target;
    let mut skip = None;
    if let Some(ignored) = ignored {
        let ignored = n.i64(ignored)?;
        let hit = n.equal(target, ignored)?;
        let zero = n.i64(0)?;
        class = n.choose(hit, zero, target)?;
        skip = Some(hit);
    }
    let column = n.unsqueeze(class, &[1])?;
    let picked = n.emit(GatherElements { axis: 1 }, &[logarithms, column])?;
    let picked = n.squeeze(picked, &[1])?;
    let mut each = n.emit(Negative, &[picked])?;

    let mut weight = match (weights, skip) {
        (Some(w), _) => Some(n.gather(w, class, 0)?),
        (None, Some(_)) => Some(n.scalar_like(each, 1.0)?),
        (None, None) => None,
    };
    if let (Some(w), Some(hit)) = (weight, skip) {
        let zero = n.scalar_like(each, 0.0)?;
        weight = Some(n.choose(hit, zero, w)?);
    }
    if let Some(w) = weight {
        each = n.times(each, w)?;
    }
    let axes = all_axes(n, each)?;
    match (reduction.as_str(), weight) {
        ("none", _) => Ok(each),
        ("sum", _) => n.emit(ReduceSum { keep_dims: false }, &[each, axes]),
        ("mean", None) => n.emit(ReduceMean { keep_dims: false }, &[each, axes]),
        ("mean", Some(w)) => {
            let total = n.emit(ReduceSum { keep_dims: false }, &[each, axes])?;
            let count = n.emit(ReduceSum { keep_dims: false }, &[w, axes])?;
            n.over(total, count)
        }
        (other, _) => Err(n.fail(format!("attribute `reduction` is `{other}`; known are none, sum, mean"))),
    }
}
