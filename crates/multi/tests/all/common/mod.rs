//! Small models and a core with fake devices. Each test file uses a part of it.
#![allow(dead_code)]

use carafe::{AttrMap, AttrValue, CompiledModel, Core, ElementType, Model, NodeId, PartialShape, Tensor, Value};
use carafe_testkit::FakeDevice;
use std::sync::LazyLock;

static REGISTRY: LazyLock<carafe::Registry> = LazyLock::new(carafe_ops::registry);

/// The newest operation of that name; attributes as text.
pub(crate) fn add(m: &mut Model, type_name: &str, name: &str, attrs: &[(&str, &str)], inputs: &[Value]) -> NodeId {
    let attrs: AttrMap = attrs.iter().map(|(k, v)| (k.to_string(), AttrValue::Text(v.to_string()))).collect();
    let op = REGISTRY.newest(type_name).expect("a known type").create(&attrs).unwrap();
    m.add_ref(name, op, inputs).unwrap()
}

/// As `add`, for a node with one output and no attributes.
pub(crate) fn op(m: &mut Model, type_name: &str, name: &str, inputs: &[Value]) -> Value {
    add(m, type_name, name, &[], inputs).into()
}

pub(crate) fn floats(shape: &[usize], data: &[f32]) -> Tensor {
    Tensor::from_slice(shape, data).unwrap()
}

pub(crate) fn parameter(m: &mut Model, name: &str, shape: &str) -> Value {
    m.parameter(name, ElementType::F32, shape.parse::<PartialShape>().unwrap()).unwrap()
}

/// x -> Relu `a` -> Exp `b` -> Add `c` (with a constant) -> y
pub(crate) fn chain() -> Model {
    let mut m = Model::new("chain");
    let x = parameter(&mut m, "x", "1,4");
    let a = op(&mut m, "Relu", "a", &[x]);
    let b = op(&mut m, "Exp", "b", &[a]);
    let k = m.constant("k", floats(&[1, 4], &[1.0, 2.0, 3.0, 4.0])).unwrap();
    let c = op(&mut m, "Add", "c", &[b, k]);
    m.result("y", c).unwrap();
    m
}

pub(crate) fn core_with(devices: &[&FakeDevice]) -> Core {
    let core = carafe::core();
    devices.iter().for_each(|d| d.add_to(&core));
    core
}

pub(crate) fn row(seed: usize) -> Tensor {
    floats(&[1, 4], &[seed as f32, -1.0, 0.5, seed as f32 * 0.25])
}

pub(crate) fn infer(compiled: &CompiledModel, inputs: &[Tensor]) -> Vec<Tensor> {
    compiled.infer(inputs).unwrap().into_vec()
}

pub(crate) fn assert_same(found: &[Tensor], expected: &[Tensor]) {
    assert_eq!(found.len(), expected.len());
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!(f.content_eq(e), "output {i}: found {f:?}, expected {e:?}");
    }
}
