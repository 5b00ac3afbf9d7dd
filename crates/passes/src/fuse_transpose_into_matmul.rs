//! `MatMul(Transpose(x), y)` becomes `MatMul(x, y, transpose_a)` when the Transpose swaps the last two axes and moves no
//! other; the same for `y`. What lies between the two is the matter of `sink_transposes`.

use crate::shared::transpose_order;
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite};
use carafe_ops::linear::MatMul;
use std::sync::Arc;

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
