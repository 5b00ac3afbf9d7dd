//! What is computed in bf16: near the numbers of f32, stored so between steps, told in names and properties. Where the processor
//! has no such instructions all of it is f32, and near all the more.

use crate::integers::{self, Style, add, constant, rounded};
use crate::nets::{Numbers, compile, conv, convolution, network, weights};
use carafe_device::{CompiledModel, Properties};
use carafe_graph::{Model, Value};
use carafe_kernels::{Isa, Numbers as Kinds};
use carafe_ops::activation::{Clamp, Gelu, HSwish, Relu, Sigmoid, Swish, gelu::GeluApproximation};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::carafe::QuantizeDequantize;
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{ConvolutionBackpropData, GroupConvolution};
use carafe_ops::linear::{MatMul, ScaledDotProductAttention};
use carafe_ops::movement::Concat;
use carafe_ops::normalization::Mvn;
use carafe_ops::normalization::mvn::EpsMode;
use carafe_ops::reduce::ReduceMean;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::sync::Arc;

const HINT: &str = "INFERENCE_PRECISION_HINT";
const MODE: &str = "EXECUTION_MODE_HINT";
/// Two roundings of 2^-9 for each of a few layers, of the largest number.
const BOUND: f32 = 0.02;

fn is_native() -> bool {
    Kinds::Bf16.is_native(Isa::best())
}

fn with(pairs: &[(&str, &str)]) -> Properties {
    pairs.iter().fold(Properties::new().with("PERF_COUNT", "YES"), |p, (name, value)| p.with(name, value))
}

// Numbers of the first output, and the kernels that ran.
fn run(compiled: Arc<dyn CompiledModel>, x: &Tensor) -> (Vec<f32>, Vec<String>) {
    let mut request = compiled.create_request();
    request.set_input(0, x.clone()).unwrap();
    request.infer().unwrap();
    let ran = request.profile().into_iter().filter(|p| p.real_time.as_nanos() > 0);
    let kernels = ran.map(|p| p.kernel).collect();
    (request.output(0).unwrap().to_vec::<f32>().unwrap().into_owned(), kernels)
}

fn assert_near(found: &[f32], wanted: &[f32], bound: f32, what: &str) {
    let largest = wanted.iter().fold(0f32, |m, x| m.max(x.abs()));
    assert!(largest > 0.0 && found.len() == wanted.len(), "{what}");
    for (i, (x, y)) in found.iter().zip(wanted).enumerate() {
        assert!((x - y).abs() <= bound * largest, "{what}, element {i}: {x}, expected {y} of {largest}");
    }
}

// In bf16 beside f32; gives the kernels.
fn check(model: &Model, shape: &[usize], what: &str) -> Vec<String> {
    let x = Numbers(5).tensor(shape);
    let (wanted, _) = run(compile(model, &with(&[(HINT, "f32")])), &x);
    let mut kernels = vec![];
    for threads in ["1", "3"] {
        let properties = with(&[(HINT, "bf16"), ("INFERENCE_NUM_THREADS", threads)]);
        let (found, ran) = run(compile(model, &properties), &x);
        assert_near(&found, &wanted, BOUND, what);
        kernels = ran;
    }
    kernels
}

fn input(m: &mut Model, shape: &[usize]) -> Value {
    m.parameter("x", ElementType::F32, PartialShape::of(shape)).unwrap()
}

fn groups(m: &mut Model, x: Value, w: Value, stride: i64, pad: i64) -> Value {
    let op = GroupConvolution {
        strides: vec![stride; 2],
        pads_begin: vec![pad; 2],
        pads_end: vec![pad; 2],
        dilations: vec![1; 2],
        auto_pad: PadType::Explicit,
    };
    m.add(format!("groups{}", m.len()), op, &[x, w]).unwrap().into()
}

#[test]
fn convolutions_in_bf16_are_near_those_in_f32() {
    for (channels, size, k, stride) in [
        ([8, 24], [9, 7], 1, 1),
        ([6, 40], [12, 11], 3, 1),
        ([34, 33], [8, 20], 3, 2),
        ([64, 64], [10, 10], 3, 1),
        ([2, 17], [13, 15], 5, 2),
        ([3, 16], [17, 19], 7, 2),
        ([1, 9], [8, 8], 3, 1),
        ([1, 9], [8, 8], 1, 1),
        ([16, 8], [5, 6], 1, 2),
    ] {
        let (mut m, n) = (Model::new("m"), &mut Numbers(11));
        let shape = [2, channels[0], size[0], size[1]];
        let x = input(&mut m, &shape);
        let y = conv(&mut m, n, x, channels, k, stride);
        let bias = weights(&mut m, n, &[1, channels[1], 1, 1]);
        let y = m.add("bias", Add::default(), &[y, bias]).unwrap().into();
        let y = m.add("relu", Relu, &[y]).unwrap().into();
        m.result("y", y).unwrap();
        let kernels = check(&m, &shape, &format!("{channels:?} {size:?} {k} {stride}"));
        let bf16 = kernels.iter().any(|k| k.starts_with("conv_") && k.contains("_bf16"));
        // One channel fills half of each pair, which is worth it where a filter goes over an image.
        assert_eq!(bf16, is_native() && (channels[0] > 1 || k > 1), "{channels:?} {k}: {kernels:?}");
    }
}

#[test]
fn groups_in_bf16_are_near_those_in_f32() {
    for (groups_of, each, stride) in [(4, [8, 8], 1), (2, [6, 20], 2), (3, [3, 16], 1)] {
        let (mut m, n) = (Model::new("m"), &mut Numbers(3));
        let shape = [1, groups_of * each[0], 9, 10];
        let x = input(&mut m, &shape);
        let w = weights(&mut m, n, &[groups_of, each[1], each[0], 3, 3]);
        let y = groups(&mut m, x, w, stride, 1);
        m.result("y", y).unwrap();
        check(&m, &shape, &format!("{groups_of} groups of {each:?}"));
    }
}

#[test]
fn depthwise_convolutions_read_and_write_bf16() {
    for (channels, k, stride) in [(32, 3, 1), (20, 3, 2), (17, 5, 1), (48, 7, 1)] {
        let (mut m, n) = (Model::new("m"), &mut Numbers(3));
        let shape = [1, 8, 15, 14];
        let x = input(&mut m, &shape);
        let y = conv(&mut m, n, x, [8, channels], 1, 1);
        let w = weights(&mut m, n, &[channels, 1, 1, k, k]);
        let y = groups(&mut m, y, w, stride, k as i64 / 2);
        let bias = weights(&mut m, n, &[1, channels, 1, 1]);
        let y = m.add("bias", Add::default(), &[y, bias]).unwrap().into();
        let y = m.add("clamp", Clamp { min: -0.2, max: 0.6 }, &[y]).unwrap().into();
        let channels_even = channels / 2 * 2;
        let y = conv(&mut m, n, y, [channels, channels_even], 1, 1);
        m.result("y", y).unwrap();
        let kernels = check(&m, &shape, &format!("{channels} channels, {k} by {k}, {stride}"));
        let depthwise = kernels.iter().any(|k| k.starts_with("conv_depthwise") && k.contains("_bf16"));
        assert_eq!(depthwise, is_native() && channels % 2 == 0, "{kernels:?}");
    }
}

#[test]
fn products_in_bf16_are_near_those_in_f32() {
    for (rows, k, n_columns, transposed) in
        [(5, 24, 40, false), (1, 130, 33, true), (64, 768, 96, true), (9, 7, 8, false)]
    {
        let (mut m, n) = (Model::new("m"), &mut Numbers(13));
        let shape = [2, rows, k];
        let x = input(&mut m, &shape);
        let w = weights(&mut m, n, &if transposed { [n_columns, k] } else { [k, n_columns] });
        let y = m.add("product", MatMul { transpose_a: false, transpose_b: transposed }, &[x, w]).unwrap().into();
        let bias = weights(&mut m, n, &[n_columns]);
        let y = m.add("bias", Add::default(), &[y, bias]).unwrap().into();
        let gelu = Gelu { approximation_mode: GeluApproximation::Erf };
        let y = m.add("gelu", gelu, &[y]).unwrap().into();
        m.result("y", y).unwrap();
        let kernels = check(&m, &shape, &format!("{rows} x {k} x {n_columns}"));
        let bf16 = kernels.iter().any(|k| k.starts_with("gemm_bf16"));
        assert_eq!(bf16, is_native() && k % 2 == 0, "{kernels:?}");
    }
}

#[test]
fn data_that_was_quantized_to_16_bits_is_not_multiplied_in_bf16() {
    let product = |steps: i64| {
        let (mut m, n) = (Model::new("m"), &mut Numbers(17));
        let x = input(&mut m, &[5, 24]);
        let op = QuantizeDequantize { scale: 4.0 / steps as f32, zero: 0, low: -steps / 2, high: steps / 2 - 1 };
        let x = m.add("rounded", op, &[x]).unwrap().into();
        let w = weights(&mut m, n, &[24, 40]);
        let y = m.add("product", MatMul { transpose_a: false, transpose_b: false }, &[x, w]).unwrap().into();
        m.result("y", y).unwrap();
        check(&m, &[5, 24], &format!("{steps} steps"))
    };
    let in_bf16 = |kernels: &[String]| kernels.iter().any(|k| k.starts_with("gemm_bf16"));
    let (coarse, fine) = (product(1 << 8), product(1 << 16));
    assert_eq!(in_bf16(&coarse), is_native(), "{coarse:?}");
    assert!(!in_bf16(&fine), "{fine:?}");
}

#[test]
fn a_computed_scale_behind_a_product_is_not_rounded() {
    // All of it is exact in bf16 but the scale.
    let (mut m, shape) = (Model::new("m"), [4, 16]);
    let x = input(&mut m, &shape);
    let w = constant(&mut m, Tensor::from_slice(&[16, 8], &[1f32; 16 * 8]).unwrap());
    let y = m.add("product", MatMul { transpose_a: false, transpose_b: false }, &[x, w]).unwrap().into();
    let s = m.parameter("s", ElementType::F32, PartialShape::of(&[1])).unwrap();
    let third = constant(&mut m, Tensor::from_slice(&[1], &[1f32 / 3.0]).unwrap());
    let s = m.add("scale", Multiply::default(), &[s, third]).unwrap().into();
    let y = m.add("scaled", Multiply::default(), &[y, s]).unwrap().into();
    m.result("y", y).unwrap();
    let mut request = compile(&m, &with(&[(HINT, "bf16")])).create_request();
    request.set_input(0, Tensor::from_slice(&shape, &[0.5f32; 64]).unwrap()).unwrap();
    request.set_input(1, Tensor::from_slice(&[1], &[1f32]).unwrap()).unwrap();
    request.infer().unwrap();
    let found = request.output(0).unwrap().to_vec::<f32>().unwrap().into_owned();
    assert_near(&found, &[8.0 / 3.0; 32], 1e-6, "a scale of a third");
}

#[test]
fn convolutions_of_many_channels_are_done_in_tiles() {
    let (mut m, n) = (Model::new("m"), &mut Numbers(19));
    let shape = [1, 64, 15, 13];
    let x = input(&mut m, &shape);
    let a = conv(&mut m, n, x, [64, 72], 3, 1);
    let a: Value = m.add("swish", Swish, &[a]).unwrap().into();
    let b = conv(&mut m, n, a, [72, 72], 3, 1);
    let b: Value = m.add("sum", Add::default(), &[b, a]).unwrap().into();
    m.result("y", b).unwrap();
    let kernels = check(&m, &shape, "tiles");
    // Tile registers multiply too fast for it to pay.
    let tiles = kernels.iter().filter(|k| k.starts_with("conv_winograd_3x3_bf16")).count();
    assert_eq!(tiles, if is_native() && !Isa::best().has_tiles() { 2 } else { 0 }, "{kernels:?}");
}

#[test]
fn transposed_convolutions_whose_windows_touch_are_products_of_bf16() {
    for (kernel, pad, touches) in [(2, 0, true), (3, 0, true), (4, 1, false)] {
        let (mut m, n) = (Model::new("m"), &mut Numbers(31));
        let shape = [1, 16, 7, 9];
        let x = input(&mut m, &shape);
        let x1 = conv(&mut m, n, x, [16, 20], 1, 1);
        let w = weights(&mut m, n, &[20, 6, kernel, kernel]);
        let stride = if touches { kernel as i64 } else { 2 };
        let op = ConvolutionBackpropData {
            strides: vec![stride; 2],
            pads_begin: vec![pad; 2],
            pads_end: vec![pad; 2],
            dilations: vec![1; 2],
            auto_pad: PadType::Explicit,
            output_padding: vec![0; 2],
        };
        let y: Value = m.add("larger", op, &[x1, w]).unwrap().into();
        let bias = weights(&mut m, n, &[1, 6, 1, 1]);
        let y = m.add("bias", Add::default(), &[y, bias]).unwrap().into();
        let y = m.add("relu", Relu, &[y]).unwrap().into();
        m.result("y", y).unwrap();
        let kernels = check(&m, &shape, &format!("{kernel} by {kernel}"));
        let bf16 = kernels.iter().any(|k| k.starts_with("deconv_bf16"));
        assert_eq!(bf16, is_native() && touches, "{kernels:?}");
    }
}

#[test]
fn numbers_behind_a_function_are_part_of_the_layer() {
    let (mut m, n) = (Model::new("m"), &mut Numbers(23));
    let shape = [1, 8, 9, 10];
    let x = input(&mut m, &shape);
    let affine = |m: &mut Model, y: Value, factor: f32| -> Value {
        let name = format!("hswish{}", m.len());
        let y: Value = m.add(name, HSwish, &[y]).unwrap().into();
        let number = |m: &mut Model, x: f32| {
            m.constant(&format!("c{}", m.len()), Tensor::from_vec(&[1], vec![x]).unwrap()).unwrap()
        };
        let (by, plus) = (number(m, factor), number(m, -0.25));
        let name = format!("by{}", m.len());
        let y: Value = m.add(name, Multiply::default(), &[y, by]).unwrap().into();
        let name = format!("plus{}", m.len());
        m.add(name, Add::default(), &[y, plus]).unwrap().into()
    };
    let y = conv(&mut m, n, x, [8, 24], 1, 1);
    let y = affine(&mut m, y, 1.5);
    let w = weights(&mut m, n, &[24, 1, 1, 3, 3]);
    let y = groups(&mut m, y, w, 1, 1);
    let y = affine(&mut m, y, -0.75);
    // Behind the numbers it pads, so it cannot take them in.
    let y = conv(&mut m, n, y, [24, 10], 3, 1);
    m.result("y", y).unwrap();
    let kernels = check(&m, &shape, "numbers behind functions");
    if is_native() {
        for wanted in ["conv_gemm_1_bf16+hswish+scale", "conv_depthwise_3x3_bf16+hswish+scale"] {
            assert!(kernels.iter().any(|k| k == wanted), "{wanted}: {kernels:?}");
        }
    }
}

#[test]
fn a_block_that_weighs_its_channels_stays_bf16() {
    let (mut m, n) = (Model::new("m"), &mut Numbers(31));
    let shape = [1, 8, 11, 10];
    let x = input(&mut m, &shape);
    let y = conv(&mut m, n, x, [8, 24], 1, 1);
    let w = weights(&mut m, n, &[24, 1, 1, 3, 3]);
    let y = groups(&mut m, y, w, 1, 1);
    let y: Value = m.add("swish", Swish, &[y]).unwrap().into();
    let axes = m.constant("axes", Tensor::from_slice(&[2], &[2i64, 3]).unwrap()).unwrap();
    let mean: Value = m.add("mean", ReduceMean { keep_dims: true }, &[y, axes]).unwrap().into();
    let gate = conv(&mut m, n, mean, [24, 24], 1, 1);
    let gate: Value = m.add("gate", Sigmoid, &[gate]).unwrap().into();
    let y: Value = m.add("weighed", Multiply::default(), &[y, gate]).unwrap().into();
    let y = conv(&mut m, n, y, [24, 12], 1, 1);
    m.result("y", y).unwrap();
    let kernels = check(&m, &shape, "weighed channels");
    if is_native() {
        assert!(kernels.iter().any(|k| k == "conv_depthwise_3x3_bf16+swish"), "{kernels:?}");
        // Only the weights themselves, a number a channel.
        assert!(kernels.iter().filter(|k| *k == "convert_f32[bf16 f32]").count() <= 1, "{kernels:?}");
    }
}

#[test]
fn a_layer_of_a_transformer_stays_bf16() {
    for (causal, masked, len) in [(false, true, 40), (true, false, 33), (false, false, 5)] {
        let (mut m, n) = (Model::new("m"), &mut Numbers(29));
        let shape = [1, 2, len, 24];
        let x = input(&mut m, &shape);
        let product = MatMul { transpose_a: false, transpose_b: false };
        let part = |m: &mut Model, n: &mut Numbers, x: Value| -> Value {
            let w = weights(m, n, &[24, 24]);
            m.add(format!("part{}", m.len()), product.clone(), &[x, w]).unwrap().into()
        };
        let mut operands = vec![part(&mut m, n, x), part(&mut m, n, x), part(&mut m, n, x)];
        if masked {
            operands.push(weights(&mut m, n, &[1, 1, len, len]));
        }
        let y: Value = m.add("attention", ScaledDotProductAttention { causal }, &operands).unwrap().into();
        let y = part(&mut m, n, y);
        let y: Value = m.add("residual", Add::default(), &[y, x]).unwrap().into();
        let axes = m.constant("axes", Tensor::from_slice(&[1], &[-1i64]).unwrap()).unwrap();
        let mvn = Mvn { eps: 1e-5, normalize_variance: true, eps_mode: EpsMode::InsideSqrt };
        let y: Value = m.add("norm", mvn, &[y, axes]).unwrap().into();
        let gamma = weights(&mut m, n, &[24]);
        let y: Value = m.add("gamma", Multiply::default(), &[y, gamma]).unwrap().into();
        let y = part(&mut m, n, y);
        m.result("y", y).unwrap();
        let kernels = check(&m, &shape, &format!("{len} tokens, causal {causal}"));
        if is_native() {
            assert!(kernels.iter().any(|k| k == "attention_bf16"), "{kernels:?}");
            // The input of the model alone.
            assert_eq!(kernels.iter().filter(|k| k.starts_with("convert")).count(), 1, "{kernels:?}");
        }
    }
}

// Each product of a row of 16 halves with weights that are given by column.
fn of_halves(m: &mut Model, x: Value, columns: [f32; 4]) -> Value {
    let numbers: Vec<f32> = (0..16).flat_map(|_| columns).collect();
    let w = constant(m, Tensor::from_slice(&[16, 4], &numbers).unwrap());
    m.add(format!("product{}", m.len()), MatMul { transpose_a: false, transpose_b: false }, &[x, w]).unwrap().into()
}

#[test]
fn a_sum_that_a_normalization_reads_is_not_rounded() {
    let mut m = Model::new("m");
    let x = input(&mut m, &[3, 16]);
    // 256.5 is no number of bf16.
    let (a, b) = (of_halves(&mut m, x, [32.0; 4]), of_halves(&mut m, x, [0.0, 0.0625, 0.0, 0.0625]));
    let sum: Value = m.add("sum", Add::default(), &[b, a]).unwrap().into();
    let axes = m.constant("axes", Tensor::from_slice(&[1], &[-1i64]).unwrap()).unwrap();
    let mvn = Mvn { eps: 1e-6, normalize_variance: true, eps_mode: EpsMode::InsideSqrt };
    let norm: Value = m.add("norm", mvn, &[sum, axes]).unwrap().into();
    let one: Vec<f32> = (0..16).map(|i| if i % 5 == 0 { 1.0 } else { 0.0 }).collect();
    let one = constant(&mut m, Tensor::from_slice(&[4, 4], &one).unwrap());
    let y = m.add("same", MatMul { transpose_a: false, transpose_b: false }, &[norm, one]).unwrap().into();
    m.result("y", y).unwrap();
    let halves = Tensor::from_slice(&[3, 16], &[0.5f32; 48]).unwrap();
    let (found, _) = run(compile(&m, &with(&[(HINT, "bf16")])), &halves);
    assert_near(&found, &[-1.0, 1.0].repeat(6), 0.01, "numbers half apart");
}

#[test]
fn an_output_that_a_layer_reads_too_is_not_rounded() {
    let mut m = Model::new("m");
    let x = input(&mut m, &[3, 16]);
    // 257 is no number of bf16.
    let first: Vec<f32> = (0..16 * 4).map(|i| if i < 4 { 34.0 } else { 32.0 }).collect();
    let w = constant(&mut m, Tensor::from_slice(&[16, 4], &first).unwrap());
    let product = MatMul { transpose_a: false, transpose_b: false };
    let y: Value = m.add("first", product.clone(), &[x, w]).unwrap().into();
    m.result("y", y).unwrap();
    let w = constant(&mut m, Tensor::from_slice(&[4, 2], &[1f32; 8]).unwrap());
    let z = m.add("second", product, &[y, w]).unwrap().into();
    m.result("z", z).unwrap();
    let halves = Tensor::from_slice(&[3, 16], &[0.5f32; 48]).unwrap();
    let (found, _) = run(compile(&m, &with(&[(HINT, "bf16")])), &halves);
    assert_eq!(found, [257.0; 12]);
}

#[test]
fn what_lies_between_convolutions_stays_bf16() {
    let (mut m, n) = (Model::new("m"), &mut Numbers(17));
    let shape = [1, 8, 12, 12];
    let x = input(&mut m, &shape);
    let a = conv(&mut m, n, x, [8, 32], 3, 1);
    let b = conv(&mut m, n, a, [32, 32], 3, 1);
    let b: Value = m.add("sum", Add::default(), &[b, a]).unwrap().into();
    let c: Value = m.add("swish", Swish, &[b]).unwrap().into();
    let d = conv(&mut m, n, c, [32, 16], 1, 1);
    let gate = weights(&mut m, n, &[1, 48, 1, 1]);
    let joined: Value = m.add("joined", Concat { axis: 1 }, &[d, c]).unwrap().into();
    let e: Value = m.add("hswish", HSwish, &[joined]).unwrap().into();
    let e: Value = m.add("gated", Multiply::default(), &[e, gate]).unwrap().into();
    let y = conv(&mut m, n, e, [48, 10], 1, 1);
    m.result("y", y).unwrap();
    let kernels = check(&m, &shape, "a chain");
    if is_native() {
        // The input of the model alone.
        let conversions = kernels.iter().filter(|k| k.starts_with("convert")).count();
        assert_eq!(conversions, 1, "{kernels:?}");
    }
}

#[test]
fn a_whole_net_in_bf16_is_near_the_one_in_f32() {
    let model = network("2");
    let kernels = check(&model, &[2, 3, 24, 20], "the net");
    // Sums of rows stay f32.
    for sensitive in ["softmax_f32", "norm_f32", "reduce_f32"] {
        assert!(kernels.iter().any(|k| k.contains(sensitive)), "{sensitive}: {kernels:?}");
    }
}

#[test]
fn accuracy_is_f32_to_the_last_bit() {
    let (model, x) = (network("1"), Numbers(5).tensor(&[1, 3, 24, 20]));
    let (wanted, _) = run(compile(&model, &with(&[(MODE, "ACCURACY"), (HINT, "f32")])), &x);
    for hint in ["dynamic", "undefined"] {
        let (found, kernels) = run(compile(&model, &with(&[(MODE, "ACCURACY"), (HINT, hint)])), &x);
        assert!(kernels.iter().all(|k| !k.contains("bf16")), "{kernels:?}");
        assert_eq!(found, wanted);
    }
    let own = with(&[(MODE, "ACCURACY")]);
    let compiled = carafe_device::Device::compile(&carafe_cpu::CpuDevice::default(), &model, &own).unwrap();
    assert_eq!(compiled.property(HINT).unwrap(), "dynamic");
    assert_eq!(run(compiled, &x).0, wanted);
}

#[test]
fn the_default_is_the_type_that_is_multiplied_fastest() {
    let device = carafe_cpu::CpuDevice::default();
    let fast = Kinds::Bf16.is_fast(Isa::best());
    let wanted = if fast { "bf16" } else { "f32" };
    let table = carafe_device::Device::properties(&device);
    assert_eq!(table.iter().find(|p| p.name == HINT).unwrap().default, wanted);
    let of = |pairs: &[(&str, &str)]| {
        let compiled = carafe_device::Device::compile(&device, &network("1"), &with(pairs)).unwrap();
        let (_, kernels) = run(compiled.clone(), &Numbers(5).tensor(&[1, 3, 24, 20]));
        (compiled.property(HINT).unwrap(), kernels.iter().any(|k| k.contains("bf16")))
    };
    assert_eq!(of(&[]), (wanted.to_string(), fast));
    // A type without instructions counts as none, and the compiled model says what runs instead.
    let f16 = Kinds::F16.is_native(Isa::best());
    assert_eq!(of(&[(HINT, "f16")]).0, if f16 { "f16" } else { wanted });
    assert_eq!(of(&[(HINT, "FP16")]).0, if f16 { "FP16" } else { wanted });
    assert_eq!(of(&[(HINT, "f16")]).1, fast && !f16);
    // An explicit type wins over the mode.
    assert_eq!(of(&[(HINT, "bf16"), (MODE, "ACCURACY")]).1, is_native());
    assert!(!of(&[(HINT, "f32")]).1 && !of(&[(HINT, "dynamic")]).1);
    let words = carafe_device::Device::metric(&device, "OPTIMIZATION_CAPABILITIES").unwrap();
    assert_eq!(words.split(' ').any(|w| w == "BF16"), fast, "{words}");
    assert_eq!(words.split(' ').any(|w| w == "FP16"), f16, "{words}");
}

#[test]
fn a_type_that_is_none_for_arithmetic_is_refused() {
    let device = carafe_cpu::CpuDevice::default();
    let e = carafe_device::Device::compile(&device, &network("1"), &with(&[(HINT, "i8")])).err().unwrap().to_string();
    assert!(e.contains(HINT) && e.contains("bf16") && e.contains("i8"), "{e}");
}

#[test]
fn an_exported_model_keeps_the_type_it_was_compiled_for() {
    let (model, x) = (network("1"), Numbers(5).tensor(&[1, 3, 24, 20]));
    let device = carafe_cpu::CpuDevice::default();
    for hint in ["bf16", "f32"] {
        let compiled = compile(&model, &with(&[(HINT, hint)]));
        let mut blob = vec![];
        compiled.export(&mut blob).unwrap();
        let import = |properties: &Properties| {
            let bytes = carafe_tensor::SharedBytes::from_vec(blob.clone());
            carafe_device::Device::import(&device, bytes, &carafe_ops::registry(), properties).unwrap()
        };
        let (wanted, _) = run(compiled, &x);
        assert_eq!(run(import(&with(&[])), &x).0, wanted, "{hint}");
        let (_, kernels) = run(import(&with(&[(HINT, "f32")])), &x);
        assert!(kernels.iter().all(|k| !k.contains("bf16")), "{kernels:?}");
    }
}

#[test]
fn bytes_that_a_layer_of_floats_reads_too_are_the_numbers_they_stand_for() {
    let n = &mut Numbers(71);
    for style in [Style::Pair, Style::Fake] {
        let mut m = Model::new("m");
        let x = input(&mut m, &[1, 8, 6, 10]);
        let x = rounded(&mut m, x, style, 0.01, 90.0);
        let w = integers::weights(&mut m, n, style, &[16, 8, 1, 1], 0);
        let y = add(&mut m, convolution(&[1, 1], 1), &[x, w]);
        let y = rounded(&mut m, y, style, 0.02, 90.0);
        let w = integers::weights(&mut m, n, style, &[16, 16, 1, 1], 0);
        let a = add(&mut m, convolution(&[1, 1], 1), &[y, w]);
        let w = constant(&mut m, n.tensor(&[16, 16, 1, 1]));
        let b = add(&mut m, convolution(&[1, 1], 1), &[y, w]);
        let both = add(&mut m, Add::default(), &[a, b]);
        m.result("r", both).unwrap();
        check(&m, &[1, 8, 6, 10], "bytes for two kinds of layers");
    }
}
