//! `Pruning` between two convolutions: which channels go, and that the numbers stay.

use carafe::convert::{self, ConversionOptions};
use carafe::ops::activation::{Clamp, Relu, Sigmoid};
use carafe::ops::arithmetic::{Add, Multiply};
use carafe::ops::convolution::{Convolution, GroupConvolution};
use carafe::ops::normalization::BatchNormInference;
use carafe::{AttrMap, AttrValue, ElementType, Model, OpNew, Tensor, Value};

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

fn attrs() -> AttrMap {
    let mut attrs = AttrMap::new();
    for (name, n) in [("strides", 1), ("dilations", 1), ("pads_begin", 0), ("pads_end", 0)] {
        attrs.set(name, AttrValue::Ints(vec![n]));
    }
    attrs
}

/// Two convolutions, the second of three channels of the first zero; `between` continues from the first.
fn pruned(between: impl FnOnce(&mut Model, Value) -> Value) -> usize {
    let mut m = Model::new("m");
    let conv = || Convolution::from_attrs(&attrs()).unwrap();
    let x = m.parameter("x", ElementType::F32, "1,1,2".parse().unwrap()).unwrap();
    let w1 = m.constant("w1", floats(&[3, 1, 1], &[1.0, 0.0, -2.0])).unwrap();
    let w2 = m.constant("w2", floats(&[2, 3, 1], &[1.0, 7.0, 2.0, 3.0, 7.0, 4.0])).unwrap();
    let a = m.add("a", conv(), &[x, w1]).unwrap();
    let v = between(&mut m, a.into());
    let b = m.add("b", conv(), &[v, w2]).unwrap();
    m.result("out", b.into()).unwrap();
    let x = floats(&[1, 1, 2], &[1.0, -1.0]);
    let before = m.evaluate(std::slice::from_ref(&x)).unwrap();
    let options = ConversionOptions { transform: Some("Pruning".to_string()), ..ConversionOptions::default() };
    convert::apply(&mut m, &options).unwrap();
    carafe::verify(&m).unwrap();
    let after = m.evaluate(&[x]).unwrap();
    assert_eq!(after[0].as_slice::<f32>().unwrap(), before[0].as_slice::<f32>().unwrap());
    m.fact(m.find_node("a").unwrap().into()).shape.dim(1).get().unwrap() as usize
}

fn constant(m: &mut Model, shape: &[usize], values: &[f32]) -> Value {
    m.constant("k", floats(shape, values)).unwrap()
}

#[test]
fn channels_of_zeros_go_across_operations_that_keep_zero() {
    assert_eq!(pruned(|_, v| v), 2);
    assert_eq!(pruned(|m, v| m.add("r", Relu, &[v]).unwrap().into()), 2);
    assert_eq!(pruned(|m, v| m.add("c", Clamp { min: 0.0, max: 6.0 }, &[v]).unwrap().into()), 2);
}

#[test]
fn what_gives_something_for_zero_stops_it() {
    assert_eq!(pruned(|m, v| m.add("s", Sigmoid, &[v]).unwrap().into()), 3);
    assert_eq!(pruned(|m, v| m.add("c", Clamp { min: 1.0, max: 6.0 }, &[v]).unwrap().into()), 3);
}

#[test]
fn constants_of_the_channels_are_cut_too() {
    let scaled = |m: &mut Model, v| {
        let k = constant(m, &[1, 3, 1], &[2.0, 3.0, 4.0]);
        m.add("mul", Multiply::default(), &[k, v]).unwrap().into()
    };
    assert_eq!(pruned(scaled), 2);
    let biased = |m: &mut Model, v| {
        let k = constant(m, &[3, 1], &[2.0, 0.0, 4.0]);
        m.add("add", Add::default(), &[v, k]).unwrap().into()
    };
    assert_eq!(pruned(biased), 2);
    let wide = |m: &mut Model, v| {
        let k = constant(m, &[1, 1, 2], &[2.0, 3.0]);
        m.add("mul", Multiply::default(), &[v, k]).unwrap().into()
    };
    assert_eq!(pruned(wide), 2);
}

#[test]
fn a_channel_that_something_is_added_to_stays() {
    for (shape, values) in [(&[1, 3, 1][..], &[0.0, 1.0, 0.0][..]), (&[], &[1.0])] {
        let biased = |m: &mut Model, v| {
            let k = constant(m, shape, values);
            m.add("add", Add::default(), &[v, k]).unwrap().into()
        };
        assert_eq!(pruned(biased), 3, "{shape:?}");
    }
}

#[test]
fn a_normalization_is_cut_where_it_keeps_zero() {
    for (beta, left) in [(0.0, 2), (1.0, 3)] {
        let normal = |m: &mut Model, v| {
            let rest = [[1.0, 2.0, 3.0], [5.0, beta, 7.0], [1.0, 0.0, 2.0], [1.0, 1.0, 1.0]];
            let rest = rest.map(|values| constant(m, &[3], &values));
            let op = BatchNormInference { epsilon: 0.0 };
            m.add("bn", op, &[v, rest[0], rest[1], rest[2], rest[3]]).unwrap().into()
        };
        assert_eq!(pruned(normal), left);
    }
}

#[test]
fn a_depthwise_convolution_loses_its_filters() {
    let depthwise = |m: &mut Model, v| {
        let k = constant(m, &[3, 1, 1, 1], &[2.0, 3.0, 4.0]);
        m.add("dw", GroupConvolution::from_attrs(&attrs()).unwrap(), &[v, k]).unwrap().into()
    };
    assert_eq!(pruned(depthwise), 2);
}

#[test]
fn what_has_another_reader_stays() {
    let read_twice = |m: &mut Model, v| {
        m.result("other", v).unwrap();
        v
    };
    assert_eq!(pruned(read_twice), 3);
}
