//! Weights that are stored compressed stay so, for devices that multiply and gather them as they are:
//!
//! ```text
//! MatMul(x, [Transpose]([Reshape]((Convert(stored) - zero) * scale)))  ->  MatMul(x, Decompress(stored, scale, zero))
//! Gather([Reshape]((Convert(stored) - zero) * scale), ids)             ->  Gather(Decompress(stored, scale, zero), ids)
//! ```
//!
//! Stored are integers or floats of at most 8 bits; `zero` may be missing. Integers that meet quantized data are left to
//! `store_weights`, and what others read too is left to constant folding.

use super::look::{absorbs, operands, stored, sweep, transposed};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Use, Value};
use carafe_ops::arithmetic::{Multiply, Subtract};
use carafe_ops::carafe::{Decompress, QuantizeDequantize};
use carafe_ops::convert::Convert;
use carafe_ops::indexing::Gather;
use carafe_ops::linear::MatMul;
use carafe_ops::movement::{Reshape, Transpose};
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::sync::Arc;

/// Compressed weights become one operation that constant folding leaves alone.
#[derive(Clone, Copy, Debug)]
pub struct KeepCompressed;

/// Operations between rounding and its use that are looked through.
const REACH: usize = 16;

impl Rewrite for KeepCompressed {
    fn name(&self) -> &'static str {
        "keep_compressed"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(block) = Block::of(model, root) else { return Ok(Outcome::NoMatch) };
        let users = model.users(root.into()).to_vec();
        if users.is_empty() || !users.iter().all(|u| reads_compressed(model, u)) {
            return Ok(Outcome::skip("it is read by more than products and lookups of rows"));
        }
        let by_axis = block.scale.shape().iter().filter(|n| **n > 1).count() <= 1;
        if by_axis && block.is_integer && users.iter().any(|u| meets_quantized(model, u)) {
            return Ok(Outcome::skip("it is multiplied with quantized data"));
        }
        let name = model.node(root).name().to_string();
        let mut inputs = vec![block.data, model.constant(&format!("{name}/scale"), block.scale)?];
        if let Some(zero) = block.zero {
            inputs.push(model.constant(&format!("{name}/zero"), zero)?);
        }
        let new = model.add(format!("{name}/weights"), Decompress { shape: block.shape }, &inputs)?;
        model.replace_value(root.into(), new.into());
        model.set_name(root, format!("{name}/was"));
        model.set_name(new, name);
        sweep(model, root)?;
        for u in users.iter().filter(|u| model.op_at::<Transpose>(u.node).is_some()).collect::<Vec<_>>() {
            read_directly(model, u.node, new.into())?;
        }
        Ok(Outcome::Done)
    }
}

/// A block of decompression.
struct Block {
    data: Value,
    is_integer: bool,
    scale: Tensor,
    zero: Option<Tensor>,
    shape: Vec<i64>,
}

fn is_narrow(ty: ElementType) -> bool {
    use ElementType as T;
    matches!(ty, T::I8 | T::U8 | T::I4 | T::U4 | T::U3 | T::U2 | T::I2 | T::Nf4 | T::F4E2M1)
}

// What a Convert from f32 to f32 takes: they stand where the file computes in f16.
fn behind_converts(model: &Model, mut v: Value) -> Value {
    while let Some((id, _)) = model.producer::<Convert>(v) {
        match model.input(id, 0) {
            Some(x) if model.fact(x).ty == ElementType::F32 && model.fact(v).ty == ElementType::F32 => v = x,
            _ => break,
        }
    }
    v
}

impl Block {
    fn of(model: &Model, root: NodeId) -> Option<Block> {
        let last = Value::from(root);
        if model.node(root).outputs().len() != 1 || model.fact(last).ty != ElementType::F32 {
            return None;
        }
        let mut v = behind_converts(model, last);
        if let Some((id, _)) = model.producer::<Reshape>(v) {
            v = behind_converts(model, model.input(id, 0)?);
        }
        let narrow = |v: Value| {
            let (id, _) = model.producer::<Convert>(v)?;
            let data = model.input(id, 0)?;
            model.constant_of(data)?;
            is_narrow(model.fact(data).ty).then_some((data, None))
        };
        let centred = |v: Value| {
            let &[data, zero] = super::look::made_by::<Subtract>(model, v)? else { return None };
            narrow(data).map(|(data, _)| (data, Some(zero)))
        };
        let ((data, zero), scale) = operands::<Multiply, _>(model, v, |v| narrow(v).or_else(|| centred(v)))?;
        let tensor = model.constant_of(data)?;
        let floats = |v: Value| {
            let t = stored(model, v)?.cast(ElementType::F32).ok()?;
            absorbs(&PartialShape::of(tensor.shape()), t.shape()).then_some(t)
        };
        let scale = floats(scale)?;
        let zero = match zero {
            Some(zero) => Some(floats(zero)?),
            None => None,
        };
        let shape = model.fact(last).shape.to_static()?;
        let fits = shape.len() == 2 && !tensor.is_empty() && carafe_tensor::elements(&shape) == Some(tensor.len());
        let shape = shape.iter().map(|n| *n as i64).collect();
        let is_integer = tensor.element_type().is_integer();
        fits.then_some(Block { data, is_integer, scale, zero, shape })
    }
}

// The products that read the weights through a transpose take them the other way round.
fn read_directly(model: &mut Model, transpose: NodeId, weights: Value) -> Result<()> {
    for u in model.users(transpose.into()).to_vec() {
        let Some(op) = model.op_at::<MatMul>(u.node).cloned() else { continue };
        model.set_input(u.node, u.input, weights);
        model.set_op(u.node, Arc::new(MatMul { transpose_b: !op.transpose_b, ..op }))?;
    }
    sweep(model, transpose)
}

// Whether a reader is a product with the weights, or a lookup of rows.
fn reads_compressed(model: &Model, u: &Use) -> bool {
    if model.op_at::<MatMul>(u.node).is_some() {
        return u.input == 1;
    }
    if model.op_at::<Transpose>(u.node).is_some() {
        let users = model.users(u.node.into());
        let multiplied = |u: &Use| u.input == 1 && model.op_at::<MatMul>(u.node).is_some();
        let turned = transposed(model, u.node.into()).is_some_and(|(_, order)| order == [1, 0]);
        return turned && !users.is_empty() && users.iter().all(multiplied);
    }
    let rows = |op: &Gather| {
        let axis = model.input(u.node, 2).and_then(|v| model.constant_of(v)?.to_vec::<i64>().ok()?.first().copied());
        op.batch_dims == 0 && matches!(axis, Some(0 | -2))
    };
    u.input == 0 && model.op_at::<Gather>(u.node).is_some_and(rows)
}

fn meets_quantized(model: &Model, u: &Use) -> bool {
    if model.op_at::<Transpose>(u.node).is_some() {
        return model.users(u.node.into()).iter().any(|u| meets_quantized(model, u));
    }
    let data = model.input(u.node, 0).filter(|_| model.op_at::<MatMul>(u.node).is_some());
    data.is_some_and(|data| is_quantized(model, data, REACH))
}

// Whether a value was rounded to a grid and only moved since; pairs of quantization and dequantization are not fused yet.
fn is_quantized(model: &Model, v: Value, reach: usize) -> bool {
    let op = model.node(v.node).op();
    if op.is::<FakeQuantize>() || op.is::<QuantizeDequantize>() {
        return true;
    }
    let widened = |v: Value| {
        let (id, _) = model.producer::<Convert>(v)?;
        let from = model.fact(model.input(id, 0)?).ty;
        matches!(from, ElementType::I8 | ElementType::U8 | ElementType::I32).then_some(())
    };
    let centred = |v: Value| widened(super::look::made_by::<Subtract>(model, v)?.first().copied()?);
    if operands::<Multiply, _>(model, v, |v| widened(v).or_else(|| centred(v))).is_some() {
        return true;
    }
    let moves = op.info().moves.first() == Some(&0) || op.is::<Convert>();
    reach > 0 && moves && model.input(v.node, 0).is_some_and(|data| is_quantized(model, data, reach - 1))
}

#[cfg(test)]
mod tests {
    use super::super::testing::kinds;
    use super::*;
    use carafe_graph::{Notes, run_passes};
    use carafe_ops::activation::Relu;

    struct Net {
        model: Model,
        notes: String,
    }

    fn c<T: carafe_tensor::Element>(m: &mut Model, shape: &[usize], values: &[T]) -> Value {
        m.constant("c", Tensor::from_slice(shape, values).unwrap()).unwrap()
    }

    fn widened(m: &mut Model, v: Value) -> Value {
        m.add("wide", Convert { destination_type: ElementType::F32 }, &[v]).unwrap().into()
    }

    // (Convert(stored) - zero) * scale of six numbers, in this shape.
    fn block(m: &mut Model, shape: &[usize], scale: &[usize]) -> Value {
        let stored = c(m, shape, &[1u8, 2, 250, 4, 0, 9]);
        let zero = c(m, &[1], &[3u8]);
        let (stored, zero) = (widened(m, stored), widened(m, zero));
        let centred = m.add("centred", Subtract::default(), &[stored, zero]).unwrap().into();
        let scales: Vec<f32> = (0..scale.iter().product()).map(|i| 0.5 + i as f32).collect();
        let scale = c(m, scale, &scales);
        m.add("weights", Multiply::default(), &[scale, centred]).unwrap().into()
    }

    fn input(m: &mut Model) -> Value {
        m.parameter("x", ElementType::F32, PartialShape::of(&[1, 3])).unwrap()
    }

    fn product(m: &mut Model, x: Value, w: Value, transpose_b: bool) -> Value {
        m.add("y", MatMul { transpose_a: false, transpose_b }, &[x, w]).unwrap().into()
    }

    // What the pass makes of a net, which gives the same numbers then.
    fn passed(build: impl Fn(&mut Model) -> Value) -> Net {
        let mut model = Model::new("m");
        let y = build(&mut model);
        model.result("r", y).unwrap();
        let before = model.clone();
        let mut notes = Notes::enabled();
        run_passes(&mut model, &[&KeepCompressed], &mut notes).unwrap();
        let given = [Tensor::from_slice(&[1, 3], &[1f32, -2.0, 0.5]).unwrap()];
        assert!(model.evaluate(&given).unwrap()[0].content_eq(&before.evaluate(&given).unwrap()[0]));
        Net { model, notes: format!("{notes:?}") }
    }

    #[test]
    fn weights_of_a_product() {
        let net = passed(|m| {
            let (x, w) = (input(m), block(m, &[2, 3], &[2, 1]));
            product(m, x, w, true)
        });
        assert_eq!(kinds(&net.model), "Decompress MatMul");
    }

    #[test]
    fn groups_behind_a_reshape_a_transpose_and_a_convert_that_does_nothing() {
        let net = passed(|m| {
            let (x, w) = (input(m), block(m, &[2, 3, 1], &[2, 3, 1]));
            let shape = c(m, &[2], &[2i64, 3]);
            let w = m.add("reshaped", Reshape { special_zero: false }, &[w, shape]).unwrap().into();
            let w = widened(m, w);
            let order = c(m, &[2], &[1i64, 0]);
            let w = m.add("turned", Transpose, &[w, order]).unwrap().into();
            product(m, x, w, false)
        });
        assert_eq!(kinds(&net.model), "Decompress MatMul");
    }

    #[test]
    fn what_others_read_stays() {
        let net = passed(|m| {
            let (x, w) = (input(m), block(m, &[2, 3], &[2, 1]));
            let y = product(m, x, w, true);
            let z = m.add("relu", Relu, &[w]).unwrap();
            m.result("other", z.into()).unwrap();
            y
        });
        assert!(!kinds(&net.model).contains("Decompress") && net.notes.contains("more than products"), "{}", net.notes);
    }

    #[test]
    fn a_scale_that_makes_more_of_the_data_stays() {
        let net = passed(|m| {
            let (x, w) = (input(m), block(m, &[2, 3], &[2, 2, 1]));
            product(m, x, w, true)
        });
        assert!(!kinds(&net.model).contains("Decompress"));
    }

    #[test]
    fn integers_that_meet_quantized_data_stay() {
        let net = passed(|m| {
            let (x, w) = (input(m), block(m, &[2, 3], &[2, 1]));
            let limits = [0f32, 2.55, 0.0, 2.55].map(|v| c(m, &[], &[v]));
            let op = FakeQuantize { levels: 256, auto_broadcast: Default::default(), auto_broadcast_axis: None };
            let x = m.add("rounded", op, &[x, limits[0], limits[1], limits[2], limits[3]]).unwrap().into();
            product(m, x, w, true)
        });
        assert!(!kinds(&net.model).contains("Decompress") && net.notes.contains("quantized data"), "{}", net.notes);
    }
}
