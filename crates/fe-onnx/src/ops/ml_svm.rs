//! Support vector machines of `ai.onnx.ml`. With two classes and no probabilities onnxruntime takes a softmax to be the
//! decision and one minus it, and so do these rules.

use super::ml::{ML, best, floats, post_transformed, rows};
use super::ml_labels::{Labels, labels};
use super::svm_probability::coupled;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::math::{Exp, Tanh};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] =
    &[rule_in(ML, "SVMClassifier", 1, classifier), rule_in(ML, "SVMRegressor", 1, regressor)];

// The kernel of every row with every vector: `[batch, vector]`.
fn kernel(n: &mut NodeCx<'_>, x: Value, vectors: &[f32], count: usize) -> Result<Value> {
    let kind: String = n.attr("kernel_type", "LINEAR".to_string())?;
    let params: Vec<f32> = n.attr("kernel_params", vec![])?;
    let param = |i: usize| f64::from(params.get(i).copied().unwrap_or(0.0));
    let (gamma, coef0, degree) = (param(0), param(1), param(2));
    if count == 0 || !vectors.len().is_multiple_of(count) {
        return Err(n.fail(format!("{} numbers do not divide into {count} vectors", vectors.len())));
    }
    let width = vectors.len() / count;
    let v = floats(n, &[count, width], vectors)?;
    let product = n.product(x, v, true)?;
    match kind.as_str() {
        "LINEAR" => Ok(product),
        "POLY" => {
            let y = n.times_number(product, gamma)?;
            let y = n.plus_number(y, coef0)?;
            let degree = n.number(y, degree)?;
            n.power(y, degree)
        }
        "SIGMOID" => {
            let y = n.times_number(product, gamma)?;
            let y = n.plus_number(y, coef0)?;
            n.emit(Tanh, &[y])
        }
        "RBF" => {
            let (wide, v) = (n.unsqueeze(x, &[1])?, n.unsqueeze(v, &[0])?);
            let apart = n.minus(wide, v)?;
            let square = n.times(apart, apart)?;
            let distance = n.sum_over(square, &[2], false)?;
            let y = n.times_number(distance, -gamma)?;
            n.emit(Exp, &[y])
        }
        _ => Err(n.fail(format!("kernel_type `{kind}` is not known"))),
    }
}

fn regressor(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let coefficients: Vec<f32> = n.attr("coefficients", vec![])?;
    let vectors: Vec<f32> = n.attr("support_vectors", vec![])?;
    let rho: Vec<f32> = n.attr("rho", vec![])?;
    let supports: i64 = n.attr("n_supports", 0)?;
    let post: String = n.attr("post_transform", "NONE".to_string())?;
    let one_class = n.attr("one_class", 0i64)? != 0;
    let x = rows(n)?;
    let mut y = match usize::try_from(supports) {
        Ok(count) if count > 0 => {
            let k = kernel(n, x, &vectors, count)?;
            let w = floats(n, &[coefficients.len(), 1], &coefficients)?;
            n.product(k, w, false)?
        }
        // Without vectors the coefficients are those of a linear model.
        _ => kernel(n, x, &coefficients, 1)?,
    };
    y = n.plus_number(y, f64::from(rho.first().copied().unwrap_or(0.0)))?;
    if one_class {
        let zero = n.number(y, 0.0)?;
        let (one, against) = (n.number(y, 1.0)?, n.number(y, -1.0)?);
        let inside = n.greater(y, zero)?;
        y = n.choose(inside, one, against)?;
    }
    Ok(post_transformed(n, y, &post)?.into())
}

fn classifier(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let coefficients: Vec<f32> = n.attr("coefficients", vec![])?;
    let vectors: Vec<f32> = n.attr("support_vectors", vec![])?;
    let per_class: Vec<i64> = n.attr("vectors_per_class", vec![])?;
    let rho: Vec<f32> = n.attr("rho", vec![])?;
    let (prob_a, prob_b): (Vec<f32>, Vec<f32>) = (n.attr("prob_a", vec![])?, n.attr("prob_b", vec![])?);
    let post: String = n.attr("post_transform", "NONE".to_string())?;
    let labels = labels(n, "classlabels_ints", "classlabels_strings")?;
    let x = rows(n)?;
    if per_class.is_empty() {
        let classes = labels.len();
        let scores = kernel(n, x, &coefficients, classes)?;
        let scores = n.plus_number(scores, f64::from(rho.first().copied().unwrap_or(0.0)))?;
        let at = best(n, scores)?;
        let label = labels.pick(n, at)?;
        return Ok(vec![label, post_transformed(n, scores, &post)?].into());
    }
    let classes = per_class.len();
    let per_class = per_class.iter().map(|&c| usize::try_from(c).unwrap_or(0)).collect::<Vec<_>>();
    let total: usize = per_class.iter().sum();
    if coefficients.len() != total.saturating_mul(classes.saturating_sub(1)) || rho.len() < classes * (classes - 1) / 2 {
        return Err(n.fail("coefficients, rho and vectors_per_class do not match"));
    }
    let k = kernel(n, x, &vectors, total)?;
    // One decision for every pair of classes: a column of weights over all vectors.
    let starts: Vec<usize> = per_class.iter().scan(0, |sum, &c| Some(std::mem::replace(sum, *sum + c))).collect();
    let pairs: Vec<(usize, usize)> = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j))).collect();
    let mut table = vec![0.0; total * pairs.len()];
    for (p, &(i, j)) in pairs.iter().enumerate() {
        for v in starts[i]..starts[i] + per_class[i] {
            table[v * pairs.len() + p] = coefficients[(j - 1) * total + v];
        }
        for v in starts[j]..starts[j] + per_class[j] {
            table[v * pairs.len() + p] = coefficients[i * total + v];
        }
    }
    let table = floats(n, &[total, pairs.len()], &table)?;
    let decisions = n.product(k, table, false)?;
    let rho = floats(n, &[pairs.len()], &rho[..pairs.len()])?;
    let decisions = n.plus(decisions, rho)?;
    if classes == 2 && prob_a.is_empty() {
        return two_classes(n, decisions, &labels, &post);
    }
    // Each decision is a vote for the label; the scores are the decisions themselves unless there are probabilities.
    let zero = n.number(decisions, 0.0)?;
    let first = n.greater(decisions, zero)?;
    let first = n.convert(first, ElementType::F32)?;
    let second = n.sub_from(1.0, first)?;
    let (mut wins, mut losses) = (vec![0.0; pairs.len() * classes], vec![0.0; pairs.len() * classes]);
    for (p, &(i, j)) in pairs.iter().enumerate() {
        wins[p * classes + i] = 1.0;
        losses[p * classes + j] = 1.0;
    }
    let (wins, losses) = (floats(n, &[pairs.len(), classes], &wins)?, floats(n, &[pairs.len(), classes], &losses)?);
    let (a, b) = (n.product(first, wins, false)?, n.product(second, losses, false)?);
    let votes = n.plus(a, b)?;
    let at = best(n, votes)?;
    let label = labels.pick(n, at)?;
    let scores = match prob_a.is_empty() {
        true => decisions,
        false => coupled(n, decisions, &pairs, classes, &prob_a, &prob_b)?,
    };
    Ok(vec![label, post_transformed(n, scores, &post)?].into())
}

fn two_classes(n: &mut NodeCx<'_>, decision: Value, labels: &Labels, post: &str) -> Result<Outputs> {
    let zero = n.number(decision, 0.0)?;
    let at = n.less_equal(decision, zero)?;
    let at = n.convert(at, ElementType::I64)?;
    let at = n.squeeze(at, &[-1])?;
    let label = labels.pick(n, at)?;
    if post.starts_with("SOFTMAX") {
        let rest = n.sub_from(1.0, decision)?;
        return Ok(vec![label, n.concat(&[rest, decision], 1)?].into());
    }
    let against = n.times_number(decision, -1.0)?;
    let both = n.concat(&[against, decision], 1)?;
    Ok(vec![label, post_transformed(n, both, post)?].into())
}
