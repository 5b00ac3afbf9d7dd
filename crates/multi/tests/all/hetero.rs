//! HETERO over devices that refuse some operations.

use crate::common::*;
use carafe::device::Device;
use carafe::multi::{HeteroDevice, set_affinity};
use carafe::{CompiledModel, Core, ErrorKind, InferRequest, Model, NodeStatus, Properties, SharedBytes};
use carafe_device::Devices;
use carafe_testkit::{FakeDevice, Fault};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn two() -> (FakeDevice, FakeDevice, Core) {
    let (a, b) = (FakeDevice::new("A").refusing(&["Exp"]), FakeDevice::new("B").refusing(&["Relu"]));
    let core = core_with(&[&a, &b]);
    (a, b, core)
}

fn hetero(core: &Core) -> HeteroDevice {
    HeteroDevice::new(Arc::new(core.downgrade()))
}

fn list(text: &str) -> Properties {
    Properties::new().with("MULTI_DEVICE_PRIORITIES", text)
}

// Devices of the nodes a, b, c.
fn devices_of(core: &Core, model: &Model, devices: &str) -> Vec<String> {
    let report = hetero(core).explain(model, &list(devices)).unwrap();
    ["a", "b", "c"].iter().map(|n| report.device_of(n).unwrap_or("-").to_string()).collect()
}

#[test]
fn the_first_device_that_takes_a_node_gets_it() {
    let (_, _, core) = two();
    assert_eq!(devices_of(&core, &chain(), "A,B"), ["A", "B", "A"]);
    assert_eq!(devices_of(&core, &chain(), "B,A"), ["A", "B", "B"]);
}

#[test]
fn the_result_is_that_of_the_whole_model() {
    let (a, b, core) = two();
    let model = chain();
    let compiled = core.compile_model(&model, "HETERO:A,B", &Properties::new()).unwrap();
    assert_same(&infer(&compiled, &[row(3)]), &model.evaluate(&[row(3)]).unwrap());
    assert_eq!(a.told().n_inferences.load(Ordering::SeqCst), 2);
    assert_eq!(b.told().n_inferences.load(Ordering::SeqCst), 1);
}

#[test]
fn sub_models_are_named_after_the_model_in_running_order() {
    let (a, b, core) = two();
    core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    let names =
        |d: &FakeDevice| -> Vec<String> { d.told().compiled.lock().unwrap().iter().map(|(n, _)| n.clone()).collect() };
    assert_eq!(names(&a), ["chain_0", "chain_2"]);
    assert_eq!(names(&b), ["chain_1"]);
}

#[test]
fn a_partial_affinity_is_obeyed_and_the_rest_is_filled_in() {
    let (_, _, core) = two();
    let mut model = chain();
    let c = model.find_node("c").unwrap();
    set_affinity(&mut model, c, "B");
    assert_eq!(devices_of(&core, &model, "A,B"), ["A", "B", "B"]);
}

#[test]
fn an_affinity_outside_of_the_list_adds_the_device_for_that_node_alone() {
    let (_, _, core) = two();
    let mut model = chain();
    let c = model.find_node("c").unwrap();
    set_affinity(&mut model, c, "TEMPLATE");
    assert_eq!(devices_of(&core, &model, "A,B"), ["A", "B", "TEMPLATE"]);
}

#[test]
fn an_affinity_to_an_unknown_device_is_an_error() {
    let (_, _, core) = two();
    let mut model = chain();
    let c = model.find_node("c").unwrap();
    set_affinity(&mut model, c, "NOWHERE");
    let e = core.compile_model(&model, "HETERO:A,B", &Properties::new()).err().unwrap();
    assert!(e.to_string().contains("`NOWHERE` is not registered"), "{e}");
}

#[test]
fn nodes_that_nobody_takes_are_all_listed_with_reasons() {
    let a = FakeDevice::new("A").refusing(&["Exp", "Relu"]);
    let b = FakeDevice::new("B").refusing(&["Exp", "Relu"]);
    let core = core_with(&[&a, &b]);
    let e = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.to_string().contains("`a` (ReLU): A: A has no ReLU; B: B has no ReLU"), "{e}");
    assert!(e.to_string().contains("`b` (Exp): A: A has no Exp; B: B has no Exp"), "{e}");
}

#[test]
fn a_query_leaves_out_what_nobody_takes() {
    let a = FakeDevice::new("A").refusing(&["Exp"]);
    let core = core_with(&[&a]);
    let query = core.query_model(&chain(), "HETERO:A", &Properties::new()).unwrap();
    assert_eq!(query.unsupported.len(), 1);
    assert!(query.supported.iter().any(|n| n == "c") && !query.supported.iter().any(|n| n == "b"));
}

#[test]
fn an_empty_list_is_an_error() {
    let (_, _, core) = two();
    let e = core.compile_model(&chain(), "HETERO", &Properties::new()).err().unwrap();
    assert!(e.to_string().contains("no devices given"), "{e}");
}

#[test]
fn a_device_made_of_devices_cannot_stand_in_the_list() {
    let (_, _, core) = two();
    let e = core.compile_model(&chain(), "HETERO:A,MULTI", &Properties::new()).err().unwrap();
    assert!(e.to_string().contains("`MULTI` is made of other devices"), "{e}");
}

#[test]
fn a_constant_goes_to_every_device_that_reads_it() {
    let (_, _, core) = two();
    let mut m = Model::new("shared");
    let x = parameter(&mut m, "x", "2");
    let k = m.constant("k", floats(&[2], &[1.0, 2.0])).unwrap();
    let big = m.constant("big", floats(&[5000], &[0.5; 5000])).unwrap();
    let far = op(&mut m, "Negative", "far", &[big]);
    let zero = m.constant("zero", carafe::Tensor::scalar(0i64)).unwrap();
    let sum = add(&mut m, "ReduceSum", "sum", &[], &[far, zero]);
    let a = op(&mut m, "Relu", "a", &[x]);
    let a = op(&mut m, "Add", "a2", &[a, k]);
    let a = op(&mut m, "Add", "a3", &[a, sum.into()]);
    let b = op(&mut m, "Exp", "b", &[a]);
    let b = op(&mut m, "Multiply", "c", &[b, k]);
    let b = op(&mut m, "Multiply", "d", &[b, sum.into()]);
    m.result("y", b).unwrap();
    for n in ["a2", "a3"] {
        let id = m.find_node(n).unwrap();
        set_affinity(&mut m, id, "A");
    }
    let report = hetero(&core).explain(&m, &list("B,A")).unwrap();
    assert_eq!(report.sub_models.len(), 2);
    // What is computed of constants alone is on both sides; only one value crosses.
    assert!(report.sub_models.iter().all(|s| s.nodes.iter().any(|(n, _)| n == "far")), "{report}");
    assert_eq!(report.sub_models[1].inputs, ["a3"]);
    let compiled = core.compile_model(&m, "HETERO:B,A", &Properties::new()).unwrap();
    let x = floats(&[2], &[1.0, -1.0]);
    assert_same(&infer(&compiled, std::slice::from_ref(&x)), &m.evaluate(&[x]).unwrap());
}

#[test]
fn what_no_device_computes_of_constants_is_folded() {
    let a = FakeDevice::new("A").refusing(&["Negative"]);
    let core = core_with(&[&a]);
    let mut m = Model::new("folded");
    let x = parameter(&mut m, "x", "5000");
    let k = m.constant("k", floats(&[5000], &[0.5; 5000])).unwrap();
    let n = op(&mut m, "Negative", "n", &[k]);
    let y = op(&mut m, "Add", "y", &[x, n]);
    m.result("r", y).unwrap();
    let compiled = core.compile_model(&m, "HETERO:A", &Properties::new()).unwrap();
    assert!(compiled.property("HETERO_REPORT").unwrap().contains("known before running: n"));
    let x = floats(&[5000], &[1.0; 5000]);
    assert_same(&infer(&compiled, std::slice::from_ref(&x)), &m.evaluate(&[x]).unwrap());
}

#[test]
fn shapes_stay_static_behind_a_border() {
    let a = FakeDevice::new("A").refusing(&["Reshape"]);
    let b = FakeDevice::new("B").refusing(&["ShapeOf", "Relu"]);
    let core = core_with(&[&a, &b]);
    let mut m = Model::new("shapes");
    let x = parameter(&mut m, "x", "2,3");
    let other = parameter(&mut m, "other", "3,2");
    let s = op(&mut m, "ShapeOf", "s", &[other]);
    let r = op(&mut m, "Relu", "r", &[x]);
    let y = add(&mut m, "Reshape", "y", &[("special_zero", "false")], &[r, s]);
    m.result("out", y.into()).unwrap();
    let compiled = core.compile_model(&m, "HETERO:A,B", &Properties::new()).unwrap();
    let runtime = compiled.runtime_model();
    let y = runtime.find_node("y").unwrap();
    assert_eq!(runtime.fact(y.into()).shape.to_static(), Some(vec![3, 2]));
}

#[test]
fn a_model_without_nodes_needs_no_device_to_run() {
    let (_, _, core) = two();
    let mut m = Model::new("wires");
    let x = parameter(&mut m, "x", "2");
    let k = m.constant("k", floats(&[1], &[7.0])).unwrap();
    m.result("same", x).unwrap();
    m.result("known", k).unwrap();
    let compiled = core.compile_model(&m, "HETERO:A,B", &Properties::new()).unwrap();
    assert_eq!(compiled.property("HETERO_NUMBER_OF_SUBMODELS").unwrap(), "0");
    let x = floats(&[2], &[1.0, 2.0]);
    assert_same(&infer(&compiled, std::slice::from_ref(&x)), &[x, floats(&[1], &[7.0])]);
}

// y = relu(v + x), v := exp(y): the way from reading to writing leads through an Exp.
fn stateful() -> Model {
    let mut m = Model::new("state");
    let x = parameter(&mut m, "x", "2");
    let init = m.constant("init", floats(&[2], &[0.0, 0.0])).unwrap();
    let v = [("variable_id", "v"), ("variable_type", "f32"), ("variable_shape", "2")];
    let read = add(&mut m, "ReadValue", "read", &v, &[init]);
    let a = op(&mut m, "Add", "a", &[x, read.into()]);
    let b = op(&mut m, "Exp", "b", &[a]);
    add(&mut m, "Assign", "write", &v[..1], &[b]);
    let c = op(&mut m, "Relu", "c", &[a]);
    m.result("y", c).unwrap();
    m
}

#[test]
fn whatever_lies_between_reading_and_writing_a_variable_stays_together() {
    let a = FakeDevice::new("A").refusing(&["Exp"]);
    let b = FakeDevice::new("B");
    let core = core_with(&[&a, &b]);
    assert_eq!(devices_of(&core, &stateful(), "A,B"), ["B", "B", "A"]);
}

#[test]
fn a_variable_keeps_its_value_from_run_to_run() {
    let a = FakeDevice::new("A").refusing(&["Exp"]);
    let b = FakeDevice::new("B");
    let core = core_with(&[&a, &b]);
    let (split, whole) = (
        core.compile_model(&stateful(), "HETERO:A,B", &Properties::new()).unwrap(),
        core.compile_model(&stateful(), "TEMPLATE", &Properties::new()).unwrap(),
    );
    let (s, w) = (split.create_infer_request(), whole.create_infer_request());
    for run in 0..3 {
        let x = floats(&[2], &[run as f32, -0.5]);
        s.set_input(0, x.clone()).unwrap();
        w.set_input(0, x).unwrap();
        s.infer(()).unwrap();
        w.infer(()).unwrap();
        assert!(s.output(0).unwrap().content_eq(&w.output(0).unwrap()));
    }
    let value = |r: &InferRequest| r.state("v").unwrap().get().unwrap();
    assert_eq!(s.query_state().unwrap()[0].name(), "v");
    assert!(value(&s).unwrap().content_eq(&value(&w).unwrap()));
    s.reset_state().unwrap();
    assert!(value(&s).is_none());
}

#[test]
fn a_variable_torn_apart_by_affinities_is_an_error() {
    let (_, _, core) = two();
    let mut m = stateful();
    for (node, device) in [("read", "A"), ("write", "TEMPLATE")] {
        let id = m.find_node(node).unwrap();
        set_affinity(&mut m, id, device);
    }
    let e = core.compile_model(&m, "HETERO:A,B", &Properties::new()).err().unwrap();
    assert!(e.to_string().contains("work with one variable and must be on one device"), "{e}");
}

#[test]
fn tensors_are_handed_over_without_copying() {
    let (a, b, core) = two();
    let mut m = Model::new("borders");
    let x = parameter(&mut m, "x", "4");
    let relu = op(&mut m, "Relu", "a", &[x]);
    let exp = op(&mut m, "Exp", "b", &[relu]);
    m.result("first", relu).unwrap();
    m.result("second", exp).unwrap();
    let compiled = core.compile_model(&m, "HETERO:A,B", &Properties::new()).unwrap();
    let request = compiled.create_infer_request();
    let x = floats(&[4], &[1.0; 4]);
    request.set_input(0, x.clone()).unwrap();
    request.infer(()).unwrap();
    let first = request.output(0).unwrap().storage_ptr();
    assert_eq!(*a.told().input_places.lock().unwrap(), [x.storage_ptr()]);
    assert_eq!(*b.told().input_places.lock().unwrap(), [first]);
}

#[test]
fn parallel_branches_of_one_device_share_a_piece() {
    let (_, _, core) = two();
    let mut m = Model::new("branches");
    let x = parameter(&mut m, "x", "4");
    for i in 0..3 {
        let relu = op(&mut m, "Relu", &format!("relu{i}"), &[x]);
        let exp = op(&mut m, "Exp", &format!("exp{i}"), &[relu]);
        m.result(&format!("y{i}"), exp).unwrap();
    }
    assert_eq!(hetero(&core).explain(&m, &list("A,B")).unwrap().sub_models.len(), 2);
}

// An Add that could run on A between two pieces of it: as one piece it would have to run before and after B.
#[test]
fn a_way_around_another_device_does_not_make_a_circle() {
    let (_, _, core) = two();
    let mut m = Model::new("around");
    let x = parameter(&mut m, "x", "4");
    let a = op(&mut m, "Relu", "a", &[x]);
    let b = op(&mut m, "Exp", "b", &[a]);
    let c = op(&mut m, "Add", "c", &[a, b]);
    m.result("y", c).unwrap();
    let compiled = core.compile_model(&m, "HETERO:A,B", &Properties::new()).unwrap();
    assert_eq!(compiled.property("HETERO_NUMBER_OF_SUBMODELS").unwrap(), "3");
    let x = floats(&[4], &[1.0, -1.0, 0.0, 2.0]);
    assert_same(&infer(&compiled, std::slice::from_ref(&x)), &m.evaluate(&[x]).unwrap());
}

#[test]
fn a_dynamic_model_runs_with_several_shapes() {
    let (_, _, core) = two();
    let mut m = Model::new("dynamic");
    let x = parameter(&mut m, "x", "?,4");
    let a = op(&mut m, "Relu", "a", &[x]);
    let b = op(&mut m, "Exp", "b", &[a]);
    m.result("y", b).unwrap();
    let compiled = core.compile_model(&m, "HETERO:A,B", &Properties::new()).unwrap();
    let request = compiled.create_infer_request();
    for n in [1, 3, 2] {
        request.set_input(0, floats(&[n, 4], &vec![0.5; n * 4])).unwrap();
        request.infer(()).unwrap();
        assert_eq!(request.output(0).unwrap().shape(), [n, 4]);
    }
}

#[test]
fn given_memory_receives_the_output() {
    let (_, _, core) = two();
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    let request = compiled.create_infer_request();
    request.set_input(0, row(1)).unwrap();
    let memory = floats(&[1, 4], &[0.0; 4]);
    let position = memory.storage_ptr();
    request.set_output(0, memory).unwrap();
    request.infer(()).unwrap();
    assert_eq!(request.output(0).unwrap().storage_ptr(), position);
}

#[test]
fn stages_name_the_executors_of_each_device() {
    let (_, _, core) = two();
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    let stages = compiled.device_model().clone().create_request().stages();
    let shown: Vec<String> = stages.iter().map(|s| format!("{} @ {}", s.name, s.executor)).collect();
    assert!(shown.contains(&"subgraph0: evaluate @ A/device".to_string()), "{shown:?}");
    assert!(shown.contains(&"subgraph1: evaluate @ B/device".to_string()), "{shown:?}");
}

#[test]
fn running_the_stages_one_by_one_is_an_inference() {
    let (_, _, core) = two();
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    let mut request = compiled.device_model().clone().create_request();
    request.set_input(0, row(2)).unwrap();
    for stage in 0..request.stages().len() {
        request.run_stage(stage).unwrap();
    }
    assert!(request.output(0).unwrap().content_eq(&chain().evaluate(&[row(2)]).unwrap()[0]));
}

#[test]
fn profiles_say_the_sub_graph() {
    let (_, _, core) = two();
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new().with("PERF_COUNT", true)).unwrap();
    let request = compiled.create_infer_request();
    request.set_input(0, row(2)).unwrap();
    request.infer(()).unwrap();
    let names: Vec<String> = request.profile().unwrap().into_iter().map(|p| p.name).collect();
    assert!(names.contains(&"subgraph0: a".to_string()) && names.contains(&"subgraph1: b".to_string()), "{names:?}");
}

#[test]
fn a_part_without_times_of_its_nodes_is_measured_as_a_whole() {
    let a = FakeDevice::new("A").refusing(&["Exp"]);
    let b = FakeDevice::new("B").refusing(&["Relu"]).with_fault(Fault::NeverProfiles);
    let b = b.inferring_for(Duration::from_millis(20));
    let core = core_with(&[&a, &b]);
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new().with("PERF_COUNT", true)).unwrap();
    let request = compiled.create_infer_request();
    assert!(request.profile().unwrap().iter().all(|p| p.status != NodeStatus::Executed));
    request.set_input(0, row(2)).unwrap();
    request.infer(()).unwrap();
    let rows = request.profile().unwrap();
    assert!(rows.iter().any(|p| p.name == "subgraph0: a"), "{rows:?}");
    let whole = rows.iter().find(|p| p.name == "subgraph1").expect("a row for the part");
    assert_eq!((whole.status, whole.kernel.as_str()), (NodeStatus::Executed, "B as a whole"));
    assert!(whole.real_time >= Duration::from_millis(20), "{whole:?}");
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    let request = compiled.create_infer_request();
    request.set_input(0, row(2)).unwrap();
    request.infer(()).unwrap();
    assert_eq!(request.profile().unwrap(), []);
}

#[test]
fn nodes_of_a_device_without_a_runtime_model_say_where_they_run() {
    let a = FakeDevice::new("A").refusing(&["Exp"]);
    let b = FakeDevice::new("B").refusing(&["Relu"]).with_fault(Fault::ShowsNothing);
    let core = core_with(&[&a, &b]);
    let model = chain();
    let compiled = core.compile_model(&model, "HETERO:A,B", &Properties::new()).unwrap();
    let mut rows = core.explain(&model);
    core.explain_compiled(&mut rows, "HETERO:A,B", &compiled, &[]);
    let row = |name: &str| rows.iter().find(|r| r.name == name).unwrap();
    assert_eq!((row("a").device.as_deref(), row("a").kernel.as_deref()), (Some("A"), Some("reference")));
    assert_eq!((row("b").device.as_deref(), row("b").kernel.as_deref()), (Some("B"), None));
    assert_eq!(row("b").why, ["B does not show what runs it"]);

    // Read back from a file only the device has the model, so the part is one node.
    let mut blob = Vec::new();
    compiled.export(&mut blob).unwrap();
    let again = core.import_model(SharedBytes::from_vec(blob), "HETERO:A,B", &Properties::new()).unwrap();
    let runtime = again.runtime_model();
    assert_eq!((runtime.parameters().len(), runtime.results().len()), (1, 1));
    assert!(runtime.nodes().any(|(_, n)| n.op().type_name() == "Subgraph"), "{runtime:?}");
}

#[test]
fn a_device_without_a_runtime_model_is_not_said_to_have_dropped_everything() {
    let core = core_with(&[&FakeDevice::new("A").with_fault(Fault::ShowsNothing)]);
    let model = chain();
    let compiled = core.compile_model(&model, "A", &Properties::new()).unwrap();
    let mut rows = core.explain(&model);
    core.explain_compiled(&mut rows, "A", &compiled, &[]);
    assert!(
        rows.iter().all(|r| r.device.as_deref() == Some("A") && r.why == ["A does not show what runs it"]),
        "{rows:?}"
    );
}

#[test]
fn a_cancellation_reaches_the_part_that_runs() {
    let a = FakeDevice::new("A").refusing(&["Exp"]);
    let b = FakeDevice::new("B").inferring_for(Duration::from_secs(20));
    let core = core_with(&[&a, &b]);
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    let request = compiled.create_infer_request();
    request.set_input(0, row(2)).unwrap();
    let flag = request.cancel_flag();
    let started = Instant::now();
    let e = std::thread::scope(|s| {
        s.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            flag.set();
        });
        request.infer(()).unwrap_err()
    });
    assert_eq!(e.kind(), ErrorKind::Cancelled);
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(request.output(0).is_err());
}

#[test]
fn a_failing_part_is_named() {
    let (_, b, core) = two();
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    b.told().fails_to_infer.store(true, Ordering::SeqCst);
    let request = compiled.create_infer_request();
    request.set_input(0, row(2)).unwrap();
    let e = request.infer(()).unwrap_err().to_string();
    assert!(e.contains("sub-model `chain_1` on device `B`"), "{e}");
}

#[test]
fn properties_reach_the_devices_that_know_them() {
    let (a, _, core) = two();
    let properties =
        Properties::new().with("COLOUR", "BLUE").with("NOBODY_KNOWS", 1).with("DEVICE_PROPERTIES_B", "{COLOUR:RED}");
    core.compile_model(&chain(), "HETERO:A,B", &properties).unwrap();
    let told = a.told();
    let compiled = told.compiled.lock().unwrap();
    assert_eq!(compiled[0].1.get("COLOUR"), Some("BLUE"));
    assert_eq!(compiled[0].1.get("NOBODY_KNOWS"), None);
}

#[test]
fn a_wrong_value_for_one_device_is_refused_by_it() {
    let (_, _, core) = two();
    let properties = Properties::new().with("DEVICE_PROPERTIES_B", "{COLOUR:GREEN}");
    let e = core.compile_model(&chain(), "HETERO:A,B", &properties).err().unwrap();
    assert!(e.to_string().contains("takes one of RED, BLUE"), "{e}");
}

#[test]
fn a_compiled_model_answers_its_properties() {
    let (_, _, core) = two();
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    let of = |name: &str| compiled.property(name).unwrap();
    assert_eq!(of("HETERO_NUMBER_OF_SUBMODELS"), "3");
    assert_eq!(of("EXECUTION_DEVICES"), "A B");
    assert_eq!(of("OPTIMAL_NUMBER_OF_INFER_REQUESTS"), "2");
    assert_eq!(of("NETWORK_NAME"), "chain");
    assert_eq!(of("MULTI_DEVICE_PRIORITIES"), "A,B");
    assert!(
        of("HETERO_REPORT").starts_with("model `chain` on A, B: 3 sub-models\nsubgraph0 `chain_0` on A: 1 nodes\n")
    );
    assert!(of("HETERO_REPORT_JSON").contains(r#""sub_models":[{"name":"chain_0","device":"A","inputs":["x"]"#));
    assert!(compiled.property("WHATEVER").is_err());
}

fn through_blob(core: &Core, model: &Model) -> CompiledModel {
    let compiled = core.compile_model(model, "HETERO:A,B", &Properties::new()).unwrap();
    let mut blob = Vec::new();
    compiled.export(&mut blob).unwrap();
    core.import_model(SharedBytes::from_vec(blob), "HETERO", &Properties::new()).unwrap()
}

#[test]
fn an_exported_model_comes_back_with_its_report() {
    let (a, _, core) = two();
    let model = chain();
    let back = through_blob(&core, &model);
    assert_same(&infer(&back, &[row(5)]), &model.evaluate(&[row(5)]).unwrap());
    let fresh = core.compile_model(&model, "HETERO:A,B", &Properties::new()).unwrap();
    assert_eq!(back.property("HETERO_REPORT").unwrap(), fresh.property("HETERO_REPORT").unwrap());
    assert_eq!(a.told().n_imported.load(Ordering::SeqCst), 2);
}

#[test]
fn a_device_that_cannot_export_gets_its_part_as_ir() {
    let a = FakeDevice::new("A").refusing(&["Exp"]).that_cannot_export();
    let b = FakeDevice::new("B").refusing(&["Relu"]);
    let core = core_with(&[&a, &b]);
    let model = chain();
    let back = through_blob(&core, &model);
    assert_same(&infer(&back, &[row(5)]), &model.evaluate(&[row(5)]).unwrap());
    assert_eq!(a.told().n_imported.load(Ordering::SeqCst), 0);
}

fn blob(core: &Core) -> Vec<u8> {
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    let mut blob = Vec::new();
    compiled.export(&mut blob).unwrap();
    blob
}

fn import(core: &Core, blob: Vec<u8>) -> carafe::Result<CompiledModel> {
    core.import_model(SharedBytes::from_vec(blob), "HETERO", &Properties::new())
}

#[test]
fn a_cut_blob_is_refused() {
    let (_, _, core) = two();
    let blob = blob(&core);
    for n in (0..blob.len()).step_by(41) {
        assert!(import(&core, blob[..n].to_vec()).is_err(), "cut at {n}");
    }
}

// Wrong bytes behind a right checksum: whatever they say, it ends in an error or in a model.
#[test]
fn a_forged_blob_does_not_panic() {
    let (_, _, core) = two();
    let blob = blob(&core);
    let (header, payload) = carafe_device::read_blob(&blob, "HETERO", carafe::VERSION).unwrap();
    let payload = &blob[payload];
    let mut refused = 0;
    for n in (0..payload.len()).step_by(7) {
        for bits in [0x01, 0xff] {
            let (mut forged, mut out) = (payload.to_vec(), Vec::new());
            forged[n] ^= bits;
            carafe_device::write_blob(&header, &forged, &mut out).unwrap();
            refused += usize::from(import(&core, out).is_err());
        }
    }
    assert!(refused > 100);
}

#[test]
fn a_blob_for_other_devices_is_refused() {
    let (_, _, core) = two();
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    let mut blob = Vec::new();
    compiled.export(&mut blob).unwrap();
    let e = core.import_model(SharedBytes::from_vec(blob), "HETERO:A,TEMPLATE", &Properties::new()).err().unwrap();
    assert!(e.to_string().contains("exported for devices A, B"), "{e}");
}

#[test]
fn two_nodes_of_one_name_are_told_apart() {
    let (_, _, core) = two();
    let mut m = Model::new("names");
    let x = parameter(&mut m, "x", "2");
    let a = op(&mut m, "Relu", "same", &[x]);
    let b = op(&mut m, "Exp", "same", &[a]);
    m.result("y", b).unwrap();
    let compiled = core.compile_model(&m, "HETERO:A,B", &Properties::new()).unwrap();
    let x = floats(&[2], &[1.0, -1.0]);
    assert_same(&infer(&compiled, std::slice::from_ref(&x)), &m.evaluate(&[x]).unwrap());
}

#[test]
fn the_core_may_go_before_the_compiled_model() {
    let (_, _, core) = two();
    let compiled = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    drop(core);
    assert_same(&infer(&compiled, &[row(5)]), &chain().evaluate(&[row(5)]).unwrap());
}

#[test]
fn devices_made_of_devices_are_not_available_as_parts() {
    let (_, _, core) = two();
    let available = core.downgrade().available();
    let listed = |name: &&str| available.iter().any(|a| a == name);
    assert!(["A", "B", "CPU", "TEMPLATE"].iter().all(&listed), "{available:?}");
    assert!(!["HETERO", "MULTI", "AUTO", "BATCH"].iter().any(listed), "{available:?}");
    assert!(hetero(&core).metric("AVAILABLE_DEVICES").unwrap().is_empty());
}
