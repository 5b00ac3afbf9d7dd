//! The device as users meet it, on whatever OpenCL device is here. There must be one: `scripts/test` installs PoCL.

use carafe_device::{Device, InferRequest, Properties};
use carafe_graph::{Model, Parameter, Value};
use carafe_ops::activation::{Relu, Sigmoid};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::indexing::{GatherElements, NonZero};
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::{Broadcast, Concat, Slice, Transpose};
use carafe_ops::reduce::ReduceMax;
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

#[test]
fn one_compiled_model_runs_with_shapes_that_come_and_go() {
    let device = gpu();
    let mut m = Model::new("open");
    let op = Parameter { shape: PartialShape::any_of_rank(2), element_type: ElementType::F32 };
    let x: Value = m.add("x", op, &[]).unwrap().into();
    let relu = m.add("relu", Relu, &[x]).unwrap();
    let twice = m.add("twice", Concat { axis: 0 }, &[relu.into(), x]).unwrap();
    m.result("y", twice.into()).unwrap();
    m.infer().unwrap();
    let mut request = request(&*device, &m, &Properties::new());
    for shape in [[2, 3], [1, 1], [64, 33], [2, 3], [64, 33]] {
        let x = floats(&shape, |i| i as f32 - 2.0);
        let numbers = x.as_slice::<f32>().unwrap().to_vec();
        let wanted: Vec<f32> = numbers.iter().map(|v| v.max(0.0)).chain(numbers.iter().copied()).collect();
        request.set_input(0, x).unwrap();
        request.infer().unwrap();
        assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), wanted);
    }
}

#[test]
fn requests_of_several_threads_do_not_disturb_each_other() {
    let device = gpu();
    let compiled = device.compile(&chain(&[4, 8, 16]), &Properties::new().with("NUM_STREAMS", 2)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let compiled = compiled.clone();
            scope.spawn(move || {
                let mut request = compiled.create_request();
                for run in 0..8 {
                    let a = floats(&[4, 8, 16], |i| (i * (thread + 1)) as f32 / 100.0 - run as f32);
                    let b = floats(&[8, 16], |i| i as f32 / 64.0);
                    let wanted = expected(&a, &b);
                    request.set_input(0, a).unwrap();
                    request.set_input(1, b).unwrap();
                    request.infer().unwrap();
                    close(request.output(0).unwrap(), &wanted, 1e-5);
                }
            });
        }
    });
}

#[test]
fn an_index_outside_of_its_axis_is_refused_and_the_next_inference_is_right() {
    let device = gpu();
    let mut m = Model::new("indexed");
    let x = input(&mut m, "x", &[2, 3]);
    let op = Parameter { shape: PartialShape::of(&[1, 3]), element_type: ElementType::I64 };
    let index: Value = m.add("index", op, &[]).unwrap().into();
    let taken = m.add("taken", GatherElements { axis: 0 }, &[x, index]).unwrap();
    m.result("y", taken.into()).unwrap();
    m.infer().unwrap();
    let mut request = request(&*device, &m, &Properties::new());
    request.set_input(0, floats(&[2, 3], |i| i as f32)).unwrap();
    request.set_input(1, Tensor::from_slice(&[1, 3], &[0i64, 2, 1]).unwrap()).unwrap();
    let e = request.infer().unwrap_err().to_string();
    assert!(e.contains("`taken`") && e.contains("index 2 is outside of an axis of 2"), "{e}");
    request.set_input(1, Tensor::from_slice(&[1, 3], &[0i64, -1, 1]).unwrap()).unwrap();
    request.infer().unwrap();
    assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [0.0, 4.0, 5.0]);
}

#[test]
fn what_the_device_has_no_memory_for_is_an_error() {
    let device = gpu();
    let most: usize = device.metric("GPU_DEVICE_MAX_ALLOC_MEM_SIZE").unwrap().parse().unwrap();
    let mut m = Model::new("large");
    let x = input(&mut m, "x", &[1, 1]);
    let shape = Tensor::from_slice(&[2], &[1i64 << 10, (most >> 10) as i64]).unwrap();
    let shape = m.constant("shape", shape).unwrap();
    let large = m.add("large", Broadcast { mode: BroadcastMode::Numpy }, &[x, shape]).unwrap();
    let relu = m.add("relu", Relu, &[large.into()]).unwrap();
    let axes = m.constant("axes", Tensor::from_slice(&[2], &[0i64, 1]).unwrap()).unwrap();
    let sum = m.add("sum", ReduceMax { keep_dims: false }, &[relu.into(), axes]).unwrap();
    m.result("y", sum.into()).unwrap();
    m.infer().unwrap();
    let mut request = match device.compile(&m, &Properties::new()) {
        Ok(compiled) => compiled.create_request(),
        // On a device with much memory the value has more elements than kernels count.
        Err(e) => return assert!(e.to_string().contains("no kernel takes"), "{e}"),
    };
    request.set_input(0, floats(&[1, 1], |_| 1.0)).unwrap();
    let e = request.infer().unwrap_err().to_string();
    assert!(e.contains("no memory"), "{e}");
}

#[test]
fn a_device_tells_of_itself() {
    let device = gpu();
    let metric = |name: &str| device.metric(name).unwrap();
    assert!(metric("GPU_DEVICE_TOTAL_MEM_SIZE").parse::<usize>().unwrap() > 0);
    assert!(metric("GPU_EXECUTION_UNITS_COUNT").parse::<usize>().unwrap() > 0);
    assert!(metric("OPTIMIZATION_CAPABILITIES").contains("FP32") && metric("FULL_DEVICE_NAME").contains("OpenCL"));
    let [_, (name, vpu)] = carafe_gpu::devices();
    assert_eq!(name, "VPU");
    assert!(vpu.metric("FULL_DEVICE_NAME").unwrap().contains("not a stick"));
    let e = device.compile(&chain(&[1, 2, 3]), &Properties::new().with("DEVICE_ID", 99)).err().unwrap().to_string();
    assert!(e.contains("no OpenCL device 99"), "{e}");
}

#[test]
fn a_query_takes_what_has_kernels() {
    let device = gpu();
    let mut m = Model::new("asked");
    let x = input(&mut m, "x", &[2, 8]);
    let relu = m.add("relu", Relu, &[x]).unwrap();
    let found = m.add("found", NonZero { output_type: ElementType::I64 }, &[relu.into()]).unwrap();
    m.result("y", found.into()).unwrap();
    m.infer().unwrap();
    let query = device.query(&m, &Properties::new()).unwrap();
    assert!(query.supported.contains(&"relu".to_string()), "{query:?}");
    assert_eq!(query.unsupported.iter().map(|u| u.name.as_str()).collect::<Vec<_>>(), ["found"]);
    assert!(query.unsupported[0].reason.contains("no kernel"), "{query:?}");
}

#[test]
fn more_elements_than_kernels_count_are_left_to_others() {
    let (gpu, mut m) = (gpu(), Model::new("large"));
    let x = m.parameter("x", ElementType::U8, PartialShape::of(&[3, 1 << 30])).unwrap();
    let order = m.constant("order", Tensor::from_vec(&[2], vec![1i64, 0]).unwrap()).unwrap();
    let y = m.add("y", Transpose, &[x, order]).unwrap();
    m.result("out", y.into()).unwrap();
    m.infer().unwrap();
    let query = gpu.query(&m, &Properties::new()).unwrap();
    let reason = query.unsupported.iter().find(|u| u.name == "y").map(|u| u.reason.clone()).unwrap_or_default();
    assert!(reason.contains("3221225472"), "{reason}");
    // Alone it leaves the node to the host.
    gpu.compile(&m, &Properties::new()).unwrap();
}

#[test]
fn bounds_that_only_a_run_knows_are_part_of_the_plan() {
    let mut m = Model::new("slice");
    let x = input(&mut m, "x", &[2, 6]);
    let bound = |m: &mut Model, name: &str| m.parameter(name, ElementType::I64, PartialShape::of(&[1])).unwrap();
    let (start, stop) = (bound(&mut m, "start"), bound(&mut m, "stop"));
    let step = m.constant("step", Tensor::from_slice(&[1], &[1i64]).unwrap()).unwrap();
    let axes = m.constant("axes", Tensor::from_slice(&[1], &[1i64]).unwrap()).unwrap();
    let cut = m.add("cut", Slice {}, &[x, start, stop, step, axes]).unwrap();
    let relu = m.add("relu", Relu, &[cut.into()]).unwrap();
    m.result("y", relu.into()).unwrap();
    m.infer().unwrap();
    let device = gpu();
    let unsupported = device.query(&m, &Properties::new()).unwrap().unsupported;
    assert!(unsupported.is_empty(), "{unsupported:?}");
    let mut request = request(&*device, &m, &Properties::new().with("PERF_COUNT", true));
    request.set_input(0, floats(&[2, 6], |i| i as f32)).unwrap();
    let one = |n: i64| Tensor::from_slice(&[1], &[n]).unwrap();
    for (from, to) in [(0, 2), (3, 6), (0, 2), (-1, 100)] {
        request.set_input(1, one(from)).unwrap();
        request.set_input(2, one(to)).unwrap();
        request.infer().unwrap();
        let (first, last) = (if from < 0 { from + 6 } else { from }, to.min(6));
        let wanted: Vec<f32> = [0, 6].into_iter().flat_map(|row| (row + first..row + last).map(|i| i as f32)).collect();
        assert_eq!(request.output(0).unwrap().shape(), [2, (last - first) as usize]);
        close(request.output(0).unwrap(), &wanted, 0.0);
        let profile = request.profile();
        assert!(profile.iter().all(|p| p.kernel != "reference"), "{profile:?}");
    }
}
