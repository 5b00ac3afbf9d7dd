//! A MatMul that reads large constant weights through a Transpose of their last two axes reads the weights themselves and
//! transposes while it multiplies: folding would copy them, and weights that others read too would be stored twice.

use carafe_graph::{Constant, Model, NodeId, Result, Use, Value};
use carafe_ops::linear::MatMul;
use carafe_ops::movement::Transpose;
use std::sync::Arc;

/// Smaller constants are folded as usual.
const LARGE_BYTES: usize = 1 << 20;

/// Rewrites every such MatMul; gives how many.
pub(crate) fn read_directly(model: &mut Model) -> Result<usize> {
    let mut done = 0;
    let transposes: Vec<NodeId> = model.nodes().filter(|(_, n)| n.op().is::<Transpose>()).map(|(id, _)| id).collect();
    for id in transposes {
        let Some(weights) = transposed_weights(model, id) else { continue };
        for u in model.users(id.into()).to_vec() {
            let Some(op) = turned(model, u) else { continue };
            model.set_input(u.node, u.input, weights);
            model.set_op(u.node, Arc::new(op))?;
            done += 1;
        }
        // Folding would compute what nobody reads.
        if model.users(id.into()).is_empty() {
            model.remove(id)?;
        }
    }
    Ok(done)
}

// The large constant whose last two axes this Transpose swaps.
fn transposed_weights(model: &Model, id: NodeId) -> Option<Value> {
    let [weights, order] = model.node(id).inputs() else { return None };
    let tensor = model.node(weights.node).op().get::<Constant>()?.tensor();
    let rank = tensor.rank();
    if rank < 2 || tensor.byte_len() <= LARGE_BYTES {
        return None;
    }
    let mut swapped: Vec<i64> = (0..rank as i64).collect();
    swapped.swap(rank - 1, rank - 2);
    (model.fact(*order).ints()? == swapped).then_some(*weights)
}

// The MatMul with this operand taken the other way round.
fn turned(model: &Model, u: Use) -> Option<MatMul> {
    let mut op = model.node(u.node).op().get::<MatMul>()?.clone();
    let flag = if u.input == 0 { &mut op.transpose_a } else { &mut op.transpose_b };
    *flag = !*flag;
    Some(op)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_ops::movement::Transpose;
    use carafe_tensor::{ElementType, Tensor};

    fn product(rows: usize, order: [i64; 2]) -> Model {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, "1,2".parse().unwrap()).unwrap();
        let shape = if order == [1, 0] { [rows, 2] } else { [2, rows] };
        let values: Vec<f32> = (0..2 * rows).map(|i| i as f32).collect();
        let w = m.constant("w", Tensor::from_slice(&shape, &values).unwrap()).unwrap();
        let order = m.constant("order", Tensor::from_slice(&[2], &order).unwrap()).unwrap();
        let t = m.add("t", Transpose, &[w, order]).unwrap();
        let y = m.add("y", MatMul { transpose_a: false, transpose_b: false }, &[x, t.into()]).unwrap();
        m.result("out", y.into()).unwrap();
        m
    }

    #[test]
    fn large_weights_are_read_directly_with_the_same_numbers() {
        let mut m = product(1 << 18, [1, 0]);
        let x = Tensor::from_slice(&[1, 2], &[1f32, 3.]).unwrap();
        let before = m.evaluate(std::slice::from_ref(&x)).unwrap();
        assert_eq!(read_directly(&mut m).unwrap(), 1);
        assert!(m.find_node("t").is_none());
        let y = m.find_node("y").unwrap();
        assert!(m.node(m.node(y).inputs()[1].node).op().is::<Constant>());
        assert!(before[0].content_eq(&m.evaluate(&[x]).unwrap()[0]));
    }

    #[test]
    fn small_weights_and_other_orders_are_left() {
        assert_eq!(read_directly(&mut product(4, [1, 0])).unwrap(), 0);
        assert_eq!(read_directly(&mut product(1 << 18, [0, 1])).unwrap(), 0);
    }
}
