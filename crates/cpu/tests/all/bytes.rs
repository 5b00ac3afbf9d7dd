//! What lies between integer layers: elementwise work, joins and resizes on bytes, operations of extensions, and quantization that
//! makes no sense, which runs as it is written.

use crate::integers::{Style, add, bias, check, constant, fake, has_integers, input, number, rounded, weights};
use crate::nets::{Numbers, convolution, grouped, ints};
use carafe_graph::{EvalCx, InferCx, Model, Op, Result, Value};
use carafe_kernels::Isa;
use carafe_ops::activation::{Sigmoid, Softmax, Swish};
use carafe_ops::arithmetic::{Add, Divide, Multiply, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::linear::MatMul;
use carafe_ops::math::Round;
use carafe_ops::math::round::RoundMode;
use carafe_ops::movement::{Concat, Transpose};
use carafe_ops::pooling::AvgPool;
use carafe_ops::resize::interpolate::ShapeCalculation;
use carafe_ops::resize::{Coordinates, Interpolate, Mode, NearestMode};
use carafe_tensor::{ElementType, Tensor};

fn is_fast() -> bool {
    carafe_kernels::Numbers::U8I8.is_fast(Isa::best())
}

/// Whether a kernel of this name worked on bytes.
fn has_bytes(kernels: &[String], what: &str) {
    assert!(!is_fast() || kernels.iter().any(|k| k.starts_with(what) && k.contains("_u8")), "{what}: {kernels:?}");
}

// An integer layer, so that bytes come in.
fn layer(m: &mut Model, n: &mut Numbers, x: Value, style: Style, channels: [usize; 2], scale: f32) -> Value {
    let w = weights(m, n, style, &[channels[1], channels[0], 1, 1], 0);
    let y = add(m, convolution(&[1, 1], 1), &[x, w]);
    let y = bias(m, n, y, &[1, channels[1], 1, 1]);
    rounded(m, y, style, scale, 90.0)
}

fn start(m: &mut Model, style: Style) -> Value {
    let x = input(m, &[1, 8, 6, 10]);
    rounded(m, x, style, 0.01, 128.0)
}

#[test]
fn a_function_of_numbers_on_a_grid_is_a_table() {
    let n = &mut Numbers(31);
    for style in [Style::Pair, Style::Fake] {
        let mut m = Model::new("m");
        let x = start(&mut m, style);
        let x = layer(&mut m, n, x, style, [8, 16], 0.02);
        // Read twice, so that it is no part of the layer before.
        let gate = add(&mut m, Sigmoid, &[x]);
        let gate = rounded(&mut m, gate, style, 1.0 / 255.0, 0.0);
        let y = add(&mut m, Multiply::default(), &[x, gate]);
        let y = rounded(&mut m, y, style, 0.015, 20.0);
        let y = layer(&mut m, n, y, style, [16, 8], 0.02);
        m.result("y", y).unwrap();
        let kernels = check(&m, &[n.tensor(&[1, 8, 6, 10])], 0.06);
        has_bytes(&kernels, "table");
        has_integers(&kernels, "conv_gemm");
    }
}

#[test]
fn sums_and_products_of_bytes_with_repeated_operands() {
    let n = &mut Numbers(33);
    for style in [Style::Pair, Style::Fake] {
        let mut m = Model::new("m");
        let x = start(&mut m, style);
        let a = layer(&mut m, n, x, style, [8, 16], 0.02);
        let b = layer(&mut m, n, x, style, [8, 16], 0.03);
        let each = constant(&mut m, n.tensor(&[1, 16, 1, 1]));
        let y = add(&mut m, Add::default(), &[a, b]);
        let y = add(&mut m, Multiply::default(), &[y, each]);
        let y = add(&mut m, Multiply::default(), &[y, a]);
        let y = rounded(&mut m, y, style, 0.03, 128.0);
        let y = layer(&mut m, n, y, style, [16, 8], 0.02);
        // Outputs of the model are no part of what follows them.
        m.result("a", a).unwrap();
        m.result("b", b).unwrap();
        m.result("y", y).unwrap();
        let kernels = check(&m, &[n.tensor(&[1, 8, 6, 10])], 0.09);
        has_bytes(&kernels, "elementwise");
    }
}

#[test]
fn parts_of_different_grids_are_joined_as_bytes() {
    let n = &mut Numbers(35);
    for style in [Style::Pair, Style::Fake] {
        let mut m = Model::new("m");
        let x = start(&mut m, style);
        let a = layer(&mut m, n, x, style, [8, 16], 0.02);
        let b = layer(&mut m, n, x, style, [8, 20], 0.03);
        let y = add(&mut m, Concat { axis: 1 }, &[a, b]);
        let y = rounded(&mut m, y, style, 0.025, 100.0);
        let y = layer(&mut m, n, y, style, [36, 8], 0.02);
        m.result("y", y).unwrap();
        let kernels = check(&m, &[n.tensor(&[1, 8, 6, 10])], 0.06);
        let floats = kernels.iter().filter(|k| k.starts_with("elementwise") || k.starts_with("dequantize")).count();
        // The one of the model's input, and the output that is floats again.
        assert!(!is_fast() || floats <= 2, "{kernels:?}");
    }
}

#[test]
fn the_nearest_pixels_of_bytes_are_bytes() {
    let n = &mut Numbers(37);
    let mut m = Model::new("m");
    let x = start(&mut m, Style::Pair);
    let x = layer(&mut m, n, x, Style::Pair, [8, 16], 0.02);
    let op = Interpolate {
        mode: Mode::Nearest,
        shape_calculation_mode: ShapeCalculation::Scales,
        coordinate_transformation_mode: Coordinates::Asymmetric,
        nearest_mode: NearestMode::Floor,
        antialias: false,
        pads_begin: vec![0],
        pads_end: vec![0],
        cube_coeff: -0.75,
    };
    let scales = constant(&mut m, Tensor::from_slice(&[2], &[2f32, 2.0]).unwrap());
    let axes = ints(&mut m, &[2, 3]);
    let y = add(&mut m, op, &[x, scales, axes]);
    let y = rounded(&mut m, y, Style::Pair, 0.02, 90.0);
    let y = layer(&mut m, n, y, Style::Pair, [16, 8], 0.02);
    m.result("y", y).unwrap();
    let kernels = check(&m, &[n.tensor(&[1, 8, 6, 10])], 0.04);
    has_bytes(&kernels, "resize");
}

#[test]
fn means_of_windows_and_blended_pixels_are_made_of_bytes() {
    let n = &mut Numbers(55);
    let mut m = Model::new("m");
    let x = start(&mut m, Style::Pair);
    let x = layer(&mut m, n, x, Style::Pair, [8, 20], 0.02);
    let pool = AvgPool {
        strides: vec![2, 2],
        pads_begin: vec![1, 1],
        pads_end: vec![1, 1],
        kernel: vec![3, 3],
        exclude_pad: true,
        rounding_type: Rounding::Floor,
        auto_pad: PadType::Explicit,
        dilations: vec![],
    };
    let a = add(&mut m, pool, &[x]);
    // Steps that no mean lies in the middle of.
    let a = rounded(&mut m, a, Style::Pair, 0.0213, 90.0);
    let op = Interpolate {
        mode: Mode::LinearOnnx,
        shape_calculation_mode: ShapeCalculation::Scales,
        coordinate_transformation_mode: Coordinates::HalfPixel,
        nearest_mode: NearestMode::Floor,
        antialias: false,
        pads_begin: vec![0],
        pads_end: vec![0],
        cube_coeff: -0.75,
    };
    let scales = constant(&mut m, Tensor::from_slice(&[2], &[2f32, 2.0]).unwrap());
    let axes = ints(&mut m, &[2, 3]);
    let b = add(&mut m, op, &[x, scales, axes]);
    let b = rounded(&mut m, b, Style::Pair, 0.0213, 90.0);
    let a = layer(&mut m, n, a, Style::Pair, [20, 8], 0.02);
    let b = layer(&mut m, n, b, Style::Pair, [20, 8], 0.02);
    m.result("a", a).unwrap();
    m.result("b", b).unwrap();
    let kernels = check(&m, &[n.tensor(&[1, 8, 6, 10])], 0.04);
    has_bytes(&kernels, "pool_mean");
    has_bytes(&kernels, "resize");
}

/// Swaps the two halves of the channels: an operation of an extension that says that it only moves elements.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "extension", inputs = "data", moves = "0")]
struct SwapHalves;

impl Op for SwapHalves {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let data = cx.get::<f32>(0)?.to_vec();
        let half = data.len() / 2;
        cx.put(0, &shape, [&data[half..], &data[..half]].concat())
    }
}

#[test]
fn layers_behind_an_extension_that_moves_elements_stay_integer() {
    let n = &mut Numbers(39);
    let mut m = Model::new("m");
    let x = start(&mut m, Style::Pair);
    let y = add(&mut m, SwapHalves, &[x]);
    let y = layer(&mut m, n, y, Style::Pair, [8, 16], 0.02);
    m.result("y", y).unwrap();
    let kernels = check(&m, &[n.tensor(&[1, 8, 6, 10])], 0.02);
    has_integers(&kernels, "conv_gemm");
}

#[test]
fn weights_whose_axes_are_put_in_order_stay_integers() {
    let n = &mut Numbers(41);
    let mut m = Model::new("m");
    let x = start(&mut m, Style::Fake);
    let w = weights(&mut m, n, Style::Pair, &[1, 1, 8, 16], 3);
    let order = ints(&mut m, &[3, 2, 0, 1]);
    let w = add(&mut m, Transpose, &[w, order]);
    let y = add(&mut m, convolution(&[1, 1], 1), &[x, w]);
    let y = add(&mut m, Swish {}, &[y]);
    m.result("y", y).unwrap();
    let kernels = check(&m, &[n.tensor(&[1, 8, 6, 10])], 1e-3);
    has_integers(&kernels, "conv_gemm");
}

#[test]
fn integers_and_scales_that_are_each_put_in_order_stay_integers() {
    let n = &mut Numbers(44);
    let mut m = Model::new("m");
    let x = start(&mut m, Style::Fake);
    let order = ints(&mut m, &[0, 3, 1, 2]);
    let w: Vec<i8> = (0..16 * 8).map(|_| (n.float() * 127.0) as i8).collect();
    let w = constant(&mut m, Tensor::from_vec(&[16, 1, 1, 8], w).unwrap());
    let w = add(&mut m, Transpose, &[w, order]);
    let w = add(&mut m, Convert { destination_type: ElementType::F32 }, &[w]);
    let scales: Vec<f32> = (0..16).map(|_| 0.01 + 0.002 * n.float()).collect();
    let s = constant(&mut m, Tensor::from_vec(&[16, 1, 1, 1], scales).unwrap());
    let s = add(&mut m, Transpose, &[s, order]);
    let w = add(&mut m, Multiply::default(), &[w, s]);
    let y = add(&mut m, convolution(&[1, 1], 1), &[x, w]);
    let y = add(&mut m, Swish {}, &[y]);
    m.result("y", y).unwrap();
    let kernels = check(&m, &[n.tensor(&[1, 8, 6, 10])], 1e-3);
    has_integers(&kernels, "conv_gemm");
}

#[test]
fn data_quantized_by_channels_in_front_of_a_depthwise_layer() {
    let n = &mut Numbers(42);
    let mut m = Model::new("m");
    let x = start(&mut m, Style::Fake);
    let w = weights(&mut m, n, Style::Fake, &[16, 8, 1, 1], 0);
    let y = add(&mut m, convolution(&[1, 1], 1), &[x, w]);
    let y = bias(&mut m, n, y, &[1, 16, 1, 1]);
    let y = add(&mut m, carafe_ops::activation::Clamp { min: 0.0, max: 1.0 }, &[y]);
    // One channel that was never used has a range of its own kind.
    let high: Vec<f32> = (0..16).map(|c| if c == 5 { 0.00127 } else { 0.4 + 0.04 * c as f32 }).collect();
    let low: Vec<f32> = (0..16).map(|c| if c == 5 { -0.00128 } else { 0.0 }).collect();
    let high = constant(&mut m, Tensor::from_vec(&[1, 16, 1, 1], high).unwrap());
    let low = constant(&mut m, Tensor::from_vec(&[1, 16, 1, 1], low).unwrap());
    let y = add(&mut m, fake(256), &[y, low, high, low, high]);
    let w = weights(&mut m, n, Style::Fake, &[16, 1, 1, 3, 3], 0);
    let y = add(&mut m, grouped(&[3, 3], 1), &[y, w]);
    let y = rounded(&mut m, y, Style::Fake, 0.01, 128.0);
    m.result("y", y).unwrap();
    let kernels = check(&m, &[n.tensor(&[1, 8, 6, 10])], 0.02);
    has_integers(&kernels, "conv_gemm");
    has_integers(&kernels, "conv_depthwise");
}

// Rounded data of heads, in the order that products want.
fn heads(m: &mut Model, style: Style, scale: f32, zero: f32, order: &[i64]) -> Value {
    let x = input(m, &[1, 20, 3, 16]);
    let x = rounded(m, x, style, scale, zero);
    let order = ints(m, order);
    add(m, Transpose, &[x, order])
}

#[test]
fn products_of_two_computed_matrices_multiply_bytes() {
    let n = &mut Numbers(51);
    for style in [Style::Pair, Style::Fake] {
        for zeros in [[128.0, 128.0, 128.0], [100.0, 140.0, 90.0]] {
            let mut m = Model::new("m");
            let q = heads(&mut m, style, 0.01, zeros[0], &[0, 2, 1, 3]);
            let k = heads(&mut m, style, 0.012, zeros[1], &[0, 2, 3, 1]);
            let v = heads(&mut m, style, 0.009, zeros[2], &[0, 2, 1, 3]);
            let plain = || MatMul { transpose_a: false, transpose_b: false };
            let scores = add(&mut m, plain(), &[q, k]);
            let quarter = number(&mut m, 0.25);
            let scores = add(&mut m, Multiply::default(), &[scores, quarter]);
            let p = add(&mut m, Softmax { axis: -1 }, &[scores]);
            let p = rounded(&mut m, p, style, 1.0 / 255.0, 0.0);
            let y = add(&mut m, plain(), &[p, v]);
            let order = ints(&mut m, &[0, 2, 1, 3]);
            let y = add(&mut m, Transpose, &[y, order]);
            m.result("y", y).unwrap();
            let data = [(); 3].map(|()| n.tensor(&[1, 20, 3, 16]));
            let kernels = check(&m, &data, 0.01);
            let products = kernels.iter().filter(|k| k.starts_with("batch_gemm_i8")).count();
            assert!(!is_fast() || products == 2, "{kernels:?}");
        }
    }
}

#[test]
fn the_first_layer_of_pixels_with_three_channels_multiplies_bytes() {
    let n = &mut Numbers(53);
    let mut m = Model::new("m");
    let x = input(&mut m, &[1, 9, 8, 3]);
    let x = rounded(&mut m, x, Style::Fake, 0.01, 128.0);
    let order = ints(&mut m, &[0, 3, 1, 2]);
    let x = add(&mut m, Transpose, &[x, order]);
    let w = weights(&mut m, n, Style::Fake, &[16, 3, 3, 3], 0);
    let y = add(&mut m, convolution(&[3, 3], 2), &[x, w]);
    let y = rounded(&mut m, y, Style::Fake, 0.02, 90.0);
    let order = ints(&mut m, &[0, 2, 3, 1]);
    let y = add(&mut m, Transpose, &[y, order]);
    m.result("y", y).unwrap();
    let kernels = check(&m, &[n.tensor(&[1, 9, 8, 3])], 0.02);
    has_integers(&kernels, "conv_planar_3x3");
}

// Rounding by a scale, as files say it, before and behind a layer.
fn odd(scale: f32, weight_scale: f32) -> Model {
    let n = &mut Numbers(43);
    let mut m = Model::new("m");
    let x = input(&mut m, &[1, 8, 3, 3]);
    let s = number(&mut m, scale);
    let y = add(&mut m, Divide::default(), &[x, s]);
    let y = add(&mut m, Round { mode: RoundMode::HalfToEven }, &[y]);
    let y = add(&mut m, carafe_ops::activation::Clamp { min: 0.0, max: 255.0 }, &[y]);
    let y = add(&mut m, Multiply::default(), &[y, s]);
    let w: Vec<i8> = (0..32).map(|_| (n.float() * 100.0) as i8).collect();
    let w = constant(&mut m, Tensor::from_vec(&[4, 8, 1, 1], w).unwrap());
    let w = add(&mut m, Convert { destination_type: ElementType::F32 }, &[w]);
    let z = number(&mut m, 300.0);
    let w = add(&mut m, Subtract::default(), &[w, z]);
    let s = number(&mut m, weight_scale);
    let w = add(&mut m, Multiply::default(), &[w, s]);
    let y = add(&mut m, convolution(&[1, 1], 1), &[y, w]);
    m.result("y", y).unwrap();
    m
}

#[test]
fn scales_that_make_no_sense_and_zero_points_out_of_range_give_what_the_file_says() {
    let data = Numbers(45).tensor(&[1, 8, 3, 3]);
    for scale in [0.0, -0.5, f32::NAN, f32::INFINITY, 1e-42, 0.5] {
        for weight_scale in [0.0, f32::NAN, -0.1, f32::INFINITY, 0.1] {
            let m = odd(scale, weight_scale);
            let wanted = m.evaluate(std::slice::from_ref(&data)).unwrap();
            let mut request = crate::nets::compile(&m, &Default::default()).create_request();
            request.set_input(0, data.clone()).unwrap();
            request.infer().unwrap();
            let found = request.output(0).unwrap();
            let (a, b) = (found.to_vec::<f32>().unwrap(), wanted[0].to_vec::<f32>().unwrap());
            let near =
                |a: &f32, b: &f32| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-4 * b.abs().max(1.0);
            assert!(a.iter().zip(b.iter()).all(|(a, b)| near(a, b)), "{scale} {weight_scale}: {a:?} {b:?}");
        }
    }
}

#[test]
fn ranges_that_make_no_sense_give_what_the_operation_says() {
    let data = Numbers(47).tensor(&[1, 8, 3, 3]);
    for [low, high, out_low, out_high] in [
        [1.0, 1.0, 0.0, 1.0],
        [2.0, -1.0, 0.0, 1.0],
        [0.0, f32::INFINITY, 0.0, 1.0],
        [-1.0, 1.0, 0.0, 0.0],
        [-1.0, 1.0, 1.0, -1.0],
        [-1.0, 1.0, 0.1, 0.9],
    ] {
        let n = &mut Numbers(49);
        let mut m = Model::new("m");
        let x = input(&mut m, &[1, 8, 3, 3]);
        let limits = [low, high, out_low, out_high].map(|v| number(&mut m, v));
        let y = add(&mut m, fake(256), &[x, limits[0], limits[1], limits[2], limits[3]]);
        let w = weights(&mut m, n, Style::Fake, &[4, 8, 1, 1], 0);
        let y = add(&mut m, convolution(&[1, 1], 1), &[y, w]);
        m.result("y", y).unwrap();
        let wanted = m.evaluate(std::slice::from_ref(&data)).unwrap();
        let mut request = crate::nets::compile(&m, &Default::default()).create_request();
        request.set_input(0, data.clone()).unwrap();
        request.infer().unwrap();
        let found = request.output(0).unwrap();
        let (a, b) = (found.to_vec::<f32>().unwrap(), wanted[0].to_vec::<f32>().unwrap());
        let near = |a: &f32, b: &f32| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-3 * b.abs().max(1.0);
        assert!(a.iter().zip(b.iter()).all(|(a, b)| near(a, b)), "{low} {high} {out_low} {out_high}: {a:?} {b:?}");
    }
}
