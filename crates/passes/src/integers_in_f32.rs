//! Integers as quantized models have them, computed in f32 by devices whose kernels have no smaller type:
//!
//! - `Convert_f32(product(a, b))`, where `a` and `b` are integers of 8 or 16 bits less a zero point, is a product of floats: a
//!   float holds each factor exactly, and the sum is as exact as those of floats are;
//! - the maximum of 8-bit integers is one of them, so a pool of floats finds the same.

use carafe_graph::{Constant, Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::arithmetic::Subtract;
use carafe_ops::convert::Convert;
use carafe_ops::convolution::{Convolution, GroupConvolution};
use carafe_ops::linear::MatMul;
use carafe_ops::pooling::MaxPool;
use carafe_tensor::ElementType;

/// Computes the integers of quantized models in f32, where that is exact.
#[derive(Clone, Copy, Debug)]
pub struct IntegersInF32;

/// Constants up to here are taken for integers of 16 bits less a zero point.
const LARGEST: i64 = 1 << 17;

impl Rewrite for IntegersInF32 {
    fn name(&self) -> &'static str {
        "integers_in_f32"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        match model.node(root).op() {
            op if op.is::<Convert>() => product(model, root),
            op if op.is::<MaxPool>() => pool(model, root),
            _ => Ok(Outcome::NoMatch),
        }
    }
}

fn product(model: &mut Model, root: NodeId) -> Result<Outcome> {
    let sum = model.node(root).inputs()[0];
    let ty = model.fact(sum).ty;
    let op = model.node(sum.node).op();
    let is_product = op.is::<MatMul>() || op.is::<Convolution>() || op.is::<GroupConvolution>();
    if model.fact(root.into()).ty != ElementType::F32
        || !is_product
        || !matches!(ty, ElementType::I32 | ElementType::I64)
    {
        return Ok(Outcome::NoMatch);
    }
    let to_f32 = |id: NodeId| model.op_at::<Convert>(id).is_some_and(|c| c.destination_type == ElementType::F32);
    if !model.users(sum).iter().all(|u| to_f32(u.node)) {
        return Ok(Outcome::skip("the integers themselves are used"));
    }
    let factors = model.node(sum.node).inputs().to_vec();
    if !factors.iter().all(|v| is_small(model, *v, 2)) {
        return Ok(Outcome::skip("its factors may be large"));
    }
    let factors = factors.into_iter().map(|v| widened(model, v)).collect::<Result<Vec<_>>>()?;
    let (name, op) = (model.node(sum.node).name().to_string(), model.node(sum.node).op_ref().clone());
    let new = model.add_ref(format!("{name}/f32"), op, &factors)?;
    // The Convert stays: it has the name, and as one of f32 to f32 it goes with the others of that kind.
    for user in model.users(sum).to_vec() {
        model.set_input(user.node, user.input, new.into());
    }
    Ok(Outcome::Done)
}

fn is_8_or_16_bits(ty: ElementType) -> bool {
    matches!(ty, ElementType::U8 | ElementType::I8 | ElementType::U16 | ElementType::I16)
}

// Whether a value is a small integer, a widened one, or a difference of such.
fn is_small(model: &Model, v: Value, depth: usize) -> bool {
    let node = model.node(v.node);
    if let Some(c) = node.op().get::<Constant>() {
        let small = |list: &[i64]| list.iter().all(|x| x.abs() <= LARGEST);
        return is_8_or_16_bits(model.fact(v).ty) || c.tensor().to_vec::<i64>().is_ok_and(|list| small(&list));
    }
    match node.op() {
        op if op.is::<Convert>() => is_8_or_16_bits(model.fact(node.inputs()[0]).ty),
        op if op.is::<Subtract>() => depth > 0 && node.inputs().iter().all(|i| is_small(model, *i, depth - 1)),
        op if op.info().moves == [0] => depth > 0 && is_small(model, node.inputs()[0], depth - 1),
        _ => is_8_or_16_bits(model.fact(v).ty),
    }
}

// The same in f32, taken from where the integers are small.
fn widened(model: &mut Model, v: Value) -> Result<Value> {
    let node = model.node(v.node);
    let (name, inputs) = (format!("{}/f32", node.name()), node.inputs().to_vec());
    if let Some(op) = model.op_at::<Subtract>(v.node).cloned() {
        let (a, b) = (widened(model, inputs[0])?, widened(model, inputs[1])?);
        return Ok(model.add(name, op, &[a, b])?.into());
    }
    let from = if model.op_at::<Convert>(v.node).is_some() { inputs[0] } else { v };
    Ok(model.add(name, Convert { destination_type: ElementType::F32 }, &[from])?.into())
}

fn pool(model: &mut Model, root: NodeId) -> Result<Outcome> {
    let x = model.node(root).inputs()[0];
    let ty = model.fact(x).ty;
    if !matches!(ty, ElementType::U8 | ElementType::I8) {
        return Ok(Outcome::NoMatch);
    }
    if model.node(root).op().needs_own_type() {
        return Ok(Outcome::skip("a window may hold nothing"));
    }
    let (name, op) = (model.node(root).name().to_string(), model.node(root).op_ref().clone());
    let wide = model.add(format!("{name}/f32"), Convert { destination_type: ElementType::F32 }, &[x])?;
    let users = model.users(root.into()).to_vec();
    model.set_input(root, 0, wide.into());
    model.set_op(root, op)?;
    let back: Value = model.add(format!("{name}/{ty}"), Convert { destination_type: ty }, &[root.into()])?.into();
    for user in users {
        model.set_input(user.node, user.input, back);
    }
    let names = model.output(root.into()).names.clone();
    model.set_tensor_names(root.into(), Default::default());
    model.set_tensor_names(back, names);
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;
    use carafe_graph::AttrValue;
    use carafe_tensor::Tensor;

    // Convert_f32((x - z) w) of 8-bit x and w.
    fn quantized(d: &mut Draft, weights: Tensor) -> Value {
        let x = d.input_of("x", ElementType::U8, &[-1, 3]);
        let z = d.input_of("z", ElementType::U8, &[]);
        let to_i32 = Convert { destination_type: ElementType::I32 };
        let (x, z) = (d.add("x32", to_i32.clone(), &[x]), d.add("z32", to_i32, &[z]));
        let a = d.add("a", Subtract::default(), &[x, z]);
        let b = d.model.constant("w", weights).unwrap();
        let product = d.add("product", MatMul { transpose_a: false, transpose_b: false }, &[a, b]);
        d.add("y", Convert { destination_type: ElementType::F32 }, &[product])
    }

    fn type_of(d: &Draft, kind: &str) -> Vec<ElementType> {
        let mut copy = d.model.clone();
        copy.prune();
        let of = |n: &carafe_graph::Node| n.outputs()[0].fact.ty;
        copy.nodes().filter(|(_, n)| n.op().info().name == kind).map(|(_, n)| of(n)).collect()
    }

    #[test]
    fn a_product_of_small_integers_is_one_of_floats() {
        let mut d = Draft::new();
        let y = quantized(&mut d, Tensor::from_slice(&[3, 2], &[1i32, -2, 3, 4, -5, 127]).unwrap());
        let r = d.result(y);
        let inputs = [Tensor::from_slice(&[1, 3], &[0u8, 130, 255]).unwrap(), Tensor::scalar(128u8)];
        let expected = d.model.evaluate(&inputs).unwrap();
        assert_eq!(d.run(&IntegersInF32).0, 1);
        assert_eq!((type_of(&d, "MatMul"), type_of(&d, "Subtract")), (vec![ElementType::F32], vec![ElementType::F32]));
        assert_eq!(d.model.result_name(r), "y");
        assert!(d.model.evaluate(&inputs).unwrap()[0].content_eq(&expected[0]));
    }

    #[test]
    fn large_factors_stay_integers() {
        let mut d = Draft::new();
        let y = quantized(&mut d, Tensor::from_slice(&[3, 1], &[1i32 << 30, 1, 1]).unwrap());
        d.result(y);
        let (fired, why) = d.run(&IntegersInF32);
        assert!(fired == 0 && why[0].contains("may be large"), "{why:?}");
    }

    #[test]
    fn integers_that_are_used_stay() {
        let mut d = Draft::new();
        let y = quantized(&mut d, Tensor::from_slice(&[3, 1], &[1i32, 1, 1]).unwrap());
        let product = d.model.node(y.node).inputs()[0];
        d.result(y);
        d.result(product);
        let (fired, why) = d.run(&IntegersInF32);
        assert!(fired == 0 && why[0].contains("are used"), "{why:?}");
    }

    #[test]
    fn a_pool_of_bytes_is_one_of_floats_between_converts() {
        let mut attrs = carafe_graph::AttrMap::default();
        for (name, value) in [("strides", "1"), ("kernel", "2"), ("pads_begin", "1"), ("pads_end", "0")] {
            attrs.set(name, AttrValue::Text(value.into()));
        }
        let registry = carafe_ops::registry();
        let pool = registry.newest("MaxPool").unwrap().create(&attrs).unwrap();
        let mut d = Draft::new();
        let x = d.input_of("x", ElementType::I8, &[1, 1, 3]);
        let y: Value = d.model.add_ref("y", pool, &[x]).unwrap().into();
        d.model.add_tensor_name(y, "largest");
        let r = d.result(y);
        d.result(Value { node: y.node, port: 1 });
        let input = Tensor::from_slice(&[1, 1, 3], &[-128i8, 5, -7]).unwrap();
        let expected = d.model.evaluate(std::slice::from_ref(&input)).unwrap();
        assert_eq!(d.run(&IntegersInF32).0, 1);
        assert_eq!((type_of(&d, "MaxPool"), d.model.result_name(r).as_str()), (vec![ElementType::F32], "largest"));
        let found = d.model.evaluate(&[input]).unwrap();
        assert!(found.iter().zip(&expected).all(|(a, b)| a.content_eq(b)), "{found:?}");
    }
}
