//! What an operation may leave out and OpenVINO's reader insists on is written out: the axis of a CumSum, the bias of a
//! recurrent cell, an equation without blanks. Runs before a model is written.

use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite};
use carafe_ops::linear::Einsum;
use carafe_ops::recurrent::{GruCell, LstmCell, LstmCellV1, RnnCell};
use carafe_ops::search::CumSum;
use carafe_tensor::Tensor;
use std::sync::Arc;

/// Writes out what an operation may leave out and OpenVINO's reader insists on.
#[derive(Clone, Copy, Debug)]
pub struct SpellOut;

impl Rewrite for SpellOut {
    fn name(&self) -> &'static str {
        "spell_out"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let n = model.node(root).inputs().len();
        if let Some(einsum) = model.op_at::<Einsum>(root) {
            if !einsum.equation.contains(char::is_whitespace) {
                return Ok(Outcome::NoMatch);
            }
            let equation = einsum.equation.split_whitespace().collect();
            model.set_op(root, Arc::new(Einsum { equation }))?;
            return Ok(Outcome::Done);
        }
        let missing = if n == 1 && model.op_at::<CumSum>(root).is_some() {
            Tensor::scalar(0i64)
        } else if let Some((weights, blocks, biases)) = cell(model, root).filter(|(weights, ..)| n == weights + 2) {
            let fact = model.fact(model.node(root).inputs()[weights]);
            let rows = fact.shape.dims().and_then(|d| d.first()?.size());
            match rows.filter(|_| !fact.ty.is_dynamic()) {
                Some(rows) => Tensor::zeros(fact.ty, &[rows / blocks * biases])?,
                None => return Ok(Outcome::skip("the weights have no known size")),
            }
        } else {
            return Ok(Outcome::NoMatch);
        };
        let name = format!("{}/input_{n}", model.node(root).name());
        let value = model.constant(&name, missing)?;
        model.push_input(root, value);
        Ok(Outcome::Done)
    }
}

/// Where the weights of a cell are, and how many blocks of rows they and the bias have.
fn cell(model: &Model, id: NodeId) -> Option<(usize, usize, usize)> {
    let op = model.node(id).op();
    if let Some(gru) = op.get::<GruCell>() {
        return Some((2, 3, if gru.linear_before_reset { 4 } else { 3 }));
    }
    if op.is::<LstmCell>() || op.is::<LstmCellV1>() {
        return Some((3, 4, 4));
    }
    op.is::<RnnCell>().then_some((2, 1, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;
    use carafe_graph::{Op, OpNew, Value};

    fn gru(linear_before_reset: bool) -> GruCell {
        let mut attrs = carafe_graph::AttrMap::new();
        attrs.set("hidden_size", carafe_graph::AttrValue::Int(2));
        attrs.set("linear_before_reset", carafe_graph::AttrValue::Bool(linear_before_reset));
        GruCell::from_attrs(&attrs).unwrap()
    }

    fn check(op: impl Op, shapes: &[&[i64]], added: &[usize]) {
        let mut d = Draft::new();
        let inputs: Vec<Value> = shapes.iter().enumerate().map(|(i, s)| d.input(&format!("x{i}"), s)).collect();
        let y = d.add("y", op, &inputs);
        d.result(y);
        assert_eq!(d.run(&SpellOut).0, 1);
        let last = *d.model.node(y.node).inputs().last().unwrap();
        assert_eq!(d.model.fact(last).shape.to_static().as_deref(), Some(added));
        assert_eq!(d.run(&SpellOut).0, 0, "once is enough");
    }

    #[test]
    fn the_axis_of_a_running_sum_is_written_out() {
        check(CumSum { exclusive: false, reverse: false }, &[&[2, 3]], &[]);
    }

    #[test]
    fn the_bias_of_a_cell_is_written_out() {
        check(gru(false), &[&[1, 3], &[1, 2], &[6, 3], &[6, 2]], &[6]);
        check(gru(true), &[&[1, 3], &[1, 2], &[6, 3], &[6, 2]], &[8]);
    }

    #[test]
    fn an_equation_loses_its_blanks() {
        let mut d = Draft::new();
        let x = d.input("x", &[1, 2]);
        let y = d.add("y", Einsum { equation: " i j -> j i".into() }, &[x]);
        d.result(y);
        assert_eq!(d.run(&SpellOut).0, 1);
        assert_eq!(d.model.op_at::<Einsum>(y.node).unwrap().equation, "ij->ji");
    }
}
