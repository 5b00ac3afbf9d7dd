//! What several passes ask and do: when two shapes are one, and how a value takes the place of another without an output
//! of the model losing its name. Shapes are compared by symbol, so an answer holds for every size of a dynamic dimension.

use carafe_graph::{Model, NodeId, Outcome, Parameter, ResultOp, Value};
use carafe_ops::movement::Transpose;
use carafe_tensor::{Dim, PartialShape};

/// Class name of a library operation, whatever its version; empty for an extension, of which nothing is known.
pub(crate) fn kind(model: &Model, id: NodeId) -> &'static str {
    let info = model.node(id).op().info();
    if info.builtin { info.name } else { "" }
}

/// Equal in every run.
pub(crate) fn same_dim(a: Dim, b: Dim) -> bool {
    match (a.get(), b.get()) {
        (Some(x), Some(y)) => x == y,
        _ => a.symbol().is_some() && a.symbol() == b.symbol(),
    }
}

/// Equal in every run.
pub(crate) fn same_shape(a: &PartialShape, b: &PartialShape) -> bool {
    match (a.dims(), b.dims()) {
        (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_dim(*a, *b)),
        _ => false,
    }
}

/// Whether an output of the model reads the value.
pub(crate) fn feeds_result(model: &Model, v: Value) -> bool {
    model.users(v).iter().any(|u| model.node(u.node).op().is::<ResultOp>())
}

/// Lets the users of `old` read `new`, which has the same elements; `old` is left for pruning. Refused where an output of
/// the model would lose its name or its node.
pub(crate) fn forward(model: &mut Model, old: Value, new: Value) -> Outcome {
    if feeds_result(model, old) {
        if model.node(new.node).op().is::<Parameter>() {
            return Outcome::skip("it stands between an input and an output of the model");
        }
        if feeds_result(model, new) {
            return Outcome::skip("what it gives back is an output of the model of its own");
        }
        let single = |v: Value| model.node(v.node).outputs().len() == 1;
        if single(new) && single(old) {
            let name = model.node(old.node).name().to_string();
            model.set_name(old.node, format!("{name}/was"));
            model.set_name(new.node, name);
        } else if model.output(old).names.is_empty() {
            return Outcome::skip("an output of the model has its name");
        }
    }
    model.replace_value(old, new);
    Outcome::Done
}

/// The integers of a value that are the same in every run.
pub(crate) fn ints(model: &Model, id: NodeId, input: usize) -> Option<Vec<i64>> {
    model.fact(model.input(id, input)?).ints()
}

/// Axes in `0..rank`; `None` when one lies outside.
pub(crate) fn axes_of(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    axes.iter().map(|&a| carafe_graph::normalize_axis(a, rank).ok()).collect()
}

/// The order of a Transpose, with the empty list spelled out; `None` when unknown or no permutation.
pub(crate) fn transpose_order(model: &Model, id: NodeId) -> Option<Vec<usize>> {
    model.op_at::<Transpose>(id)?;
    let rank = model.fact(model.input(id, 0)?).shape.rank()?;
    let order = ints(model, id, 1)?;
    if order.is_empty() {
        return Some((0..rank).rev().collect());
    }
    let order = axes_of(&order, rank)?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..rank).then_some(order)
}

/// Whether all axes of a Transpose that are not 1 keep their order, so that no element moves.
pub(crate) fn keeps_order(model: &Model, id: NodeId) -> bool {
    let (Some(order), Some(x)) = (transpose_order(model, id), model.input(id, 0)) else { return false };
    let shape = &model.fact(x).shape;
    order.into_iter().filter(|&a| shape.dim(a).get() != Some(1)).is_sorted()
}
