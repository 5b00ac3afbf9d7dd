//! Core and the TEMPLATE device as a program uses them.

use carafe::ops::{activation::Sigmoid, arithmetic::Add, convert::Convert, shape::ShapeOf, state};
use carafe::{
    Constant, ElementType, ErrorKind, InferRequest, Model, NodeStatus, PartialShape, Properties, SharedBytes, Tensor,
    Value,
};

const DEVICE: &str = "TEMPLATE";

fn shape(text: &str) -> PartialShape {
    text.parse().unwrap()
}

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

/// y = sigmoid(x), any length.
fn sigmoid() -> Model {
    let mut m = Model::new("sigmoid");
    let x = m.parameter("x", ElementType::F32, shape("?")).unwrap();
    let y = m.add("y", Sigmoid, &[x]).unwrap();
    m.result("out", y.into()).unwrap();
    m
}

/// sum += x, over inferences.
fn accumulator() -> Model {
    let mut m = Model::new("accumulator");
    let x = m.parameter("x", ElementType::F32, shape("2")).unwrap();
    let zero = m.constant("zero", floats(&[0.0, 0.0])).unwrap();
    let read =
        state::ReadValue { variable_id: "sum".into(), variable_type: ElementType::F32, variable_shape: shape("2") };
    let old: Value = m.add("old", read, &[zero]).unwrap().into();
    let new: Value = m.add("new", Add::default(), &[old, x]).unwrap().into();
    m.add("store", state::Assign { variable_id: "sum".into() }, &[new]).unwrap();
    m.result("out", new).unwrap();
    m
}

fn request(model: &Model, properties: &Properties) -> InferRequest {
    carafe::core().compile_model(model, DEVICE, properties).unwrap().create_infer_request()
}

fn infer(request: &InferRequest, x: &[f32]) -> Vec<f32> {
    request.set_input(0, floats(x)).unwrap();
    request.infer(()).unwrap();
    request.output(0).unwrap().as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn one_compiled_model_takes_every_length() {
    let r = request(&sigmoid(), &Properties::new());
    assert_eq!(infer(&r, &[0.0]), [0.5]);
    assert_eq!(infer(&r, &[0.0, 0.0, 0.0]), [0.5; 3]);
}

#[test]
fn state_lasts_from_inference_to_inference_and_ends_with_a_reset() {
    let r = request(&accumulator(), &Properties::new());
    assert_eq!(infer(&r, &[1.0, 2.0]), [1.0, 2.0]);
    assert_eq!(infer(&r, &[1.0, 2.0]), [2.0, 4.0]);
    assert_eq!(r.query_state().unwrap()[0].name(), "sum");
    r.reset_state().unwrap();
    assert_eq!(infer(&r, &[1.0, 2.0]), [1.0, 2.0]);
    r.state("sum").unwrap().set(floats(&[10.0, 10.0])).unwrap();
    assert_eq!(infer(&r, &[1.0, 2.0]), [11.0, 12.0]);
    assert!(r.state("other").is_err());
}

#[test]
fn requests_do_not_share_state() {
    let compiled = carafe::core().compile_model(&accumulator(), DEVICE, &Properties::new()).unwrap();
    let (a, b) = (compiled.create_infer_request(), compiled.create_infer_request());
    infer(&a, &[1.0, 1.0]);
    assert_eq!(infer(&b, &[5.0, 5.0]), [5.0, 5.0]);
}

#[test]
fn an_exported_model_comes_back_and_gives_the_same() {
    let core = carafe::core();
    let compiled = core.compile_model(&sigmoid(), DEVICE, &Properties::new()).unwrap();
    let mut blob = Vec::new();
    compiled.export(&mut blob).unwrap();
    let back = core.import_model(SharedBytes::from_vec(blob), DEVICE, &Properties::new()).unwrap();
    assert_eq!(infer(&back.create_infer_request(), &[0.0]), [0.5]);
}

#[test]
fn a_damaged_export_is_refused() {
    let core = carafe::core();
    let compiled = core.compile_model(&sigmoid(), DEVICE, &Properties::new()).unwrap();
    let mut blob = Vec::new();
    compiled.export(&mut blob).unwrap();
    blob.truncate(blob.len() / 2);
    let e = core.import_model(SharedBytes::from_vec(blob), DEVICE, &Properties::new()).err().unwrap();
    assert!(e.to_string().contains("cut short"), "{e}");
}

#[test]
fn profiling_names_every_node_and_is_off_by_default() {
    let r = request(&sigmoid(), &Properties::new().with("PERF_COUNT", true));
    infer(&r, &[0.0]);
    let row = r.profile().unwrap().into_iter().find(|p| p.name == "y").unwrap();
    assert_eq!(
        (row.type_name.as_str(), row.kernel.as_str(), row.status),
        ("Sigmoid", "reference", NodeStatus::Executed)
    );
    let r = request(&sigmoid(), &Properties::new());
    infer(&r, &[0.0]);
    assert!(r.profile().unwrap().is_empty());
}

#[test]
fn a_wrong_tensor_is_refused_when_it_is_set() {
    let r = request(&sigmoid(), &Properties::new());
    let e = r.set_input(0, Tensor::zeros(ElementType::I32, &[1]).unwrap()).unwrap_err();
    assert_eq!(e.to_string(), "failed to set a tensor: `x` takes f32[?], found i32[1]");
    assert!(r.set_input(1, floats(&[0.0])).is_err());
    assert_eq!(r.infer(()).unwrap_err().to_string(), "input `x` has no tensor");
}

#[test]
fn a_cancelled_request_can_be_used_again() {
    let r = request(&sigmoid(), &Properties::new());
    let flag = r.cancel_flag();
    flag.set();
    // The flag belongs to a running inference; a new one starts afresh.
    assert_eq!(infer(&r, &[0.0]), [0.5]);
}

#[test]
fn compiling_leaves_the_given_model_alone() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, shape("2,3")).unwrap();
    let s: Value = m.add("s", ShapeOf { output_type: ElementType::I64 }, &[x]).unwrap().into();
    m.result("out", s).unwrap();
    let nodes = m.len();
    let compiled = carafe::core().compile_model(&m, DEVICE, &Properties::new()).unwrap();
    assert_eq!(m.len(), nodes);
    // The copy was folded: the shape is known.
    assert!(compiled.runtime_model().nodes().any(|(_, n)| n.op().is::<Constant>()));
}

#[test]
fn core_keeps_properties_and_answers_metrics() {
    let core = carafe::core();
    assert_eq!(core.get_property(DEVICE, "PERF_COUNT").unwrap(), "false");
    core.set_property(DEVICE, &Properties::new().with("PERF_COUNT", "YES")).unwrap();
    assert_eq!(core.get_property("TEMPLATE.0", "PERF_COUNT").unwrap(), "YES");
    assert!(core.get_property(DEVICE, "FULL_DEVICE_NAME").unwrap().contains("reference"));
    let e = core.set_property(DEVICE, &Properties::new().with("FULL_DEVICE_NAME", "x")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Usage);
    assert!(core.get_property("TEMPLATE.7", "PERF_COUNT").unwrap_err().to_string().contains("no instance 7"));
}

#[test]
fn every_node_of_a_plain_model_is_supported() {
    let q = carafe::core().query_model(&sigmoid(), DEVICE, &Properties::new()).unwrap();
    assert_eq!((q.supported.len(), q.unsupported.len()), (3, 0));
}

#[test]
fn compressed_weights_are_widened_once_at_compile_time() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, shape("2")).unwrap();
    let w = m.constant("w", floats(&[1.0, 2.0]).cast(ElementType::F16).unwrap()).unwrap();
    let wide = m.add("wide", Convert { destination_type: ElementType::F32 }, &[w]).unwrap();
    m.rt_info_mut(wide).mark("decompression");
    let y: Value = m.add("y", Add::default(), &[x, wide.into()]).unwrap().into();
    m.result("out", y).unwrap();
    let compiled = carafe::core().compile_model(&m, DEVICE, &Properties::new()).unwrap();
    assert!(compiled.runtime_model().nodes().all(|(_, n)| n.op().type_name() != "Convert"));
    assert_eq!(infer(&compiled.create_infer_request(), &[1.0, 1.0]), [2.0, 3.0]);
}

#[test]
fn devices_advertise_what_they_compute_in() {
    let core = carafe::core();
    let said = |device: &str| core.get_property(device, "OPTIMIZATION_CAPABILITIES").unwrap();
    // Integers and bf16 only where the processor multiplies them faster.
    let cpu = said("CPU").replace(" INT8", "").replace(" BF16", "");
    assert_eq!((cpu.as_str(), said(DEVICE).as_str()), ("FP32 WINOGRAD EXPORT_IMPORT", "FP32 EXPORT_IMPORT"));
}
