//! Small networks and numbers for the tests of the device.

#![allow(dead_code, unreachable_pub)]

use carafe_cpu::CpuDevice;
use carafe_device::{CompiledModel, Device, Properties};
use carafe_graph::{Model, Value};
use carafe_ops::activation::{Relu, Softmax, Swish};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::convolution::{Convolution, GroupConvolution};
use carafe_ops::linear::MatMul;
use carafe_ops::movement::{Concat, Reshape};
use carafe_ops::normalization::Mvn;
use carafe_ops::normalization::mvn::EpsMode;
use carafe_ops::pooling::MaxPool;
use carafe_ops::reduce::ReduceMean;
use carafe_tensor::{ElementType, PartialShape, SharedBytes, Tensor};
use std::sync::Arc;

/// Numbers that look random and are the same every time.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    pub fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
    pub fn tensor(&mut self, shape: &[usize]) -> Tensor {
        let data: Vec<f32> = (0..shape.iter().product()).map(|_| self.float()).collect();
        Tensor::from_vec(shape, data).unwrap()
    }
}

pub fn compile(model: &Model, properties: &Properties) -> Arc<dyn CompiledModel> {
    // As `Core` does: devices meet current operations only.
    let newest = carafe_graph::upgraded(model).unwrap();
    // Numbers are compared strictly, unless a test asks for another type.
    let properties = Properties::new().with("INFERENCE_PRECISION_HINT", "f32").overlaid(properties);
    CpuDevice::default().compile(newest.as_ref().unwrap_or(model), &properties).unwrap()
}

/// One inference on the device.
pub fn infer(model: &Model, inputs: &[Tensor], threads: usize) -> Vec<Tensor> {
    let compiled = compile(model, &Properties::new().with("INFERENCE_NUM_THREADS", threads));
    let outputs = compiled.outputs().len();
    let mut request = compiled.create_request();
    inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).unwrap());
    request.infer().unwrap();
    (0..outputs).map(|i| request.output(i).unwrap().clone()).collect()
}

/// Panics unless the device gives what the operations themselves give, within `bound` of the largest number.
pub fn assert_like_eval(model: &Model, inputs: &[Tensor], bound: f32) {
    let expected = model.evaluate(inputs).unwrap();
    for threads in [1, 3] {
        for (k, (a, b)) in infer(model, inputs, threads).iter().zip(&expected).enumerate() {
            assert_eq!((a.element_type(), a.shape()), (b.element_type(), b.shape()));
            let (a, b) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
            let largest = b.iter().filter(|x| x.is_finite()).fold(1e-3f32, |m, x| m.max(x.abs()));
            for (i, (x, y)) in a.iter().zip(b.iter()).enumerate() {
                let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= bound * largest;
                assert!(same, "output {k}, element {i}: {x}, expected {y} (largest {largest}, {threads} threads)");
            }
        }
    }
}

/// Adds a constant of these dimensions.
pub fn weights(m: &mut Model, n: &mut Numbers, shape: &[usize]) -> Value {
    let name = format!("w{}", m.len());
    let scale = 1.0 / (shape.iter().skip(1).product::<usize>().max(1) as f32).sqrt();
    let t = n.tensor(shape);
    let data: Vec<f32> = t.as_slice::<f32>().unwrap().iter().map(|x| x * scale).collect();
    m.constant(&name, Tensor::from_vec(shape, data).unwrap()).unwrap()
}

pub fn ints(m: &mut Model, values: &[i64]) -> Value {
    let name = format!("i{}", m.len());
    m.constant(&name, Tensor::from_slice(&[values.len()], values).unwrap()).unwrap()
}

pub fn conv(m: &mut Model, n: &mut Numbers, x: Value, channels: [usize; 2], k: usize, stride: i64) -> Value {
    let w = weights(m, n, &[channels[1], channels[0], k, k]);
    let name = format!("conv{}", m.len());
    m.add(name, convolution(&[k as i64; 2], stride), &[x, w]).unwrap().into()
}

/// Padded by half of its kernel.
pub fn convolution(kernel: &[i64], stride: i64) -> Convolution {
    let pads: Vec<i64> = kernel.iter().map(|k| k / 2).collect();
    Convolution {
        strides: vec![stride; kernel.len()],
        dilations: vec![1; kernel.len()],
        pads_begin: pads.clone(),
        pads_end: pads,
        auto_pad: PadType::Explicit,
    }
}

/// The same in groups.
pub fn grouped(kernel: &[i64], stride: i64) -> GroupConvolution {
    let Convolution { strides, dilations, pads_begin, pads_end, auto_pad } = convolution(kernel, stride);
    GroupConvolution { strides, dilations, pads_begin, pads_end, auto_pad }
}

/// The same numbers at an address that is none of floats.
pub fn at_odd_address(tensor: &Tensor) -> Tensor {
    let mut bytes = vec![0u8; 1];
    bytes.extend_from_slice(tensor.bytes());
    let store = SharedBytes::from_vec(bytes);
    Tensor::view(tensor.element_type(), tensor.shape(), &store, 1, tensor.byte_len()).unwrap()
}

/// A network with most of what real ones have: layers of every kind, a residual, a gate, a join, a head with rows.
pub fn network(batch: &str) -> Model {
    let mut m = Model::new("net");
    let n = &mut Numbers(7);
    let shape: PartialShape = format!("{batch},3,24,20").parse().unwrap();
    let x = m.parameter("x", ElementType::F32, shape).unwrap();
    let a = conv(&mut m, n, x, [3, 16], 3, 2);
    let bias = weights(&mut m, n, &[1, 16, 1, 1]);
    let a = m.add("bias", Add::default(), &[a, bias]).unwrap().into();
    let a: Value = m.add("relu", Relu, &[a]).unwrap().into();
    let b = conv(&mut m, n, a, [16, 16], 3, 1);
    let b: Value = m.add("residual", Add::default(), &[b, a]).unwrap().into();
    let b: Value = m.add("swish", Swish, &[b]).unwrap().into();
    let w = weights(&mut m, n, &[16, 1, 1, 3, 3]);
    let c: Value = m.add("depthwise", grouped(&[3, 3], 1), &[b, w]).unwrap().into();
    let axes = ints(&mut m, &[2, 3]);
    let mean: Value = m.add("mean", ReduceMean { keep_dims: true }, &[c, axes]).unwrap().into();
    let gate = conv(&mut m, n, mean, [16, 16], 1, 1);
    let c: Value = m.add("gated", Multiply::default(), &[c, gate]).unwrap().into();
    let pool = MaxPool {
        strides: vec![1; 2],
        dilations: vec![],
        pads_begin: vec![1; 2],
        pads_end: vec![1; 2],
        kernel: vec![3; 2],
        rounding_type: Rounding::Floor,
        auto_pad: PadType::Explicit,
        index_element_type: ElementType::I64,
        axis: 0,
    };
    let d: Value = m.add("pool", pool, &[b]).unwrap().into();
    let joined: Value = m.add("joined", Concat { axis: 1 }, &[c, d]).unwrap().into();
    let target = ints(&mut m, &[0, 32, -1]);
    let rows: Value = m.add("rows", Reshape { special_zero: true }, &[joined, target]).unwrap().into();
    let last = ints(&mut m, &[-1]);
    let mvn = Mvn { eps: 1e-5, normalize_variance: true, eps_mode: EpsMode::InsideSqrt };
    let rows: Value = m.add("norm", mvn, &[rows, last]).unwrap().into();
    let w = weights(&mut m, n, &[120, 40]);
    let y: Value = m.add("linear", MatMul { transpose_a: false, transpose_b: false }, &[rows, w]).unwrap().into();
    let y: Value = m.add("softmax", Softmax { axis: -1 }, &[y]).unwrap().into();
    m.add_tensor_name(y, "y");
    m.result("r", y).unwrap();
    m
}
