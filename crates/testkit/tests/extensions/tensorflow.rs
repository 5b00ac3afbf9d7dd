//! Operations of TensorFlow graphs by extensions: mapped by name, with attributes of every kind that TensorFlow has, and by rules in
//! each language, with the functions that a node holds.

use crate::support::*;
use carafe::{Core, Fact, Item, Mapping, Model, Result, Rule, RuleOutputs};
use carafe_testkit::libraries::Workshop;

const X: &str = r#"node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: 4 } } } } }"#;

// A graph of one node that reads `x`.
fn graph(core: &Core, op: &str, attrs: &[(&str, &str)], more: &str) -> Result<Model> {
    let attr = |(key, value): &(&str, &str)| format!(r#"attr {{ key: "{key}" value {{ {value} }} }}"#);
    let attrs: String = attrs.iter().map(attr).collect();
    let text = format!(r#"{X} node {{ name: "y" op: "{op}" input: "x" {attrs} }} {more}"#);
    core.read_model(Workshop::new().write("model.pbtxt", text))
}

#[test]
fn attributes_of_every_kind_come_from_tensorflow() {
    let attrs = [
        ("flag", "b: true"),
        ("count", "i: 12"),
        ("ratio", "f: 1.5"),
        ("label", "s: 'a text'"),
        ("ints", "list { i: [1, -2] }"),
        ("floats", "list { f: [0.5, 2] }"),
        ("words", "list { s: ['a', 'b'] }"),
        ("ty", "type: DT_INT64"),
        ("types", "list { type: [DT_FLOAT, DT_UINT8] }"),
        ("shape", "shape { dim { size: 1 } dim { size: -1 } }"),
        ("mode", "s: 'far'"),
        ("bound", "i: 9"),
        ("table", "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: [1, 2, 3] }"),
    ];
    in_each_language(|core| {
        let model = graph(core, "EveryAttr", &attrs, "").unwrap();
        let told = "true|12|1.5|a text|1,-2|0.5,2|a,b|i64|f32,u8|1..1,0..-1|far|9|1,2,3";
        assert_eq!(run(core, &model, &[0.0; 4]).unwrap().strings().unwrap(), [told]);
    });
}

#[test]
fn a_mapping_serves_a_type_of_tensorflow() {
    let core = carafe::core();
    let elu = Mapping::new("opset1::Elu").framework("tensorflow").from_type("MyElu").attr("alpha", "steepness");
    core.add_extension(elu).unwrap();
    let model = graph(&core, "MyElu", &[("steepness", "f: 2")], "").unwrap();
    assert_eq!(floats(&run(&core, &model, &[0.0, 1.0, 2.0, 3.0]).unwrap()), [0.0, 1.0, 2.0, 3.0]);
}

// `f(p) = -p` and `Apply`, which does `f` and multiplies by `scale`.
const FUNCTION: &str = r#"library { function {
    signature { name: "negated" input_arg { name: "p" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "n" op: "Neg" input: "p" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "r" value: "n:y:0" } } }"#;

const IN_C: &str = r#"#include "carafe.h"
CARAFE_LIBRARY
#define TRY(call) do { CarafeStatus s_ = (call); if (s_ != CARAFE_OK) return s_; } while (0)
static CarafeStatus apply(void *user, CarafeNode *cx) {
    (void)user;
    CarafeAttr scale;
    CarafeValue values[2], y;
    CarafeAttrs none = {NULL, 0};
    size_t n = 1;
    CarafeStr name;
    if (cx->fns->n_graphs(cx) != 1) return carafe_fail(carafe, CARAFE_INVALID, "one function is expected");
    TRY(cx->fns->graph_name(cx, 0, &name));
    TRY(cx->fns->attr(cx, carafe_str("scale"), &scale));
    TRY(cx->fns->input(cx, 0, &values[0]));
    TRY(cx->fns->inline_graph(cx, name, values, 1, values, &n));
    float factor = (float)scale.f;
    CarafeTensor scalar = {CARAFE_F32, 0, NULL, &factor, sizeof factor};
    TRY(cx->fns->constant(cx, &scalar, &values[1]));
    TRY(cx->fns->emit(cx, carafe_str("opset1::Multiply"), values, 2, none, &y));
    return cx->fns->set_output(cx, 0, y);
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    CarafeRule rule = {0};
    rule.size = sizeof rule;
    rule.abi = CARAFE_ABI_MAJOR;
    rule.framework = "tensorflow";
    rule.op_type = "Apply";
    rule.since = 1;
    rule.convert = apply;
    return r->fns->add_rule(r, &rule);
}
"#;

const IN_CPP: &str = r#"#include "carafe.hpp"
static void apply(carafe::Node &n) {
    auto made = n.inline_graph("f", {n.input(0)}, 1);
    auto factor = n.constant<float>({static_cast<float>(n.attr<double>("scale").value())}, {});
    n.output(0, n.emit("opset1::Multiply", {made.at(0), factor}));
}
CARAFE_EXTENSION(r) { r.rule("tensorflow", std::nullopt, "Apply", apply); }
"#;

fn in_rust() -> Rule {
    let apply = |n: &mut carafe::NodeCx<'_>| {
        let x = n.input(0)?;
        let facts: Vec<Fact> = vec![n.fact(x).clone()];
        let sub = n.body("f", &facts)?;
        let Some(Item::Tensor(made)) = n.inline(&sub, &[x])?.into_iter().next() else {
            return Err(n.fail("the function gives no tensor"));
        };
        let factor = n.scalar_like(made, n.required("scale")?)?;
        Ok(RuleOutputs::from(n.emit(carafe::ops::arithmetic::Multiply::default(), &[made, factor])?))
    };
    Rule::new("Apply", apply).framework("tensorflow")
}

#[test]
fn a_rule_in_each_language_reads_attributes_and_functions() {
    let shop = Workshop::new();
    let cores = [carafe::core(), carafe::core(), carafe::core()];
    cores[0].add_extension(in_rust()).unwrap();
    cores[1].add_extension(shop.c("apply_c", IN_C)).unwrap();
    cores[2].add_extension(shop.cpp("apply_cpp", IN_CPP)).unwrap();
    for core in &cores {
        let attrs = [("scale", "f: 10"), ("f", r#"func { name: "negated" }"#)];
        let model = graph(core, "Apply", &attrs, FUNCTION).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(floats(&run(core, &model, &[1.0, 2.0, -3.0, 0.0]).unwrap())[..3], [-10.0, -20.0, 30.0]);
        let gone = [("scale", "f: 10"), ("f", r#"func { name: "nobody" }"#)];
        tells(graph(core, "Apply", &gone, FUNCTION), &["the model has no function `nobody`", "`y`"]);
    }
}

#[test]
fn a_rule_that_fails_names_the_node_of_the_graph() {
    let core = carafe::core();
    core.add_extension(Workshop::new().c("apply_c", IN_C)).unwrap();
    tells(graph(&core, "Apply", &[("scale", "f: 10")], ""), &["one function is expected", "`y`", "apply_c"]);
}
