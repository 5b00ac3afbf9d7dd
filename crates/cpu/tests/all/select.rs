//! Choices along an axis and elementwise operations of other types than floats, in both layouts, against evaluation.

use crate::layouts::{FRONTS, Random, check, check_with, front, int};
use carafe_graph::{Model, NodeId, Value};
use carafe_ops::indexing::one_hot::NegativeIndices;
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_ops::{arithmetic, compare, convert, indexing, logic, math, movement, search};
use carafe_tensor::{ElementType, PartialShape, Tensor};

const TYPES: [ElementType; 6] =
    [ElementType::F32, ElementType::I32, ElementType::F32, ElementType::I64, ElementType::U8, ElementType::F64];

fn each(ranks: std::ops::RangeInclusive<i64>, build: impl Fn(&mut Model, &mut Random, Value, &[usize]) -> NodeId) {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for round in 0..60 {
        let rank = random.between(*ranks.start(), *ranks.end()) as usize;
        let shape = random.shape(rank);
        for way in FRONTS {
            let mut model = Model::new("m");
            let x = front(&mut model, &mut random, way, TYPES[round % TYPES.len()], &shape);
            let op = build(&mut model, &mut random, x, &shape);
            check(model, op, &mut random);
        }
    }
}

#[test]
fn the_best_along_an_axis_are_found_with_their_places() {
    each(1..=5, |m, r, x, shape| {
        let axis = r.between(0, shape.len() as i64 - 1);
        let k = r.between(1, shape[axis as usize] as i64);
        let k = int(m, "k", k);
        let op = search::TopK {
            axis,
            mode: [TopKMode::Max, TopKMode::Min][r.between(0, 1) as usize],
            sort: [TopKSort::Value, TopKSort::Index, TopKSort::None][r.between(0, 2) as usize],
            index_element_type: [ElementType::I32, ElementType::I64][r.between(0, 1) as usize],
            stable: false,
        };
        m.add("op", op, &[x, k]).expect("a node")
    });
}

#[test]
fn running_sums_go_both_ways() {
    each(1..=5, |m, r, x, shape| {
        let axis = int(m, "axis", r.between(-(shape.len() as i64), shape.len() as i64 - 1));
        let op = search::CumSum { exclusive: r.between(0, 1) == 0, reverse: r.between(0, 1) == 0 };
        m.add("op", op, &[x, axis]).expect("a node")
    });
}

#[test]
fn marks_stand_at_their_index() {
    let mut random = Random(77);
    for round in 0..30 {
        let mut model = Model::new("m");
        let rank = random.between(0, 3) as usize;
        let shape = random.shape(rank);
        let ty = [ElementType::I32, ElementType::I64][round % 2];
        let list = model.parameter("i", ty, PartialShape::of(&shape)).expect("a parameter");
        let depth = int(&mut model, "depth", random.between(1, 6));
        let [on, off] = ["on", "off"].map(|name| {
            let value = random.tensor(TYPES[round % TYPES.len()], &[]);
            model.constant(name, value).expect("a constant")
        });
        let negative_indices_mode = [NegativeIndices::Ignore, NegativeIndices::Normalize][round / 2 % 2];
        let op = indexing::OneHot { axis: random.between(0, rank as i64), negative_indices_mode };
        let op = model.add("op", op, &[list, depth, on, off]).expect("a node");
        check(model, op, &mut random);
    }
}

#[test]
fn sequences_are_reversed_to_their_lengths() {
    each(2..=5, |m, r, x, shape| {
        let rank = shape.len() as i64;
        let batch_axis = r.between(0, rank - 1);
        let seq_axis = (batch_axis + r.between(1, rank - 1)) % rank;
        let n = shape[seq_axis as usize] as i64;
        let lengths: Vec<i64> = (0..shape[batch_axis as usize]).map(|_| r.between(0, n)).collect();
        let lengths = Tensor::from_slice(&[lengths.len()], &lengths).expect("a tensor");
        let lengths = m.constant("lengths", lengths).expect("a constant");
        m.add("op", movement::ReverseSequence { batch_axis, seq_axis }, &[x, lengths]).expect("a node")
    });
}

// A second operand that stretches in some axes and may have fewer of them.
fn other(m: &mut Model, r: &mut Random, x: Value, shape: &[usize]) -> Value {
    let skip = r.between(0, shape.len() as i64) as usize;
    let own: Vec<usize> = shape[skip..].iter().map(|&n| if r.between(0, 2) == 0 { 1 } else { n }).collect();
    let ty = m.fact(x).ty;
    let way = FRONTS[r.between(0, 1) as usize];
    front(m, r, way, ty, &own)
}

#[test]
fn comparisons_broadcast() {
    each(1..=5, |m, r, x, shape| {
        let y = other(m, r, x, shape);
        match r.between(0, 5) {
            0 => m.add("op", compare::Equal::default(), &[x, y]),
            1 => m.add("op", compare::NotEqual::default(), &[x, y]),
            2 => m.add("op", compare::Less::default(), &[y, x]),
            3 => m.add("op", compare::LessEqual::default(), &[x, y]),
            4 => m.add("op", compare::Greater::default(), &[x, y]),
            _ => m.add("op", compare::GreaterEqual::default(), &[y, x]),
        }
        .expect("a node")
    });
}

#[test]
fn arithmetic_of_any_type_broadcasts() {
    each(1..=5, |m, r, x, shape| {
        let y = other(m, r, x, shape);
        match r.between(0, 5) {
            0 => m.add("op", arithmetic::Add::default(), &[x, y]),
            1 => m.add("op", arithmetic::Subtract::default(), &[y, x]),
            2 => m.add("op", arithmetic::Multiply::default(), &[x, y]),
            3 => m.add("op", arithmetic::Maximum::default(), &[x, y]),
            4 => m.add("op", arithmetic::Minimum::default(), &[y, x]),
            _ => m.add("op", arithmetic::SquaredDifference::default(), &[x, y]),
        }
        .expect("a node")
    });
}

#[test]
fn integers_divide_as_evaluation_does() {
    let mut random = Random(5);
    for ty in [ElementType::I32, ElementType::I64, ElementType::U8, ElementType::I8] {
        for kind in 0..4 {
            let mut model = Model::new("m");
            let x = model.parameter("x", ty, PartialShape::of(&[40, 19])).expect("a parameter");
            let divisors: Vec<i64> = (-9..=9).map(|n| if n == 0 { 3 } else { n }).collect();
            let divisors = Tensor::from_i64(ty, &[19], &divisors).expect("a tensor");
            let y = model.constant("y", divisors).expect("a constant");
            let op = match kind {
                0 => model.add("op", arithmetic::Divide::default(), &[x, y]),
                1 => model.add("op", arithmetic::Divide { m_pythondiv: false, ..Default::default() }, &[x, y]),
                2 => model.add("op", arithmetic::Mod::default(), &[x, y]),
                _ => model.add("op", arithmetic::FloorMod::default(), &[x, y]),
            }
            .expect("a node");
            check(model, op, &mut random);
        }
    }
}

#[test]
fn a_condition_chooses_between_values() {
    each(1..=5, |m, r, x, shape| {
        let y = other(m, r, x, shape);
        let condition = r.tensor(ElementType::Boolean, &shape[shape.len() / 2..]);
        let condition = m.constant("condition", condition).expect("a constant");
        m.add(
            "op",
            indexing::Select { auto_broadcast: Default::default(), auto_broadcast_axis: None },
            &[condition, x, y],
        )
        .expect("a node")
    });
}

#[test]
fn logic_of_comparisons_stays_in_their_layout() {
    each(3..=4, |m, r, x, shape| {
        let y = other(m, r, x, shape);
        let a = m.add("a", compare::Less::default(), &[x, y]).expect("a node");
        let b = m.add("b", compare::Equal::default(), &[x, x]).expect("a node");
        let not = m.add("not", logic::LogicalNot, &[b.into()]).expect("a node");
        match r.between(0, 2) {
            0 => m.add("op", logic::LogicalAnd::default(), &[a.into(), not.into()]),
            1 => m.add("op", logic::LogicalOr::default(), &[not.into(), a.into()]),
            _ => m.add("op", logic::LogicalXor::default(), &[a.into(), b.into()]),
        }
        .expect("a node")
    });
}

#[test]
fn questions_about_floats_are_answered() {
    let numbers = [0.0, -0.0, 1.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, -3.0];
    for kind in 0..4 {
        let mut model = Model::new("m");
        let x = model.parameter("x", ElementType::F32, PartialShape::of(&[2, 4])).expect("a parameter");
        let op = match kind {
            0 => model.add("op", math::IsNaN, &[x]),
            1 => model.add("op", math::IsFinite, &[x]),
            2 => model.add("op", math::IsInf { detect_negative: true, detect_positive: false }, &[x]),
            _ => model.add("op", math::IsInf { detect_negative: true, detect_positive: true }, &[x]),
        }
        .expect("a node");
        model.result("y", op.into()).expect("a result");
        check_with(model, op, vec![Tensor::from_slice(&[2, 4], &numbers).expect("a tensor")]);
    }
}

#[test]
fn elements_change_their_type() {
    use ElementType as E;
    let types = [E::F32, E::F64, E::F16, E::Bf16, E::I8, E::I32, E::I64, E::U8, E::U16, E::U64, E::Boolean];
    let numbers =
        [0.0, -0.0, 1.5, -2.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 300.0, -300.0, 3e9, -3e9, 1e19, 7e4];
    for from in types {
        for to in types.into_iter().filter(|to| *to != from) {
            let mut model = Model::new("m");
            let x = model.parameter("x", from, PartialShape::of(&[13])).expect("a parameter");
            let op = model.add("op", convert::Convert { destination_type: to }, &[x]).expect("a node");
            let same = model.add("same", arithmetic_free(), &[op.into()]).expect("a node");
            model.result("y", same.into()).expect("a result");
            check_with(model, op, vec![Tensor::from_f64(from, &[13], &numbers).expect("a tensor")]);
        }
    }
}

// Something behind the conversion, so that its result lies in planned memory.
fn arithmetic_free() -> movement::ShuffleChannels {
    movement::ShuffleChannels { axis: 0, group: 13 }
}
