//! `MatMul(Transpose(x), y)` becomes `MatMul(x, y, transpose_a)` when the Transpose swaps the last two axes and moves no
//! other; the same for `y`. What lies between the two is the matter of `sink_transposes`.

use crate::shared::transpose_order;
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite};
use carafe_ops::linear::MatMul;
use std::sync::Arc;

/// Lets a MatMul read its operands transposed instead of transposing them.
#[derive(Clone, Copy, Debug)]
pub struct FuseTransposeIntoMatmul;

impl Rewrite for FuseTransposeIntoMatmul {
    fn name(&self) -> &'static str {
        "fuse_transpose_into_matmul"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(mut product) = model.op_at::<MatMul>(root).cloned() else { return Ok(Outcome::NoMatch) };
        let mut outcome = Outcome::NoMatch;
        for input in 0..2 {
            let given = model.node(root).inputs()[input];
            let Some(order) = transpose_order(model, given.node) else { continue };
            if !swaps_last_two(&order) {
                if outcome == Outcome::NoMatch {
                    outcome = Outcome::skip(format!("input {input} has its axes in the order {order:?}"));
                }
                continue;
            }
            let x = model.node(given.node).inputs()[0];
            model.set_input(root, input, x);
            if input == 0 {
                product.transpose_a = !product.transpose_a;
            } else {
                product.transpose_b = !product.transpose_b;
            }
            outcome = Outcome::Done;
        }
        if outcome == Outcome::Done {
            model.set_op(root, Arc::new(product))?;
        }
        Ok(outcome)
    }
}

/// Whether the order is 0, 1, ..., n-1, n-2.
pub(crate) fn swaps_last_two(order: &[usize]) -> bool {
    let n = order.len();
    n >= 2 && order[n - 1] == n - 2 && order[n - 2] == n - 1 && order[..n - 2].iter().copied().eq(0..n - 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;
    use carafe_ops::movement::Transpose;

    fn product(order: &[i64]) -> (Draft, usize, Vec<String>) {
        let mut d = Draft::new();
        let (x, y) = (d.input("x", &[2, 3, 4]), d.input("y", &[2, 3, 3]));
        let list = d.ints(order);
        let t = d.add("t", Transpose, &[x, list]);
        let m = d.add("m", MatMul { transpose_a: false, transpose_b: false }, &[t, y]);
        d.result(m);
        let (fired, why) = d.run(&FuseTransposeIntoMatmul);
        (d, fired, why)
    }

    #[test]
    fn swapped_matrices_are_read_so() {
        let (d, fired, _) = product(&[0, 2, 1]);
        assert_eq!((fired, d.count("Transpose")), (1, 0));
        let (_, node) = d.model.nodes().find(|(_, n)| n.name() == "m").unwrap();
        assert!(node.op().get::<MatMul>().is_some_and(|m| m.transpose_a && !m.transpose_b));
    }

    #[test]
    fn other_orders_stay() {
        let mut d = Draft::new();
        let (x, y) = (d.input("x", &[3, 2, 4]), d.input("y", &[2, 4, 3]));
        let list = d.ints(&[1, 0, 2]);
        let t = d.add("t", Transpose, &[x, list]);
        let m = d.add("m", MatMul { transpose_a: false, transpose_b: false }, &[t, y]);
        d.result(m);
        let (fired, why) = d.run(&FuseTransposeIntoMatmul);
        assert!(fired == 0 && why[0].contains("[1, 0, 2]"), "{why:?}");
    }
}
