//! Decision trees, as readers write them out in gathers, against the operations' own evaluation.

use crate::layouts::{Random, int, ints};
use carafe_cpu::CpuDevice;
use carafe_device::{Device, Properties};
use carafe_graph::{Model, Value};
use carafe_ops::compare::LessEqual;
use carafe_ops::indexing::{Gather, GatherElements, Select};
use carafe_ops::logic::{LogicalAnd, LogicalOr};
use carafe_ops::math::IsNaN;
use carafe_ops::reduce::ReduceSum;
use carafe_tensor::{ElementType, PartialShape, Tensor};

// Rows of 5 features through trees of random nodes, each of which leads to a later one or to itself.
fn forest(random: &mut Random, shape: &str, levels: usize, missing: bool) -> Model {
    let nodes = 40;
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, shape.parse::<PartialShape>().expect("a shape")).expect("an input");
    let at = m.parameter("at", ElementType::I64, "?,7".parse::<PartialShape>().expect("a shape")).expect("an input");
    let list = |random: &mut Random, low: fn(i64) -> i64, high: i64| -> Vec<i64> {
        (0..nodes).map(|i| random.between(low(i), high)).collect()
    };
    let features = list(random, |_| 0, 4);
    let (yes, no) = (list(random, |i| i, nodes - 1), list(random, |i| i, nodes - 1));
    let (features, yes, no) = (ints(&mut m, "features", &features), ints(&mut m, "yes", &yes), ints(&mut m, "no", &no));
    let values = random.tensor(ElementType::F32, &[nodes as usize]);
    let values = m.constant("values", values).expect("a constant");
    let lost: Vec<i64> = (0..nodes).map(|_| random.between(0, 1)).collect();
    let lost = Tensor::from_i64(ElementType::Boolean, &[nodes as usize], &lost).expect("a tensor");
    let lost = m.constant("lost", lost).expect("a constant");
    let weights = random.tensor(ElementType::F32, &[nodes as usize, 3]);
    let weights = m.constant("weights", weights).expect("a constant");
    let axis = int(&mut m, "axis", 0);
    let mut at: Value = at;
    for k in 0..levels {
        let gather = |m: &mut Model, table: Value, what: &str| -> Value {
            m.add(format!("{what}{k}"), Gather { batch_dims: 0 }, &[table, at, axis]).expect("a node").into()
        };
        let (f, v) = (gather(&mut m, features, "f"), gather(&mut m, values, "v"));
        let (y, n) = (gather(&mut m, yes, "y"), gather(&mut m, no, "n"));
        let seen = m.add(format!("seen{k}"), GatherElements { axis: 1 }, &[x, f]).expect("a node");
        let mut go = m.add(format!("go{k}"), LessEqual::default(), &[seen.into(), v]).expect("a node");
        if missing {
            let nan = m.add(format!("nan{k}"), IsNaN, &[seen.into()]).expect("a node");
            let follow = gather(&mut m, lost, "l");
            let both = m.add(format!("both{k}"), LogicalAnd::default(), &[nan.into(), follow]).expect("a node");
            go = m.add(format!("or{k}"), LogicalOr::default(), &[go.into(), both.into()]).expect("a node");
        }
        let choice = Select { auto_broadcast: Default::default(), auto_broadcast_axis: None };
        at = m.add(format!("at{k}"), choice, &[go.into(), y, n]).expect("a node").into();
    }
    let scores = m.add("scores", Gather { batch_dims: 0 }, &[weights, at, axis]).expect("a node");
    let axes = ints(&mut m, "axes", &[1]);
    let sum = m.add("sum", ReduceSum { keep_dims: false }, &[scores.into(), axes]).expect("a node");
    m.result("r", sum.into()).expect("a result");
    m.prune();
    m
}

#[test]
fn all_levels_are_one_step() {
    let mut random = Random(23);
    for round in 0..12 {
        let (levels, missing) = (1 + round % 5, round % 2 == 1);
        let shape = if round % 3 == 0 { "?,5" } else { "9,5" };
        let model = forest(&mut random, shape, levels, missing);
        let rows = if round % 3 == 0 { 1 + round * 7 } else { 9 };
        let mut x: Vec<f32> = (0..rows * 5).map(|_| random.between(-9, 9) as f32).collect();
        x.iter_mut().step_by(4).for_each(|x| *x = f32::NAN);
        let from: Vec<i64> = (0..rows * 7).map(|_| random.between(0, 20)).collect();
        let inputs =
            [Tensor::from_slice(&[rows, 5], &x).expect("x"), Tensor::from_slice(&[rows, 7], &from).expect("at")];
        let wanted = model.evaluate(&inputs).expect("evaluation");
        let compiled = CpuDevice::default().compile(&model, &Properties::new()).expect("a compiled model");
        let mut request = compiled.clone().create_request();
        inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).expect("an input"));
        request.infer().expect("an inference");
        assert!(request.output(0).expect("an output").content_eq(&wanted[0]), "{levels} levels, {rows} rows");
        let runtime = compiled.runtime_model();
        let kernels: Vec<String> =
            runtime.nodes().map(|(_, n)| format!("{:?}", n.rt_info.get("primitiveType"))).collect();
        assert_eq!(kernels.iter().filter(|k| k.contains("tree_walk")).count(), 1, "{kernels:?}");
        assert!(!kernels.iter().any(|k| k.contains("select")), "{kernels:?}");
    }
}
