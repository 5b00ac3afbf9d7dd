//! Times of whole inferences on the first OpenCL device: a product of matrices, ResNet-50 with folded normalization, the encoder
//! of BERT-base. Values are made on the device, so that what is timed is kernels and launches and not the way to the host.
//!
//!     cargo bench -p carafe-gpu --bench networks [-- [profile] WORD..]
//!
//! Each line is a JSON object; only networks are run whose name has all words, such as `resnet50 f16`. `profile` adds the time of
//! every kernel by the device's own clock. `scripts/bench-gpu` puts the times beside PyTorch's.

use carafe_device::{CompiledModel, InferRequest, Properties};
use carafe_graph::{Model, Op, Value};
use carafe_ops::activation::Relu;
use carafe_ops::activation::gelu::{Gelu, GeluApproximation};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::convolution::Convolution;
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::linear::{MatMul, ScaledDotProductAttention};
use carafe_ops::movement::{Reshape, Transpose};
use carafe_ops::normalization::{Mvn, mvn};
use carafe_ops::pooling::MaxPool;
use carafe_ops::reduce::ReduceMean;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Inferences before the clock runs, and those that it runs for at least.
const WARM: usize = 5;
const RUNS: usize = 20;
const LEAST: Duration = Duration::from_millis(300);

struct Net(Model);

impl Net {
    /// A network over values of this shape, made of one number and a constant.
    fn over(shape: &[usize]) -> (Net, Value) {
        let mut net = Net(Model::new("net"));
        let number = net.0.parameter("x", ElementType::F32, PartialShape::of(&[1])).expect("a parameter");
        let values = net.weights(shape, 1.0);
        let x = net.op(Add::default(), &[number, values]);
        (net, x)
    }
    fn name(&self) -> String {
        format!("n{}", self.0.nodes().count())
    }
    fn weights(&mut self, shape: &[usize], scale: f32) -> Value {
        let n: usize = shape.iter().product();
        let mut state = self.0.nodes().count() as u32;
        let numbers = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * scale
        });
        let tensor = Tensor::from_vec(shape, numbers.take(n).collect::<Vec<f32>>()).expect("a tensor");
        let name = self.name();
        self.0.constant(&name, tensor).expect("a constant")
    }
    fn ints(&mut self, numbers: &[i64]) -> Value {
        let name = self.name();
        self.0.constant(&name, Tensor::from_slice(&[numbers.len()], numbers).expect("a tensor")).expect("a constant")
    }
    fn op(&mut self, op: impl Op + 'static, inputs: &[Value]) -> Value {
        let name = self.name();
        self.0.add(&name, op, inputs).expect("a node").into()
    }
    fn linear(&mut self, x: Value, from: usize, to: usize) -> Value {
        let (w, b) = (self.weights(&[from, to], (3.0 / from as f32).sqrt()), self.weights(&[to], 0.1));
        let y = self.op(MatMul { transpose_a: false, transpose_b: false }, &[x, w]);
        self.op(Add::default(), &[y, b])
    }
    fn conv(&mut self, x: Value, [from, to, kernel, stride, pad]: [usize; 5]) -> Value {
        let w = self.weights(&[to, from, kernel, kernel], (3.0 / (from * kernel * kernel) as f32).sqrt());
        let b = self.weights(&[1, to, 1, 1], 0.1);
        let two = |n: usize| vec![n as i64; 2];
        let op = Convolution {
            strides: two(stride),
            pads_begin: two(pad),
            pads_end: two(pad),
            dilations: two(1),
            auto_pad: PadType::Explicit,
        };
        let y = self.op(op, &[x, w]);
        self.op(Add::default(), &[y, b])
    }
    fn reshape(&mut self, x: Value, shape: &[i64]) -> Value {
        let shape = self.ints(shape);
        self.op(Reshape { special_zero: false }, &[x, shape])
    }
    fn mean(&mut self, x: Value, axes: &[i64], keep_dims: bool) -> Value {
        let axes = self.ints(axes);
        self.op(ReduceMean { keep_dims }, &[x, axes])
    }
    fn layer_norm(&mut self, x: Value, size: usize) -> Value {
        let (axes, gamma, beta) = (self.ints(&[-1]), self.weights(&[size], 1.0), self.weights(&[size], 0.1));
        let eps_mode = mvn::EpsMode::InsideSqrt;
        let y = self.op(Mvn { eps: 1e-5, normalize_variance: true, eps_mode }, &[x, axes]);
        let y = self.op(Multiply::default(), &[y, gamma]);
        self.op(Add::default(), &[y, beta])
    }
    fn done(mut self, y: Value) -> Model {
        self.0.result("y", y).expect("a result");
        self.0.infer().expect("a network that fits together");
        self.0
    }
}

fn gemm(n: usize) -> Model {
    let (mut net, x) = Net::over(&[n, n]);
    let w = net.weights(&[n, n], 1.0);
    let y = net.op(MatMul { transpose_a: false, transpose_b: false }, &[x, w]);
    let y = net.mean(y, &[0], false);
    net.done(y)
}

fn resnet50(batch: usize) -> Model {
    let (mut net, x) = Net::over(&[batch, 3, 224, 224]);
    let y = net.conv(x, [3, 64, 7, 2, 3]);
    let y = net.op(Relu, &[y]);
    let two = |n: i64| vec![n; 2];
    let pool = MaxPool {
        strides: two(2),
        dilations: two(1),
        pads_begin: two(1),
        pads_end: two(1),
        kernel: two(3),
        rounding_type: Rounding::Floor,
        auto_pad: PadType::Explicit,
        index_element_type: ElementType::I64,
        axis: 0,
    };
    let (mut x, mut channels) = (net.op(pool, &[y]), 64);
    for (middle, blocks, stride) in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)] {
        for block in 0..blocks {
            let stride = if block == 0 { stride } else { 1 };
            let wide = 4 * middle;
            let y = net.conv(x, [channels, middle, 1, 1, 0]);
            let y = net.op(Relu, &[y]);
            let y = net.conv(y, [middle, middle, 3, stride, 1]);
            let y = net.op(Relu, &[y]);
            let y = net.conv(y, [middle, wide, 1, 1, 0]);
            let other = if block == 0 { net.conv(x, [channels, wide, 1, stride, 0]) } else { x };
            let y = net.op(Add::default(), &[y, other]);
            x = net.op(Relu, &[y]);
            channels = wide;
        }
    }
    let y = net.mean(x, &[2, 3], false);
    let y = net.linear(y, 2048, 1000);
    net.done(y)
}

fn bert(batch: usize) -> Model {
    let (size, heads, tokens) = (768, 12, 128);
    let (mut net, mut x) = Net::over(&[batch, tokens, size]);
    let split = [batch, tokens, heads, size / heads].map(|n| n as i64);
    let whole = [batch, tokens, size].map(|n| n as i64);
    for _ in 0..12 {
        let order = net.ints(&[0, 2, 1, 3]);
        let parts = [(); 3].map(|()| {
            let y = net.linear(x, size, size);
            let y = net.reshape(y, &split);
            net.op(Transpose, &[y, order])
        });
        let y = net.op(ScaledDotProductAttention { causal: false }, &parts);
        let y = net.op(Transpose, &[y, order]);
        let y = net.reshape(y, &whole);
        let y = net.linear(y, size, size);
        let y = net.op(Add::default(), &[y, x]);
        let y = net.layer_norm(y, size);
        let z = net.linear(y, size, 4 * size);
        let z = net.op(Gelu { approximation_mode: GeluApproximation::Erf }, &[z]);
        let z = net.linear(z, 4 * size, size);
        let z = net.op(Add::default(), &[z, y]);
        x = net.layer_norm(z, size);
    }
    let y = net.mean(x, &[1], false);
    net.done(y)
}

fn request(compiled: &Arc<dyn CompiledModel>) -> Box<dyn InferRequest> {
    let mut request = compiled.clone().create_request();
    request.set_input(0, Tensor::from_slice(&[1], &[0.1f32]).expect("a tensor")).expect("an input");
    for _ in 0..WARM {
        request.infer().expect("an inference");
    }
    request
}

fn median(request: &mut dyn InferRequest) -> f64 {
    let (mut times, start) = (vec![], Instant::now());
    while times.len() < RUNS || start.elapsed() < LEAST {
        let begin = Instant::now();
        request.infer().expect("an inference");
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

// Milliseconds of each kernel by the device's clock, and how often it ran.
fn kernels(request: &mut dyn InferRequest) -> BTreeMap<String, (f64, usize)> {
    request.infer().expect("an inference");
    let mut sums: BTreeMap<String, (f64, usize)> = BTreeMap::new();
    for node in request.profile().iter().filter(|n| !n.real_time.is_zero()) {
        let sum = sums.entry(node.kernel.to_string()).or_default();
        *sum = (sum.0 + node.real_time.as_secs_f64() * 1e3, sum.1 + 1);
    }
    sums
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let profiled = words.iter().any(|w| w == "profile");
    let [(_, device), _] = carafe_gpu::devices();
    let name = device.metric("FULL_DEVICE_NAME").expect("an OpenCL device");
    println!("{{\"device\": {name:?}}}");
    let networks: [(&str, &dyn Fn() -> Model); 6] = [
        ("gemm 1024", &|| gemm(1024)),
        ("gemm 4096", &|| gemm(4096)),
        ("resnet50 batch 1", &|| resnet50(1)),
        ("resnet50 batch 32", &|| resnet50(32)),
        ("bert batch 1", &|| bert(1)),
        ("bert batch 32", &|| bert(32)),
    ];
    for (network, model) in networks {
        for precision in ["f32", "f16"] {
            let name = format!("{network} {precision}");
            let asked = |w: &String| w == "profile" || name.split(' ').any(|own| own == w);
            if !words.iter().all(asked) {
                continue;
            }
            let model = model();
            let properties = Properties::new().with("INFERENCE_PRECISION_HINT", precision);
            let start = Instant::now();
            let compiled = device.compile(&model, &properties).expect("a compiled model");
            let load = start.elapsed().as_secs_f64();
            let mut timed = request(&compiled);
            let ms = median(&mut *timed);
            let counting = properties.clone().with("PERF_COUNT", true);
            let mut counted = request(&device.compile(&model, &counting).expect("a compiled model"));
            let by_kernel = kernels(&mut *counted);
            let busy: f64 = by_kernel.values().map(|(ms, _)| ms).sum();
            let product: f64 = by_kernel.iter().filter(|(k, _)| k.starts_with("gemm")).map(|(_, (ms, _))| ms).sum();
            println!(
                "{{\"name\": {name:?}, \"ms\": {ms:.4}, \"busy_ms\": {busy:.4}, \"gemm_ms\": {product:.4}, \"load_s\": {load:.2}}}"
            );
            if profiled {
                let mut list: Vec<_> = by_kernel.into_iter().collect();
                list.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
                list.iter().for_each(|(kernel, (ms, count))| println!("    {ms:8.4} ms {count:4} x {kernel}"));
            }
        }
    }
}
