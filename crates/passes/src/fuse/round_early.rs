//! Rounding stands where it costs least:
//!
//! ```text
//! Round(Concat(a, b))    ->  Concat(Round(a), Round(b))
//! Round(Round(x))        ->  Round(x)                      also with what only moves numbers between
//! ```
//!
//! Round is a QuantizeDequantize, or a FakeQuantize of one range. Behind a layer it is a part of that layer, behind a
//! concatenation a walk over memory; and what a concatenation joins then lies on one grid.

use super::keeps_steps::{keeps_steps, passes_on};
use super::look::sweep;
use carafe_graph::{Model, NodeId, Outcome, Result, ResultOp, Rewrite, Value};
use carafe_ops::carafe::QuantizeDequantize;
use carafe_ops::movement::Concat;
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::ElementType;

/// Rounding moves before concatenations, and is left out where nothing is left to round.
#[derive(Clone, Copy, Debug)]
pub struct RoundEarly;

/// Operations between two roundings that are looked through.
const REACH: usize = 16;

impl Rewrite for RoundEarly {
    fn name(&self) -> &'static str {
        "round_early"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        if !rounds(model, root) {
            return Ok(Outcome::NoMatch);
        }
        let Some(data) = model.input(root, 0) else { return Ok(Outcome::NoMatch) };
        if is_rounded(model, data, root, REACH) {
            if model.users(root.into()).iter().any(|u| model.node(u.node).op().is::<ResultOp>()) {
                return Ok(Outcome::skip("the numbers are an output of the model"));
            }
            model.replace_value(root.into(), data);
            sweep(model, root)?;
            return Ok(Outcome::Done);
        }
        let Some((concat, op)) = model.producer::<Concat>(data) else { return Ok(Outcome::NoMatch) };
        if model.users(data).len() != 1 {
            return Ok(Outcome::skip("others read what is joined"));
        }
        let op = op.clone();
        let (name, round) = (model.node(root).name().to_string(), model.node(root).op_ref().clone());
        let limits: Vec<Value> = model.node(root).inputs()[1..].to_vec();
        let mut parts = vec![];
        for (i, part) in model.node(concat).inputs().to_vec().into_iter().enumerate() {
            let inputs: Vec<Value> = std::iter::once(part).chain(limits.iter().copied()).collect();
            parts.push(model.add_ref(format!("{name}/part_{i}"), round.clone(), &inputs)?.into());
        }
        let joined = model.add(format!("{name}/joined"), op, &parts)?;
        model.replace_value(root.into(), joined.into());
        model.set_name(root, format!("{name}/was"));
        model.set_name(joined, name);
        sweep(model, root)?;
        Ok(Outcome::Done)
    }
}

// Whether a node rounds floats to the steps of one grid.
fn rounds(model: &Model, id: NodeId) -> bool {
    let node = model.node(id);
    let one = |v: &Value| model.constant_of(*v).is_some_and(|t| t.len() == 1);
    let whole = node.op().is::<QuantizeDequantize>()
        || node.op().is::<FakeQuantize>() && node.inputs().len() == 5 && node.inputs()[1..].iter().all(one);
    whole && model.fact(id.into()).ty == ElementType::F32
}

// Whether a value was rounded just as `like` does it and only moved since.
fn is_rounded(model: &Model, v: Value, like: NodeId, reach: usize) -> bool {
    let node = model.node(v.node);
    if rounds(model, v.node) {
        let (ours, theirs) = (model.node(like), node);
        let constant = |v: &Value| model.constant_of(*v);
        let limits = |inputs: &[Value]| inputs[1..].iter().map(constant).collect::<Vec<_>>();
        // Numbers of a FakeQuantize are its steps again only where both ranges are the same.
        let (a, b) = (limits(ours.inputs()), limits(theirs.inputs()));
        let same = |x: usize, y: usize| match (a.get(x), b.get(y)) {
            (Some(Some(x)), Some(Some(y))) => x.content_eq(y),
            (None, None) => true,
            _ => false,
        };
        let ranges = (0..4).all(|i| same(i, i)) && same(0, 2) && same(1, 3);
        return ours.op().eq_op(theirs.op()) && ranges;
    }
    let moved = |i: usize| model.input(v.node, i).is_some_and(|data| is_rounded(model, data, like, reach - 1));
    if reach == 0 || !keeps_steps(node.op()) {
        return false;
    }
    let float = |&i: &usize| model.fact(node.inputs()[i]).ty == ElementType::F32 && passes_on(node.op(), i);
    let mut floats = (0..node.inputs().len()).filter(float).peekable();
    floats.peek().is_some() && floats.all(moved)
}

#[cfg(test)]
mod tests {
    use super::super::testing::kinds;
    use super::*;
    use carafe_graph::{Notes, run_passes};
    use carafe_ops::activation::Relu;
    use carafe_ops::movement::Transpose;
    use carafe_tensor::{PartialShape, Tensor};

    fn round(m: &mut Model, x: Value, scale: f32) -> Value {
        m.add("round", QuantizeDequantize { scale, zero: 3, low: 0, high: 255 }, &[x]).unwrap().into()
    }

    fn fake(m: &mut Model, x: Value, to: f32) -> Value {
        let op = FakeQuantize { levels: 256, auto_broadcast: Default::default(), auto_broadcast_axis: None };
        let c = |m: &mut Model, x: f32| m.constant("c", Tensor::scalar(x)).unwrap();
        let limits = [c(m, -1.0), c(m, 2.0), c(m, -1.0), c(m, to)];
        m.add("round", op, &[x, limits[0], limits[1], limits[2], limits[3]]).unwrap().into()
    }

    // The model through the pass; the numbers stay.
    fn check(build: impl Fn(&mut Model, Value) -> Value) -> String {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2, 32])).unwrap();
        let y = build(&mut m, x);
        let y = m.add("last", Relu, &[y]).unwrap();
        m.result("r", y.into()).unwrap();
        let before = m.clone();
        run_passes(&mut m, &[&RoundEarly], &mut Notes::default()).unwrap();
        let data: Vec<f32> = (0..64).map(|i| (i as f32 - 20.0) * 0.07).collect();
        let data = [Tensor::from_slice(&[2, 32], &data).unwrap()];
        let (a, b) = (before.evaluate(&data).unwrap(), m.evaluate(&data).unwrap());
        assert_eq!(a[0].as_slice::<f32>().unwrap(), b[0].as_slice::<f32>().unwrap());
        kinds(&m)
    }

    #[test]
    fn parts_are_rounded_before_they_are_joined() {
        let found = check(|m, x| {
            let (a, b) = (round(m, x, 0.1), round(m, x, 0.2));
            let both = m.add("both", Concat { axis: 1 }, &[a, b]).unwrap().into();
            round(m, both, 0.3)
        });
        assert_eq!(found, "QuantizeDequantize QuantizeDequantize QuantizeDequantize QuantizeDequantize Concat Relu");
    }

    #[test]
    fn what_was_rounded_the_same_way_and_moved_is_not_rounded_again() {
        let found = check(|m, x| {
            let y = round(m, x, 0.1);
            let order = m.constant("order", Tensor::from_slice(&[2], &[1i64, 0]).unwrap()).unwrap();
            let y = m.add("moved", Transpose, &[y, order]).unwrap().into();
            round(m, y, 0.1)
        });
        assert_eq!(found, "QuantizeDequantize Transpose Relu");
    }

    #[test]
    fn ranges_of_two_kinds_are_rounded_again() {
        let twice = |to: f32| {
            check(move |m, x| {
                let y = fake(m, x, to);
                fake(m, y, to)
            })
        };
        assert_eq!(twice(2.0), "FakeQuantize Relu");
        assert_eq!(twice(3.0), "FakeQuantize FakeQuantize Relu");
    }

    #[test]
    fn what_others_read_is_rounded_where_it_is() {
        let found = check(|m, x| {
            let both = m.add("both", Concat { axis: 0 }, &[x, x]).unwrap().into();
            m.result("other", both).unwrap();
            round(m, both, 0.3)
        });
        assert_eq!(found, "Concat QuantizeDequantize Relu");
    }
}
