//! Attributes that a rule does not read: of a user's rule, mapping or operation they are told once for each type, of a rule of
//! ours each is an error.

use carafe::prelude::*;
use carafe::{Extension, Log, Mapping, NodeCx, ReadRequest, Rule, RuleOutputs};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// Takes one parameter.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme")]
struct Scaled {
    #[attr(default = 1.0)]
    by: f32,
}

impl Op for Scaled {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let scaled = cx.get::<f32>(0)?.iter().map(|x| x * self.by).collect();
        cx.put::<f32>(0, &shape, scaled)
    }
}

fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unread_{name}"));
    std::fs::write(&path, text).unwrap();
    path
}

fn onnx(name: &str, graph: &str) -> PathBuf {
    let head = r#"<ir_version: 8, opset_import: ["" : 17, "acme.ai" : 1]>"#;
    written(&format!("{name}.onnxtxt"), &format!("{head} {graph}"))
}

/// The model, and the warnings that came on the way.
fn read(core: &carafe::Core, path: &Path) -> (Result<Model>, Vec<String>) {
    let heard = RefCell::new(vec![]);
    let hear = |_, text: &str| heard.borrow_mut().push(text.to_string());
    let model = core.read(&ReadRequest { log: Log::to(&hear, false), ..ReadRequest::new(path) });
    (model, heard.into_inner())
}

fn run(model: &Model) -> Vec<f32> {
    let x = carafe::Tensor::from_slice(&[2], &[1f32, -3.0]).unwrap();
    model.evaluate(&[x]).unwrap()[0].to_vec::<f32>().unwrap().to_vec()
}

const TWO_NODES: &str = "g (float[2] x) => (float[2] y) {
    a = acme.ai.Scaled <by = 2.0, author = \"me\"> (x)
    y = acme.ai.Scaled <by = 3.0, revision = 7> (a)
}";

#[test]
fn an_operation_found_by_its_name_takes_what_it_declares() {
    let core = carafe::core();
    core.add_extension(Extension::new("acme").op::<Scaled>()).unwrap();
    let (model, heard) = read(&core, &onnx("by_name", TWO_NODES));
    assert_eq!(run(&model.unwrap()), [6.0, -18.0]);
    assert_eq!(
        heard,
        [
            "acme.ai::Scaled: the operation of extension `acme` does not read `author`, `revision`, which 2 nodes of the \
          model set; they have no effect"
        ]
    );
}

#[test]
fn a_mapping_takes_what_it_names() {
    let core = carafe::core();
    core.add_extension(Extension::new("ops").op::<Scaled>()).unwrap();
    core.add_extension(Mapping::new("acme::Scaled").from_type("Times").attr("by", "factor")).unwrap();
    let graph = "g (float[2] x) => (float[2] y) { y = acme.ai.Times <factor = 2.0, by = 9.0> (x) }";
    let (model, heard) = read(&core, &onnx("mapping", graph));
    assert_eq!(run(&model.unwrap()), [2.0, -6.0]);
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].contains("acme.ai::Times: the rule of the program does not read `by`, which 1 node"), "{heard:?}");
}

fn absolute(n: &mut NodeCx<'_>) -> Result<RuleOutputs> {
    let x = n.input(0)?;
    n.emit(carafe::ops::math::Abs {}, &[x]).map(RuleOutputs::from)
}

#[test]
fn a_rule_takes_what_it_reads() {
    let core = carafe::core();
    core.add_extension(Rule::new("Positive", absolute)).unwrap();
    let graph = "g (float[2] x) => (float[2] y) { y = acme.ai.Positive <strict = 1> (x) }";
    let (model, heard) = read(&core, &onnx("rule", graph));
    assert_eq!(run(&model.unwrap()), [1.0, 3.0]);
    assert!(heard[0].contains("does not read `strict`"), "{heard:?}");
}

#[test]
fn rules_mappings_and_operations_of_caffe_take_what_they_name_too() {
    let net = "input: 'x' input_shape { dim: 2 }
        layer { name: 'y' type: 'Scaled' bottom: 'x' top: 'y' scaled_param { by: 2.0 author: 'me' } }";
    let core = carafe::core();
    core.add_extension(Extension::new("acme").op::<Scaled>()).unwrap();
    let (model, heard) = read(&core, &written("net.prototxt", net));
    assert_eq!(run(&model.unwrap()), [2.0, -6.0]);
    assert!(
        heard.iter().any(|h| h.contains("Scaled: the operation of extension `acme` does not read `author`")),
        "{heard:?}"
    );
}

#[test]
fn an_attribute_that_our_own_rule_does_not_know_stays_an_error() {
    let (model, _) =
        read(&carafe::core(), &onnx("ours", "g (float[2] x) => (float[2] y) { y = Relu <slope = 1.0> (x) }"));
    let e = model.unwrap_err().to_string();
    assert!(e.contains("attributes `slope` = 1 are not understood"), "{e}");
}
