//! Parts that normalizations are made of: squares, roots, quotients, sums with a small number, statistics over axes.

use super::look::{axes_of, made_by, number, operands, value_of};
use carafe_graph::{Model, NodeId, Op, Value};
use carafe_ops::arithmetic::{Add, Divide, Multiply, Power};
use carafe_ops::math::Sqrt;
use carafe_ops::movement::Broadcast;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::shape::ShapeOf;

/// What is squared.
pub(super) fn square_of(model: &Model, v: Value) -> Option<Value> {
    if let Some(&[a, b]) = made_by::<Multiply>(model, v) {
        return (a == b).then_some(a);
    }
    let &[a, n] = made_by::<Power>(model, v)? else { return None };
    (value_of(model, n, a)? == 2.0).then_some(a)
}

/// What the square root is taken of.
pub(super) fn root_of(model: &Model, v: Value) -> Option<Value> {
    if let Some(&[a]) = made_by::<Sqrt>(model, v) {
        return Some(a);
    }
    power_of(model, v, 0.5)
}

/// The base, if the value is its power of this degree.
pub(super) fn power_of(model: &Model, v: Value, degree: f64) -> Option<Value> {
    let &[a, n] = made_by::<Power>(model, v)? else { return None };
    (value_of(model, n, a)? == degree).then_some(a)
}

/// `a` and `b`, if the node is `a / b`, `a * (1 / b)` or `a * b^-1`.
pub(super) fn quotient(model: &Model, root: NodeId) -> Option<(Value, Value)> {
    if let Some(&[a, b]) = made_by::<Divide>(model, root.into()) {
        return Some((a, b));
    }
    let inverse = |v: Value| {
        if let Some(&[one, b]) = made_by::<Divide>(model, v) {
            return (value_of(model, one, b) == Some(1.0)).then_some(b);
        }
        power_of(model, v, -1.0)
    };
    operands::<Multiply, _>(model, root.into(), inverse).map(|(b, a)| (a, b))
}

/// `a` and `r`, if the node is `a / sqrt(r)`.
pub(super) fn over_root(model: &Model, root: NodeId) -> Option<(Value, Value)> {
    if let Some((a, b)) = quotient(model, root) {
        return Some((a, root_of(model, b)?));
    }
    operands::<Multiply, _>(model, root.into(), |v| power_of(model, v, -0.5)).map(|(r, a)| (a, r))
}

/// `a` and the number, if the value is their sum.
pub(super) fn plus_number(model: &Model, v: Value) -> Option<(Value, f64)> {
    let &[a, b] = made_by::<Add>(model, v)? else { return None };
    let with = |a: Value, n: Value| number(model, n, a).map(|n| (a, n.value));
    with(a, b).or_else(|| with(b, a))
}

/// Data and axes of a reduction that keeps its dimensions.
pub(super) fn reduced<T: Op>(model: &Model, v: Value, keeps: impl Fn(&T) -> bool) -> Option<(Value, Vec<i64>)> {
    let (_, op) = model.producer::<T>(v)?;
    let &[data, axes] = made_by::<T>(model, v).filter(|_| keeps(op))? else { return None };
    Some((data, axes_of(model, axes, data)?))
}

/// The value before it was stretched to the shape of `data`, which arithmetic with `data` would do anyway.
pub(super) fn before_stretch(model: &Model, v: Value, data: Value) -> Value {
    let find = || {
        let (id, op) = model.producer::<Broadcast>(v)?;
        let &[small, target] = model.node(id).inputs() else { return None };
        let plain = matches!(op.mode, BroadcastMode::Numpy | BroadcastMode::Bidirectional);
        let of_data = made_by::<ShapeOf>(model, target) == Some(&[data][..]);
        let (shape, wanted) = (&model.fact(v).shape, &model.fact(data).shape);
        (plain && (of_data || (shape.is_static() && shape == wanted))).then_some(small)
    };
    find().unwrap_or(v)
}
