//! Weights that are computed from shapes: each set of shapes has its own, in one compiled model.

use crate::nets::{Numbers, compile};
use carafe_cpu::CpuDevice;
use carafe_device::{CompiledModel, Device, InferRequest, Properties};
use carafe_graph::{AttrMap, AttrValue, Model, Value};
use carafe_tensor::{ElementType, PartialShape, SharedBytes, Tensor};
use std::sync::Arc;

fn op(m: &mut Model, kind: &str, attrs: &[(&str, &str)], inputs: &[Value]) -> Value {
    let mut map = AttrMap::default();
    attrs.iter().for_each(|(name, value)| map.set(*name, AttrValue::Text(value.to_string())));
    let made = carafe_ops::registry().newest(kind).expect(kind).create(&map).expect(kind);
    let name = format!("{kind}{}", m.len());
    m.add_ref(name, made, inputs).expect(kind).into()
}

fn constant(m: &mut Model, tensor: Tensor) -> Value {
    let name = format!("c{}", m.len());
    m.constant(&name, tensor).unwrap()
}

// A number that follows from the batch: 0.25 times the size of the first axis.
fn by_batch(m: &mut Model, x: Value) -> Value {
    let shape = op(m, "ShapeOf", &[("output_type", "i64")], &[x]);
    let (index, axis) = (constant(m, Tensor::scalar(0i64)), constant(m, Tensor::scalar(0i64)));
    let rows = op(m, "Gather", &[], &[shape, index, axis]);
    let rows = op(m, "Convert", &[("destination_type", "f32")], &[rows]);
    let quarter = constant(m, Tensor::scalar(0.25f32));
    op(m, "Multiply", &[], &[rows, quarter])
}

// Weights as they are, or times the number.
fn weights(m: &mut Model, n: &mut Numbers, shape: &[usize], by: Value) -> Value {
    let w = crate::nets::weights(m, n, shape);
    if n.below(4) == 0 { w } else { op(m, "Multiply", &[], &[w, by]) }
}

const SPATIAL: [(&str, &str); 4] =
    [("strides", "1,1"), ("pads_begin", "1,1"), ("pads_end", "1,1"), ("dilations", "1,1")];

// Layers whose weights depend on the batch, of every kind that packs them.
fn network(seed: u64) -> (Model, Vec<usize>) {
    let n = &mut Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut m = Model::new("m");
    let c = 1 + n.below(20);
    let rest = match n.below(3) {
        0 => vec![c],
        1 => vec![3, c],
        _ => vec![c, 5, 6],
    };
    let shape = format!("?,{}", rest.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
    let x = m.parameter("x", ElementType::F32, shape.parse::<PartialShape>().unwrap()).unwrap();
    let by = by_batch(&mut m, x);
    let square = crate::nets::weights(&mut m, n, &[c, c]);
    let square = op(&mut m, "Multiply", &[], &[square, by]);
    let mut y = x;
    for _ in 0..2 + n.below(3) {
        y = match (rest.len(), n.below(4)) {
            // One constant as it is and turned around: two packed forms of the same bytes.
            (1 | 2, 0) => {
                let transposed = ["false", "true"][n.below(2)];
                op(&mut m, "MatMul", &[("transpose_a", "false"), ("transpose_b", transposed)], &[y, square])
            }
            (2, 1) => {
                let (w, r) = (weights(&mut m, n, &[1, 4 * c, c], by), weights(&mut m, n, &[1, 4 * c, c], by));
                let b = weights(&mut m, n, &[1, 4 * c], by);
                let rows = op(&mut m, "ShapeOf", &[("output_type", "i64")], &[y]);
                let (zero, axis) = (constant(&mut m, Tensor::scalar(0i64)), constant(&mut m, Tensor::scalar(0i64)));
                let rows = op(&mut m, "Gather", &[], &[rows, zero, axis]);
                let one = constant(&mut m, Tensor::from_slice(&[1], &[1i64]).unwrap());
                let rows = op(&mut m, "Reshape", &[("special_zero", "false")], &[rows, one]);
                let tail = constant(&mut m, Tensor::from_slice(&[2], &[1i64, c as i64]).unwrap());
                let state = op(&mut m, "Concat", &[("axis", "0")], &[rows, tail]);
                let nothing = constant(&mut m, Tensor::scalar(0f32));
                let state = op(&mut m, "Broadcast", &[("mode", "numpy")], &[nothing, state]);
                let time = constant(&mut m, Tensor::scalar(3i32));
                let lengths = op(&mut m, "Broadcast", &[("mode", "numpy")], &[time, rows]);
                let attrs = [("hidden_size", c.to_string()), ("direction", "forward".into())];
                let attrs: Vec<(&str, &str)> = attrs.iter().map(|(k, v)| (*k, v.as_str())).collect();
                let all = op(&mut m, "LSTMSequence", &attrs, &[y, state, state, lengths, w, r, b]);
                let axes = constant(&mut m, Tensor::from_slice(&[1], &[1i64]).unwrap());
                op(&mut m, "Squeeze", &[], &[all, axes])
            }
            (1 | 2, _) => {
                let w = weights(&mut m, n, &[c, c], by);
                let y = op(&mut m, "MatMul", &[("transpose_a", "false"), ("transpose_b", "true")], &[y, w]);
                let b = weights(&mut m, n, &[c], by);
                op(&mut m, "Add", &[], &[y, b])
            }
            (_, 0) => {
                let w = weights(&mut m, n, &[c, 1, 1, 3, 3], by);
                op(&mut m, "GroupConvolution", &SPATIAL, &[y, w])
            }
            (_, 1) => {
                let w = weights(&mut m, n, &[c, c, 3, 3], by);
                op(&mut m, "ConvolutionBackpropData", &SPATIAL, &[y, w])
            }
            (_, 2) => {
                let w = weights(&mut m, n, &[c, c, 1, 1], by);
                let plain = [("strides", "1,1"), ("pads_begin", "0,0"), ("pads_end", "0,0"), ("dilations", "1,1")];
                op(&mut m, "Convolution", &plain, &[y, w])
            }
            _ => {
                let w = weights(&mut m, n, &[c, c, 3, 3], by);
                op(&mut m, "Convolution", &SPATIAL, &[y, w])
            }
        };
    }
    m.result("y", y).unwrap();
    (m, rest)
}

fn infer(request: &mut dyn InferRequest, input: &Tensor) -> Tensor {
    request.set_input(0, input.clone()).unwrap();
    request.infer().unwrap();
    request.output(0).unwrap().clone()
}

fn assert_close(found: &Tensor, wanted: &Tensor, what: &str) {
    assert_eq!(found.shape(), wanted.shape(), "{what}");
    let (a, b) = (found.to_vec::<f32>().unwrap(), wanted.to_vec::<f32>().unwrap());
    let largest = b.iter().fold(1e-3f32, |m, x| m.max(x.abs()));
    for (i, (a, b)) in a.iter().zip(b.iter()).enumerate() {
        assert!((a - b).abs() <= 1e-4 * largest, "{what}, element {i}: {a}, expected {b}");
    }
}

fn input(rest: &[usize], batch: usize) -> Tensor {
    let shape: Vec<usize> = std::iter::once(batch).chain(rest.iter().copied()).collect();
    Numbers(77).tensor(&shape)
}

fn check(compiled: &Arc<dyn CompiledModel>, m: &Model, rest: &[usize], batches: &[usize], what: &str) {
    let mut request = compiled.clone().create_request();
    for &batch in batches {
        let x = input(rest, batch);
        let wanted = m.evaluate(std::slice::from_ref(&x)).unwrap();
        assert_close(&infer(&mut *request, &x), &wanted[0], &format!("{what}, batch {batch}"));
    }
}

#[test]
fn each_set_of_shapes_has_the_weights_that_follow_from_it() {
    for seed in 0..60 {
        let (m, rest) = network(seed);
        check(&compile(&m, &Properties::new()), &m, &rest, &[1, 3, 2, 1, 5, 3], &format!("seed {seed}"));
    }
}

#[test]
fn inferences_of_several_shapes_at_once_do_not_mix_their_weights() {
    for seed in 0..6 {
        let (m, rest) = network(seed);
        let compiled = compile(&m, &Properties::new().with("NUM_STREAMS", 2));
        std::thread::scope(|scope| {
            for t in 0..4usize {
                let (compiled, m, rest) = (&compiled, &m, &rest);
                scope.spawn(move || {
                    let batches: Vec<usize> = (0..12).map(|i| 1 + (i * 7 + t) % 5).collect();
                    check(compiled, m, rest, &batches, &format!("seed {seed}, thread {t}"));
                });
            }
        });
    }
}

#[test]
fn an_exported_model_takes_no_weights_of_one_shape_for_another() {
    for seed in 0..12 {
        let (m, rest) = network(seed);
        let compiled = compile(&m, &Properties::new());
        check(&compiled, &m, &rest, &[2], "before");
        let mut blob = vec![];
        compiled.export(&mut blob).unwrap();
        let (registry, none) = (carafe_ops::registry(), Properties::new());
        let again = CpuDevice::default().import(SharedBytes::from_vec(blob), &registry, &none).unwrap();
        check(&again, &m, &rest, &[3, 2, 1], &format!("seed {seed}, imported"));
    }
}

#[test]
fn weights_of_shapes_that_went_by_are_freed() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, "?,64".parse::<PartialShape>().unwrap()).unwrap();
    let by = by_batch(&mut m, x);
    let w = crate::nets::weights(&mut m, &mut Numbers(3), &[64, 64]);
    let w = op(&mut m, "Multiply", &[], &[w, by]);
    let y = op(&mut m, "MatMul", &[("transpose_a", "false"), ("transpose_b", "false")], &[x, w]);
    m.result("y", y).unwrap();
    let compiled = compile(&m, &Properties::new());
    let packed = || {
        let all = compiled.property("CPU_MEMORY_STATISTICS").unwrap();
        let words: Vec<&str> = all.split(' ').collect();
        words[words.iter().position(|w| *w == "packed").unwrap() + 1].parse::<usize>().unwrap()
    };
    let mut request = compiled.clone().create_request();
    let mut one = 0;
    for batch in 1..=150 {
        infer(&mut *request, &input(&[64], batch));
        one = if batch == 1 { packed() } else { one };
    }
    assert!(one >= 64 * 64 * 4);
    // 64 plans are kept, and the request has one.
    assert!(packed() <= 65 * one, "{} bytes for 65 times {one}", packed());
}

#[test]
fn weights_of_the_model_are_packed_once_for_all_shapes() {
    let model = crate::nets::network("?");
    let compiled = compile(&model, &Properties::new());
    let mut request = compiled.clone().create_request();
    let mut seen = vec![];
    for batch in [1, 2, 3, 4] {
        infer(&mut *request, &Numbers(4).tensor(&[batch, 3, 24, 20]));
        let all = compiled.property("CPU_MEMORY_STATISTICS").unwrap();
        seen.push(all.split("packed ").nth(1).unwrap().split(' ').next().unwrap().to_string());
    }
    seen.dedup();
    // A larger batch may choose another method for a layer; it must not pack all anew.
    assert!(seen.len() <= 2, "{seen:?}");
}
