//! Whole models in both types of 16 bits, on every machine: what has no instructions for them multiplies them another way.

use crate::compiled::Compiled;
use carafe_device::{CompiledModel, InferRequest, Properties};
use carafe_graph::{Model, Op, Value};
use carafe_kernels::{Halves, Isa};
use carafe_ops::activation::{Clamp, Gelu, Relu, Swish, gelu::GeluApproximation};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::convolution::{Convolution, ConvolutionBackpropData, GroupConvolution};
use carafe_ops::linear::{MatMul, ScaledDotProductAttention};
use carafe_ops::movement::{Concat, Reshape};
use carafe_ops::normalization::Mvn;
use carafe_ops::normalization::mvn::EpsMode;
use carafe_ops::pooling::MaxPool;
use carafe_ops::reduce::ReduceMean;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::sync::Arc;

/// Both types, and how far results may be from f32, of the largest.
const BOTH: [(Halves, f32); 2] = [(Halves::Bf16, 0.02), (Halves::F16, 2e-3)];

fn numbers(shape: &[usize], scale: f32) -> Tensor {
    let len: usize = shape.iter().product();
    let data = (0..len).map(|i| ((i * 7919 + 13) % 1009) as f32 / 504.5 - 1.0);
    Tensor::from_vec(shape, data.map(|x| x * scale).collect::<Vec<f32>>()).unwrap()
}

/// A model that is made node by node.
struct Net(Model);

impl Net {
    fn new(shape: &[usize]) -> (Net, Value) {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(shape)).unwrap();
        (Net(m), x)
    }
    fn add(&mut self, op: impl Op, inputs: &[Value]) -> Value {
        let name = format!("n{}", self.0.len());
        self.0.add(name, op, inputs).unwrap().into()
    }
    fn constant(&mut self, tensor: Tensor) -> Value {
        let name = format!("c{}", self.0.len());
        self.0.constant(&name, tensor).unwrap()
    }
    fn weights(&mut self, shape: &[usize]) -> Value {
        let each: usize = shape[1..].iter().product();
        self.constant(numbers(shape, 1.5 / (each as f32).sqrt()))
    }
    fn conv(&mut self, x: Value, [from, to]: [usize; 2], k: usize, stride: i64) -> Value {
        let w = self.weights(&[to, from, k, k]);
        let pads = vec![k as i64 / 2; 2];
        let op = Convolution {
            strides: vec![stride; 2],
            pads_begin: pads.clone(),
            pads_end: pads,
            dilations: vec![1; 2],
            auto_pad: PadType::Explicit,
        };
        self.add(op, &[x, w])
    }
    fn groups(&mut self, x: Value, [groups, from, to]: [usize; 3], k: usize) -> Value {
        let w = self.weights(&[groups, to, from, k, k]);
        let pads = vec![k as i64 / 2; 2];
        let op = GroupConvolution {
            strides: vec![1; 2],
            pads_begin: pads.clone(),
            pads_end: pads,
            dilations: vec![1; 2],
            auto_pad: PadType::Explicit,
        };
        self.add(op, &[x, w])
    }
    fn product(&mut self, x: Value, from: usize, to: usize) -> Value {
        let w = self.constant(numbers(&[from, to], 1.5 / (from as f32).sqrt()));
        self.add(MatMul { transpose_a: false, transpose_b: false }, &[x, w])
    }
    fn done(mut self, y: Value) -> Model {
        self.0.result("y", y).unwrap();
        self.0
    }
}

/// The result, the kernels that ran, and how many steps were in a type.
fn run(model: Model, shape: &[usize], halves: Option<Halves>) -> (Vec<f32>, Vec<String>, usize) {
    let f32 = Properties::new().with("INFERENCE_PRECISION_HINT", "f32").with("PERF_COUNT", "YES");
    let mut compiled = Compiled::new(model, &[], &f32).unwrap();
    let planner = Arc::get_mut(&mut compiled.planner).unwrap();
    planner.backend.half = halves;
    planner.take_plans();
    planner.prepare().unwrap();
    let plans = compiled.planner.last_plans();
    let steps = plans.iter().flat_map(|p| &p.steps);
    let count = steps.filter(|s| halves.is_some_and(|h| s.precision == super::type_of(h))).count();
    let mut request: Box<dyn InferRequest> = Arc::new(compiled).create_request();
    request.set_input(0, numbers(shape, 1.0)).unwrap();
    request.infer().unwrap();
    let kernels = request.profile().into_iter().filter(|p| p.real_time.as_nanos() > 0).map(|p| p.kernel).collect();
    (request.output(0).unwrap().to_vec::<f32>().unwrap().into_owned(), kernels, count)
}

/// In both types beside f32. `wanted` are parts of the names of kernels, with `{}` for the type.
fn check(make: impl Fn() -> Model, shape: &[usize], wanted: &[&str], conversions: usize) {
    let (exact, kernels, _) = run(make(), shape, None);
    assert!(kernels.iter().all(|k| !k.contains("f16")), "{kernels:?}");
    let largest = exact.iter().fold(0f32, |m, x| m.max(x.abs()));
    for (halves, bound) in BOTH {
        let (found, kernels, count) = run(make(), shape, Some(halves));
        assert!(count >= wanted.len(), "{count} steps of {halves:?}");
        for part in wanted.iter().map(|part| part.replace("{}", halves.name())) {
            assert!(kernels.iter().any(|k| k.contains(&part)), "{part} of {halves:?}: {kernels:?}");
        }
        assert_ne!(found, exact);
        for (x, y) in found.iter().zip(&exact) {
            assert!((x - y).abs() <= bound * largest, "{x} {y} of {largest} in {halves:?}");
        }
        let converted = kernels.iter().filter(|k| k.starts_with("convert")).count();
        assert!(converted <= conversions, "{kernels:?}");
    }
}

#[test]
fn convolutions_and_products_are_near_those_in_f32() {
    let shape = [1, 3, 9, 8];
    // A convolution of planes, one of pixels, and a product.
    let net = || {
        let (mut n, x) = Net::new(&shape);
        let a = n.conv(x, [3, 10], 3, 1);
        let a = n.add(Relu, &[a]);
        let b = n.conv(a, [10, 6], 3, 1);
        let rows = n.constant(Tensor::from_slice(&[2], &[6i64, 72]).unwrap());
        let rows = n.add(Reshape { special_zero: false }, &[b, rows]);
        let y = n.product(rows, 72, 5);
        n.done(y)
    };
    check(net, &shape, &["conv_planar_3x3_{}+relu", "conv_", "gemm_{}"], 1);
}

#[test]
fn blocks_of_small_networks_stay_in_16_bits() {
    let shape = [2, 8, 13, 12];
    let net = || {
        let (mut n, x) = Net::new(&shape);
        // Steps of two, pixels alone, channels alone, and groups.
        let a = n.conv(x, [8, 24], 3, 2);
        let a = n.conv(a, [24, 40], 1, 1);
        let a = n.add(Clamp { min: -0.5, max: 2.0 }, &[a]);
        let b = n.groups(a, [40, 1, 1], 3);
        let b = n.add(Swish, &[b]);
        let c = n.groups(b, [4, 10, 10], 3);
        let c = n.add(Add::default(), &[c, a]);
        let pool = MaxPool {
            strides: vec![2; 2],
            dilations: vec![1; 2],
            pads_begin: vec![0; 2],
            pads_end: vec![0; 2],
            kernel: vec![2; 2],
            rounding_type: Rounding::Floor,
            auto_pad: PadType::Explicit,
            index_element_type: ElementType::I64,
            axis: 0,
        };
        let c = n.add(pool, &[c]);
        let d = n.conv(c, [40, 16], 1, 1);
        let joined = n.add(Concat { axis: 1 }, &[d, c]);
        let joined = n.add(Swish, &[joined]);
        let axes = n.constant(Tensor::from_slice(&[2], &[2i64, 3]).unwrap());
        let mean = n.add(ReduceMean { keep_dims: true }, &[joined, axes]);
        let gate = n.conv(mean, [56, 56], 1, 1);
        let y = n.add(Multiply::default(), &[joined, gate]);
        let y = n.conv(y, [56, 12], 1, 1);
        n.done(y)
    };
    let kernels = ["conv_gemm_1_{}+clamp", "conv_depthwise_3x3_{}+swish", "conv_direct_3x3_{}+add", "pool_max_{}"];
    // The input of the model, and a mean a channel.
    check(net, &shape, &kernels, 2);
}

#[test]
fn convolutions_that_floats_do_in_tiles_stay_f32_where_f16_is_widened() {
    let shape = [1, 128, 28, 28];
    let net = || {
        let (mut n, x) = Net::new(&shape);
        let a = n.conv(x, [128, 128], 3, 1);
        let y = n.conv(a, [128, 32], 1, 1);
        n.done(y)
    };
    let (exact, kernels, _) = run(net(), &shape, None);
    let tiles = kernels.iter().any(|k| k.starts_with("conv_winograd_3x3_f32"));
    let (found, kernels, _) = run(net(), &shape, Some(Halves::F16));
    let widened = !Isa::best().has_tiles_of_halves();
    let wanted = if tiles && widened { "conv_winograd_3x3_f32" } else { "conv_direct_3x3_f16" };
    assert!(kernels.iter().any(|k| k.starts_with(wanted)), "{kernels:?}");
    assert!(kernels.iter().any(|k| k.starts_with("conv_gemm_1_f16")), "{kernels:?}");
    let largest = exact.iter().fold(0f32, |m, x| m.max(x.abs()));
    assert!(found.iter().zip(&exact).all(|(x, y)| (x - y).abs() <= 2e-3 * largest));
}

#[test]
fn transposed_convolutions_whose_windows_touch_are_products_of_16_bits() {
    let shape = [1, 16, 7, 9];
    let net = || {
        let (mut n, x) = Net::new(&shape);
        let a = n.conv(x, [16, 20], 1, 1);
        let w = n.weights(&[20, 6, 2, 2]);
        let op = ConvolutionBackpropData {
            strides: vec![2; 2],
            pads_begin: vec![0; 2],
            pads_end: vec![0; 2],
            dilations: vec![1; 2],
            auto_pad: PadType::Explicit,
            output_padding: vec![0; 2],
        };
        let y = n.add(op, &[a, w]);
        let bias = n.weights(&[1, 6, 1, 1]);
        let y = n.add(Add::default(), &[y, bias]);
        n.done(y)
    };
    check(net, &shape, &["deconv_{}", "conv_gemm_1_{}"], 1);
}

#[test]
fn a_layer_of_a_transformer_stays_in_16_bits() {
    for len in [5, 40] {
        let shape = [1, 2, len, 24];
        let net = || {
            let (mut n, x) = Net::new(&shape);
            let parts = [0; 3].map(|_| n.product(x, 24, 24));
            let y = n.add(ScaledDotProductAttention { causal: false }, &parts);
            let y = n.product(y, 24, 24);
            let y = n.add(Add::default(), &[y, x]);
            let axes = n.constant(Tensor::from_slice(&[1], &[-1i64]).unwrap());
            let norm = Mvn { normalize_variance: true, eps: 1e-5, eps_mode: EpsMode::InsideSqrt };
            let y = n.add(norm, &[y, axes]);
            let y = n.product(y, 24, 48);
            let y = n.add(Gelu { approximation_mode: GeluApproximation::Erf }, &[y]);
            let y = n.product(y, 48, 24);
            n.done(y)
        };
        check(net, &shape, &["attention_{}", "gemm_{}+gelu", "gemm_{}+add"], 1);
    }
}
