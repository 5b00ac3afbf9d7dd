//! What recognisers ask of a graph and how they change it. A constant counts as a number only when broadcasting it cannot
//! change the shape of the data, and a node with the `pdpd` rule is never seen as plain arithmetic.

use carafe_graph::{Constant, Model, NodeId, Op, Outcome, Parameter, Result, ResultOp, Value};
use carafe_ops::convert::Convert;
use carafe_ops::movement::Transpose;
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};
use std::borrow::Cow;
use std::collections::HashSet;

/// Inputs of the node that makes `v`, if its operation is a `T` with numpy broadcasting.
pub(super) fn made_by<T: Op>(model: &Model, v: Value) -> Option<&[Value]> {
    inputs_at::<T>(model, v.node).filter(|_| v.port == 0)
}

/// Inputs of the node, if its operation is a `T` with numpy broadcasting.
pub(super) fn inputs_at<T: Op>(model: &Model, id: NodeId) -> Option<&[Value]> {
    let node = model.get(id)?;
    node.op().get::<T>()?;
    if node.op().info().attrs.iter().any(|a| a.name == "auto_broadcast") {
        let attrs = node.op().attrs();
        let rule = attrs.iter().find(|(name, _)| name == "auto_broadcast").and_then(|(_, rule)| rule.to_text());
        if rule.as_deref() == Some("pdpd") {
            return None;
        }
    }
    Some(node.inputs())
}

/// The two operands of a `T`, the one that `pick` accepts first.
pub(super) fn operands<T: Op, R>(model: &Model, v: Value, pick: impl Fn(Value) -> Option<R>) -> Option<(R, Value)> {
    let &[a, b] = made_by::<T>(model, v)? else { return None };
    pick(a).map(|r| (r, b)).or_else(|| pick(b).map(|r| (r, a)))
}

/// A stored tensor in the type it is used in: a constant, or one behind the Convert that widens it.
pub(super) fn stored(model: &Model, v: Value) -> Option<Cow<'_, Tensor>> {
    if let Some(t) = model.constant_of(v) {
        return (t.element_type() != ElementType::String).then_some(Cow::Borrowed(t));
    }
    let (id, convert) = model.producer::<Convert>(v)?;
    let t = model.constant_of(model.input(id, 0)?)?;
    t.cast(convert.destination_type).ok().map(Cow::Owned)
}

/// Whether the value needs nothing but constants close by, so that others may read it too.
pub(super) fn is_stored(model: &Model, v: Value) -> bool {
    let behind = model.producer::<Convert>(v).and_then(|(id, _)| model.input(id, 0)).unwrap_or(v);
    model.node(behind.node).op().is::<Constant>()
}

/// Whether a tensor of shape `small` broadcast into `data` surely leaves the shape of the data as it is.
pub(super) fn absorbs(data: &PartialShape, small: &[usize]) -> bool {
    let Some(dims) = data.dims() else { return small.is_empty() };
    small.len() <= dims.len()
        && dims[dims.len() - small.len()..].iter().zip(small).all(|(d, &n)| n == 1 || d.size() == Some(n))
}

/// A number as it stands in a graph, and how precisely its type could say it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub value: f64,
    /// Relative.
    pub precision: f64,
}

/// The number that a constant repeats, if it leaves the shape of `data` alone.
pub(super) fn number(model: &Model, v: Value, data: Value) -> Option<Number> {
    let tensor = stored(model, v)?;
    if tensor.is_empty() || tensor.len() > 4096 || !absorbs(&model.fact(data).shape, tensor.shape()) {
        return None;
    }
    let all = tensor.to_vec::<f64>().ok()?;
    let kept_in = model.producer::<Convert>(v).and_then(|(id, _)| model.input(id, 0)).map(|c| model.fact(c).ty);
    let precision = match kept_in.unwrap_or(tensor.element_type()) {
        ElementType::F16 => 2e-3,
        ElementType::Bf16 => 1e-2,
        _ => 1e-5,
    };
    all.iter().all(|x| x.to_bits() == all[0].to_bits()).then_some(Number { value: all[0], precision })
}

/// As [`number`], the value alone.
pub(super) fn value_of(model: &Model, v: Value, data: Value) -> Option<f64> {
    number(model, v, data).map(|n| n.value)
}

/// Axes of a reduction as a sorted list without repeats, counted from the front where the rank is known.
pub(super) fn axes_of(model: &Model, axes: Value, data: Value) -> Option<Vec<i64>> {
    let tensor = stored(model, axes)?;
    let rank = model.fact(data).shape.rank();
    let mut list: Vec<i64> = tensor.to_vec::<i64>().ok()?.to_vec();
    if let Some(rank) = rank {
        list.iter_mut().filter(|a| **a < 0).for_each(|a| *a += rank as i64);
    }
    list.sort_unstable();
    list.dedup();
    (!list.is_empty()).then_some(list)
}

/// The order of a Transpose, and what it turns.
pub(super) fn transposed(model: &Model, v: Value) -> Option<(Value, Vec<i64>)> {
    let &[x, order] = made_by::<Transpose>(model, v)? else { return None };
    let rank = model.fact(x).shape.rank()? as i64;
    let order = model.constant_of(order)?.to_vec::<i64>().ok()?.to_vec();
    Some((x, if order.is_empty() { (0..rank).rev().collect() } else { order }))
}

/// Whether two dimensions are surely equal.
pub(super) fn same_dim(a: Dim, b: Dim) -> bool {
    match (a.get(), b.get()) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.symbol().is_some() && a.symbol() == b.symbol(),
        _ => false,
    }
}

/// A node between `leaves` and `root` whose value is also read elsewhere: the rewrite would not get rid of it.
pub(super) fn read_outside(model: &Model, root: NodeId, leaves: &[Value]) -> Option<Outcome> {
    let mut inside = HashSet::from([root]);
    let mut stack: Vec<Value> = model.node(root).inputs().to_vec();
    while let Some(v) = stack.pop() {
        if !leaves.contains(&v) && !is_stored(model, v) && inside.insert(v.node) {
            stack.extend(model.node(v.node).inputs());
        }
    }
    let mut order: Vec<NodeId> = inside.iter().copied().filter(|id| *id != root).collect();
    order.sort_unstable();
    order.into_iter().find_map(|id| {
        let node = model.node(id);
        let users = (0..node.outputs().len()).flat_map(|port| model.users(Value { node: id, port }));
        let outside = users.map(|u| u.node).find(|u| !inside.contains(u))?;
        let what =
            if model.node(outside).op().is::<ResultOp>() { "is an output of the model" } else { "has another user" };
        Some(Outcome::skip(format!("{} `{}` {what}", node.op().type_name(), node.name())))
    })
}

/// Puts one operation in the place of everything between `leaves` and `root`.
pub(super) fn fuse<O: Op>(
    model: &mut Model,
    root: NodeId,
    leaves: &[Value],
    op: O,
    inputs: &[Value],
) -> Result<Outcome> {
    if let Some(skip) = read_outside(model, root, leaves) {
        return Ok(skip);
    }
    let new = model.add(format!("{}/{}", model.node(root).name(), op.info().name), op, inputs)?;
    put_in_place(model, root, new)
}

/// Lets `new` take the place of `root` and removes what is then unused. Types and ranks must agree, or `new` goes away.
pub(super) fn put_in_place(model: &mut Model, root: NodeId, new: NodeId) -> Result<Outcome> {
    let (old, fresh) = (model.fact(root.into()), model.fact(new.into()));
    if old.ty != fresh.ty || !old.shape.compatible(&fresh.shape) || old.shape.rank() != fresh.shape.rank() {
        let why = format!("the fused node would give {fresh} for {old}");
        sweep(model, new)?;
        return Ok(Outcome::skip(why));
    }
    model.supersede(root, new);
    sweep(model, root)?;
    Ok(Outcome::Done)
}

/// Removes the node if nothing needs it, and what only it needed.
pub(super) fn sweep(model: &mut Model, from: NodeId) -> Result<()> {
    let mut stack = vec![from];
    while let Some(id) = stack.pop() {
        let Some(node) = model.get(id) else { continue };
        let used = (0..node.outputs().len()).any(|port| !model.users(Value { node: id, port }).is_empty());
        if used || node.op().is::<Parameter>() || node.op().is::<ResultOp>() || node.op().info().sink {
            continue;
        }
        let inputs: Vec<NodeId> = node.inputs().iter().map(|v| v.node).collect();
        model.remove(id)?;
        stack.extend(inputs);
    }
    Ok(())
}

/// A scalar in the type of `like`, named after the node it is for.
pub(super) fn scalar(model: &mut Model, root: NodeId, what: &str, like: Value, value: f64) -> Result<Value> {
    let ty = model.fact(like).ty;
    let name = format!("{}/{what}", model.node(root).name());
    model.constant(&name, Tensor::from_f64(ty, &[], &[value])?)
}

/// A vector of integers, named after the node it is for.
pub(super) fn integers(model: &mut Model, root: NodeId, what: &str, values: &[i64]) -> Result<Value> {
    let name = format!("{}/{what}", model.node(root).name());
    model.constant(&name, Tensor::from_slice(&[values.len()], values)?)
}

/// Whether the value has a known floating type.
pub(super) fn is_float(model: &Model, v: Value) -> bool {
    let ty = model.fact(v).ty;
    ty.is_float() && !ty.is_dynamic()
}
