//! Models whose shapes depend on data, against the operations' own evaluation.

use crate::nets::{Numbers, compile, conv, ints, weights};
use carafe_device::{InferRequest, Properties};
use carafe_graph::{Model, Op, Value};
use carafe_ops::activation::Relu;
use carafe_ops::arithmetic::Add;
use carafe_ops::compare::Greater;
use carafe_ops::detection::NonMaxSuppression;
use carafe_ops::detection::non_max_suppression::BoxEncoding;
use carafe_ops::indexing::{Gather, NonZero};
use carafe_ops::linear::MatMul;
use carafe_ops::movement::{Concat, Reshape, SqueezeV1};
use carafe_ops::reduce::ReduceMean;
use carafe_ops::shape::ShapeOf;
use carafe_ops::state::{Assign, ReadValue};
use carafe_tensor::{ElementType, PartialShape, Tensor};

fn op<O: Op>(m: &mut Model, op: O, inputs: &[Value]) -> Value {
    let name = format!("{}{}", op.info().name, m.slots());
    m.add(name, op, inputs).unwrap().into()
}

fn input(m: &mut Model, name: &str, shape: &str) -> Value {
    m.parameter(name, ElementType::F32, shape.parse::<PartialShape>().unwrap()).unwrap()
}

// Rows of `x` whose number is above `limit`.
fn chosen(m: &mut Model, x: Value, numbers: Value, limit: f32) -> Value {
    let limit = m.constant("limit", Tensor::scalar(limit)).unwrap();
    let above = op(m, Greater::default(), &[numbers, limit]);
    let positions = op(m, NonZero { output_type: ElementType::I64 }, &[above]);
    let first = ints(m, &[0]);
    let positions = op(m, SqueezeV1, &[positions, first]);
    let axis = m.constant("axis", Tensor::scalar(0i64)).unwrap();
    op(m, Gather { batch_dims: 0 }, &[x, positions, axis])
}

fn same(request: &mut Box<dyn InferRequest>, expected: &[Tensor], inputs: &[Tensor]) {
    inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).unwrap());
    request.infer().unwrap();
    for (i, wanted) in expected.iter().enumerate() {
        let found = request.output(i).unwrap();
        assert_eq!((found.element_type(), found.shape()), (wanted.element_type(), wanted.shape()));
        let (a, b) = (found.to_vec::<f32>().unwrap(), wanted.to_vec::<f32>().unwrap());
        a.iter().zip(b.iter()).for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a} {b}"));
    }
}

// All inputs twice, and the kernels of the last inference.
fn check(model: &Model, all: &[Vec<Tensor>]) -> Vec<String> {
    let compiled = compile(model, &Properties::new().with("PERF_COUNT", "YES"));
    let mut request = compiled.clone().create_request();
    for inputs in all.iter().chain(all) {
        same(&mut request, &model.evaluate(inputs).unwrap(), inputs);
    }
    compiled.runtime_model();
    request.profile().into_iter().map(|p| p.kernel).collect()
}

#[test]
fn what_comes_behind_non_zero_runs_with_kernels() {
    for shape in ["9,4,12,10", "?,4,?,?"] {
        let mut m = Model::new("m");
        let n = &mut Numbers(3);
        let (x, numbers) = (input(&mut m, "x", shape), input(&mut m, "numbers", &shape[..1]));
        let y = conv(&mut m, n, x, [4, 16], 3, 1);
        let y = op(&mut m, Relu, &[y]);
        m.result("all", y).unwrap();
        let some = chosen(&mut m, y, numbers, 0.0);
        let z = conv(&mut m, n, some, [16, 24], 3, 1);
        let axes = ints(&mut m, &[2, 3]);
        let z = op(&mut m, ReduceMean { keep_dims: false }, &[z, axes]);
        m.result("some", z).unwrap();
        let size = op(&mut m, ShapeOf { output_type: ElementType::I64 }, &[some]);
        m.result("size", size).unwrap();
        let mut all: Vec<Vec<Tensor>> = (0..4).map(|_| vec![n.tensor(&[9, 4, 12, 10]), n.tensor(&[9])]).collect();
        // Nothing is chosen.
        all.insert(2, vec![n.tensor(&[9, 4, 12, 10]), Tensor::from_vec(&[9], vec![-1.0f32; 9]).unwrap()]);
        let kernels = check(&m, &all);
        assert_eq!(kernels.iter().filter(|k| k.contains("conv_")).count(), 2, "{kernels:?}");
    }
}

#[test]
fn what_is_chosen_may_choose_again() {
    let mut m = Model::new("m");
    let n = &mut Numbers(4);
    let (x, numbers) = (input(&mut m, "x", "20,8"), input(&mut m, "numbers", "20"));
    let some = chosen(&mut m, x, numbers, -0.5);
    let last = ints(&mut m, &[-1]);
    let means = op(&mut m, ReduceMean { keep_dims: false }, &[some, last]);
    let few = chosen(&mut m, some, means, 0.0);
    let w = weights(&mut m, n, &[8, 12]);
    let y = op(&mut m, MatMul { transpose_a: false, transpose_b: false }, &[few, w]);
    // What was known from the start is read behind both.
    let first = ints(&mut m, &[0]);
    let mean = op(&mut m, ReduceMean { keep_dims: true }, &[x, first]);
    let w = weights(&mut m, n, &[8, 12]);
    let z = op(&mut m, MatMul { transpose_a: false, transpose_b: false }, &[mean, w]);
    let y = op(&mut m, Add::default(), &[y, z]);
    m.result("y", y).unwrap();
    m.result("means", means).unwrap();
    let all: Vec<Vec<Tensor>> = (0..4).map(|_| vec![n.tensor(&[20, 8]), n.tensor(&[20])]).collect();
    let kernels = check(&m, &all);
    assert!(kernels.iter().filter(|k| k.contains("matmul") || k.contains("gemm")).count() == 2, "{kernels:?}");
}

#[test]
fn boxes_that_are_left_are_looked_at() {
    let mut m = Model::new("m");
    let n = &mut Numbers(5);
    let (boxes, scores) = (input(&mut m, "boxes", "1,30,4"), input(&mut m, "scores", "1,2,30"));
    let features = input(&mut m, "features", "30,16");
    let number = |m: &mut Model, v: f32| m.constant("number", Tensor::scalar(v)).unwrap();
    let most = m.constant("most", Tensor::scalar(20i64)).unwrap();
    let (iou, limit) = (number(&mut m, 0.4), number(&mut m, 0.1));
    let nms = NonMaxSuppression {
        box_encoding: BoxEncoding::Corner,
        sort_result_descending: true,
        output_type: ElementType::I64,
    };
    let kept = op(&mut m, nms, &[boxes, scores, most, iou, limit]);
    let axis = m.constant("axis", Tensor::scalar(1i64)).unwrap();
    let column = m.constant("column", Tensor::scalar(2i64)).unwrap();
    let positions = op(&mut m, Gather { batch_dims: 0 }, &[kept, column, axis]);
    let axis = m.constant("axis", Tensor::scalar(0i64)).unwrap();
    let rows = op(&mut m, Gather { batch_dims: 0 }, &[features, positions, axis]);
    let w = weights(&mut m, n, &[16, 40]);
    let y = op(&mut m, MatMul { transpose_a: false, transpose_b: false }, &[rows, w]);
    let shape = ints(&mut m, &[-1, 2, 20]);
    let y = op(&mut m, Reshape { special_zero: false }, &[y, shape]);
    m.result("y", y).unwrap();
    m.result("scores", Value { port: 1, ..kept }).unwrap();
    m.result("count", Value { port: 2, ..kept }).unwrap();
    let all: Vec<Vec<Tensor>> =
        (0..4).map(|_| vec![n.tensor(&[1, 30, 4]), n.tensor(&[1, 2, 30]), n.tensor(&[30, 16])]).collect();
    let kernels = check(&m, &all);
    assert!(kernels.iter().any(|k| k.contains("matmul") || k.contains("gemm")), "{kernels:?}");
}

#[test]
fn a_variable_that_grows_is_read_before_it_is_written() {
    let mut m = Model::new("m");
    let n = &mut Numbers(6);
    let x = input(&mut m, "x", "1,8");
    let start = m.constant("start", Tensor::zeros(ElementType::F32, &[0, 8]).unwrap()).unwrap();
    let read = ReadValue {
        variable_id: "past".into(),
        variable_type: ElementType::F32,
        variable_shape: "?,8".parse().unwrap(),
    };
    let past = op(&mut m, read, &[start]);
    let both = op(&mut m, Concat { axis: 0 }, &[past, x]);
    op(&mut m, Assign { variable_id: "past".into() }, &[both]);
    let w = weights(&mut m, n, &[8, 5]);
    let y = op(&mut m, MatMul { transpose_a: false, transpose_b: false }, &[both, w]);
    m.result("y", y).unwrap();
    let mut request = compile(&m, &Properties::new()).create_request();
    let mut env = carafe_graph::EvalEnv::default();
    for step in 0..5 {
        let inputs = [n.tensor(&[1, 8])];
        let expected = carafe_graph::run(&m, &inputs, &mut env).unwrap();
        assert_eq!(expected[0].shape(), [step + 1, 5]);
        same(&mut request, &expected, &inputs);
    }
    request.reset_variables();
    let x = [n.tensor(&[1, 8])];
    same(&mut request, &m.evaluate(&x).unwrap(), &x);
}
