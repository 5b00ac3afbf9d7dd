//! Operations of one function: the same in C, C++ and Rust, for each float type, as evaluation and as kernel.

use crate::support::*;
use carafe::{Core, ElementType, Properties, Tensor};
use carafe_testkit::libraries::{Workshop, rust_library};

const IN_C: &str = r#"#include "carafe_elementwise.h"
#include <math.h>
static float swish(const double *n, float x) { return x / (1 + expf(-(float)n[0] * x)); }
static float shift(const double *n, float x) { return x * (float)n[0] + (float)n[1]; }
static const CarafeElementwise SWISH = {"SteepSwish", "acme", swish, {{"beta", 1.0}}};
static const CarafeElementwise SHIFT = {"Shift", "acme", shift, {{"by", 2.0}, {"plus", 1.0}}};
CARAFE_ELEMENTWISE(&SWISH, &SHIFT)
"#;

const IN_CPP: &str = r#"#include "carafe.hpp"
#include <cmath>
CARAFE_EXTENSION(r) {
    r.elementwise(carafe::Decl("SteepSwish", "acme").attr({"beta", 1.0}), [](const carafe::Attrs &a) {
        return [beta = a.get<float>("beta")](float x) { return x / (1 + std::exp(-beta * x)); };
    });
    r.elementwise(carafe::Decl("Shift", "acme").attr({"by", 2.0}).attr({"plus", 1.0}), [](const carafe::Attrs &a) {
        return [by = a.get<float>("by"), plus = a.get<float>("plus")](float x) { return x * by + plus; };
    });
}
"#;

fn in_all_languages(check: impl Fn(&str, &Core)) {
    let shop = Workshop::new();
    check("C", &core_with(&shop.c("elementwise_c", IN_C)));
    check("C++", &core_with(&shop.cpp("elementwise_cpp", IN_CPP)));
    check("Rust", &core_with(&rust_library("carafe_elementwise")));
}

fn on(core: &Core, device: &str, call: &str, ty: &str, x: &Tensor) -> Tensor {
    let n = x.len();
    let model = onnx(core, &format!("g ({ty}[{n}] x) => ({ty}[{n}] y) {{ y = {call} }}")).unwrap();
    let compiled = core.compile_model(&model, device, &Properties::new()).unwrap();
    let outputs = compiled.create_infer_request().infer(&[("x", x.clone())]).unwrap();
    outputs["y"].clone()
}

#[test]
fn one_function_serves_every_float_type_and_device() {
    let xs: Vec<f64> = (0..5000).map(|i| f64::from(i) / 500.0 - 5.0).collect();
    in_all_languages(|language, core| {
        let types = [
            ("float", ElementType::F32),
            ("double", ElementType::F64),
            ("float16", ElementType::F16),
            ("bfloat16", ElementType::Bf16),
        ];
        for (name, ty) in types {
            let x = Tensor::from_f64(ty, &[xs.len()], &xs).unwrap();
            let stored = x.to_vec::<f32>().unwrap().into_owned();
            let wanted: Vec<f32> = stored.iter().map(|x| x / (1.0 + (-2.0 * x).exp())).collect();
            let wanted = Tensor::from_numbers(ty, &[xs.len()], wanted).unwrap().to_vec::<f32>().unwrap().into_owned();
            for device in ["TEMPLATE", "CPU"] {
                let y = on(core, device, "acme.ai.SteepSwish<beta = 2.0>(x)", name, &x);
                assert_eq!(y.element_type(), ty);
                let y = y.to_vec::<f32>().unwrap();
                let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-2 * b.abs().max(1e-3);
                assert!(y.iter().zip(&wanted).all(near), "{language} {name} {device}");
            }
        }
    });
}

#[test]
fn attributes_have_their_defaults_and_zero_need_not_stay_zero() {
    in_all_languages(|language, core| {
        let x = Tensor::from_slice(&[2], &[0f32, 3.0]).unwrap();
        for device in ["TEMPLATE", "CPU"] {
            assert_eq!(floats(&on(core, device, "acme.ai.Shift(x)", "float", &x)), [1.0, 7.0], "{language} {device}");
            let y = on(core, device, "acme.ai.Shift<by = 3.0>(x)", "float", &x);
            assert_eq!(floats(&y), [1.0, 10.0], "{language} {device}");
        }
    });
}

#[test]
fn whole_numbers_are_refused() {
    in_all_languages(|_, core| {
        let e = onnx(core, "g (int64[2] x) => (int64[2] y) { y = acme.ai.Shift(x) }").unwrap_err().to_string();
        assert!(e.contains("node `y`") && e.contains("must be"), "{e}");
    });
}
