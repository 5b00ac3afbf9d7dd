//! Gathers and scatters, in both layouts, against their evaluation.

use crate::layouts::{FRONTS, Front, Random, check_with, front, int};
use carafe_graph::{Model, NodeId, Value};
use carafe_ops::indexing as ops;
use carafe_ops::indexing::Reduction;
use carafe_ops::{embedding, movement};
use carafe_tensor::{ElementType, PartialShape, Tensor};

/// A model under construction with the tensors of its parameters.
struct Draft {
    model: Model,
    inputs: Vec<Tensor>,
    random: Random,
}

impl Draft {
    fn new(random: u64) -> Draft {
        Draft { model: Model::new("m"), inputs: vec![], random: Random(random) }
    }
    fn data(&mut self, way: Front, ty: ElementType, shape: &[usize]) -> Value {
        self.inputs.push(self.random.tensor(ty, shape));
        front(&mut self.model, &mut self.random, way, ty, shape)
    }
    /// Indices within `low..high`, which come while running or are constant.
    fn indices(&mut self, shape: &[usize], low: i64, high: i64) -> Value {
        let ty = if self.random.between(0, 1) == 0 { ElementType::I32 } else { ElementType::I64 };
        let list: Vec<i64> = (0..shape.iter().product()).map(|_| self.random.between(low, high - 1)).collect();
        let list = Tensor::from_i64(ty, shape, &list).expect("indices");
        let name = format!("i{}", self.model.len());
        if self.random.between(0, 2) == 0 {
            return self.model.constant(&name, list).expect("a constant");
        }
        self.inputs.push(list);
        self.model.parameter(&name, ty, PartialShape::of(shape)).expect("a parameter")
    }
    fn check(self, op: NodeId) {
        let mut model = self.model;
        model.result("y", op.into()).expect("a result");
        check_with(model, op, self.inputs);
    }
}

fn each(
    rounds: u64,
    ranks: std::ops::RangeInclusive<i64>,
    build: impl Fn(&mut Draft, Front, ElementType, &[usize]) -> NodeId,
) {
    let types = [ElementType::F32, ElementType::F32, ElementType::I64, ElementType::U8, ElementType::F16];
    for round in 1..=rounds {
        for way in FRONTS {
            let mut draft = Draft::new(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let rank = draft.random.between(*ranks.start(), *ranks.end()) as usize;
            let shape = draft.random.shape(rank);
            let op = build(&mut draft, way, types[round as usize % types.len()], &shape);
            draft.check(op);
        }
    }
}

#[test]
fn gather_takes_slices_and_gives_zeros_outside() {
    each(60, 1..=5, |d, way, ty, shape| {
        let axis = d.random.between(0, shape.len() as i64 - 1);
        let n = shape[axis as usize] as i64;
        let x = d.data(way, ty, shape);
        let rank = d.random.between(0, 3) as usize;
        let list = d.random.shape(rank);
        let list = d.indices(&list, -n - 1, n + 2);
        let axis = int(&mut d.model, "axis", axis);
        d.model.add("op", ops::Gather { batch_dims: 0 }, &[x, list, axis]).expect("a node")
    });
}

#[test]
fn gather_walks_batch_axes_together() {
    each(30, 2..=4, |d, way, ty, shape| {
        let axis = d.random.between(1, shape.len() as i64 - 1);
        let n = shape[axis as usize] as i64;
        let x = d.data(way, ty, shape);
        let mut list = shape[..1].to_vec();
        list.push(5);
        let list = d.indices(&list, -n, n);
        let axis = int(&mut d.model, "axis", axis);
        d.model.add("op", ops::Gather { batch_dims: 1 }, &[x, list, axis]).expect("a node")
    });
}

#[test]
fn gather_elements_picks_along_an_axis() {
    each(40, 1..=5, |d, way, ty, shape| {
        let axis = d.random.between(0, shape.len() as i64 - 1);
        let n = shape[axis as usize] as i64;
        let x = d.data(way, ty, shape);
        let mut list = shape.to_vec();
        list[axis as usize] = d.random.between(1, 9) as usize;
        let list = d.indices(&list, -n, n);
        d.model.add("op", ops::GatherElements { axis }, &[x, list]).expect("a node")
    });
}

#[test]
fn gather_nd_takes_slices_by_tuples() {
    each(40, 2..=5, |d, way, ty, shape| {
        let batch = d.random.between(0, 1) as usize;
        let tuple = d.random.between(1, (shape.len() - batch) as i64) as usize;
        let least = shape[batch..batch + tuple].iter().min().copied().unwrap_or(1) as i64;
        let x = d.data(way, ty, shape);
        let mut list = shape[..batch].to_vec();
        list.extend([3, tuple]);
        let list = d.indices(&list, -least, least);
        d.model.add("op", ops::GatherND { batch_dims: batch }, &[x, list]).expect("a node")
    });
}

#[test]
fn scatter_elements_replaces_and_joins() {
    let ways = [Reduction::None, Reduction::Sum, Reduction::Prod, Reduction::Min, Reduction::Max, Reduction::Mean];
    each(90, 1..=5, |d, way, ty, shape| {
        let reduction = ways[d.random.between(0, 5) as usize];
        let ty = if reduction == Reduction::None || ty != ElementType::F16 { ty } else { ElementType::F64 };
        let axis = d.random.between(0, shape.len() as i64 - 1);
        let n = shape[axis as usize] as i64;
        let x = d.data(way, ty, shape);
        let part: Vec<usize> = shape.iter().map(|&n| d.random.between(1, n as i64) as usize).collect();
        let list = d.indices(&part, -n, n);
        let updates = d.data(Front::Nothing, ty, &part);
        let axis = int(&mut d.model, "axis", axis);
        let use_init_val = d.random.between(0, 1) == 0;
        let op = ops::ScatterElementsUpdate { reduction, use_init_val };
        d.model.add("op", op, &[x, list, updates, axis]).expect("a node")
    });
}

#[test]
fn scatter_nd_replaces_and_joins() {
    let ways = [Reduction::None, Reduction::Sum, Reduction::Sub, Reduction::Prod, Reduction::Min, Reduction::Max];
    each(60, 1..=4, |d, way, ty, shape| {
        let reduction = ways[d.random.between(0, 5) as usize];
        let ty = if reduction == Reduction::None || ty != ElementType::F16 { ty } else { ElementType::F64 };
        let tuple = d.random.between(1, shape.len() as i64) as usize;
        let least = shape[..tuple].iter().min().copied().unwrap_or(1) as i64;
        let x = d.data(way, ty, shape);
        let list = d.indices(&[4, tuple], -least, least);
        let part: Vec<usize> = [4].into_iter().chain(shape[tuple..].iter().copied()).collect();
        let updates = d.data(Front::Nothing, ty, &part);
        d.model.add("op", ops::ScatterNDUpdate { reduction }, &[x, list, updates]).expect("a node")
    });
}

#[test]
fn scatter_update_replaces_slices() {
    each(40, 1..=5, |d, way, ty, shape| {
        let axis = d.random.between(0, shape.len() as i64 - 1) as usize;
        let x = d.data(way, ty, shape);
        let rank = d.random.between(1, 2) as usize;
        let list = d.random.shape(rank);
        let part: Vec<usize> = shape[..axis].iter().chain(&list).chain(&shape[axis + 1..]).copied().collect();
        let list = d.indices(&list, 0, shape[axis] as i64);
        let updates = d.data(Front::Nothing, ty, &part);
        let axis = int(&mut d.model, "axis", axis as i64);
        d.model.add("op", ops::ScatterUpdate, &[x, list, updates, axis]).expect("a node")
    });
}

#[test]
fn embedding_bags_are_summed() {
    each(20, 2..=3, |d, _, _, shape| {
        let table = d.data(Front::Nothing, ElementType::F32, shape);
        let list = d.indices(&[4, 3], 0, shape[0] as i64);
        d.model.add("op", embedding::EmbeddingBagPackedSum, &[table, list]).expect("a node")
    });
}

#[test]
fn an_index_outside_is_refused_as_evaluation_does() {
    use carafe_cpu::CpuDevice;
    use carafe_device::{Device, Properties};
    let mut model = Model::new("m");
    let x = model.parameter("x", ElementType::F32, PartialShape::of(&[3, 4])).expect("a parameter");
    let list = model.parameter("i", ElementType::I64, PartialShape::of(&[3, 1])).expect("a parameter");
    let op = model.add("op", ops::GatherElements { axis: 1 }, &[x, list]).expect("a node");
    model.result("y", op.into()).expect("a result");
    let inputs = [
        Tensor::zeros(ElementType::F32, &[3, 4]).expect("a tensor"),
        Tensor::from_slice(&[3, 1], &[0i64, 4, 1]).expect("a tensor"),
    ];
    let wanted = model.evaluate(&inputs).expect_err("outside").to_string();
    let compiled = CpuDevice::default().compile(&model, &Properties::new()).expect("a compiled model");
    let mut request = compiled.create_request();
    inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).expect("an input"));
    assert_eq!(request.infer().expect_err("outside").to_string(), wanted);
}

#[test]
fn a_gather_feeds_what_follows() {
    each(10, 3..=4, |d, way, _, shape| {
        let x = d.data(way, ElementType::F32, shape);
        let list = d.indices(&[2], 0, shape[1] as i64);
        let axis = int(&mut d.model, "axis", 1);
        let taken = d.model.add("g", ops::Gather { batch_dims: 0 }, &[x, list, axis]).expect("a node");
        d.model.add("op", movement::Concat { axis: 1 }, &[taken.into(), x]).expect("a node")
    });
}
