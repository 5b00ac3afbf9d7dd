//! Depthwise and pointwise convolutions in one step, against the operations' own evaluation.

use crate::nets::{Numbers, assert_like_eval, compile, conv, weights};
use carafe_device::Properties;
use carafe_graph::{Model, Value};
use carafe_ops::activation::{Clamp, Gelu, HSwish, Relu, gelu::GeluApproximation};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::convolution::GroupConvolution;
use carafe_ops::convolution::window::PadType;
use carafe_tensor::{ElementType, PartialShape};

#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    Bias,
    HSwish,
    Gelu,
}

fn block(size: [usize; 2], channels: [usize; 2], kernel: usize, stride: i64, between: Between) -> Model {
    let mut m = Model::new("block");
    let n = &mut Numbers(3);
    let c = channels[0];
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2, c, size[0], size[1]])).unwrap();
    let w = weights(&mut m, n, &[c, 1, 1, kernel, kernel]);
    let pad = (kernel / 2) as i64;
    let op = GroupConvolution {
        strides: vec![stride; 2],
        pads_begin: vec![pad; 2],
        pads_end: vec![pad; 2],
        dilations: vec![1; 2],
        auto_pad: PadType::Explicit,
    };
    let mut y: Value = m.add("depthwise", op, &[x, w]).unwrap().into();
    if !matches!(between, Between::Nothing) {
        let bias = weights(&mut m, n, &[1, c, 1, 1]);
        y = m.add("bias", Add::default(), &[y, bias]).unwrap().into();
    }
    y = match between {
        Between::Bias => m.add("clamp", Clamp { min: 0.0, max: 0.7 }, &[y]).unwrap().into(),
        Between::HSwish => m.add("hswish", HSwish, &[y]).unwrap().into(),
        Between::Gelu => m.add("gelu", Gelu { approximation_mode: GeluApproximation::Erf }, &[y]).unwrap().into(),
        Between::Nothing => y,
    };
    y = conv(&mut m, n, y, channels, 1, 1);
    let bias = weights(&mut m, n, &[1, channels[1], 1, 1]);
    y = m.add("bias2", Add::default(), &[y, bias]).unwrap().into();
    let factor = weights(&mut m, n, &[1, channels[1], 1, 1]);
    y = m.add("factor", Multiply::default(), &[y, factor]).unwrap().into();
    let y = m.add("relu", Relu, &[y]).unwrap();
    m.result("y", y.into()).unwrap();
    m
}

fn kernels(model: &Model, input: carafe_tensor::Tensor) -> Vec<String> {
    let compiled = compile(model, &Properties::new().with("PERF_COUNT", "YES"));
    let mut request = compiled.create_request();
    request.set_input(0, input).unwrap();
    request.infer().unwrap();
    request.profile().into_iter().map(|p| p.kernel).filter(|k| k.contains("conv")).collect()
}

#[test]
fn large_ones_are_one_step_with_the_same_numbers() {
    for (size, channels, kernel, stride, between) in [
        ([131, 127], [33, 7], 3, 1, Between::Bias),
        ([251, 260], [37, 48], 3, 2, Between::Nothing),
        ([90, 101], [48, 17], 5, 1, Between::HSwish),
    ] {
        let model = block(size, channels, kernel, stride, between);
        let input = Numbers(8).tensor(&[2, channels[0], size[0], size[1]]);
        assert_like_eval(&model, std::slice::from_ref(&input), 1e-4);
        let found = kernels(&model, input);
        assert!(found.len() == 1 && found[0].contains("conv_depthwise"), "{found:?}");
    }
}

#[test]
fn small_ones_and_other_functions_are_two_steps() {
    for (size, between) in [([20, 20], Between::Bias), ([131, 127], Between::Gelu)] {
        let model = block(size, [33, 7], 3, 1, between);
        let input = Numbers(8).tensor(&[2, 33, size[0], size[1]]);
        assert_like_eval(&model, std::slice::from_ref(&input), 1e-4);
        assert_eq!(kernels(&model, input).len(), 2);
    }
}
