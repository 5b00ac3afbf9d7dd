//! Models in f16 and bf16 run in the kernels for f32.

use crate::nets::{Numbers, compile};
use carafe_device::Properties;
use carafe_graph::{Model, Value};
use carafe_ops::activation::Relu;
use carafe_ops::convert::Convert;
use carafe_ops::linear::MatMul;
use carafe_tensor::{ElementType, PartialShape};

// relu(x w) v, all in one type.
fn net(ty: ElementType) -> Model {
    let mut numbers = Numbers(7);
    let mut m = Model::new("m");
    let x = m.parameter("x", ty, PartialShape::of(&[5, 24])).unwrap();
    let mut product = |m: &mut Model, name: &str, x: Value, shape: [usize; 2]| -> Value {
        let w = numbers.tensor(&shape).cast(ty).unwrap();
        let w = m.constant(&format!("{name}_w"), w).unwrap();
        m.add(name, MatMul { transpose_a: false, transpose_b: false }, &[x, w]).unwrap().into()
    };
    let a = product(&mut m, "first", x, [24, 40]);
    let a = m.add("relu", Relu, &[a]).unwrap().into();
    let y = product(&mut m, "second", a, [40, 7]);
    m.result("y", y).unwrap();
    m
}

#[test]
fn products_of_halves_are_kernels_and_give_halves() {
    for (ty, bound) in [(ElementType::F16, 2e-3), (ElementType::Bf16, 2e-2)] {
        let m = net(ty);
        let x = Numbers(7).tensor(&[5, 24]).cast(ty).unwrap();
        let mut request = compile(&m, &Properties::new().with("PERF_COUNT", "YES")).create_request();
        request.set_input(0, x.clone()).unwrap();
        request.infer().unwrap();
        let found = request.output(0).unwrap();
        assert_eq!(found.element_type(), ty);
        let wanted = m.evaluate(&[x]).unwrap();
        let (found, wanted) = (found.to_vec::<f32>().unwrap(), wanted[0].to_vec::<f32>().unwrap());
        let largest = wanted.iter().fold(0f32, |m, v| m.max(v.abs()));
        for (a, b) in found.iter().zip(wanted.iter()) {
            assert!((a - b).abs() <= bound * largest, "{ty}: {a} {b}");
        }
        let kernels: Vec<String> = request.profile().into_iter().map(|p| p.kernel).collect();
        assert!(kernels.iter().all(|k| k != "reference"), "{kernels:?}");
    }
}

#[test]
fn a_cast_to_halves_and_back_costs_nothing() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[64])).unwrap();
    let small = m.add("small", Convert { destination_type: ElementType::F16 }, &[x]).unwrap();
    let wide = m.add("wide", Convert { destination_type: ElementType::F32 }, &[small.into()]).unwrap();
    let y = m.add("y", Relu, &[wide.into()]).unwrap();
    m.result("y", y.into()).unwrap();
    let request = compile(&m, &Properties::new().with("PERF_COUNT", "YES")).create_request();
    let names: Vec<String> = request.profile().into_iter().map(|p| p.name).collect();
    assert!(!names.iter().any(|n| n == "wide"), "{names:?}");
}
