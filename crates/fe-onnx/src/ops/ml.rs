//! Preparation of features and linear models of `ai.onnx.ml`. Results are f32 whatever the features were.

use super::ml_labels::{Labels, labels};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::activation::{Sigmoid, Softmax};
use carafe_ops::compare::NotEqual;
use carafe_ops::math::{ErfInv, Exp, IsNaN};
use carafe_ops::reduce::{ReduceL1, ReduceL2};
use carafe_ops::search::TopK;
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_tensor::{ElementType, Tensor};

/// The domain of these operations.
pub(super) const ML: &str = "ai.onnx.ml";

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(ML, "ArrayFeatureExtractor", 1, array_feature_extractor),
    rule_in(ML, "Binarizer", 1, binarizer),
    rule_in(ML, "FeatureVectorizer", 1, feature_vectorizer),
    rule_in(ML, "Imputer", 1, imputer),
    rule_in(ML, "LinearClassifier", 1, linear_classifier),
    rule_in(ML, "LinearRegressor", 1, linear_regressor),
    rule_in(ML, "Normalizer", 1, normalizer),
    rule_in(ML, "Scaler", 1, scaler),
    rule_in(ML, "ZipMap", 1, |n| {
        n.ignore(&["classlabels_int64s", "classlabels_strings"]);
        Ok(n.input(0)?.into())
    }),
];

/// An f32 constant.
pub(super) fn floats(n: &mut NodeCx<'_>, shape: &[usize], values: &[f32]) -> Result<Value> {
    n.constant(Tensor::from_slice(shape, values)?)
}

fn scaler(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let offset: Vec<f32> = n.attr("offset", vec![0.0])?;
    let scale: Vec<f32> = n.attr("scale", vec![1.0])?;
    let x = n.input(0)?;
    let x = n.convert(x, ElementType::F32)?;
    let (offset, scale) = (floats(n, &[offset.len()], &offset)?, floats(n, &[scale.len()], &scale)?);
    let x = n.minus(x, offset)?;
    Ok(n.times(x, scale)?.into())
}

fn normalizer(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let norm: String = n.attr("norm", "MAX".to_string())?;
    let x = n.input(0)?;
    let x = n.convert(x, ElementType::F32)?;
    let axes = n.i64s(&[-1])?;
    let size = match norm.as_str() {
        "MAX" => n.max_over(x, &[-1], true)?,
        "L1" => n.emit(ReduceL1 { keep_dims: true }, &[x, axes])?,
        "L2" => n.emit(ReduceL2 { keep_dims: true }, &[x, axes])?,
        _ => return Err(n.fail(format!("norm must be MAX, L1 or L2, found `{norm}`"))),
    };
    // A row of zeros stays one.
    let (zero, one) = (n.number(size, 0.0)?, n.number(size, 1.0)?);
    let empty = n.equal(size, zero)?;
    let size = n.choose(empty, one, size)?;
    Ok(n.over(x, size)?.into())
}

fn binarizer(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let threshold: f32 = n.attr("threshold", 0.0)?;
    let x = n.input(0)?;
    let limit = n.scalar_like(x, f64::from(threshold))?;
    let above = n.greater(x, limit)?;
    Ok(n.convert_like(above, x)?.into())
}

fn imputer(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let floats_in: Vec<f32> = n.attr("imputed_value_floats", vec![])?;
    let ints_in: Vec<i64> = n.attr("imputed_value_int64s", vec![])?;
    let old_float: f32 = n.attr("replaced_value_float", 0.0)?;
    let old_int: i64 = n.attr("replaced_value_int64", 0)?;
    let x = n.input(0)?;
    let (new, old) = if n.ty(x).is_integer() {
        let new = n.constant(Tensor::from_i64(n.ty(x), &[ints_in.len()], &ints_in)?)?;
        (new, old_int as f64)
    } else {
        let new = floats(n, &[floats_in.len()], &floats_in)?;
        (n.convert_like(new, x)?, f64::from(old_float))
    };
    let missing = if old.is_nan() {
        n.emit(IsNaN, &[x])?
    } else {
        let old = n.scalar_like(x, old)?;
        n.equal(x, old)?
    };
    Ok(n.choose(missing, new, x)?.into())
}

fn array_feature_extractor(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, at) = (n.input(0)?, n.input(1)?);
    let at = n.reshape(at, &[-1])?;
    let y = n.gather(x, at, -1)?;
    Ok(if n.known_rank(x)? == 1 { n.unsqueeze(y, &[0])? } else { y }.into())
}

fn feature_vectorizer(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let widths: Vec<i64> = n.attr("inputdimensions", vec![])?;
    let mut parts = vec![];
    for (i, x) in n.inputs()?.into_iter().enumerate() {
        let x = n.convert(x, ElementType::F32)?;
        let x = if n.rank(x) == Some(1) { n.unsqueeze(x, &[1])? } else { x };
        let x = match widths.get(i) {
            Some(&w) => n.reshape(x, &[0, w])?,
            None => x,
        };
        parts.push(x);
    }
    Ok(n.concat(&parts, 1)?.into())
}

/// Applies `post_transform` to scores `[batch, class]`.
pub(super) fn post_transformed(n: &mut NodeCx<'_>, scores: Value, name: &str) -> Result<Value> {
    match name {
        "NONE" => Ok(scores),
        "LOGISTIC" => n.emit(Sigmoid, &[scores]),
        "SOFTMAX" => n.emit(Softmax { axis: -1 }, &[scores]),
        "SOFTMAX_ZERO" => {
            // A score of exactly zero stays zero.
            let zero = n.number(scores, 0.0)?;
            let there = n.emit(NotEqual::default(), &[scores, zero])?;
            let top = n.max_over(scores, &[-1], true)?;
            let apart = n.minus(scores, top)?;
            let e = n.emit(Exp, &[apart])?;
            let e = n.choose(there, e, zero)?;
            let sum = n.sum_over(e, &[-1], true)?;
            n.over(e, sum)
        }
        "PROBIT" => {
            let x = n.times_number(scores, 2.0)?;
            let x = n.plus_number(x, -1.0)?;
            let x = n.emit(ErfInv, &[x])?;
            n.times_number(x, std::f64::consts::SQRT_2)
        }
        _ => Err(n.fail(format!("post_transform `{name}` is not known"))),
    }
}

/// Index of the greatest score of each row, the first of equals.
pub(super) fn best(n: &mut NodeCx<'_>, scores: Value) -> Result<Value> {
    let k = n.i64(1)?;
    let op = TopK {
        axis: -1,
        mode: TopKMode::Max,
        sort: TopKSort::Value,
        index_element_type: ElementType::I64,
        stable: true,
    };
    let found = n.emit_all(op, &[scores, k])?;
    n.squeeze(found[1], &[-1])
}

/// `[batch, feature]` as f32.
pub(super) fn rows(n: &mut NodeCx<'_>) -> Result<Value> {
    let x = n.input(0)?;
    let x = n.convert(x, ElementType::F32)?;
    if n.rank(x) == Some(1) { n.unsqueeze(x, &[0]) } else { Ok(x) }
}

fn linear_scores(n: &mut NodeCx<'_>, x: Value, targets: usize) -> Result<Value> {
    let coefficients: Vec<f32> = n.required("coefficients")?;
    let intercepts: Vec<f32> = n.attr("intercepts", vec![])?;
    if targets == 0 || !coefficients.len().is_multiple_of(targets) {
        return Err(n.fail(format!("{} coefficients do not divide into {targets} rows", coefficients.len())));
    }
    let w = floats(n, &[targets, coefficients.len() / targets], &coefficients)?;
    let y = n.product(x, w, true)?;
    if intercepts.is_empty() {
        return Ok(y);
    }
    let b = floats(n, &[intercepts.len()], &intercepts)?;
    n.plus(y, b)
}

fn linear_regressor(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let targets: i64 = n.attr("targets", 1)?;
    let post: String = n.attr("post_transform", "NONE".to_string())?;
    let x = rows(n)?;
    let y = linear_scores(n, x, usize::try_from(targets).unwrap_or(0))?;
    Ok(post_transformed(n, y, &post)?.into())
}

fn linear_classifier(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let post: String = n.attr("post_transform", "NONE".to_string())?;
    n.ignore(&["multi_class"]);
    let labels: Labels = labels(n, "classlabels_ints", "classlabels_strings")?;
    let intercepts: Vec<f32> = n.attr("intercepts", vec![])?;
    let classes = labels.len().max(1);
    let x = rows(n)?;
    // Two labels may share one row of coefficients.
    let single = classes == 2 && intercepts.len() == 1;
    let scores = linear_scores(n, x, if single { 1 } else { classes })?;
    if !single {
        let at = best(n, scores)?;
        let label = labels.pick(n, at)?;
        return Ok(vec![label, post_transformed(n, scores, &post)?].into());
    }
    let limit = n.number(scores, 0.0)?;
    let positive = n.greater(scores, limit)?;
    let at = n.convert(positive, ElementType::I64)?;
    let at = n.squeeze(at, &[-1])?;
    let label = labels.pick(n, at)?;
    let score = if post == "LOGISTIC" { n.emit(Sigmoid, &[scores])? } else { scores };
    let rest = n.sub_from(1.0, score)?;
    let both = n.concat(&[rest, score], -1)?;
    Ok(vec![label, both].into())
}
