//! Layers without a bottom whose tops are part of the model: fixed data, and parameters by themselves.

use super::cx::LayerCx;
use super::fillers::ignore;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::Broadcast;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[rule("DummyData", 0, dummy_data), rule("Parameter", 0, parameter)];

// The i-th of several messages.
fn nth(name: &str, i: usize) -> String {
    if i == 0 { name.to_string() } else { format!("{name}__{i}") }
}

fn dummy_data(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut tops = vec![];
    for i in 0..n.n_outputs() {
        let shape = dummy_shape(n, i)?;
        let value = dummy_value(n, i)?;
        tops.push(filled(n, value, &shape)?);
    }
    Ok(tops.into())
}

fn filled(n: &mut NodeCx<'_>, value: f64, shape: &[i64]) -> Result<Value> {
    let (value, shape) = (n.scalar(ElementType::F32, value)?, n.i64s(shape)?);
    n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[value, shape])
}

// One shape serves all tops. The old form has a list for each dimension.
fn dummy_shape(n: &NodeCx<'_>, i: usize) -> Result<Vec<i64>> {
    let own: Option<Vec<i64>> = n.opt_attr(&format!("{}__dim", nth("shape", i)))?;
    let shared: Option<Vec<i64>> = n.opt_attr("shape__dim")?;
    let mut old = vec![];
    for name in ["num", "channels", "height", "width"] {
        let list: Vec<i64> = n.attr(name, vec![])?;
        old.extend(list.get(i).or(list.first()));
    }
    let shape = own.or(shared).unwrap_or(old);
    match shape.iter().find(|d| **d < 1 || i32::try_from(**d).is_err()) {
        _ if shape.is_empty() => Err(n.fail("has no shape")),
        Some(d) => Err(n.fail(format!("a dimension must be positive, found {d}"))),
        None => Ok(shape),
    }
}

fn dummy_value(n: &NodeCx<'_>, i: usize) -> Result<f64> {
    let own = nth("data_filler", i);
    let is_own = n.attr_value(&format!("{own}__type")).is_some() || n.attr_value(&format!("{own}__value")).is_some();
    let filler = if is_own { own } else { "data_filler".to_string() };
    ignore(n, &filler);
    let kind: String = n.attr(&format!("{filler}__type"), "constant".to_string())?;
    match kind.as_str() {
        "constant" => n.attr(&format!("{filler}__value"), 0.0),
        other => Err(n.unsupported(format!(
            "fills with `{other}`, which differs from run to run; put an `Input` layer in its place"
        ))),
    }
}

fn parameter(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let shape: Vec<i64> = n.attr("shape__dim", vec![])?;
    let shape: Option<Vec<usize>> = shape.iter().map(|d| usize::try_from(*d).ok()).collect();
    let Some(shape) = shape else { return Err(n.fail("a dimension of its shape is negative")) };
    n.takes_blobs(1)?;
    Ok(n.blob(0, &shape)?.into())
}
