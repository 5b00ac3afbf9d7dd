//! ```text
//! (Convert(integers) - z) * s    ->  QuantizeDequantize((Convert(integers) - z) * s)
//! ```
//!
//! Bytes that come from outside, such as a quantized input of the model, lie on a grid as well; rounding, which changes nothing,
//! says so. One scale and zero point for the whole tensor.

use super::look::{inputs_at, operands, value_of};
use carafe_graph::{Model, NodeId, Outcome, Result, ResultOp, Rewrite, Value};
use carafe_ops::arithmetic::{Multiply, Subtract};
use carafe_ops::carafe::QuantizeDequantize;
use carafe_ops::convert::Convert;
use carafe_tensor::ElementType;

/// Dequantized bytes are marked as numbers on a grid.
#[derive(Clone, Copy, Debug)]
pub struct MarkSteps;

impl Rewrite for MarkSteps {
    fn name(&self) -> &'static str {
        "mark_steps"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(op) = find(model, root) else { return Ok(Outcome::NoMatch) };
        let rounds = |u: &carafe_graph::Use| model.op_at::<QuantizeDequantize>(u.node).is_some();
        if model.users(root.into()).iter().any(rounds) {
            return Ok(Outcome::skip("the numbers are rounded already"));
        }
        let name = model.node(root).name().to_string();
        let marked = model.add(format!("{name}/steps"), op, &[root.into()])?;
        for user in model.users(root.into()).to_vec() {
            if user.node != marked && !model.node(user.node).op().is::<ResultOp>() {
                model.set_input(user.node, user.input, marked.into());
            }
        }
        Ok(Outcome::Done)
    }
}

fn find(model: &Model, root: NodeId) -> Option<QuantizeDequantize> {
    if model.fact(root.into()).ty != ElementType::F32 {
        return None;
    }
    let number = |v: Value| value_of(model, v, root.into());
    let (scale, centred) = operands::<Multiply, _>(model, root.into(), number)?;
    let (widened, zero) = match model.producer::<Subtract>(centred) {
        Some((id, _)) => {
            let &[widened, zero] = inputs_at::<Subtract>(model, id)? else { return None };
            (widened, number(zero)?)
        }
        None => (centred, 0.0),
    };
    let (convert, _) = model.producer::<Convert>(widened)?;
    let integers = model.input(convert, 0)?;
    if model.constant_of(integers).is_some() {
        return None;
    }
    let (low, high) = match model.fact(integers).ty {
        ElementType::U8 => (0, 255),
        ElementType::I8 => (-128, 127),
        _ => return None,
    };
    let inside = zero.fract() == 0.0 && (low as f64..=high as f64).contains(&zero);
    let usual = scale > 0.0 && (scale as f32).is_normal();
    (inside && usual).then_some(QuantizeDequantize { scale: scale as f32, zero: zero as i64, low, high })
}

#[cfg(test)]
mod tests {
    use super::super::testing::kinds;
    use super::*;
    use carafe_graph::{Notes, run_passes};
    use carafe_ops::activation::Relu;
    use carafe_tensor::{PartialShape, Tensor};

    fn check(ty: ElementType, scale: f32, zero: f32) -> String {
        let mut m = Model::new("m");
        let x = m.parameter("x", ty, PartialShape::of(&[256])).unwrap();
        let [s, z] = [scale, zero].map(|v| m.constant("c", Tensor::scalar(v)).unwrap());
        let y = m.add("wide", Convert { destination_type: ElementType::F32 }, &[x]).unwrap().into();
        let y = m.add("minus", Subtract::default(), &[y, z]).unwrap().into();
        let y = m.add("times", Multiply::default(), &[y, s]).unwrap().into();
        let y = m.add("last", Relu, &[y]).unwrap();
        m.result("r", y.into()).unwrap();
        let before = m.clone();
        run_passes(&mut m, &[&MarkSteps, &MarkSteps], &mut Notes::default()).unwrap();
        let all: Vec<u8> = (0..=255).collect();
        let data = [Tensor::from_slice(&[256], &all).unwrap().cast(ty).unwrap()];
        let (a, b) = (before.evaluate(&data).unwrap(), m.evaluate(&data).unwrap());
        assert_eq!(a[0].as_slice::<f32>().unwrap(), b[0].as_slice::<f32>().unwrap());
        kinds(&m)
    }

    #[test]
    fn bytes_from_outside_are_numbers_on_a_grid() {
        assert_eq!(check(ElementType::U8, 0.3, 7.0), "Convert Subtract Multiply QuantizeDequantize Relu");
    }

    #[test]
    fn odd_scales_zero_points_outside_and_wider_integers_stay() {
        let plain = "Convert Subtract Multiply Relu";
        assert_eq!(check(ElementType::U8, 0.0, 7.0), plain);
        assert_eq!(check(ElementType::U8, 0.3, 300.0), plain);
        assert_eq!(check(ElementType::I16, 0.3, 7.0), plain);
    }
}
