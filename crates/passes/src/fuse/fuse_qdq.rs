//! Whole numbers that are stored as integers and read back at once stay floats, which hold them exactly; stored weights keep
//! their integers:
//!
//! ```text
//! w = Clamp(whole numbers, low, high)             with low and high inside of the integer type
//! Convert(Convert(w, integer), f32)          ->  w
//! Convert(stored integers, f32) - 0          ->  Convert(stored integers, f32)
//! ```
//!
//! So quantizing followed by dequantizing is elementwise arithmetic, of the same roundings as before: a FakeQuantize would
//! divide by another number and put values just between two steps on the other side. Other readers of the integers keep
//! them. What integers do not have stays as it is: NaN and minus zero. f32 only.

use super::look::{made_by, stored, sweep, value_of};
use carafe_graph::{Constant, Model, NodeId, Outcome, Result, ResultOp, Rewrite, Value};
use carafe_ops::activation::Clamp;
use carafe_ops::arithmetic::{Add, Multiply, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::math::{Ceiling, Floor, Round};
use carafe_ops::movement::{Reshape, Transpose, Unsqueeze};
use carafe_tensor::ElementType;

/// Numbers that are stored as integers and read back at once stay floats.
#[derive(Clone, Copy, Debug)]
pub struct FuseQdq;

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
        let Some(whole) = widened_again(model, root) else { return Ok(Outcome::NoMatch) };
        if model.fact(whole).ty != ElementType::F32 || model.fact(root.into()).ty != ElementType::F32 {
            return Ok(Outcome::skip("only f32 holds the integers of every type here"));
        }
        if model.users(root.into()).iter().any(|u| model.node(u.node).op().is::<ResultOp>()) {
            return Ok(Outcome::skip("the numbers are an output of the model"));
        }
        model.replace_value(root.into(), whole);
        sweep(model, root)?;
        Ok(Outcome::Done)
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

// The whole numbers that were made integers right before the node makes them floats.
fn widened_again(model: &Model, root: NodeId) -> Option<Value> {
    model.op_at::<Convert>(root)?;
    let integers = model.input(root, 0)?;
    let range = value_range(model.fact(integers).ty)?;
    let (narrow, _) = model.producer::<Convert>(integers)?;
    let limited = model.input(narrow, 0)?;
    let (clamp_id, clamp) = model.producer::<Clamp>(limited)?;
    let limit = |v: f64| v.fract() == 0.0 && range.contains(&v) && v.abs() <= 65535.0;
    (limit(clamp.min) && limit(clamp.max) && is_whole(model, model.input(clamp_id, 0)?, 2)).then_some(limited)
}

// Whether a value has no fraction: rounded, integers before, or a sum of such.
fn is_whole(model: &Model, v: Value, depth: usize) -> bool {
    if let Some(t) = stored(model, v) {
        return t.len() <= 1 << 20 && t.to_vec::<f64>().is_ok_and(|all| all.iter().all(|x| x.fract() == 0.0));
    }
    let op = model.node(v.node).op();
    if op.is::<Round>() || op.is::<Floor>() || op.is::<Ceiling>() {
        return true;
    }
    if op.is::<Convert>() {
        return model.input(v.node, 0).is_some_and(|v| model.fact(v).ty.is_integer());
    }
    let sum = made_by::<Add>(model, v).or_else(|| made_by::<Subtract>(model, v));
    depth > 0 && sum.is_some_and(|parts| parts.iter().all(|p| is_whole(model, *p, depth - 1)))
}

fn value_range(ty: ElementType) -> Option<std::ops::RangeInclusive<f64>> {
    let bits = i32::try_from(ty.bits()).ok()?;
    ty.is_integer().then(|| match ty.is_signed() {
        true => -(2f64.powi(bits - 1))..=2f64.powi(bits - 1) - 1.0,
        false => 0.0..=2f64.powi(bits) - 1.0,
    })
}

/// Whether the node is a step from stored integers to weights, which constant folding must leave as they are.
pub(crate) fn dequantizes_weights(model: &Model, id: NodeId) -> bool {
    let inputs = model.node(id).inputs();
    // The weights of groups get their shape last, and other formats have their axes in another order.
    let op = model.node(id).op();
    let moves = |op: &dyn carafe_graph::Op| op.is::<Reshape>() || op.is::<Transpose>() || op.is::<Unsqueeze>();
    if moves(op) {
        let stored = |v: &Value| {
            let from = model.node(v.node).op();
            (from.is::<Multiply>() || moves(from)) && dequantizes_weights(model, v.node)
        };
        return inputs.first().is_some_and(stored);
    }
    if model.op_at::<Multiply>(id).is_some() {
        let centred = |v: &Value| model.op_at::<Subtract>(v.node).is_some() && dequantizes_weights(model, v.node);
        return inputs.iter().any(|v| widens_quantized(model, v.node) || centred(v));
    }
    if model.op_at::<Subtract>(id).is_some() {
        return inputs.first().is_some_and(|v| widens_quantized(model, v.node));
    }
    widens_quantized(model, id) || widens_factor(model, id)
}

// Types in which weights are stored to save memory.
fn is_small(ty: ElementType) -> bool {
    use ElementType as T;
    ty.is_sub_byte() || matches!(ty, T::I8 | T::U8 | T::F8E4M3 | T::F8E5M2 | T::F8E8M0)
}

// Whether the node widens zero points or scales of groups, which are stored in a small type as the weights are.
fn widens_factor(model: &Model, id: NodeId) -> bool {
    let Some(input) = model.op_at::<Convert>(id).and_then(|_| model.input(id, 0)) else { return false };
    let Some(factors) = model.constant_of(input) else { return false };
    let of_weights = |u: &carafe_graph::Use| match model.node(u.node).op() {
        op if op.is::<Subtract>() => u.input == 1 && dequantizes_weights(model, u.node),
        op if op.is::<Multiply>() => dequantizes_weights(model, u.node),
        _ => false,
    };
    let users = model.users(id.into());
    factors.len() > 1 && is_small(factors.element_type()) && !users.is_empty() && users.iter().all(of_weights)
}

// Whether the value is a constant, or will be when folding comes to it: scales of channels are put into shape first.
fn will_be_stored(model: &Model, v: Value, depth: usize) -> bool {
    let op = model.node(v.node).op();
    let shaped = op.is::<Convert>() || op.is::<Reshape>() || op.is::<Transpose>() || op.is::<Unsqueeze>();
    op.is::<Constant>()
        || (shaped && depth > 0 && model.node(v.node).inputs().iter().all(|v| will_be_stored(model, *v, depth - 1)))
}

// Whether the node widens stored integers, or small floats, that are then centred and scaled.
fn widens_quantized(model: &Model, id: NodeId) -> bool {
    let stored = |v: &Value| will_be_stored(model, *v, 3);
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
        && is_small(weights.element_type())
        && model.fact(id.into()).ty.is_float()
        && (scaled(id.into()) || centred())
        && value_of(model, input, id.into()).is_none()
}

#[cfg(test)]
mod tests {
    use super::super::testing::kinds;
    use super::super::{FoldScale, FuseLinear};
    use super::*;
    use crate::{COMMON, COMMON_WIDENED};
    use carafe_graph::{Notes, Pass, run_passes};
    use carafe_ops::arithmetic::Divide;
    use carafe_ops::math::round::RoundMode;
    use carafe_tensor::{PartialShape, Tensor};

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

    // Quantized, and dequantized by so many readers, with what the pass makes of it; the results are the same numbers.
    fn check(scale: (&[usize], &[f32]), z: Option<f64>, ty: ElementType, readers: usize) -> Model {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 2, 600])).unwrap();
        let s = m.constant("s", Tensor::from_slice(scale.0, scale.1).unwrap()).unwrap();
        let q = quantize(&mut m, x, s, z, ty);
        for i in 0..readers {
            let y = dequantize(&mut m, q, s, z);
            m.result(&format!("r{i}"), y).unwrap();
        }
        let before = m.clone();
        run_passes(&mut m, &[&FuseQdq, &FuseLinear, &FoldScale], &mut Notes::default()).unwrap();
        // Every second one lies just between two steps.
        let data: Vec<f32> = (0..1200).map(|i| (i as f32 - 600.0) * 0.5 * scale.1[0]).collect();
        let data = [Tensor::from_slice(&[1, 2, 600], &data).unwrap()];
        for (a, b) in before.evaluate(&data).unwrap().iter().zip(&m.evaluate(&data).unwrap()) {
            // As numbers: minus zero, which integers do not have, is equal to zero.
            assert_eq!(a.as_slice::<f32>().unwrap(), b.as_slice::<f32>().unwrap());
        }
        m
    }

    #[test]
    fn one_scale_and_scales_of_channels() {
        for (z, ty) in [(Some(128.0), ElementType::U8), (None, ElementType::I8), (Some(3.0), ElementType::I8)] {
            let wanted = match z {
                Some(_) => "Divide Round Add Clamp Subtract Multiply",
                None => "Divide Round Clamp Multiply",
            };
            assert_eq!(kinds(&check((&[], &[0.004]), z, ty, 1)), wanted);
            assert_eq!(kinds(&check((&[1, 2, 1], &[0.1, 0.3]), z, ty, 1)), wanted);
        }
    }

    #[test]
    fn a_tie_goes_to_the_even_step_before_the_zero_point_is_added() {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1])).unwrap();
        let s = m.constant("s", Tensor::scalar(1f32)).unwrap();
        let q = quantize(&mut m, x, s, Some(127.0), ElementType::U8);
        let y = dequantize(&mut m, q, s, Some(0.0));
        m.result("r", y).unwrap();
        assert_eq!(FuseQdq.run(&mut m, &mut Notes::default()).unwrap(), 1);
        let y = m.evaluate(&[Tensor::from_slice(&[1], &[0.5f32]).unwrap()]).unwrap();
        assert_eq!(y[0].as_slice::<f32>().unwrap(), [127.0]);
    }

    #[test]
    fn several_dequantizers_share_the_numbers() {
        let m = check((&[], &[0.004]), Some(9.0), ElementType::U8, 3);
        assert_eq!(kinds(&m).matches("Clamp").count(), 1);
        assert!(!kinds(&m).contains("Convert"));
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
        assert_eq!(kinds(&m), "Divide Round Clamp Convert Multiply");
    }

    #[test]
    fn a_scale_may_be_computed() {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[4])).unwrap();
        let s = m.parameter("s", ElementType::F32, PartialShape::scalar()).unwrap();
        let q = quantize(&mut m, x, s, None, ElementType::U8);
        let y = dequantize(&mut m, q, s, None);
        m.result("r", y).unwrap();
        assert_eq!(FuseQdq.run(&mut m, &mut Notes::default()).unwrap(), 1);
        assert_eq!(kinds(&m), "Divide Round Clamp Multiply");
    }

    #[test]
    fn numbers_with_a_fraction_or_beyond_the_type_stay_integers() {
        for (z, clamp) in [(0.5, [0.0, 255.0]), (0.0, [0.0, 256.0]), (0.0, [-0.5, 255.0])] {
            let mut m = Model::new("m");
            let x = m.parameter("x", ElementType::F32, PartialShape::of(&[4])).unwrap();
            let z = m.constant("z", Tensor::scalar(z as f32)).unwrap();
            let mut y = m.add("round", Round { mode: RoundMode::HalfToEven }, &[x]).unwrap().into();
            y = m.add("plus", Add::default(), &[y, z]).unwrap().into();
            y = m.add("limit", Clamp { min: clamp[0], max: clamp[1] }, &[y]).unwrap().into();
            y = m.add("narrow", Convert { destination_type: ElementType::U8 }, &[y]).unwrap().into();
            y = dequantize(&mut m, y, z, None);
            m.result("r", y).unwrap();
            assert_eq!(FuseQdq.run(&mut m, &mut Notes::default()).unwrap(), 0);
        }
    }

    #[test]
    fn compressed_weights_and_their_factors_stay_as_they_are_stored() {
        use ElementType as T;
        for (data, zero, scale, kept) in [
            (T::U4, Some(T::U4), T::F32, "Convert Convert Subtract Multiply"),
            (T::U8, Some(T::U8), T::F32, "Convert Convert Subtract Multiply"),
            (T::Nf4, None, T::F32, "Convert Multiply"),
            (T::F4E2M1, None, T::F8E8M0, "Convert Convert Multiply"),
            (T::F8E4M3, None, T::F32, "Convert Multiply"),
            (T::F8E5M2, None, T::F32, "Convert Multiply"),
        ] {
            let mut m = Model::new("m");
            let x = m.parameter("x", T::F32, PartialShape::of(&[3, 4])).unwrap();
            let c = |m: &mut Model, ty: T, shape: &[usize]| {
                let numbers: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| (i % 2) as f32).collect();
                let t = Tensor::from_vec(shape, numbers).unwrap().cast(ty).unwrap();
                m.constant("c", t).unwrap()
            };
            let wide = |m: &mut Model, v: Value| -> Value {
                m.add("wide", Convert { destination_type: T::F32 }, &[v]).unwrap().into()
            };
            let w = c(&mut m, data, &[2, 2, 2]);
            let mut w = wide(&mut m, w);
            if let Some(zero) = zero {
                let z = c(&mut m, zero, &[2, 2, 1]);
                let z = wide(&mut m, z);
                w = m.add("minus", Subtract::default(), &[w, z]).unwrap().into();
            }
            let mut s = c(&mut m, scale, &[2, 2, 1]);
            if scale != T::F32 {
                s = wide(&mut m, s);
            }
            w = m.add("times", Multiply::default(), &[w, s]).unwrap().into();
            let shape = m.constant("shape", Tensor::from_slice(&[2], &[4i64, 2]).unwrap()).unwrap();
            w = m.add("shaped", Reshape { special_zero: false }, &[w, shape]).unwrap().into();
            let op = carafe_ops::linear::MatMul { transpose_a: false, transpose_b: false };
            let y = m.add("y", op, &[x, w]).unwrap();
            m.result("r", y.into()).unwrap();
            let notes = &mut Notes::default();
            run_passes(&mut m, COMMON, notes).unwrap();
            run_passes(&mut m, crate::FUSE, notes).unwrap();
            run_passes(&mut m, COMMON, notes).unwrap();
            assert_eq!(kinds(&m), format!("{kept} Reshape MatMul"), "{data}");
            run_passes(&mut m, COMMON_WIDENED, notes).unwrap();
            assert_eq!(kinds(&m), "MatMul", "{data}");
        }
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
