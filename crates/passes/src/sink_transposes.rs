//! `x -> Transpose -> f -> Transpose -> y` becomes `x -> f -> Transpose -> y`, or `x -> f -> y` when the two undo each
//! other. The lower Transpose is taken up through f to whatever feeds it: constants are laid out anew, a Transpose there
//! is merged. f works on single elements, or on axes that can be renumbered, and has no other user. The change is made
//! only when fewer Transposes are left, so nothing is moved to and fro. MatMul, Reduce and Split take their Transposes in
//! the same way.

use crate::fuse_transpose_into_matmul::swaps_last_two;
use crate::reordered::{add_laid_out, add_transpose, is_identity, is_single, rebuild, reordered, with_rank};
use crate::shared::{axes_of, feeds_result, forward, ints, transpose_order};
use carafe_graph::{Model, NodeId, Outcome, Reordered, Result, Rewrite, Use, Value};
use carafe_ops::linear::MatMul;
use carafe_ops::movement::{Split, Transpose, VariadicSplit};
use carafe_tensor::Tensor;
use std::sync::Arc;

/// Nodes looked at above one Transpose.
const REGION: usize = 32;
/// Constants with other users are copied up to this many elements.
const SMALL: usize = 1 << 12;

/// Moves Transposes through the operations behind them, until they meet and undo each other.
#[derive(Clone, Copy, Debug)]
pub struct SinkTransposes;

impl Rewrite for SinkTransposes {
    fn name(&self) -> &'static str {
        "sink_transposes"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        match model.node(root).op() {
            op if op.is::<Transpose>() => into_region(model, root),
            op if op.is::<MatMul>() => into_product(model, root),
            op if op.is::<Split>() || op.is::<VariadicSplit>() => into_split(model, root),
            op if op.info().reduces => into_reduction(model, root),
            _ => Ok(Outcome::NoMatch),
        }
    }
}

fn into_region(model: &mut Model, root: NodeId) -> Result<Outcome> {
    let Some(order) = transpose_order(model, root) else { return Ok(Outcome::NoMatch) };
    let mut look = Look { left: REGION, met: false };
    let plan = look.at(model, model.node(root).inputs()[0], &order);
    if !look.met {
        return Ok(Outcome::NoMatch);
    }
    if plan.cost() >= 1 {
        return Ok(Outcome::skip("as many Transposes would be left as there are"));
    }
    if matches!(plan, Plan::As(_)) && feeds_result(model, root.into()) {
        return Ok(Outcome::skip("an output of the model would become another value with a name"));
    }
    let new = plan.build(model)?;
    Ok(forward(model, root.into(), new))
}

/// How a value is had in another order.
enum Plan {
    /// As it is, or above the Transpose that is undone; the number of Transposes that go.
    As(Undone),
    /// A constant, laid out anew.
    Constant(Value, Vec<usize>),
    /// A Transpose of the value is put in; another one may go for it.
    Insert(Value, Vec<usize>, i64),
    /// The node is made again with its inputs in another order.
    Through(NodeId, Reordered, Vec<Plan>),
}

struct Undone {
    value: Value,
    gone: i64,
}

impl Plan {
    // How many more Transposes there will be.
    fn cost(&self) -> i64 {
        match self {
            Plan::As(undone) => -undone.gone,
            Plan::Constant(..) => 0,
            Plan::Insert(_, _, gone) => 1 - gone,
            Plan::Through(_, _, inputs) => inputs.iter().map(Plan::cost).sum(),
        }
    }

    fn build(self, model: &mut Model) -> Result<Value> {
        match self {
            Plan::As(undone) => Ok(undone.value),
            Plan::Constant(v, order) => add_laid_out(model, v, &order),
            Plan::Insert(v, order, _) => {
                let wide = with_rank(model, v, order.len())?;
                add_transpose(model, wide, &order)
            }
            Plan::Through(node, new, plans) => {
                let inputs = plans.into_iter().map(|p| p.build(model)).collect::<Result<Vec<Value>>>()?;
                let new = rebuild(model, node, new, inputs)?;
                Ok(new.into())
            }
        }
    }
}

/// The search above a Transpose.
struct Look {
    left: usize,
    // A Transpose was found.
    met: bool,
}

impl Look {
    fn at(&mut self, model: &Model, v: Value, order: &[usize]) -> Plan {
        if is_identity(order) || is_single(model, v) {
            return Plan::As(Undone { value: v, gone: 0 });
        }
        let only_here = model.has_one_user(v);
        if model.constant_of(v).is_some_and(|t| only_here || t.len() <= SMALL) {
            return Plan::Constant(v, order.to_vec());
        }
        let insert = Plan::Insert(v, order.to_vec(), 0);
        if model.fact(v).shape.rank() != Some(order.len()) {
            return insert;
        }
        if let Some(upper) = transpose_order(model, v.node) {
            self.met = true;
            let x = model.node(v.node).inputs()[0];
            let both: Vec<usize> = order.iter().map(|&a| upper[a]).collect();
            let gone = i64::from(only_here);
            return match is_identity(&both) {
                true => Plan::As(Undone { value: x, gone }),
                false => Plan::Insert(x, both, gone),
            };
        }
        if self.left == 0 || !only_here {
            return insert;
        }
        self.left -= 1;
        if model.node(v.node).outputs().len() != 1 {
            return insert;
        }
        let Some((new, inputs)) = reordered(model, v.node, order) else { return insert };
        let met = std::mem::replace(&mut self.met, false);
        let plans = inputs.into_iter().map(|input| self.at(model, input, order)).collect();
        let through = Plan::Through(v.node, new, plans);
        if through.cost() < 1 {
            self.met |= met;
            return through;
        }
        self.met = met;
        insert
    }
}

// A MatMul reads its last two axes in either order at no cost.
fn into_product(model: &mut Model, root: NodeId) -> Result<Outcome> {
    let Some(mut product) = model.op_at::<MatMul>(root).cloned() else { return Ok(Outcome::NoMatch) };
    let mut outcome = Outcome::NoMatch;
    for input in 0..2 {
        let v = model.node(root).inputs()[input];
        let Some(rank) = model.fact(v).shape.rank().filter(|&r| r >= 2) else { continue };
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 1, rank - 2);
        debug_assert!(swaps_last_two(&order));
        let mut look = Look { left: REGION, met: false };
        let plan = look.at(model, v, &order);
        if !look.met || plan.cost() >= 0 || !matches!(plan, Plan::Through(..)) {
            continue;
        }
        let new = plan.build(model)?;
        model.set_input(root, input, new);
        let flag = if input == 0 { &mut product.transpose_a } else { &mut product.transpose_b };
        *flag = !*flag;
        outcome = Outcome::Done;
    }
    if outcome == Outcome::Done {
        model.set_op(root, Arc::new(product))?;
    }
    Ok(outcome)
}

// A reduction over the axes by their old numbers, when those that stay are in their old order.
fn into_reduction(model: &mut Model, root: NodeId) -> Result<Outcome> {
    let &[v, axes] = model.node(root).inputs() else { return Ok(Outcome::NoMatch) };
    let Some(order) = transpose_order(model, v.node) else { return Ok(Outcome::NoMatch) };
    let list = model.constant_of(axes).and_then(|_| ints(model, root, 1)).and_then(|a| axes_of(&a, order.len()));
    let Some(list) = list else { return Ok(Outcome::skip("the axes are not constant")) };
    let keep = model.node(root).op().attrs().into_iter().find(|(name, _)| name == "keep_dims");
    let keep = keep.and_then(|(_, v)| v.to_text()).is_none_or(|t| t == "true" || t == "1");
    let mut new: Vec<i64> = list.iter().map(|&a| order[a] as i64).collect();
    new.sort_unstable();
    let left = (0..order.len()).filter(|a| !list.contains(a)).map(|a| order[a]);
    let same_places = || list.iter().all(|&a| new.contains(&(a as i64)));
    if !left.is_sorted() || (keep && !same_places()) {
        return Ok(Outcome::skip("the axes that are left change places"));
    }
    let name = format!("{}/axes", model.node(root).name());
    let axes = model.constant(&name, Tensor::from_slice(&[new.len()], &new)?)?;
    let x = model.node(v.node).inputs()[0];
    model.set_input(root, 0, x);
    model.set_input(root, 1, axes);
    Ok(Outcome::Done)
}

// The parts of a transposed value that are all transposed again are parts of the value itself.
fn into_split(model: &mut Model, root: NodeId) -> Result<Outcome> {
    let (v, axis) = (model.node(root).inputs()[0], model.node(root).inputs()[1]);
    let Some(order) = transpose_order(model, v.node) else { return Ok(Outcome::NoMatch) };
    let at = model.constant_of(axis).and_then(|_| ints(model, root, 1)).and_then(|a| axes_of(&a, order.len()));
    let Some(at) = at.and_then(|a| a.first().copied()) else { return Ok(Outcome::NoMatch) };
    let ports = model.node(root).outputs().len();
    let users: Vec<Use> = (0..ports).flat_map(|port| model.users(Value { node: root, port }).to_vec()).collect();
    let lower: Option<Vec<Vec<usize>>> =
        users.iter().map(|u| transpose_order(model, u.node).filter(|_| u.input == 0)).collect();
    let (Some(lower), true) = (lower, model.has_one_user(v)) else {
        return Ok(Outcome::skip("not all parts are transposed again"));
    };
    let name = model.node(root).name().to_string();
    let axis = model.constant(&format!("{name}/axis"), Tensor::scalar(order[at] as i64))?;
    let x = model.node(v.node).inputs()[0];
    model.set_input(root, 0, x);
    model.set_input(root, 1, axis);
    model.set_op(root, model.node(root).op_ref().clone())?;
    for (u, lower) in users.iter().zip(lower) {
        let both: Vec<i64> = lower.iter().map(|&a| order[a] as i64).collect();
        let list = model.constant(&format!("{name}/order"), Tensor::from_slice(&[both.len()], &both)?)?;
        model.set_input(u.node, 1, list);
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RemoveNoOps;
    use crate::testing::Draft;
    use carafe_ops::arithmetic::{Add, Multiply};
    use carafe_ops::math::Tanh;
    use carafe_ops::movement::Concat;
    use carafe_ops::movement::Split;
    use carafe_ops::reduce::ReduceMean;

    fn turned(d: &mut Draft, v: Value, order: &[i64]) -> Value {
        let list = d.ints(order);
        d.add("turn", Transpose, &[v, list])
    }

    // Runs the pass and compares with the model before it.
    fn sunk(mut d: Draft) -> (Draft, usize, Vec<String>) {
        let shapes: Vec<Vec<usize>> =
            d.model.parameters().iter().map(|&p| d.model.fact(p.into()).shape.to_static().unwrap()).collect();
        let feed: Vec<Tensor> = shapes
            .iter()
            .map(|s| {
                let n: usize = s.iter().product();
                Tensor::from_slice(s, &(0..n).map(|i| (i as f32).sin()).collect::<Vec<_>>()).unwrap()
            })
            .collect();
        let before = d.model.evaluate(&feed).unwrap();
        let (fired, why) = d.run(&SinkTransposes);
        d.run(&RemoveNoOps);
        for (a, b) in before.iter().zip(d.model.evaluate(&feed).unwrap()) {
            assert_eq!(a.shape(), b.shape());
            let (a, b) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
            assert!(a.iter().zip(b.iter()).all(|(x, y)| (x - y).abs() < 1e-6));
        }
        (d, fired, why)
    }

    #[test]
    fn a_pair_around_elementwise_nodes_goes() {
        let mut d = Draft::new();
        let (x, y) = (d.input("x", &[2, 3, 4]), d.input("y", &[2, 3, 4]));
        let (a, b) = (turned(&mut d, x, &[0, 2, 1]), turned(&mut d, y, &[0, 2, 1]));
        let c = d.model.constant("c", Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0]).unwrap()).unwrap();
        let a = d.add("scaled", Multiply::default(), &[a, c]);
        let s = d.add("sum", Add::default(), &[a, b]);
        let t = d.add("tanh", Tanh, &[s]);
        let joined = d.add("joined", Concat { axis: 2 }, &[t, b]);
        let out = turned(&mut d, joined, &[0, 2, 1]);
        d.result(out);
        let (d, fired, _) = sunk(d);
        assert_eq!((fired, d.count("Transpose")), (1, 0));
        assert!(d.model.find_node("scaled").is_some());
    }

    #[test]
    fn a_lone_transpose_is_not_moved() {
        let mut d = Draft::new();
        let (x, y) = (d.input("x", &[2, 3]), d.input("y", &[2, 3]));
        let a = turned(&mut d, x, &[1, 0]);
        let b = d.add("tanh", Tanh, &[a]);
        d.result(b);
        let z = d.add("other", Tanh, &[y]);
        let z = turned(&mut d, z, &[1, 0]);
        d.result(z);
        let (d, fired, _) = sunk(d);
        assert_eq!((fired, d.count("Transpose")), (0, 2));
    }

    #[test]
    fn three_orders_merge_into_one() {
        let mut d = Draft::new();
        let x = d.input("x", &[2, 3, 4]);
        let a = turned(&mut d, x, &[1, 2, 0]);
        let a = turned(&mut d, a, &[0, 2, 1]);
        let a = turned(&mut d, a, &[1, 2, 0]);
        d.result(a);
        let (d, fired, _) = sunk(d);
        assert!(fired >= 1 && d.count("Transpose") <= 1);
    }

    #[test]
    fn a_product_takes_the_order_through_a_scale() {
        let mut d = Draft::new();
        let (x, y) = (d.input("x", &[2, 4, 3]), d.input("y", &[2, 4, 5]));
        let a = turned(&mut d, x, &[0, 2, 1]);
        let c = d.floats(&[], 0.5);
        let a = d.add("scaled", Multiply::default(), &[a, c]);
        let m = d.add("m", MatMul { transpose_a: false, transpose_b: false }, &[a, y]);
        d.result(m);
        let (d, fired, _) = sunk(d);
        assert_eq!((fired, d.count("Transpose")), (1, 0));
    }

    #[test]
    fn a_mean_is_taken_over_the_old_axes() {
        for (axes, gone) in [(&[1i64, 2][..], true), (&[0, 3], false)] {
            let mut d = Draft::new();
            let x = d.input("x", &[2, 3, 4, 5]);
            let a = turned(&mut d, x, &[0, 2, 3, 1]);
            let axes = d.ints(axes);
            let m = d.add("m", ReduceMean { keep_dims: false }, &[a, axes]);
            d.result(m);
            let (d, fired, _) = sunk(d);
            assert_eq!((fired, d.count("Transpose")), (1, 0), "{gone}");
        }
        let mut d = Draft::new();
        let x = d.input("x", &[2, 3, 4]);
        let a = turned(&mut d, x, &[2, 1, 0]);
        let axes = d.ints(&[1]);
        let m = d.add("m", ReduceMean { keep_dims: false }, &[a, axes]);
        d.result(m);
        let (_, fired, why) = sunk(d);
        assert!(fired == 0 && why[0].contains("change places"), "{why:?}");
    }

    #[test]
    fn parts_that_are_turned_back_need_no_turn() {
        let mut d = Draft::new();
        let x = d.input("x", &[2, 3, 4]);
        let a = turned(&mut d, x, &[2, 0, 1]);
        let axis = d.int(0);
        let s = d.add("s", Split { num_splits: 2 }, &[a, axis]);
        for port in 0..2 {
            let part = turned(&mut d, Value { port, ..s }, &[1, 2, 0]);
            let part = d.add("tanh", Tanh, &[part]);
            d.result(part);
        }
        let (d, fired, _) = sunk(d);
        assert_eq!((fired, d.count("Transpose")), (1, 0));
    }
}
