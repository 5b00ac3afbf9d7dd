//! Custom operators of TFLite files by extensions: rules in each language read options out of the flexbuffer by their names.
//! `scripts/fixtures/tflite_file_cases.py` wrote the file: `AcmeScale` with `factor` 2.5, `steps` [1, 2, 4], `label`, `flag`
//! and `inner.deep` 7.

use crate::support::*;
use carafe::{Core, Model, NodeCx, Result, Rule, RuleOutputs, SharedBytes};
use carafe_testkit::libraries::Workshop;

const FILE: &[u8] = include_bytes!("../../../fe-tflite/tests/fixtures/custom.tflite");

fn read(core: &Core) -> Result<Model> {
    core.read_model_from(SharedBytes::from_vec(FILE.to_vec()), None)
}

// x * (factor + the last step + inner.deep).
const IN_C: &str = r#"#include "carafe.h"
CARAFE_LIBRARY
#define TRY(call) do { CarafeStatus s_ = (call); if (s_ != CARAFE_OK) return s_; } while (0)
static CarafeStatus scale(void *user, CarafeNode *cx) {
    (void)user;
    CarafeAttr factor, steps, deep;
    CarafeValue values[2], y;
    CarafeAttrs none = {NULL, 0};
    TRY(cx->fns->attr(cx, carafe_str("factor"), &factor));
    TRY(cx->fns->attr(cx, carafe_str("steps"), &steps));
    TRY(cx->fns->attr(cx, carafe_str("inner.deep"), &deep));
    if (steps.n != 3) return carafe_fail(carafe, CARAFE_INVALID, "three steps are expected");
    float by = (float)(factor.f + (double)steps.ints[2] + (double)deep.i);
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
    rule.framework = "tflite";
    rule.op_type = "AcmeScale";
    rule.since = 1;
    rule.convert = scale;
    return r->fns->add_rule(r, &rule);
}
"#;

const IN_CPP: &str = r#"#include "carafe.hpp"
static void scale(carafe::Node &n) {
    auto steps = n.attr<std::vector<int64_t>>("steps").value();
    auto by = n.attr<double>("factor").value() + static_cast<double>(steps.at(2)) +
              static_cast<double>(n.attr<int64_t>("inner.deep").value());
    auto factor = n.constant<float>({static_cast<float>(by)}, {});
    n.output(0, n.emit("opset1::Multiply", {n.input(0), factor}));
}
CARAFE_EXTENSION(r) { r.rule("tflite", std::nullopt, "AcmeScale", scale); }
"#;

fn in_rust() -> Rule {
    let scale = |n: &mut NodeCx<'_>| {
        let x = n.input(0)?;
        let steps: Vec<i64> = n.required("steps")?;
        let by = n.required::<f64>("factor")? + steps[2] as f64 + n.required::<i64>("inner.deep")? as f64;
        let factor = n.scalar_like(x, by)?;
        Ok(RuleOutputs::from(n.emit(carafe::ops::arithmetic::Multiply::default(), &[x, factor])?))
    };
    Rule::new("AcmeScale", scale).framework("tflite")
}

#[test]
fn a_rule_in_each_language_reads_options_of_a_flexbuffer() {
    let shop = Workshop::new();
    let cores = [carafe::core(), carafe::core(), carafe::core()];
    cores[0].add_extension(in_rust()).unwrap();
    cores[1].add_extension(shop.c("scale_c", IN_C)).unwrap();
    cores[2].add_extension(shop.cpp("scale_cpp", IN_CPP)).unwrap();
    for core in &cores {
        let model = read(core).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(floats(&run(core, &model, &[1.0, 2.0, -4.0]).unwrap()), [13.5, 27.0, -54.0]);
    }
}

#[test]
fn a_custom_operator_without_a_rule_is_named() {
    tells(read(&carafe::core()), &["AcmeScale"]);
}
