//! The devices of `examples/template-plugin-c` and `examples/template-plugin-cpp`, compiled here and used as any other.

use carafe::device::{Blocked, Config, Kernel, KernelIo, Layout, PortLayout, PreparedKernel, Site};
use carafe::prelude::*;
use carafe::{
    Core, ElementType, ErrorKind, Extension, Model, NodeStatus, PartialShape, Properties, SharedBytes, Tensor, ops,
};
use carafe_conformance::Target;
use carafe_testkit::libraries::Workshop;
use std::sync::{Arc, Condvar, Mutex};

/// Name of each device, and its source.
const DEVICES: [(&str, &str); 2] =
    [("C", "examples/template-plugin-c/plugin.c"), ("CPP", "examples/template-plugin-cpp/plugin.cpp")];

fn with_devices(test: impl Fn(&Core, &str)) {
    for (name, source) in DEVICES {
        let workshop = Workshop::new();
        let core = carafe::core();
        assert_eq!(core.add_plugin(workshop.example(&format!("plugin_{name}"), source)).unwrap(), name);
        test(&core, name);
    }
}

// Relu and Add run in the plugin, Exp is evaluated by the engine.
fn model() -> Model {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::any_of_rank(1)).unwrap();
    let relu = m.add("relu", ops::activation::Relu, &[x]).unwrap();
    let exp = m.add("exp", ops::math::Exp, &[relu.into()]).unwrap();
    let sum = m.add("sum", ops::arithmetic::Add::default(), &[exp.into(), exp.into()]).unwrap();
    m.result("y", sum.into()).unwrap();
    m
}

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

#[test]
fn both_pass_every_conformance_check_and_skip_none() {
    for (name, source) in DEVICES {
        let workshop = Workshop::new();
        let library = workshop.example("plugin", source);
        let make_core = move || {
            let core = carafe::core();
            core.register_plugin(&library, name)?;
            Ok(core)
        };
        let target = Arc::new(Target::new(name, make_core));
        let report = carafe_conformance::run(&target, "", &mut |_| {}).unwrap();
        assert_eq!(report.failures(), [], "{name}");
        let (behaviours, cases) = (report.behaviour_totals(), report.op_totals());
        assert_eq!((behaviours.left_out, cases.left_out), (0, 0), "{name}");
        assert!(behaviours.passed > 150 && cases.passed > 1500, "{name}: {behaviours:?} {cases:?}");
    }
}

#[test]
fn a_model_runs_partly_in_the_plugin_and_partly_in_the_engine() {
    with_devices(|core, device| {
        let compiled = core.compile_model(&model(), device, &Properties::new()).unwrap();
        let request = compiled.create_infer_request();
        for values in [&[-1.0f32, 0.0][..], &[0.0, -3.0, 0.0]] {
            request.set_input(0, floats(values)).unwrap();
            request.infer(()).unwrap();
            assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), vec![2.0; values.len()]);
        }
    });
}

#[test]
fn inputs_have_their_tensor_names() {
    with_devices(|core, device| {
        let compiled = core.compile_model(&model(), device, &Properties::new()).unwrap();
        assert!(compiled.inputs()[0].names.contains("x"));
    });
}

#[test]
fn strings_and_several_outputs_pass_through() {
    with_devices(|core, device| {
        let mut m = Model::new("m");
        let s = m.parameter("s", ElementType::String, PartialShape::of(&[2])).unwrap();
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[4])).unwrap();
        let axis = m.constant("axis", Tensor::scalar(0i64)).unwrap();
        let split = m.add("split", ops::movement::Split { num_splits: 2 }, &[x, axis]).unwrap();
        m.result("same", s).unwrap();
        m.result("second", carafe::Value { node: split, port: 1 }).unwrap();
        let request = core.compile_model(&m, device, &Properties::new()).unwrap().create_infer_request();
        let texts = Tensor::from_strings(&[2], vec!["".into(), "größer".into()]).unwrap();
        request.set_input(0, texts.clone()).unwrap();
        request.set_input(1, floats(&[1.0, 2.0, 3.0, 4.0])).unwrap();
        request.infer(()).unwrap();
        assert!(request.output(0).unwrap().content_eq(&texts));
        assert_eq!(request.output(1).unwrap().as_slice::<f32>().unwrap(), [3.0, 4.0]);
    });
}

#[test]
fn an_operation_that_nobody_knows_is_refused_by_name() {
    with_devices(|core, device| {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1])).unwrap();
        let op = carafe::FrameworkNode {
            type_name: "Mystery".into(),
            opset: "nowhere".into(),
            attrs: carafe::AttrMap::default(),
            outputs: vec![(ElementType::F32, PartialShape::of(&[1]))],
            rule: None,
        };
        let odd = m.add("odd", op, &[x]).unwrap();
        m.result("y", odd.into()).unwrap();
        let query = core.query_model(&m, device, &Properties::new()).unwrap();
        assert_eq!(query.unsupported.len(), 1);
        assert!(query.unsupported[0].reason.contains("nowhere"), "{:?}", query.unsupported);
        let e = core.compile_model(&m, device, &Properties::new()).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.to_string().contains("`odd`") && e.to_string().contains("libplugin_"), "{e}");
    });
}

#[test]
fn a_variable_of_a_body_is_kept_between_inferences() {
    let mut body = Model::new("body");
    let x = body.parameter("inner", ElementType::F32, PartialShape::of(&[1])).unwrap();
    let read = ops::state::ReadValue {
        variable_id: "sum".into(),
        variable_type: ElementType::F32,
        variable_shape: PartialShape::of(&[1]),
    };
    let old = body.add("old", read, &[x]).unwrap();
    let sum = body.add("sum", ops::arithmetic::Add::default(), &[old.into(), x]).unwrap();
    body.add("keep", ops::state::Assign { variable_id: "sum".into() }, &[sum.into()]).unwrap();
    body.result("out", sum.into()).unwrap();
    let mut branch = carafe::Body::new(body);
    branch.inputs.push(carafe::BodyInput { outer: Some(1), parameter: 0, slicing: None, back_edge: None });
    branch.outputs.push(carafe::BodyOutput { outer: 0, result: 0, slicing: None });
    let mut m = Model::new("m");
    let cond = m.parameter("cond", ElementType::Boolean, PartialShape::of(&[])).unwrap();
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1])).unwrap();
    let op = ops::control::If { then_body: branch.clone(), else_body: branch };
    let y = m.add("if", op, &[cond, x]).unwrap();
    m.result("y", y.into()).unwrap();
    let step = |request: &carafe::InferRequest| {
        request.set_input(0, Tensor::from_i64(ElementType::Boolean, &[], &[1]).unwrap()).unwrap();
        request.set_input(1, floats(&[2.0])).unwrap();
        request.infer(()).unwrap();
        request.output(0).unwrap().as_slice::<f32>().unwrap()[0]
    };
    with_devices(|core, device| {
        let wanted = core.compile_model(&m, "TEMPLATE", &Properties::new()).unwrap().create_infer_request();
        let request = core.compile_model(&m, device, &Properties::new()).unwrap().create_infer_request();
        for _ in 0..3 {
            assert_eq!(step(&request), step(&wanted), "{device}");
        }
    });
}

#[test]
fn the_running_graph_names_the_kernel_of_each_node() {
    with_devices(|core, device| {
        let graph = core.compile_model(&model(), device, &Properties::new()).unwrap().runtime_model();
        let kernel = |name: &str| {
            let node = graph.nodes().map(|(_, n)| n).find(|n| n.name() == name).expect("the node is there");
            node.rt_info.get("primitiveType").unwrap().fields[0].1.clone()
        };
        assert_eq!(kernel("exp"), "reference");
        assert!(["c_relu", "cpp_kernel"].contains(&kernel("relu").as_str()), "{}", kernel("relu"));
    });
}

#[test]
fn times_of_nodes_are_there_when_asked_for() {
    with_devices(|core, device| {
        let on = Properties::new().with("PERF_COUNT", true);
        let request = core.compile_model(&model(), device, &on).unwrap().create_infer_request();
        request.set_input(0, floats(&vec![1.0; 100_000])).unwrap();
        request.infer(()).unwrap();
        let rows = request.profile().unwrap();
        let exp = rows.iter().find(|r| r.name == "exp").unwrap();
        assert_eq!((exp.status, exp.kernel.as_str()), (NodeStatus::Executed, "reference"));
        assert!(exp.real_time.as_nanos() > 0);
    });
}

#[test]
fn an_exported_model_comes_back_with_its_weights_and_a_damaged_one_does_not() {
    with_devices(|core, device| {
        let mut m = Model::new("weighted");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[3])).unwrap();
        let k = m.constant("k", floats(&[0.5, 0.25, 0.125])).unwrap();
        let y = m.add("y", ops::arithmetic::Multiply::default(), &[x, k]).unwrap();
        m.result("out", y.into()).unwrap();
        let mut blob = Vec::new();
        core.compile_model(&m, device, &Properties::new()).unwrap().export(&mut blob).unwrap();
        let again = core.import_model(SharedBytes::from_vec(blob.clone()), device, &Properties::new()).unwrap();
        let request = again.create_infer_request();
        request.set_input(0, floats(&[2.0, 4.0, 8.0])).unwrap();
        request.infer(()).unwrap();
        assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [1.0; 3]);
        *blob.last_mut().unwrap() ^= 1;
        let e = core.import_model(SharedBytes::from_vec(blob), device, &Properties::new()).err().unwrap();
        assert!(e.to_string().contains("damaged"), "{e}");
    });
}

#[test]
fn hetero_shares_a_model_between_it_and_another_device() {
    with_devices(|core, device| {
        let both = format!("HETERO:{device},TEMPLATE");
        let request = core.compile_model(&model(), &both, &Properties::new()).unwrap().create_infer_request();
        request.set_input(0, floats(&[-1.0])).unwrap();
        request.infer(()).unwrap();
        assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [2.0]);
    });
}

/// Three times its input, for an operation that has no evaluation, and for one that has.
struct Thrice {
    device: &'static str,
    op: &'static str,
    form: Form,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Plain,
    Declines,
    Fails,
    /// Takes two elements and no other number.
    Two,
    Blocked,
    AsF64,
    /// Waits for another inference.
    Meets,
}

impl Kernel for Thrice {
    fn device(&self) -> &str {
        self.device
    }
    fn op(&self) -> &str {
        self.op
    }
    fn opset(&self) -> Option<&str> {
        None
    }
    fn name(&self) -> &str {
        "thrice"
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        let two = site.inputs[0].shape.to_static().is_some_and(|s| s == [2]);
        let ty = if self.form == Form::AsF64 { ElementType::F64 } else { ElementType::F32 };
        let layout = match self.form {
            Form::Blocked => Layout::Other(Blocked { blocks: vec![1, 2], order: vec![0, 0] }),
            _ => Layout::Plain,
        };
        let port = || vec![PortLayout::new(ty, layout.clone())];
        match self.form {
            Form::Declines => Ok(vec![]),
            Form::Two if !two => Ok(vec![]),
            Form::Fails => Err(Error::invalid("no idea")),
            _ => Ok(vec![Config { workspace: 48, scratch: 16, ..Config::new(port(), port()) }]),
        }
    }
    fn init(&self, _: &Site, _: usize) -> Result<Box<dyn PreparedKernel>> {
        Ok(Box::new(Ready { meets: self.form == Form::Meets, inside: Arc::default() }))
    }
}

struct Ready {
    /// Ends only when two inferences are inside.
    meets: bool,
    inside: Arc<(Mutex<usize>, Condvar)>,
}

impl PreparedKernel for Ready {
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        assert_eq!((io.inputs.len(), io.outputs.len()), (1, 1));
        assert!(io.workspace.len() >= 48, "{}", io.workspace.len());
        io.each(2, |_, scratch| assert!(scratch.len() >= 16));
        let (count, changed) = &*self.inside;
        *count.lock().unwrap() += 1;
        changed.notify_all();
        let alone = |n: &mut usize| self.meets && *n < 2;
        let wait = std::time::Duration::from_secs(60);
        if changed.wait_timeout_while(count.lock().unwrap(), wait, alone).unwrap().1.timed_out() {
            return Err(Error::invalid("nobody else came"));
        }
        io.map::<f32>(0, |x| x * 3.0)
    }
}

#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme", no_eval)]
struct OnlyKernel {}

impl Op for OnlyKernel {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

fn kernels(device: &str, form: Form) -> Extension {
    let device = if device == "C" { "C" } else { "CPP" };
    let kernel = |op| Arc::new(Thrice { device, op, form });
    Extension::new("acme").op::<OnlyKernel>().kernel(kernel("OnlyKernel")).kernel(kernel("ReLU"))
}

// An operation that only a kernel runs, or ReLU, between two nodes that any device runs.
fn with_kernel(op: impl Op, shape: &str) -> Model {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, shape.parse().unwrap()).unwrap();
    let a = m.add("a", ops::math::Negative, &[x]).unwrap();
    let y = m.add("y", op, &[a.into()]).unwrap();
    let z = m.add("z", ops::math::Negative, &[y.into()]).unwrap();
    m.result("out", z.into()).unwrap();
    m
}

fn infer(request: &carafe::InferRequest, values: &[f32]) -> Result<Vec<f32>> {
    request.set_input(0, floats(values))?;
    request.infer(())?;
    Ok(request.output(0)?.as_slice::<f32>()?.to_vec())
}

// What runs node `y`, and what is said of it.
fn ran(core: &Core, m: &Model, device: &str, compiled: &carafe::CompiledModel) -> (String, String) {
    let mut rows = core.explain(m);
    core.explain_compiled(&mut rows, device, compiled, &[]);
    let row = rows.into_iter().find(|r| r.name == "y").unwrap();
    (row.kernel.unwrap(), row.why.join("; "))
}

#[test]
fn a_kernel_of_an_extension_runs_what_nothing_evaluates() {
    with_devices(|core, device| {
        // The device is there before the extension.
        assert_eq!(core.query_model(&model(), device, &Properties::new()).unwrap().unsupported, []);
        core.add_extension(kernels(device, Form::Plain)).unwrap();
        for shape in ["2", "?", "..."] {
            let m = with_kernel(OnlyKernel {}, shape);
            assert_eq!(core.query_model(&m, device, &Properties::new()).unwrap().unsupported, [], "{device} {shape}");
            for on in [device.to_string(), format!("HETERO:{device},CPU"), format!("HETERO:CPU,{device}")] {
                let compiled = core.compile_model(&m, &on, &Properties::new()).unwrap();
                let request = compiled.create_infer_request();
                assert_eq!(infer(&request, &[1.0, -2.0]).unwrap(), [3.0, -6.0], "{on} {shape}");
                assert_eq!(infer(&request, &[4.0, 0.5]).unwrap(), [12.0, 1.5], "{on} {shape}");
                if on == device {
                    assert_eq!(ran(core, &m, device, &compiled), ("thrice".into(), "".into()), "{on} {shape}");
                }
            }
        }
    });
}

#[test]
fn a_kernel_of_an_extension_goes_before_the_devices_own() {
    with_devices(|core, device| {
        core.add_extension(kernels(device, Form::Plain)).unwrap();
        let m = with_kernel(ops::activation::Relu, "2");
        let compiled = core.compile_model(&m, device, &Properties::new()).unwrap();
        assert_eq!(infer(&compiled.create_infer_request(), &[1.0, -2.0]).unwrap(), [3.0, -6.0]);
        assert_eq!(ran(core, &m, device, &compiled).0, "thrice");
    });
}

#[test]
fn a_kernel_that_does_not_take_a_node_leaves_it_to_the_device_which_says_so() {
    let forms = [
        (Form::Declines, "declines it"),
        (Form::Fails, "no idea"),
        (Form::Blocked, "another layout"),
        (Form::AsF64, "another element type"),
    ];
    with_devices(|core, device| {
        for (form, why) in forms {
            let core = {
                let again = carafe::core();
                again.add_device(device, core.device(device).unwrap()).unwrap();
                again.add_extension(kernels(device, form)).unwrap();
                again
            };
            let m = with_kernel(ops::activation::Relu, "2");
            let compiled = core.compile_model(&m, device, &Properties::new()).unwrap();
            assert_eq!(infer(&compiled.create_infer_request(), &[1.0, -2.0]).unwrap(), [0.0, -2.0]);
            let (kernel, told) = ran(&core, &m, device, &compiled);
            assert!(kernel != "thrice" && told.contains("kernel `thrice`") && told.contains(why), "{kernel}: {told}");
            let m = with_kernel(OnlyKernel {}, "2");
            let query = core.query_model(&m, device, &Properties::new()).unwrap();
            assert!(query.unsupported.len() == 1 && query.unsupported[0].reason.contains(why), "{query:?}");
            let e = core.compile_model(&m, device, &Properties::new()).err().unwrap();
            assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains(why), "{e}");
        }
    });
}

#[test]
fn kernels_are_asked_again_for_the_shapes_of_an_inference() {
    with_devices(|core, device| {
        core.add_extension(kernels(device, Form::Two)).unwrap();
        let m = with_kernel(ops::activation::Relu, "?");
        let compiled = core.compile_model(&m, device, &Properties::new()).unwrap();
        let request = compiled.create_infer_request();
        for _ in 0..2 {
            assert_eq!(infer(&request, &[1.0, -2.0]).unwrap(), [3.0, -6.0]);
            assert_eq!(ran(core, &m, device, &compiled).0, "thrice");
            assert_eq!(infer(&request, &[1.0, -2.0, -3.0]).unwrap(), [0.0, -2.0, -3.0]);
            assert!(ran(core, &m, device, &compiled).1.contains("declines it"));
        }
        let m = with_kernel(OnlyKernel {}, "?");
        let request = core.compile_model(&m, device, &Properties::new()).unwrap().create_infer_request();
        assert_eq!(infer(&request, &[1.0, -2.0]).unwrap(), [3.0, -6.0]);
        let e = infer(&request, &[1.0]).unwrap_err();
        assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("declines it"), "{e}");
    });
}

#[test]
fn requests_run_one_kernel_at_once() {
    with_devices(|core, device| {
        core.add_extension(kernels(device, Form::Meets)).unwrap();
        let compiled = core.compile_model(&with_kernel(OnlyKernel {}, "2"), device, &Properties::new()).unwrap();
        std::thread::scope(|s| {
            for _ in 0..2 {
                let request = compiled.create_infer_request();
                s.spawn(move || infer(&request, &[1.0, 2.0]).unwrap());
            }
        });
    });
}

/// A kernel that makes its output itself, and too short.
const SHORT: &str = r#"#include "carafe.h"
CARAFE_LIBRARY
static CarafeStatus configs(void *user, const CarafeSite *site, CarafeConfigSink offer, void *sink) {
    (void)user, (void)site;
    CarafeLayout plain = {CARAFE_F32, 0, NULL, NULL, -1, 0};
    CarafeConfig config = {&plain, 1, &plain, 1};
    return offer(sink, &config);
}
static CarafeStatus init(void *user, const CarafeSite *site, size_t config, void **kernel) {
    (void)user, (void)site, (void)config;
    *kernel = NULL;
    return CARAFE_OK;
}
static CarafeStatus execute(void *kernel, CarafeEval *cx) {
    (void)kernel;
    size_t one = 1;
    void *y;
    return cx->fns->output(cx, 0, CARAFE_F32, 1, &one, &y);
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    CarafeKernel k = {0};
    k.size = offsetof(CarafeKernel, run);
    k.abi = CARAFE_ABI_MAJOR;
    k.device = "DEVICE";
    k.op = "OnlyKernel";
    k.name = "thrice";
    k.configs = configs;
    k.init = init;
    k.execute = execute;
    return r->fns->add_kernel(r, &k);
}
"#;

#[test]
fn an_output_of_a_kernel_that_is_not_as_promised_is_an_error() {
    with_devices(|core, device| {
        let shop = Workshop::new();
        let source = SHORT.replace("DEVICE", device);
        core.add_extension(kernels("", Form::Plain)).unwrap();
        core.add_extension(shop.c("short", &source)).unwrap();
        let m = with_kernel(OnlyKernel {}, "2");
        let request = core.compile_model(&m, device, &Properties::new()).unwrap().create_infer_request();
        let e = infer(&request, &[1.0, 2.0]).unwrap_err();
        assert!(e.to_string().contains("gave output 0 as f32[1], promised f32[2]"), "{e}");
    });
}

#[test]
fn a_cancellation_just_before_a_device_without_stages_begins_is_not_lost() {
    with_devices(|core, device| {
        let compiled = core.compile_model(&model(), device, &Properties::new()).unwrap();
        let mut request = compiled.device_model().clone().create_request();
        request.set_input(0, floats(&[-1.0])).unwrap();
        assert_eq!(request.stages().len(), 1);
        let flag = request.cancel_flag();
        flag.set();
        assert_eq!(request.run_stage(0).unwrap_err().kind(), ErrorKind::Cancelled);
        // The next one is free of it.
        flag.clear();
        request.run_stage(0).unwrap();
        assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [2.0]);
        flag.set();
        request.infer().unwrap();
    });
}

/// Multiplies in f32 and rounds to the type of its input.
const SCALED: &str = r#"
#include "carafe.hpp"
namespace {
struct Scaled : carafe::Op {
    explicit Scaled(const carafe::Attrs &) {}
    void infer(carafe::Infer &cx) const override { cx.output(0, cx.input(0)); }
    template <class T> void run(carafe::Eval &cx, const carafe::Tensor &x) const {
        std::vector<float> all = x.floats();
        T *y = cx.output<T>(0, x.shape());
        for (size_t i = 0; i < all.size(); i++) y[i] = T(all[i] * 0.3f);
    }
    void eval(carafe::Eval &cx) const override {
        carafe::Tensor x = cx.input(0);
        if (x.type() == CARAFE_F16) run<carafe::f16>(cx, x);
        else run<carafe::bf16>(cx, x);
    }
};
} // namespace
CARAFE_EXTENSION(r) {
    r.describe("halves", "1.0");
    r.op<Scaled>(carafe::Decl("Scaled", "acme").input("x").output("y"));
}
"#;

#[test]
fn halves_in_cpp_are_read_and_rounded_as_here() {
    use carafe::{bf16, f16};
    let workshop = Workshop::new();
    let core = carafe::core();
    core.add_extension(workshop.cpp("halves", SCALED)).unwrap();
    let registry = core.registry();
    let run = |x: Tensor| {
        let mut m = Model::new("m");
        let input = m.parameter("x", x.element_type(), PartialShape::of(x.shape())).unwrap();
        let op = registry.find("Scaled", "acme").unwrap().create(&carafe::AttrMap::new()).unwrap();
        let y = m.add_ref("y", op, &[input]).unwrap();
        m.result("out", y.into()).unwrap();
        m.evaluate(&[x]).unwrap().remove(0)
    };
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let halves: Vec<f16> = all.iter().map(|b| f16::from_bits(*b)).collect();
    let found = run(Tensor::from_slice(&[halves.len()], &halves).unwrap());
    for (x, y) in halves.iter().zip(found.as_slice::<f16>().unwrap()) {
        let wanted = f16::from_f32(x.to_f32() * 0.3);
        assert!(y.to_bits() == wanted.to_bits() || (y.is_nan() && wanted.is_nan()), "{x}: {y}, not {wanted}");
    }
    let halves: Vec<bf16> = all.iter().map(|b| bf16::from_bits(*b)).collect();
    let found = run(Tensor::from_slice(&[halves.len()], &halves).unwrap());
    for (x, y) in halves.iter().zip(found.as_slice::<bf16>().unwrap()) {
        let wanted = bf16::from_f32(x.to_f32() * 0.3);
        assert!(y.to_bits() == wanted.to_bits() || (y.is_nan() && wanted.is_nan()), "{x}: {y}, not {wanted}");
    }
}
