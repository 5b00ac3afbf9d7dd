//! Data that a product with stored weights reads transposed is transposed by itself:
//!
//! ```text
//! MatMul(x, w, transpose_a)  ->  MatMul(Transpose(x), w)
//! ```
//!
//! Weights that are packed once want whole rows of data, and the transpose is cheap beside the product; often it is no more than
//! another way to look at the result of a convolution.

use super::look::{integers, put_in_place};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite};
use carafe_ops::linear::MatMul;
use carafe_ops::movement::Transpose;

/// Transposes the data of a product with stored weights.
#[derive(Clone, Copy, Debug)]
pub struct SpellTransposedData;

impl Rewrite for SpellTransposedData {
    fn name(&self) -> &'static str {
        "spell_transposed_data"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(op) = model.op_at::<MatMul>(root).filter(|op| op.transpose_a).cloned() else {
            return Ok(Outcome::NoMatch);
        };
        let &[x, weights] = model.node(root).inputs() else { return Ok(Outcome::NoMatch) };
        let is_matrix = model.constant_of(weights).is_some_and(|w| w.rank() == 2);
        if !is_matrix || model.constant_of(x).is_some() {
            return Ok(Outcome::NoMatch);
        }
        let Some(rank) = model.fact(x).shape.rank() else {
            return Ok(Outcome::skip("the rank of the data is unknown"));
        };
        if rank < 2 {
            return Ok(Outcome::NoMatch);
        }
        let mut order: Vec<i64> = (0..rank as i64).collect();
        order.swap(rank - 1, rank - 2);
        let order = integers(model, root, "order", &order)?;
        let (name, info) = (model.node(root).name().to_string(), model.node(root).rt_info.clone());
        let rows = model.add(format!("{name}/Transpose"), Transpose, &[x, order])?;
        let op = MatMul { transpose_a: false, ..op };
        let product = model.add(format!("{name}/product"), op, &[rows.into(), weights])?;
        model.rt_info_mut(product).extend_missing(&info);
        put_in_place(model, root, product)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fires, stays};
    use super::*;

    #[test]
    fn of_stored_weights() {
        for transpose_b in [false, true] {
            fires(&SpellTransposedData, "Transpose MatMul", |g| {
                let x = g.input(&[2, 4, 3]);
                let w = g.noise(if transpose_b { &[5, 4] } else { &[4, 5] }, 0.1);
                g.op(MatMul { transpose_a: true, transpose_b }, &[x, w])
            });
        }
    }

    #[test]
    fn products_of_two_computed_matrices_stay() {
        stays(&SpellTransposedData, "", |g| {
            let (x, y) = (g.input(&[2, 4, 3]), g.input(&[2, 4, 5]));
            g.op(MatMul { transpose_a: true, transpose_b: false }, &[x, y])
        });
    }
}
