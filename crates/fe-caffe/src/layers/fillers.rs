//! Weights that a net says by itself. Where no blob is stored, Caffe fills it; a filler without chance in it gives the same
//! numbers every time and is part of the net, all others mean that the weights are missing.

use super::cx::LayerCx;
use carafe_frontend::NodeCx;
use carafe_graph::{Result, Value};
use carafe_tensor::Tensor;

/// Values that a net may ask a filler for; a few bytes can declare any size.
const MOST: usize = 1 << 28;

/// The fields of a filler.
const FIELDS: &[&str] = &["type", "value", "min", "max", "mean", "std", "sparse", "variance_norm", "file", "diag_val"];

/// Says that a filler has been heard, for blobs that are stored.
pub(super) fn ignore(n: &NodeCx<'_>, filler: &str) {
    let names: Vec<String> = FIELDS.iter().map(|f| format!("{filler}__{f}")).collect();
    n.ignore(&names.iter().map(String::as_str).collect::<Vec<_>>());
}

/// A weight of a layer.
pub(super) struct Weight<'a> {
    /// Its number among the blobs.
    pub index: usize,
    pub filler: &'a str,
    /// The shape it is stored in.
    pub stored: &'a [usize],
    /// The shape it is used in.
    pub shape: &'a [usize],
    /// What fills it when the net has no word of it; none when it must be stored then.
    pub default: Option<f32>,
}

/// A stored blob in this shape, or else what the filler of this name makes.
pub(super) fn blob_or_filler(n: &mut NodeCx<'_>, index: usize, shape: &[usize], filler: &str) -> Result<Value> {
    weight(n, &Weight { index, filler, stored: shape, shape, default: None })
}

/// The same, with a value for a net that says nothing of the filler.
pub(super) fn blob_or_value(
    n: &mut NodeCx<'_>,
    index: usize,
    shape: &[usize],
    filler: &str,
    default: f32,
) -> Result<Value> {
    weight(n, &Weight { index, filler, stored: shape, shape, default: Some(default) })
}

/// A stored blob, or else what its filler makes.
pub(super) fn weight(n: &mut NodeCx<'_>, w: &Weight<'_>) -> Result<Value> {
    let &Weight { index, filler, stored, shape, default } = w;
    ignore(n, filler);
    if n.n_blobs()? > 0 {
        return n.blob(index, shape);
    }
    let value: Option<f32> = n.opt_attr(&format!("{filler}__value"))?;
    let kind: Option<String> = n.opt_attr(&format!("{filler}__type"))?;
    let constant = match (&kind, value) {
        (None, None) => default,
        (None, value) => value,
        (Some(kind), value) => (kind == "constant").then(|| value.unwrap_or(0.0)),
    };
    let kind = match (constant, kind) {
        (Some(_), _) => "constant".to_string(),
        (None, Some(kind)) => kind,
        (None, None) => return n.blob(index, shape),
    };
    let count = carafe_tensor::elements(shape).filter(|n| *n <= MOST);
    let Some(count) = count else {
        return Err(n.fail(format!("weights of shape {shape:?} are too large to be filled")));
    };
    let values = match kind.as_str() {
        "constant" => vec![constant.unwrap_or(0.0); count],
        "diagonal" => diagonal(n, stored, count, filler)?,
        "bilinear" => bilinear(n, stored, count)?,
        _ => return n.blob(index, shape),
    };
    let name = if index == 0 { "weights" } else { "biases" };
    n.named_constant(name, Tensor::from_slice(shape, &values)?)
}

// The weights as a square matrix with these values on its diagonal.
fn diagonal(n: &NodeCx<'_>, shape: &[usize], count: usize, filler: &str) -> Result<Vec<f32>> {
    let given: Vec<f32> = n.attr(&format!("{filler}__diag_val"), vec![])?;
    if given.len().checked_mul(given.len()) != Some(count) {
        let found = given.len();
        return Err(n.fail(format!("`diag_val` has {found} values, weights {shape:?} are no matrix of that many rows")));
    }
    let mut values = vec![0.0; count];
    for (position, v) in values.iter_mut().step_by(given.len() + 1).zip(&given) {
        *position = *v;
    }
    Ok(values)
}

// The weights of bilinear upsampling, the same for every channel.
fn bilinear(n: &NodeCx<'_>, shape: &[usize], count: usize) -> Result<Vec<f32>> {
    let side = match shape {
        [.., h, w] if shape.len() == 4 && h == w && *w > 0 => *w,
        _ => return Err(n.fail(format!("the bilinear filler makes square windows of images, weights are {shape:?}"))),
    };
    let f = side.div_ceil(2) as f32;
    let centre = (side - 1) as f32 / (2.0 * f);
    let weight = |x: usize| 1.0 - (x as f32 / f - centre).abs();
    Ok((0..count).map(|i| weight(i % side) * weight(i / side % side)).collect())
}
