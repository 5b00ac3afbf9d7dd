//! The devices of `examples/template-plugin-c` and `examples/template-plugin-cpp`, compiled here and used as any other.

use carafe::{Core, ElementType, ErrorKind, Model, NodeStatus, PartialShape, Properties, SharedBytes, Tensor, ops};
use carafe_conformance::Target;
use carafe_testkit::libraries::Workshop;
use std::sync::Arc;

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
        let mut request = compiled.create_request();
        for values in [&[-1.0f32, 0.0][..], &[0.0, -3.0, 0.0]] {
            request.set_input(0, floats(values)).unwrap();
            request.infer().unwrap();
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
        let mut request = core.compile_model(&m, device, &Properties::new()).unwrap().create_request();
        let texts = Tensor::from_strings(&[2], vec!["".into(), "größer".into()]).unwrap();
        request.set_input(0, texts.clone()).unwrap();
        request.set_input(1, floats(&[1.0, 2.0, 3.0, 4.0])).unwrap();
        request.infer().unwrap();
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
    let step = |request: &mut Box<dyn carafe::InferRequest>| {
        request.set_input(0, Tensor::from_i64(ElementType::Boolean, &[], &[1]).unwrap()).unwrap();
        request.set_input(1, floats(&[2.0])).unwrap();
        request.infer().unwrap();
        request.output(0).unwrap().as_slice::<f32>().unwrap()[0]
    };
    with_devices(|core, device| {
        let mut wanted = core.compile_model(&m, "TEMPLATE", &Properties::new()).unwrap().create_request();
        let mut request = core.compile_model(&m, device, &Properties::new()).unwrap().create_request();
        for _ in 0..3 {
            assert_eq!(step(&mut request), step(&mut wanted), "{device}");
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
        let mut request = core.compile_model(&model(), device, &on).unwrap().create_request();
        request.set_input(0, floats(&vec![1.0; 100_000])).unwrap();
        request.infer().unwrap();
        let rows = request.profile();
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
        let mut request = again.create_request();
        request.set_input(0, floats(&[2.0, 4.0, 8.0])).unwrap();
        request.infer().unwrap();
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
        let mut request = core.compile_model(&model(), &both, &Properties::new()).unwrap().create_request();
        request.set_input(0, floats(&[-1.0])).unwrap();
        request.infer().unwrap();
        assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [2.0]);
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
