//! A conversion and its stages: who takes part at each, what is told, what is turned on and off.

use carafe::convert::{Conversion, ConversionOptions};
use carafe::prelude::*;
use carafe::{
    Extension, Log, Match, Model, NodeId, Notes, Outcome, Phase, PhasedPass, ReadRequest, Replacement, Rewrite,
};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pipeline_{name}"));
    std::fs::write(&path, text).unwrap();
    path
}

fn onnx(name: &str, graph: &str) -> PathBuf {
    let head = r#"<ir_version: 8, opset_import: ["" : 17, "acme.ai" : 1]>"#;
    written(&format!("{name}.onnxtxt"), &format!("{head} {graph}"))
}

/// Lets `from` nodes be `Neg`s.
struct Negate {
    name: &'static str,
    from: &'static str,
}

impl Rewrite for Negate {
    fn name(&self) -> &'static str {
        self.name
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        if model.node(root).op().type_name() != self.from {
            return Ok(Outcome::NoMatch);
        }
        let x = model.input(root, 0).unwrap();
        let neg = model.add(format!("{}/{}", model.node(root).name(), self.name), carafe::ops::math::Negative, &[x])?;
        model.replace_value(root.into(), neg.into());
        Ok(Outcome::Done)
    }
}

fn negate(name: &'static str, from: &'static str) -> Arc<Negate> {
    Arc::new(Negate { name, from })
}

fn types(model: &Model) -> Vec<String> {
    let order = model.topological_order().unwrap();
    let names = order.iter().map(|id| model.node(*id).op().type_name().to_string());
    names.filter(|n| !["Parameter", "Result", "Const"].contains(&n.as_str())).collect()
}

#[test]
fn extensions_take_part_in_every_phase_in_order() {
    let path = onnx("phases", "g (float[2] x) => (float[2] y) { a = Abs (x) b = Exp (a) y = Sin (b) }");
    let core = carafe::core();
    let all = Extension::new("acme")
        .pass(PhasedPass::new(Phase::Back, negate("last", "Sin")))
        .pass(PhasedPass::new(Phase::Middle, negate("middle", "Exp")))
        .pass(PhasedPass::new(Phase::Front, negate("first", "Abs")));
    core.add_extension(all).unwrap();
    let lines = RefCell::new(vec![]);
    let hear = |_: carafe::log::Level, text: &str| lines.borrow_mut().push(text.to_string());
    let request = ReadRequest { log: Log::to(&hear, true), ..ReadRequest::new(&path) };
    Conversion { tidy: false, ..Conversion::new(request) }.run(&core).unwrap();
    let lines = lines.into_inner();
    let at =
        |what: &str| lines.iter().position(|l| l.starts_with(what)).unwrap_or_else(|| panic!("{what}: {lines:#?}"));
    let order = [
        "stage load",
        "extract: `a` (Abs)",
        "stage front",
        "first: 1",
        "stage infer",
        "infer: ",
        "stage middle",
        "middle: 1",
        "stage back",
        "last: 1",
    ];
    let positions: Vec<usize> = order.iter().map(|what| at(what)).collect();
    assert!(positions.is_sorted(), "{positions:?} {lines:#?}");
}

#[test]
fn the_trace_has_shapes_and_small_values() {
    let path = onnx("trace", "g (float[2,3] x) => (float[s] y) <int64[1] s = {6}> { y = Reshape (x, s) }");
    let lines = RefCell::new(vec![]);
    let hear = |_: carafe::log::Level, text: &str| lines.borrow_mut().push(text.to_string());
    let request = ReadRequest { log: Log::to(&hear, true), ..ReadRequest::new(&path) };
    Conversion::new(request).run(&carafe::core()).unwrap();
    let all = lines.into_inner().join("\n");
    assert!(
        all.contains("extract: `y` (Reshape) by built-in\n    in  0 `x`: f32[2,3]\n    in  1 `s`: i64[1] = [6]"),
        "{all}"
    );
    assert!(all.contains("    out 0 `y`: f32[6]"), "{all}");
    assert!(all.contains("infer: `y` (opset1::Reshape)"), "{all}");
}

fn with_switches(transform: Option<&str>, disable: &[&str]) -> Result<Vec<String>> {
    let path = onnx("switches", "g (float[2] x) => (float[2] y) { a = Abs (x) y = Exp (a) }");
    let core = carafe::core();
    let all = Extension::new("acme")
        .pass(PhasedPass::new(Phase::Front, negate("on", "Abs")))
        .pass(PhasedPass::new(Phase::Middle, negate("off", "Exp")).disabled());
    core.add_extension(all).unwrap();
    let converted = Conversion {
        options: ConversionOptions { transform: transform.map(str::to_string), ..ConversionOptions::default() },
        disable: disable.iter().map(|n| n.to_string()).collect(),
        ..Conversion::new(ReadRequest::new(&path))
    };
    Ok(types(&converted.run(&core)?.model))
}

#[test]
fn rewrites_are_turned_on_and_off_by_name() {
    assert_eq!(with_switches(None, &[]).unwrap(), ["Negative", "Exp"]);
    assert_eq!(with_switches(Some("off"), &[]).unwrap(), ["Negative", "Negative"]);
    assert_eq!(with_switches(None, &["on"]).unwrap(), ["Abs", "Exp"]);
    let e = with_switches(None, &["of"]).unwrap_err().to_string();
    assert!(
        e.contains("option `--disable`: there is no rewrite `of`; there are: ") && e.contains("fold_constants"),
        "{e}"
    );
    let e = with_switches(Some("of"), &[]).unwrap_err().to_string();
    assert!(e.contains("known: LowLatency2, MakeStateful, Pruning, on, off"), "{e}");
    let e = with_switches(Some("off"), &["off"]).unwrap_err().to_string();
    assert!(e.contains("both asked for and disabled"), "{e}");
}

#[test]
fn a_built_in_pass_can_be_turned_off() {
    let path = onnx("folded", "g (float[1] x) => (float[1] y) <float[1] c = {-2}> { a = Abs (c) y = Add (x, a) }");
    let run = |disable: Vec<String>| {
        let conversion = Conversion { disable, ..Conversion::new(ReadRequest::new(&path)) };
        types(&conversion.run(&carafe::core()).unwrap().model)
    };
    assert_eq!(run(vec![]), ["Add"]);
    assert_eq!(run(vec!["fold_constants".into()]), ["Abs", "Add"]);
}

/// Grows by what the user wrote.
struct Grow;

impl Replacement for Grow {
    fn id(&self) -> &str {
        "Grow"
    }
    fn replace(&self, model: &mut Model, found: &Match, notes: &mut Notes) -> Result<()> {
        assert!(notes.is_decoded());
        let by: f64 = found.attrs.read("by", None)?;
        let by = model.constant("by", carafe::Tensor::scalar(by as f32))?;
        let mul = carafe::FrameworkNode::new("ai.onnx", "Mul");
        let node = model.add(format!("{}/mul", found.name), mul, &[found.inputs[0], by])?;
        model.replace_value(found.outputs[0], node.into());
        Ok(())
    }
}

#[test]
fn what_nobody_can_translate_is_replaced_before_translation() {
    let path = onnx(
        "unknown",
        "g (float[2] x) => (float[2] y) { [block_in] a = acme.ai.Mystery (x) [block_out] b = acme.ai.Riddle (a) \
         [tail] y = Neg (b) }",
    );
    let core = carafe::core();
    core.add_extension(Extension::new("acme").replacement(Arc::new(Grow))).unwrap();
    let run = |config: &str| {
        let config = written("unknown.json", config);
        let request = ReadRequest { explain: true, ..ReadRequest::new(&path) };
        Conversion { transformations_config: Some(&config), ..Conversion::new(request) }.run(&core)
    };
    let scope = r#""match_kind": "scope", "instances": ["block_"]"#;
    let by_op = run(&format!(r#"[{{"id": "b", {scope}, "op": "Sigmoid"}}]"#)).unwrap();
    assert_eq!(types(&by_op.model), ["Sigmoid", "Negative"]);
    let row = &by_op.explained.unwrap()[0];
    assert_eq!((row.op.as_str(), row.rule.as_deref()), ("opset1::Sigmoid", Some("transformations_config")));

    let by_extension = run(&format!(r#"[{{"id": "Grow", {scope}, "custom_attributes": {{"by": 2.5}}}}]"#)).unwrap();
    assert_eq!(types(&by_extension.model), ["Multiply", "Negative"]);
    let none = run(r#"[{"id": "b", "match_kind": "scope", "instances": ["none/"], "op": "Sigmoid"}]"#);
    assert!(none.unwrap_err().to_string().contains("Mystery"));
    let broken = run("[{]").unwrap_err().to_string();
    assert!(broken.contains("transformations config `") && broken.contains("not valid JSON"), "{broken}");
}
