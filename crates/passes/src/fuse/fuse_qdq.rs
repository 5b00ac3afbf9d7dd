//! Quantizing at once followed by dequantizing becomes FakeQuantize; stored weights keep their integers:
//!
//! ```text
//! q = Convert(Clamp(Round(x / s) + z, low, high), integer)
//! (Convert(q, f32) - z) * s                  ->  FakeQuantize(x, (low - z) * s, (high - z) * s, ..) {high - low + 1}
//! Convert(stored integers, f32) - 0          ->  Convert(stored integers, f32)
//! ```
//!
//! Other readers of `q` keep it. FakeQuantize rounds after the zero point is added, so a value just between two steps may go
//! to the other one where the zero point is odd. f32 only: limits in f16 would move the steps.

use super::linear::Plain;
use super::look::{is_stored, made_by, operands, put_in_place, read_outside, stored, sweep, value_of};
use carafe_graph::{Constant, Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::Clamp;
use carafe_ops::arithmetic::{Add, AutoBroadcast, Divide, Multiply, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::math::Round;
use carafe_ops::math::round::RoundMode;
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::{ElementType, Tensor};

#[derive(Clone, Copy, Debug)]
pub struct FuseQdq;

/// One half: numbers of steps are `x / scale + zero`.
struct Grid {
    scale: Plain,
    zero: Plain,
}

struct Quantized {
    x: Value,
    grid: Grid,
    low: f64,
    high: f64,
}

impl Rewrite for FuseQdq {
    fn name(&self) -> &'static str {
        "fuse_qdq"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        if let Some(widened) = centred_on_zero(model, root) {
            model.replace_value(root.into(), widened);
            sweep(model, root)?;
            return Ok(Outcome::Done);
        }
        let Some((q, out)) = dequantized(model, root) else { return Ok(Outcome::NoMatch) };
        let Some(Quantized { x, grid, low, high }) = quantized(model, q) else { return Ok(Outcome::NoMatch) };
        if model.fact(x).ty != ElementType::F32 || model.fact(root.into()).ty != ElementType::F32 {
            return Ok(Outcome::skip("only f32 is quantized this way"));
        }
        let positive = |p: &Plain| p.values.iter().all(|s| s.is_normal() && *s > 0.0);
        if !positive(&grid.scale) || !positive(&out.scale) {
            return Ok(Outcome::skip("a scale is not positive"));
        }
        if let Some(skip) = read_outside(model, root, &[q]) {
            return Ok(skip);
        }
        let limit = |grid: &Grid, bound: f64| grid.zero.zip(&grid.scale, |z, s| (bound - z) * s);
        let limits = [limit(&grid, low), limit(&grid, high), limit(&out, low), limit(&out, high)];
        let [Some(a), Some(b), Some(c), Some(d)] = limits else {
            return Ok(Outcome::skip("scales and zero points do not meet"));
        };
        let limits = [a, b, c, d].map(|p| p.tensor(ElementType::F32));
        let limits: Vec<Tensor> = limits.into_iter().collect::<Result<_>>()?;
        let levels = (high - low) as u64 + 1;
        if let Some(twin) = twin(model, x, levels, &limits) {
            model.replace_value(root.into(), twin);
            sweep(model, root)?;
            return Ok(Outcome::Done);
        }
        let mut inputs = vec![x];
        for (tensor, what) in limits.into_iter().zip(["input_low", "input_high", "output_low", "output_high"]) {
            let name = format!("{}/{what}", model.node(root).name());
            inputs.push(model.constant(&name, tensor)?);
        }
        let op = FakeQuantize { levels, auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
        let new = model.add(format!("{}/FakeQuantize", model.node(root).name()), op, &inputs)?;
        put_in_place(model, root, new)
    }
}

// Stored integers from which nothing is subtracted.
fn centred_on_zero(model: &Model, root: NodeId) -> Option<Value> {
    let &[widened, zero] = made_by::<Subtract>(model, root.into())? else { return None };
    let (convert, _) = model.producer::<Convert>(widened)?;
    let weights = model.constant_of(model.input(convert, 0)?)?;
    let zeros = stored(model, zero)?;
    let none = zeros.len() <= 1 << 20 && zeros.to_vec::<f64>().ok()?.iter().all(|z| *z == 0.0);
    let same = model.fact(root.into()).shape == model.fact(widened).shape;
    (none && same && !weights.element_type().is_float()).then_some(widened)
}

// The integers that the node gives numbers to.
fn dequantized(model: &Model, root: NodeId) -> Option<(Value, Grid)> {
    let constant = |v: Value| Plain::of(stored(model, v)?.as_ref());
    let (scale, centred) = operands::<Multiply, _>(model, root.into(), constant)?;
    let (widened, zero) = match made_by::<Subtract>(model, centred) {
        Some(&[widened, zero]) => (widened, constant(zero)?),
        _ => (centred, none()),
    };
    let (convert, _) = model.producer::<Convert>(widened)?;
    let q = model.input(convert, 0)?;
    model.fact(q).ty.is_integer().then_some((q, Grid { scale, zero }))
}

fn quantized(model: &Model, q: Value) -> Option<Quantized> {
    let (convert, _) = model.producer::<Convert>(q)?;
    let (clamp_id, clamp) = model.producer::<Clamp>(model.input(convert, 0)?)?;
    let (low, high) = (clamp.min, clamp.max);
    let constant = |v: Value| Plain::of(stored(model, v)?.as_ref());
    let steps = model.input(clamp_id, 0)?;
    let (steps, zero) = match made_by::<Add>(model, steps) {
        Some(&[a, b]) if is_stored(model, b) => (a, constant(b)?),
        Some(&[a, b]) => (b, constant(a)?),
        _ => (steps, none()),
    };
    let (round_id, round) = model.producer::<Round>(steps)?;
    let &[x, scale] = made_by::<Divide>(model, model.input(round_id, 0)?)? else { return None };
    let whole = low.fract() == 0.0 && high.fract() == 0.0 && low < high && high - low <= 65535.0;
    let fits = whole && round.mode == RoundMode::HalfToEven && value_range(model.fact(q).ty)?.contains(&low);
    let fits = fits && value_range(model.fact(q).ty)?.contains(&high);
    fits.then_some(Quantized { x, grid: Grid { scale: constant(scale)?, zero }, low, high })
}

fn value_range(ty: ElementType) -> Option<std::ops::RangeInclusive<f64>> {
    let bits = i32::try_from(ty.bits()).ok()?;
    ty.is_integer().then(|| match ty.is_signed() {
        true => -(2f64.powi(bits - 1))..=2f64.powi(bits - 1) - 1.0,
        false => 0.0..=2f64.powi(bits) - 1.0,
    })
}

fn none() -> Plain {
    Plain { shape: vec![], values: vec![0.0] }
}

// A FakeQuantize that does the same already: of several dequantizers behind one quantizer one is enough.
fn twin(model: &Model, x: Value, levels: u64, limits: &[Tensor]) -> Option<Value> {
    model.users(x).iter().map(|u| u.node).find_map(|id| {
        let op = model.op_at::<FakeQuantize>(id)?;
        let own = &model.node(id).inputs()[1..];
        let same = own.iter().zip(limits).all(|(v, t)| model.constant_of(*v).is_some_and(|c| c.content_eq(t)));
        (op.levels == levels && op.auto_broadcast == AutoBroadcast::Numpy && same).then_some(Value::from(id))
    })
}

/// Whether the node is a step from stored integers to weights, which constant folding must leave as they are.
pub(crate) fn dequantizes_weights(model: &Model, id: NodeId) -> bool {
    let inputs = model.node(id).inputs();
    if model.op_at::<Multiply>(id).is_some() {
        let centred = |v: &Value| model.op_at::<Subtract>(v.node).is_some() && dequantizes_weights(model, v.node);
        return inputs.iter().any(|v| widens_quantized(model, v.node) || centred(v));
    }
    if model.op_at::<Subtract>(id).is_some() {
        return inputs.first().is_some_and(|v| widens_quantized(model, v.node));
    }
    widens_quantized(model, id)
}

// Whether the node widens stored integers that are then centred and scaled.
fn widens_quantized(model: &Model, id: NodeId) -> bool {
    let small =
        |ty: ElementType| matches!(ty, ElementType::I8 | ElementType::U8) || (ty.is_sub_byte() && ty.is_integer());
    let stored = |v: &Value| {
        let op = model.node(v.node).op();
        op.is::<Constant>() || (op.is::<Convert>() && model.input(v.node, 0).is_some_and(|v| is_stored(model, v)))
    };
    let Some(input) = model.op_at::<Convert>(id).and_then(|_| model.input(id, 0)) else { return false };
    let Some(weights) = model.constant_of(input) else { return false };
    let scaled = |v: Value| {
        let users = model.users(v);
        let by_constant = |u: &carafe_graph::Use| {
            let inputs = model.node(u.node).inputs();
            model.op_at::<Multiply>(u.node).is_some() && inputs.get(1 - u.input).is_some_and(stored)
        };
        !users.is_empty() && users.iter().all(by_constant)
    };
    let centred = || match model.users(id.into()) {
        [u] if u.input == 0 && model.op_at::<Subtract>(u.node).is_some() => scaled(u.node.into()),
        _ => false,
    };
    weights.len() > 1
        && small(weights.element_type())
        && model.fact(id.into()).ty.is_float()
        && (scaled(id.into()) || centred())
        && value_of(model, input, id.into()).is_none()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, kinds};
    use super::*;
    use crate::{COMMON, COMMON_WIDENED};
    use carafe_graph::{Notes, Pass, run_passes};
    use carafe_tensor::PartialShape;

    // The form in which quantizing comes from files.
    fn quantize(m: &mut Model, x: Value, s: Value, z: Option<f64>, ty: ElementType) -> Value {
        let (low, high) = if ty == ElementType::I8 { (-128.0, 127.0) } else { (0.0, 255.0) };
        let mut y = m.add("over", Divide::default(), &[x, s]).unwrap().into();
        y = m.add("round", Round { mode: RoundMode::HalfToEven }, &[y]).unwrap().into();
        if let Some(z) = z {
            let z = m.constant("z", Tensor::scalar(z as f32)).unwrap();
            y = m.add("plus", Add::default(), &[y, z]).unwrap().into();
        }
        y = m.add("limit", Clamp { min: low, max: high }, &[y]).unwrap().into();
        m.add("narrow", Convert { destination_type: ty }, &[y]).unwrap().into()
    }

    fn dequantize(m: &mut Model, q: Value, s: Value, z: Option<f64>) -> Value {
        let mut y = m.add("widen", Convert { destination_type: ElementType::F32 }, &[q]).unwrap().into();
        if let Some(z) = z {
            let z = m.constant("z", Tensor::scalar(z as f32)).unwrap();
            y = m.add("minus", Subtract::default(), &[y, z]).unwrap().into();
        }
        m.add("times", Multiply::default(), &[s, y]).unwrap().into()
    }

    fn check(scale: (&[usize], &[f32]), z: Option<f64>, ty: ElementType, readers: usize) -> Model {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 2, 50])).unwrap();
        let s = m.constant("s", Tensor::from_slice(scale.0, scale.1).unwrap()).unwrap();
        let q = quantize(&mut m, x, s, z, ty);
        for i in 0..readers {
            let y = dequantize(&mut m, q, s, z);
            m.result(&format!("r{i}"), y).unwrap();
        }
        let before = m.clone();
        FuseQdq.run(&mut m, &mut Notes::default()).unwrap();
        // None of these lies just between two steps.
        let data: Vec<f32> = (0..100).map(|i| i as f32 * 0.013713 - 0.6007).collect();
        let data = [Tensor::from_slice(&[1, 2, 50], &data).unwrap()];
        for (a, b) in before.evaluate(&data).unwrap().iter().zip(&m.evaluate(&data).unwrap()) {
            for (a, b) in a.as_slice::<f32>().unwrap().iter().zip(b.as_slice::<f32>().unwrap()) {
                assert!((a - b).abs() < 1e-5, "{a} {b}");
            }
        }
        m
    }

    #[test]
    fn one_scale_and_scales_of_channels() {
        for (z, ty) in [(Some(128.0), ElementType::U8), (None, ElementType::I8), (Some(3.0), ElementType::I8)] {
            assert_eq!(kinds(&check((&[], &[0.004]), z, ty, 1)), "FakeQuantize");
            assert_eq!(kinds(&check((&[1, 2, 1], &[0.004, 0.003]), z, ty, 1)), "FakeQuantize");
        }
    }

    #[test]
    fn several_dequantizers_share_one_node() {
        assert_eq!(kinds(&check((&[], &[0.004]), Some(9.0), ElementType::U8, 3)), "FakeQuantize");
    }

    #[test]
    fn integers_that_are_read_stay() {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[4])).unwrap();
        let s = m.constant("s", Tensor::scalar(0.1f32)).unwrap();
        let q = quantize(&mut m, x, s, None, ElementType::U8);
        let y = dequantize(&mut m, q, s, None);
        m.result("integers", q).unwrap();
        m.result("floats", y).unwrap();
        assert_eq!(FuseQdq.run(&mut m, &mut Notes::default()).unwrap(), 1);
        assert_eq!(kinds(&m), "Divide Round Clamp Convert FakeQuantize");
    }

    #[test]
    fn scales_that_are_computed_and_halves_stay() {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[4])).unwrap();
        let s = m.parameter("s", ElementType::F32, PartialShape::scalar()).unwrap();
        let q = quantize(&mut m, x, s, None, ElementType::U8);
        let y = dequantize(&mut m, q, s, None);
        m.result("r", y).unwrap();
        assert_eq!(FuseQdq.run(&mut m, &mut Notes::default()).unwrap(), 0);
        super::super::testing::stays(&FuseQdq, "a scale is not positive", |g: &mut Sketch| {
            let x = g.input(&[4]);
            let s = g.c(-0.5);
            let q = quantize(&mut g.model, x, s, None, ElementType::U8);
            dequantize(&mut g.model, q, s, None)
        });
    }

    #[test]
    fn stored_weights_keep_their_integers_until_they_are_widened() {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2, 3])).unwrap();
        let w = m.constant("w", Tensor::from_slice(&[2, 3], &[1i8, 2, 3, -4, 5, 6]).unwrap()).unwrap();
        let s = m.constant("s", Tensor::from_slice(&[2, 1], &[0.5f32, 0.25]).unwrap()).unwrap();
        let w = dequantize(&mut m, w, s, Some(0.0));
        let y = m.add("y", Add::default(), &[x, w]).unwrap();
        m.result("r", y.into()).unwrap();
        let notes = &mut Notes::default();
        run_passes(&mut m, COMMON, notes).unwrap();
        assert_eq!(kinds(&m), "Convert Subtract Multiply Add");
        run_passes(&mut m, &[&FuseQdq], notes).unwrap();
        assert_eq!(kinds(&m), "Convert Multiply Add");
        run_passes(&mut m, COMMON_WIDENED, notes).unwrap();
        assert_eq!(kinds(&m), "Add");
    }
}
