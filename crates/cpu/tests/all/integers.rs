//! Quantized networks: what runs on integers agrees with the operations themselves, up to a step of the last grid where a sum
//! falls just between two.

use crate::nets::{Numbers, compile, convolution, grouped, ints};
use carafe_cpu::CpuDevice;
use carafe_device::{CompiledModel, Device, Properties};
use carafe_graph::{Model, Value};
use carafe_kernels::Isa;
use carafe_ops::activation::{Clamp, Relu, Swish};
use carafe_ops::arithmetic::{Add, Divide, Multiply, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::convolution::ConvolutionBackpropData;
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::linear::MatMul;
use carafe_ops::math::Round;
use carafe_ops::math::round::RoundMode;
use carafe_ops::movement::{Concat, Reshape};
use carafe_ops::pooling::MaxPool;
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::{ElementType, PartialShape, SharedBytes, Tensor};
use std::sync::Arc;

/// How quantization stands in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Style {
    /// Divide, Round, Add, Clamp, Subtract, Multiply.
    Pair,
    /// FakeQuantize on data and on weights.
    Fake,
}

pub(crate) fn constant(m: &mut Model, t: Tensor) -> Value {
    m.constant(&format!("c{}", m.len()), t).unwrap()
}
pub(crate) fn number(m: &mut Model, v: f32) -> Value {
    constant(m, Tensor::scalar(v))
}
pub(crate) fn add<O: carafe_graph::Op>(m: &mut Model, op: O, inputs: &[Value]) -> Value {
    m.add(format!("n{}", m.len()), op, inputs).unwrap().into()
}
pub(crate) fn fake(levels: u64) -> FakeQuantize {
    FakeQuantize { levels, auto_broadcast: Default::default(), auto_broadcast_axis: None }
}

/// Rounds to steps of `scale`; zero is step `zero` of 0 to 255.
pub(crate) fn rounded(m: &mut Model, x: Value, style: Style, scale: f32, zero: f32) -> Value {
    let (low, high) = (number(m, -zero * scale), number(m, (255.0 - zero) * scale));
    if style == Style::Fake {
        return add(m, fake(256), &[x, low, high, low, high]);
    }
    let (s, z) = (number(m, scale), number(m, zero));
    let y = add(m, Divide::default(), &[x, s]);
    let y = add(m, Round { mode: RoundMode::HalfToEven }, &[y]);
    let y = add(m, Add::default(), &[y, z]);
    let y = add(m, Clamp { min: 0.0, max: 255.0 }, &[y]);
    let y = add(m, Subtract::default(), &[y, z]);
    add(m, Multiply::default(), &[y, s])
}

/// Weights stored as integers with a scale for each position of `axis`.
pub(crate) fn weights(m: &mut Model, n: &mut Numbers, style: Style, shape: &[usize], axis: usize) -> Value {
    let count: usize = shape.iter().product();
    let each = (count / shape[axis]) as f32;
    let mut along = vec![1; shape.len()];
    along[axis] = shape[axis];
    let scales: Vec<f32> = (0..shape[axis]).map(|_| (1.5 + n.float()) / (100.0 * each.sqrt())).collect();
    if style == Style::Fake {
        let floats = n.tensor(shape);
        let scaled = floats.as_slice::<f32>().unwrap().iter().map(|x| x / each.sqrt()).collect::<Vec<_>>();
        let w = constant(m, Tensor::from_vec(shape, scaled).unwrap());
        let limit = |sign: f32| scales.iter().map(|s| sign * s * 127.0).collect::<Vec<_>>();
        let low = constant(m, Tensor::from_vec(&along, limit(-1.0)).unwrap());
        let high = constant(m, Tensor::from_vec(&along, limit(1.0)).unwrap());
        return add(m, fake(255), &[w, low, high, low, high]);
    }
    let integers: Vec<i8> = (0..count).map(|_| (n.float() * 127.0) as i8).collect();
    let w = constant(m, Tensor::from_vec(shape, integers).unwrap());
    let w = add(m, Convert { destination_type: ElementType::F32 }, &[w]);
    let s = constant(m, Tensor::from_vec(&along, scales).unwrap());
    add(m, Multiply::default(), &[w, s])
}

pub(crate) fn bias(m: &mut Model, n: &mut Numbers, x: Value, shape: &[usize]) -> Value {
    let b = n.tensor(shape);
    let b = constant(m, b);
    add(m, Add::default(), &[x, b])
}

pub(crate) fn input(m: &mut Model, shape: &[usize]) -> Value {
    m.parameter(&format!("x{}", m.len()), ElementType::F32, PartialShape::of(shape)).unwrap()
}

/// The kernels that ran, after the outputs were compared: one in fifty elements may be a step away.
pub(crate) fn check(m: &Model, inputs: &[Tensor], step: f32) -> Vec<String> {
    let wanted = m.evaluate(inputs).unwrap();
    let mut kernels = vec![];
    for threads in [1, 3] {
        let properties = Properties::new().with("PERF_COUNT", "YES").with("INFERENCE_NUM_THREADS", threads);
        let mut request = compile(m, &properties).create_request();
        inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).unwrap());
        request.infer().unwrap();
        for (k, wanted) in wanted.iter().enumerate() {
            compare(&request.output(k).unwrap().clone(), wanted, step);
        }
        kernels = request.profile().into_iter().map(|p| p.kernel).collect();
    }
    kernels.retain(|k| k != "none" && !k.starts_with("fused"));
    kernels
}

fn compare(found: &Tensor, wanted: &Tensor, step: f32) {
    let (a, b) = (found.to_vec::<f32>().unwrap(), wanted.to_vec::<f32>().unwrap());
    let far = a.iter().zip(b.iter()).filter(|(a, b)| (*a - *b).abs() > 1e-4).count();
    assert!(a.iter().zip(b.iter()).all(|(a, b)| (a - b).abs() <= 1.01 * step), "{a:?} {b:?}");
    assert!(far * 50 <= a.len() + 49, "{far} of {} elements are a step away", a.len());
}

/// Whether a kernel computed with integers, on machines that do so faster.
pub(crate) fn has_integers(kernels: &[String], what: &str) {
    if carafe_kernels::Numbers::U8I8.is_fast(Isa::best()) {
        assert!(kernels.iter().any(|k| k.starts_with(what) && k.contains("_i8")), "{kernels:?}");
    }
}

#[test]
fn convolutions_with_bias_activation_and_the_next_grid() {
    let n = &mut Numbers(3);
    for style in [Style::Pair, Style::Fake] {
        for (kernel, stride, channels, groups) in
            [(1, 1, [8, 20], 1), (3, 1, [16, 33], 1), (3, 2, [4, 8], 1), (5, 1, [16, 40], 2), (1, 2, [12, 16], 1)]
        {
            for zero in [0.0, 77.0, 128.0] {
                let mut m = Model::new("m");
                let x = input(&mut m, &[2, channels[0], 9, 11]);
                let mut y = rounded(&mut m, x, style, 0.011, zero);
                let k = kernel as usize;
                y = if groups == 1 {
                    let w = weights(&mut m, n, style, &[channels[1], channels[0], k, k], 0);
                    add(&mut m, convolution(&[kernel, kernel], stride), &[y, w])
                } else {
                    let w = weights(&mut m, n, style, &[channels[1], channels[0] / groups, k, k], 0);
                    let shape = [groups, channels[1] / groups, channels[0] / groups, k, k].map(|n| n as i64);
                    let shape = ints(&mut m, &shape);
                    let w = add(&mut m, Reshape { special_zero: false }, &[w, shape]);
                    add(&mut m, grouped(&[kernel, kernel], stride), &[y, w])
                };
                y = bias(&mut m, n, y, &[1, channels[1], 1, 1]);
                y = add(&mut m, Relu, &[y]);
                y = rounded(&mut m, y, style, 0.02, zero / 2.0);
                m.result("y", y).unwrap();
                let kernels = check(&m, &[n.tensor(&[2, channels[0], 9, 11])], 0.02);
                has_integers(&kernels, "conv_");
            }
        }
    }
}

#[test]
fn transposed_convolutions_whose_windows_touch_multiply_integers() {
    let n = &mut Numbers(13);
    for style in [Style::Pair, Style::Fake] {
        for (kernel, zero) in [([2usize, 2], 77.0), ([3, 2], 128.0), ([2, 2], 0.0)] {
            let mut m = Model::new("m");
            let x = input(&mut m, &[2, 12, 7, 9]);
            let y = rounded(&mut m, x, style, 0.011, zero);
            let w = weights(&mut m, n, style, &[12, 10, kernel[0], kernel[1]], 1);
            let op = ConvolutionBackpropData {
                strides: kernel.map(|k| k as i64).to_vec(),
                pads_begin: vec![0; 2],
                pads_end: vec![0; 2],
                dilations: vec![1; 2],
                auto_pad: PadType::Explicit,
                output_padding: vec![0; 2],
            };
            let y = add(&mut m, op, &[y, w]);
            let y = bias(&mut m, n, y, &[1, 10, 1, 1]);
            let y = add(&mut m, Relu, &[y]);
            let y = rounded(&mut m, y, style, 0.02, (zero / 2.0_f32).floor());
            m.result("y", y).unwrap();
            let kernels = check(&m, &[n.tensor(&[2, 12, 7, 9])], 0.02);
            has_integers(&kernels, "deconv");
        }
    }
}

#[test]
fn a_residual_with_grids_of_its_own() {
    let n = &mut Numbers(5);
    for style in [Style::Pair, Style::Fake] {
        let mut m = Model::new("m");
        let x = input(&mut m, &[1, 16, 8, 8]);
        let x = rounded(&mut m, x, style, 0.01, 128.0);
        let w = weights(&mut m, n, style, &[16, 16, 3, 3], 0);
        let y = add(&mut m, convolution(&[3, 3], 1), &[x, w]);
        let y = bias(&mut m, n, y, &[1, 16, 1, 1]);
        let y = rounded(&mut m, y, style, 0.015, 100.0);
        let y = add(&mut m, Add::default(), &[y, x]);
        let y = add(&mut m, Relu, &[y]);
        let y = rounded(&mut m, y, style, 0.02, 0.0);
        m.result("y", y).unwrap();
        let kernels = check(&m, &[n.tensor(&[1, 16, 8, 8])], 0.02);
        has_integers(&kernels, "conv_direct_3x3");
    }
}

#[test]
fn first_layers_depthwise_layers_pools_and_concatenations() {
    let n = &mut Numbers(7);
    for style in [Style::Pair, Style::Fake] {
        let mut m = Model::new("m");
        let x = input(&mut m, &[1, 3, 24, 20]);
        let x = rounded(&mut m, x, style, 0.01, 115.0);
        let w = weights(&mut m, n, style, &[32, 3, 3, 3], 0);
        let y = add(&mut m, convolution(&[3, 3], 2), &[x, w]);
        let y = bias(&mut m, n, y, &[1, 32, 1, 1]);
        let y = add(&mut m, Clamp { min: 0.0, max: 1.2 }, &[y]);
        let y = rounded(&mut m, y, style, 0.005, 0.0);
        let pool = MaxPool {
            strides: vec![1, 1],
            dilations: vec![1, 1],
            pads_begin: vec![0, 0],
            pads_end: vec![0, 0],
            kernel: vec![2, 2],
            rounding_type: Rounding::Floor,
            auto_pad: PadType::Explicit,
            index_element_type: ElementType::I64,
            axis: 0,
        };
        let y = add(&mut m, pool, &[y]);
        let y = add(&mut m, Concat { axis: 1 }, &[y, y]);
        let w = weights(&mut m, n, style, &[64, 1, 3, 3], 0);
        let shape = ints(&mut m, &[64, 1, 1, 3, 3]);
        let w = add(&mut m, Reshape { special_zero: false }, &[w, shape]);
        let y = add(&mut m, grouped(&[3, 3], 1), &[y, w]);
        let y = bias(&mut m, n, y, &[1, 64, 1, 1]);
        let y = add(&mut m, Clamp { min: 0.0, max: 6.0 }, &[y]);
        let y = rounded(&mut m, y, style, 0.01, 0.0);
        m.result("y", y).unwrap();
        let kernels = check(&m, &[n.tensor(&[1, 3, 24, 20])], 0.02);
        has_integers(&kernels, "conv_planar_3x3");
        has_integers(&kernels, "conv_depthwise_3x3");
    }
}

#[test]
fn products_with_weights_either_way_round() {
    let n = &mut Numbers(9);
    for style in [Style::Pair, Style::Fake] {
        for transpose_b in [false, true] {
            let mut m = Model::new("m");
            let x = input(&mut m, &[2, 5, 24]);
            let y = rounded(&mut m, x, style, 0.01, 128.0);
            let (shape, axis) = if transpose_b { ([19, 24], 0) } else { ([24, 19], 1) };
            let w = weights(&mut m, n, style, &shape, axis);
            let y = add(&mut m, MatMul { transpose_a: false, transpose_b }, &[y, w]);
            let y = bias(&mut m, n, y, &[19]);
            let y = add(&mut m, Swish {}, &[y]);
            let y = rounded(&mut m, y, style, 0.02, 30.0);
            m.result("y", y).unwrap();
            let kernels = check(&m, &[n.tensor(&[2, 5, 24])], 0.02);
            has_integers(&kernels, "gemm");
        }
    }
}

#[test]
fn results_without_a_grid_are_floats() {
    let n = &mut Numbers(11);
    let mut m = Model::new("m");
    let x = input(&mut m, &[1, 8, 5, 5]);
    let y = rounded(&mut m, x, Style::Pair, 0.01, 128.0);
    let w = weights(&mut m, n, Style::Pair, &[6, 8, 3, 3], 0);
    let y = add(&mut m, convolution(&[3, 3], 1), &[y, w]);
    let y = bias(&mut m, n, y, &[1, 6, 1, 1]);
    m.result("y", y).unwrap();
    let kernels = check(&m, &[n.tensor(&[1, 8, 5, 5])], 1e-4);
    has_integers(&kernels, "conv_direct_3x3");
}

#[test]
fn channels_that_fill_no_cells_and_weights_beyond_i8_run_on_floats() {
    let n = &mut Numbers(13);
    let mut m = Model::new("m");
    let x = input(&mut m, &[1, 6, 5, 5]);
    let y = rounded(&mut m, x, Style::Fake, 0.01, 128.0);
    let w = weights(&mut m, n, Style::Fake, &[4, 6, 3, 3], 0);
    let y = add(&mut m, convolution(&[3, 3], 1), &[y, w]);
    let w = constant(&mut m, Tensor::from_slice(&[4, 4, 1, 1], &[200u8; 16]).unwrap());
    let w = add(&mut m, Convert { destination_type: ElementType::F32 }, &[w]);
    let s = number(&mut m, 0.01);
    let w = add(&mut m, Multiply::default(), &[w, s]);
    let y = rounded(&mut m, y, Style::Fake, 0.02, 128.0);
    let y = add(&mut m, convolution(&[1, 1], 1), &[y, w]);
    m.result("y", y).unwrap();
    check(&m, &[n.tensor(&[1, 6, 5, 5])], 0.05);
}

#[test]
fn an_exported_model_gives_the_same() {
    let n = &mut Numbers(15);
    let mut m = Model::new("m");
    let x = input(&mut m, &[1, 8, 6, 6]);
    let y = rounded(&mut m, x, Style::Fake, 0.01, 128.0);
    let w = weights(&mut m, n, Style::Fake, &[16, 8, 3, 3], 0);
    let y = add(&mut m, convolution(&[3, 3], 1), &[y, w]);
    let y = rounded(&mut m, y, Style::Fake, 0.02, 128.0);
    m.result("y", y).unwrap();
    let data = n.tensor(&[1, 8, 6, 6]);
    let compiled = compile(&m, &Properties::new());
    let mut file = vec![];
    compiled.export(&mut file).unwrap();
    let registry = carafe_ops::registry();
    let again = CpuDevice::default().import(SharedBytes::from_vec(file), &registry, &Properties::new()).unwrap();
    let run = |compiled: Arc<dyn CompiledModel>| {
        let mut request = compiled.create_request();
        request.set_input(0, data.clone()).unwrap();
        request.infer().unwrap();
        request.output(0).unwrap().to_vec::<f32>().unwrap().into_owned()
    };
    assert_eq!(run(compiled), run(again));
}
