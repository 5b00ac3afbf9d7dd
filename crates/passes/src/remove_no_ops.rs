//! `x -> NoOp -> y` becomes `x -> y`. A no-op gives back what it was given: a Convert to the type it has, a Reshape or
//! Broadcast to the shape it has, a Slice of everything, `x + 0`, `x * 1`, the second of two equal roundings, a pair that
//! undoes itself. Shapes must be equal in every run, not only for the sizes that are known now.

use crate::shared::{axes_of, forward, ints, keeps_order, kind, same_dim, same_shape};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::{Broadcast, Squeeze, StridedSlice};
use carafe_tensor::ElementType;

/// Takes out nodes that give back what they are given.
#[derive(Clone, Copy, Debug)]
pub struct RemoveNoOps;

impl Rewrite for RemoveNoOps {
    fn name(&self) -> &'static str {
        "remove_no_ops"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        if model.node(root).outputs().len() != 1 {
            return Ok(Outcome::NoMatch);
        }
        match given_back(model, root) {
            Found::No => Ok(Outcome::NoMatch),
            Found::Nearly(why) => Ok(Outcome::skip(why)),
            Found::Yes(x) if model.fact(x).ty != model.fact(root.into()).ty => Ok(Outcome::NoMatch),
            Found::Yes(x) => {
                let done = forward(model, root.into(), x);
                if done == Outcome::Done {
                    model.remove(root)?;
                }
                Ok(done)
            }
        }
    }
}

enum Found {
    No,
    Nearly(&'static str),
    Yes(Value),
}

impl Found {
    fn when(holds: bool, x: Value) -> Found {
        if holds { Found::Yes(x) } else { Found::No }
    }
}

fn given_back(model: &Model, root: NodeId) -> Found {
    let Some(x) = model.input(root, 0) else { return Found::No };
    let (before, after) = (model.fact(x), model.fact(root.into()));
    let same = same_shape(&before.shape, &after.shape);
    let info = model.node(root).op().info();
    match kind(model, root) {
        "Identity" => Found::Yes(x),
        "Convert" | "ConvertLike" => Found::when(before.ty == after.ty && !before.ty.is_dynamic(), x),
        "Reshape" => Found::when(same, x),
        "Broadcast" => match model.op_at::<Broadcast>(root).map(|b| b.mode) {
            Some(BroadcastMode::Numpy | BroadcastMode::Bidirectional) => Found::when(same, x),
            _ => Found::No,
        },
        "Tile" => Found::when(same && ints(model, root, 1).is_some_and(|r| r.iter().all(|&n| n == 1)), x),
        "Transpose" => Found::when(same && keeps_order(model, root), x),
        "Squeeze" if same => Found::Yes(x),
        "Squeeze" | "Unsqueeze" => undone_axes(model, root, x),
        "Slice" | "StridedSlice" => whole_slice(model, root, x, same),
        "Concat" => Found::when(model.node(root).inputs().len() == 1, x),
        "Split" | "VariadicSplit" => Found::when(same, x),
        "Pad" => {
            let nothing = |i| ints(model, root, i).is_some_and(|p| p.iter().all(|&n| n == 0));
            Found::when(nothing(1) && nothing(2), x)
        }
        "Roll" => Found::when(ints(model, root, 1).is_some_and(|s| s.iter().all(|&n| n == 0)), x),
        "Gather" => Found::when(same && gathers_all(model, root, x), x),
        "ReduceSum" | "ReduceMean" | "ReduceProd" => {
            Found::when(same && ints(model, root, 1).is_some_and(|axes| axes.is_empty()), x)
        }
        "LogicalNot" if before.ty == ElementType::Boolean => twice(model, root, x),
        _ if info.involution => twice(model, root, x),
        _ if info.idempotent => {
            let equal = model.node(x.node).op().eq_op(model.node(root).op());
            Found::when(equal, x)
        }
        _ => match model.node(root).op().neutral(before.ty) {
            Some(element) => neutral(model, root, element, info.commutative),
            None => Found::No,
        },
    }
}

// `root` undoes an equal operation before it.
fn twice(model: &Model, root: NodeId, x: Value) -> Found {
    let before = model.node(x.node);
    match before.inputs() {
        [first] if before.op().eq_op(model.node(root).op()) => Found::Yes(*first),
        _ => Found::No,
    }
}

// `x + 0`, `x * 1` and the like. The constant must not stretch `x`.
fn neutral(model: &Model, root: NodeId, element: f64, either_side: bool) -> Found {
    let node = model.node(root);
    let &[a, b] = node.inputs() else { return Found::No };
    let ty = model.fact(a).ty;
    if !(ty.is_integer() || ty.is_float() || ty == ElementType::Boolean) {
        return Found::No;
    }
    let mut nearly = false;
    for (x, c) in [(a, b), (b, a)].into_iter().take(if either_side { 2 } else { 1 }) {
        if model.splat_of(c) == Some(element) || (element == 0.0 && model.splat_of(c) == Some(-0.0)) {
            if same_shape(&model.fact(x).shape, &model.fact(root.into()).shape) {
                return Found::Yes(x);
            }
            nearly = true;
        }
    }
    if nearly { Found::Nearly("the constant gives the result its shape") } else { Found::No }
}

fn undone_axes(model: &Model, root: NodeId, x: Value) -> Found {
    let pair = match (kind(model, x.node), kind(model, root)) {
        ("Unsqueeze", "Squeeze") => true,
        // An axis that may stay cannot be put back.
        ("Squeeze", "Unsqueeze") => model.op_at::<Squeeze>(x.node).is_none_or(|s| !s.allow_axis_skip),
        _ => false,
    };
    let (inner, outer) = (ints(model, x.node, 1), ints(model, root, 1));
    let (true, Some(first), Some(inner), Some(outer)) = (pair, model.input(x.node, 0), inner, outer) else {
        return Found::No;
    };
    let wide = model.fact(first).shape.rank().max(model.fact(x).shape.rank());
    let axes = |list: &[i64]| -> Option<Vec<usize>> {
        let mut axes = axes_of(list, wide?)?;
        axes.sort_unstable();
        Some(axes)
    };
    match (axes(&inner), axes(&outer)) {
        (Some(i), Some(o)) if !i.is_empty() && i == o => Found::Yes(first),
        (Some(_), Some(_)) => Found::Nearly("the two list different axes"),
        _ => Found::No,
    }
}

fn whole_slice(model: &Model, root: NodeId, x: Value, same: bool) -> Found {
    let slice = model.op_at::<StridedSlice>(root);
    let keeps_axes = slice.is_none_or(|s| {
        let none = |mask: &[i64]| mask.iter().all(|&m| m == 0);
        none(&s.new_axis_mask) && none(&s.shrink_axis_mask)
    });
    let forward = match model.input(root, 3) {
        None => true,
        Some(steps) => model.fact(steps).ints().is_some_and(|s| s.iter().all(|&n| n == 1)),
    };
    Found::when(same && keeps_axes && forward, x)
}

fn gathers_all(model: &Model, root: NodeId, x: Value) -> bool {
    let Some(indices) = model.input(root, 1) else { return false };
    let shape = &model.fact(x).shape;
    let (Some(rank), Some(list)) = (shape.rank(), model.fact(indices).ints()) else { return false };
    let axis = ints(model, root, 2).filter(|a| a.len() == 1).and_then(|a| axes_of(&a, rank));
    let Some(axis) = axis.and_then(|a| a.first().copied()) else { return false };
    let size = shape.dim(axis);
    let in_order = list.iter().enumerate().all(|(i, &n)| n == i as i64 || n + list.len() as i64 == i as i64);
    in_order && model.fact(indices).shape.rank() == Some(1) && same_dim(size, list.len().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;
    use carafe_ops::arithmetic::{Add, Multiply};
    use carafe_ops::convert::Convert;
    use carafe_ops::math::{Negative, Tanh};
    use carafe_ops::movement::{Concat, Reshape, Slice, Transpose, Unsqueeze};

    #[test]
    fn a_chain_of_nothing_goes_away() {
        let mut d = Draft::new();
        let x = d.input("x", &[-1, 3, -1]);
        let x = d.add("first", Tanh, &[x]);
        let (zero, one) = (d.floats(&[1, 1], 0.0), d.floats(&[], 1.0));
        let a = d.add("add", Add::default(), &[zero, x]);
        let a = d.add("mul", Multiply::default(), &[a, one]);
        let a = d.add("convert", Convert { destination_type: ElementType::F32 }, &[a]);
        let order = d.ints(&[0, 1, 2]);
        let a = d.add("transpose", Transpose, &[a, order]);
        let same = d.ints(&[0, 3, -1]);
        let a = d.add("reshape", Reshape { special_zero: true }, &[a, same]);
        let (start, stop, step) = (d.ints(&[0]), d.ints(&[i64::MAX]), d.ints(&[1]));
        let a = d.add("slice", Slice, &[a, start, stop, step]);
        let axes = d.ints(&[1]);
        let a = d.add("unsqueeze", Unsqueeze, &[a, axes]);
        let a = d.add("squeeze", Squeeze { allow_axis_skip: false }, &[a, axes]);
        let a = d.add("negative", Negative, &[a]);
        let a = d.add("positive", Negative, &[a]);
        let a = d.add("concat", Concat { axis: 0 }, &[a]);
        let r = d.result(a);
        let (fired, why) = d.run(&RemoveNoOps);
        assert_eq!((fired, why), (9, vec![]));
        assert_eq!(d.model.len(), 3);
        // The output keeps the name by which it was known.
        assert_eq!(d.model.result_name(r), "concat");
    }

    #[test]
    fn a_constant_that_stretches_stays() {
        let mut d = Draft::new();
        let x = d.input("x", &[-1]);
        let zero = d.floats(&[5], 0.0);
        let y = d.add("add", Add::default(), &[x, zero]);
        d.result(y);
        let (fired, why) = d.run(&RemoveNoOps);
        assert_eq!(fired, 0);
        assert!(why[0].contains("`add`") && why[0].contains("gives the result its shape"), "{why:?}");
    }

    #[test]
    fn an_input_is_not_made_an_output() {
        let mut d = Draft::new();
        let x = d.input("x", &[2]);
        let y = d.add("y", Convert { destination_type: ElementType::F32 }, &[x]);
        d.result(y);
        let (fired, why) = d.run(&RemoveNoOps);
        assert_eq!(fired, 0);
        assert!(why[0].contains("between an input and an output"), "{why:?}");
    }

    #[test]
    fn two_outputs_do_not_become_one() {
        let mut d = Draft::new();
        let x = d.input("x", &[2]);
        let a = d.add("a", Tanh, &[x]);
        let b = d.add("b", Convert { destination_type: ElementType::F32 }, &[a]);
        d.result(a);
        d.result(b);
        assert_eq!(d.run(&RemoveNoOps).0, 0);
    }
}
