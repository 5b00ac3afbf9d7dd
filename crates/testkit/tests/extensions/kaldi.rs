//! Components of Kaldi models by extensions: fields are attributes, arrays are inputs on ports of their names. A rule in each
//! language reads both, out of text and out of binary.

use crate::support::*;
use carafe::{Core, Mapping, Model, NodeCx, Properties, Result, Rule, RuleOutputs, SharedBytes, Tensor};
use carafe_testkit::libraries::Workshop;

// A component with a number, a switch, whole numbers and a vector, behind one of ours.
const TEXT: &str = "<Nnet3> 
input-node name=input dim=3
component-node name=a component=a input=input
component-node name=mine component=mine input=Append(a, IfDefined(Offset(mine, -1)))
output-node name=output input=mine

<NumComponents> 2
<ComponentName> a <NoOpComponent> <Dim> 3 <BackpropScale> 1 </NoOpComponent>
<ComponentName> mine <AcmeComponent> <OutputDim> 3 <Factor> 2.5 <IsBig> T <Shift> [ 1 2 3 ] </AcmeComponent>
</Nnet3> ";

fn binary() -> Vec<u8> {
    let mut out = b"\0B".to_vec();
    let lines = TEXT.find("<NumComponents>").unwrap();
    out.extend_from_slice(&TEXT.as_bytes()[..lines]);
    out.extend_from_slice(b"<NumComponents> \x04\x02\0\0\0<ComponentName> a <NoOpComponent> <Dim> \x04\x03\0\0\0<BackpropScale> \x04\0\0\x80\x3f");
    out.extend_from_slice(
        b"</NoOpComponent> <ComponentName> mine <AcmeComponent> <OutputDim> \x04\x03\0\0\0<Factor> \x04\0\0\x20\x40",
    );
    out.extend_from_slice(
        b"<IsBig> T<Shift> FV \x04\x03\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40</AcmeComponent> </Nnet3> ",
    );
    out
}

fn read(core: &Core, bytes: &[u8]) -> Result<Model> {
    core.read_model_from(SharedBytes::from_vec(bytes.to_vec()), None)
}

fn frame(core: &Core, model: &Model, x: &[f32]) -> Vec<f32> {
    let compiled = core.compile_model(model, "CPU", &Properties::new()).unwrap();
    let outputs = compiled.create_infer_request().infer(Tensor::from_slice(&[1, x.len()], x).unwrap()).unwrap();
    outputs[0].to_vec::<f32>().unwrap().into_owned()
}

// The first three columns times the factor, and the shift.
const IN_C: &str = r#"#include "carafe.h"
CARAFE_LIBRARY
#define TRY(call) do { CarafeStatus s_ = (call); if (s_ != CARAFE_OK) return s_; } while (0)
static CarafeStatus ints(CarafeNode *cx, int64_t value, CarafeValue *out) {
    size_t one = 1;
    CarafeTensor t = {CARAFE_I64, 1, &one, &value, sizeof value};
    return cx->fns->constant(cx, &t, out);
}
static CarafeStatus mine(void *user, CarafeNode *cx) {
    (void)user;
    CarafeAttr factor, big;
    CarafeValue slice[5], values[2], y;
    CarafeAttrs none = {NULL, 0};
    TRY(cx->fns->attr(cx, carafe_str("Factor"), &factor));
    TRY(cx->fns->attr(cx, carafe_str("IsBig"), &big));
    if (cx->fns->n_inputs_named(cx, carafe_str("Shift")) != 1) return carafe_fail(carafe, CARAFE_INVALID, "one shift is expected");
    TRY(cx->fns->input_named(cx, carafe_str("input"), 0, &slice[0]));
    TRY(ints(cx, 0, &slice[1]));
    TRY(ints(cx, 3, &slice[2]));
    TRY(ints(cx, 1, &slice[3]));
    TRY(ints(cx, 1, &slice[4]));
    TRY(cx->fns->emit(cx, carafe_str("opset8::Slice"), slice, 5, none, &values[0]));
    float by = (float)factor.f;
    CarafeTensor scalar = {CARAFE_F32, 0, NULL, &by, sizeof by};
    TRY(cx->fns->constant(cx, &scalar, &values[1]));
    TRY(cx->fns->emit(cx, carafe_str("opset1::Multiply"), values, 2, none, &values[0]));
    TRY(cx->fns->input_named(cx, carafe_str("Shift"), 0, &values[1]));
    TRY(cx->fns->emit(cx, carafe_str("opset1::Add"), values, 2, none, &y));
    return cx->fns->set_output(cx, 0, y);
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    CarafeRule rule = {0};
    rule.size = sizeof rule;
    rule.abi = CARAFE_ABI_MAJOR;
    rule.framework = "kaldi";
    rule.op_type = "AcmeComponent";
    rule.since = 1;
    rule.convert = mine;
    return r->fns->add_rule(r, &rule);
}
"#;

const IN_CPP: &str = r#"#include "carafe.hpp"
static void mine(carafe::Node &n) {
    auto at = [&](int64_t i) { return n.constant<int64_t>({i}, {1}); };
    auto x = n.emit("opset8::Slice", {n.inputs_named("input").at(0), at(0), at(3), at(1), at(1)});
    auto factor = n.constant<float>({static_cast<float>(n.attr<double>("Factor").value())}, {});
    (void)n.attr<bool>("IsBig").value();
    x = n.emit("opset1::Multiply", {x, factor});
    n.output(0, n.emit("opset1::Add", {x, n.inputs_named("Shift").at(0)}));
}
CARAFE_EXTENSION(r) { r.rule("kaldi", std::nullopt, "AcmeComponent", mine); }
"#;

fn in_rust() -> Rule {
    let mine = |n: &mut NodeCx<'_>| {
        use carafe::frontend::Compose;
        assert!(n.required::<bool>("IsBig")?);
        let (x, shift) = (n.inputs_named("input")?[0], n.inputs_named("Shift")?[0]);
        let x = n.part(x, 0, 3, 1)?;
        let x = n.times_number(x, n.required("Factor")?)?;
        Ok(RuleOutputs::from(n.plus(x, shift)?))
    };
    Rule::new("AcmeComponent", mine).framework("kaldi")
}

#[test]
fn a_rule_in_each_language_reads_fields_and_arrays_of_a_component() {
    let shop = Workshop::new();
    let cores = [carafe::core(), carafe::core(), carafe::core()];
    cores[0].add_extension(in_rust()).unwrap();
    cores[1].add_extension(shop.c("mine_c", IN_C)).unwrap();
    cores[2].add_extension(shop.cpp("mine_cpp", IN_CPP)).unwrap();
    for core in &cores {
        for bytes in [TEXT.as_bytes(), &binary()] {
            let model = read(core, bytes).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(frame(core, &model, &[1.0, 2.0, -4.0]), [3.5, 7.0, -7.0]);
        }
    }
}

#[test]
fn a_component_maps_to_one_operation_by_its_arrays() {
    let core = carafe::core();
    core.add_extension(Mapping::new("PRelu").from_type("AcmeRelu").framework("kaldi")).unwrap();
    let chain = "<Nnet> <AcmeRelu> 2 2 <!EndOfComponent> </Nnet>".replace("2 2", "2 2 [ 0.5 0.25 ]");
    // Sizes of nnet1 are attributes of every component, which the operation does not take.
    let model = read(&core, chain.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(frame(&core, &model, &[-2.0, -4.0]), [-1.0, -1.0]);
}

#[test]
fn a_users_rule_stands_in_front_of_a_built_in_one() {
    let core = carafe::core();
    let twice = |n: &mut NodeCx<'_>| {
        let x = n.input(0)?;
        Ok(RuleOutputs::from(n.emit(carafe::ops::arithmetic::Add::default(), &[x, x])?))
    };
    core.add_extension(Rule::new("Sigmoid", twice).framework("kaldi")).unwrap();
    let model = read(&core, b"<Nnet> <Sigmoid> 2 2 <!EndOfComponent> </Nnet>").unwrap();
    assert_eq!(frame(&core, &model, &[1.0, 2.0]), [2.0, 4.0]);
}

#[test]
fn a_component_without_a_rule_is_named() {
    tells(read(&carafe::core(), TEXT.as_bytes()), &["AcmeComponent", "mine"]);
}
