//! Where data is rounded. The data of a layer is followed up through operations that only move elements, so that one
//! FakeQuantize serves all who read it; what a Concat joins gets one range. The second operand of an addition whose sum is
//! rounded is rounded too: it then lies in memory as bytes. The first one, which a layer has just made, is not: it never leaves
//! the registers of that layer.

use crate::layers::Layer;
use carafe_graph::{Model, NodeId, Use, Value};
use carafe_ops::activation::{Clamp, Relu};
use carafe_ops::arithmetic::{Add, Maximum, Minimum};
use carafe_ops::indexing::{Gather, Select};
use carafe_ops::movement::{Concat, ExtractImagePatches, Pad, SpaceToBatch};
use carafe_ops::pooling::{AdaptiveAvgPool, AvgPool, MaxPool};
use carafe_ops::reduce::ReduceMean;
use carafe_tensor::ElementType;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A value that is rounded, for these readers.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub value: Value,
    /// Who reads the rounded value, and for which layers; it reads the float one when none of them is quantized.
    pub readers: BTreeMap<Use, BTreeSet<usize>>,
    /// Points with the same number have the same range.
    pub group: usize,
}

impl Point {
    /// Readers that take the rounded value when these layers are quantized.
    pub(crate) fn active<'a>(&'a self, quantized: &'a dyn Fn(usize) -> bool) -> impl Iterator<Item = Use> + 'a {
        self.readers.iter().filter(|(_, layers)| layers.iter().any(|l| quantized(*l))).map(|(u, _)| *u)
    }
}

/// All points.
#[derive(Clone, Debug, Default)]
pub(crate) struct Points {
    pub all: Vec<Point>,
    /// By layer: the points that its data comes from, by their numbers.
    pub data: HashMap<usize, Vec<usize>>,
}

/// The points for all layers that have no reason to stay in float.
pub(crate) fn find(model: &Model, layers: &[Layer]) -> Points {
    let mut sums: BTreeSet<NodeId> = BTreeSet::new();
    loop {
        let finder = Finder::new(model, layers, &sums);
        let found = finder.run();
        let more: BTreeSet<NodeId> = rounded_sums(model, &found.roots).collect();
        if more.is_subset(&sums) {
            return found.into_points();
        }
        sums.extend(more);
    }
}

/// Values to round with their readers, and which of them share a range.
#[derive(Default)]
struct Found {
    roots: BTreeMap<Value, BTreeMap<Use, BTreeSet<usize>>>,
    joined: Vec<Vec<Value>>,
    data: HashMap<usize, Vec<Value>>,
}

impl Found {
    fn into_points(self) -> Points {
        let order: HashMap<Value, usize> = self.roots.keys().enumerate().map(|(i, v)| (*v, i)).collect();
        let mut group: Vec<usize> = (0..order.len()).collect();
        // Few joins, so the plain way: everyone of the one group moves to the other.
        for values in &self.joined {
            for v in &values[1..] {
                let (to, from) = (group[order[&values[0]]], group[order[v]]);
                group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
            }
        }
        let points = self.roots.into_iter().enumerate();
        let all = points.map(|(i, (value, readers))| Point { value, readers, group: group[i] }).collect();
        let numbers = |values: Vec<Value>| values.into_iter().map(|v| order[&v]).collect();
        Points { all, data: self.data.into_iter().map(|(layer, values)| (layer, numbers(values))).collect() }
    }
}

struct Finder<'a> {
    model: &'a Model,
    layers: &'a [Layer],
    data_ports: HashSet<Use>,
    /// Additions whose operands may be rounded.
    sums: &'a BTreeSet<NodeId>,
    takes: std::cell::RefCell<HashMap<Use, bool>>,
}

impl<'a> Finder<'a> {
    fn new(model: &'a Model, layers: &'a [Layer], sums: &'a BTreeSet<NodeId>) -> Finder<'a> {
        let open = layers.iter().filter(|l| l.reason.is_none());
        let data_ports = open.flat_map(|l| l.data.iter().map(|&input| Use { node: l.node, input })).collect();
        Finder { model, layers, data_ports, sums, takes: Default::default() }
    }

    fn run(&self) -> Found {
        let mut found = Found::default();
        for (i, layer) in self.layers.iter().enumerate().filter(|(_, l)| l.reason.is_none()) {
            for (v, reader) in layer.data_values(self.model) {
                let roots = self.follow(v, reader, &BTreeSet::from([i]), &mut found);
                found.data.entry(i).or_default().extend(roots);
            }
        }
        // From the last sum to the first, so that the layers behind a sum are known when its operands ask.
        for &sum in self.sums.iter().rev() {
            let behind = root_behind(self.model, sum, &found.roots).map(|v| &found.roots[&v]);
            let layers: BTreeSet<usize> = behind.into_iter().flat_map(|r| r.values().flatten().copied()).collect();
            let layers = if layers.is_empty() { self.layers_of(sum, &found) } else { layers };
            for input in self.rounded_operands(sum) {
                let v = self.model.node(sum).inputs()[input];
                self.follow(v, Use { node: sum, input }, &layers, &mut found);
            }
        }
        found
    }

    // The layers whose rounded data the operands of a sum are anyway.
    fn layers_of(&self, sum: NodeId, found: &Found) -> BTreeSet<usize> {
        let inputs = self.model.node(sum).inputs().iter();
        inputs.filter_map(|v| found.roots.get(v)).flat_map(|r| r.values().flatten().copied()).collect()
    }

    // All operands but the one that a layer made last for the sum alone.
    fn rounded_operands(&self, sum: NodeId) -> Vec<usize> {
        let inputs = self.model.node(sum).inputs();
        let fused = |v: Value| {
            let made = self.layers.iter().rposition(|l| l.output == v && l.weights.is_some());
            made.filter(|_| self.model.users(v).len() == 1)
        };
        let last = (0..inputs.len()).filter(|&i| fused(inputs[i]).is_some()).max_by_key(|&i| fused(inputs[i]));
        (0..inputs.len()).filter(|i| Some(*i) != last).collect()
    }

    // Rounds what reaches a reader; gives the values that are rounded for it.
    fn follow(&self, v: Value, reader: Use, layers: &BTreeSet<usize>, found: &mut Found) -> Vec<Value> {
        let mut roots = Vec::new();
        self.roots(v, reader, &mut roots, &mut found.joined);
        for &(root, reader) in &roots {
            found.roots.entry(root).or_default().entry(reader).or_default().extend(layers);
        }
        roots.into_iter().map(|(root, _)| root).collect()
    }

    // The values that are rounded so that `reader` sees a rounded `v`.
    fn roots(&self, v: Value, reader: Use, to: &mut Vec<(Value, Use)>, joined: &mut Vec<Vec<Value>>) {
        let inputs = moved_inputs(self.model, v);
        if inputs.is_empty() || !self.all_take(v.node) {
            to.push((v, reader));
            return;
        }
        let first = to.len();
        for input in inputs {
            self.roots(self.model.node(v.node).inputs()[input], Use { node: v.node, input }, to, joined);
        }
        let values: Vec<Value> = to[first..].iter().map(|(v, _)| *v).collect();
        if values.len() > 1 {
            joined.push(values);
        }
    }

    // Whether everyone who reads the node is content with rounded values.
    fn all_take(&self, id: NodeId) -> bool {
        (0..self.model.node(id).outputs().len())
            .flat_map(|port| self.model.users(Value { node: id, port }))
            .all(|u| self.takes(*u))
    }

    fn takes(&self, reader: Use) -> bool {
        if let Some(known) = self.takes.borrow().get(&reader) {
            return *known;
        }
        let moved = |port: usize| moved_inputs(self.model, Value { node: reader.node, port }).contains(&reader.input);
        let takes = self.data_ports.contains(&reader)
            || self.model.node(reader.node).op().info().shape_only
            || (self.sums.contains(&reader.node) && self.rounded_operands(reader.node).contains(&reader.input))
            || (moved(0) && self.all_take(reader.node));
        self.takes.borrow_mut().insert(reader, takes);
        takes
    }
}

// The inputs of which the value holds nothing but elements; none when something is computed, or comes from elsewhere.
fn moved_inputs(model: &Model, v: Value) -> Vec<usize> {
    let node = model.node(v.node);
    let op = node.op();
    let stays = op.is::<SpaceToBatch>() || op.is::<ExtractImagePatches>() || op.is::<Select>() || op.has_body();
    if stays || model.fact(v).ty != ElementType::F32 {
        return vec![];
    }
    let moves = op.info().moves;
    let inputs: Vec<usize> = if op.is::<Concat>() {
        (0..node.inputs().len()).collect()
    } else if op.is::<MaxPool>() && v.port == 0 {
        vec![0]
    } else if op.is::<Pad>() {
        // Zero is a step of every range.
        let zero = node.inputs().get(3).is_none_or(|v| model.splat_of(*v) == Some(0.0));
        if zero { vec![0] } else { vec![] }
    } else if moves == [0] && (!op.is::<Gather>() || model.constant_of(node.inputs()[0]).is_none()) {
        vec![0]
    } else {
        vec![]
    };
    // Constants are not rounded, nor is what the model carries from one inference to the next.
    let computed = |i: &usize| {
        let v = node.inputs()[*i];
        let known = model.fact(v).tensor().is_some();
        !known && model.fact(v).ty == ElementType::F32 && !model.node(v.node).op().info().stateful
    };
    if inputs.iter().all(computed) { inputs } else { vec![] }
}

// Additions of two computed values whose sum is rounded, right away or behind an activation, or averaged.
fn rounded_sums<'a>(
    model: &'a Model,
    roots: &'a BTreeMap<Value, BTreeMap<Use, BTreeSet<usize>>>,
) -> impl Iterator<Item = NodeId> + 'a {
    let computed = |id: NodeId| {
        let inputs = model.node(id).inputs();
        let facts: Vec<_> = inputs.iter().map(|v| model.fact(*v)).collect();
        inputs.len() == 2
            && inputs[0] != inputs[1]
            && facts.iter().all(|f| f.ty == ElementType::F32 && f.tensor().is_none())
            && inputs.iter().all(|v| crate::weights::stored(model, *v).is_none())
            && facts[0].shape.rank() == facts[1].shape.rank()
    };
    let averaged = |id: NodeId| {
        let v = behind_activation(model, id);
        let averages = |u: &Use| {
            let op = model.node(u.node).op();
            op.is::<ReduceMean>() || op.is::<AvgPool>() || op.is::<AdaptiveAvgPool>()
        };
        // Only where an operand is rounded anyway; images are of rank 4 and 5.
        model.fact(v).shape.rank().is_some_and(|r| r >= 4)
            && model.users(v).iter().any(averages)
            && model.node(id).inputs().iter().any(|v| roots.contains_key(v))
    };
    let sums = model.nodes().filter(|(_, n)| n.op().is::<Add>()).map(|(id, _)| id);
    sums.filter(move |id| computed(*id) && (root_behind(model, *id, roots).is_some() || averaged(*id)))
}

fn root_behind(model: &Model, sum: NodeId, roots: &BTreeMap<Value, BTreeMap<Use, BTreeSet<usize>>>) -> Option<Value> {
    let direct: Value = sum.into();
    let behind = behind_activation(model, sum);
    [direct, behind].into_iter().find(|v| roots.contains_key(v))
}

// The value behind the activations that alone read a sum.
fn behind_activation(model: &Model, sum: NodeId) -> Value {
    let mut v: Value = sum.into();
    while let &[reader] = model.users(v) {
        let op = model.node(reader.node).op();
        if !(op.is::<Relu>() || op.is::<Clamp>() || op.is::<Minimum>() || op.is::<Maximum>()) {
            break;
        }
        v = reader.node.into();
    }
    v
}
