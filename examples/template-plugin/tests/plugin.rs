//! The reference device behaves the same as a library as it does inside the engine.

use carafe::device::{Config, Kernel, KernelIo, PortLayout, PreparedKernel, Site};
use carafe::prelude::*;
use carafe::{Core, ErrorKind, Extension, InferRequest, Properties, SharedBytes, ops};
use std::path::PathBuf;
use std::sync::Arc;

fn library() -> PathBuf {
    let exe = std::env::current_exe().expect("a test has a path");
    let folder = exe.parent().expect("target/<profile>/deps/<test>");
    let name = format!("{}template_plugin{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    folder.join(name)
}

fn core() -> Core {
    let core = carafe::core();
    core.register_plugin(library(), "MINE").expect("the name is free");
    core
}

fn relu() -> Model {
    let mut m = Model::new("relu");
    let x = m.parameter("x", ElementType::F32, PartialShape::any_of_rank(1)).unwrap();
    let y = m.add("y", ops::activation::Relu {}, &[x]).unwrap();
    m.result("out", y.into()).unwrap();
    m
}

fn counter() -> Model {
    let mut m = Model::new("counter");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1])).unwrap();
    let read = ops::state::ReadValue {
        variable_id: "sum".into(),
        variable_type: ElementType::F32,
        variable_shape: PartialShape::of(&[1]),
    };
    let old = m.add("old", read, &[x]).unwrap();
    let sum = m.add("sum", ops::arithmetic::Add::default(), &[old.into(), x]).unwrap();
    m.add("keep", ops::state::Assign { variable_id: "sum".into() }, &[sum.into()]).unwrap();
    m.result("out", sum.into()).unwrap();
    m
}

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

#[test]
fn a_model_runs_and_its_shapes_may_change() {
    let compiled = core().compile_model(&relu(), "MINE", &Properties::new()).unwrap();
    let request = compiled.create_infer_request();
    for values in [&[-1.0f32, 2.0][..], &[3.0, -4.0, 5.0], &[]] {
        request.set_input(0, floats(values)).unwrap();
        request.infer(()).unwrap();
        let wanted: Vec<f32> = values.iter().map(|x| x.max(0.0)).collect();
        assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), wanted);
    }
}

#[test]
fn metrics_properties_and_version_come_from_the_library() {
    let core = core();
    assert_eq!(core.get_property("MINE", "AVAILABLE_DEVICES").unwrap(), "0");
    assert_eq!(core.get_property("MINE", "PERF_COUNT").unwrap(), "false");
    let wrong = Properties::new().with("PERF_COUNT", "perhaps");
    assert_eq!(core.compile_model(&relu(), "MINE", &wrong).err().unwrap().kind(), ErrorKind::Usage);
    assert!(!core.device("MINE").unwrap().version().build.is_empty());
    assert!(core.available_devices().contains(&"MINE".to_string()));
}

#[test]
fn wrong_inputs_are_refused_with_what_was_expected() {
    let compiled = core().compile_model(&relu(), "MINE", &Properties::new()).unwrap();
    let request = compiled.create_infer_request();
    let e = request.set_input(0, Tensor::scalar(1i32)).unwrap_err();
    assert!(e.to_string().contains("takes f32"), "{e}");
    assert!(request.set_input(7, floats(&[1.0])).is_err());
    assert!(request.infer(()).unwrap_err().to_string().contains("has no tensor"));
    assert!(request.output(0).is_err());
}

#[test]
fn state_is_kept_read_set_and_reset() {
    let compiled = core().compile_model(&counter(), "MINE", &Properties::new()).unwrap();
    let request = compiled.create_infer_request();
    let step = |request: &carafe::InferRequest| {
        request.set_input(0, floats(&[2.0])).unwrap();
        request.infer(()).unwrap();
        request.output(0).unwrap().as_slice::<f32>().unwrap()[0]
    };
    step(&request);
    let second = step(&request);
    let sum = request.state("sum").unwrap();
    assert_eq!(request.query_state().unwrap().len(), 1);
    assert_eq!(sum.get().unwrap().unwrap().as_slice::<f32>().unwrap(), [second]);
    sum.set(floats(&[10.0])).unwrap();
    assert_eq!(step(&request), 12.0);
    request.reset_state().unwrap();
    assert!(sum.get().unwrap().is_none());
    assert!(request.state("other").is_err());
}

#[test]
fn an_exported_model_comes_back_and_a_damaged_one_is_refused() {
    let core = core();
    let compiled = core.compile_model(&relu(), "MINE", &Properties::new()).unwrap();
    let mut blob = Vec::new();
    compiled.export(&mut blob).unwrap();
    let again = core.import_model(SharedBytes::from_vec(blob.clone()), "MINE", &Properties::new()).unwrap();
    let request = again.create_infer_request();
    request.set_input(0, floats(&[-1.0, 1.0])).unwrap();
    request.infer(()).unwrap();
    assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [0.0, 1.0]);
    blob.truncate(blob.len() / 2);
    let e = core.import_model(SharedBytes::from_vec(blob), "MINE", &Properties::new()).err().unwrap();
    assert!(e.to_string().contains("libtemplate_plugin") && e.to_string().contains("cut short"), "{e}");
}

#[test]
fn profiles_and_the_running_graph_cross() {
    let on = Properties::new().with("PERF_COUNT", true);
    let compiled = core().compile_model(&relu(), "MINE", &on).unwrap();
    assert!(compiled.runtime_model().nodes().any(|(_, n)| n.name() == "y" && n.rt_info.has("execOrder")));
    let request = compiled.create_infer_request();
    request.set_input(0, floats(&[1.0])).unwrap();
    request.infer(()).unwrap();
    let rows = request.profile().unwrap();
    assert!(rows.iter().any(|r| r.name == "y" && r.type_name == "ReLU" && r.kernel == "reference"), "{rows:?}");
}

#[test]
fn everything_survives_whatever_is_dropped_first() {
    let (output, request) = {
        let core = core();
        let compiled = core.compile_model(&relu(), "MINE", &Properties::new()).unwrap();
        let request = compiled.create_infer_request();
        core.unload_plugin("MINE").unwrap();
        drop(core);
        request.set_input(0, floats(&[-1.0, 3.0])).unwrap();
        request.infer(()).unwrap();
        (request.output(0).unwrap(), request)
    };
    drop(request);
    assert_eq!(output.as_slice::<f32>().unwrap(), [0.0, 3.0]);
}

#[test]
fn an_unloaded_device_comes_back_at_the_next_use() {
    let core = core();
    assert!(core.unload_plugin("MINE").is_err());
    core.compile_model(&relu(), "MINE", &Properties::new()).unwrap();
    core.unload_plugin("MINE").unwrap();
    core.compile_model(&relu(), "MINE", &Properties::new()).unwrap();
}

#[test]
fn an_asynchronous_request_runs_its_stages_and_can_be_cancelled() {
    let compiled = core().compile_model(&relu(), "MINE", &Properties::new()).unwrap();
    let request: InferRequest = compiled.create_infer_request();
    request.set_input(0, floats(&[-1.0, 3.0])).unwrap();
    for _ in 0..200 {
        request.start_async(()).unwrap();
        request.cancel();
        match request.wait() {
            Ok(()) => {}
            Err(e) => assert_eq!(e.kind(), ErrorKind::Cancelled),
        }
    }
    request.start_async(()).unwrap();
    request.wait().unwrap();
}

#[test]
fn hetero_and_multi_take_the_device_as_any_other() {
    let core = core();
    for device in ["HETERO:MINE,TEMPLATE", "MULTI:MINE,TEMPLATE", "AUTO:MINE"] {
        let compiled = core.compile_model(&relu(), device, &Properties::new()).unwrap();
        let request = compiled.create_infer_request();
        request.set_input(0, floats(&[-1.0, 3.0])).unwrap();
        request.infer(()).unwrap();
        assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [0.0, 3.0], "{device}");
    }
}

#[test]
fn a_missing_library_is_told_when_the_device_is_used() {
    let core = carafe::core();
    core.register_plugin("/nowhere/libnone.so", "NONE").unwrap();
    assert!(!core.available_devices().contains(&"NONE".to_string()));
    let e = core.compile_model(&relu(), "NONE", &Properties::new()).err().unwrap();
    assert!(e.to_string().contains("/nowhere/libnone.so") && e.to_string().contains("no such file"), "{e}");
    assert!(core.compile_model(&relu(), "TEMPLATE", &Properties::new()).is_ok());
}

#[test]
fn the_plugin_passes_every_conformance_check() {
    let target = carafe_conformance::Target::new("MINE", || Ok(core()));
    let report = carafe_conformance::run(&std::sync::Arc::new(target), "::", &mut |_| {}).unwrap();
    assert_eq!(report.failures(), []);
    assert!(report.behaviour_totals().passed > 140 && report.op_totals().passed > 1000);
}

/// Twice its input, for the operation of an extension that has no evaluation.
struct Twice;

impl Kernel for Twice {
    fn device(&self) -> &str {
        "MINE"
    }
    fn op(&self) -> &str {
        "OnlyKernel"
    }
    fn opset(&self) -> Option<&str> {
        None
    }
    fn name(&self) -> &str {
        "twice"
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        if site.attrs.get("refused").is_some_and(|a| a.to_string().contains("true")) {
            return Err(Error::invalid("refused by its attribute"));
        }
        let plain = || vec![PortLayout::plain(ElementType::F32)];
        Ok(vec![Config::new(plain(), plain())])
    }
    fn init(&self, _: &Site, _: usize) -> Result<Box<dyn PreparedKernel>> {
        Ok(Box::new(Twice))
    }
}

impl PreparedKernel for Twice {
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        io.map::<f32>(0, |x| x * 2.0)
    }
}

#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme", no_eval)]
struct OnlyKernel {
    #[attr(default = false)]
    refused: bool,
}

impl Op for OnlyKernel {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

fn only_kernel(refused: bool) -> Model {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::any_of_rank(1)).unwrap();
    let y = m.add("y", OnlyKernel { refused }, &[x]).unwrap();
    m.result("out", y.into()).unwrap();
    m
}

fn extension() -> Extension {
    Extension::new("acme").op::<OnlyKernel>().kernel(Arc::new(Twice))
}

#[test]
fn kernels_of_extensions_reach_the_device_in_the_library() {
    // Whichever comes first.
    for first in [true, false] {
        let core = core();
        if first {
            core.add_extension(extension()).unwrap();
        }
        core.device("MINE").unwrap();
        if !first {
            core.add_extension(extension()).unwrap();
        }
        assert!(core.query_model(&only_kernel(false), "MINE", &Properties::new()).unwrap().unsupported.is_empty());
        let compiled = core.compile_model(&only_kernel(false), "HETERO:CPU,MINE", &Properties::new()).unwrap();
        let request = compiled.create_infer_request();
        for values in [&[-1.0f32, 2.0][..], &[3.0, -4.0, 5.0]] {
            request.set_input(0, floats(values)).unwrap();
            request.infer(()).unwrap();
            let wanted: Vec<f32> = values.iter().map(|x| x * 2.0).collect();
            assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), wanted);
        }
        let query = core.query_model(&only_kernel(true), "MINE", &Properties::new()).unwrap();
        assert!(query.unsupported[0].reason.contains("refused by its attribute"), "{query:?}");
    }
}

#[test]
fn the_device_in_the_library_knows_what_the_engine_cannot_evaluate() {
    let core = core();
    core.add_extension(Extension::new("acme").op::<OnlyKernel>()).unwrap();
    let query = core.query_model(&only_kernel(false), "MINE", &Properties::new()).unwrap();
    assert!(query.unsupported[0].reason.contains("no evaluation"), "{query:?}");
}
