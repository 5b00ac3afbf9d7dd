//! Operators of Paddle by extensions: rules and mappings in each language take values by the names of slots, several of one slot too.
//! The file holds `acme_mix` of `X` (`a` and `b`) and `Y` (`a`), with `factor` 2.5, to `Out`.

use crate::support::*;
use carafe::{Core, Mapping, Model, NodeCx, Result, Rule, RuleOutputs, SharedBytes, Tensor};
use carafe_testkit::libraries::Workshop;

const FILE: &[u8] = include_bytes!("../../../fe-paddle/tests/fixtures/custom.pdmodel");

fn read(core: &Core) -> Result<Model> {
    core.read_model_from(SharedBytes::from_vec(FILE.to_vec()), None)
}

fn mixed(core: &Core) -> Vec<f32> {
    let model = read(core).unwrap_or_else(|e| panic!("{e}"));
    let request = core.compile_model(&model, "CPU", &carafe::Properties::new()).unwrap().create_infer_request();
    for (i, values) in [[1f32, 2.0, -4.0], [10.0, 20.0, 30.0]].into_iter().enumerate() {
        request.set_input(i, Tensor::from_slice(&[3], &values).unwrap()).unwrap();
    }
    request.infer(()).unwrap();
    floats(&request.output(0).unwrap())
}

// The second of X times the factor, plus Y.
const WANTED: [f32; 3] = [26.0, 52.0, 71.0];

const IN_C: &str = r#"#include "carafe.h"
CARAFE_LIBRARY
#define TRY(call) do { CarafeStatus s_ = (call); if (s_ != CARAFE_OK) return s_; } while (0)
static CarafeStatus mix(void *user, CarafeNode *cx) {
    (void)user;
    CarafeAttr factor;
    CarafeValue values[2], y;
    CarafeAttrs none = {NULL, 0};
    TRY(cx->fns->attr(cx, carafe_str("factor"), &factor));
    if (cx->fns->n_inputs_named(cx, carafe_str("X")) != 2) return carafe_fail(carafe, CARAFE_INVALID, "two values are expected");
    float by = (float)factor.f;
    CarafeTensor scalar = {CARAFE_F32, 0, NULL, &by, sizeof by};
    TRY(cx->fns->input_named(cx, carafe_str("X"), 1, &values[0]));
    TRY(cx->fns->constant(cx, &scalar, &values[1]));
    TRY(cx->fns->emit(cx, carafe_str("opset1::Multiply"), values, 2, none, &y));
    values[0] = y;
    TRY(cx->fns->input_named(cx, carafe_str("Y"), 0, &values[1]));
    TRY(cx->fns->emit(cx, carafe_str("opset1::Add"), values, 2, none, &y));
    return cx->fns->set_output(cx, 0, y);
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    CarafeRule rule = {0};
    rule.size = sizeof rule;
    rule.abi = CARAFE_ABI_MAJOR;
    rule.framework = "paddle";
    rule.op_type = "acme_mix";
    rule.convert = mix;
    return r->fns->add_rule(r, &rule);
}
"#;

const IN_CPP: &str = r#"#include "carafe.hpp"
static void mix(carafe::Node &n) {
    auto factor = n.constant<float>({static_cast<float>(n.attr<double>("factor").value())}, {});
    auto scaled = n.emit("opset1::Multiply", {n.inputs_named("X").at(1), factor});
    n.output(0, n.emit("opset1::Add", {scaled, n.inputs_named("Y").at(0)}));
}
CARAFE_EXTENSION(r) { r.rule("paddle", std::nullopt, "acme_mix", mix); }
"#;

fn in_rust() -> Rule {
    let mix = |n: &mut NodeCx<'_>| {
        let (x, y) = (n.inputs_named("X")?[1], n.inputs_named("Y")?[0]);
        let factor = n.scalar_like(x, n.required("factor")?)?;
        let scaled = n.emit(carafe::ops::arithmetic::Multiply::default(), &[x, factor])?;
        let out = n.emit(carafe::ops::arithmetic::Add::default(), &[scaled, y])?;
        n.by_output_names([("Out", out)].into_iter()).map(|o: RuleOutputs| o)
    };
    Rule::new("acme_mix", mix).framework("paddle")
}

#[test]
fn a_rule_in_each_language_takes_values_by_slots() {
    let shop = Workshop::new();
    let cores = [carafe::core(), carafe::core(), carafe::core()];
    cores[0].add_extension(in_rust()).unwrap();
    cores[1].add_extension(shop.c("mix_c", IN_C)).unwrap();
    cores[2].add_extension(shop.cpp("mix_cpp", IN_CPP)).unwrap();
    for core in &cores {
        assert_eq!(mixed(core), WANTED);
    }
}

#[test]
fn a_mapping_takes_the_slots_that_it_names() {
    let core = carafe::core();
    let mapping = Mapping {
        input_names: vec!["Y".into()],
        output_names: vec!["Out".into()],
        ..Mapping::new("opset1::Negative").framework("paddle").from_type("acme_mix")
    };
    core.add_extension(mapping).unwrap();
    assert_eq!(mixed(&core), [-1.0, -2.0, 4.0]);
}

#[test]
fn an_operator_without_a_rule_is_named() {
    tells(read(&carafe::core()), &["acme_mix"]);
}

#[test]
fn a_rule_for_another_format_does_not_serve() {
    let core = carafe::core();
    core.add_extension(in_rust().framework("onnx")).unwrap();
    tells(read(&core), &["acme_mix"]);
}
