//! FlexAttention: attention whose scores and weights go through sub-graphs of the model. Both see the type of the softmax,
//! which is f32 at least unless the node asks for another one.

use super::attention::repeat_heads;
use crate::tensor::element_type;
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Fact, Result, Value};
use carafe_ops::activation::Softmax;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[rule_in("ai.onnx.preview", "FlexAttention", 1, flex_attention)];

fn flex_attention(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let scale: Option<f32> = n.opt_attr("scale")?;
    let ty = match (n.attr("softmax_precision", 0_i32)?, n.input(0)?) {
        (0, q) if n.ty(q) == ElementType::F64 => ElementType::F64,
        (0, _) => ElementType::F32,
        (number, _) => element_type(number)?,
    };
    let (q, k, v) = (n.input(0)?, n.input(1)?, n.input(2)?);
    for (name, value) in [("Q", q), ("K", k), ("V", v)] {
        if let Some(rank) = n.rank(value).filter(|&r| r != 4) {
            return Err(n.fail(format!("{name} must have rank 4, found {rank}")));
        }
    }
    let (k, v) = (repeat_heads(n, k, q)?, repeat_heads(n, v, q)?);
    let root = match scale {
        Some(scale) => n.scalar_like(q, f64::from(scale).sqrt())?,
        None => {
            let size = n.length(q, 3)?;
            let size = n.convert(size, ElementType::F32)?;
            let root = n.power_number(size, -0.25)?;
            n.convert_like(root, q)?
        }
    };
    let (scaled_q, scaled_k) = (n.times(q, root)?, n.times(k, root)?);
    let scores = n.product(scaled_q, scaled_k, true)?;
    let scores = n.convert(scores, ty)?;
    let scores = modified(n, "score_mod", scores)?;
    let weights = n.emit(Softmax { axis: 3 }, &[scores])?;
    let weights = modified(n, "prob_mod", weights)?;
    let v = n.convert(v, ty)?;
    let y = n.product(weights, v, false)?;
    Ok(n.convert_like(y, q)?.into())
}

// What the sub-graph of this name makes of a value; the value itself where there is none.
fn modified(n: &mut NodeCx<'_>, name: &str, x: Value) -> Result<Value> {
    if !n.has_graph(name) {
        return Ok(x);
    }
    let fact = Fact::new(n.ty(x), n.shape(x).clone());
    let sub = n.body(name, &[fact])?;
    match n.inline(&sub, &[x])?[..] {
        [Item::Tensor(y)] => n.convert_like(y, x),
        _ => Err(n.fail(format!("the sub-graph `{name}` must give one tensor"))),
    }
}
