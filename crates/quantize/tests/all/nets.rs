//! Models and data for the tests.

use carafe::ops::activation::{Relu, Softmax};
use carafe::ops::arithmetic::Add;
use carafe::ops::convolution::window::PadType;
use carafe::ops::convolution::{Convolution, GroupConvolution};
use carafe::ops::linear::MatMul;
use carafe::ops::movement::Transpose;
use carafe::ops::reduce::ReduceMean;
use carafe::quantize::Samples;
use carafe::{ElementType, Model, PartialShape, Result, Tensor, Value};

/// Numbers between -1 and 1 that look random and are always the same.
pub(crate) fn noise(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

pub(crate) struct List(pub Vec<Vec<Tensor>>);

impl Samples for List {
    fn count(&self) -> usize {
        self.0.len()
    }
    fn sample(&self, index: usize) -> Result<Vec<Tensor>> {
        Ok(self.0[index].clone())
    }
}

pub(crate) fn samples(shape: &[usize], n: u64) -> List {
    let len = shape.iter().product();
    List((0..n).map(|i| vec![Tensor::from_vec(shape, noise(len, 100 + i)).unwrap()]).collect())
}

pub(crate) fn weights(m: &mut Model, name: &str, shape: &[usize], seed: u64) -> Value {
    let len = shape.iter().product();
    m.constant(name, Tensor::from_vec(shape, noise(len, seed)).unwrap()).unwrap()
}

pub(crate) fn conv(m: &mut Model, name: &str, x: Value, w: Value, pad: i64) -> Value {
    let op = Convolution {
        strides: vec![1, 1],
        pads_begin: vec![pad, pad],
        pads_end: vec![pad, pad],
        dilations: vec![1, 1],
        auto_pad: PadType::Explicit,
    };
    m.add(name, op, &[x, w]).unwrap().into()
}

pub(crate) fn biased(m: &mut Model, name: &str, x: Value, channels: usize, seed: u64) -> Value {
    let b = weights(m, &format!("{name}/b"), &[1, channels, 1, 1], seed);
    m.add(name, Add::default(), &[x, b]).unwrap().into()
}

pub(crate) fn relu(m: &mut Model, name: &str, x: Value) -> Value {
    m.add(name, Relu {}, &[x]).unwrap().into()
}

pub(crate) fn matmul(m: &mut Model, name: &str, x: Value, w: Value, transpose_b: bool) -> Value {
    m.add(name, MatMul { transpose_a: false, transpose_b }, &[x, w]).unwrap().into()
}

/// A residual block of a normal and a depthwise convolution, its average, and a product.
pub(crate) fn block() -> Model {
    let mut m = Model::new("block");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 8, 8])).unwrap();
    let w = weights(&mut m, "w1", &[8, 3, 3, 3], 1);
    let mut y = conv(&mut m, "conv1", x, w, 1);
    y = biased(&mut m, "bias1", y, 8, 2);
    let shortcut = relu(&mut m, "relu1", y);
    let w = weights(&mut m, "w2", &[8, 1, 1, 3, 3], 3);
    let op = GroupConvolution {
        strides: vec![1, 1],
        pads_begin: vec![1, 1],
        pads_end: vec![1, 1],
        dilations: vec![1, 1],
        auto_pad: PadType::Explicit,
    };
    y = m.add("depthwise", op, &[shortcut, w]).unwrap().into();
    y = biased(&mut m, "bias2", y, 8, 4);
    y = m.add("sum", Add::default(), &[shortcut, y]).unwrap().into();
    y = relu(&mut m, "relu2", y);
    let w = weights(&mut m, "w3", &[4, 8, 1, 1], 5);
    y = conv(&mut m, "conv3", y, w, 0);
    let axes = m.constant("axes", Tensor::from_slice(&[2], &[2i64, 3]).unwrap()).unwrap();
    y = m.add("mean", ReduceMean { keep_dims: false }, &[y, axes]).unwrap().into();
    let w = weights(&mut m, "w4", &[5, 4], 6);
    y = matmul(&mut m, "product", y, w, true);
    m.result("r", y).unwrap();
    m
}

/// Attention over three products of one value, some of whose channels are far larger than others.
pub(crate) fn attention() -> Model {
    let mut m = Model::new("attention");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 6, 16])).unwrap();
    let large: Vec<f32> = (0..16).map(|i| if i % 5 == 0 { 60.0 } else { 1.0 }).collect();
    let large = m.constant("gain", Tensor::from_slice(&[16], &large).unwrap()).unwrap();
    let x = m.add("wide", carafe::ops::arithmetic::Multiply::default(), &[x, large]).unwrap().into();
    let [q, k, v] = [("q", 1), ("k", 2), ("v", 3)].map(|(name, seed)| {
        // Channels that are large meet small weights.
        let mut w = noise(16 * 16, seed);
        w.iter_mut().enumerate().for_each(|(i, w)| *w *= if i % 16 % 5 == 0 { 0.01 } else { 0.5 });
        let w = m.constant(&format!("{name}/w"), Tensor::from_vec(&[16, 16], w).unwrap()).unwrap();
        matmul(&mut m, name, x, w, true)
    });
    let order = m.constant("order", Tensor::from_slice(&[3], &[0i64, 2, 1]).unwrap()).unwrap();
    let k = m.add("turned", Transpose {}, &[k, order]).unwrap().into();
    let scores = matmul(&mut m, "scores", q, k, false);
    let shares = m.add("shares", Softmax { axis: -1 }, &[scores]).unwrap().into();
    let y = matmul(&mut m, "mixed", shares, v, false);
    m.result("r", y).unwrap();
    m
}

/// How many nodes of a type there are.
pub(crate) fn count(m: &Model, type_name: &str) -> usize {
    m.nodes().filter(|(_, n)| n.op().type_name() == type_name).count()
}
