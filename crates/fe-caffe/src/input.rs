//! Layers that are inputs of the model, and layers that only training has. The latter bring their data from files or compare
//! with labels; none of that is part of a model, so a net with them is refused with what to do instead.

use crate::names::same;
use crate::net::{Layer, Net, misplaced};
use carafe_frontend::InputShape;
use carafe_graph::{Error, Result};
use carafe_tensor::{Dim, PartialShape};
use carafe_textproto::{Message, Position, Value};

/// Dimensions larger than this mean nothing, and products of several would overflow.
const MOST_DIM: i64 = i32::MAX as i64;

pub(crate) fn is_input(ty: &str) -> bool {
    same(ty, "Input") || same(ty, "GlobalInput")
}

/// The shape of each top; unknown where the layer gives none.
pub(crate) fn shapes(layer: &Layer) -> Result<Vec<PartialShape>> {
    let n = layer.tops.len();
    if let Some(all) = (0..n).map(|i| layer.given_shapes.get(&i).cloned()).collect::<Option<Vec<_>>>() {
        return Ok(all);
    }
    let given: Vec<(Position, &Value)> = match layer.message("input_param") {
        Some(m) => m.all("shape").collect(),
        None => vec![],
    };
    if !(given.is_empty() || given.len() == 1 || given.len() == n) {
        return Err(Error::invalid(format!(
            "has {n} tops and {} shapes; it takes one for all or one for each",
            given.len()
        )));
    }
    let shapes = given.iter().map(|(at, v)| match v {
        Value::Message(m) => shape(m),
        v => Err(misplaced(*at, format!("`shape` must be a message, found {}", v.describe()))),
    });
    let shapes = shapes.collect::<Result<Vec<_>>>()?;
    let said = |i: usize| layer.given_shapes.get(&i).or(shapes.get(i)).or(shapes.first()).cloned();
    Ok((0..n).map(|i| said(i).unwrap_or(PartialShape::dynamic())).collect())
}

/// Lets inputs have shapes that the user gives. A name is that of a layer or of its top, also as `name:0`; what is no input
/// is left to whoever cuts the model.
pub(crate) fn give_shapes(net: &mut Net, given: &[InputShape]) {
    let count: usize = net.layers.iter().filter(|l| is_input(&l.ty)).map(|l| l.tops.len()).sum();
    let in_order = given.iter().all(|g| g.name.is_none()) && given.len() == count;
    let mut number = 0;
    for layer in net.layers.iter_mut().filter(|l| is_input(&l.ty)) {
        for (i, top) in layer.tops.iter().enumerate() {
            let is_meant = |name: &str| name == top || (layer.tops.len() == 1 && name == layer.name);
            let is_meant = |name: &str| is_meant(name) || name.strip_suffix(":0").is_some_and(is_meant);
            let by_name = || given.iter().find(|g| g.name.as_deref().is_some_and(is_meant));
            if let Some(given) = if in_order { given.get(number) } else { by_name() } {
                layer.given_shapes.insert(i, given.shape.clone());
            }
            number += 1;
        }
    }
}

fn shape(m: &Message) -> Result<PartialShape> {
    let dim = |(at, v): (Position, &Value)| match v.as_i64() {
        Some(-1) => Ok(Dim::ANY),
        Some(n) if (1..=MOST_DIM).contains(&n) => Ok(Dim::known(n)),
        Some(n) => {
            Err(misplaced(at, format!("the dimension {n} of an input must be from 1 to {MOST_DIM}, or -1 for any")))
        }
        None => Err(misplaced(at, format!("a dimension must be a whole number, found {}", v.describe()))),
    };
    let dims = m.all("dim").map(dim).collect::<Result<Vec<_>>>()?;
    if dims.len() > 32 {
        return Err(Error::invalid(format!("an input has {} dimensions, 32 are the most", dims.len())));
    }
    Ok(PartialShape::new(dims))
}

/// Layers that read files.
const SOURCES: &[&str] = &[
    "AnnotatedData",
    "Data",
    "HDF5Data",
    "ImageData",
    "ImageSegData",
    "DenseImageData",
    "MemoryData",
    "VideoData",
    "WindowData",
];

/// Layers that compare with labels or write files.
const MEASURES: &[&str] = &["Accuracy", "DetectionEvaluate", "HDF5Output", "MultiBoxLoss", "SoftmaxWithLoss"];

/// Whether a layer is part of training or testing only.
pub(crate) fn is_training(ty: &str) -> bool {
    SOURCES.iter().chain(MEASURES).any(|t| same(t, ty)) || ty.to_ascii_lowercase().ends_with("loss")
}

/// One error about all layers that only training has, by name and type.
pub(crate) fn training_error(layers: &[(&str, &str)]) -> Error {
    let list = |wanted: &dyn Fn(&str) -> bool| {
        let found = layers.iter().filter(|(_, ty)| wanted(ty));
        found.map(|(name, ty)| format!("`{name}` ({ty})")).collect::<Vec<_>>().join(", ")
    };
    let is_source = |ty: &str| SOURCES.iter().any(|t| same(t, ty));
    let (sources, measures) = (list(&is_source), list(&|ty| !is_source(ty)));
    let mut what = vec![];
    if !sources.is_empty() {
        what.push(format!("{sources} read their data from files: put an `Input` layer with a shape in their place"));
    }
    if !measures.is_empty() {
        let softmax = layers.iter().any(|(_, ty)| same(ty, "SoftmaxWithLoss"));
        let instead = if softmax { " (`Softmax` stands for `SoftmaxWithLoss`)" } else { "" };
        what.push(format!("{measures} compare with labels or write files: take them out{instead}"));
    }
    Error::unsupported(format!(
        "the net is one for training or testing; give the one for deployment, often `deploy.prototxt`. Otherwise: {}",
        what.join("; ")
    ))
}
