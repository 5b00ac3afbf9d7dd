//! A graph of more than twenty thousand nodes is tidied; a pass that looks at all nodes for every node would be felt here.

use carafe_graph::{Model, Notes, Value, run_passes};
use carafe_ops::arithmetic::Add;
use carafe_ops::convert::Convert;
use carafe_ops::indexing::Gather;
use carafe_ops::math::{Abs, Tanh};
use carafe_ops::movement::{Concat, Reshape, Transpose};
use carafe_ops::shape::ShapeOf;
use carafe_passes::TIDY;
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};
use std::time::Instant;

const LAYERS: usize = 1100;

fn list(model: &mut Model, list: &[i64]) -> Value {
    model.constant("list", Tensor::from_slice(&[list.len()], list).unwrap()).unwrap()
}

fn layer(model: &mut Model, x: Value) -> Value {
    let mut node = |op: carafe_graph::OpRef, inputs: &[Value]| Value::from(model.add_ref("n", op, inputs).unwrap());
    use std::sync::Arc;
    let a = node(Arc::new(Tanh), &[x]);
    let b = node(Arc::new(Tanh), &[x]);
    let s = node(Arc::new(Add::default()), &[a, b]);
    let s = node(Arc::new(Convert { destination_type: ElementType::F64 }), &[s]);
    let s = node(Arc::new(Convert { destination_type: ElementType::F32 }), &[s]);
    let order = list(model, &[1, 0, 2]);
    let t = model.add("t", Transpose, &[s, order]).unwrap();
    let t = model.add("abs", Abs, &[t.into()]).unwrap();
    let back = list(model, &[1, 0, 2]);
    let t = model.add("back", Transpose, &[t.into(), back]).unwrap();
    let zero = model.constant("zero", Tensor::scalar(0.0f32)).unwrap();
    let t = model.add("same", Add::default(), &[t.into(), zero]).unwrap();
    let shape = model.add("shape", ShapeOf { output_type: ElementType::I64 }, &[t.into()]).unwrap();
    let (at, axis) = (list(model, &[0]), model.constant("axis", Tensor::scalar(0i64)).unwrap());
    let size = model.add("size", Gather { batch_dims: 0 }, &[shape.into(), at, axis]).unwrap();
    let rest = list(model, &[-1, 4]);
    let target = model.add("target", Concat { axis: 0 }, &[size.into(), rest]).unwrap();
    let r = model.add("r", Reshape { special_zero: false }, &[t.into(), target.into()]).unwrap();
    r.into()
}

#[test]
fn twenty_thousand_nodes_are_tidied() {
    let mut model = Model::new("large");
    let shape = PartialShape::new([Dim::ANY, Dim::known(3), Dim::known(4)]);
    let mut x = model.parameter("x", ElementType::F32, shape).unwrap();
    for _ in 0..LAYERS {
        x = layer(&mut model, x);
    }
    model.result("y", x).unwrap();
    let before = model.len();
    assert!(before > 20_000, "{before}");
    let start = Instant::now();
    run_passes(&mut model, TIDY, &mut Notes::default()).unwrap();
    println!("{before} nodes became {} in {:.3} s", model.len(), start.elapsed().as_secs_f64());
    // Tanh, Add and Abs are left of each layer.
    assert!(model.len() <= 3 * LAYERS + 10, "{}", model.len());
}
