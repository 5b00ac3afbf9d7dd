//! Values that lie inside of others: random nets of concatenations, splits, slices and residuals against the evaluation.

use crate::nets::{Numbers, assert_like_eval, conv, ints, weights};
use carafe_graph::{Model, Value};
use carafe_ops::activation::{Relu, Sigmoid, Softmax};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::convolution::GroupConvolution;
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::movement::{Concat, Reshape, Slice, Split, Transpose, VariadicSplit};
use carafe_ops::pooling::MaxPool;
use carafe_tensor::{ElementType, PartialShape, Tensor};

/// A value of `batch, channels, height, width`.
#[derive(Clone, Copy)]
struct Image {
    value: Value,
    channels: usize,
    height: usize,
}

struct Net {
    model: Model,
    images: Vec<Image>,
    width: usize,
}

impl Net {
    fn pick(&self, n: &mut Numbers) -> Image {
        // Rather the later ones, so that nets grow deep.
        let i = n.below(self.images.len()).max(n.below(self.images.len()));
        self.images[i]
    }

    fn push(&mut self, value: impl Into<Value>, like: Image, channels: usize) {
        self.images.push(Image { value: value.into(), channels, ..like });
    }

    fn like(&self, n: &mut Numbers, same: impl Fn(&Image) -> bool) -> Image {
        let fit: Vec<Image> = self.images.iter().copied().filter(same).collect();
        fit[n.below(fit.len())]
    }

    fn axis(&mut self, axis: i64) -> Value {
        let name = format!("axis{}", self.model.len());
        self.model.constant(&name, Tensor::scalar(axis)).unwrap()
    }

    fn grow(&mut self, n: &mut Numbers) {
        let x = self.pick(n);
        let name = format!("op{}", self.model.len());
        match n.below(14) {
            0 | 1 => {
                let (out, k) = (1 + n.below(20), [1, 1, 3][n.below(3)]);
                let y = conv(&mut self.model, n, x.value, [x.channels, out], k, 1);
                self.push(y, x, out);
            }
            2 => {
                let y = conv(&mut self.model, n, x.value, [x.channels, x.channels], 3, 1);
                let other = self.like(n, |i| i.channels == x.channels && i.height == x.height);
                let y = self.model.add(name, Add::default(), &[y, other.value]).unwrap();
                self.push(y, x, x.channels);
            }
            3 => {
                let w = weights(&mut self.model, n, &[x.channels, 1, 1, 3, 3]);
                let (pads_begin, pads_end, strides, dilations) = (vec![1; 2], vec![1; 2], vec![1; 2], vec![1; 2]);
                let op = GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad: PadType::Explicit };
                let y = self.model.add(name, op, &[x.value, w]).unwrap();
                self.push(y, x, x.channels);
            }
            4 => {
                let op = MaxPool {
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
                let y = self.model.add(name, op, &[x.value]).unwrap();
                self.push(y, x, x.channels);
            }
            5 => {
                let y = self.model.add(name, Relu, &[x.value]).unwrap();
                self.push(y, x, x.channels);
            }
            6 => {
                let other = self.like(n, |i| i.channels == x.channels && i.height == x.height);
                let y: Value =
                    self.model.add(name.clone(), Multiply::default(), &[x.value, other.value]).unwrap().into();
                let y = self.model.add(name + "s", Sigmoid, &[y]).unwrap();
                self.push(y, x, x.channels);
            }
            7..=9 => {
                let mut parts = vec![x];
                (0..1 + n.below(3)).for_each(|_| parts.push(self.like(n, |i| i.height == x.height)));
                let values: Vec<Value> = parts.iter().map(|p| p.value).collect();
                let y = self.model.add(name, Concat { axis: 1 }, &values).unwrap();
                self.push(y, x, parts.iter().map(|p| p.channels).sum());
            }
            10 if x.channels > 1 => {
                let first = 1 + n.below(x.channels - 1);
                let axis = self.axis(1);
                let lengths = ints(&mut self.model, &[first as i64, (x.channels - first) as i64]);
                let node = self.model.add(name, VariadicSplit, &[x.value, axis, lengths]).unwrap();
                self.push(Value { node, port: 0 }, x, first);
                self.push(Value { node, port: 1 }, x, x.channels - first);
            }
            11 => {
                // Along the height: ranges of bytes where the batch is 1.
                let other = self.like(n, |i| i.channels == x.channels);
                let y = self.model.add(name, Concat { axis: 2 }, &[x.value, other.value]).unwrap();
                self.images.push(Image { value: y.into(), height: x.height + other.height, ..x });
            }
            12 if x.height > 2 => {
                let (start, stop) = (ints(&mut self.model, &[1]), ints(&mut self.model, &[x.height as i64 - 1]));
                let (step, axes) = (ints(&mut self.model, &[1]), ints(&mut self.model, &[2]));
                let y = self.model.add(name, Slice, &[x.value, start, stop, step, axes]).unwrap();
                self.images.push(Image { value: y.into(), height: x.height - 2, ..x });
            }
            _ => {
                // There and back through another shape.
                let (a, b) =
                    (ints(&mut self.model, &[0, 0, -1]), ints(&mut self.model, &[0, 0, -1, self.width as i64]));
                let reshape = Reshape { special_zero: true };
                let y: Value = self.model.add(name.clone(), reshape.clone(), &[x.value, a]).unwrap().into();
                let y: Value = self.model.add(name.clone() + "m", Softmax { axis: 1 }, &[y]).unwrap().into();
                let y = self.model.add(name + "b", reshape, &[y, b]).unwrap();
                self.push(y, x, x.channels);
            }
        }
    }
}

fn net(n: &mut Numbers, batch: &str) -> Net {
    let mut model = Model::new("net");
    let (height, width, channels) = (3 + n.below(6), 4 + n.below(6), 5 + n.below(12));
    let shape: PartialShape = format!("{batch},{channels},{height},{width}").parse().unwrap();
    let value = model.parameter("x", ElementType::F32, shape).unwrap();
    let mut net = Net { model, images: vec![Image { value, channels, height }], width };
    for _ in 0..4 + n.below(16) {
        net.grow(n);
    }
    // The last value and up to two others are handed out.
    let last = net.images[net.images.len() - 1];
    net.model.result("last", last.value).unwrap();
    for k in 0..n.below(3) {
        let image = net.pick(n);
        net.model.result(&format!("r{k}"), image.value).unwrap();
    }
    net
}

fn check(seed: u64, count: usize, batch: &str, batches: &[usize]) {
    let n = &mut Numbers(seed);
    for _ in 0..count {
        let net = net(n, batch);
        let x = net.images[0];
        for &batch in batches {
            let input = n.tensor(&[batch, x.channels, x.height, net.width]);
            assert_like_eval(&net.model, &[input], 1e-4);
        }
    }
}

#[test]
fn random_nets_of_one_image_agree_with_their_evaluation() {
    check(0x9e37_79b9_7f4a_7c15, 150, "1", &[1]);
}

#[test]
fn random_nets_of_two_images_agree_with_their_evaluation() {
    check(0x1234_5678_1234_5671, 100, "2", &[2]);
}

#[test]
fn random_nets_of_any_batch_agree_with_their_evaluation() {
    check(0xabcd_ef01_2345_6789, 40, "?", &[1, 3, 1]);
}

#[test]
fn plain_rows_are_joined_and_cut_where_they_lie() {
    let n = &mut Numbers(77);
    for axis in [0, 1, 2] {
        let mut m = Model::new("rows");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[4, 6, 8])).unwrap();
        let at = m.constant("axis", Tensor::scalar(axis)).unwrap();
        let node = m.add("split", Split { num_splits: 2 }, &[x, at]).unwrap();
        let (a, b) = (Value { node, port: 0 }, Value { node, port: 1 });
        let a: Value = m.add("relu", Relu, &[a]).unwrap().into();
        let b: Value = m.add("sigmoid", Sigmoid, &[b]).unwrap().into();
        let y: Value = m.add("join", Concat { axis }, &[b, a, b]).unwrap().into();
        m.result("r", y).unwrap();
        let order = ints(&mut m, &[2, 0, 1]);
        let z: Value = m.add("transpose", Transpose, &[a, order]).unwrap().into();
        m.result("t", z).unwrap();
        assert_like_eval(&m, &[n.tensor(&[4, 6, 8])], 1e-5);
    }
}

/// Planned bytes of a request.
fn arena(model: &Model) -> usize {
    let compiled = crate::nets::compile(model, &carafe_device::Properties::new().with("INFERENCE_NUM_THREADS", 1));
    let told = compiled.property("CPU_MEMORY_STATISTICS").unwrap();
    let words: Vec<&str> = told.split(' ').collect();
    assert_eq!((words[0], words[2], words[4]), ("arena", "packed", "constants"));
    assert!(words[3].parse::<usize>().unwrap() > 0, "packed weights of {told}");
    words[1].parse().unwrap()
}

const IMAGE: usize = 16 * 24 * 24 * 4;

#[test]
fn work_in_place_lowers_the_planned_memory_of_a_residual_net() {
    let n = &mut Numbers(5);
    let mut m = Model::new("residual");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 24, 24])).unwrap();
    let a = conv(&mut m, n, x, [3, 16], 3, 1);
    let b = conv(&mut m, n, a, [16, 16], 3, 1);
    let b: Value = m.add("softmax", Softmax { axis: 1 }, &[b]).unwrap().into();
    let sum: Value = m.add("sum", Add::default(), &[a, b]).unwrap().into();
    let y = conv(&mut m, n, sum, [16, 16], 1, 1);
    let axes = ints(&mut m, &[2, 3]);
    let y: Value = m.add("mean", carafe_ops::reduce::ReduceMean { keep_dims: false }, &[y, axes]).unwrap().into();
    m.result("r", y).unwrap();
    // The kept value and what the softmax and the sum are written over; a third buffer would be theirs.
    assert_eq!(arena(&m), 2 * IMAGE);
    assert_like_eval(&m, &[n.tensor(&[1, 3, 24, 24])], 1e-4);
}

#[test]
fn a_convolution_is_written_over_what_is_added_to_it() {
    let n = &mut Numbers(7);
    let mut m = Model::new("residual");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 24, 24])).unwrap();
    let a = conv(&mut m, n, x, [3, 16], 3, 1);
    let b = conv(&mut m, n, a, [16, 16], 3, 1);
    let b = conv(&mut m, n, b, [16, 16], 1, 1);
    let sum: Value = m.add("sum", Add::default(), &[a, b]).unwrap().into();
    let y = conv(&mut m, n, sum, [16, 4], 1, 1);
    let axes = ints(&mut m, &[2, 3]);
    let y: Value = m.add("mean", carafe_ops::reduce::ReduceMean { keep_dims: false }, &[y, axes]).unwrap().into();
    m.result("r", y).unwrap();
    // The kept value and what the second convolution gives; the sum would need a third.
    assert_eq!(arena(&m), 2 * IMAGE);
    assert_like_eval(&m, &[n.tensor(&[1, 3, 24, 24])], 1e-4);
}

#[test]
fn joined_values_take_no_memory_besides_the_whole() {
    let n = &mut Numbers(6);
    let mut m = Model::new("joined");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 24, 24])).unwrap();
    let x = conv(&mut m, n, x, [3, 16], 3, 1);
    let (a, b) = (conv(&mut m, n, x, [16, 16], 1, 1), conv(&mut m, n, x, [16, 16], 3, 1));
    let joined: Value = m.add("joined", Concat { axis: 1 }, &[a, b]).unwrap().into();
    let y = conv(&mut m, n, joined, [32, 4], 1, 1);
    let axes = ints(&mut m, &[2, 3]);
    let y: Value = m.add("mean", carafe_ops::reduce::ReduceMean { keep_dims: false }, &[y, axes]).unwrap().into();
    m.result("r", y).unwrap();
    assert_eq!(arena(&m), 3 * IMAGE);
}
