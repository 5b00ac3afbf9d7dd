//! The device as users meet it, on whatever OpenCL device is here. There must be one: `scripts/test` installs PoCL.

use carafe_device::{Device, InferRequest, Properties};
use carafe_graph::{Model, Parameter, Value};
use carafe_ops::activation::{Relu, Sigmoid};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::movement::{Concat, Transpose};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::sync::Arc;

fn gpu() -> Arc<dyn Device> {
    let [(_, gpu), _] = carafe_gpu::devices();
    let found = gpu.metric("AVAILABLE_DEVICES");
    assert!(found.is_ok(), "these tests need an OpenCL device (apt-get install pocl-opencl-icd): {found:?}");
    gpu
}

fn input(model: &mut Model, name: &str, shape: &[usize]) -> Value {
    let op = Parameter { shape: PartialShape::of(shape), element_type: ElementType::F32 };
    model.add(name, op, &[]).unwrap().into()
}

fn request(device: &dyn Device, model: &Model, properties: &Properties) -> Box<dyn InferRequest> {
    device.compile(model, properties).unwrap().create_request()
}

fn floats(shape: &[usize], f: impl Fn(usize) -> f32) -> Tensor {
    let n: usize = shape.iter().product();
    Tensor::from_vec(shape, (0..n).map(f).collect::<Vec<f32>>()).unwrap()
}

// relu(a + b) * sigmoid(a), of which b is a row.
fn chain(shape: &[usize]) -> Model {
    let mut m = Model::new("chain");
    let (a, b) = (input(&mut m, "a", shape), input(&mut m, "b", &shape[1..]));
    let sum = m.add("sum", Add::default(), &[a, b]).unwrap();
    let relu = m.add("relu", Relu, &[sum.into()]).unwrap();
    let gate = m.add("gate", Sigmoid, &[a]).unwrap();
    let product = m.add("product", Multiply::default(), &[relu.into(), gate.into()]).unwrap();
    m.result("y", product.into()).unwrap();
    m.infer().unwrap();
    m
}

fn expected(a: &Tensor, b: &Tensor) -> Vec<f32> {
    let (a, b) = (a.as_slice::<f32>().unwrap(), b.as_slice::<f32>().unwrap());
    a.iter().enumerate().map(|(i, &x)| (x + b[i % b.len()]).max(0.0) / (1.0 + (-x).exp())).collect()
}

fn close(found: &Tensor, wanted: &[f32], bound: f32) {
    let found = found.as_slice::<f32>().unwrap();
    assert_eq!(found.len(), wanted.len());
    for (i, (x, y)) in found.iter().zip(wanted).enumerate() {
        assert!((x - y).abs() <= bound * y.abs().max(1.0), "element {i} is {x}, expected {y}");
    }
}

#[test]
fn a_chain_of_elementwise_operations_is_one_kernel_and_gives_the_same_in_every_run() {
    let device = gpu();
    let model = chain(&[3, 5, 7]);
    let compiled = device.compile(&model, &Properties::new().with("PERF_COUNT", true)).unwrap();
    let mut request = compiled.create_request();
    for run in 0..3 {
        let (a, b) =
            (floats(&[3, 5, 7], |i| i as f32 / 10.0 - 4.0 + run as f32), floats(&[5, 7], |i| 2.0 - i as f32 / 9.0));
        let wanted = expected(&a, &b);
        request.set_input(0, a).unwrap();
        request.set_input(1, b).unwrap();
        request.infer().unwrap();
        close(request.output(0).unwrap(), &wanted, 1e-6);
    }
    let profile = request.profile();
    let kernels: Vec<&str> = profile.iter().filter(|p| p.kernel.contains("elementwise")).map(|p| &*p.kernel).collect();
    assert_eq!(kernels.len(), 1, "{profile:?}");
    assert!(profile.iter().any(|p| p.real_time.as_nanos() > 0), "{profile:?}");
}

#[test]
fn halves_in_memory_are_near() {
    let device = gpu();
    let mut request = request(&*device, &chain(&[2, 3, 4]), &Properties::new().with("INFERENCE_PRECISION_HINT", "f16"));
    let (a, b) = (floats(&[2, 3, 4], |i| i as f32 / 10.0 - 1.0), floats(&[3, 4], |i| 1.0 - i as f32 / 9.0));
    let wanted = expected(&a, &b);
    request.set_input(0, a).unwrap();
    request.set_input(1, b).unwrap();
    request.infer().unwrap();
    close(request.output(0).unwrap(), &wanted, 2e-3);
}

#[test]
fn values_are_moved_and_joined() {
    let device = gpu();
    let mut m = Model::new("moved");
    let a = input(&mut m, "a", &[2, 3]);
    let order = m.constant("order", Tensor::from_slice(&[2], &[1i64, 0]).unwrap()).unwrap();
    let t = m.add("t", Transpose, &[a, order]).unwrap();
    let relu = m.add("relu", Relu, &[t.into()]).unwrap();
    let joined = m.add("joined", Concat { axis: 1 }, &[t.into(), relu.into()]).unwrap();
    m.result("y", joined.into()).unwrap();
    m.infer().unwrap();
    let mut request = request(&*device, &m, &Properties::new());
    request.set_input(0, floats(&[2, 3], |i| i as f32 - 2.5)).unwrap();
    request.infer().unwrap();
    let wanted = [-2.5, 0.5, 0.0, 0.5, -1.5, 1.5, 0.0, 1.5, -0.5, 2.5, 0.0, 2.5];
    assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), wanted);
}
