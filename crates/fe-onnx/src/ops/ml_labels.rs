//! Labels and categories of `ai.onnx.ml`: lists of integers, floats or texts. Texts are looked up by an operation of our own,
//! as no opset compares them; from the index on everything is the same for all kinds.

use super::ml::ML;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, TensorAttr, Value};
use carafe_ops::math::IsNaN;
use carafe_ops::carafe::TextIndex;
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(ML, "CategoryMapper", 1, category_mapper),
    rule_in(ML, "LabelEncoder", 1, label_encoder_1),
    rule_in(ML, "LabelEncoder", 2, label_encoder),
    rule_in(ML, "OneHotEncoder", 1, one_hot_encoder),
];

/// Names of classes.
#[derive(Clone, Debug)]
pub(super) struct Labels(Tensor);

impl Labels {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
    /// The labels at these indices.
    pub(super) fn pick(&self, n: &mut NodeCx<'_>, at: Value) -> Result<Value> {
        let table = n.constant(self.0.clone())?;
        n.gather(table, at, 0)
    }
}

fn texts(list: Vec<String>) -> Result<Tensor> {
    Ok(Tensor::from_strings(&[list.len()], list)?)
}

/// The class labels of a classifier, whichever of the two attributes has them.
pub(super) fn labels(n: &NodeCx<'_>, ints: &str, strings: &str) -> Result<Labels> {
    let ints: Vec<i64> = n.attr(ints, vec![])?;
    let strings: Vec<String> = n.attr(strings, vec![])?;
    Ok(Labels(match strings.is_empty() {
        true => Tensor::from_slice(&[ints.len()], &ints)?,
        false => texts(strings)?,
    }))
}

// Where each element stands in the list of keys; the number of keys where it does not.
fn position(n: &mut NodeCx<'_>, x: Value, keys: &Tensor) -> Result<Value> {
    let count = keys.len() as i64;
    if keys.element_type() == ElementType::String {
        let table = n.constant(keys.clone())?;
        let at = n.emit(TextIndex, &[x, table])?;
        let (zero, count) = (n.i64(0)?, n.i64(count)?);
        let missing = n.less(at, zero)?;
        return n.choose(missing, count, at);
    }
    let table = n.constant(keys.clone())?;
    let table = n.convert_like(table, x)?;
    let wide = n.unsqueeze(x, &[-1])?;
    let mut equal = n.equal(wide, table)?;
    if n.ty(x).is_float() {
        let (a, b) = (n.emit(IsNaN, &[wide])?, n.emit(IsNaN, &[table])?);
        let nan = n.and(a, b)?;
        equal = n.or(equal, nan)?;
    }
    // The last of equal keys counts, as in a map that is filled in order.
    let positions: Vec<i64> = (1..=count).collect();
    let positions = n.i64s(&positions)?;
    let zero = n.i64(0)?;
    let found = n.choose(equal, positions, zero)?;
    let found = n.max_over(found, &[-1], false)?;
    let missing = n.equal(found, zero)?;
    let (one, count) = (n.i64(1)?, n.i64(count)?);
    let at = n.minus(found, one)?;
    n.choose(missing, count, at)
}

// Values by keys; the default stands behind the last value.
fn mapped(n: &mut NodeCx<'_>, x: Value, keys: &Tensor, values: &Tensor, default: &Tensor) -> Result<Value> {
    if keys.len() != values.len() {
        return Err(n.fail(format!("{} keys and {} values do not match", keys.len(), values.len())));
    }
    let at = position(n, x, keys)?;
    let table = n.constant(values.reshaped(&[values.len()])?)?;
    let default = n.constant(default.reshaped(&[1])?)?;
    let table = n.concat(&[table, default], 0)?;
    n.gather(table, at, 0)
}

// Keys or values under any of their names.
fn list(n: &NodeCx<'_>, what: &str) -> Result<Option<Tensor>> {
    let strings: Option<Vec<String>> = n.opt_attr(&format!("{what}_strings"))?;
    let ints: Option<Vec<i64>> = n.opt_attr(&format!("{what}_int64s"))?;
    let floats: Option<Vec<f32>> = n.opt_attr(&format!("{what}_floats"))?;
    let tensor: Option<TensorAttr> = n.opt_attr(&format!("{what}_tensor"))?;
    Ok(match (tensor, strings, ints, floats) {
        (Some(t), ..) => Some(t.0.reshaped(&[t.0.len()])?),
        (_, Some(s), ..) => Some(texts(s)?),
        (_, _, Some(i), _) => Some(Tensor::from_slice(&[i.len()], &i)?),
        (_, _, _, Some(f)) => Some(Tensor::from_slice(&[f.len()], &f)?),
        _ => None,
    })
}

fn label_encoder(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let keys = list(n, "keys")?;
    let values = list(n, "values")?;
    let (Some(keys), Some(values)) = (keys, values) else { return Err(n.fail("keys and values are required")) };
    let tensor: Option<TensorAttr> = n.opt_attr("default_tensor")?;
    let text: String = n.attr("default_string", "_Unused".to_string())?;
    let (int, float): (i64, f32) = (n.attr("default_int64", -1)?, n.attr("default_float", -0.0)?);
    let default = match (tensor, values.element_type()) {
        (Some(t), _) => t.0,
        (None, ElementType::String) => texts(vec![text])?,
        (None, ty) if ty.is_integer() => Tensor::from_i64(ty, &[1], &[int])?,
        (None, ty) => Tensor::from_f64(ty, &[1], &[f64::from(float)])?,
    };
    let x = n.input(0)?;
    Ok(mapped(n, x, &keys, &values, &default)?.into())
}

// Texts to their index, or indices to their text.
fn label_encoder_1(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let classes = texts(n.attr("classes_strings", vec![])?)?;
    both_ways(n, &classes, None)
}

fn category_mapper(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let classes = texts(n.attr("cats_strings", vec![])?)?;
    let ints: Vec<i64> = n.attr("cats_int64s", vec![])?;
    let ints = Tensor::from_slice(&[ints.len()], &ints)?;
    both_ways(n, &classes, Some(&ints))
}

fn both_ways(n: &mut NodeCx<'_>, classes: &Tensor, ints: Option<&Tensor>) -> Result<Outputs> {
    let text: String = n.attr("default_string", "_Unused".to_string())?;
    let int: i64 = n.attr("default_int64", -1)?;
    let counted: Vec<i64> = (0..classes.len() as i64).collect();
    let counted = Tensor::from_slice(&[counted.len()], &counted)?;
    let ints = ints.unwrap_or(&counted);
    let x = n.input(0)?;
    let y = match n.ty(x) {
        ElementType::String => mapped(n, x, classes, ints, &Tensor::from_slice(&[1], &[int])?)?,
        _ => mapped(n, x, ints, classes, &texts(vec![text])?)?,
    };
    Ok(y.into())
}

fn one_hot_encoder(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let ints: Vec<i64> = n.attr("cats_int64s", vec![])?;
    let strings: Vec<String> = n.attr("cats_strings", vec![])?;
    // Without `zeros` an unknown category is an error, which has no counterpart: it gives zeros too.
    n.ignore(&["zeros"]);
    let x = n.input(0)?;
    let keys = match strings.is_empty() {
        true => Tensor::from_slice(&[ints.len()], &ints)?,
        false => texts(strings)?,
    };
    let x = if n.ty(x).is_float() { n.convert(x, ElementType::I64)? } else { x };
    let at = position(n, x, &keys)?;
    let (on, off) = (n.constant(Tensor::scalar(1.0f32))?, n.constant(Tensor::scalar(0.0f32))?);
    let depth = n.i64(keys.len() as i64)?;
    let op = carafe_ops::indexing::OneHot {
        axis: -1,
        negative_indices_mode: carafe_ops::indexing::one_hot::NegativeIndices::Ignore,
    };
    Ok(n.emit(op, &[at, depth, on, off])?.into())
}
