//! Which nodes compute in another order: a cut through the network of values.

use super::min_cut::{NEVER, Network, SINK, SOURCE};
use crate::reordered::{DEPTH, inverse, is_laid_out, is_single, reordered};
use crate::shared::{axes_of, ints, transpose_order};
use carafe_graph::{Constant, Model, NodeId, Reordered, Result, Value};
use carafe_ops::movement::{Reshape, Squeeze, Transpose, Unsqueeze};
use carafe_ops::shape::ShapeOf;
use carafe_tensor::Dim;
use std::collections::{HashMap, HashSet};

/// What an unknown size counts as.
const TYPICAL: i64 = 32;
/// What a Transpose costs besides its elements.
const START: i64 = 64;
/// How much worse a reduction along the innermost axis is along another, for each element.
const STRIDED: i64 = 3;

/// What a node does with the order of its axes.
pub(super) enum Role {
    /// It can be made again with its inputs and its outputs in the order.
    Through(Reordered),
    /// It can give its output in the order, whatever its inputs are in: it only inserts axes of 1.
    Gives(Form),
    /// A Transpose into the order.
    Into,
    /// A Transpose out of the order.
    OutOf,
    /// Another Transpose, which can read and give both.
    Turns,
}

/// How a node without a fixed order on one side is made again.
pub(super) enum Form {
    /// A Reshape: the target in the order.
    Reshape,
    /// Axes by their new numbers, as input 1.
    Axes(Vec<i64>),
    /// Sizes, put back into their places.
    Shape,
}

/// A choice that needs fewer Transposes.
pub(super) struct Choice {
    pub(super) order: Vec<usize>,
    pub(super) roles: HashMap<NodeId, Role>,
    /// Nodes whose outputs will be in the order.
    pub(super) moved: HashMap<NodeId, bool>,
    /// Nodes in topological order.
    pub(super) sequence: Vec<NodeId>,
}

impl Choice {
    pub(super) fn moved(&self) -> usize {
        self.moved.values().filter(|m| **m).count()
    }
}

/// The choice for one order; `None` where nothing is gained.
pub(super) fn choose(model: &Model, order: &[usize]) -> Result<Option<Choice>> {
    let sequence = model.topological_order()?;
    let back = inverse(order);
    let mut roles: HashMap<NodeId, Role> =
        sequence.iter().filter_map(|&id| Some((id, role(model, id, order, &back)?))).collect();
    if back == order {
        turn_in_turns(model, &sequence, &mut roles);
    }
    let mut net = Network::new();
    let vertex: HashMap<NodeId, usize> = sequence
        .iter()
        .filter(|id| matches!(roles.get(id), Some(Role::Through(_) | Role::Gives(_) | Role::Turns)))
        .map(|&id| (id, net.vertex()))
        .collect();
    let mut cost = Cost { net, today: 0 };
    for &id in &sequence {
        if let Some(Role::Through(new)) = roles.get(&id) {
            let me = vertex[&id];
            // Values with fewer axes are widened and transposed where they are read.
            let inputs = &model.node(id).inputs()[..new.data];
            for v in inputs.iter().filter(|v| model.fact(**v).shape.rank() != Some(order.len())) {
                if !is_laid_out(model, *v, DEPTH) && !is_single(model, *v) {
                    cost.net.edge(SOURCE, me, elements(model, *v), 0);
                }
            }
            if leaves_innermost(model, id, new, order) {
                cost.net.edge(SOURCE, me, STRIDED * elements(model, model.node(id).inputs()[0]), 0);
            }
        }
        if model.node(id).op().is::<Constant>() {
            continue;
        }
        for port in 0..model.node(id).outputs().len() {
            let v = Value { node: id, port };
            if model.fact(v).shape.rank() == Some(order.len()) && !is_single(model, v) {
                let producer = match roles.get(&id) {
                    Some(Role::OutOf) => SINK,
                    _ => vertex.get(&id).copied().unwrap_or(SOURCE),
                };
                let readers = readers(model, v, &roles, &vertex, order);
                cost.value(producer, readers, weight(model, v, order));
            }
        }
    }
    let (least, sides) = cost.net.cut();
    if least >= cost.today {
        return Ok(None);
    }
    let moved = vertex.into_iter().map(|(id, at)| (id, sides[at])).collect();
    Ok(Some(Choice { order: order.to_vec(), roles, moved, sequence }))
}

struct Cost {
    net: Network,
    // What the Transposes of the model cost as it is.
    today: i64,
}

impl Cost {
    // A Transpose is needed when any reader is on another side than the producer.
    fn value(&mut self, producer: usize, mut readers: Vec<usize>, weight: i64) {
        readers.sort_unstable();
        readers.dedup();
        let now = |v: usize| v == SINK;
        if readers.iter().any(|&r| now(r) != now(producer)) {
            self.today += weight;
        }
        readers.retain(|&r| r != producer);
        match readers[..] {
            [] => {}
            [reader] => self.net.edge(producer, reader, weight, weight),
            _ => {
                let (into, out_of) = (self.net.vertex(), self.net.vertex());
                self.net.edge(producer, into, weight, 0);
                self.net.edge(out_of, producer, weight, 0);
                for reader in readers {
                    self.net.edge(into, reader, NEVER, 0);
                    self.net.edge(reader, out_of, NEVER, 0);
                }
            }
        }
    }
}

// The vertices of those who read the value and care for its order.
fn readers(
    model: &Model,
    v: Value,
    roles: &HashMap<NodeId, Role>,
    vertex: &HashMap<NodeId, usize>,
    order: &[usize],
) -> Vec<usize> {
    let mut all = vec![];
    for u in model.users(v) {
        let data = u.input == 0;
        match roles.get(&u.node) {
            Some(Role::Through(new)) if u.input < new.data => all.push(vertex[&u.node]),
            Some(Role::Into) if data => all.push(SINK),
            Some(Role::Turns) if data => {}
            _ if data && takes(model, u.node, order).is_some() => {}
            _ => all.push(SOURCE),
        }
    }
    all
}

fn role(model: &Model, id: NodeId, order: &[usize], back: &[usize]) -> Option<Role> {
    if model.node(id).op().is::<Transpose>() {
        let own = transpose_order(model, id)?;
        return match () {
            () if own == order => Some(Role::Into),
            () if own == back => Some(Role::OutOf),
            () if own.len() == order.len() => Some(Role::Turns),
            () => None,
        };
    }
    if let Some((new, _)) = reordered(model, id, order) {
        return Some(Role::Through(new));
    }
    gives(model, id, order).map(Role::Gives)
}

// An order that undoes itself leads out and in: one Transpose leads out of it, the next one behind leads into it again.
fn turn_in_turns(model: &Model, sequence: &[NodeId], roles: &mut HashMap<NodeId, Role>) {
    let mut behind: HashSet<NodeId> = HashSet::new();
    for &id in sequence {
        let data = match roles.get(&id) {
            Some(Role::Through(new)) => new.data,
            Some(Role::Into) => 1,
            _ => continue,
        };
        let is_behind = model.node(id).inputs()[..data].iter().any(|v| behind.contains(&v.node));
        match roles.get_mut(&id) {
            Some(role @ Role::Into) if !is_behind => *role = Role::OutOf,
            Some(Role::Through(_)) if is_behind => {}
            _ => continue,
        }
        behind.insert(id);
    }
}

// How a node that inserts axes of 1 gives its output in the order.
fn gives(model: &Model, id: NodeId, order: &[usize]) -> Option<Form> {
    let shape = &model.fact(id.into()).shape;
    if shape.rank() != Some(order.len()) {
        return None;
    }
    if let Some(op) = model.op_at::<Reshape>(id) {
        let in_place = order.iter().copied().filter(|&a| shape.dim(a).get() != Some(1)).is_sorted();
        // A size that is copied from the input stays where it is.
        let copies = |a: usize| op.special_zero && ints(model, id, 1).is_none_or(|list| list.get(a) == Some(&0));
        let copied_in_place = (0..order.len()).all(|a| order[a] == a || !copies(order[a]));
        return (in_place && copied_in_place).then_some(Form::Reshape);
    }
    if model.node(id).op().is::<Unsqueeze>() {
        let new = axes_of(&ints(model, id, 1)?, order.len())?;
        let rest = order.iter().copied().filter(|a| !new.contains(a));
        return rest.is_sorted().then(|| Form::Axes(renumbered(&new, order)));
    }
    None
}

/// How a node that drops axes, or asks for sizes only, reads its input in the order.
pub(super) fn takes(model: &Model, id: NodeId, order: &[usize]) -> Option<Form> {
    let node = model.node(id);
    let shape = &model.fact(model.input(id, 0)?).shape;
    if shape.rank() != Some(order.len()) {
        return None;
    }
    if node.op().is::<ShapeOf>() {
        return Some(Form::Shape);
    }
    if let Some(op) = model.op_at::<Reshape>(id) {
        let in_place = order.iter().copied().filter(|&a| shape.dim(a).get() != Some(1)).is_sorted();
        let copies = |a: usize| op.special_zero && ints(model, id, 1).is_none_or(|list| list.get(a) == Some(&0));
        let copied_in_place = (0..order.len()).all(|a| order[a] == a || !copies(a));
        return (in_place && copied_in_place).then_some(Form::Reshape);
    }
    if node.op().is::<Squeeze>() || drops_axes(model, id) {
        let gone = axes_of(&ints(model, id, 1)?, order.len())?;
        let rest = order.iter().copied().filter(|a| !gone.contains(a));
        return rest.is_sorted().then(|| Form::Axes(renumbered(&gone, order)));
    }
    None
}

// A reduction that does not keep its axes.
fn drops_axes(model: &Model, id: NodeId) -> bool {
    let op = model.node(id).op();
    let keep = || op.attrs().into_iter().find(|(name, _)| name == "keep_dims").and_then(|(_, v)| v.to_text());
    op.info().reduces && keep().is_some_and(|t| t == "false")
}

fn renumbered(axes: &[usize], order: &[usize]) -> Vec<i64> {
    let mut new: Vec<i64> = (0..order.len()).filter(|&i| axes.contains(&order[i])).map(|i| i as i64).collect();
    new.sort_unstable();
    new
}

// Whether a node that combines elements along the innermost axis would do so along another.
fn leaves_innermost(model: &Model, id: NodeId, new: &Reordered, order: &[usize]) -> bool {
    let last = order.len() - 1;
    let axis = |op: &dyn carafe_graph::Op| {
        let text = op.attrs().into_iter().find(|(name, _)| name == "axis").and_then(|(_, v)| v.to_text());
        text.and_then(|t| t.parse::<i64>().ok())
    };
    let node = model.node(id);
    let combines = node.op().info().reduces
        || (node.op().info().keeps_shape && node.op().info().elementwise == carafe_graph::Elementwise::No);
    if !combines {
        return false;
    }
    let has_last = |axes: &[i64]| axes.iter().any(|&a| a == last as i64 || a == -1);
    match new.ints.first() {
        Some((input, list)) => ints(model, id, *input).is_some_and(|old| has_last(&old)) && !has_last(list),
        None => axis(node.op()).is_some_and(|a| has_last(&[a])) && !axis(&*new.op).is_some_and(|a| has_last(&[a])),
    }
}

// What transposing the value costs. One whose axes of 1 alone change their place is only seen in another shape.
fn weight(model: &Model, v: Value, order: &[usize]) -> i64 {
    let shape = &model.fact(v).shape;
    let in_place = order.iter().copied().filter(|&a| shape.dim(a).get() != Some(1)).is_sorted();
    if in_place { 1 } else { START + elements(model, v) }
}

fn elements(model: &Model, v: Value) -> i64 {
    let size = |d: &Dim| d.get().unwrap_or(TYPICAL);
    let all = model.fact(v).shape.dims().map(|dims| dims.iter().fold(1i64, |n, d| n.saturating_mul(size(d))));
    all.unwrap_or(1).clamp(1, NEVER >> 24)
}
