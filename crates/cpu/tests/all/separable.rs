//! Depthwise and pointwise convolutions in one step, against the operations' own evaluation.

use crate::nets::{Numbers, assert_like_eval, compile, conv, grouped, weights};
use carafe_device::Properties;
use carafe_graph::{Model, Value};
use carafe_ops::activation::{Clamp, Gelu, HSwish, Relu, gelu::GeluApproximation};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::pooling::MaxPool;
use carafe_tensor::{ElementType, PartialShape};

/// Which pointwise convolutions stand around the depthwise one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Around {
    Before,
    Behind,
    Both,
}

#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    Bias,
    HSwish,
    Gelu,
}

/// Channels of the input where a pointwise convolution makes those of the depthwise one.
const FEW: usize = 6;

fn ins(channels: usize, around: Around) -> usize {
    if around == Around::Behind { channels } else { FEW }
}

fn block(
    size: [usize; 2],
    channels: [usize; 2],
    kernel: usize,
    stride: i64,
    between: Between,
    around: Around,
) -> Model {
    let mut m = Model::new("block");
    let n = &mut Numbers(3);
    let c = channels[0];
    let shape = PartialShape::of(&[2, ins(c, around), size[0], size[1]]);
    let mut x = m.parameter("x", ElementType::F32, shape).unwrap();
    if around != Around::Behind {
        x = conv(&mut m, n, x, [FEW, c], 1, 1);
        let bias = weights(&mut m, n, &[1, c, 1, 1]);
        x = m.add("bias0", Add::default(), &[x, bias]).unwrap().into();
        x = m.add("relu0", Relu, &[x]).unwrap().into();
    }
    let w = weights(&mut m, n, &[c, 1, 1, kernel, kernel]);
    let mut y: Value = m.add("depthwise", grouped(&[kernel as i64; 2], stride), &[x, w]).unwrap().into();
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
    if around == Around::Before {
        m.result("y", y).unwrap();
        return m;
    }
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
    request.profile().into_iter().map(|p| p.kernel).filter(|k| k.starts_with("conv")).collect()
}

type Case = ([usize; 2], [usize; 2], usize, i64, Between);

const LARGE: [Case; 4] = [
    ([131, 127], [33, 7], 3, 1, Between::Bias),
    ([251, 260], [37, 48], 3, 2, Between::Nothing),
    ([90, 101], [48, 17], 5, 1, Between::HSwish),
    ([131, 127], [33, 7], 3, 1, Between::Gelu),
];

fn is_one_step(around: Around) {
    for (size, channels, kernel, stride, between) in LARGE {
        let model = block(size, channels, kernel, stride, between, around);
        let input = Numbers(8).tensor(&[2, ins(channels[0], around), size[0], size[1]]);
        assert_like_eval(&model, std::slice::from_ref(&input), 1e-4);
        let found = kernels(&model, input);
        assert!(found.len() == 1 && found[0].contains("conv_depthwise"), "{around:?}: {found:?}");
    }
}

#[test]
fn a_large_depthwise_convolution_and_the_pointwise_one_behind_are_one_step() {
    is_one_step(Around::Behind);
}

#[test]
fn a_large_depthwise_convolution_and_the_pointwise_one_before_are_one_step() {
    is_one_step(Around::Before);
}

#[test]
fn pointwise_ones_on_both_sides_are_one_step_too() {
    is_one_step(Around::Both);
}

#[test]
fn small_ones_are_steps_of_their_own() {
    for (around, steps) in [(Around::Behind, 2), (Around::Before, 2), (Around::Both, 3)] {
        let model = block([20, 20], [33, 7], 3, 1, Between::Bias, around);
        let input = Numbers(8).tensor(&[2, ins(33, around), 20, 20]);
        assert_like_eval(&model, std::slice::from_ref(&input), 1e-4);
        assert_eq!(kernels(&model, input).len(), steps);
    }
}

#[test]
fn a_chain_of_pairs_is_a_step_for_each_pair() {
    let mut m = Model::new("chain");
    let n = &mut Numbers(5);
    let mut y = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 32, 160, 160])).unwrap();
    for name in ["a", "b"] {
        let w = weights(&mut m, n, &[32, 1, 1, 3, 3]);
        y = m.add(name, grouped(&[3, 3], 1), &[y, w]).unwrap().into();
        y = conv(&mut m, n, y, [32, 32], 1, 1);
    }
    m.result("y", y).unwrap();
    let input = Numbers(8).tensor(&[1, 32, 160, 160]);
    assert_like_eval(&m, std::slice::from_ref(&input), 1e-4);
    let found = kernels(&m, input);
    assert!(found.len() == 2 && found.iter().all(|k| k.contains("depthwise") && k.contains("gemm")), "{found:?}");
}

/// A depthwise convolution, with a pointwise one before it or not, and a pool of this window and these steps behind it.
fn pooled(
    size: [usize; 2],
    before: bool,
    window: [i64; 2],
    strides: [i64; 2],
    pad: i64,
) -> (Model, carafe_tensor::Tensor) {
    let (mut m, n, c) = (Model::new("pooled"), &mut Numbers(6), 33);
    let ins = if before { FEW } else { c };
    let shape = [2, ins, size[0], size[1]];
    let mut x = m.parameter("x", ElementType::F32, PartialShape::of(&shape)).unwrap();
    if before {
        x = conv(&mut m, n, x, [FEW, c], 1, 1);
    }
    let w = weights(&mut m, n, &[c, 1, 1, 3, 3]);
    let y = m.add("depthwise", grouped(&[3, 3], 1), &[x, w]).unwrap();
    let y = m.add("relu", Relu, &[y.into()]).unwrap();
    let op = MaxPool {
        strides: strides.to_vec(),
        dilations: vec![1; 2],
        pads_begin: vec![pad; 2],
        pads_end: vec![pad; 2],
        kernel: window.to_vec(),
        rounding_type: Rounding::Floor,
        auto_pad: PadType::Explicit,
        index_element_type: ElementType::I64,
        axis: 0,
    };
    let y = m.add("pool", op, &[y.into()]).unwrap();
    m.result("y", y.into()).unwrap();
    let input = Numbers(8).tensor(&shape);
    (m, input)
}

#[test]
fn a_pool_whose_windows_touch_is_one_step_with_the_convolution_before() {
    for (size, window) in [([131, 127], [2, 2]), ([140, 120], [3, 2])] {
        for before in [false, true] {
            let (model, input) = pooled(size, before, window, window, 0);
            assert_like_eval(&model, std::slice::from_ref(&input), 1e-4);
            let found = kernels(&model, input);
            assert!(found.len() == 1 && found[0].ends_with("pool_max"), "{before}: {found:?}");
        }
    }
}

#[test]
fn a_pool_whose_windows_overlap_or_are_padded_is_a_step_of_its_own() {
    for (window, strides, pad) in [([3, 3], [2, 2], 0), ([2, 2], [2, 2], 1), ([2, 2], [3, 3], 0)] {
        let (model, input) = pooled([131, 127], true, window, strides, pad);
        assert_like_eval(&model, std::slice::from_ref(&input), 1e-4);
        let found = kernels(&model, input);
        assert!(found.iter().all(|k| !k.contains("pool")), "{window:?} {strides:?} {pad}: {found:?}");
    }
}
