//! Data that is quantized channel by channel, in front of a convolution that keeps channels apart:
//!
//! ```text
//! GroupConvolution(FakeQuantize(x, limits of channels), Dequantize(w, s))
//!     ->  GroupConvolution(QuantizeDequantize(x / steps of channels) {scale 1}, Dequantize(w, s * steps of channels))
//! ```
//!
//! Then the data lies on one grid, and the steps of channels are part of the weights. Where zero points differ, the data must not be
//! negative; channels that end earlier get their limit by a Minimum.

use super::look::sweep;
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::{Clamp, Relu};
use carafe_ops::arithmetic::{Minimum, Multiply};
use carafe_ops::carafe::{Dequantize, QuantizeDequantize};
use carafe_ops::convolution::GroupConvolution;
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::{ElementType, Tensor};

/// Steps of channels move from the data into the weights.
#[derive(Clone, Copy, Debug)]
pub struct UnitSteps;

/// How far a zero point may lie from a whole step.
const NEAR: f32 = 1e-3;

impl Rewrite for UnitSteps {
    fn name(&self) -> &'static str {
        "unit_steps"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(found) = find(model, root) else { return Ok(Outcome::NoMatch) };
        if model.users(found.rounded).len() != 1 {
            return Ok(Outcome::skip("others read the quantized data"));
        }
        let name = model.node(found.rounded.node).name().to_string();
        let channels = found.steps.len();
        let shape = [1, channels, 1, 1];
        let inverse: Vec<f32> = found.steps.iter().map(|s| 1.0 / s).collect();
        let inverse = model.constant(&format!("{name}/inverse"), Tensor::from_vec(&shape, inverse)?)?;
        let mut x: Value = model.add(format!("{name}/units"), Multiply::default(), &[found.data, inverse])?.into();
        if found.most.iter().any(|m| *m != found.most[0]) {
            let most = model.constant(&format!("{name}/most"), Tensor::from_vec(&shape, found.most.clone())?)?;
            x = model.add(format!("{name}/limited"), Minimum::default(), &[x, most])?.into();
        }
        let x = model.add(format!("{name}/steps"), found.op, &[x])?;
        let weights = model.node(found.weights).inputs().to_vec();
        let scale = model.constant(&format!("{name}/scale"), found.scale)?;
        let weights = model.add(format!("{name}/weights"), Dequantize {}, &[weights[0], scale])?;
        model.set_input(root, 0, x.into());
        model.set_input(root, 1, weights.into());
        sweep(model, found.rounded.node)?;
        sweep(model, found.weights)?;
        Ok(Outcome::Done)
    }
}

struct Found {
    data: Value,
    rounded: Value,
    weights: NodeId,
    /// Of each channel.
    steps: Vec<f32>,
    /// The largest number of each channel, in steps.
    most: Vec<f32>,
    op: QuantizeDequantize,
    /// Of the weights, with the steps in it.
    scale: Tensor,
}

fn find(model: &Model, root: NodeId) -> Option<Found> {
    model.op_at::<GroupConvolution>(root)?;
    let rounded = model.input(root, 0)?;
    let (fake, op) = model.producer::<FakeQuantize>(rounded)?;
    let (weights, _) = model.producer::<Dequantize>(model.input(root, 1)?)?;
    let shape = model.fact(model.input(root, 1)?).shape.to_static()?;
    let &[channels, 1, 1, _, _] = &shape[..] else { return None };
    if op.levels > 256 || model.fact(rounded).ty != ElementType::F32 || channels < 2 {
        return None;
    }
    let limit = |i: usize| {
        let t = model.constant_of(model.input(fake, i)?)?;
        let of_channels = t.shape() == [1, channels, 1, 1] && t.element_type() == ElementType::F32;
        of_channels.then(|| t.to_vec::<f32>().ok().map(|v| v.into_owned()))?
    };
    let (low, high) = (limit(1)?, limit(2)?);
    if limit(3)? != low || limit(4)? != high {
        return None;
    }
    let last = (op.levels - 1) as f32;
    let steps: Vec<f32> = low.iter().zip(&high).map(|(l, h)| (h - l) / last).collect();
    let zeros: Vec<f32> = low.iter().zip(&steps).map(|(l, s)| -l / s).collect();
    let usual = |s: &f32| s.is_normal() && *s > 0.0 && (1.0 / s).is_normal();
    let whole = |z: &f32| (z - z.round()).abs() < NEAR && (0.0..=255.0).contains(&z.round());
    if !steps.iter().all(usual) || !zeros.iter().all(whole) {
        return None;
    }
    let zeros: Vec<f32> = zeros.iter().map(|z| z.round()).collect();
    let data = model.input(fake, 0)?;
    let same = zeros.iter().all(|z| *z == zeros[0]);
    if !same && !is_positive(model, data) {
        return None;
    }
    let zero = if same { zeros[0] } else { 0.0 };
    let most: Vec<f32> = zeros.iter().map(|z| last - z).collect();
    let high = zero + most.iter().copied().fold(f32::MIN, f32::max);
    let stored = model.constant_of(model.input(weights, 1)?)?;
    let given = stored.to_vec::<f32>().ok()?;
    let per_channel = stored.shape().len() == 5 && stored.shape()[0] == stored.len();
    if !(stored.len() == 1 || per_channel && stored.len() == channels) {
        return None;
    }
    let scale = (0..channels).map(|c| given[if given.len() == 1 { 0 } else { c }] * steps[c]).collect::<Vec<_>>();
    let scale = Tensor::from_vec(&[channels, 1, 1, 1, 1], scale).ok()?;
    let op = QuantizeDequantize { scale: 1.0, zero: zero as i64, low: 0, high: high as i64 };
    Some(Found { data, rounded, weights, steps, most, op, scale })
}

fn is_positive(model: &Model, v: Value) -> bool {
    let op = model.node(v.node).op();
    op.is::<Relu>() || op.get::<Clamp>().is_some_and(|c| c.min >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::kinds;
    use super::*;
    use carafe_graph::{Notes, run_passes};
    use carafe_ops::convolution::window::PadType;
    use carafe_tensor::PartialShape;

    // Two channels with these limits; what comes out stays the same up to a rounding.
    fn check(low: [f32; 2], high: [f32; 2], positive: bool) -> String {
        let mut m = Model::new("m");
        let mut x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 2, 4, 4])).unwrap();
        if positive {
            x = m.add("relu", Relu, &[x]).unwrap().into();
        }
        let c = |m: &mut Model, v: [f32; 2]| m.constant("c", Tensor::from_slice(&[1, 2, 1, 1], &v).unwrap()).unwrap();
        let (low, high) = (c(&mut m, low), c(&mut m, high));
        let op = FakeQuantize { levels: 256, auto_broadcast: Default::default(), auto_broadcast_axis: None };
        let x = m.add("round", op, &[x, low, high, low, high]).unwrap();
        let w: Vec<i8> = (0..18).map(|i| i - 9).collect();
        let w = m.constant("w", Tensor::from_vec(&[2, 1, 1, 3, 3], w).unwrap()).unwrap();
        let s = m.constant("s", Tensor::from_slice(&[2, 1, 1, 1, 1], &[0.5f32, 0.25]).unwrap()).unwrap();
        let w = m.add("weights", Dequantize {}, &[w, s]).unwrap();
        let op = GroupConvolution {
            strides: vec![1, 1],
            dilations: vec![1, 1],
            pads_begin: vec![1, 1],
            pads_end: vec![1, 1],
            auto_pad: PadType::Explicit,
        };
        let y = m.add("y", op, &[x.into(), w.into()]).unwrap();
        m.result("r", y.into()).unwrap();
        let before = m.clone();
        run_passes(&mut m, &[&UnitSteps], &mut Notes::default()).unwrap();
        let data: Vec<f32> = (0..32).map(|i| (i as f32 - 12.0) * 0.0937).collect();
        let data = [Tensor::from_vec(&[1, 2, 4, 4], data).unwrap()];
        let (a, b) = (before.evaluate(&data).unwrap(), m.evaluate(&data).unwrap());
        let (a, b) = (a[0].as_slice::<f32>().unwrap(), b[0].as_slice::<f32>().unwrap());
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4), "{a:?} {b:?}");
        kinds(&m)
    }

    #[test]
    fn steps_of_channels_become_part_of_the_weights() {
        assert_eq!(
            check([-1.28, -0.64], [1.27, 0.635], false),
            "Multiply QuantizeDequantize Dequantize GroupConvolution"
        );
    }

    #[test]
    fn zero_points_may_differ_where_nothing_is_negative() {
        let found = check([0.0, -0.64], [2.55, 0.635], true);
        assert_eq!(found, "Relu Multiply Minimum QuantizeDequantize Dequantize GroupConvolution");
        assert_eq!(check([0.0, -0.64], [2.55, 0.635], false), "FakeQuantize Dequantize GroupConvolution");
    }

    #[test]
    fn a_range_without_width_or_off_the_grid_stays() {
        for (low, high) in [([0.0, 0.0], [1.0, 0.0]), ([0.0, -0.3], [1.0, 1.0])] {
            assert_eq!(check(low, high, false), "FakeQuantize Dequantize GroupConvolution");
        }
    }
}
