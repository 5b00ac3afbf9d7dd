//! Weights in another order of axes. Quantised ones are reordered where they are stored, so that what stands in front of the
//! operation is still integers, a zero point and a scale.

use carafe_frontend::NodeCx;
use carafe_graph::{Constant, Result, Value};
use carafe_ops::arithmetic::{Multiply, Subtract};
use carafe_ops::convert::Convert;

/// Weights with their axes in this order and then, where it is given, the first one cut into two.
pub(super) fn reordered(n: &mut NodeCx<'_>, v: Value, order: &[i64], cut: Option<[i64; 2]>) -> Result<Value> {
    let Some(parts) = Quantized::of(n, v) else { return lay_out(n, v, order, cut) };
    let integers = lay_out(n, parts.integers, order, cut)?;
    let mut y = n.convert(integers, n.ty(v))?;
    if let Some(zero_point) = parts.zero_point {
        let zero_point = lay_out(n, zero_point, order, cut)?;
        y = n.emit(Subtract::default(), &[y, zero_point])?;
    }
    let scale = lay_out(n, parts.scale, order, cut)?;
    n.emit(Multiply::default(), &[y, scale])
}

fn lay_out(n: &mut NodeCx<'_>, v: Value, order: &[i64], cut: Option<[i64; 2]>) -> Result<Value> {
    // One number fits any order.
    if n.rank(v) == Some(0) {
        return Ok(v);
    }
    let v = n.transpose(v, order)?;
    let Some(cut) = cut else { return Ok(v) };
    let first = n.shape(v).dim(0).get();
    let front = if first == Some(1) { vec![1, 1] } else { cut.to_vec() };
    let rest = (1..order.len()).map(|axis| n.shape(v).dim(axis).get());
    let rest = rest.collect::<Option<Vec<i64>>>().ok_or_else(|| n.unsupported("the shape of weights must be known"))?;
    n.reshape(v, &[front, rest].concat())
}

/// What a rule of ours made of stored integers.
struct Quantized {
    integers: Value,
    zero_point: Option<Value>,
    scale: Value,
}

impl Quantized {
    fn of(n: &NodeCx<'_>, v: Value) -> Option<Quantized> {
        let model = n.model();
        let inputs = |v: Value| model.node(v.node).inputs();
        model.op_at::<Multiply>(v.node)?;
        let &[product, scale] = inputs(v) else { return None };
        let (widened, zero_point) = match model.op_at::<Subtract>(product.node) {
            Some(_) => (inputs(product)[0], Some(inputs(product)[1])),
            None => (product, None),
        };
        model.op_at::<Convert>(widened.node)?;
        let integers = inputs(widened)[0];
        let stored = |v: &Value| model.op_at::<Constant>(v.node).is_some();
        [Some(integers), zero_point, Some(scale)].iter().flatten().all(stored).then_some(Quantized {
            integers,
            zero_point,
            scale,
        })
    }
}
