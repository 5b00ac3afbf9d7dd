//! What is known of the inputs of a model. A symbol declares shapes of few variables; the number of axes and of channels
//! follows from the weights of the first operator that an input reaches.

use crate::attributes::{int, items};
use crate::parts::Values;
use crate::symbol::{Entry, Node, Symbol};
use crate::types::type_by_name;
use carafe_frontend::{InputShape, ReadRequest, SourceValue, shown};
use carafe_graph::{ItemType, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Operators on the way that leave a shape as it is.
const KEEPS_SHAPE: &[&str] = &[
    "Activation",
    "BatchNorm",
    "BlockGrad",
    "Cast",
    "Dropout",
    "InstanceNorm",
    "LeakyReLU",
    "_contrib_SyncBatchNorm",
    "_copy",
    "_div_scalar",
    "_minus_scalar",
    "_mul_scalar",
    "_plus_scalar",
    "_rdiv_scalar",
    "_rminus_scalar",
    "amp_cast",
    "broadcast_add",
    "broadcast_div",
    "broadcast_mul",
    "broadcast_sub",
    "identity",
    "relu",
    "sigmoid",
];
/// Operators followed on the way from an input.
const MAX_STEPS: usize = 16;

/// Variables that the user wants as inputs, though they may have values or be weights.
pub(crate) fn asked_for<'r>(request: &'r ReadRequest<'_>) -> impl Fn(&str) -> bool + use<'r> {
    let named: Vec<&str> = request.input_shapes.iter().filter_map(|s| s.name.as_deref()).collect();
    move |name| named.iter().any(|n| *n == name || n.strip_suffix(":0") == Some(name))
}

/// Whether a variable is read as a weight: without a value it is no input that anyone would give.
pub(crate) fn is_weight(symbol: &Symbol, variable: usize) -> bool {
    symbol.nodes.iter().any(|n| n.inputs.iter().skip(1).any(|e| e.node == variable) && is_weight_of(n, variable))
}

fn is_weight_of(node: &Node, variable: usize) -> bool {
    let weights = match node.op.as_str() {
        "BatchNorm" | "BatchNorm_v1" | "_contrib_SyncBatchNorm" | "_contrib_BatchNormWithReLU" => 1..5,
        "Convolution" | "Convolution_v1" | "Deconvolution" | "FullyConnected" | "InstanceNorm" | "LayerNorm"
        | "GroupNorm" => 1..3,
        "Embedding" | "RNN" => 1..2,
        "LeakyReLU" => 1..2,
        "_contrib_DeformableConvolution" => 2..4,
        "_contrib_ModulatedDeformableConvolution" => 3..5,
        _ => return false,
    };
    node.inputs.iter().enumerate().any(|(i, e)| weights.contains(&i) && e.node == variable)
}

/// Type and shape of an input, as far as the symbol and the weights say.
pub(crate) fn declared(symbol: &Symbol, variable: usize, values: &Values) -> Result<ItemType> {
    let node = &symbol.nodes[variable];
    let reached = reached(symbol, variable, values);
    let shape = node.attr("__shape__").and_then(shape).or_else(|| reached.as_ref().map(|r| r.shape.clone()));
    let ty = node.attr("__dtype__").and_then(type_by_name).or_else(|| reached.and_then(|r| r.ty));
    Ok(ItemType::Tensor(ty.unwrap_or(ElementType::F32), shape.unwrap_or_else(PartialShape::dynamic)))
}

// Zero, and a negative number, stand for what is not known.
fn shape(text: &str) -> Option<PartialShape> {
    let dims = items(text)?.into_iter().map(int).collect::<Option<Vec<i64>>>()?;
    let all = dims.iter().all(|d| *d <= i64::from(i32::MAX)) && dims.len() <= 32 && !dims.is_empty();
    all.then(|| PartialShape::new(dims.into_iter().map(|d| if d > 0 { Dim::known(d) } else { Dim::ANY })))
}

struct Reached {
    shape: PartialShape,
    ty: Option<ElementType>,
}

// The first operator with a window that an input reaches.
fn reached(symbol: &Symbol, variable: usize, values: &Values) -> Option<Reached> {
    let mut value = Entry { node: variable, output: 0 };
    let mut is_cast = false;
    for _ in 0..MAX_STEPS {
        let mut readers = symbol.nodes.iter().enumerate().filter(|(_, n)| n.inputs.first() == Some(&value));
        let known = readers.clone().find_map(|(_, n)| form_of(n, symbol, values));
        if let Some(found) = known {
            return Some(Reached { ty: found.ty.filter(|_| !is_cast), ..found });
        }
        let (next, node) = readers.find(|(_, n)| KEEPS_SHAPE.contains(&n.op.as_str()))?;
        is_cast |= matches!(node.op.as_str(), "Cast" | "amp_cast");
        value = Entry { node: next, output: 0 };
    }
    None
}

// What the data of an operator must be.
fn form_of(node: &Node, symbol: &Symbol, values: &Values) -> Option<Reached> {
    let weight = |input: usize| values.form(&symbol.nodes[node.inputs.get(input)?.node].name);
    let kernel = || Some(items(node.attr("kernel")?)?.len()).filter(|n| (1..=3).contains(n));
    let dims = |rank: usize, axis: usize, size: Option<i64>| {
        let mut dims = vec![Dim::ANY; rank];
        if let Some(size) = size {
            dims[axis] = Dim::known(size);
        }
        PartialShape::new(dims)
    };
    let is_last = node.attr("layout").is_some_and(|l| l.ends_with('C'));
    match node.op.as_str() {
        "Convolution" | "Convolution_v1" => {
            let (ty, shape) = weight(1)?;
            let groups: i64 = node.attr("num_group").map_or(Some(1), int)?;
            let (rank, axis) = (shape.len(), if is_last { shape.len() - 1 } else { 1 });
            let per_group = i64::try_from(*shape.get(axis)?).ok()?;
            Some(Reached { shape: dims(rank, axis, per_group.checked_mul(groups)), ty: Some(ty) })
        }
        "Deconvolution" => {
            let (ty, shape) = weight(1)?;
            let size = i64::try_from(*shape.first()?).ok();
            Some(Reached { shape: dims(shape.len(), 1.min(shape.len() - 1), size), ty: Some(ty) })
        }
        "Pooling" => Some(Reached { shape: dims(kernel()? + 2, 1, None), ty: None }),
        "RNN" => Some(Reached { shape: dims(3, 0, None), ty: None }),
        _ => None,
    }
}

/// Lets inputs have shapes that the user gives. What is no input is left to whoever cuts the model.
pub(crate) fn give_shapes(inputs: &mut [SourceValue], given: &[InputShape]) {
    let in_order = given.iter().all(|g| g.name.is_none()) && given.len() == inputs.len();
    for (i, input) in inputs.iter_mut().enumerate() {
        let name = shown(&input.name).to_string();
        let is_meant = |n: &str| n == name || n.strip_suffix(":0") == Some(&*name);
        let by_name = || given.iter().find(|g| g.name.as_deref().is_some_and(is_meant));
        if let Some(given) = if in_order { given.get(i) } else { by_name() }
            && let Ok(ItemType::Tensor(ty, _)) = input.ty
        {
            input.ty = Ok(ItemType::Tensor(ty, given.shape.clone()));
        }
    }
}
