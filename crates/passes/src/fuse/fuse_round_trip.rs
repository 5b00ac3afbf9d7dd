//! ```text
//! (Clamp(Round(x / s) + z, low, high) - z) * s   ->  QuantizeDequantize(x) {s, z, low, high}
//! Clamp(Round(x) + z, low, high) - z             ->  QuantizeDequantize(x) {1, z, low, high}
//! ```
//!
//! For devices that store the steps between as integers. One scale and zero point for the whole tensor; the roundings are the
//! same.

use super::look::{fuse, inputs_at, operands, read_outside, value_of};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::Clamp;
use carafe_ops::arithmetic::{Add, Divide, Multiply, Subtract};
use carafe_ops::carafe::QuantizeDequantize;
use carafe_ops::math::Round;
use carafe_ops::math::round::RoundMode;
use carafe_tensor::ElementType;

/// Quantizing that is followed by dequantizing becomes one operation.
#[derive(Clone, Copy, Debug)]
pub struct FuseRoundTrip;

impl Rewrite for FuseRoundTrip {
    fn name(&self) -> &'static str {
        "fuse_round_trip"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some((x, op)) = find(model, root).or_else(|| find_unit(model, root)) else { return Ok(Outcome::NoMatch) };
        if let Some(skip) = read_outside(model, root, &[x]) {
            return Ok(skip);
        }
        fuse(model, root, &[x], op, &[x])
    }
}

fn find(model: &Model, root: NodeId) -> Option<(Value, QuantizeDequantize)> {
    if model.fact(root.into()).ty != ElementType::F32 {
        return None;
    }
    let number = |v: Value, data: Value| value_of(model, v, data);
    let &[a, b] = inputs_at::<Multiply>(model, root)? else { return None };
    let (scale, centred) = number(a, b).map(|s| (s, b)).or_else(|| number(b, a).map(|s| (s, a)))?;
    let (steps, zero) = match model.producer::<Subtract>(centred) {
        Some((id, _)) => {
            let &[steps, zero] = inputs_at::<Subtract>(model, id)? else { return None };
            (steps, number(zero, steps)?)
        }
        None => (centred, 0.0),
    };
    let (id, clamp) = model.producer::<Clamp>(steps)?;
    let shifted = model.input(id, 0)?;
    let (rounded, plus) = match operands::<Add, _>(model, shifted, |v| number(v, shifted)) {
        Some((plus, rounded)) => (rounded, plus),
        None => (shifted, 0.0),
    };
    let (id, round) = model.producer::<Round>(rounded)?;
    let (id, _) = model.producer::<Divide>(model.input(id, 0)?).filter(|_| round.mode == RoundMode::HalfToEven)?;
    let &[x, by] = inputs_at::<Divide>(model, id)? else { return None };
    let whole = [zero, clamp.min, clamp.max].iter().all(|v| v.fract() == 0.0 && v.abs() <= 65536.0);
    let usual = scale > 0.0 && (scale as f32).is_normal() && clamp.min < clamp.max;
    let same = number(by, x)? == scale && plus == zero && model.fact(x).ty == ElementType::F32;
    let op =
        QuantizeDequantize { scale: scale as f32, zero: zero as i64, low: clamp.min as i64, high: clamp.max as i64 };
    (whole && usual && same).then_some((x, op))
}

// Whole numbers within limits, as operations on integers have them.
fn find_unit(model: &Model, root: NodeId) -> Option<(Value, QuantizeDequantize)> {
    if model.fact(root.into()).ty != ElementType::F32 {
        return None;
    }
    let number = |v: Value, data: Value| value_of(model, v, data);
    let (steps, zero) = match inputs_at::<Subtract>(model, root) {
        Some(&[steps, zero]) => (steps, number(zero, steps)?),
        Some(_) => return None,
        None => (Value::from(root), 0.0),
    };
    let (id, clamp) = model.producer::<Clamp>(steps)?;
    let shifted = model.input(id, 0)?;
    let (rounded, plus) = match operands::<Add, _>(model, shifted, |v| number(v, shifted)) {
        Some((plus, rounded)) => (rounded, plus),
        None => (shifted, 0.0),
    };
    let (id, round) = model.producer::<Round>(rounded)?;
    let x = model.input(id, 0)?;
    // With scales on both sides it is the longer form, or one of scales of channels.
    let multiplied = |u: &carafe_graph::Use| model.op_at::<Multiply>(u.node).is_some();
    if model.producer::<Divide>(x).is_some() && model.users(root.into()).iter().all(multiplied) {
        return None;
    }
    let whole = [zero, clamp.min, clamp.max].iter().all(|v| v.fract() == 0.0 && v.abs() <= 65536.0);
    let narrow = clamp.min < clamp.max && clamp.max - clamp.min <= 255.0;
    let even = round.mode == RoundMode::HalfToEven && plus == zero && model.fact(x).ty == ElementType::F32;
    let op = QuantizeDequantize { scale: 1.0, zero: zero as i64, low: clamp.min as i64, high: clamp.max as i64 };
    (whole && narrow && even).then_some((x, op))
}

#[cfg(test)]
mod tests {
    use super::super::testing::kinds;
    use super::*;
    use carafe_graph::{Notes, run_passes};
    use carafe_tensor::{PartialShape, Tensor};

    // Quantized by one scale and brought back by another, through the pass; the numbers stay.
    fn check(scale: f32, zero: f32, back: f32, extra: bool) -> String {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[64])).unwrap();
        let [s, z, b] = [scale, zero, back].map(|v| m.constant("c", Tensor::scalar(v)).unwrap());
        let mut y: Value = m.add("over", Divide::default(), &[x, s]).unwrap().into();
        y = m.add("round", Round { mode: RoundMode::HalfToEven }, &[y]).unwrap().into();
        y = m.add("plus", Add::default(), &[y, z]).unwrap().into();
        y = m.add("limit", Clamp { min: 0.0, max: 255.0 }, &[y]).unwrap().into();
        if extra {
            m.result("steps", y).unwrap();
        }
        y = m.add("minus", Subtract::default(), &[y, z]).unwrap().into();
        y = m.add("times", Multiply::default(), &[y, b]).unwrap().into();
        m.result("r", y).unwrap();
        let before = m.clone();
        run_passes(&mut m, &[&FuseRoundTrip], &mut Notes::default()).unwrap();
        let data: Vec<f32> = (0..64).map(|i| (i as f32 - 20.0) * 0.5 * scale).collect();
        let data = [Tensor::from_slice(&[64], &data).unwrap()];
        for (a, b) in before.evaluate(&data).unwrap().iter().zip(&m.evaluate(&data).unwrap()) {
            assert_eq!(a.as_slice::<f32>().unwrap(), b.as_slice::<f32>().unwrap());
        }
        kinds(&m)
    }

    #[test]
    fn rounding_to_steps_and_back() {
        assert_eq!(check(0.3, 7.0, 0.3, false), "QuantizeDequantize");
    }

    #[test]
    fn another_scale_on_the_way_back_or_a_reader_of_the_steps_stays() {
        let whole = "Divide Round Add Clamp Subtract Multiply";
        assert_eq!((check(0.3, 7.0, 0.2, false).as_str(), check(0.3, 7.0, 0.3, true).as_str()), (whole, whole));
    }

    #[test]
    fn whole_numbers_within_limits_lie_on_steps_of_one() {
        for zero in [7f32, 0.0] {
            let mut m = Model::new("m");
            let x = m.parameter("x", ElementType::F32, PartialShape::of(&[64])).unwrap();
            let z = m.constant("c", Tensor::scalar(zero)).unwrap();
            let mut y: Value = m.add("round", Round { mode: RoundMode::HalfToEven }, &[x]).unwrap().into();
            if zero != 0.0 {
                y = m.add("plus", Add::default(), &[y, z]).unwrap().into();
            }
            y = m.add("limit", Clamp { min: 0.0, max: 255.0 }, &[y]).unwrap().into();
            if zero != 0.0 {
                y = m.add("minus", Subtract::default(), &[y, z]).unwrap().into();
            }
            y = m.add("last", carafe_ops::activation::Relu, &[y]).unwrap().into();
            m.result("r", y).unwrap();
            let before = m.clone();
            run_passes(&mut m, &[&FuseRoundTrip], &mut Notes::default()).unwrap();
            let data: Vec<f32> = (0..64).map(|i| (i as f32 - 20.0) * 7.25).collect();
            let data = [Tensor::from_slice(&[64], &data).unwrap()];
            let (a, b) = (before.evaluate(&data).unwrap(), m.evaluate(&data).unwrap());
            assert_eq!(a[0].as_slice::<f32>().unwrap(), b[0].as_slice::<f32>().unwrap());
            assert_eq!(kinds(&m), "QuantizeDequantize Relu");
        }
    }
}
