//! ```text
//! Dequantize(integers, scale)  ->  Const        where nobody multiplies it with quantized data
//! ```
//!
//! Integers are of use beside data that lies on a grid; elsewhere floats are wanted, and are better made once than for each plan.

use carafe_graph::{EvalEnv, Model, NodeId, Outcome, Result, Rewrite, Value, eval_node};
use carafe_ops::carafe::{Dequantize, QuantizeDequantize};
use carafe_ops::quantize::FakeQuantize;

/// Integer weights become floats again where no quantized data meets them.
#[derive(Clone, Copy, Debug)]
pub struct WidenWeights;

/// Operations between rounding and its use that are looked through.
const REACH: usize = 16;

impl Rewrite for WidenWeights {
    fn name(&self) -> &'static str {
        "widen_weights"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        if model.op_at::<Dequantize>(root).is_none() {
            return Ok(Outcome::NoMatch);
        }
        let meets = |u: &carafe_graph::Use| {
            u.input == 1 && model.input(u.node, 0).is_some_and(|data| is_quantized(model, data, REACH))
        };
        if model.users(root.into()).iter().any(meets) {
            return Ok(Outcome::skip("quantized data meets the integers"));
        }
        let stored = |i: usize| model.constant_of(model.input(root, i)?).cloned();
        let (Some(data), Some(scale)) = (stored(0), stored(1)) else { return Ok(Outcome::NoMatch) };
        let floats = eval_node(model, root, vec![data, scale], &mut EvalEnv::default())?.swap_remove(0);
        let name = model.node(root).name().to_string();
        let new = model.constant(&name, floats)?;
        model.replace_value(root.into(), new);
        model.set_name(root, format!("{name}/was"));
        super::look::sweep(model, root)?;
        Ok(Outcome::Done)
    }
}

// Whether a value was rounded to a grid and only moved since.
fn is_quantized(model: &Model, v: Value, reach: usize) -> bool {
    let op = model.node(v.node).op();
    if op.is::<FakeQuantize>() || op.is::<QuantizeDequantize>() {
        return true;
    }
    reach > 0
        && super::keeps_steps(op)
        && model.input(v.node, 0).is_some_and(|data| is_quantized(model, data, reach - 1))
}

#[cfg(test)]
mod tests {
    use super::super::testing::kinds;
    use super::*;
    use carafe_graph::{Notes, run_passes};
    use carafe_ops::linear::MatMul;
    use carafe_ops::movement::Squeeze;
    use carafe_tensor::{ElementType, PartialShape, Tensor};

    fn model(quantized: bool) -> Model {
        let mut m = Model::new("m");
        let mut x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 2])).unwrap();
        if quantized {
            let op = QuantizeDequantize { scale: 0.5, zero: 0, low: -128, high: 127 };
            x = m.add("round", op, &[x]).unwrap().into();
        }
        let axes = m.constant("axes", Tensor::from_slice(&[1], &[0i64]).unwrap()).unwrap();
        x = m.add("squeeze", Squeeze { allow_axis_skip: false }, &[x, axes]).unwrap().into();
        let w = m.constant("w", Tensor::from_slice(&[2, 2], &[1i8, 2, 3, 4]).unwrap()).unwrap();
        let s = m.constant("s", Tensor::from_slice(&[1, 1], &[0.5f32]).unwrap()).unwrap();
        let w = m.add("weights", Dequantize {}, &[w, s]).unwrap();
        let y = m.add("y", MatMul { transpose_a: false, transpose_b: false }, &[x, w.into()]).unwrap();
        m.result("r", y.into()).unwrap();
        run_passes(&mut m, &[&WidenWeights], &mut Notes::default()).unwrap();
        m
    }

    #[test]
    fn weights_of_floats_are_constants() {
        let m = model(false);
        assert_eq!(kinds(&m), "Squeeze MatMul");
        let x = Tensor::from_slice(&[1, 3, 2], &[1f32, 0.0, 0.0, 1.0, 1.0, 1.0]).unwrap();
        assert_eq!(m.evaluate(&[x]).unwrap()[0].as_slice::<f32>().unwrap(), [0.5, 1.0, 1.5, 2.0, 2.0, 3.0]);
    }

    #[test]
    fn weights_of_quantized_data_stay() {
        assert_eq!(kinds(&model(true)), "QuantizeDequantize Squeeze Dequantize MatMul");
    }
}
