//! Who served each node: rules, operations and kernels, those of the program and those of extensions.

use carafe::prelude::*;
use carafe::{Explained, Extension, NodeCx, NodeExplained, Properties, ReadRequest, Rule, RuleOutputs};
use std::path::{Path, PathBuf};

/// Stands in front of the built-in operation of this name.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Abs", opset = "opset1", since = 1)]
struct OwnAbs {}

impl Op for OwnAbs {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

/// Has no rule.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme")]
struct Wobble {}

impl Op for Wobble {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (x, shape) = (cx.get::<f32>(0)?.to_vec(), cx.shape(0).to_vec());
        cx.put(0, &shape, x)
    }
}

/// Another operation of the same name.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Wobble", opset = "acme", no_eval)]
struct OtherWobble {}

impl Op for OtherWobble {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

fn written(name: &str, graph: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("explain_{name}.onnxtxt"));
    let head = r#"<ir_version: 8, opset_import: ["" : 17, "acme.ai" : 1]>"#;
    std::fs::write(&path, format!("{head} {graph}")).unwrap();
    path
}

fn row<'r>(rows: &'r [NodeExplained], name: &str) -> &'r NodeExplained {
    rows.iter().find(|r| r.name == name).unwrap_or_else(|| panic!("no node `{name}` in {rows:?}"))
}

fn acme() -> Extension {
    let relu = |n: &mut NodeCx<'_>| -> Result<RuleOutputs> {
        let x = n.input(0)?;
        n.emit(carafe::ops::activation::HSwish {}, &[x]).map(RuleOutputs::from)
    };
    Extension::new("acme").op::<Wobble>().rule(Rule::new("Relu", relu).framework("onnx"))
}

fn acme2() -> Extension {
    Extension { name: "third".into(), ..acme() }
}

#[test]
fn rule_operation_device_and_library_of_each_node_are_told() {
    let path = written("run", "g (float[2] x) => (float[2] y) { a = acme.ai.Wobble (x) b = Relu (a) y = Neg (b) }");
    let core = carafe::core();
    core.add_extension(acme()).unwrap();
    let model = core.read(&ReadRequest { explain: true, ..ReadRequest::new(&path) }).unwrap();
    let compiled = core.compile_model(&model, "TEMPLATE", &Properties::new()).unwrap();
    let mut rows = core.explain(&model);
    core.explain_compiled(&mut rows, "TEMPLATE", &compiled, &[]);

    let a = row(&rows, "a");
    assert_eq!((a.source_type.as_str(), a.op.as_str()), ("acme.ai::Wobble", "acme::Wobble"));
    assert_eq!((a.rule.as_deref(), a.op_from.as_str()), (Some("equal name, extension `acme`"), "extension `acme`"));
    assert_eq!((a.device.as_deref(), a.kernel_from.as_deref()), (Some("TEMPLATE"), Some("built-in")));
    let b = row(&rows, "b");
    assert_eq!((b.rule.as_deref(), b.op.as_str()), (Some("extension `acme`"), "opset4::HSwish"));
    assert_eq!(b.why, ["a user's rule stands in front of the built-in one"]);
    let y = row(&rows, "y");
    assert_eq!((y.rule.as_deref(), y.op_from.as_str(), y.why.len()), (Some("built-in"), "built-in", 0));
}

#[test]
fn an_operation_in_front_of_a_built_in_one_is_told() {
    let path = written("shadow", "g (float[2] x) => (float[2] y) { y = Abs (x) }");
    let core = carafe::core();
    let map = carafe::Mapping::new("opset1::Abs").framework("onnx");
    core.add_extension(Extension::new("own").op::<OwnAbs>().mapping(map)).unwrap();
    let model = core.read(&ReadRequest { explain: true, ..ReadRequest::new(&path) }).unwrap();
    let y = &core.explain(&model)[0];
    assert_eq!(y.op_from, "extension `own`");
    assert_eq!(
        y.why,
        [
            "a user's rule stands in front of the built-in one",
            "a user's operation stands in front of the built-in opset1::Abs"
        ]
    );
}

#[test]
fn an_operation_in_a_numbered_opset_stands_in_front_for_onnx_without_a_mapping() {
    let path = written("front", "g (float[2] x) => (float[2] y) { a = Abs (x) y = Relu (a) }");
    let core = carafe::core();
    core.add_extension(Extension::new("own").op::<OwnAbs>()).unwrap();
    let model = core.read(&ReadRequest { explain: true, ..ReadRequest::new(&path) }).unwrap();
    assert!(model.nodes().any(|(_, n)| n.op().is::<OwnAbs>()));
    let rows = core.explain(&model);
    let a = row(&rows, "a");
    assert_eq!((a.rule.as_deref(), a.op_from.as_str()), (Some("built-in"), "extension `own`"));
    assert_eq!(a.why, ["a user's operation stands in front of the built-in opset1::Abs"]);
    assert_eq!(row(&rows, "y").op_from, "built-in");
}

#[test]
fn a_built_in_operation_beside_one_of_a_user_is_told_as_built_in() {
    let core = carafe::core();
    let mut model = Model::new("m");
    let x = model.parameter("x", carafe::ElementType::F32, carafe::PartialShape::of(&[2])).unwrap();
    let y = model.add("y", carafe::ops::math::Abs {}, &[x]).unwrap();
    model.result("out", y.into()).unwrap();
    core.add_extension(Extension::new("own").op::<OwnAbs>()).unwrap();
    assert_eq!(core.explain(&model)[0].op_from, "built-in");
}

#[test]
fn two_extensions_with_one_operation_are_warned_of_and_both_told() {
    let path = written("both", "g (float[2] x) => (float[2] y) { y = acme.ai.Wobble (x) }");
    let core = carafe::core();
    let heard = std::sync::Arc::new(std::sync::Mutex::new(vec![]));
    let to = heard.clone();
    core.set_log_hook(carafe::log::Level::Warning, move |_, text| to.lock().unwrap().push(text.to_string()));
    core.add_extension(Extension::new("first").op::<Wobble>()).unwrap();
    core.add_extension(Extension::new("second").op::<OtherWobble>()).unwrap();
    assert_eq!(
        *heard.lock().unwrap(),
        [
            "operation `acme::Wobble` is in extension `first` and in extension `second`; that of the latter is used, because \
          it was added later"
        ]
    );
    let model = core.read(&ReadRequest { explain: true, ..ReadRequest::new(&path) }).unwrap();
    let y = &core.explain(&model)[0];
    assert_eq!(y.op_from, "extension `second`");
    let why = "the same operation of extension `first` was added before and is not used";
    assert!(y.why.iter().any(|w| w == why), "{:?}", y.why);
}

#[test]
fn two_extensions_with_rules_for_one_type_are_both_told() {
    let path = written("rules", "g (float[2] x) => (float[2] y) { y = Relu (x) }");
    let pass_on = |n: &mut NodeCx<'_>| -> Result<RuleOutputs> { n.input(0).map(RuleOutputs::from) };
    let core = carafe::core();
    core.add_extension(acme()).unwrap();
    core.add_extension(Extension::new("second").rule(Rule::new("Relu", pass_on))).unwrap();
    core.add_extension(acme2()).unwrap();
    let model = core.read(&ReadRequest { explain: true, ..ReadRequest::new(&path) }).unwrap();
    let rows = core.explain(&model);
    assert_eq!(
        row(&rows, "y").why,
        ["a user's rule stands in front of that of extension `second` and the built-in one"]
    );
}

#[test]
fn nodes_of_branches_are_told_too() {
    let path = written(
        "inner",
        "g (bool c, float[2] x) => (float[2] y) { y = If (c) <
            then_branch = b () => (float[2] z) { z = Relu (x) }, else_branch = b () => (float[2] z) { z = Abs (x) }> }",
    );
    let core = carafe::core();
    let model = core.read(&ReadRequest { explain: true, ..ReadRequest::new(&path) }).unwrap();
    let compiled = core.compile_model(&model, "TEMPLATE", &Properties::new()).unwrap();
    let mut rows = core.explain(&model);
    core.explain_compiled(&mut rows, "TEMPLATE", &compiled, &[]);
    assert!(rows.iter().all(|r| r.device.as_deref() == Some("TEMPLATE")), "{rows:?}");
    assert_eq!(row(&rows, "y > z").source_type, "Relu");
    assert!(rows.iter().any(|r| r.source_type == "Abs"), "{rows:?}");
}

#[test]
fn nothing_is_attached_unless_asked_and_it_comes_off_again() {
    let path = written("plain", "g (float[2] x) => (float[2] y) { y = Relu (x) }");
    let core = carafe::core();
    let plain = core.read_model(&path).unwrap();
    assert!(plain.nodes().all(|(_, n)| n.rt_info.is_empty()));
    let mut model = core.read(&ReadRequest { explain: true, ..ReadRequest::new(&path) }).unwrap();
    assert!(model.nodes().any(|(_, n)| Explained::of(n).is_some()));
    Explained::detach(&mut model).unwrap();
    assert!(model.nodes().all(|(_, n)| n.rt_info.is_empty()));
}
