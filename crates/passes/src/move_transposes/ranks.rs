//! `Transpose -> Squeeze` becomes `Squeeze -> Transpose`, and `Unsqueeze -> Transpose` becomes `Transpose -> Unsqueeze`: axes of
//! 1 are dropped as early and inserted as late as they can be, so that Transposes of one rank meet. A convolution along one
//! axis is one along two in a frame of such nodes. A Reshape that drops or inserts axes of 1 counts as they do.

use crate::reordered::is_identity;
use crate::shared::{axes_of, ints, same_dim, transpose_order};
use carafe_graph::{Model, NodeId, Result, Value};
use carafe_ops::movement::{Reshape, Squeeze, Transpose, Unsqueeze};
use carafe_tensor::{PartialShape, Tensor};

/// Swaps wherever it can; how often it did.
pub(super) fn swap(model: &mut Model) -> Result<usize> {
    let mut fired = 0;
    for id in model.topological_order()? {
        fired += usize::from(drop_before(model, id)? || insert_behind(model, id)?);
    }
    model.prune();
    Ok(fired)
}

// The node drops axes of a Transpose that nobody else reads.
fn drop_before(model: &mut Model, id: NodeId) -> Result<bool> {
    let Some(turned) = model.input(id, 0).filter(|v| model.users(*v).len() == 1) else { return Ok(false) };
    let Some(order) = transpose_order(model, turned.node) else { return Ok(false) };
    let Some(gone) = dropped(model, id, turned) else { return Ok(false) };
    let x = model.node(turned.node).inputs()[0];
    let name = model.node(id).name().to_string();
    let gone: Vec<usize> = gone.iter().map(|&a| order[a]).collect();
    let axes = list(model, &format!("{name}/axes"), &gone)?;
    let mut new = model.add(format!("{name}/squeezed"), Squeeze { allow_axis_skip: false }, &[x, axes])?;
    let order = without(&order, &gone);
    if !is_identity(&order) {
        let order = list(model, &format!("{name}/order"), &order)?;
        new = model.add(format!("{name}/transposed"), Transpose, &[new.into(), order])?;
    }
    model.supersede(id, new);
    Ok(true)
}

// The node is a Transpose of a value with new axes that nobody else reads.
fn insert_behind(model: &mut Model, id: NodeId) -> Result<bool> {
    let Some(order) = transpose_order(model, id) else { return Ok(false) };
    let wide = model.node(id).inputs()[0];
    if model.users(wide).len() != 1 {
        return Ok(false);
    }
    let Some(new) = inserted(model, wide.node) else { return Ok(false) };
    let x = model.node(wide.node).inputs()[0];
    let name = model.node(id).name().to_string();
    let places: Vec<usize> = (0..order.len()).filter(|&i| new.contains(&order[i])).collect();
    let inner = without(&order, &new);
    let mut turned = x;
    if !is_identity(&inner) {
        let inner = list(model, &format!("{name}/order"), &inner)?;
        turned = model.add(format!("{name}/transposed"), Transpose, &[x, inner])?.into();
    }
    let places = list(model, &format!("{name}/axes"), &places)?;
    let wide = model.add(format!("{name}/unsqueezed"), Unsqueeze, &[turned, places])?;
    model.supersede(id, wide);
    Ok(true)
}

// The axes of 1 of `x` that the node drops, at least one.
fn dropped(model: &Model, id: NodeId, x: Value) -> Option<Vec<usize>> {
    let from = &model.fact(x).shape;
    if model.node(id).op().is::<Squeeze>() {
        let axes = axes_of(&ints(model, id, 1)?, from.rank()?)?;
        return (!axes.is_empty() && axes.iter().all(|&a| from.dim(a).get() == Some(1))).then_some(axes);
    }
    model.op_at::<Reshape>(id)?;
    singles(from, &model.fact(id.into()).shape)
}

// The axes of 1 that the node inserts, as numbers of its output, at least one.
fn inserted(model: &Model, id: NodeId) -> Option<Vec<usize>> {
    let to = &model.fact(id.into()).shape;
    if model.node(id).op().is::<Unsqueeze>() {
        return axes_of(&ints(model, id, 1)?, to.rank()?).filter(|axes| !axes.is_empty());
    }
    model.op_at::<Reshape>(id)?;
    singles(to, &model.fact(model.input(id, 0)?).shape)
}

// The axes of 1 that make the wide shape the narrow one when they are left out.
fn singles(wide: &PartialShape, narrow: &PartialShape) -> Option<Vec<usize>> {
    let (wide, mut rest) = (wide.dims()?, narrow.dims()?);
    let mut axes = vec![];
    for (i, &d) in wide.iter().enumerate() {
        match rest {
            [first, more @ ..] if same_dim(*first, d) => rest = more,
            _ if d.get() == Some(1) => axes.push(i),
            _ => return None,
        }
    }
    (rest.is_empty() && !axes.is_empty()).then_some(axes)
}

// The order of the axes that are left when some of the source are gone.
fn without(order: &[usize], gone: &[usize]) -> Vec<usize> {
    let left = order.iter().filter(|a| !gone.contains(a));
    left.map(|&a| a - gone.iter().filter(|&&g| g < a).count()).collect()
}

fn list(model: &mut Model, name: &str, axes: &[usize]) -> Result<Value> {
    let axes: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
    model.constant(name, Tensor::from_slice(&[axes.len()], &axes)?)
}
