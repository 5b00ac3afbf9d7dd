//! Products, convolutions, normalizations and their like against the evaluation of the same models, in f32 and with halves in
//! memory. Sizes leave something over in every tile.

use carafe_device::{Device, Properties};
use carafe_graph::{Model, Op, Value};
use carafe_ops::activation::{LogSoftmax, Relu, Softmax};
use carafe_ops::arithmetic::Add;
use carafe_ops::carafe::RmsNorm;
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::convolution::{Convolution, ConvolutionBackpropData, GroupConvolution, GroupConvolutionBackpropData};
use carafe_ops::linear::{MatMul, ScaledDotProductAttention};
use carafe_ops::movement::Transpose;
use carafe_ops::normalization::{Grn, GroupNormalization, Lrn, Mvn, NormalizeL2, mvn, normalize_l2};
use carafe_ops::pooling::{AvgPool, MaxPool};
use carafe_ops::recurrent::{Direction, GruSequence, LstmCell, LstmSequence, RnnSequence};
use carafe_ops::resize::interpolate::ShapeCalculation;
use carafe_ops::resize::{Coordinates, Interpolate, Mode, NearestMode};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::sync::Arc;

fn gpu() -> Arc<dyn Device> {
    let [(_, gpu), _] = carafe_gpu::devices();
    gpu
}

// Numbers between -1 and 1 that look like noise.
fn noise(shape: &[usize], seed: u32) -> Tensor {
    let n: usize = shape.iter().product();
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    Tensor::from_vec(shape, (0..n).map(|_| next()).collect::<Vec<f32>>()).unwrap()
}

/// A model under construction, with the tensors for its inputs.
pub(crate) struct Net {
    pub(crate) model: Model,
    inputs: Vec<Tensor>,
}

impl Net {
    pub(crate) fn new() -> Net {
        Net { model: Model::new("net"), inputs: vec![] }
    }
    pub(crate) fn input(&mut self, shape: &[usize]) -> Value {
        let name = format!("x{}", self.inputs.len());
        self.inputs.push(noise(shape, 7 + self.inputs.len() as u32));
        self.model.parameter(&name, ElementType::F32, PartialShape::of(shape)).unwrap()
    }
    pub(crate) fn weights(&mut self, shape: &[usize]) -> Value {
        let n = self.model.nodes().count();
        self.model.constant(&format!("w{n}"), noise(shape, 100 + n as u32)).unwrap()
    }
    pub(crate) fn constant(&mut self, tensor: Tensor) -> Value {
        let n = self.model.nodes().count();
        self.model.constant(&format!("i{n}"), tensor).unwrap()
    }
    pub(crate) fn ints(&mut self, numbers: &[i64]) -> Value {
        self.constant(Tensor::from_slice(&[numbers.len()], numbers).unwrap())
    }
    pub(crate) fn op(&mut self, op: impl Op + 'static, inputs: &[Value]) -> Value {
        let n = self.model.nodes().count();
        self.model.add(format!("n{n}"), op, inputs).unwrap().into()
    }
    /// Runs it in both precisions; a kernel of this name must have done it.
    pub(crate) fn check(self, kernel: &str, outputs: &[Value]) {
        let Net { mut model, inputs } = self;
        outputs.iter().enumerate().for_each(|(i, v)| {
            model.result(&format!("y{i}"), *v).unwrap();
        });
        model.infer().unwrap();
        let wanted = model.evaluate(&inputs).unwrap();
        for (precision, bound) in [("f32", 2e-5), ("f16", 1e-2)] {
            let properties = Properties::new().with("INFERENCE_PRECISION_HINT", precision).with("PERF_COUNT", true);
            let compiled = gpu().compile(&model, &properties).unwrap();
            let mut request = compiled.create_request();
            for (i, x) in inputs.iter().enumerate() {
                request.set_input(i, x.clone()).unwrap();
            }
            request.infer().unwrap();
            let profile = request.profile();
            let names: Vec<&str> = profile.iter().map(|p| &*p.kernel).collect();
            assert!(names.iter().any(|n| n.contains(kernel)), "no {kernel} among {names:?}");
            for (i, wanted) in wanted.iter().enumerate() {
                let found = request.output(i).unwrap();
                assert_eq!(found.shape(), wanted.shape());
                if wanted.element_type() != ElementType::F32 {
                    assert!(precision == "f16" || found.content_eq(wanted), "output {i} differs");
                    continue;
                }
                let (found, wanted) = (found.as_slice::<f32>().unwrap(), wanted.as_slice::<f32>().unwrap());
                let scale = wanted.iter().fold(1.0f32, |m, x| m.max(x.abs()));
                for (at, (x, y)) in found.iter().zip(wanted).enumerate() {
                    let near = (x - y).abs() <= bound * scale;
                    assert!(near, "{precision}: element {at} of output {i} is {x}, expected {y} ({names:?})");
                }
            }
        }
    }
}

fn product(transpose_a: bool, transpose_b: bool) -> MatMul {
    MatMul { transpose_a, transpose_b }
}

#[test]
fn products_with_weights() {
    for (a, b, ta, tb) in [
        (&[37, 50][..], &[50, 41][..], false, false),
        (&[3, 5, 64], &[48, 64], false, true),
        (&[64, 36], &[64, 24], true, false),
        (&[2, 3, 19, 7], &[1, 3, 7, 10], false, false),
        (&[1, 33], &[33, 5], false, false),
        (&[33], &[33, 5], false, false),
        (&[4, 33], &[33], false, false),
    ] {
        let mut net = Net::new();
        let (x, w) = (net.input(a), net.weights(b));
        let y = net.op(product(ta, tb), &[x, w]);
        net.check("gemm", &[y]);
    }
}

#[test]
fn products_of_computed_operands() {
    for (a, b, ta, tb) in [
        (&[2, 3, 20, 16][..], &[2, 3, 24, 16][..], false, true),
        (&[2, 3, 20, 17], &[3, 17, 9], false, false),
        (&[2, 1, 13, 20], &[4, 13, 8], true, false),
        (&[17], &[2, 17, 9], false, false),
        (&[5, 4], &[4], false, false),
    ] {
        let mut net = Net::new();
        let (x, y) = (net.input(a), net.input(b));
        let z = net.op(product(ta, tb), &[x, y]);
        net.check("gemm", &[z]);
    }
}

#[test]
fn a_product_reads_transposed_operands_where_they_lie() {
    let mut net = Net::new();
    let (x, y) = (net.input(&[2, 9, 3, 16]), net.input(&[2, 11, 3, 16]));
    let order = net.ints(&[0, 2, 1, 3]);
    let (a, b) = (net.op(Transpose, &[x, order]), net.op(Transpose, &[y, order]));
    let z = net.op(product(false, true), &[a, b]);
    net.check("gemm", &[z]);
}

#[test]
fn a_product_adds_bias_and_residual_and_applies_a_function() {
    let mut net = Net::new();
    let (x, w, b) = (net.input(&[2, 21, 40]), net.weights(&[40, 36]), net.weights(&[36]));
    let other = net.input(&[2, 21, 36]);
    let y = net.op(product(false, false), &[x, w]);
    let y = net.op(Add::default(), &[y, b]);
    let y = net.op(Add::default(), &[y, other]);
    let y = net.op(Relu, &[y]);
    net.check("gemm", &[y]);
}

#[test]
fn sums_of_few_rows_are_cut_into_parts_and_joined() {
    let mut net = Net::new();
    let (x, w, b) = (net.input(&[7, 2050]), net.weights(&[2050, 21]), net.weights(&[21]));
    let y = net.op(product(false, false), &[x, w]);
    let y = net.op(Add::default(), &[y, b]);
    let y = net.op(Relu, &[y]);
    net.check("_k", &[y]);
}

#[test]
fn with_a_folder_the_quickest_way_is_measured_once_and_kept() {
    let folder = std::env::temp_dir().join(format!("carafe-choices-{}", std::process::id()));
    let mut net = Net::new();
    let (x, w) = (net.input(&[9, 256]), net.weights(&[256, 20]));
    let y = net.op(product(false, false), &[x, w]);
    let Net { mut model, inputs } = net;
    model.result("y", y).unwrap();
    model.infer().unwrap();
    let wanted = model.evaluate(&inputs).unwrap();
    let properties = Properties::new().with("KERNEL_CACHE_DIR", folder.to_str().unwrap());
    let mut texts = vec![];
    for _ in 0..2 {
        let mut request = gpu().compile(&model, &properties).unwrap().create_request();
        request.set_input(0, inputs[0].clone()).unwrap();
        request.infer().unwrap();
        let (found, wanted) =
            (request.output(0).unwrap().as_slice::<f32>().unwrap(), wanted[0].as_slice::<f32>().unwrap());
        assert!(found.iter().zip(wanted).all(|(x, y)| (x - y).abs() < 1e-4));
        let files = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path());
        let file =
            files.into_iter().find(|f| f.extension().is_some_and(|e| e == "choices")).expect("a file of choices");
        texts.push(std::fs::read_to_string(file).unwrap());
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(texts[0].lines().count(), 2, "{texts:?}");
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn convolutions_with_computed_filters() {
    let mut net = Net::new();
    let (x, w) = (net.input(&[2, 6, 9, 7]), net.input(&[10, 6, 3, 3]));
    let y = net.op(conv(&[1, 1], &[1, 1], &[1, 1]), &[x, w]);
    net.check("conv", &[y]);
}

pub(crate) fn conv(strides: &[i64], pads: &[i64], dilations: &[i64]) -> Convolution {
    let [strides, pads, dilations] = [strides, pads, dilations].map(<[i64]>::to_vec);
    Convolution { strides, pads_begin: pads.clone(), pads_end: pads, dilations, auto_pad: PadType::Explicit }
}

#[test]
fn convolutions_in_one_two_and_three_dimensions() {
    for (data, filters, op) in [
        (&[2, 8, 11, 9][..], &[12, 8, 3, 3][..], conv(&[1, 1], &[1, 1], &[1, 1])),
        (&[1, 3, 23, 21], &[10, 3, 7, 7], conv(&[2, 2], &[3, 3], &[1, 1])),
        (&[2, 16, 10, 6], &[20, 16, 1, 1], conv(&[1, 1], &[0, 0], &[1, 1])),
        (&[1, 7, 10, 6], &[5, 7, 1, 1], conv(&[2, 2], &[0, 0], &[1, 1])),
        (&[1, 6, 15, 14], &[9, 6, 3, 2], conv(&[1, 2], &[2, 1], &[2, 3])),
        (&[2, 5, 19], &[7, 5, 4], conv(&[3], &[2], &[1])),
        (&[1, 4, 6, 7, 5], &[8, 4, 3, 3, 3], conv(&[1, 2, 1], &[1, 1, 1], &[1, 1, 1])),
    ] {
        let mut net = Net::new();
        let (x, w) = (net.input(data), net.weights(filters));
        let y = net.op(op, &[x, w]);
        net.check("conv", &[y]);
    }
}

#[test]
fn a_convolution_adds_bias_and_residual_and_applies_a_function() {
    let mut net = Net::new();
    let (x, w, b) = (net.input(&[2, 8, 7, 7]), net.weights(&[16, 8, 3, 3]), net.weights(&[1, 16, 1, 1]));
    let w2 = net.weights(&[16, 16, 1, 1]);
    let y = net.op(conv(&[1, 1], &[1, 1], &[1, 1]), &[x, w]);
    let y = net.op(Add::default(), &[y, b]);
    let y = net.op(Relu, &[y]);
    let z = net.op(conv(&[1, 1], &[0, 0], &[1, 1]), &[y, w2]);
    let z = net.op(Add::default(), &[z, y]);
    let z = net.op(Relu, &[z]);
    net.check("conv", &[z]);
}

#[test]
fn convolutions_in_groups_and_by_channel() {
    for (data, filters) in [
        (&[2, 8, 9, 8][..], &[2, 6, 4, 3, 3][..]),
        (&[1, 10, 9, 8], &[10, 1, 1, 3, 3]),
        (&[1, 5, 9, 8], &[5, 2, 1, 3, 3]),
    ] {
        let mut net = Net::new();
        let (x, w) = (net.input(data), net.weights(filters));
        let c = conv(&[1, 1], &[1, 1], &[1, 1]);
        let op = GroupConvolution {
            strides: c.strides,
            pads_begin: c.pads_begin,
            pads_end: c.pads_end,
            dilations: c.dilations,
            auto_pad: c.auto_pad,
        };
        let y = net.op(op, &[x, w]);
        net.check("conv", &[y]);
    }
}

#[test]
fn transposed_convolutions() {
    for (data, filters, stride, pad, extra) in [
        (&[2, 8, 5, 6][..], &[8, 12, 4, 4][..], 2, 1, 0),
        (&[1, 5, 4, 7], &[5, 3, 3, 3], 2, 1, 1),
        (&[1, 4, 4, 7], &[4, 8, 2, 2], 2, 0, 0),
    ] {
        let mut net = Net::new();
        let (x, w) = (net.input(data), net.weights(filters));
        let two = |n: i64| vec![n; 2];
        let op = ConvolutionBackpropData {
            strides: two(stride),
            pads_begin: two(pad),
            pads_end: two(pad),
            dilations: two(1),
            auto_pad: PadType::Explicit,
            output_padding: two(extra),
        };
        let y = net.op(op, &[x, w]);
        net.check("deconv", &[y]);
    }
    let mut net = Net::new();
    let (x, w) = (net.input(&[1, 6, 5, 4]), net.weights(&[3, 2, 4, 3, 3]));
    let two = |n: i64| vec![n; 2];
    let op = GroupConvolutionBackpropData {
        strides: two(2),
        pads_begin: two(1),
        pads_end: two(1),
        dilations: two(1),
        auto_pad: PadType::Explicit,
        output_padding: two(0),
    };
    let y = net.op(op, &[x, w]);
    net.check("deconv", &[y]);
}

#[test]
fn pools() {
    let two = |n: i64| vec![n; 2];
    let largest = MaxPool {
        strides: two(2),
        dilations: two(1),
        pads_begin: two(1),
        pads_end: two(1),
        kernel: two(3),
        rounding_type: Rounding::Ceil,
        auto_pad: PadType::Explicit,
        index_element_type: ElementType::I64,
        axis: 0,
    };
    let mut net = Net::new();
    let x = net.input(&[2, 5, 9, 10]);
    let node = net.model.add("pool", largest, &[x]).unwrap();
    let both = [Value::from(node), Value { node, port: 1 }];
    net.check("pool_max", &both);
    for exclude_pad in [false, true] {
        let mut net = Net::new();
        let (x, w) = (net.input(&[2, 5, 9, 10]), net.weights(&[6, 5, 1, 1]));
        let y = net.op(conv(&[1, 1], &[0, 0], &[1, 1]), &[x, w]);
        let mean = AvgPool {
            strides: two(2),
            dilations: two(1),
            pads_begin: two(1),
            pads_end: two(0),
            kernel: two(3),
            exclude_pad,
            auto_pad: PadType::Explicit,
            rounding_type: Rounding::Floor,
        };
        let y = net.op(mean, &[y]);
        net.check("pool_mean", &[y]);
    }
}

#[test]
fn softmax_over_any_axis() {
    for axis in [0, 1, 2, -1] {
        let mut net = Net::new();
        let x = net.input(&[3, 40, 5, 70]);
        let y = net.op(Softmax { axis }, &[x]);
        let z = net.op(LogSoftmax { axis }, &[x]);
        net.check("softmax", &[y, z]);
    }
}

#[test]
fn normalizations_over_sets_of_axes() {
    for axes in [&[-1][..], &[2, 3], &[1, 2, 3], &[1], &[1, 3]] {
        let mut net = Net::new();
        let x = net.input(&[2, 6, 5, 33]);
        let list = net.ints(axes);
        let mode = mvn::EpsMode::InsideSqrt;
        let y = net.op(Mvn { eps: 1e-5, normalize_variance: true, eps_mode: mode }, &[x, list]);
        let mode = normalize_l2::EpsMode::Add;
        let z = net.op(NormalizeL2 { eps: 1e-5, eps_mode: mode }, &[x, list]);
        net.check("mvn", &[y, z]);
    }
}

#[test]
fn a_layer_norm_has_factor_and_term_inside() {
    let mut net = Net::new();
    let (x, gamma, beta) = (net.input(&[2, 7, 96]), net.weights(&[96]), net.weights(&[96]));
    let axes = net.ints(&[-1]);
    let mode = mvn::EpsMode::InsideSqrt;
    let y = net.op(Mvn { eps: 1e-5, normalize_variance: true, eps_mode: mode }, &[x, axes]);
    let y = net.op(carafe_ops::arithmetic::Multiply::default(), &[y, gamma]);
    let y = net.op(Add::default(), &[y, beta]);
    net.check("+multiply+add", &[y]);
}

#[test]
fn other_normalizations() {
    let mut net = Net::new();
    let x = net.input(&[2, 6, 5, 7]);
    let (one, last, gamma) = (net.ints(&[1]), net.ints(&[-1]), net.weights(&[7]));
    let (scale, bias) = (net.weights(&[6]), net.weights(&[6]));
    let a = net.op(Grn { bias: 0.1 }, &[x]);
    let b = net.op(Lrn { alpha: 0.3, beta: 0.75, bias: 1.0, size: 3 }, &[x, one]);
    let c = net.op(RmsNorm { eps: 1e-5 }, &[x, last, gamma]);
    let d = net.op(GroupNormalization { num_groups: 3, epsilon: 1e-5 }, &[x, scale, bias]);
    net.check("group_norm", &[a, b, c, d]);
}

#[test]
fn attention_with_masks_and_causal() {
    for (shape, keys, causal) in [([2, 3, 37, 24], 37, false), ([1, 2, 70, 64], 45, false), ([1, 2, 50, 40], 50, true)]
    {
        let mut net = Net::new();
        let [b, h, s, d] = shape;
        let (q, k, v) = (net.input(&shape), net.input(&[b, h, keys, d]), net.input(&[b, h, keys, d]));
        let mut inputs = vec![q, k, v];
        if !causal {
            inputs.push(net.input(&[b, 1, s, keys]));
        }
        let y = net.op(ScaledDotProductAttention { causal }, &inputs);
        net.check("attention", &[y]);
    }
}

#[test]
fn resizing() {
    for mode in [Mode::Nearest, Mode::Linear, Mode::LinearOnnx, Mode::Cubic] {
        let mut net = Net::new();
        let x = net.input(&[2, 3, 6, 7]);
        let (sizes, axes) = (net.ints(&[13, 5]), net.ints(&[2, 3]));
        let op = Interpolate {
            mode,
            shape_calculation_mode: ShapeCalculation::Sizes,
            coordinate_transformation_mode: Coordinates::HalfPixel,
            nearest_mode: NearestMode::RoundPreferFloor,
            antialias: false,
            pads_begin: vec![0],
            pads_end: vec![0],
            cube_coeff: -0.75,
        };
        let y = net.op(op, &[x, sizes, axes]);
        net.check("resize", &[y]);
    }
}

#[test]
fn recurrent_networks() {
    let names = |list: &[&str]| list.iter().map(|s| s.to_string()).collect::<Vec<_>>();
    let (batch, time, input, hidden) = (3, 5, 12, 37);
    for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
        let d = if direction == Direction::Bidirectional { 2 } else { 1 };
        let mut net = Net::new();
        let x = net.input(&[batch, time, input]);
        let (h, c) = (net.input(&[batch, d, hidden]), net.input(&[batch, d, hidden]));
        let lengths = net.ints(&[5, 2, 0]);
        let mut weights = |gates: usize, blocks: usize| {
            [&[d, gates * hidden, input][..], &[d, gates * hidden, hidden], &[d, blocks * hidden]]
                .map(|s| net.weights(s))
        };
        let (lstm, gru, reset, rnn) = (weights(4, 4), weights(3, 3), weights(3, 4), weights(1, 1));
        let size = hidden as u64;
        let op = LstmSequence {
            hidden_size: size,
            direction,
            activations: names(&["sigmoid", "tanh", "tanh"]),
            activations_alpha: vec![],
            activations_beta: vec![],
            clip: 0.0,
        };
        let [w, r, b] = lstm;
        let node = net.model.add("lstm", op, &[x, h, c, lengths, w, r, b]).unwrap();
        let mut outputs: Vec<Value> = (0..3).map(|port| Value { node, port }).collect();
        for (i, (weights, linear_before_reset)) in [(gru, false), (reset, true)].into_iter().enumerate() {
            let op = GruSequence {
                hidden_size: size,
                direction,
                linear_before_reset,
                activations: names(&["sigmoid", "tanh"]),
                activations_alpha: vec![],
                activations_beta: vec![],
                clip: 0.7,
            };
            let [w, r, b] = weights;
            let node = net.model.add(format!("gru{i}"), op, &[x, h, lengths, w, r, b]).unwrap();
            outputs.extend((0..2).map(|port| Value { node, port }));
        }
        let op = RnnSequence {
            hidden_size: size,
            direction,
            activations: names(&["relu"]),
            activations_alpha: vec![],
            activations_beta: vec![],
            clip: 0.0,
        };
        let [w, r, b] = rnn;
        let node = net.model.add("rnn", op, &[x, h, lengths, w, r, b]).unwrap();
        outputs.extend((0..2).map(|port| Value { node, port }));
        net.check("lstm_sequence", &outputs);
    }
    let mut net = Net::new();
    let (x, h, c) = (net.input(&[2, 10]), net.input(&[2, 9]), net.input(&[2, 9]));
    let (w, r, b) = (net.weights(&[36, 10]), net.weights(&[36, 9]), net.weights(&[36]));
    let op = LstmCell {
        hidden_size: 9,
        activations: names(&["sigmoid", "tanh", "tanh"]),
        activations_alpha: vec![],
        activations_beta: vec![],
        clip: 0.0,
    };
    let node = net.model.add("cell", op, &[x, h, c, w, r, b]).unwrap();
    net.check("lstm_cell", &[Value { node, port: 0 }, Value { node, port: 1 }]);
}
