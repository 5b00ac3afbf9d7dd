//! FakeQuantize as part of other steps, against its own evaluation.

use crate::nets::{Numbers, compile, conv};
use carafe_device::Properties;
use carafe_graph::{Model, Value};
use carafe_ops::activation::Relu;
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::{ElementType, PartialShape, Tensor};

fn quantize(m: &mut Model, x: Value, levels: u64, limits: [(&[usize], Vec<f32>); 4]) -> Value {
    let mut inputs = vec![x];
    for (shape, values) in limits {
        let name = format!("limit{}", m.len());
        inputs.push(m.constant(&name, Tensor::from_slice(shape, &values).unwrap()).unwrap());
    }
    let op = FakeQuantize { levels, auto_broadcast: Default::default(), auto_broadcast_axis: None };
    m.add(format!("quantize{}", m.len()), op, &inputs).unwrap().into()
}

fn one(v: f32) -> (&'static [usize], Vec<f32>) {
    (&[], vec![v])
}

// The device gives what evaluation gives; what is left of the kernels.
fn check(m: &Model, input: Tensor, bound: f32) -> Vec<String> {
    let wanted = m.evaluate(std::slice::from_ref(&input)).unwrap();
    let mut request = compile(m, &Properties::new().with("PERF_COUNT", "YES")).create_request();
    request.set_input(0, input).unwrap();
    request.infer().unwrap();
    let found = request.output(0).unwrap().to_vec::<f32>().unwrap().into_owned();
    for (a, b) in found.iter().zip(wanted[0].to_vec::<f32>().unwrap().iter()) {
        assert!((a - b).abs() <= bound || (a.is_nan() && b.is_nan()), "{a} {b}");
    }
    request.profile().into_iter().map(|p| p.kernel).filter(|k| k != "none" && !k.starts_with("fused")).collect()
}

#[test]
fn ties_limits_and_special_numbers() {
    for (levels, [il, ih, ol, oh]) in [
        (256, [0.0, 2.55, 0.0, 2.55]),
        (4, [-1.0, 2.0, 10.0, 40.0]),
        (256, [-3.0, 4.0, 4.0, -3.0]),
        (2, [0.0, 0.0, 1.0, 2.0]),
        (16, [1.0, -1.0, 0.0, 5.0]),
    ] {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1006])).unwrap();
        let y = quantize(&mut m, x, levels, [one(il), one(ih), one(ol), one(oh)]);
        m.result("y", y).unwrap();
        let mut numbers: Vec<f32> = (0..1000).map(|i| i as f32 * 0.005 - 2.0).collect();
        numbers.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.015, 1e30]);
        let kernels = check(&m, Tensor::from_slice(&[1006], &numbers).unwrap(), 1e-5);
        assert_eq!(kernels.len(), 1);
        assert_eq!(kernels[0] == "reference", il >= ih, "{kernels:?}");
    }
}

#[test]
fn channels_alone_have_the_same_steps_to_the_last_tie() {
    let mut m = Model::new("m");
    let n = &mut Numbers(6);
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 16, 30, 30])).unwrap();
    let y: Value = m.add("relu", Relu, &[x]).unwrap().into();
    let high: Vec<f32> = (0..16).map(|_| 1.5 + n.float()).collect();
    let low: Vec<f32> = high.iter().map(|h| -h).collect();
    let shape: &[usize] = &[1, 16, 1, 1];
    let y = quantize(&mut m, y, 256, [(shape, low.clone()), (shape, high.clone()), (shape, low), (shape, high)]);
    m.result("y", y).unwrap();
    check(&m, n.tensor(&[1, 16, 30, 30]), 1e-6);
}

#[test]
fn one_range_has_the_same_steps_to_the_last_tie() {
    let n = &mut Numbers(9);
    for levels in [2, 16, 255, 256, 65536] {
        for _ in 0..8 {
            let (low, size) = (n.float(), 0.1 + n.float().abs() * 3.0);
            let mut m = Model::new("m");
            let x = m.parameter("x", ElementType::F32, PartialShape::of(&[5000])).unwrap();
            let y = quantize(&mut m, x, levels, [one(low), one(low + size), one(-3.0), one(n.float())]);
            m.result("y", y).unwrap();
            check(&m, n.tensor(&[5000]), 1e-6);
        }
    }
}

#[test]
fn channels_have_limits_of_their_own_and_a_convolution_takes_all_along() {
    let mut m = Model::new("m");
    let n = &mut Numbers(5);
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 9, 8])).unwrap();
    let y = conv(&mut m, n, x, [3, 8], 3, 1);
    let list = |from: f32, step: f32| -> Vec<f32> { (0..8).map(|i| from + step * i as f32).collect() };
    let shape: &[usize] = &[1, 8, 1, 1];
    let limits =
        [(shape, list(-0.5, 0.05)), (shape, list(0.5, 0.1)), (shape, list(-0.5, 0.05)), (shape, list(0.5, 0.1))];
    let y = quantize(&mut m, y, 255, limits);
    let y = m.add("relu", Relu, &[y]).unwrap();
    m.result("y", y.into()).unwrap();
    // A sum that is rounded otherwise may fall on the next step.
    let kernels = check(&m, n.tensor(&[1, 3, 9, 8]), 0.02);
    assert_eq!(kernels.iter().filter(|k| k.contains("conv_")).count(), 1);
    assert!(kernels.len() <= 2 && !kernels.iter().any(|k| k == "reference"), "{kernels:?}");
}

// Quantized to bytes and back, as models come from ONNX: a tie goes to the even step before the zero point is added.
fn there_and_back(m: &mut Model, x: Value, scale: (&[usize], &[f32]), zero: f32) -> Value {
    use carafe_ops::activation::Clamp;
    use carafe_ops::arithmetic::{Add, Divide, Multiply, Subtract};
    use carafe_ops::convert::Convert;
    use carafe_ops::math::Round;
    use carafe_ops::math::round::RoundMode;
    let constant = |m: &mut Model, t: Tensor| m.constant(&format!("c{}", m.len()), t).unwrap();
    let s = constant(m, Tensor::from_slice(scale.0, scale.1).unwrap());
    let z = constant(m, Tensor::scalar(zero));
    let name = |m: &Model| format!("n{}", m.len());
    let y = m.add(name(m), Divide::default(), &[x, s]).unwrap();
    let y = m.add(name(m), Round { mode: RoundMode::HalfToEven }, &[y.into()]).unwrap();
    let y = m.add(name(m), Add::default(), &[y.into(), z]).unwrap();
    let y = m.add(name(m), Clamp { min: 0.0, max: 255.0 }, &[y.into()]).unwrap();
    let y = m.add(name(m), Convert { destination_type: ElementType::U8 }, &[y.into()]).unwrap();
    let y = m.add(name(m), Convert { destination_type: ElementType::F32 }, &[y.into()]).unwrap();
    let y = m.add(name(m), Subtract::default(), &[y.into(), z]).unwrap();
    m.add(name(m), Multiply::default(), &[y.into(), s]).unwrap().into()
}

#[test]
fn values_between_two_steps_stay_on_their_side() {
    for (scales, zero) in [(vec![1.0], 127.0), (vec![0.1], 3.0), (vec![0.1, 0.2], 128.0), (vec![0.0123, 0.7], 0.0)] {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 2, 300])).unwrap();
        let shape: &[usize] = if scales.len() == 1 { &[] } else { &[1, 2, 1] };
        let y = there_and_back(&mut m, x, (shape, &scales), zero);
        // A second pair whose steps are half as wide meets ties only.
        let half: Vec<f32> = scales.iter().map(|s| s * 2.0).collect();
        let y = there_and_back(&mut m, y, (shape, &half), zero);
        m.result("y", y).unwrap();
        let data: Vec<f32> = (0..600).map(|i| (i as f32 - 300.0) * 0.5 * scales[i / 300 % scales.len()]).collect();
        let kernels = check(&m, Tensor::from_vec(&[1, 2, 300], data).unwrap(), 0.0);
        assert_eq!(kernels.len(), 1, "one pass over memory: {kernels:?}");
    }
}
