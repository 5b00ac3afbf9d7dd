//! Whole networks and random layers against the operations' own evaluation.

use crate::nets::{Numbers, assert_like_eval, network, weights};
use carafe_graph::{Model, Value};
use carafe_ops::activation::{HSwish, Relu, Sigmoid};
use carafe_ops::arithmetic::{Add, Multiply, Subtract};
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{Convolution, GroupConvolution};
use carafe_ops::linear::MatMul;
use carafe_tensor::{ElementType, PartialShape, Tensor};

#[test]
fn a_network_gives_what_its_operations_give() {
    assert_like_eval(&network("1"), &[Numbers(1).tensor(&[1, 3, 24, 20])], 1e-4);
    assert_like_eval(&network("2"), &[Numbers(2).tensor(&[2, 3, 24, 20])], 1e-4);
}

#[test]
fn a_network_of_open_batch_runs_with_any() {
    let model = network("?");
    for batch in [1, 3, 2, 1] {
        assert_like_eval(&model, &[Numbers(4).tensor(&[batch, 3, 24, 20])], 1e-4);
    }
}

#[test]
fn input_at_an_odd_address_is_taken() {
    let model = network("1");
    let aligned = Numbers(9).tensor(&[1, 3, 24, 20]);
    let odd = crate::nets::at_odd_address(&aligned);
    let (a, b) = (crate::nets::infer(&model, &[aligned], 2), crate::nets::infer(&model, &[odd], 2));
    assert!(a[0].content_eq(&b[0]));
}

// A convolution of random size with random work behind it.
fn layer(n: &mut Numbers) -> (Model, Tensor) {
    let mut m = Model::new("layer");
    let rank = 1 + n.below(3);
    let groups = [1, 1, 1, 2, 3][n.below(5)];
    let depthwise = n.below(4) == 0;
    let channels = if depthwise { 1 + n.below(40) } else { groups * (1 + n.below(24)) };
    let groups = if depthwise { channels } else { groups };
    let out = if depthwise { channels } else { groups * (1 + n.below(40)) };
    let kernel: Vec<usize> = (0..rank).map(|_| 1 + n.below(4)).collect();
    let dilations: Vec<i64> = (0..rank).map(|_| 1 + n.below(2) as i64).collect();
    let sizes: Vec<usize> = (0..rank)
        .map(|i| (kernel[i] - 1) * dilations[i] as usize + 1 + n.below(if rank == 3 { 5 } else { 17 }))
        .collect();
    let shape: Vec<usize> = [1 + n.below(2), channels].into_iter().chain(sizes).collect();
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&shape)).unwrap();
    let pads = |n: &mut Numbers| (0..rank).map(|_| n.below(3) as i64).collect::<Vec<_>>();
    let strides: Vec<i64> = (0..rank).map(|_| 1 + n.below(2) as i64).collect();
    let auto_pad =
        [PadType::Explicit, PadType::Explicit, PadType::SameUpper, PadType::SameLower, PadType::Valid][n.below(5)];
    let (pads_begin, pads_end) = (pads(n), pads(n));
    let mut y: Value = if groups > 1 {
        let shape: Vec<usize> = [groups, out / groups, channels / groups].into_iter().chain(kernel).collect();
        let w = weights(&mut m, n, &shape);
        m.add("conv", GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, w]).unwrap().into()
    } else {
        let shape: Vec<usize> = [out, channels].into_iter().chain(kernel).collect();
        let w = weights(&mut m, n, &shape);
        m.add("conv", Convolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, w]).unwrap().into()
    };
    let column: Vec<usize> = [1, out].into_iter().chain(vec![1; rank]).collect();
    let whole = m.fact(y).shape.to_static().unwrap();
    for k in 0..n.below(5) {
        let name = format!("after{k}");
        let operand = match n.below(3) {
            0 => weights(&mut m, n, &column),
            1 => weights(&mut m, n, &whole),
            _ => weights(&mut m, n, &[]),
        };
        y = match n.below(6) {
            0 => m.add(name, Relu, &[y]),
            1 => m.add(name, HSwish, &[y]),
            2 => m.add(name, Sigmoid, &[y]),
            3 => m.add(name, Multiply::default(), &[operand, y]),
            4 => m.add(name, Subtract::default(), &[y, operand]),
            _ => m.add(name, Add::default(), &[y, operand]),
        }
        .unwrap()
        .into();
    }
    m.result("r", y).unwrap();
    let input = n.tensor(&shape);
    (m, input)
}

#[test]
fn convolutions_of_random_sizes_agree_with_their_evaluation() {
    let n = &mut Numbers(0x1234_5678_9abc_def1);
    for _ in 0..120 {
        let (model, input) = layer(n);
        if model.fact(model.result_value(model.results()[0])).shape.elements() != Some(0) {
            assert_like_eval(&model, &[input], 2e-5);
        }
    }
}

#[test]
fn dilated_convolutions_of_small_images_agree_with_their_evaluation() {
    let n = &mut Numbers(0x5ca1_ab1e_0dd5_eed5);
    for _ in 0..60 {
        let mut m = Model::new("dilated");
        let (groups, each) = ([1, 1, 2][n.below(3)], 1 + n.below(20));
        let shape = [1, groups * each, 1 + n.below(9), 1 + n.below(9)];
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&shape)).unwrap();
        let dilations: Vec<i64> = (0..2).map(|_| 1 + n.below(9) as i64).collect();
        // The window fits with these pads, and more at either end.
        let pads = |n: &mut Numbers| dilations.iter().map(|d| d + n.below(4) as i64).collect::<Vec<_>>();
        let (pads_begin, pads_end) = (pads(n), pads(n));
        let strides = vec![1 + n.below(2) as i64; 2];
        let out = 1 + n.below(30);
        let w = weights(&mut m, n, &[groups, out, each, 3, 3]);
        let op = GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad: PadType::Explicit };
        let y = m.add("conv", op, &[x, w]).unwrap();
        m.result("r", y.into()).unwrap();
        let input = n.tensor(&shape);
        assert_like_eval(&m, &[input], 2e-5);
    }
}

#[test]
fn products_of_random_sizes_agree_with_their_evaluation() {
    let n = &mut Numbers(0xfeed_beef_1234_5677);
    for _ in 0..120 {
        let mut m = Model::new("product");
        let (rows, inner, columns) = (1 + n.below(40), 1 + n.below(70), 1 + n.below(70));
        let batch = 1 + n.below(3);
        let (ta, tb) = (n.below(2) == 1, n.below(2) == 1);
        let a = if ta { [batch, inner, rows] } else { [batch, rows, inner] };
        let b = if tb { [columns, inner] } else { [inner, columns] };
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&a)).unwrap();
        let mut inputs = vec![n.tensor(&a)];
        let w = match n.below(2) {
            0 => weights(&mut m, n, &b),
            _ => {
                inputs.push(n.tensor(&b));
                m.parameter("w", ElementType::F32, PartialShape::of(&b)).unwrap()
            }
        };
        let y = m.add("product", MatMul { transpose_a: ta, transpose_b: tb }, &[x, w]).unwrap().into();
        let bias = weights(&mut m, n, &[columns]);
        let y = m.add("bias", Add::default(), &[y, bias]).unwrap().into();
        m.result("r", y).unwrap();
        assert_like_eval(&m, &inputs, 2e-5);
    }
}
