//! Operators of users in MXNet symbols: a rule in each language reads numbers that the file holds as text, and a `Custom` node is
//! found by its `op_type`.

use crate::support::*;
use carafe::{Core, Mapping, Model, NodeCx, Result, Rule, RuleOutputs, SharedBytes};
use carafe_testkit::libraries::Workshop;

const CUSTOM: &str = r#"{"nodes": [
    {"op": "null", "name": "x", "attrs": {"__shape__": "(3,)"}, "inputs": []},
    {"op": "Custom", "name": "y", "attrs": {"op_type": "acme", "factor": "2.5", "steps": "(1, 2, 4)"}, "inputs": [[0, 0, 0]]}
], "arg_nodes": [0], "heads": [[1, 0, 0]]}"#;

fn read(core: &Core, text: &str) -> Result<Model> {
    core.read_model_from(SharedBytes::from_vec(text.as_bytes().to_vec()), None)
}

// x * (factor + the last step).
const IN_C: &str = r#"#include "carafe.h"
CARAFE_LIBRARY
#define TRY(call) do { CarafeStatus s_ = (call); if (s_ != CARAFE_OK) return s_; } while (0)
static CarafeStatus acme(void *user, CarafeNode *cx) {
    (void)user;
    CarafeAttr factor, steps;
    CarafeValue values[2], y;
    CarafeAttrs none = {NULL, 0};
    TRY(cx->fns->attr(cx, carafe_str("factor"), &factor));
    TRY(cx->fns->attr(cx, carafe_str("steps"), &steps));
    if (steps.n != 3) return carafe_fail(carafe, CARAFE_INVALID, "three steps are expected");
    float by = (float)(factor.f + (double)steps.ints[2]);
    CarafeTensor scalar = {CARAFE_F32, 0, NULL, &by, sizeof by};
    TRY(cx->fns->input(cx, 0, &values[0]));
    TRY(cx->fns->constant(cx, &scalar, &values[1]));
    TRY(cx->fns->emit(cx, carafe_str("opset1::Multiply"), values, 2, none, &y));
    return cx->fns->set_output(cx, 0, y);
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    CarafeRule rule = {0};
    rule.size = sizeof rule;
    rule.abi = CARAFE_ABI_MAJOR;
    rule.framework = "mxnet";
    rule.op_type = "acme";
    rule.since = 1;
    rule.convert = acme;
    return r->fns->add_rule(r, &rule);
}
"#;

const IN_CPP: &str = r#"#include "carafe.hpp"
static void acme(carafe::Node &n) {
    auto steps = n.attr<std::vector<int64_t>>("steps").value();
    auto by = n.attr<double>("factor").value() + static_cast<double>(steps.at(2));
    auto factor = n.constant<float>({static_cast<float>(by)}, {});
    n.output(0, n.emit("opset1::Multiply", {n.input(0), factor}));
}
CARAFE_EXTENSION(r) { r.rule("mxnet", std::nullopt, "acme", acme); }
"#;

fn in_rust() -> Rule {
    let acme = |n: &mut NodeCx<'_>| {
        let x = n.input(0)?;
        let steps: Vec<i64> = n.required("steps")?;
        let factor = n.scalar_like(x, n.required::<f64>("factor")? + steps[2] as f64)?;
        Ok(RuleOutputs::from(n.emit(carafe::ops::arithmetic::Multiply::default(), &[x, factor])?))
    };
    Rule::new("acme", acme).framework("mxnet")
}

#[test]
fn a_custom_node_finds_the_rule_of_its_op_type_in_each_language() {
    let shop = Workshop::new();
    let cores = [carafe::core(), carafe::core(), carafe::core()];
    cores[0].add_extension(in_rust()).unwrap();
    cores[1].add_extension(shop.c("acme_c", IN_C)).unwrap();
    cores[2].add_extension(shop.cpp("acme_cpp", IN_CPP)).unwrap();
    for core in &cores {
        let model = read(core, CUSTOM).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(floats(&run(core, &model, &[1.0, 2.0, -4.0]).unwrap()), [6.5, 13.0, -26.0]);
    }
}

#[test]
fn a_custom_node_without_a_rule_is_named_by_its_op_type() {
    tells(read(&carafe::core(), CUSTOM), &["1 x `acme` of domain `Custom`", "node `y`", "op_type"]);
}

#[test]
fn an_operator_of_a_users_mxnet_is_mapped_to_one_of_ours() {
    let text = CUSTOM
        .replace(r#""op": "Custom""#, r#""op": "AcmeClip""#)
        .replace(r#""op_type": "acme", "factor": "2.5", "steps": "(1, 2, 4)""#, r#""low": "-1.5", "high": "1.5""#);
    tells(read(&carafe::core(), &text), &["1 x `AcmeClip`"]);
    let core = carafe::core();
    let mapping = Mapping::new("opset1::Clamp").framework("mxnet").from_type("AcmeClip");
    core.add_extension(mapping.attr("min", "low").attr("max", "high")).unwrap();
    let model = read(&core, &text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(floats(&run(&core, &model, &[1.0, 2.0, -4.0]).unwrap()), [1.0, 1.5, -1.5]);
}

#[test]
fn a_users_rule_stands_in_front_of_a_built_in_one_and_its_aliases() {
    let text = r#"{"nodes": [
        {"op": "null", "name": "x", "attrs": {"__shape__": "(3,)"}, "inputs": []},
        {"op": "relu", "name": "y", "inputs": [[0, 0, 0]]}
    ], "heads": [[1, 0, 0]]}"#;
    let core = carafe::core();
    let twice = |n: &mut NodeCx<'_>| {
        let x = n.input(0)?;
        let two = n.scalar_like(x, 2.0)?;
        Ok(RuleOutputs::from(n.emit(carafe::ops::arithmetic::Multiply::default(), &[x, two])?))
    };
    core.add_extension(Rule::new("relu", twice).framework("mxnet")).unwrap();
    core.add_extension(Rule::new("relu", |n: &mut NodeCx<'_>| Ok(n.input(0)?.into())).framework("caffe")).unwrap();
    let model = read(&core, text).unwrap();
    assert_eq!(floats(&run(&core, &model, &[1.0, 2.0, -4.0]).unwrap()), [2.0, 4.0, -8.0]);
}
